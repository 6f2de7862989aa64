// What the tests are given instead of ports that they fix.
package ports

import (
	"os"
	"strings"
)

// kilnPort is where the server is that the tests expect at a port: KILN_PORTS holds pairs, theirs=ours.
func kilnPort(theirs string) string {
	for _, pair := range strings.Fields(os.Getenv("KILN_PORTS")) {
		if port, ours, _ := strings.Cut(pair, "="); port == theirs {
			return ours
		}
	}
	return theirs
}
