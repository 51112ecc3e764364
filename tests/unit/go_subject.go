// SPDX-License-Identifier: GPL-2.0-or-later
// What test_go_runtime.c reads: some goroutines that wait, until standard input ends.
package main

import (
	"io"
	"os"
	"time"
)

func waiter(never chan bool) {
	<-never
}

func main() {
	never := make(chan bool)
	for i := 0; i < 20; i++ {
		go waiter(never)
	}
	time.Sleep(20 * time.Millisecond)
	os.Stdout.WriteString("ready\n")
	io.Copy(io.Discard, os.Stdin)
}
