// Linearizability under crashes: clients send requests drawn from the server's command table to few
// hot keys, the server is killed and restarted, and Porcupine looks for one order of all operations
// that explains every reply. What each may answer is asked from a stock redis-server.
//
//	porcupine/run -server-command "../target/checked/kiln server" -rounds 4
package main

import (
	"flag"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var (
	command = flag.String("server-command", "../target/checked/kiln server",
		"how to start it; `all-cold` and part-cold are Kiln with values on a tier")
	commands  = flag.String("commands", "", "the program that prints the command table")
	rounds    = flag.Int("rounds", 4, "histories, each with several crashes")
	crashes   = flag.Int("crashes", 4, "kills in one history")
	clients   = flag.Int("clients", 8, "concurrent clients")
	groups    = flag.Int("groups", 5, "groups of keys that clients meet on at a time")
	chosen    = flag.String("families", "", "families, with commas; all if none is named")
	oracleIs  = flag.String("oracle", "redis", "`redis`, or valkey: histories of what Redis 7.0 does not know")
	seed      = flag.Int64("seed", time.Now().UnixNano(), "of the commands and the kills")
	expectBad = flag.Bool("expect-broken", false, "succeed only when a history is refused")
	members   = flag.String("members", "", "ports of a shard's members, with commas: histories of these "+
		"servers, by orders from standard input (members.go)")
	runs = flag.String("runs", "../.cache/runs", "where the server's data lies")
)

// commandsBetweenKills are answered at least, however slow the disk is: enough for clients to meet.
const commandsBetweenKills = 300

// record runs one history with its crashes.
func record(t *table, families []string, number int) (*history, error) {
	directory, err := os.MkdirTemp(*runs, "porcupine-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	random := rand.New(rand.NewSource(*seed + int64(number)))
	s, err := newServer(directory, *command)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if err := s.start(); err != nil {
		return nil, err
	}
	h := newHistory(t, families)
	if h.hasFunctions, err = s.load(library()); err != nil {
		return nil, err
	}
	// Each generation has groups of its own and lives through one crash. Groups go on from round to
	// round, so that every family is a group's own sooner or later.
	var stop, generation int32
	generation = int32(number * (*crashes + 1))
	current := func() (int, int) { return int(atomic.LoadInt32(&generation)) * *groups, *groups }
	var all sync.WaitGroup
	for i := 0; i < *clients; i++ {
		all.Add(1)
		go func(seed int64) {
			defer all.Done()
			h.work(s, current, &stop, seed)
		}(random.Int63())
	}
	for i := 0; i < *crashes && err == nil; i++ {
		before := h.size()
		time.Sleep(time.Duration(20+random.Intn(80)) * time.Millisecond)
		for slow := 0; h.size() < before+commandsBetweenKills && slow < 1000; slow++ {
			time.Sleep(10 * time.Millisecond)
		}
		s.kill()
		if err = s.start(); err == nil {
			first, count := current()
			err = h.lookAll(s, first, count)
		}
		time.Sleep(time.Duration(10+random.Intn(30)) * time.Millisecond)
		atomic.AddInt32(&generation, 1)
	}
	atomic.StoreInt32(&stop, 1)
	all.Wait()
	return h, err
}

// report counts and prints, as every suite does.
type report struct{ passed, failed int }

func (r *report) add(fine bool, text string) {
	if fine {
		r.passed++
		fmt.Println("ok   " + text)
	} else {
		r.failed++
		fmt.Println("FAIL " + text)
	}
}

func (r *report) close() {
	fmt.Printf("%d passed, %d failed\n", r.passed, r.failed)
	if r.failed > 0 {
		os.Exit(1)
	}
}

func fail(err error) {
	fmt.Println("FAIL " + err.Error())
	(&report{failed: 1}).close()
}

func main() {
	flag.Parse()
	if *command == "all-cold" || *command == "part-cold" {
		*command = "harness/" + *command + " server"
	}
	isValkey := *oracleIs == "valkey"
	t, err := readTable(*commands, isValkey)
	if err != nil {
		fail(err)
	}
	families := t.families
	if isValkey {
		families = ofValkey
	}
	if *chosen != "" {
		families = strings.Split(*chosen, ",")
	}
	for _, family := range families {
		if t.rows[family] == nil {
			fail(fmt.Errorf("no family %q; there are %s", family, strings.Join(t.families, ",")))
		}
	}
	fmt.Printf("seed %d, families %s\n", *seed, strings.Join(families, ","))
	if *runs, err = filepath.Abs(*runs); err == nil {
		err = os.MkdirAll(*runs, 0o755)
	}
	if err != nil {
		fail(err)
	}
	judges, stop, err := startJudges(isValkey)
	if err != nil {
		fail(err)
	}
	r := &report{}
	r.add(judges.selfTest(), "a lost write is refused, an unknown one is not")
	if *members != "" {
		err = runCampaign(t, families, judges, r)
	} else {
		histories(t, families, judges, r)
	}
	stop()
	if err != nil {
		fail(err)
	}
	r.close()
}

// extraRounds is how many times as many rounds as asked for there may be, until every command was
// answered otherwise than by an error: how much happens in a round is up to the disk.
const extraRounds = 5

// histories records and judges each round.
func histories(t *table, families []string, judges *judges, r *report) {
	answered, refused := map[string]int{}, 0
	isDone := func(round int) bool {
		return round >= *rounds && (*expectBad || len(t.unanswered(answered, families)) == 0)
	}
	for round := 0; !isDone(round) && round < *rounds*extraRounds; round++ {
		h, err := record(t, families, round)
		if err != nil {
			r.add(false, err.Error())
			break
		}
		for name, count := range h.answered {
			answered[name] += count
		}
		v := judges.check(h)
		line := fmt.Sprintf("history %d: %v", round, v)
		if *expectBad {
			fmt.Println("     " + line)
			refused += len(v.illegal)
			continue
		}
		r.add(v.fine(), line)
	}
	if *expectBad {
		r.add(refused > 0, "a server that loses writes is caught")
		return
	}
	missing := t.unanswered(answered, families)
	// What never succeeds tests nothing.
	text := fmt.Sprintf("%d commands answered", len(answered))
	if len(missing) > 0 {
		text += ", only with errors: " + strings.Join(missing, " ")
	}
	r.add(len(missing) == 0, text)
}
