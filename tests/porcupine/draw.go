// Draws requests from usage lines: few keys, few members, unique values, times far away.
package main

import (
	"fmt"
	"math/rand"
	"strconv"
	"strings"
	"sync/atomic"
)

// keysPerGroup is how many keys commands of a group meet on, and may combine.
const keysPerGroup = 3

// groupKeys are a group's keys: no command of a history reaches another group's.
func groupKeys(group int) []string {
	var keys []string
	for _, letter := range "abc"[:keysPerGroup] {
		keys = append(keys, fmt.Sprintf("{g%d}%c", group, letter))
	}
	return keys
}

// memberNames are few, half of them numbers: sets and lists have encodings for those.
var memberNames = []string{"m0", "m1", "m2", "m3", "1", "2", "3", "4"}

// fieldTimes asks when each field of a hash expires.
func fieldTimes(key string) []string {
	return append([]string{"HPEXPIRETIME", key, "FIELDS", strconv.Itoa(len(memberNames))}, memberNames...)
}

// serial numbers values and expiry times, so that no two of a run are equal.
var serial int64

// timeStepSeconds lies between any two expiry times: far more than a run takes from a request to its
// check, so that an answer in seconds tells which time it means, whenever it is asked.
const timeStepSeconds = 1000

type drawer struct {
	*rand.Rand
	began int64 // Unix seconds
	group int
}

// command draws one request of a row.
func (d *drawer) command(r *row) []string {
	w := &words{drawer: d, name: r.name}
	w.parts(r.usages[d.Intn(len(r.usages))])
	return w.out
}

// words is a request being drawn. `announced` is what its numkeys said, `fields` how many fields its numfields
// said that are still to come behind the first.
type words struct {
	*drawer
	name      string
	out       []string
	announced int
	written   bool
	fields    int
	isCounted bool
}

func (w *words) parts(parts []part) {
	for _, p := range parts {
		if p.alternatives == nil {
			w.word(p.word)
			continue
		}
		first := p.alternatives[0][0].word
		if isKey(first) && w.written {
			continue // numkeys said how many there are, and they are there
		}
		times := 1
		if p.isOptional {
			times = w.Intn(4) / 3
			if p.repeats {
				times = w.Intn(3)
			}
		}
		if w.isCounted && first == "field" {
			times = w.fields
		}
		for ; times > 0; times-- {
			w.parts(p.alternatives[w.Intn(len(p.alternatives))])
		}
	}
}

func (w *words) word(word string) {
	switch {
	case strings.ToUpper(word) == word:
		w.out = append(w.out, word)
	case word == "numkeys":
		w.announced = 1 + w.Intn(3)
		w.out = append(w.out, strconv.Itoa(w.announced))
	case word == "numfields":
		w.fields, w.isCounted = w.Intn(3), true
		w.out = append(w.out, strconv.Itoa(1+w.fields))
	case isKey(word):
		count := 1
		if w.announced > 0 && !w.written && word == "key" {
			count, w.written = w.announced, true
		}
		for ; count > 0; count-- {
			w.out = append(w.out, groupKeys(w.group)[w.Intn(keysPerGroup)])
		}
	default:
		w.out = append(w.out, w.operand(word))
	}
}

func isKey(word string) bool {
	switch word {
	case "source", "destination", "key1", "key2", "dst", "src":
		return true
	}
	return strings.HasSuffix(word, "key")
}

func (w *words) of(choices ...string) string { return choices[w.Intn(len(choices))] }

func (w *words) number(from, to int) string { return strconv.Itoa(from + w.Intn(to-from)) }

// soon is a time in steps from now, seldom one that has passed.
func (w *words) soon() int64 {
	if w.Intn(10) == 0 {
		return -timeStepSeconds
	}
	return atomic.AddInt64(&serial, 1) * timeStepSeconds
}

func (w *words) operand(name string) string {
	switch name {
	case "seconds":
		return fmt.Sprint(w.soon())
	case "milliseconds":
		return fmt.Sprint(w.soon() * 1000)
	case "unix-time-seconds":
		return fmt.Sprint(w.began + w.soon())
	case "unix-time-milliseconds":
		return fmt.Sprint((w.began + w.soon()) * 1000)
	case "timeout":
		return fmt.Sprintf("0.0%d", 1+w.Intn(3))
	case "increment", "decrement":
		if strings.HasSuffix(w.name, "FLOAT") || w.name[0] == 'Z' {
			return w.of("0.5", "-1.25", "3")
		}
		return w.number(-4, 5)
	case "offset":
		if w.name == "SETRANGE" {
			return w.number(0, 12)
		} else if strings.HasPrefix(w.name, "BITFIELD") {
			return w.of("0", "3", "#1", "#2")
		}
		return w.number(0, 3)
	case "encoding":
		return w.of("u8", "i8", "u3", "i5")
	case "operation":
		return w.of("AND", "OR", "XOR", "NOT")
	case "bit":
		return w.number(0, 2)
	case "start", "stop", "end", "index", "rank":
		return w.number(-3, 5)
	case "count":
		return w.signedCount()
	case "few", "limit", "num-matches", "len", "min-match-len":
		return w.number(0, 3)
	}
	return w.value(name)
}

// signedCount: most commands refuse a negative one, and some 0. Which of several places at the same
// distance a small one keeps is anybody's guess.
func (w *words) signedCount() string {
	if strings.HasPrefix(w.name, "GEO") {
		return "1000"
	}
	if strings.Contains(w.name, "RAND") || w.name == "LREM" {
		return w.number(-2, 3)
	}
	return w.number(1, 4)
}

func (w *words) value(name string) string {
	switch name {
	case "min", "max":
		return w.of("-inf", "+inf", "(0", "(2", w.number(-3, 4))
	case "lexmin", "lexmax":
		return w.of("-", "+", "[m1", "(m1", "[m2", "(2")
	case "score", "weight":
		return w.of("1.5", w.number(-3, 4))
	case "longitude":
		return w.of("13.361389", "15.087269", "-0.1276")
	case "latitude":
		return w.of("38.115556", "37.502669", "51.5072")
	case "radius", "width", "height":
		return w.of("200", "3000", "100000", "2000000")
	case "member", "member1", "member2", "field", "pivot", "element":
		return w.of(memberNames...)
	case "entryid":
		return w.number(0, 12)
	case "groupid":
		return w.of(">", ">", ">", w.number(0, 12))
	case "group":
		return w.of("g", "g", "g", "h")
	case "consumer":
		return w.of("alice", "bob")
	case "wait":
		return w.of("10", "20", "30")
	case "pattern":
		if w.name == "KEYS" {
			return fmt.Sprintf("{g%d}%s", w.group, w.of("*", "[ab]"))
		}
		return w.of("*", "m*", "[1-3]")
	case "keypattern":
		return fmt.Sprintf("{g%d}*", w.group)
	case "getpattern":
		return w.of("#", fmt.Sprintf("{g%d}*", w.group))
	case "channel", "shardchannel":
		return "nobody"
	}
	if w.name == "SETBIT" {
		return w.number(0, 2)
	}
	if w.Intn(3) == 0 || w.name == "BITFIELD" {
		return w.number(-5, 10)
	}
	return fmt.Sprintf("v%d.", atomic.AddInt64(&serial, 1))
}
