// SPDX-License-Identifier: GPL-2.0-or-later
package main

import (
	"fmt"
	"net/http"
	"os"
	"sync"
)

var (
	store sync.Mutex
	total int
)

//go:noinline
func compactStore(cnt int) {
	for i := 0; i < cnt; i++ {
		total = (total*31 + i) % 1000003
	}
}

func handle(cnt int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		store.Lock()
		compactStore(cnt)
		store.Unlock()
		fmt.Fprintln(w, "ok")
	}
}

func main() {
	http.HandleFunc("/fast", handle(10))
	http.HandleFunc("/slow", handle(5000000))
	panic(http.ListenAndServe("127.0.0.1:"+os.Args[1], nil))
}
