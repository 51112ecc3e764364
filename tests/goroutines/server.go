// SPDX-License-Identifier: GPL-2.0-or-later
// A net/http server whose requests wait in a goroutine's ways, and its clients: server PORT [UPSTREAM_PORT] |
// upstream PORT | client PORT SECONDS [PATH…] | load PORT SECONDS.  Servers say on stderr where they listen: at a free
// port where PORT is 0.  Few threads run many goroutines, so that requests change threads.  Both log by their own clocks.
package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

var (
	jobs   = make(chan chan bool)
	ledger sync.Mutex
	sink   uint64
	per    int
)

//go:noinline
func burnCycles(us int) {
	for i := 0; i < us*per; i++ {
		sink = (sink ^ sink>>29) * 0xbf58476d1ce4e5b9
	}
}

func calibrate() {
	per = 1
	least := time.Hour
	for i := 0; i < 10; i++ {
		begin := time.Now()
		burnCycles(1000000)
		if took := time.Since(begin); took < least {
			least = took
		}
	}
	per = int(1000000 * time.Microsecond / least)
}

// As the runtime prints it.
func goid() int {
	var text [64]byte
	fields := bytes.Fields(text[:runtime.Stack(text[:], false)])
	id, _ := strconv.Atoi(string(fields[1]))
	return id
}

func worker() {
	for done := range jobs {
		time.Sleep(4 * time.Millisecond)
		done <- true
	}
}

//go:noinline
func holdLedger() {
	ledger.Lock()
	burnCycles(1000)
	ledger.Unlock()
}

// A line to the upstream, a line back, on a connection of the request's own.
func askUpstream(port int) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(conn, "price\n")
	bufio.NewReader(conn).ReadString('\n')
}

func handle(kind string, upstream int) {
	switch kind {
	case "/chan":
		done := make(chan bool)
		jobs <- done
		<-done
	case "/mutex":
		holdLedger()
	case "/sleep":
		time.Sleep(5 * time.Millisecond)
	case "/upstream":
		askUpstream(upstream)
	case "/burn":
		burnCycles(1000)
	}
}

func listen(port int) net.Listener {
	listener, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		panic(err)
	}
	fmt.Fprintf(os.Stderr, "port %d\n", listener.Addr().(*net.TCPAddr).Port)
	return listener
}

func serve(port, upstream int) {
	runtime.GOMAXPROCS(2)
	calibrate()
	for i := 0; i < 4; i++ {
		go worker()
	}
	log := bufio.NewWriter(os.Stdout)
	var logging sync.Mutex
	mux := http.NewServeMux()
	mux.HandleFunc("/end", func(w http.ResponseWriter, r *http.Request) {
		logging.Lock()
		log.Flush()
		logging.Unlock()
	})
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello\n") })
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		handle(r.URL.Path, upstream)
		took := time.Since(begin)
		io.WriteString(w, "done\n")
		logging.Lock()
		fmt.Fprintf(log, "%s %d %d\n", r.URL.Path, goid(), took.Nanoseconds())
		logging.Unlock()
	})
	panic(http.Serve(listen(port), mux))
}

// Takes its time over a line.
func upstream(port int) {
	listener := listen(port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			bufio.NewReader(conn).ReadString('\n')
			time.Sleep(6 * time.Millisecond)
			io.WriteString(conn, "42\n")
			conn.Close()
		}()
	}
}

// One connection a goroutine, one request at a time; what is printed is "PATH COUNT MEAN_NS P50_NS P99_NS".
func client(port int, seconds float64, paths []string) {
	const connections = 12
	var all sync.WaitGroup
	var guard sync.Mutex
	took := map[string][]int64{}
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for i := 0; i < connections; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
			if err != nil {
				panic(err)
			}
			reader := bufio.NewReader(conn)
			for n := i; time.Now().Before(until); n++ {
				path := paths[n%len(paths)]
				begin := time.Now()
				fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: here\r\n\r\n", path)
				reply, err := http.ReadResponse(reader, nil)
				if err != nil {
					panic(err)
				}
				io.Copy(io.Discard, reply.Body)
				ns := time.Since(begin).Nanoseconds()
				guard.Lock()
				took[path] = append(took[path], ns)
				guard.Unlock()
				time.Sleep(8 * time.Millisecond)
			}
		}(i)
	}
	all.Wait()
	for path, each := range took {
		sort.Slice(each, func(a, b int) bool { return each[a] < each[b] })
		sum := int64(0)
		for _, ns := range each {
			sum += ns
		}
		fmt.Println(path, len(each), sum/int64(len(each)), each[len(each)/2], each[len(each)*99/100])
	}
}

// As many requests as there is room for, over a few connections; "TIME_NS COUNT" every tenth of a second.
func load(port int, seconds float64) {
	var all sync.WaitGroup
	var done uint64
	until := time.Now().Add(time.Duration(seconds * float64(time.Second)))
	for i := 0; i < 8; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			conn, err := net.Dial("tcp", "127.0.0.1:"+strconv.Itoa(port))
			if err != nil {
				panic(err)
			}
			reader := bufio.NewReader(conn)
			for time.Now().Before(until) {
				io.WriteString(conn, "GET /hello HTTP/1.1\r\nHost: here\r\n\r\n")
				for line := ""; line != "hello\n"; {
					if line, err = reader.ReadString('\n'); err != nil {
						panic(err)
					}
				}
				atomic.AddUint64(&done, 1)
			}
		}()
	}
	go func() {
		for range time.Tick(100 * time.Millisecond) {
			fmt.Println(time.Now().UnixNano(), atomic.LoadUint64(&done))
		}
	}()
	all.Wait()
}

func main() {
	port, _ := strconv.Atoi(os.Args[2])
	switch os.Args[1] {
	case "server":
		upstream := 0
		if len(os.Args) > 3 {
			upstream, _ = strconv.Atoi(os.Args[3])
		}
		serve(port, upstream)
	case "upstream":
		upstream(port)
	case "load":
		seconds, _ := strconv.ParseFloat(os.Args[3], 64)
		load(port, seconds)
	case "client":
		seconds, _ := strconv.ParseFloat(os.Args[3], 64)
		paths := os.Args[4:]
		if len(paths) == 0 {
			paths = []string{"/fast", "/chan", "/mutex", "/sleep", "/upstream", "/burn"}
		}
		client(port, seconds, paths)
	}
}
