// Scripts and functions of histories: a few that make the requests in their arguments, and a few that read
// and then write. What they change is one unit, and a function outlives every crash.
package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// scripting is the family of rows that no table prints: the engine's has no scripts.
const scripting = "scripting"

// scripts are the bodies of scripts and of functions: what they do with the keys and arguments they are given.
// Arguments are requests, each as JSON.
var scripts = map[string]string{
	// Makes every request, and answers what each answered. What fails does not keep the others from it.
	"all": `local out = {}
for i, one in ipairs(ARGV) do out[i] = redis.pcall(unpack(cjson.decode(one))) end
return out`,
	// Makes the second request if the first found something. What the first changed stands if the second fails.
	"both": `local found = redis.call(unpack(cjson.decode(ARGV[1])))
if found then redis.call(unpack(cjson.decode(ARGV[2]))) end
return found`,
	// Counts by reading and writing, as those did who knew no INCR.
	"count": `local n = (redis.call('GET', KEYS[1]) or 0) + 1
redis.call('SET', KEYS[1], n)
return n`,
	// Moves what comes first, and ends amid it if the last key holds no stream.
	"move": `local one = redis.call('LPOP', KEYS[1]) or redis.call('SPOP', KEYS[1], 0)
if type(one) == 'string' then
  redis.call('RPUSH', KEYS[2], one)
  redis.call('XADD', KEYS[3], 'MAXLEN', 5, '1-*', 'moved', one)
end
return one`,
}

// scriptNames are those of `scripts`, in an order of their own.
var scriptNames = []string{"all", "both", "count", "move"}

// library is the code of the functions, each of which does as the script of its name.
func library() string {
	code := "#!lua name=histories\n"
	for _, name := range scriptNames {
		body := strings.NewReplacer("KEYS", "keys", "ARGV", "args").Replace(scripts[name])
		code += fmt.Sprintf("redis.register_function('%s', function(keys, args)\n%s\nend)\n", name, body)
	}
	return code
}

// scriptRows are the commands that run scripts and functions.
func scriptRows() []*row {
	return []*row{{family: scripting, name: "EVAL"}, {family: scripting, name: "FCALL"}}
}

// run draws a request that runs a script or a function.
func (c *client) run(r *row) []string {
	name := scriptNames[c.Intn(len(scriptNames))]
	body := name
	if r.name == "EVAL" {
		body = scripts[name]
	}
	keys := groupKeys(c.group)
	c.Shuffle(len(keys), func(i, k int) { keys[i], keys[k] = keys[k], keys[i] })
	out := append([]string{r.name, body, fmt.Sprint(len(keys))}, keys...)
	count := map[string]int{"all": 1 + c.Intn(3), "both": 2}[name]
	for ; count > 0; count-- {
		text, err := json.Marshal(c.within())
		if err != nil {
			panic(err) // words are texts
		}
		out = append(out, string(text))
	}
	return out
}

// within draws a request that a script makes.
func (c *client) within() []string {
	for {
		r := c.rowOf(c.values())
		if r.family == scripting || choosing[r.name] != nil {
			continue
		}
		if request := prepared(c.command(r)); len(request) == 1 {
			return request[0]
		}
	}
}

// inside lists the requests that a script or function is given.
func inside(request []string) [][]string {
	var requests [][]string
	for _, text := range request[3+keysPerGroup:] {
		var one []string
		if err := json.Unmarshal([]byte(text), &one); err != nil {
			panic(err) // `run` made it
		}
		requests = append(requests, one)
	}
	return requests
}

// canonicalScript is the reply of a script: each answer within it as that to its own request.
func canonicalScript(r reply, request []string, began int64) string {
	requests := inside(request)
	if r.kind == '*' && (request[1] == "all" || request[1] == scripts["all"]) {
		var parts []string
		for i, element := range r.elements {
			parts = append(parts, element.canonical(requests[i], began))
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	if len(requests) > 0 && !r.isError() {
		return r.canonical(requests[0], began)
	}
	return r.String()
}
