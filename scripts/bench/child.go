package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/tgspool/tgspool/scripts/bench/kit"
)

// child is a contestant in a process of its own.
type child struct {
	name string
	dir  string
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *json.Decoder
}

// start starts a contestant with a fresh folder.
func (b *bench) start(name string) (*child, error) {
	b.folders++
	dir := filepath.Join(b.dir, strconv.Itoa(b.folders))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	return b.startIn(name, dir)
}

// startIn starts a contestant on a folder that may hold its data already.
func (b *bench) startIn(name, dir string) (*child, error) {
	c := &child{name: name, dir: dir}
	if name == "ours" {
		c.cmd = exec.CommandContext(b.ctx, filepath.Join(b.dir, "ours"))
		c.cmd.Env = append(os.Environ(), "GOGC=200") // as the daemon sets it for itself
	} else {
		c.cmd = exec.CommandContext(b.ctx, filepath.Join(b.dir, "peers"), name)
	}
	c.cmd.Stderr = os.Stderr
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	c.out = json.NewDecoder(out)
	// An end of its input is a request to end in good order, so that no server of
	// a contestant is left behind.
	c.cmd.Cancel, c.cmd.WaitDelay = c.in.Close, 20*time.Second
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := c.do(kit.Request{Op: "open", Dir: dir}); err != nil {
		return nil, errors.Join(err, c.end())
	}
	return c, nil
}

// do has the contestant do something and waits for the answer.
func (c *child) do(r kit.Request) (reply kit.Reply, err error) {
	if err := json.NewEncoder(c.in).Encode(r); err != nil {
		return reply, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := c.out.Decode(&reply); err != nil {
		return reply, fmt.Errorf("%s has ended: %w", c.name, err)
	}
	if reply.Err != "" {
		return reply, fmt.Errorf("%s, %s: %s", c.name, r.Op, reply.Err)
	}
	return reply, nil
}

// all does several things, one after the other.
func (c *child) all(list ...kit.Request) error {
	for _, r := range list {
		if _, err := c.do(r); err != nil {
			return err
		}
	}
	return nil
}

// end ends the contestant and removes its data.
func (c *child) end() error {
	_ = c.in.Close()
	err := c.cmd.Wait()
	return errors.Join(err, os.RemoveAll(c.dir))
}

// kill ends it as a power cut of the process would; the data stays.
func (c *child) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

// watch samples a process's anonymous memory until stop, which returns the peak.
func watch(pid int) (stop func() (peak int64)) {
	quit, result := make(chan struct{}), make(chan int64)
	go func() {
		var peak int64
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			peak = max(peak, kit.RSSAnon(pid))
			select {
			case <-tick.C:
			case <-quit:
				result <- peak
				return
			}
		}
	}()
	return func() int64 {
		close(quit)
		return <-result
	}
}
