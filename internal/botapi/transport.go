package botapi

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"
)

const (
	connectTimeout = 30 * time.Second // name, TCP, proxy and TLS together
	dialTimeout    = 15 * time.Second
	tlsTimeout     = 15 * time.Second
	keepAliveIdle  = 25 * time.Second
	keepAliveEvery = 10 * time.Second
	userTimeout    = 30 * time.Second // unacknowledged data for so long ends a connection

	// idleTimeout keeps a call off a connection that hasn't answered lately. Home
	// routers forget a silent connection without telling either end, and whether a
	// request written into it arrived can't be known.
	idleTimeout = 15 * time.Second
)

// newTransport returns an HTTP/1.1 transport over network ("tcp", "tcp4", "tcp6")
// that judges certificates by now (nil: the wall clock).
//
// It replays nothing, because every request is a POST whose body can't be had again and
// that bears no Idempotency-Key: net/http sends only what it may rewind a second time.
func newTransport(network string, proxy func(*http.Request) (*url.URL, error), now func() time.Time) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	dialer := &net.Dialer{
		Timeout: dialTimeout,
		KeepAliveConfig: net.KeepAliveConfig{
			Enable: true, Idle: keepAliveIdle, Interval: keepAliveEvery, Count: 3,
		},
		Control: setUserTimeout,
	}
	return &http.Transport{
		Proxy:     proxy,
		Protocols: protocols,
		DialContext: func(ctx context.Context, _, addr string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &countingConn{Conn: conn}, nil
		},
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, Time: now},
		TLSHandshakeTimeout:    tlsTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           64,
		MaxIdleConnsPerHost:    32,
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
	}
}

// countingConn counts what is written to a connection.
type countingConn struct {
	net.Conn

	written  atomic.Int64           // bytes that the kernel took or is just being given
	progress atomic.Pointer[func()] // of the call that holds the connection
}

// Write counts beforehand and takes back what wasn't taken, so that to somebody who looks
// meanwhile every byte that may have left is one that has.
func (c *countingConn) Write(p []byte) (int, error) {
	c.written.Add(int64(len(p)))
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n - len(p)))
	if progress := c.progress.Load(); progress != nil && n > 0 {
		(*progress)()
	}
	return n, err
}

// countingConnOf finds the connection under the layers of TLS, nil for one that isn't ours.
func countingConnOf(conn net.Conn) *countingConn {
	for conn != nil {
		if c, ok := conn.(*countingConn); ok {
			return c
		}
		layer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return nil
		}
		conn = layer.NetConn()
	}
	return nil
}

// parseProxy returns how a request finds its proxy, and the password that must not be shown.
func parseProxy(s string) (proxy func(*http.Request) (*url.URL, error), password string, err error) {
	if s == "" {
		return environmentProxy, "", nil
	}
	u, err := url.Parse(s)
	if err != nil || u.Host == "" {
		// The error of url.Parse repeats its input, which may hold a password.
		return nil, "", errors.New("proxy is no URL like http://host:port or socks5://host:port")
	}
	switch u.Scheme {
	case "http", "https", "socks5", "socks5h":
	default:
		return nil, "", errors.New("proxy must begin with http://, https:// or socks5://")
	}
	if u.User != nil {
		password, _ = u.User.Password()
	}
	return http.ProxyURL(u), password, nil
}

// environmentProxy is http.ProxyFromEnvironment without its errors, which repeat the
// whole URL with its password.
func environmentProxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if err != nil {
		return nil, errors.New("the proxy of the environment is no URL")
	}
	return u, nil
}

func networkOf(family string) (string, error) {
	switch family {
	case "", "auto":
		return "tcp", nil
	case "4":
		return "tcp4", nil
	case "6":
		return "tcp6", nil
	}
	return "", fmt.Errorf("IP family %q is none of auto, 4, 6", clip(family, 20))
}
