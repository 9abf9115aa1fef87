package wire

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

// idleConns is how many connections to one host are kept for the next update.
const idleConns = 40

// Pusher is the way to the webhooks of bots: to this machine and the hosts of
// the settings, by no proxy, following nobody elsewhere.
type Pusher struct {
	hosts  atomic.Pointer[map[string]bool]
	client *http.Client
}

// NewPusher makes a pusher that may reach this machine and hosts. With push it
// goes that way instead of over the network.
func NewPusher(hosts []string, push http.RoundTripper) *Pusher {
	p := &Pusher{}
	p.Use(hosts)
	if push == nil {
		dialer := &net.Dialer{Timeout: 10 * time.Second}
		push = &http.Transport{
			DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
				return p.dial(ctx, dialer, network, addr)
			},
			MaxIdleConnsPerHost: idleConns,
			IdleConnTimeout:     time.Minute,
		}
	}
	p.client = &http.Client{
		Transport:     push,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p
}

// Use changes the hosts that may be reached beside this machine.
func (p *Pusher) Use(hosts []string) {
	set := map[string]bool{}
	for _, h := range hosts {
		set[canonicalHost(h)] = true
	}
	p.hosts.Store(&set)
}

// Close lets go of connections that wait for a next update.
func (p *Pusher) Close() { p.client.CloseIdleConnections() }

// errHost keeps updates on this machine, unless the settings say otherwise.
var errHost = errors.New("the host is neither this machine nor one of api.webhook_hosts")

func canonicalHost(host string) string {
	return strings.ToLower(strings.TrimSuffix(strings.Trim(host, "[]"), "."))
}

// MayReach reports whether updates may be pushed to a host.
func (p *Pusher) MayReach(host string) bool {
	host = canonicalHost(host)
	return isThisMachine(host) || (*p.hosts.Load())[host]
}

func isThisMachine(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// dial connects to a host that may be reached. Names of this machine are never
// looked up, and both families are tried: which one a program listens on, and
// which one localhost means, differs from library to library.
func (p *Pusher) dial(ctx context.Context, dialer *net.Dialer, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	host = canonicalHost(host)
	if !p.MayReach(host) {
		return nil, errHost
	}
	if !isThisMachine(host) {
		return dialer.DialContext(ctx, network, net.JoinHostPort(host, port))
	}
	var all error
	for _, ip := range loopbacks(host) {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(ip, port))
		if err == nil {
			return conn, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// loopbacks are the addresses that a name of this machine may mean.
func loopbacks(host string) []string {
	const four, six = "127.0.0.1", "::1"
	switch ip, err := netip.ParseAddr(host); {
	case err != nil, host == four:
		return []string{four, six}
	case ip.Is6() && !ip.Is4In6():
		return []string{six, four}
	}
	return []string{host, six}
}
