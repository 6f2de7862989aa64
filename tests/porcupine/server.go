// A server process that is killed and started again on one directory and port.
package main

import (
	"fmt"
	"math/rand"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

type server struct {
	directory string
	port      int
	command   string
	arguments []string
	process   *exec.Cmd
	// kills counts beginnings and ends of kills: it is odd while one goes on.
	kills int32
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
	words := append(strings.Fields(s.command), "--port", strconv.Itoa(s.port), "--dir", s.directory,
		"--bind", "127.0.0.1")
	words = append(words, s.arguments...)
	s.process = exec.Command(words[0], words[1:]...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.process.Start(); err != nil {
		return err
	}
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); {
		if link, err := dial(s.port); err == nil {
			replies, err := link.call([]string{"PING"})
			link.Close()
			if err == nil && replies[0].text == "PONG" {
				return nil
			}
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("no PONG within 60 s")
}

func (s *server) kill() {
	atomic.AddInt32(&s.kills, 1)
	s.process.Process.Kill()
	s.process.Wait()
	atomic.AddInt32(&s.kills, 1)
}

// explains says whether a kill may have broken a connection that was made when `kills` was `before`.
func (s *server) explains(before int32) bool {
	now := atomic.LoadInt32(&s.kills)
	return now != before || now%2 == 1
}
