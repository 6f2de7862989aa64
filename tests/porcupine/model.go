// The rules that a key obeys, one function per command, over a state that is a plain value.
//
// Each key is judged alone, as Redis's commands on one key promise linearizability per key. A state
// is a sorted list of parts, so that two states are equal exactly when their parts are.
package main

import (
	"fmt"
	"sort"
	"strconv"
	"strings"

	"github.com/anishathalye/porcupine"
)

// Command is what a client asked, its reply as text, and whether a reply came at all.
type Command struct {
	Key, Name string
	Args      []string
}

// Reply is the server's answer as text; Unknown when the connection broke before it came.
type Reply struct {
	Text    string
	Unknown bool
}

// state is the elements of a list, `field\x01value` of a hash, `member\x01score` of a sorted set.
// A string is a list of one element. Absent keys are nil.
type state []string

const between = "\x01"

// apply says what a command answers in a state and which state it leaves. It never changes `s`.
func apply(s state, c Command) (string, state) {
	switch c.Name {
	case "GET", "SET", "APPEND", "INCRBY", "GETDEL", "SETNX", "GETSET":
		return applyString(s, c)
	case "HSET", "HGET", "HDEL", "HLEN", "HGETALL", "HINCRBY":
		return applyHash(s, c)
	case "LPUSH", "RPUSH", "LPOP", "RPOP", "LRANGE", "LLEN":
		return applyList(s, c)
	case "SADD", "SREM", "SISMEMBER", "SMEMBERS", "SCARD":
		return applySet(s, c)
	case "ZADD", "ZINCRBY", "ZREM", "ZSCORE", "ZRANGE", "ZPOPMIN":
		return applySortedSet(s, c)
	case "DEL":
		return count(len(s) > 0), nil
	case "EXISTS":
		return count(len(s) > 0), s
	}
	panic("no rule for " + c.Name)
}

func count(is bool) string {
	if is {
		return "1"
	}
	return "0"
}

const absent = "nil"

func applyString(s state, c Command) (string, state) {
	old := absent
	if len(s) > 0 {
		old = s[0]
	}
	switch c.Name {
	case "GET":
		return old, s
	case "GETDEL":
		return old, nil
	case "GETSET":
		return old, state{c.Args[0]}
	case "SET":
		return "OK", state{c.Args[0]}
	case "SETNX":
		if len(s) > 0 {
			return "0", s
		}
		return "1", state{c.Args[0]}
	case "APPEND":
		value := strings.Join(s, "") + c.Args[0]
		return strconv.Itoa(len(value)), state{value}
	}
	number, _ := strconv.Atoi(strings.Join(s, ""))
	by, _ := strconv.Atoi(c.Args[0])
	value := strconv.Itoa(number + by)
	return value, state{value}
}

// find looks for the part of a field or member; the place where it belongs if it is not there.
func find(s state, name string) (int, string, bool) {
	at := sort.Search(len(s), func(i int) bool { return s[i] >= name+between })
	if at < len(s) && strings.HasPrefix(s[at], name+between) {
		return at, s[at][len(name)+len(between):], true
	}
	return at, "", false
}

func put(s state, name, value string) state {
	at, _, there := find(s, name)
	rest := s[at:]
	if there {
		rest = s[at+1:]
	}
	out := append(state{}, s[:at]...)
	return append(append(out, name+between+value), rest...)
}

func without(s state, at int) state {
	return append(append(state{}, s[:at]...), s[at+1:]...)
}

func applyHash(s state, c Command) (string, state) {
	if c.Name == "HLEN" {
		return strconv.Itoa(len(s)), s
	}
	if c.Name == "HGETALL" {
		return listed(s), s
	}
	at, value, there := find(s, c.Args[0])
	switch c.Name {
	case "HSET":
		return count(!there), put(s, c.Args[0], c.Args[1])
	case "HINCRBY":
		number, _ := strconv.Atoi(value)
		by, _ := strconv.Atoi(c.Args[1])
		sum := strconv.Itoa(number + by)
		return sum, put(s, c.Args[0], sum)
	case "HDEL":
		if there {
			s = without(s, at)
		}
		return count(there), s
	}
	if !there {
		return absent, s
	}
	return value, s
}

func listed(s state) string {
	return "[" + strings.ReplaceAll(strings.Join(s, " "), between, " ") + "]"
}

func applyList(s state, c Command) (string, state) {
	switch c.Name {
	case "LLEN":
		return strconv.Itoa(len(s)), s
	case "LRANGE":
		return listed(s), s
	case "RPUSH":
		s = append(append(state{}, s...), c.Args...)
		return strconv.Itoa(len(s)), s
	case "LPUSH":
		s = append(state{c.Args[0]}, s...)
		return strconv.Itoa(len(s)), s
	}
	if len(s) == 0 {
		return absent, s
	}
	at := 0
	if c.Name == "RPOP" {
		at = len(s) - 1
	}
	return s[at], without(s, at)
}

func applySet(s state, c Command) (string, state) {
	switch c.Name {
	case "SCARD":
		return strconv.Itoa(len(s)), s
	case "SMEMBERS":
		return listed(s), s
	}
	at, _, there := find(s, c.Args[0])
	switch {
	case c.Name == "SADD" && !there:
		return "1", put(s, c.Args[0], "")
	case c.Name == "SREM" && there:
		return "1", without(s, at)
	case c.Name == "SISMEMBER":
		return count(there), s
	}
	return "0", s
}

func applySortedSet(s state, c Command) (string, state) {
	if c.Name == "ZRANGE" {
		return listed(byScore(s)), s
	}
	if c.Name == "ZPOPMIN" {
		if len(s) == 0 {
			return "[]", s
		}
		least := byScore(s)[0]
		at, _, _ := find(s, strings.SplitN(least, between, 2)[0])
		return listed(state{least}), without(s, at)
	}
	name := c.Args[len(c.Args)-1]
	at, value, there := find(s, name)
	switch c.Name {
	case "ZADD":
		return count(!there), put(s, name, c.Args[0])
	case "ZINCRBY":
		score, _ := strconv.Atoi(value)
		by, _ := strconv.Atoi(c.Args[0])
		sum := strconv.Itoa(score + by)
		return sum, put(s, name, sum)
	case "ZREM":
		if there {
			s = without(s, at)
		}
		return count(there), s
	}
	if !there {
		return absent, s
	}
	return value, s
}

func byScore(s state) state {
	out := append(state{}, s...)
	score := func(part string) int {
		number, _ := strconv.Atoi(part[strings.Index(part, between)+1:])
		return number
	}
	sort.SliceStable(out, func(i, j int) bool { return score(out[i]) < score(out[j]) })
	return out
}

// keyModel is one key for Porcupine. A command without a reply may have had any.
func keyModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, operation := range history {
				key := operation.Input.(Command).Key
				byKey[key] = append(byKey[key], operation)
			}
			var parts [][]porcupine.Operation
			for _, part := range byKey {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() interface{} { return state(nil) },
		Step: func(before, input, output interface{}) (bool, interface{}) {
			expected, after := apply(before.(state), input.(Command))
			reply := output.(Reply)
			return reply.Unknown || reply.Text == expected, after
		},
		Equal: func(one, other interface{}) bool {
			return strings.Join(one.(state), "\x00") == strings.Join(other.(state), "\x00") &&
				len(one.(state)) == len(other.(state))
		},
		DescribeOperation: func(input, output interface{}) string {
			return fmt.Sprintf("%v → %v", input, output)
		},
	}
}
