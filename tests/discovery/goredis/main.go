// Writes NAME:1, NAME:2, … with one of go-redis's clients, each until it is acknowledged, and says so
// by a line. `pause` and `go` on the standard input do what they say; its end ends the program.
//
//	goredis cluster|readers|failover NAME HOST:PORT…
//
// An error is told and tried again, as an application does it. Nobody tells the client who leads.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const again = 50 * time.Millisecond

var ctx = context.Background()

// logs drops what the client logs of failovers: they are what this is about.
type logs struct{}

func (logs) Printf(context.Context, string, ...interface{}) {}

func connect(kind string, places []string) redis.UniversalClient {
	switch kind {
	case "cluster":
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: places})
	case "readers":
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: places, ReadOnly: true, RouteRandomly: true})
	case "failover":
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "mymaster", SentinelAddrs: places})
	}
	panic("no such client: " + kind)
}

func write(client redis.UniversalClient, name string, number int) error {
	key := fmt.Sprintf("%s:%d", name, number)
	if err := client.Set(ctx, key, number, 0).Err(); err != nil {
		return err
	}
	found, err := client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return nil // A replica may not have it yet.
	}
	if err == nil && found != strconv.Itoa(number) {
		panic(key + " holds " + found)
	}
	return err
}

func main() {
	redis.SetLogger(logs{})
	client, name := connect(os.Args[1], os.Args[3:]), os.Args[2]
	var gate sync.Mutex
	go func() {
		for number := 1; ; {
			gate.Lock()
			err := write(client, name, number)
			gate.Unlock()
			if err != nil {
				fmt.Printf("error %v\n", err)
				time.Sleep(again)
				continue
			}
			fmt.Println(number)
			number++
		}
	}()
	paused := false
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if pause := lines.Text() != "go"; pause != paused {
			paused = pause
			if pause {
				gate.Lock()
			} else {
				gate.Unlock()
			}
		}
	}
}
