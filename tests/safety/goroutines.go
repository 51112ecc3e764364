// SPDX-License-Identifier: GPL-2.0-or-later

// Goroutines whose stacks grow, and so move, in the midst of chains of functions; panics that are recovered from; the
// garbage collector walking all stacks.  Checks itself as safety.h describes.
package main

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

var (
	over   atomic.Bool
	checks atomic.Uint64
	wrongs atomic.Uint64
)

func check(held bool) {
	checks.Add(1)
	if !held {
		wrongs.Add(1)
	}
}

func mix(x uint64) uint64 {
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	x ^= x >> 29
	return x
}

//go:noinline
func down(x uint64, depth int) uint64 {
	var kept [16]uint64

	for i := range kept {
		kept[i] = x + uint64(i)
	}
	if depth == 0 {
		return kept[3]
	}
	sum := down(x+1, depth-1)
	return sum + kept[depth%16] - uint64(depth%16)
}

func expectedDown(x uint64, depth int) uint64 {
	sum := x + uint64(depth) + 3
	for i := 0; i < depth; i++ {
		sum += x + uint64(i)
	}
	return sum
}

//go:noinline
func sinks(x uint64, depth int) uint64 {
	if depth == 0 {
		panic(x)
	}
	return sinks(x+1, depth-1) + 1
}

//go:noinline
func recovers(x uint64, depth int) (result uint64) {
	defer func() {
		result, _ = recover().(uint64)
	}()
	return sinks(x, depth)
}

func worker(seed uint64, group *sync.WaitGroup) {
	defer group.Done()
	for i := seed; !over.Load(); i += 16 {
		x := mix(i) >> 8
		depth := int(x % 500)
		done := make(chan uint64)

		// A new goroutine begins with the smallest stack.
		go func() { done <- down(x, depth) }()
		check(<-done == expectedDown(x, depth))
		check(recovers(x, depth%20) == x+uint64(depth%20))
		time.Sleep(2 * time.Millisecond)
	}
}

func main() {
	signals := make(chan os.Signal, 1)
	var group sync.WaitGroup

	signal.Notify(signals, syscall.SIGTERM)
	for seed := uint64(1); seed <= 8; seed++ {
		group.Add(1)
		go worker(seed, &group)
	}
	fmt.Println("ready")
	limit := time.After(300 * time.Second)
	for !over.Load() {
		select {
		case <-signals:
			over.Store(true)
		case <-limit:
			over.Store(true)
		case <-time.After(20 * time.Millisecond):
			runtime.GC()
		}
	}
	group.Wait()
	if wrongs.Load() > 0 || checks.Load() == 0 {
		fmt.Printf("verdict wrong %d of %d checks\n", wrongs.Load(), checks.Load())
		os.Exit(1)
	}
	fmt.Printf("verdict ok %d checks\n", checks.Load())
}
