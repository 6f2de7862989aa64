// The server's command table, as `crates/engine/examples/commands.rs` prints it, and what becomes of
// each row: drawn from its usage line, drawn from another one, or left out by name.
package main

import (
	"bufio"
	"fmt"
	"os/exec"
	"sort"
	"strings"
)

// leftOut names every command that no history contains, each with its reason. A command of the table
// that is neither drawn nor named here fails the suite, and so does a name that the table lacks.
var leftOut = map[string]string{
	"RANDOMKEY":       "answers about the whole keyspace, and histories are judged by groups of keys",
	"SCAN":            "walks the whole keyspace, and promises no atomic answer",
	"DBSIZE":          "answers about the whole keyspace",
	"FLUSHDB":         "changes every group at once",
	"FLUSHALL":        "changes every group at once",
	"SWAPDB":          "changes every group at once",
	"MOVE":            "reaches another database, and a group lies in one",
	"OBJECT ENCODING": "tells how a value came about, which the oracle's states do not hold",
	"DUMP":            "shows the encoding of a value, and a hash table's own order",
	"RESTORE":         "takes what DUMP gave: no word that can be drawn",
	"RESTORE-ASKING":  "takes what DUMP gave: no word that can be drawn",
	"OBJECT FREQ":     "tells about accesses, which no log holds",
	"OBJECT IDLETIME": "tells about accesses, which no log holds",
	"OBJECT REFCOUNT": "tells about memory, not about data",
	"OBJECT TIER":     "tells where a value lies, which no log holds",
	"PFDEBUG":         "shows the encoding of a value",
	"PFSELFTEST":      "touches no key, and takes long",
	"XACKDEL":         "no oracle knows Redis 8.2",
	"XDELEX":          "no oracle knows Redis 8.2",
}

// notInRedis names every command that no Redis 7.0 knows: histories of them have a Valkey for their oracle.
var notInRedis = map[string]bool{"DELIFEQ": true, "MSETEX": true, "HEXPIRE": true, "HPEXPIRE": true,
	"HEXPIREAT": true, "HPEXPIREAT": true, "HTTL": true, "HPTTL": true, "HEXPIRETIME": true, "HPEXPIRETIME": true,
	"HPERSIST": true, "HSETEX": true, "HGETEX": true, "HGETDEL": true}

// ofValkey are the families whose commands answer alike in Redis 7.0, in Valkey and here, to their errors.
var ofValkey = []string{"hash", "generic", "string"}

// otherInValkey names the commands of those families that Valkey refuses in other cases.
var otherInValkey = map[string]bool{
	"GETEX": true, // it looks at the time before it looks for the key
}

