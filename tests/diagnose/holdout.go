// SPDX-License-Identifier: GPL-2.0-or-later
// As holdout.c, in Go: a collection that a request asks for, requests that share one call, a limiter.
package main

import (
	"bufio"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"time"
)

type item struct {
	next, other *item
	names       []*string
}

type flight struct {
	done chan bool
}

var (
	plant   string
	behind  string
	catalog []*item
	lock    sync.Mutex
	current *flight
	tokens  = make(chan bool, 2)
	sink    int
)

//go:noinline
func fillCatalog(cnt int) {
	for i := 0; i < cnt; i++ {
		name := strconv.Itoa(i)
		entry := &item{names: []*string{&name}}
		if i > 0 {
			entry.next, entry.other = catalog[i-1], catalog[i/2]
		}
		catalog = append(catalog, entry)
	}
}

//go:noinline
func dropCaches() {
	runtime.GC()
	sink++
}

//go:noinline
func askTariffs(slow bool) {
	upstream, err := net.Dial("tcp", behind)
	if err != nil {
		panic(err)
	}
	line := "get\n"
	if slow {
		line = "slow\n"
	}
	upstream.Write([]byte(line))
	bufio.NewReader(upstream).ReadString('\n')
	upstream.Close()
}

// Requests that come while the tariffs are asked for wait for that answer.
//
//go:noinline
func loadTariffs(slow bool) {
	lock.Lock()
	if shared := current; shared != nil {
		lock.Unlock()
		<-shared.done
		return
	}
	if !slow {
		lock.Unlock()
		return
	}
	own := &flight{make(chan bool)}
	current = own
	lock.Unlock()
	askTariffs(true)
	lock.Lock()
	current = nil
	lock.Unlock()
	close(own.done)
}

//go:noinline
func takeTokens(cnt int) {
	for i := 0; i < cnt; i++ {
		<-tokens
	}
}

func serve(slow bool) {
	slow = slow && !isOff()
	switch plant {
	case "ho-go-gc":
		if slow {
			dropCaches()
		}
	case "ho-go-flight":
		loadTariffs(slow)
	case "ho-go-limiter":
		if slow {
			takeTokens(6)
		}
	}
}

func main() {
	plant = os.Args[1]
	watchSwitch()
	port, _ := strconv.Atoi(os.Args[2])
	behind = "127.0.0.1:" + strconv.Itoa(port+1)
	if plant == "ho-go-gc" {
		fillCatalog(300000)
	}
	if plant == "ho-go-limiter" {
		go func() {
			for range time.Tick(4 * time.Millisecond) {
				select {
				case tokens <- true:
				default:
				}
			}
		}()
	}
	serveLines(os.Args[2], func(line string) { serve(line[0] == 's') })
}
