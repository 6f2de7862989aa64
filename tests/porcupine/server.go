// A server process that is killed and started again on one directory and port.
package main

import (
	"errors"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

type server struct {
	directory string
	port      int
	holder    int // the socket that keeps the port from everybody else
	command   string
	arguments []string
	process   *exec.Cmd
	ended     chan struct{} // closed when the process has ended
	// kills counts beginnings and ends of kills: it is odd while one goes on.
	kills int32
}

// newServer does not start it yet. The port is one below Linux's ephemeral range, and the server's until
// `close`: a socket is bound to it that never listens. One that listens may be bound beside it, as all
// servers are (SO_REUSEADDR), but nobody else gets it while the server is dead.
func newServer(directory, command string, arguments ...string) (*server, error) {
	for try := 0; try < 1000; try++ {
		holder, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		port := 12000 + rand.Intn(20000)
		// Not yet reusable, so that it is refused where anybody else has the port.
		if syscall.Bind(holder, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}) == nil {
			err = syscall.SetsockoptInt(holder, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
			return &server{directory: directory, port: port, holder: holder, command: command,
				arguments: arguments}, err
		}
		syscall.Close(holder)
	}
	return nil, errors.New("no free port found")
}

// close ends the process and gives the port back.
func (s *server) close() {
	if s.process != nil {
		s.kill()
	}
	syscall.Close(s.holder)
}

// startSecondsMax is how long a start may take on a machine that is busy with other things.
const startSecondsMax = 120

func (s *server) start() error {
	words := append(strings.Fields(s.command), "--port", strconv.Itoa(s.port), "--dir", s.directory,
		"--bind", "127.0.0.1")
	words = append(words, s.arguments...)
	s.process = exec.Command(words[0], words[1:]...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(s.directory, "start.log"))
	if err != nil {
		return err
	}
	defer log.Close()
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	s.ended = make(chan struct{})
	go func(process *exec.Cmd, ended chan struct{}) {
		process.Wait()
		close(ended)
	}(s.process, s.ended)
	for deadline := time.Now().Add(startSecondsMax * time.Second); time.Now().Before(deadline); {
		if link, err := dial(s.port); err == nil {
			replies, err := link.call([]string{"PING"})
			link.Close()
			if err == nil && replies[0].text == "PONG" {
				return nil
			}
		}
		select {
		case <-s.ended:
			return fmt.Errorf("the server ended at its start: %v, %s", s.process.ProcessState, s.said())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("no PONG within %d s: %s", startSecondsMax, s.said())
}

// load gives it a library of functions, and says whether it has them. One that loses writes is not given any: that
// it lost them would be noticed too easily.
func (s *server) load(library string) (bool, error) {
	if *expectBad {
		return false, nil
	}
	link, err := dial(s.port)
	if err != nil {
		return false, err
	}
	defer link.Close()
	replies, err := link.call([]string{"FUNCTION", "LOAD", library})
	if err == nil && replies[0].isError() {
		err = errors.New(replies[0].text)
	}
	return err == nil, err
}

func (s *server) kill() {
	atomic.AddInt32(&s.kills, 1)
	s.process.Process.Kill()
	<-s.ended
	atomic.AddInt32(&s.kills, 1)
}

// said is the end of what the server printed since its last start.
func (s *server) said() string {
	text, _ := os.ReadFile(filepath.Join(s.directory, "start.log"))
	if len(text) > 1000 {
		text = text[len(text)-1000:]
	}
	return string(text)
}

// explains says whether a kill may have broken a connection that was made when `kills` was `before`.
func (s *server) explains(before int32) bool {
	now := atomic.LoadInt32(&s.kills)
	return now != before || now%2 == 1
}
