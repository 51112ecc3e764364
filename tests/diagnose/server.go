// SPDX-License-Identifier: GPL-2.0-or-later
// As server.c, in Go.
package main

import (
	"os"
	"runtime"
	"sync"
	"time"
)

var (
	plant   string
	store   sync.Mutex
	jobs    = make(chan job)
	sink    uint64
	per     int
	slowFor = 16
)

type job struct {
	slow bool
	done chan bool
}

//go:noinline
func mixKey(x uint64) uint64 {
	for i := 0; i < 40; i++ {
		x = (x ^ x>>29) * 0xbf58476d1ce4e5b9
	}
	return x
}

//go:noinline
func rebuildCache(ms int) {
	for i := 0; i < ms*per; i++ {
		sink = mixKey(sink + uint64(i))
	}
}

//go:noinline
func compactStore(ms int) {
	for i := 0; i < ms*per; i++ {
		sink = mixKey(sink + uint64(i))
	}
}

//go:noinline
func encodeJob(ms int) {
	for i := 0; i < ms*per; i++ {
		sink = mixKey(sink + uint64(i))
	}
}

//go:noinline
func indexAll(ms int) {
	for i := 0; i < ms*per; i++ {
		sink = mixKey(sink + uint64(i))
	}
}

func calibrate() {
	per = 1
	least := time.Hour
	for i := 0; i < 20; i++ {
		begin := time.Now()
		rebuildCache(2000)
		if took := time.Since(begin); took < least {
			least = took
		}
	}
	per = int(2000 * time.Millisecond / least)
}

// A cache that does not answer in time.
//
//go:noinline
func askCache(ms int) {
	select {
	case j := <-jobs:
		j.done <- true
	case <-time.After(time.Duration(ms) * time.Millisecond):
	}
}

// A pause with a lock taken.
//
//go:noinline
func refreshToken(ms int) {
	store.Lock()
	time.Sleep(time.Duration(ms) * time.Millisecond)
	store.Unlock()
}

func serve(slow bool) {
	slow = slow && !isOff()
	switch plant {
	case "go-own":
		if slow {
			rebuildCache(slowFor)
		}
	case "go-mutex":
		store.Lock()
		if slow {
			compactStore(slowFor)
		}
		store.Unlock()
	case "go-lock-sleep":
		store.Lock()
		sink++
		store.Unlock()
	case "go-chan":
		done := make(chan bool)
		jobs <- job{slow, done}
		<-done
	case "go-timeout":
		if slow {
			askCache(slowFor)
		}
	case "go-sleep":
		if slow {
			time.Sleep(time.Duration(slowFor) * time.Millisecond)
		}
	}
}

func main() {
	plant = os.Args[1]
	watchSwitch()
	calibrate()
	if plant == "go-hog" {
		runtime.GOMAXPROCS(1)
		go func() {
			for {
				time.Sleep(180 * time.Millisecond)
				if !isOff() {
					indexAll(2 * slowFor)
				}
			}
		}()
	}
	if plant == "go-lock-sleep" {
		go func() {
			for {
				time.Sleep(180 * time.Millisecond)
				if !isOff() {
					refreshToken(slowFor)
				}
			}
		}()
	}
	if plant == "go-chan" {
		go func() {
			for j := range jobs {
				if j.slow {
					encodeJob(slowFor)
				}
				j.done <- true
			}
		}()
	}
	serveLines(os.Args[2], func(line string) { serve(line[0] == 's') })
}