// instead holds usage lines that are drawn in place of the table's, where a free draw would mostly be
// refused or its answer would depend on what no model knows.
var instead = map[string][]string{
	// A cursor's walk is one answer only if one call makes all of it.
	"HSCAN": {"HSCAN key 0 [MATCH pattern] COUNT 1000"},
	"SSCAN": {"SSCAN key 0 [MATCH pattern] COUNT 1000"},
	"ZSCAN": {"ZSCAN key 0 [MATCH pattern] COUNT 1000"},
	// Who waits for several keys is served by the first that is filled, not by the first in line.
	"BLPOP":    {"BLPOP key timeout"},
	"BRPOP":    {"BRPOP key timeout"},
	"BZPOPMIN": {"BZPOPMIN key timeout"},
	"BZPOPMAX": {"BZPOPMAX key timeout"},
	"BLMPOP":   {"BLMPOP timeout 1 key <LEFT | RIGHT> [COUNT count]"},
	"BZMPOP":   {"BZMPOP timeout 1 key <MIN | MAX> [COUNT count]"},
	// A group lies in one database.
	"COPY": {"COPY source destination [REPLACE]"},
	// Elements that compare alike are in no order if they are compared by foreign strings.
	"SORT": {
		"SORT key [BY keypattern] [LIMIT offset count] [GET getpattern ...] [ASC | DESC] [STORE destination]",
		"SORT key [LIMIT offset count] [GET getpattern ...] [ASC | DESC] ALPHA [STORE destination]"},
	"SORT_RO": {
		"SORT_RO key [BY keypattern] [LIMIT offset count] [GET getpattern ...] [ASC | DESC]",
		"SORT_RO key [LIMIT offset count] [GET getpattern ...] [ASC | DESC] ALPHA"},
	// What the two ends of a range are, and which options it may have, depends on its kind.
	"ZRANGE": {
		"ZRANGE key start stop [REV] [WITHSCORES]",
		"ZRANGE key min max BYSCORE [REV] [LIMIT offset count] [WITHSCORES]",
		"ZRANGE key lexmin lexmax BYLEX [REV] [LIMIT offset count]"},
	"ZRANGESTORE": {
		"ZRANGESTORE dst src start stop [REV]",
		"ZRANGESTORE dst src min max BYSCORE [REV] [LIMIT offset count]",
		"ZRANGESTORE dst src lexmin lexmax BYLEX [REV] [LIMIT offset count]"},
	"ZLEXCOUNT":      {"ZLEXCOUNT key lexmin lexmax"},
	"ZRANGEBYLEX":    {"ZRANGEBYLEX key lexmin lexmax [LIMIT offset count]"},
	"ZREVRANGEBYLEX": {"ZREVRANGEBYLEX key lexmax lexmin [LIMIT offset count]"},
	"ZREMRANGEBYLEX": {"ZREMRANGEBYLEX key lexmin lexmax"},
	// What later releases added to them a Redis 7.0 does not know.
	"SET": {"SET key value [NX | XX] [GET] [EX seconds | PX milliseconds | EXAT unix-time-seconds | " +
		"PXAT unix-time-milliseconds | KEEPTTL]"},
	"ZRANK":    {"ZRANK key member"},
	"ZREVRANK": {"ZREVRANK key member"},
	// IDs that the server chooses are by its clock.
	"XADD":      {"XADD key [NOMKSTREAM] [<MAXLEN | MINID> few] entryid field value"},
	"XTRIM":     {"XTRIM key <MAXLEN | MINID> few"},
	"XDEL":      {"XDEL key entryid [entryid ...]"},
	"XSETID":    {"XSETID key entryid [ENTRIESADDED few] [MAXDELETEDID entryid]"},
	"XRANGE":    {"XRANGE key entryid entryid [COUNT few]"},
	"XREVRANGE": {"XREVRANGE key entryid entryid [COUNT few]"},
	// Who waits behind `$` means the end as it is when the request comes, and is served at another moment.
	"XREAD": {"XREAD [COUNT few] STREAMS key <entryid | $>", "XREAD [COUNT few] BLOCK wait STREAMS key entryid"},
	// Who waits in a group has made its consumer when the request comes, and is given entries at another moment.
	"XREADGROUP":    {"XREADGROUP GROUP group consumer [COUNT few] [NOACK] STREAMS key groupid"},
	"XGROUP CREATE": {"XGROUP CREATE key group <entryid | $> [MKSTREAM] [ENTRIESREAD few]"},
	"XGROUP SETID":  {"XGROUP SETID key group <entryid | $> [ENTRIESREAD few]"},
	"XACK":          {"XACK key group entryid [entryid ...]"},
	// How long ago something was delivered the model does not know: every entry has been idle for 0 ms.
	"XPENDING": {"XPENDING key group", "XPENDING key group [IDLE 0] - + few [consumer]"},
	"XCLAIM": {"XCLAIM key group consumer 0 entryid [entryid ...] [IDLE few | TIME unix-time-milliseconds] " +
		"[RETRYCOUNT few] [FORCE] [JUSTID] [LASTID entryid]"},
	"XAUTOCLAIM":   {"XAUTOCLAIM key group consumer 0 entryid [COUNT count] [JUSTID]"},
	"XINFO STREAM": {"XINFO STREAM key [FULL COUNT few]"},
	// Few, because whoever loses the reply to one must consider every choice.
	"SPOP": {"SPOP key", "SPOP key few"},
}

// row is one command that histories contain.
type row struct {
	family, name string
	isRead       bool
	usages       [][]part
}

