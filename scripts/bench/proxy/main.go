// Command proxy is a plain reverse proxy in a process of its own: what any hop
// on the way to Telegram costs. It prints its address and runs until its input
// ends.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "proxy:", err)
		os.Exit(1)
	}
}

func run(target string) error {
	to, err := url.Parse(target)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println("http://" + l.Addr().String())
	go func() { _ = http.Serve(l, httputil.NewSingleHostReverseProxy(to)) }()
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}
