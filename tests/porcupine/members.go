// Histories of a shard whose members somebody else starts and harms. Clients follow the primary: who
// is refused or loses a connection goes on with the next member.
//
// Orders come by standard input, a word a line. Each is answered by a line that begins with "= ".
//
//	work   clients begin, on groups of keys that nobody has used; answered once they have met there
//	rest   once they have met again, they end, and everything that they touched is looked at
//	judge  everything since the last judgement is looked at again, and judged
//
// The clock of expiry times allows for some hundred seconds between two judgements (timeStepSeconds).
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// commandsOfMeeting are answered at least before and after whatever happens between two orders.
const commandsOfMeeting = 200

// commandsPerGeneration are answered on the same groups, about; then the clients move on to others. More
// would only take longer to judge.
const commandsPerGeneration = 1500

// meetingSecondsMax bounds how long a shard may answer nothing.
const meetingSecondsMax = 120

// patienceMin and twice that is how long a client waits for a reply before it asks another member. So
// clients go on beside one that stands still, and its answer counts as unknown.
const patienceMin = time.Second

// restMax is what a client rests between two operations, at most: a round may last long, and all of it
// is judged.
const restMax = 10 * time.Millisecond

// readersPart: one client in so many only reads, from whichever member it meets, and asks each for the
// newest there is.
const readersPart = 4

// errElsewhere: nothing has happened, and another member is to be asked.
var errElsewhere = errors.New("another member is to be asked")

// refusals are how members say that they did not execute a request, by the reply's first word.
var refusals = map[string]bool{"READONLY": true, "MOVED": true, "CLUSTERDOWN": true, "LOADING": true,
	"MISCONF": true, "MASTERDOWN": true}

// answeredByAnyone names what has no key, so that a replica answers it from what it holds, as in a
// cluster of Redis: no primary is asked.
var answeredByAnyone = map[string]bool{"KEYS": true}

// refused says whether any of the requests of one operation was refused, and so none executed: one
// refused while it is queued refuses EXEC as well. A script is refused when it comes to write, and then
// each of its writes is: it has changed nothing either, nor has what stands beside it in EXEC, or EXEC
// would have been refused.
func refused(replies []reply) bool {
	for _, r := range replies {
		if word, _, _ := strings.Cut(r.text, " "); r.isError() && refusals[word] || refused(r.elements) {
			return true
		}
	}
	return false
}

// campaign is histories of one shard, one after another.
type campaign struct {
	table    *table
	families []string
	judges   *judges
	report   *report
	ports    []int
	random   *rand.Rand
	h        *history
	judged   int
	// generation and what the history held when it began.
	generation, began int
	stop              int32
	all               sync.WaitGroup
}

func newCampaign(t *table, families []string, judges *judges, r *report) (*campaign, error) {
	c := &campaign{table: t, families: families, judges: judges, report: r,
		random: rand.New(rand.NewSource(*seed)), stop: 1}
	for _, word := range strings.Split(*members, ",") {
		port, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("-members: %w", err)
		}
		c.ports = append(c.ports, port)
	}
	for family, rows := range t.rows {
		t.rows[family] = nil
		for _, r := range rows {
			if !answeredByAnyone[r.name] {
				t.rows[family] = append(t.rows[family], r)
			}
		}
	}
	c.begin()
	return c, nil
}

func (c *campaign) begin() {
	c.h = newHistory(c.table, c.families)
	c.h.goesElsewhere = refused
	c.began = 0
}

// obey does what the lines say, until there are no more.
func (c *campaign) obey(lines io.Reader) {
	orders := bufio.NewScanner(lines)
	for orders.Scan() {
		answer := "done"
		var err error
		switch orders.Text() {
		case "work":
			err = c.work()
		case "rest":
			err = c.rest()
		case "judge":
			err = c.judge()
		default:
			err = fmt.Errorf("no such order: %q", orders.Text())
		}
		if err != nil {
			answer = "error: " + err.Error()
			c.report.failed++
		}
		fmt.Println("= " + answer)
	}
	c.end()
}

func (c *campaign) end() {
	atomic.StoreInt32(&c.stop, 1)
	c.all.Wait()
}

// groups are those that clients meet on now.
func (c *campaign) groups() (first, count int) {
	turns := (c.h.size() - c.began) / commandsPerGeneration
	return (c.generation + turns) * *groups, *groups
}

