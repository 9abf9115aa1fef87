package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"syscall"
	"time"

	"github.com/tgspool/tgspool/internal/telegramsim"
	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// handlers measures how soon an answer is on its way, and whether the real
// program keeps up with many programs a second in even memory.
func (b *bench) handlers() error {
	for _, how := range []struct {
		name      string
		byProgram bool
	}{{"webhook", false}, {"exec", true}} {
		var over []float64
		for range b.rounds {
			c, err := b.start("ours")
			if err != nil {
				return err
			}
			r, err := c.do(kit.Request{Op: "reply", N: int(200 * b.seconds), Key: how.byProgram})
			if err = errors.Join(err, c.end()); err != nil {
				return err
			}
			fmt.Printf("   %s: p50 of update to reply %v, of it the handler's own %v, of a commit %v\n", how.name, r.P50, r.Own, r.Commit)
			over = append(over, float64(r.P50-r.Own)/float64(r.Commit))
		}
		b.atMost("update to reply by "+how.name+", in commits, without the handler's own", median(over), 2, "")
	}
	return b.programs()
}

const (
	perSecond = 50
	feedFor   = 40 * time.Second
	warmUp    = 10 * time.Second
)

// programs feeds the real program 50 updates a second, each of which starts a
// program.
func (b *bench) programs() error {
	path, err := b.binary()
	if err != nil {
		return err
	}
	sim := telegramsim.New(telegramsim.Options{Bots: []telegramsim.Bot{{Token: token}}})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: sim.Handler()}
	go func() { _ = server.Serve(listener) }()
	defer func() {
		sim.Close()
		_ = server.Close()
	}()
	cmd, err := b.daemon(path, "http://"+listener.Addr().String(), programSettings)
	if err != nil {
		return err
	}
	defer func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	}()
	return b.feed(sim, cmd)
}

const programSettings = `
[bots.bench.sender]
rate = 0
chat_gap = "0s"
[[bots.bench.handlers]]
name = "echo"
exec = ["/bin/sh", "-c", "echo $TGSPOOL_TEXT"]
allow_from = ["*"]
`

// feed feeds at an even pace and looks at the memory after a while and at the end.
func (b *bench) feed(sim *telegramsim.Sim, cmd *exec.Cmd) error {
	tick := time.NewTicker(time.Second / perSecond)
	defer tick.Stop()
	n := int(feedFor.Seconds() * perSecond)
	fmt.Printf("   %d programs at %d a second: %v\n", n, perSecond, feedFor)
	var warm int64
	for i := range n {
		select {
		case <-tick.C:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
		if sim.FeedText(firstChat+int64(i%1000), firstChat+int64(i%1000), fmt.Sprint(i)) == 0 {
			return errors.New("the simulator takes no update")
		}
		if i == int(warmUp.Seconds()*perSecond) {
			warm = kit.RSSAnon(cmd.Process.Pid)
		}
	}
	fed := time.Now()
	if err := b.answered(sim, n); err != nil {
		return err
	}
	behind := time.Since(fed)
	end := kit.RSSAnon(cmd.Process.Pid)
	b.atMost("exec handlers at 50/s: the last answer after the last update", behind.Seconds()*1000, 1000, " ms")
	b.atMost("exec handlers at 50/s: memory grown meanwhile", float64(end-warm)/mib, 4, " MiB")
	b.atMost("exec handlers at 50/s: anonymous memory", float64(end)/mib, 40, " MiB")
	return nil
}

// answered waits until n messages have arrived.
func (b *bench) answered(sim *telegramsim.Sim, n int) error {
	seen, sent := 0, 0
	for {
		more := sim.Arrived()
		for _, a := range sim.JournalAfter(seen) {
			seen = a.N
			if a.Method == "sendMessage" {
				sent++
			}
		}
		if sent >= n {
			return nil
		}
		select {
		case <-more:
		case <-b.ctx.Done():
			return b.ctx.Err()
		}
	}
}
