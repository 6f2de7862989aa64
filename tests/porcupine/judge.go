// Judges histories: every group alone, several at a time.
package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"
)

// judgesCount is how many groups are judged at a time: one oracle serves them all.
const judgesCount = 3

// groupSecondsMax bounds the search for one group's order. What takes longer is no verdict, and fails.
// On a machine with ten others at work, 10 s were seen for a group that has an order.
const groupSecondsMax = 1200

type judges struct {
	port int
	// tells says whether a history without an order is written down for whoever asks why.
	tells bool
	// hasFields says whether fields of hashes expire, which a Valkey knows.
	hasFields bool
}

func startJudges(hasFields bool) (*judges, func(), error) {
	program, err := findOracle(hasFields)
	if err != nil {
		return nil, nil, err
	}
	port, stop, err := startOracle(program, *runs)
	return &judges{port, !*expectBad, hasFields}, stop, err
}

// verdict is about one history.
type verdict struct {
	operations, commands, lost, groups, asked int
	took                                      time.Duration
	illegal, unknown, faults                  []string
}

func (v verdict) fine() bool {
	return len(v.illegal)+len(v.unknown)+len(v.faults) == 0 && v.operations > 100
}

func (v verdict) String() string {
	text := fmt.Sprintf("%d operations (%d commands, %d without a reply) in %d groups, %d steps asked, %.1f s",
		v.operations, v.commands, v.lost, v.groups, v.asked, v.took.Seconds())
	for _, problem := range []struct {
		name  string
		where []string
	}{{"Illegal", v.illegal}, {"Unknown", v.unknown}, {"faults", v.faults}} {
		if len(problem.where) > 0 {
			text += fmt.Sprintf(", %s: %s", problem.name, strings.Join(problem.where, "; "))
		}
	}
	if len(v.illegal)+len(v.unknown) == 0 {
		text += ": Ok"
	}
	return text
}

// check judges every group of a history.
func (j *judges) check(h *history) verdict {
	v := verdict{groups: len(h.groups), commands: h.commands, lost: h.lost, faults: h.faults}
	began := time.Now()
	waiting := make(chan int, len(h.groups))
	for group, operations := range h.groups {
		v.operations += len(operations)
		waiting <- group
	}
	close(waiting)
	var all sync.WaitGroup
	var lock sync.Mutex
	for database := 0; database < judgesCount; database++ {
		all.Add(1)
		go func(database int) {
			defer all.Done()
			o, err := newOracle(j.port, database, h.began.Unix(), j.hasFields)
			if err != nil {
				panic(fmt.Sprintf("the oracle is gone: %v", err))
			}
			defer o.link.Close()
			for group := range waiting {
				result, where := o.checkGroup(group, h.groups[group], j.tells)
				lock.Lock()
				switch result {
				case porcupine.Illegal:
					v.illegal = append(v.illegal, where)
				case porcupine.Unknown:
					v.unknown = append(v.unknown, where)
				}
				lock.Unlock()
			}
			lock.Lock()
			v.asked += o.asked
			lock.Unlock()
		}(database)
	}
	all.Wait()
	v.took = time.Since(began)
	return v
}

// checkGroup looks for an order. If there is none and it `tells`, it writes down what there is.
func (o *oracle) checkGroup(
	group int, operations []porcupine.Operation, tells bool,
) (porcupine.CheckResult, string) {
	o.judge(group)
	result, info := porcupine.CheckOperationsVerbose(o.model(), operations, groupSecondsMax*time.Second)
	if result == porcupine.Ok || !tells {
		return result, fmt.Sprint(group)
	}
	path := filepath.Join(*runs, fmt.Sprintf("history-%d-%d.txt", *seed, group))
	where := fmt.Sprintf("group %d of %d operations, in %s", group, len(operations), path)
	sort.Slice(operations, func(i, k int) bool { return operations[i].Call < operations[k].Call })
	var text strings.Builder
	for _, one := range operations {
		ended := "never"
		if one.Return != math.MaxInt64 {
			ended = fmt.Sprint(one.Return / 1000)
		}
		fmt.Fprintf(&text, "client %d, %d to %s us: %s\n", one.ClientId, one.Call/1000, ended,
			describe(one.Input.(operation), one.Output.(answer)))
	}
	text.WriteString(o.explain(info, operations))
	if err := os.WriteFile(path, []byte(text.String()), 0o644); err != nil {
		where += ": " + err.Error()
	}
	return result, where
}

