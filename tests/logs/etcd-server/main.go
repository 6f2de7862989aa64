// The etcd server as its makers build it. Its module carries `replace` directives, which `go install`
// refuses, so it is built through a module of our own.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
