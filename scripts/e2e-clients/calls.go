package main

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// kinds are the calls that are made by saying their name to the bot.
var kinds = []struct {
	say  string
	fits func(arrival) bool
}{
	{"document", func(a arrival) bool {
		return a.Method == "sendDocument" && len(a.Files) == 1 && a.Files[0].Size == 9
	}},
	{"photo", func(a arrival) bool { return a.Method == "sendPhoto" && len(a.Files) == 1 }},
	{"album", func(a arrival) bool { return a.Method == "sendMediaGroup" && len(a.Files) == 2 && len(a.IDs) == 2 }},
	{"edit", func(a arrival) bool { return a.Method == "editMessageText" && a.Text == "edited" }},
}

func toast(a arrival) bool { return a.Method == "answerCallbackQuery" && a.Params["text"] == "toast" }

// direct has the bot make its calls without tgspool, to know how they look then.
func (w *world) direct() error {
	upstream, err := w.simulate()
	if err != nil {
		return err
	}
	w.base, w.token = "http://"+upstream, token
	if err := w.startBot(); err != nil {
		return err
	}
	if err := w.echo("start", 1); err != nil {
		return err
	}
	if w.want, err = w.each(); err != nil {
		return err
	}
	w.bot.end(syscall.SIGKILL, 5*time.Second)
	w.sim.end(syscall.SIGKILL, 5*time.Second)
	return nil
}

// calls has each kind of call made once, and compares it with the same call made
// without tgspool: whatever the library writes, down to the names of files, goes
// on as it is.
func (w *world) calls() (string, error) {
	got, err := w.each()
	if err != nil {
		return "", err
	}
	for what, a := range got {
		if want := w.want[what]; !reflect.DeepEqual(shape(a), shape(want)) {
			return "", fmt.Errorf("%s isn't the call that the library makes:\n%+v\n%+v", what, shape(a), shape(want))
		}
	}
	return "", nil
}

// each has each kind of call made once.
func (w *world) each() (map[string]arrival, error) {
	found := map[string]arrival{}
	for _, k := range kinds {
		if err := w.say(k.say); err != nil {
			return nil, err
		}
		if err := w.once(k.say, k.fits); err != nil {
			return nil, err
		}
		found[k.say] = w.first(k.fits)
	}
	message := w.first(text("re start0")).MessageID
	if message == 0 {
		return nil, errors.New("there is no message with a button")
	}
	if err := w.post("press", map[string]any{"chat_id": chat, "user_id": chat, "message_id": message, "data": "x"}); err != nil {
		return nil, err
	}
	if err := w.once("toast", toast); err != nil {
		return nil, err
	}
	found["toast"] = w.first(toast)
	return found, nil
}

func (w *world) first(fits func(arrival) bool) arrival {
	for _, a := range w.arrivals() {
		if a.Effect && fits(a) {
			return a
		}
	}
	return arrival{}
}

// madeUp are the names of files that libraries make up afresh each time.
var madeUp = regexp.MustCompile(`attach://[^"]+`)

// shape is a call without what differs from run to run, and without empty values:
// one that stands in a query for a file would hide it, and is left out.
func shape(a arrival) arrival {
	params := map[string]string{}
	for name, value := range a.Params {
		if name != "message_id" && name != "callback_query_id" && value != "" {
			params[name] = madeUp.ReplaceAllString(value, "attach://x")
		}
	}
	sent := slices.Clone(a.Files)
	slices.SortFunc(sent, func(x, y sentFile) int { return strings.Compare(x.Name, y.Name) })
	return arrival{Method: a.Method, Text: a.Text, Params: params, Files: sent}
}
