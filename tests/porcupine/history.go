// What clients send, and what all of them saw, in one clock.
package main

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is the operations of each group, in one clock.
type history struct {
	sync.Mutex
	table    *table
	families []string
	began    time.Time
	groups   map[int][]porcupine.Operation
	answered map[string]int // replies that were no errors, by command
	faults   []string
	clients  int32
	lost     int // operations without a reply
	commands int
	// hasFunctions says whether the servers have the library that FCALL calls.
	hasFunctions bool
	// goesElsewhere says of which replies that nothing has happened and another server is to be asked.
	goesElsewhere func([]reply) bool
}

func newHistory(t *table, families []string) *history {
	return &history{table: t, families: families, began: time.Now(),
		groups: map[int][]porcupine.Operation{}, answered: map[string]int{},
		goesElsewhere: func([]reply) bool { return false }}
}

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// size is how many requests are in the history by now.
func (h *history) size() int {
	h.Lock()
	defer h.Unlock()
	return h.commands
}

func (h *history) fault(text string) {
	h.Lock()
	defer h.Unlock()
	h.faults = append(h.faults, text)
}

// add keeps one operation. Without a reply it may still happen at any later time, so it never ends;
// reads without a reply say nothing and are left out.
func (h *history) add(client int, op operation, call int64, a answer) {
	ended := h.now()
	if a.texts == nil {
		if h.onlyReads(op) {
			return
		}
		ended = math.MaxInt64
	}
	h.Lock()
	defer h.Unlock()
	if a.texts == nil {
		h.lost++
	}
	h.commands += len(op.requests)
	h.groups[op.group] = append(h.groups[op.group], porcupine.Operation{
		ClientId: client, Input: op, Call: call, Output: a, Return: ended})
}

func (h *history) onlyReads(op operation) bool {
	for _, request := range op.requests {
		if !h.table.isRead[h.table.name(request)] {
			return false
		}
	}
	return true
}

// count remembers which commands were answered otherwise than by an error.
func (h *history) count(requests [][]string, replies []reply) {
	h.Lock()
	defer h.Unlock()
	for i, r := range replies {
		if !r.isError() {
			h.answered[h.table.name(requests[i])]++
		}
	}
}

// client is one connection after another, each with requests of its own drawing.
type client struct {
	*history
	drawer
	id   int
	link *connection
}

// work sends operations until told to stop. After a broken connection it is another client, because
// its last operation may still be going on.
func (h *history) work(s *server, groups func() (int, int), stop *int32, seed int64) {
	c := &client{history: h, drawer: drawer{Rand: rand.New(rand.NewSource(seed)),
		began: h.began.Unix()}}
	for atomic.LoadInt32(stop) == 0 {
		kills := atomic.LoadInt32(&s.kills)
		link, err := dial(s.port)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		c.link, c.id = link, int(atomic.AddInt32(&h.clients, 1))
		for err == nil && atomic.LoadInt32(stop) == 0 {
			first, count := groups()
			c.group = first + c.Intn(count)
			err = c.one()
		}
		link.Close()
		if err != nil && !s.explains(kills) {
			h.fault(fmt.Sprintf("client %d, with no kill since it came: %v", c.id, err))
		}
	}
}

// one sends one operation: mostly a request alone, sometimes a transaction, sometimes a watched one.
func (c *client) one() error {
	switch choice := c.Intn(20); {
	case choice < 4:
		return c.transaction(operation{c.group, transaction, c.several(2 + c.Intn(3))})
	case choice < 6:
		return c.watched(operation{c.group, watched, append([][]string{c.watchable()}, c.several(1+c.Intn(2))...)})
	}
	requests := prepared(c.draw(c.row()))
	if len(requests) > 1 {
		return c.transaction(operation{c.group, transaction, requests})
	}
	return c.alone(operation{c.group, alone, requests})
}

// prepared puts a request behind the one that gives it a meaning. Ranges of members have none where
// scores differ, says the documentation of ZRANGEBYLEX: all are made 0.
func prepared(request []string) [][]string {
	isByMember := strings.Contains(request[0], "LEX")
	for _, word := range request {
		isByMember = isByMember || word == "BYLEX"
	}
	if !isByMember {
		return [][]string{request}
	}
	source := request[1]
	if request[0] == "ZRANGESTORE" {
		source = request[2]
	}
	return [][]string{{"ZUNIONSTORE", source, "1", source, "WEIGHTS", "0"}, request}
}

// changesPart are the commands that may change a part of a string. Elements that are added to a HyperLogLog
// damaged by them are refused by Redis and here, and Redis may have changed a part of it, which Kiln has not
// (docs/compatibility.md). So no group of keys meets both.
var changesPart = map[string]bool{"SETRANGE": true, "APPEND": true, "SETBIT": true, "BITFIELD": true, "BITOP": true}

const hyperloglog = "hyperloglog"

// values is the family of what a group's keys mostly hold. Groups of scripts hold each in turn.
func (c *client) values() string {
	turn, count := c.group, len(c.families)
	for c.families[turn%count] == scripting && turn >= count {
		turn /= count
	}
	if family := c.families[turn%count]; family != scripting {
		return family
	}
	return c.families[0]
}

// row draws a command: mostly of the group's own family, often one on keys of any type.
func (c *client) row() *row { return c.rowOf(c.families[c.group%len(c.families)]) }

