// SPDX-License-Identifier: GPL-2.0-or-later
// As oncall.c, in Go: a channel whose consumer closes a segment now and then, a view that requests wait for.
package main

import (
	"crypto/sha256"
	"os"
	"sort"
	"sync"
	"time"
)

const period = 180 * time.Millisecond

var (
	plant   string
	audit   = make(chan string)
	segment = make([]byte, 4<<20)
	lock    sync.Mutex
	rebuilt = sync.NewCond(&lock)
	stale   bool
	view    []int
	sink    int
)

//go:noinline
func rollSegment() {
	for begin := time.Now(); time.Since(begin) < 16*time.Millisecond; {
		sum := sha256.Sum256(segment[:1<<18])
		copy(segment, sum[:])
	}
}

func writeAudit() {
	next := time.Now().Add(period)
	for line := range audit {
		sink += len(line)
		if time.Now().After(next) && !isOff() {
			rollSegment()
			next = time.Now().Add(period)
		}
	}
}

//go:noinline
func rebuildView() {
	rows := make([]int, 120000)
	for i := range rows {
		rows[i] = i * 7919 % 120011
	}
	sort.Ints(rows)
	view = rows
}

func refreshView() {
	for range time.Tick(period) {
		if isOff() {
			continue
		}
		lock.Lock()
		stale = true
		lock.Unlock()
		rebuildView()
		lock.Lock()
		stale = false
		rebuilt.Broadcast()
		lock.Unlock()
	}
}

//go:noinline
func awaitView() {
	lock.Lock()
	for stale {
		rebuilt.Wait()
	}
	lock.Unlock()
}

func serve(line string) {
	if plant == "oc-go-audit" {
		audit <- line
	} else {
		awaitView()
	}
}

func main() {
	plant = os.Args[1]
	watchSwitch()
	if plant == "oc-go-audit" {
		go writeAudit()
	} else {
		go refreshView()
	}
	serveLines(os.Args[2], serve)
}
