// The oracle: a stock redis-server that says what a request answers in a state, and which state it
// leaves. So every command has a model, and a history is held against Redis's semantics too. Where fields of
// hashes expire it is a Valkey.
//
// A state is what a group's keys hold. To take a step, the oracle puts the values into an empty
// database (RESTORE), executes the unit (MULTI, EXEC) and reads the values again (DUMP).
package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// state is immutable, and there is one of each within a group: states are equal if they are the same.
type state struct {
	values [keysPerGroup]value
}

type value struct {
	payload  string // as DUMP gives it; empty if the key does not exist
	expireAt string // Unix milliseconds, or -1
}

// outcome is what a unit answers and leaves.
type outcome struct {
	replies []reply
	after   *state
}

// oracle is one connection, with a database of its own, that judges one group at a time.
type oracle struct {
	link   *connection
	began  int64
	keys   []string
	states map[string]*state
	steps  map[step]outcome
	loaded *state // what the database holds now
	empty  *state
	asked  int
	// hasFields says whether fields of hashes expire.
	hasFields bool
}

type step struct {
	from    *state
	request string
}

// startOracle starts the stock server; `stop` ends it.
func startOracle(program, runs string) (port int, stop func(), err error) {
	directory, err := os.MkdirTemp(runs, "oracle-")
	if err != nil {
		return 0, nil, err
	}
	s, err := newServer(directory, program, "--save", "", "--enable-debug-command", "yes",
		"--loglevel", "warning")
	if err != nil {
		return 0, nil, err
	}
	stop = func() { s.close(); os.RemoveAll(directory) }
	if err := s.start(); err != nil {
		stop()
		return 0, nil, fmt.Errorf("the oracle: %w", err)
	}
	return s.port, stop, nil
}

// findOracle is the path of the stock server, or of the other one.
func findOracle(isValkey bool) (string, error) {
	name := "redis-server"
	if isValkey {
		name = "valkey-server"
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing: run tests/install", name)
	}
	return path, nil
}

func newOracle(port, database int, began int64, hasFields bool) (*oracle, error) {
	link, err := dial(port)
	if err != nil {
		return nil, err
	}
	_, err = link.call([]string{"SELECT", strconv.Itoa(database)},
		[]string{"FUNCTION", "LOAD", "REPLACE", library()})
	return &oracle{link: link, began: began, hasFields: hasFields}, err
}

// judge prepares for a group, and forgets the one before it.
func (o *oracle) judge(group int) {
	o.keys = groupKeys(group)
	o.states, o.steps = map[string]*state{}, map[step]outcome{}
	o.empty, o.loaded = &state{}, nil
	o.states[strings.Repeat("0 0 ", keysPerGroup)] = o.empty
}

// execute says what the requests do as one unit. The transcript is remembered: a checker asks for the
// same step in many orders of the others.
func (o *oracle) execute(from *state, requests [][]string) outcome {
	key := step{from, fmt.Sprintf("%q", requests)}
	if known, is := o.steps[key]; is {
		return known
	}
	o.asked++
	var batch [][]string
	if o.loaded != from {
		batch = append(batch, []string{"FLUSHDB"})
		for i, v := range from.values {
			if v.payload != "" {
				batch = append(batch, restore(o.keys[i], v))
			}
		}
	}
	unit := len(batch)
	batch = append(append(append(batch, []string{"MULTI"}), requests...), []string{"EXEC"})
	look := len(batch)
	digest := []string{"DEBUG", "DIGEST-VALUE"}
	for _, key := range o.keys {
		batch = append(batch, []string{"DUMP", key}, []string{"PEXPIRETIME", key}, fullStream(key))
		if o.hasFields {
			batch = append(batch, fieldTimes(key))
		}
		digest = append(digest, key)
	}
	replies, err := o.link.call(append(batch, digest)...)
	if err != nil {
		panic(fmt.Sprintf("the oracle is gone: %v", err)) // there is no verdict without it
	}
	for i, r := range replies[:unit] {
		if r.isError() {
			panic(fmt.Sprintf("the oracle refused %q: %v", batch[i], r))
		}
	}
	out := outcome{replies[unit+1 : look], o.intern(replies[look:])}
	o.loaded, o.steps[key] = out.after, out
	return out
}

func restore(key string, v value) []string {
	at := v.expireAt
	if at == "-1" {
		at = "0"
	}
	return []string{"RESTORE", key, at, v.payload, "ABSTTL"}
}

// intern finds the state that the database holds now. What makes it that state is what it means: a
// digest without encodings, and expiry times without the moments in which they were asked for. Of a stream the
// digest has the entries alone, neither its groups nor the last ID nor what was deleted.
func (o *oracle) intern(look []reply) *state {
	s, id := &state{}, ""
	digests, width := look[len(look)-1].elements, (len(look)-1)/keysPerGroup
	for i := range s.values {
		about := look[i*width : (i+1)*width]
		dump, expiry, stream := about[0], about[1], about[2]
		if dump.kind != '$' {
			id += "0 0 "
			continue
		}
		s.values[i] = value{dump.text, expiry.text}
		id += digests[i].text + " " + o.stepsTo(expiry) + " "
		if stream.kind == '*' {
			id += stream.withoutTimes().String() + " "
		}
		for _, times := range about[3:] {
			for _, at := range times.elements {
				id += o.stepsTo(at) + " "
			}
		}
	}
	if known := o.states[id]; known != nil {
		return known
	}
	o.states[id] = s
	return s
}

// stepsTo is how many steps lie before a time of expiry in milliseconds.
func (o *oracle) stepsTo(expiry reply) string {
	at, _ := strconv.ParseInt(expiry.text, 10, 64)
	if at < 0 {
		return "-"
	}
	return fmt.Sprint(math.Round((float64(at)/1000 - float64(o.began)) / timeStepSeconds))
}