// table is all rows, by family.
type table struct {
	families []string
	rows     map[string][]*row
	isRead   map[string]bool
	// hasFields says whether fields of hashes expire.
	hasFields bool
}

// readTable runs the program that prints the table and decides what becomes of each row.
func readTable(program string, isValkey bool) (*table, error) {
	words := strings.Fields(program)
	output, err := exec.Command(words[0], words[1:]...).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", program, err)
	}
	t := &table{rows: map[string][]*row{}, isRead: map[string]bool{}, hasFields: isValkey}
	seen := map[string]bool{}
	lines := bufio.NewScanner(strings.NewReader(string(output)))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 {
			return nil, fmt.Errorf("not a row of the table: %q", lines.Text())
		}
		family, usage := fields[0], fields[2]
		name := commandName(usage)
		seen[name] = true
		if leftOut[name] != "" || notInRedis[name] && !isValkey || otherInValkey[name] && isValkey {
			continue
		}
		usages := instead[name]
		if usages == nil {
			usages = []string{usage}
		}
		r := &row{family: family, name: name, isRead: fields[1] == "read"}
		for _, usage := range usages {
			r.usages = append(r.usages, parse(usage))
		}
		if t.rows[family] == nil {
			t.families = append(t.families, family)
		}
		t.rows[family] = append(t.rows[family], r)
		t.isRead[name] = r.isRead
	}
	for _, names := range []map[string]bool{names(leftOut), names(instead), notInRedis, otherInValkey} {
		for name := range names {
			if !seen[name] {
				return nil, fmt.Errorf("%s is named here and not in the command table", name)
			}
		}
	}
	t.families, t.rows[scripting] = append(t.families, scripting), scriptRows()
	return t, nil
}

// name is the name of the row that a request was drawn from: of a container's subcommand two words.
func (t *table) name(request []string) string {
	if len(request) > 1 {
		long := request[0] + " " + request[1]
		if _, is := t.isRead[long]; is {
			return long
		}
	}
	return request[0]
}

func names[V any](of map[string]V) map[string]bool {
	out := map[string]bool{}
	for name := range of {
		out[name] = true
	}
	return out
}

// commandName is a usage line's leading literal words: two for a container's subcommand.
func commandName(usage string) string {
	words := strings.Fields(usage)
	if len(words) > 1 && strings.ToUpper(words[1]) == words[1] && words[1][0] >= 'A' && words[1][0] <= 'Z' {
		return words[0] + " " + words[1]
	}
	return words[0]
}

// part is a word of a usage line, or a group: one of its alternatives, perhaps several times.
type part struct {
	word         string
	isOptional   bool
	repeats      bool
	alternatives [][]part
}

// parse reads Redis's grammar of usage lines: `[ ]` is optional, `< >` groups, `|` separates, `...`
// repeats.
func parse(usage string) []part {
	for _, bracket := range []string{"[", "]", "<", ">"} {
		usage = strings.ReplaceAll(usage, bracket, " "+bracket+" ")
	}
	words := strings.Fields(usage)
	at := 0
	alternatives, _ := parseGroup(words, &at)
	return alternatives[0]
}

func parseGroup(words []string, at *int) ([][]part, bool) {
	alternatives, repeats := [][]part{nil}, false
	for *at < len(words) {
		word := words[*at]
		*at++
		last := len(alternatives) - 1
		switch word {
		case "]", ">":
			return alternatives, repeats
		case "...":
			repeats = true
		case "|":
			alternatives = append(alternatives, nil)
		case "[", "<":
			inner, again := parseGroup(words, at)
			group := part{isOptional: word == "[", repeats: again, alternatives: inner}
			alternatives[last] = append(alternatives[last], group)
		default:
			alternatives[last] = append(alternatives[last], part{word: word})
		}
	}
	return alternatives, repeats
}

// unanswered lists the drawn commands that were never answered otherwise than by an error.
func (t *table) unanswered(answered map[string]int, families []string) []string {
	var missing []string
	for _, family := range families {
		for _, r := range t.rows[family] {
			if answered[r.name] == 0 {
				missing = append(missing, r.name)
			}
		}
	}
	sort.Strings(missing)
	return missing
}