func (c *campaign) work() error {
	c.began = c.h.size()
	atomic.StoreInt32(&c.stop, 0)
	for i := 0; i < *clients; i++ {
		c.all.Add(1)
		go func(seed int64, onlyReads bool) {
			defer c.all.Done()
			c.follow(seed, onlyReads)
		}(c.random.Int63(), i%readersPart == 0)
	}
	return c.meet()
}

// meet waits until the clients have been answered.
func (c *campaign) meet() error {
	before := c.h.size()
	for deadline := time.Now().Add(meetingSecondsMax * time.Second); time.Now().Before(deadline); {
		if c.h.size() >= before+commandsOfMeeting {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("%d of %d commands answered within %d s", c.h.size()-before, commandsOfMeeting,
		meetingSecondsMax)
}

func (c *campaign) rest() error {
	err := c.meet()
	c.end()
	last, count := c.groups()
	first := c.generation * count
	c.generation = last/count + 1
	for group := first; group < last+count && err == nil; group++ {
		err = c.look(group)
	}
	return err
}

// look asks one member after another for all that a group holds, until one answers.
func (c *campaign) look(group int) error {
	var err error
	deadline := time.Now().Add(meetingSecondsMax * time.Second)
	for at := 0; time.Now().Before(deadline); at++ {
		var link *connection
		if link, err = dial(c.ports[at%len(c.ports)]); err == nil {
			link.patience = 2 * patienceMin
			looker := &client{history: c.h, drawer: drawer{began: c.h.began.Unix()}, link: link,
				id: int(atomic.AddInt32(&c.h.clients, 1))}
			err = looker.look(group)
			link.Close()
		}
		if err == nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	return fmt.Errorf("nobody shows group %d: %w", group, err)
}

// judge looks at everything once more, because what was there after one fault may be gone after the
// next.
func (c *campaign) judge() error {
	var touched []int
	for group := range c.h.groups {
		touched = append(touched, group)
	}
	sort.Ints(touched)
	for _, group := range touched {
		if err := c.look(group); err != nil {
			return err
		}
	}
	v := c.judges.check(c.h)
	c.report.add(v.fine(), fmt.Sprintf("history %d: %v", c.judged, v))
	c.judged++
	c.begin()
	return nil
}

// follow is a client that goes from member to member, until told to stop.
func (c *campaign) follow(seed int64, onlyReads bool) {
	random := rand.New(rand.NewSource(seed))
	one := &client{history: c.h, drawer: drawer{Rand: random, began: c.h.began.Unix()}}
	stay := c.stay
	if onlyReads {
		stay = c.read
	}
	for at := random.Intn(len(c.ports)); atomic.LoadInt32(&c.stop) == 0; at++ {
		link, err := dial(c.ports[at%len(c.ports)])
		if err == nil {
			link.patience = patienceMin + time.Duration(random.Int63n(int64(patienceMin)))
			one.link, one.id = link, int(atomic.AddInt32(&c.h.clients, 1))
			stay(one)
			link.Close()
		}
		time.Sleep(time.Duration(random.Int63n(int64(restMax))))
	}
}

// stay sends operations to one member until it does not answer. It begins with a read: who does not
// answer that gets no write whose outcome would be unknown, and few such writes can be judged.
func (c *campaign) stay(one *client) {
	err := c.ask(one, (*client).readOne)
	for err == nil && atomic.LoadInt32(&c.stop) == 0 {
		err = c.ask(one, (*client).one)
	}
}

// readsOfMember are how many reads a reader sends to a member before it goes to the next one.
const readsOfMember = 50

// read asks one member, whatever it is, for the newest values.
func (c *campaign) read(one *client) {
	replies, err := one.link.call([]string{"READONLY"}, []string{"CLIENT", "READS", "LINEARIZABLE"})
	if err != nil || replies[0].isError() || replies[1].isError() {
		return // it is gone, or loading
	}
	for i := 0; err == nil && i < readsOfMember && atomic.LoadInt32(&c.stop) == 0; i++ {
		err = c.ask(one, (*client).readOne)
	}
}

// ask sends one operation on a group of now, and rests.
func (c *campaign) ask(one *client, send func(*client) error) error {
	first, count := c.groups()
	one.group = first + one.Intn(count)
	err := send(one)
	time.Sleep(time.Duration(one.Int63n(int64(restMax))))
	return err
}

// runCampaign serves orders until they end.
func runCampaign(t *table, families []string, judges *judges, r *report) error {
	c, err := newCampaign(t, families, judges, r)
	if err != nil {
		return err
	}
	fmt.Println("= ready")
	c.obey(os.Stdin)
	return nil
}
