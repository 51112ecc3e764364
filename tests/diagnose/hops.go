// SPDX-License-Identifier: GPL-2.0-or-later
// As hops.c, in Go: a pool of two that is filled by calls of an upstream, a lock whose owner waits for a disk.
package main

import (
	"bufio"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

type upstream struct {
	conn  net.Conn
	lines *bufio.Reader
}

var (
	plant string
	pool  = make(chan upstream, 2)
	lock  sync.Mutex
	total int
)

//go:noinline
func askUpstream(line string) {
	session := <-pool
	session.conn.Write([]byte(line))
	session.lines.ReadString('\n')
	pool <- session
}

//go:noinline
func flushLedger(file *os.File, rows []byte) {
	for begin := time.Now(); time.Since(begin) < 16*time.Millisecond; {
		file.WriteAt(rows, 0)
		file.Sync()
	}
}

func keepLedger() {
	file, err := os.CreateTemp("/var/tmp", "whylate-hops-")
	if err != nil {
		panic(err)
	}
	os.Remove(file.Name())
	rows := make([]byte, 1<<20)
	for {
		time.Sleep(180 * time.Millisecond)
		if isOff() {
			continue
		}
		lock.Lock()
		flushLedger(file, rows)
		lock.Unlock()
	}
}

func serve(line string) {
	if plant == "hp-go-pool" {
		askUpstream(line)
		return
	}
	lock.Lock()
	total++
	lock.Unlock()
}

func main() {
	plant = os.Args[1]
	watchSwitch()
	port, _ := strconv.Atoi(os.Args[2])
	if plant == "hp-go-pool" {
		for i := 0; i < 2; i++ {
			conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
			for err != nil {
				time.Sleep(20 * time.Millisecond)
				conn, err = net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port+1))
			}
			pool <- upstream{conn, bufio.NewReader(conn)}
		}
	} else {
		go keepLedger()
	}
	serveLines(os.Args[2], serve)
}
