// SPDX-License-Identifier: GPL-2.0-or-later
// A server that passes messages on, as a NATS server does, and its clients: server PORT | responder PORT MS |
// client PORT SECONDS.  The server says on stderr where it listens: at a free port where PORT is 0.  The responder takes
// so long over each request.  The client asks it through the server, publishes what it has subscribed to, and publishes
// three messages at a time, and logs all by its own clock: "request COUNT MEAN_NS", "publish COUNT MEAN_NS",
// "batch COUNT MEAN_NS".
package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type subscription struct {
	conn net.Conn
	sid  string
}

var (
	guard         sync.Mutex
	subscriptions = map[string]subscription{}
)

func deliver(words []string, payload []byte) {
	guard.Lock()
	to, wanted := subscriptions[words[1]]
	guard.Unlock()
	if !wanted {
		return
	}
	line := "MSG " + words[1] + " " + to.sid
	if len(words) == 4 {
		line += " " + words[2]
	}
	fmt.Fprintf(to.conn, "%s %d\r\n%s\r\n", line, len(payload), payload)
}

func serveClient(conn net.Conn) {
	lines := bufio.NewReader(conn)
	io.WriteString(conn, "INFO {\"server_id\":\"test\"}\r\n")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		words := strings.Fields(line)
		switch words[0] {
		case "SUB":
			guard.Lock()
			subscriptions[words[1]] = subscription{conn, words[2]}
			guard.Unlock()
		case "PUB":
			size, _ := strconv.Atoi(words[len(words)-1])
			payload := make([]byte, size+2)
			io.ReadFull(lines, payload)
			deliver(words, payload[:size])
		case "PING":
			io.WriteString(conn, "PONG\r\n")
		}
	}
}

func serve(port string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "port %d\n", listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go serveClient(conn)
	}
}

// Connected, and subscribed to that.
func connect(port, subject string) (net.Conn, *bufio.Reader) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	lines := bufio.NewReader(conn)
	lines.ReadString('\n')
	fmt.Fprintf(conn, "CONNECT {\"verbose\":false}\r\nSUB %s 1\r\nPING\r\n", subject)
	lines.ReadString('\n')
	return conn, lines
}

// The words of a message's line; what it brings is of no use.
func message(lines *bufio.Reader) []string {
	line, err := lines.ReadString('\n')
	if err != nil {
		os.Exit(0)
	}
	words := strings.Fields(line)
	size, _ := strconv.Atoi(words[len(words)-1])
	lines.Discard(size + 2)
	return words
}

func respond(port string, ms int) {
	conn, lines := connect(port, "price")
	fmt.Fprintln(os.Stderr, "ready")
	for {
		words := message(lines)
		time.Sleep(time.Duration(ms) * time.Millisecond)
		fmt.Fprintf(conn, "PUB %s 2\r\nok\r\n", words[3])
	}
}

// Sends that and takes the messages that come of it, until the time is over.
func ask(port, subject, text string, messages int, until time.Time) (cnt, sum int64) {
	conn, lines := connect(port, subject)
	for time.Now().Before(until) {
		begin := time.Now()
		io.WriteString(conn, text)
		for i := 0; i < messages; i++ {
			message(lines)
		}
		sum += time.Since(begin).Nanoseconds()
		cnt++
		time.Sleep(3 * time.Millisecond)
	}
	return
}

func client(port string, seconds float64) {
	var all sync.WaitGroup
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	run := func(name, subject, text string, messages int) {
		cnt, sum := ask(port, subject, text, messages, until)
		fmt.Println(name, cnt, sum/cnt)
		all.Done()
	}
	all.Add(3)
	go run("request", "_INBOX.1", "PUB price _INBOX.1 5\r\napple\r\n", 1)
	go run("publish", "orders.new", "PUB orders.new 5\r\napple\r\n", 1)
	go run("batch", "orders.batch", strings.Repeat("PUB orders.batch 12\r\nPUB pear 3\r\n\r\n", 3), 3)
	all.Wait()
}

func main() {
	switch os.Args[1] {
	case "server":
		serve(os.Args[2])
	case "responder":
		ms, _ := strconv.Atoi(os.Args[3])
		respond(os.Args[2], ms)
	case "client":
		seconds, _ := strconv.ParseFloat(os.Args[3], 64)
		client(os.Args[2], seconds)
	}
}