func (c *client) rowOf(own string) *row {
	values := c.values()
	for {
		family := own
		switch choice := c.Intn(20); {
		case choice < 5 && c.table.rows["generic"] != nil:
			family = "generic"
		case choice < 7:
			family = c.families[c.Intn(len(c.families))]
		}
		rows := c.table.rows[family]
		r := rows[c.Intn(len(rows))]
		isDamage := values == hyperloglog && changesPart[r.name] || values != hyperloglog && family == hyperloglog
		if !isDamage && (r.name != "FCALL" || c.hasFunctions) {
			return r
		}
	}
}

// draw draws one request of a row.
func (c *client) draw(r *row) []string {
	if r.family == scripting {
		return c.run(r)
	}
	return c.command(r)
}

// several draws requests for a transaction. Random ones are judged by their reply alone, and so are
// sent alone.
func (c *client) several(count int) [][]string {
	var requests [][]string
	for len(requests) < count {
		if request := c.draw(c.row()); choosing[request[0]] == nil {
			requests = append(requests, prepared(request)...)
		}
	}
	return requests
}

func (c *client) read() []string {
	for {
		r := c.row()
		if request := c.draw(r); r.isRead && choosing[r.name] == nil && len(prepared(request)) == 1 {
			return request
		}
	}
}

// watchable is a read of what WATCH watches: in Redis, and here, no change of a stream's groups is a change of
// the key.
func (c *client) watchable() []string {
	for {
		if request := c.read(); !streamReplies[request[0]] {
			return request
		}
	}
}

func (c *client) readOne() error {
	return c.alone(operation{c.group, alone, [][]string{c.read()}})
}

func (c *client) alone(op operation) error {
	call := c.now()
	replies, err := c.link.call(op.requests...)
	if err != nil {
		c.add(c.id, op, call, answer{})
		return err
	}
	if c.goesElsewhere(replies) {
		return errElsewhere
	}
	if loading(replies) {
		return nil
	}
	c.count(op.requests, replies)
	text := replies[0].canonical(op.requests[0], c.drawer.began)
	c.add(c.id, op, call, answer{[]string{text}, replies})
	return nil
}

func (c *client) transaction(op operation) error {
	call := c.now()
	batch := append(append([][]string{{"MULTI"}}, op.requests...), []string{"EXEC"})
	replies, err := c.link.call(batch...)
	if err != nil {
		c.add(c.id, op, call, answer{})
		return err
	}
	exec := replies[len(replies)-1]
	if c.goesElsewhere(replies) {
		return errElsewhere
	}
	if loading(replies) {
		return nil
	}
	c.count(op.requests, exec.elements)
	c.add(c.id, op, call, answer{op.canonical(replies[1:], c.drawer.began), replies})
	return nil
}

// watched reads, then executes a transaction only if nothing of the group has changed meanwhile. If
// it was executed, the read belongs to its unit; otherwise nothing has happened.
func (c *client) watched(op operation) error {
	replies, err := c.link.call(append([]string{"WATCH"}, groupKeys(op.group)...), op.requests[0])
	if err == nil && c.goesElsewhere(replies) {
		return errElsewhere
	}
	if err == nil && loading(replies) {
		_, err = c.link.call([]string{"UNWATCH"}) // WATCH itself is answered while loading
		return err
	}
	if err != nil {
		return err
	}
	read, call := replies[1], c.now()
	batch := append(append([][]string{{"MULTI"}}, op.requests[1:]...), []string{"EXEC"})
	if replies, err = c.link.call(batch...); err != nil {
		c.add(c.id, op, call, answer{})
		return err
	}
	if c.goesElsewhere(replies) {
		return errElsewhere
	}
	exec := replies[len(replies)-1]
	if exec.kind != '*' {
		return nil
	}
	unit := reply{kind: '*', elements: append([]reply{read}, exec.elements...)}
	c.count(op.requests, unit.elements)
	c.add(c.id, op, call, answer{op.canonical([]reply{unit}, c.drawer.began), replies})
	return nil
}

// loading says whether the server was still starting when it got any of the requests, and so has
// done nothing.
func loading(replies []reply) bool {
	for _, r := range replies {
		if r.isError() && strings.HasPrefix(r.text, "LOADING") {
			return true
		}
	}
	return false
}

// look reads all that a group holds, as one unit: what a crash left must be seen by someone.
func (c *client) look(group int) error {
	op := operation{group, transaction, nil}
	for _, key := range groupKeys(group) {
		op.requests = append(op.requests, []string{"GET", key}, []string{"LRANGE", key, "0", "-1"},
			[]string{"SMEMBERS", key}, []string{"HGETALL", key},
			[]string{"ZRANGE", key, "0", "-1", "WITHSCORES"}, []string{"TTL", key}, fullStream(key))
		if h := c.history; h.table.hasFields {
			op.requests = append(op.requests, fieldTimes(key))
		}
	}
	return c.transaction(op)
}

// lookAll is a client that looks at some groups.
func (h *history) lookAll(s *server, first, count int) error {
	link, err := dial(s.port)
	if err != nil {
		return err
	}
	defer link.Close()
	c := &client{history: h, drawer: drawer{began: h.began.Unix()}, link: link,
		id: int(atomic.AddInt32(&h.clients, 1))}
	for group := first; group < first+count && err == nil; group++ {
		err = c.look(group)
	}
	return err
}
