// The model of a group of keys for Porcupine: the oracle's steps, and what the choice of a random
// command may be.
package main

import (
	"fmt"
	"sort"
	"strings"

	"github.com/anishathalye/porcupine"
)

// kind says how an operation's requests were sent.
type kind int

const (
	alone       kind = iota // one request
	transaction             // MULTI, requests, EXEC
	watched                 // WATCH, the first request, MULTI, the others, EXEC that was not nil
)

// operation is what a client asked of one group.
type operation struct {
	group    int
	kind     kind
	requests [][]string
}

// answer is one canonical text per reply; nil when the connection broke before all had come.
type answer struct {
	texts []string
	raw   []reply
}

// choosing names the commands whose reply is a choice, and what shows what there is to choose from.
var choosing = map[string][]string{
	"SPOP":        {"SMEMBERS"},
	"SRANDMEMBER": {"SMEMBERS"},
	"HRANDFIELD":  {"HGETALL"},
	"ZRANDMEMBER": {"ZRANGE", "0", "-1", "WITHSCORES"},
}

func (op operation) chooses() bool { return choosing[op.requests[0][0]] != nil }

// canonical brings replies to this operation into the form in which they are compared: those to the
// queued requests (a refusal there is kept), then the elements of EXEC's.
func (op operation) canonical(replies []reply, began int64) []string {
	var texts []string
	last := replies[len(replies)-1]
	for i, r := range replies[:len(replies)-1] {
		if r.isError() {
			texts = append(texts, fmt.Sprintf("%d: %v", i, r))
		}
	}
	if last.kind != '*' {
		return append(texts, last.String())
	}
	for i, element := range last.elements {
		texts = append(texts, element.canonical(op.requests[i], began))
	}
	return texts
}

// next lists the states that may follow: none if the answer is wrong in this state.
func (o *oracle) next(s *state, op operation, a answer) []interface{} {
	if op.chooses() {
		return o.choose(s, op.requests[0], a)
	}
	out := o.execute(s, op.requests)
	if a.texts != nil {
		expected := strings.Join(op.canonical(out.replies, o.began), "\n")
		if op.kind == alone {
			expected = aloneText(op, out.replies, o.began)
		}
		if strings.Join(a.texts, "\n") != expected {
			return nil
		}
	}
	return []interface{}{out.after}
}

// aloneText is what a request answers outside of MULTI, told from its answer inside: a refusal to
// queue it is the refusal that it would have met.
func aloneText(op operation, replies []reply, began int64) string {
	if replies[0].isError() {
		return replies[0].String()
	}
	exec := replies[1]
	if len(exec.elements) != 1 {
		return exec.String()
	}
	inside := exec.elements[0]
	if name := op.requests[0][0]; inside.kind == 'n' && (name == "BLMOVE" || name == "BRPOPLPUSH") {
		inside.kind = 'N' // who waited in vain is told so by another nil than who may not wait
	}
	return inside.canonical(op.requests[0], began)
}

// choose judges a random command: what it names must be there, as many as were asked for.
func (o *oracle) choose(s *state, request []string, a answer) []interface{} {
	look := append([]string{choosing[request[0]][0], request[1]}, choosing[request[0]][1:]...)
	seen := o.execute(s, [][]string{look}).replies[1].elements[0]
	if seen.isError() {
		if a.texts != nil && a.raw[0].String() != seen.String() {
			return nil
		}
		return []interface{}{s}
	}
	there := newChoices(request, seen)
	if a.texts != nil {
		chosen, fine := there.chosen(a.raw[0])
		if !fine {
			return nil
		}
		return []interface{}{o.without(s, request, chosen)}
	}
	if request[0] != "SPOP" {
		return []interface{}{s}
	}
	var all []interface{}
	for _, chosen := range subsets(there.names, smaller(there.count, len(there.names))) {
		all = append(all, o.without(s, request, chosen))
	}
	return all
}

// without is the state after SPOP has chosen.
func (o *oracle) without(s *state, request, chosen []string) *state {
	if request[0] != "SPOP" || len(chosen) == 0 {
		return s
	}
	return o.execute(s, [][]string{append([]string{"SREM", request[1]}, chosen...)}).after
}

// choices is what a random command may choose from.
type choices struct {
	names      []string
	values     map[string]string
	count      int
	isList     bool // the reply is an array
	withValues bool
}

func newChoices(request []string, seen reply) choices {
	c := choices{values: map[string]string{}, count: 1, isList: len(request) > 2,
		withValues: len(request) > 3}
	if c.isList {
		fmt.Sscan(request[2], &c.count)
	}
	step := 1
	if request[0] == "HRANDFIELD" || request[0] == "ZRANDMEMBER" {
		step = 2
	}
	for i := 0; i+step <= len(seen.elements); i += step {
		name := seen.elements[i].text
		c.names = append(c.names, name)
		c.values[name] = seen.elements[i+step-1].text
	}
	sort.Strings(c.names)
	return c
}

// chosen lists the names in a reply, and whether the reply is one that may be given.
func (c choices) chosen(r reply) ([]string, bool) {
	if !c.isList {
		if len(c.names) == 0 {
			return nil, r.kind == 'n'
		}
		_, is := c.values[r.text]
		return []string{r.text}, is && r.kind == '$'
	}
	wanted := smaller(c.count, len(c.names))
	if c.count < 0 {
		wanted = smaller(-c.count, -c.count*len(c.names))
	}
	step := 1
	if c.withValues {
		step = 2
	}
	if r.kind != '*' || len(r.elements) != wanted*step {
		return nil, false
	}
	var names []string
	distinct := map[string]bool{}
	for i := 0; i < len(r.elements); i += step {
		name := r.elements[i].text
		value, is := c.values[name]
		if !is || (c.withValues && r.elements[i+1].text != value) || (c.count > 0 && distinct[name]) {
			return nil, false
		}
		distinct[name] = true
		names = append(names, name)
	}
	return names, true
}

// subsets lists every choice of `count` names.
func subsets(names []string, count int) [][]string {
	if count == 0 {
		return [][]string{nil}
	}
	var all [][]string
	for i, name := range names {
		for _, rest := range subsets(names[i+1:], count-1) {
			all = append(all, append([]string{name}, rest...))
		}
	}
	return all
}

// model is one group for Porcupine.
func (o *oracle) model() porcupine.Model {
	nondeterministic := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{o.empty} },
		Step: func(before, input, output interface{}) []interface{} {
			return o.next(before.(*state), input.(operation), output.(answer))
		},
		Equal: func(one, other interface{}) bool { return one == other },
		DescribeOperation: func(input, output interface{}) string {
			return describe(input.(operation), output.(answer))
		},
	}
	return nondeterministic.ToModel()
}

func describe(op operation, a answer) string {
	var lines []string
	for _, request := range op.requests {
		lines = append(lines, strings.Join(request, " "))
	}
	text := strings.Join(lines, "; ")
	text = []string{"", "MULTI ", "WATCH "}[op.kind] + text + " → "
	if a.texts == nil {
		return text + "?"
	}
	return text + strings.Join(a.texts, "; ")
}

func smaller(one, other int) int {
	if one < other {
		return one
	}
	return other
}
