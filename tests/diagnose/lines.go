// SPDX-License-Identifier: GPL-2.0-or-later
// A goroutine for each connection, which answers its lines.
package main

import (
	"bufio"
	"net"
)

func serveLines(port string, serve func(line string)) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		panic(err)
	}
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			lines := bufio.NewReader(client)
			for {
				line, err := lines.ReadString('\n')
				if err != nil {
					client.Close()
					return
				}
				serve(line)
				client.Write([]byte("ok\n"))
			}
		}()
	}
}
