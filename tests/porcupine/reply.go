// Replies: read from a connection, and brought into a form in which any two that mean the same are
// the same text.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"
)

// replyTimeout is how long a living server may take to answer. Generous: the disk is shared.
const replyTimeout = 120 * time.Second

// reply is one RESP2 reply. `kind` is its first byte, or 'n' and 'N' for the two nils.
type reply struct {
	kind     byte
	text     string
	elements []reply
}

func (r reply) isError() bool { return r.kind == '-' }

// connection speaks just enough RESP2.
type connection struct {
	net.Conn
	in *bufio.Reader
	// patience is how long a reply is waited for.
	patience time.Duration
}

func dial(port int) (*connection, error) {
	socket, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), replyTimeout)
	if err != nil {
		return nil, err
	}
	return &connection{socket, bufio.NewReader(socket), replyTimeout}, nil
}

// call sends requests in one piece and reads a reply to each.
func (c *connection) call(requests ...[]string) ([]reply, error) {
	var out strings.Builder
	for _, parts := range requests {
		fmt.Fprintf(&out, "*%d\r\n", len(parts))
		for _, part := range parts {
			fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(part), part)
		}
	}
	c.SetDeadline(time.Now().Add(c.patience))
	if _, err := io.WriteString(c, out.String()); err != nil {
		return nil, err
	}
	replies := make([]reply, len(requests))
	for i := range replies {
		var err error
		if replies[i], err = c.read(); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

func (c *connection) read() (reply, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return reply{}, err
	}
	if len(line) < 3 {
		return reply{}, fmt.Errorf("not a reply: %q", line)
	}
	kind, rest := line[0], strings.TrimSuffix(line[1:], "\r\n")
	if kind == '+' || kind == '-' || kind == ':' {
		return reply{kind: kind, text: rest}, nil
	}
	length, err := strconv.Atoi(rest)
	if err != nil || (kind != '$' && kind != '*') {
		return reply{}, fmt.Errorf("not a reply: %q", line)
	}
	if length < 0 {
		return reply{kind: map[byte]byte{'$': 'n', '*': 'N'}[kind]}, nil
	}
	if kind == '$' {
		body := make([]byte, length+2)
		_, err := io.ReadFull(c.in, body)
		return reply{kind: kind, text: string(body[:length])}, err
	}
	elements := make([]reply, length)
	for i := range elements {
		if elements[i], err = c.read(); err != nil {
			return reply{}, err
		}
	}
	return reply{kind: kind, elements: elements}, nil
}

// unordered says of which commands a reply is a set of elements (1) or of pairs (2).
var unordered = map[string]int{"SMEMBERS": 1, "SUNION": 1, "SINTER": 1, "SDIFF": 1, "KEYS": 1,
	"HKEYS": 1, "HVALS": 1, "HGETALL": 2, "SSCAN": 1, "HSCAN": 2, "ZSCAN": 2,
	"GEOSEARCH": 1, "GEORADIUS": 1, "GEORADIUS_RO": 1, "GEORADIUSBYMEMBER": 1,
	"GEORADIUSBYMEMBER_RO": 1}

// timeUnits says of which commands a reply is a time, and in which unit.
var timeUnits = map[string]float64{"TTL": 1, "EXPIRETIME": 1, "PTTL": 1000, "PEXPIRETIME": 1000,
	"HTTL": 1, "HEXPIRETIME": 1, "HPTTL": 1000, "HPEXPIRETIME": 1000}

// canonical is the reply to a request as text.
func (r reply) canonical(request []string, began int64) string {
	name := strings.ToUpper(request[0])
	if name == "EVAL" || name == "FCALL" {
		return canonicalScript(r, request, began)
	}
	if streamReplies[name] {
		return r.withoutTimes().String()
	}
	if timeUnits[name] > 0 && r.kind == '*' {
		// A time for each field.
		var parts []string
		for _, element := range r.elements {
			parts = append(parts, element.canonical(request, began))
		}
		return strings.Join(parts, " ")
	}
	if unit := timeUnits[name]; unit > 0 && r.kind == ':' && r.text[0] != '-' {
		at, _ := strconv.ParseFloat(r.text, 64)
		if strings.Contains(name, "TIME") {
			at -= float64(began) * unit
		}
		return fmt.Sprintf("in %.0f steps", math.Round(at/unit/timeStepSeconds))
	}
	if group := unordered[name]; group > 0 && r.kind == '*' {
		if strings.HasSuffix(name, "SCAN") && len(r.elements) == 2 {
			return r.elements[0].String() + " " + r.elements[1].sorted(group)
		}
		return r.sorted(group)
	}
	return r.String()
}

func (r reply) sorted(group int) string {
	var parts []string
	for i := 0; i+group <= len(r.elements); i += group {
		part := ""
		for _, element := range r.elements[i : i+group] {
			part += " " + element.String()
		}
		parts = append(parts, part)
	}
	sort.Strings(parts)
	return "{" + strings.Join(parts, ",") + " }"
}

func (r reply) String() string {
	switch r.kind {
	case 'n':
		return "nil"
	case 'N':
		return "no array"
	case '$':
		return strconv.Quote(r.text)
	case '*':
		var parts []string
		for _, element := range r.elements {
			parts = append(parts, element.String())
		}
		return "[" + strings.Join(parts, " ") + "]"
	}
	return string(r.kind) + r.text
}
