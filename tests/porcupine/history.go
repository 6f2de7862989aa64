package main

import (
	"fmt"
	"math"
	"math/rand"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"
)

// history is what all clients saw, in one clock.
type history struct {
	sync.Mutex
	began      time.Time
	operations []porcupine.Operation
	refused    []string
	clients    int32
}

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

// add keeps one operation. Without a reply it may still happen at any later time, so it never ends;
// a read without a reply says nothing and is left out.
func (h *history) add(client int, c Command, call int64, reply string, err error) {
	ended := h.now()
	output := Reply{Text: reply}
	if text, is := err.(refusal); is {
		h.Lock()
		defer h.Unlock()
		h.refused = append(h.refused, fmt.Sprintf("%v: %s", c, text))
		return
	}
	if err != nil {
		if reads[c.Name] {
			return
		}
		output, ended = Reply{Unknown: true}, math.MaxInt64
	}
	h.Lock()
	defer h.Unlock()
	h.operations = append(h.operations, porcupine.Operation{
		ClientId: client, Input: c, Call: call, Output: output, Return: ended})
}

var reads = map[string]bool{"GET": true, "EXISTS": true, "HGET": true, "HLEN": true,
	"HGETALL": true, "LRANGE": true, "LLEN": true, "SISMEMBER": true, "SMEMBERS": true,
	"SCARD": true, "ZSCORE": true, "ZRANGE": true}

// commands of each family as they are drawn: `v` a unique value, `n` a number, `m` one of few members.
var commands = map[string][]string{
	"string": {"GET", "GET", "SET v", "SET v", "DEL", "EXISTS"},
	"number": {"GET", "GETDEL", "GETSET n", "SETNX n", "INCRBY n", "INCRBY n", "DEL"},
	"append": {"GET", "APPEND v", "APPEND v", "GETSET v", "GETDEL", "SET v"},
	"hash": {"HGET m", "HGETALL", "HLEN", "HSET m n", "HSET m n", "HDEL m", "HINCRBY m n", "DEL",
		"EXISTS"},
	"list": {"LRANGE 0 -1", "LLEN", "LPUSH v", "RPUSH v", "LPOP", "RPOP", "DEL"},
	"set":  {"SMEMBERS", "SISMEMBER m", "SCARD", "SADD m", "SADD m", "SREM m", "DEL"},
	"zset": {"ZRANGE 0 -1 WITHSCORES", "ZSCORE m", "ZADD n m", "ZADD n m", "ZINCRBY n m", "ZREM m",
		"ZPOPMIN", "DEL"},
}

var families = []string{"string", "number", "append", "hash", "list", "set", "zset"}

var serial int64

// draw makes one command on one of few keys of a family, so that clients meet on them.
func draw(random *rand.Rand, chosen []string, keys, generation int) Command {
	family := chosen[random.Intn(len(chosen))]
	// Keys change with the generation: it bounds how long a history of one key grows.
	key := fmt.Sprintf("%s:%d:%d", family, generation, random.Intn(keys))
	choices := commands[family]
	words := split(choices[random.Intn(len(choices))])
	for i, word := range words[1:] {
		switch word {
		case "v":
			words[i+1] = fmt.Sprintf("v%d.", atomic.AddInt64(&serial, 1))
		case "n":
			words[i+1] = strconv.Itoa(random.Intn(9) - 4)
		case "m":
			words[i+1] = fmt.Sprintf("m%d", random.Intn(3))
		}
	}
	return Command{Key: key, Name: words[0], Args: words[1:]}
}

func split(line string) []string {
	var words []string
	word := ""
	for _, letter := range line + " " {
		if letter != ' ' {
			word += string(letter)
		} else if word != "" {
			words, word = append(words, word), ""
		}
	}
	return words
}

// client sends commands until told to stop. After a broken connection it is another client, because
// its last operation may still be going on.
func (h *history) client(port int, chosen []string, keys int, generation *int32, stop *int32, seed int64) {
	random := rand.New(rand.NewSource(seed))
	for atomic.LoadInt32(stop) == 0 {
		id := int(atomic.AddInt32(&h.clients, 1))
		link, err := dial(port)
		if err != nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		for err == nil && atomic.LoadInt32(stop) == 0 {
			c := draw(random, chosen, keys, int(atomic.LoadInt32(generation)))
			call := h.now()
			var reply string
			reply, err = link.call(append([]string{c.Name, c.Key}, c.Args...)...)
			h.add(id, c, call, reply, err)
			if _, is := err.(refusal); is {
				err = nil
				time.Sleep(time.Millisecond) // LOADING, or a command that the server lacks
			}
		}
		link.Close()
	}
}
