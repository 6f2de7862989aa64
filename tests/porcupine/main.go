// Linearizability under crashes: clients write and read few hot keys, the server is killed and
// restarted, and Porcupine looks for one order of all operations that explains every reply.
//
//	porcupine/run -server-command "../target/checked/kiln server" -rounds 4
package main

import (
	"flag"
	"fmt"
	"math"
	"math/rand"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/anishathalye/porcupine"
)

var (
	command   = flag.String("server-command", "../target/checked/kiln server", "how to start it")
	rounds    = flag.Int("rounds", 4, "histories, each with several crashes")
	crashes   = flag.Int("crashes", 4, "kills in one history")
	clients   = flag.Int("clients", 8, "concurrent clients")
	keys      = flag.Int("keys", 2, "keys of each family at a time")
	chosen    = flag.String("families", strings.Join(families, ","), "families, with commas")
	seed      = flag.Int64("seed", time.Now().UnixNano(), "of the commands and the kills")
	expectBad = flag.Bool("expect-broken", false, "succeed only when a history is refused")
	runs      = flag.String("runs", "../.cache/runs", "where the server's data lies")
)

// server is a process that is killed and started again on one directory and port.
type server struct {
	directory string
	port      int
	process   *exec.Cmd
}

// freePort is one below Linux's ephemeral range, so that no outgoing connection holds it.
func freePort() int {
	for {
		port := 12000 + rand.Intn(19000)
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			listener.Close()
			return port
		}
	}
}

func (s *server) start() error {
	words := append(strings.Fields(*command), "--port", strconv.Itoa(s.port), "--dir", s.directory,
		"--bind", "127.0.0.1")
	s.process = exec.Command(words[0], words[1:]...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if link, err := dial(s.port); err == nil {
			reply, err := link.call("PING")
			link.Close()
			if err == nil && reply == "PONG" {
				return nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("no PONG within 30 s")
}

func (s *server) kill() {
	s.process.Process.Kill()
	s.process.Wait()
}

// record runs one history with its crashes.
func record(number int) (*history, error) {
	if err := os.MkdirAll(*runs, 0o755); err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp(*runs, "porcupine-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	directory, _ = filepath.Abs(directory)
	random := rand.New(rand.NewSource(*seed + int64(number)))
	server := &server{directory: directory, port: freePort()}
	if err := server.start(); err != nil {
		return nil, err
	}
	defer func() { server.kill() }()
	h := &history{began: time.Now()}
	var stop, generation int32
	var all sync.WaitGroup
	for i := 0; i < *clients; i++ {
		all.Add(1)
		go func(seed int64) {
			defer all.Done()
			h.client(server.port, strings.Split(*chosen, ","), *keys, &generation, &stop, seed)
		}(random.Int63())
	}
	for i := 0; i < *crashes && err == nil; i++ {
		// A generation of keys lives through one crash, and its end is read after it.
		time.Sleep(time.Duration(20+random.Intn(80)) * time.Millisecond)
		server.kill()
		err = server.start()
		time.Sleep(time.Duration(10+random.Intn(30)) * time.Millisecond)
		atomic.AddInt32(&generation, 1)
	}
	atomic.StoreInt32(&stop, 1)
	all.Wait()
	return h, err
}

// check says whether some order explains the history.
func check(h *history) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(keyModel(), h.operations, time.Minute)
}

// selfTest makes sure that a history that cannot be explained is refused, and its twin is not.
func selfTest() bool {
	set := Command{Key: "k", Name: "SET", Args: []string{"new"}}
	get := Command{Key: "k", Name: "GET"}
	acknowledged := porcupine.Operation{Input: set, Call: 1, Output: Reply{Text: "OK"}, Return: 2}
	unknown := porcupine.Operation{Input: set, Call: 1, Output: Reply{Unknown: true}, Return: math.MaxInt64}
	lost := porcupine.Operation{ClientId: 1, Input: get, Call: 3, Output: Reply{Text: absent}, Return: 4}
	found := porcupine.Operation{ClientId: 1, Input: get, Call: 5, Output: Reply{Text: "new"}, Return: 6}
	again := porcupine.Operation{ClientId: 1, Input: get, Call: 7, Output: Reply{Text: absent}, Return: 8}
	verdict := func(operations ...porcupine.Operation) bool {
		return check(&history{operations: operations}) == porcupine.Ok
	}
	return !verdict(acknowledged, lost) && verdict(acknowledged, found) &&
		verdict(unknown, lost, found) && !verdict(unknown, found, again)
}

func main() {
	flag.Parse()
	fmt.Printf("seed %d, families %s\n", *seed, *chosen)
	passed, failed := 0, 0
	report := func(fine bool, text string) {
		if fine {
			passed++
			fmt.Println("ok   " + text)
		} else {
			failed++
			fmt.Println("FAIL " + text)
		}
	}
	report(selfTest(), "a lost write is refused, an unknown one is not")
	refused := 0
	for round := 0; round < *rounds; round++ {
		h, err := record(round)
		if err != nil {
			report(false, err.Error())
			break
		}
		unexpected := ""
		for _, text := range h.refused {
			if !strings.Contains(text, "LOADING") {
				unexpected = ", refused: " + text
			}
		}
		result := check(h)
		line := fmt.Sprintf("history %d: %d operations: %s%s", round, len(h.operations), result, unexpected)
		if *expectBad {
			fmt.Println("     " + line)
			if result == porcupine.Illegal {
				refused++
			}
			continue
		}
		report(result == porcupine.Ok && unexpected == "" && len(h.operations) > 100, line)
	}
	if *expectBad {
		report(refused > 0, "a server that loses writes is caught")
	}
	fmt.Printf("%d passed, %d failed\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