// explain replays the longest order that was found, and says what might come next and does not.
func (o *oracle) explain(info porcupine.LinearizationInfo, operations []porcupine.Operation) string {
	var longest []porcupine.Operation
	for _, partition := range info.PartialLinearizationsOperations() {
		for _, order := range partition {
			if len(order) > len(longest) {
				longest = order
			}
		}
	}
	var text strings.Builder
	fmt.Fprintf(&text, "\nThe longest order explains %d of %d:\n", len(longest), len(operations))
	model, ordered := o.model(), map[string]bool{}
	states := model.Init()
	for _, one := range longest {
		op, a := one.Input.(operation), one.Output.(answer)
		ordered[identity(one)] = true
		_, states = model.Step(states, op, a)
		fmt.Fprintf(&text, "%s\n", describe(op, a))
	}
	text.WriteString("\nThen any of these should follow:\n")
	ends := int64(math.MaxInt64)
	for _, one := range operations {
		if !ordered[identity(one)] && one.Return < ends {
			ends = one.Return
		}
	}
	for _, one := range operations {
		if ordered[identity(one)] || one.Call > ends {
			continue
		}
		op := one.Input.(operation)
		fmt.Fprintf(&text, "%s\n", describe(op, one.Output.(answer)))
		for _, s := range states.([]interface{}) {
			out := o.execute(s.(*state), op.requests)
			fmt.Fprintf(&text, "    the oracle: %v\n", out.replies)
		}
	}
	return text.String()
}

func identity(one porcupine.Operation) string { return fmt.Sprint(one.ClientId, one.Call) }

// selfTest makes sure that a history that cannot be explained is refused, and its twin is not.
func (j *judges) selfTest() bool {
	o, err := newOracle(j.port, 0, time.Now().Unix(), j.hasFields)
	if err != nil {
		return false
	}
	defer o.link.Close()
	key := groupKeys(0)[0]
	set := operation{0, alone, [][]string{{"SET", key, "new"}}}
	get := operation{0, alone, [][]string{{"GET", key}}}
	pop := operation{0, alone, [][]string{{"SPOP", key}}}
	said := func(text string) answer { return answer{[]string{text}, nil} }
	acknowledged := porcupine.Operation{Input: set, Call: 1, Output: said("+OK"), Return: 2}
	unknown := porcupine.Operation{Input: set, Call: 1, Output: answer{}, Return: math.MaxInt64}
	lost := porcupine.Operation{ClientId: 1, Input: get, Call: 3, Output: said("nil"), Return: 4}
	found := porcupine.Operation{ClientId: 1, Input: get, Call: 5, Output: said(`"new"`), Return: 6}
	again := porcupine.Operation{ClientId: 1, Input: get, Call: 7, Output: said("nil"), Return: 8}
	fill := operation{0, transaction, [][]string{{"SADD", key, "1", "2"}, {"SCARD", key}}}
	filled := porcupine.Operation{Input: fill, Call: 1, Output: answer{[]string{":2", ":2"}, nil}, Return: 2}
	popped := func(text string) porcupine.Operation {
		return porcupine.Operation{Input: pop, Call: 3, Output: answer{[]string{text}, []reply{{kind: '$', text: text}}},
			Return: 4}
	}
	rest := porcupine.Operation{Input: operation{0, alone, [][]string{{"SMEMBERS", key}}}, Call: 5,
		Output: said(`{ "2" }`), Return: 6}
	verdict := func(operations ...porcupine.Operation) bool {
		o.judge(0)
		return porcupine.CheckOperations(o.model(), operations)
	}
	return !verdict(acknowledged, lost) && verdict(acknowledged, found) &&
		verdict(unknown, lost, found) && !verdict(unknown, found, again) &&
		verdict(filled, popped("1"), rest) && !verdict(filled, popped("2"), rest) &&
		!verdict(filled, popped("3"), rest)
}
