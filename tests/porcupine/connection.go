package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"sort"
	"strconv"
	"strings"
	"time"
)

// connection speaks just enough RESP2: one request, one reply as text.
type connection struct {
	net.Conn
	in *bufio.Reader
}

func dial(port int) (*connection, error) {
	socket, err := net.DialTimeout("tcp", fmt.Sprintf("127.0.0.1:%d", port), time.Second)
	if err != nil {
		return nil, err
	}
	return &connection{socket, bufio.NewReader(socket)}, nil
}

// refusal is an error reply: the command had no effect.
type refusal string

func (r refusal) Error() string { return string(r) }

func (c *connection) call(parts ...string) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "*%d\r\n", len(parts))
	for _, part := range parts {
		fmt.Fprintf(&out, "$%d\r\n%s\r\n", len(part), part)
	}
	c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, out.String()); err != nil {
		return "", err
	}
	elements, text, err := c.read()
	if err != nil || elements == nil {
		return text, err
	}
	// What has no order in Redis is compared in the order of the model.
	switch strings.ToUpper(parts[0]) {
	case "SMEMBERS":
		sort.Strings(elements)
		for i := range elements {
			elements[i] += " "
		}
	case "HGETALL":
		var pairs []string
		for i := 0; i+1 < len(elements); i += 2 {
			pairs = append(pairs, elements[i]+between+elements[i+1])
		}
		sort.Strings(pairs)
		return listed(pairs), nil
	}
	return "[" + strings.Join(elements, " ") + "]", nil
}

// read returns an array's elements, or the text of any other reply.
func (c *connection) read() ([]string, string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return nil, "", err
	}
	rest := strings.TrimSuffix(line[1:], "\r\n")
	switch line[0] {
	case '+', ':':
		return nil, rest, nil
	case '-':
		return nil, "", refusal(rest)
	}
	length, err := strconv.Atoi(rest)
	if err != nil {
		return nil, "", err
	}
	if length < 0 {
		return nil, absent, nil
	}
	if line[0] == '$' {
		body := make([]byte, length+2)
		_, err := io.ReadFull(c.in, body)
		return nil, string(body[:length]), err
	}
	elements := []string{}
	for i := 0; i < length; i++ {
		_, text, err := c.read()
		if err != nil {
			return nil, "", err
		}
		elements = append(elements, text)
	}
	return elements, "", nil
}
