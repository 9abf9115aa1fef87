package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

func (w *world) startAway() (string, error) {
	if err := w.post("offline", map[string]any{"offline": true}); err != nil {
		return "", err
	}
	if err := w.startBot(); err != nil {
		return "", err
	}
	time.Sleep(2 * time.Second)
	select {
	case <-w.bot.done:
		return "", errors.New("the bot has ended")
	default:
	}
	if err := w.post("offline", map[string]any{"offline": false}); err != nil {
		return "", err
	}
	return "", w.echo("start", 3)
}

func (w *world) faults() (string, error) {
	if err := w.post("faults", map[string]any{"method": "sendMessage", "kind": "flood", "retry_after": 2, "times": 1}); err != nil {
		return "", err
	}
	if err := w.echo("flood", 2); err != nil {
		return "", err
	}
	fault := map[string]any{"method": "sendMessage", "kind": "reset_after_read", "times": 1, "effect": true}
	if err := w.post("faults", fault); err != nil {
		return "", err
	}
	before := w.uncertain()
	if err := w.echo("lost", 1); err != nil {
		return "", err
	}
	if err := wait(20*time.Second, func() bool { return w.uncertain() == before+1 }); err != nil {
		return "", fmt.Errorf("%d jobs are uncertain, want the one whose answer was lost", w.uncertain()-before)
	}
	return "", w.echo("after", 2)
}

// killDaemon kills tgspool while texts come in: none is answered twice, and one
// that isn't answered is uncertain, or the bot has heard that its call failed.
func (w *world) killDaemon() (string, error) {
	before := w.failures()
	for i := range 10 {
		if err := w.say(fmt.Sprintf("echo kill%d", i)); err != nil {
			return "", err
		}
		if i == 5 {
			time.Sleep(150 * time.Millisecond)
			w.daemon.end(syscall.SIGKILL, 5*time.Second)
		}
	}
	if err := w.startDaemon(); err != nil {
		return "", err
	}
	missing := func() (n int) {
		for i := range 10 {
			if w.count(text(fmt.Sprintf("re kill%d", i))) == 0 {
				n++
			}
		}
		return n
	}
	told := func() int { return w.failures() - before }
	if err := wait(60*time.Second, func() bool { return missing() <= w.uncertain()+told() }); err != nil {
		return "", fmt.Errorf("%d answers are missing, %d are uncertain, %d calls have failed: %w", missing(), w.uncertain(), told(), err)
	}
	if err := w.echo("again", 2); err != nil {
		return "", err
	}
	for i := range 10 {
		if n := w.count(text(fmt.Sprintf("re kill%d", i))); n > 1 {
			return "", fmt.Errorf("answer to kill%d: %d times", i, n)
		}
	}
	return fmt.Sprintf(", %d of 10 calls failed while tgspool was away", missing()), nil
}

// failures is how many calls the bot has heard to have failed.
func (w *world) failures() int { return strings.Count(w.bot.out.text(), "failed:") }

// uncertain is how many jobs wait for a decision.
func (w *world) uncertain() (n int) {
	out, err := exec.Command(w.tgspool, "queue", "list", "--state", "uncertain", "--json", "--socket", w.dir+"/s").Output()
	if err != nil {
		return 0
	}
	return bytes.Count(out, []byte("\n"))
}

// killBot kills the bot while texts come in: none is lost; what was answered
// and read may be answered again. Some libraries acknowledge updates before they
// handle them; what such a one had in its hands is replayed, as a person would.
func (w *world) killBot() (string, error) {
	for i := range 10 {
		if err := w.say(fmt.Sprintf("echo bot%d", i)); err != nil {
			return "", err
		}
		if i == 5 {
			time.Sleep(150 * time.Millisecond)
			w.bot.end(syscall.SIGKILL, 5*time.Second)
		}
	}
	time.Sleep(2 * time.Second) // what it had queued goes out
	replayed, err := w.replay()
	if err != nil {
		return "", err
	}
	if err := w.startBot(); err != nil {
		return "", err
	}
	repeats := 0
	for i := range 10 {
		fits := text(fmt.Sprintf("re bot%d", i))
		if err := wait(40*time.Second, func() bool { return w.count(fits) > 0 }); err != nil {
			return "", fmt.Errorf("answer to bot%d: %w", i, err)
		}
	}
	time.Sleep(time.Second)
	for i := range 10 {
		repeats += w.count(text(fmt.Sprintf("re bot%d", i))) - 1
	}
	return fmt.Sprintf("; the bot killed: %d repeats, %d updates lost by it and replayed", repeats, replayed), nil
}

// replay opens the updates again that the bot has acknowledged and not answered.
func (w *world) replay() (n int, err error) {
	out, err := exec.Command(w.tgspool, "inbox", "list", "--state", "handled", "--json", "--socket", w.dir+"/s").Output()
	if err != nil {
		return 0, fmt.Errorf("listing the inbox: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	for dec.More() {
		var u struct {
			Seq    int64 `json:"seq"`
			Update struct {
				Message struct {
					Text string `json:"text"`
				} `json:"message"`
			} `json:"update"`
		}
		if err := dec.Decode(&u); err != nil {
			return n, err
		}
		t, ours := strings.CutPrefix(u.Update.Message.Text, "echo bot")
		if !ours || w.count(text("re bot"+t)) > 0 {
			continue
		}
		if out, err := exec.Command(w.tgspool, "inbox", "replay", fmt.Sprint(u.Seq), "--socket", w.dir+"/s").CombinedOutput(); err != nil {
			return n, fmt.Errorf("replaying: %s", out)
		}
		n++
	}
	return n, nil
}

func (w *world) stop() (string, error) {
	note := ""
	if !w.bot.end(syscall.SIGTERM, 15*time.Second) {
		note = ", it doesn't end when it is asked to"
	}
	if !w.daemon.end(syscall.SIGTERM, 10*time.Second) {
		return note, errors.New("tgspool doesn't stop")
	}
	if out, err := exec.Command(w.tgspool, "db", "check", "--config", w.dir+"/tgspool.toml").CombinedOutput(); err != nil {
		return note, fmt.Errorf("the spool afterwards: %s", out)
	}
	return note, nil
}
