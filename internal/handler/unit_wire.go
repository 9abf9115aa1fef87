package handler

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// The wire between the daemon and the unit that runs its programs. One
// connection is one run:
//
//	daemon → unit   a line of JSON (unitRequest), then the bytes of standard input
//	unit → daemon   ready, or failed
//	daemon → unit   goOn
//	unit → daemon   started, or failed; then any number of stdout and stderr; then ended
//	daemon → unit   meanwhile stop, or a hang-up: the program's group is killed
//
// Until goOn has been written nothing was started, whatever becomes of the
// connection; after it, only failed says so. That is what lets a broken
// connection burn no attempt, and keeps a program with once from a second start.

// unitVersion is that of the wire. During an upgrade the two ends may differ
// for some seconds; then nothing is started, and the route waits.
const unitVersion = 1

const (
	// maxUnitLine bounds a request without its input, in bytes: the variables
	// have their own bounds, and JSON makes at most six bytes of one.
	maxUnitLine = 4 << 20
	// maxUnitInput is the most that a program may get on standard input, in
	// bytes; no answer of Telegram's that is taken in is longer.
	maxUnitInput = 64 << 20
	// maxFrame is the longest payload of one frame, in bytes.
	maxFrame = 64 << 10
)

// unitRequest is what the unit is to run.
type unitRequest struct {
	Version   int      `json:"version"`
	Argv      []string `json:"argv"`
	Env       []string `json:"env"`
	Dir       string   `json:"dir"`
	TimeoutMS int64    `json:"timeout_ms"`
	Stdin     int      `json:"stdin"` // bytes that follow the line
}

// What the daemon says after its request.
const (
	unitGoOn = 'g'
	unitStop = 'k'
)

// The kinds of frames: one byte, four of length, and the payload.
const (
	frameReady   = 'r'
	frameStarted = 's'
	frameFailed  = 'f' // payload: unitFailure
	frameStdout  = 'o'
	frameStderr  = 'e'
	frameEnded   = 'x' // payload: exitStatus
)

// frame is one frame that was read.
type frame struct {
	kind    byte
	payload []byte
}

const frameHead = 5

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	b := make([]byte, 0, frameHead+len(payload))
	b = append(b, kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	_, err := w.Write(append(b, payload...))
	return err
}

func writeJSONFrame(w io.Writer, kind byte, v any) error {
	payload, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding an answer: %w", err)
	}
	return writeFrame(w, kind, payload)
}

func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return frame{}, fmt.Errorf("a frame of %d bytes is too long", n)
	}
	f := frame{kind: head[0], payload: make([]byte, n)}
	_, err := io.ReadFull(r, f.payload)
	return f, err
}

// encode makes the line and the input one write, so that a stop comes after both.
func (q unitRequest) encode(stdin []byte) ([]byte, error) {
	q.Version, q.Stdin = unitVersion, len(stdin)
	line, err := json.Marshal(q)
	if err != nil {
		return nil, fmt.Errorf("encoding a run: %w", err)
	}
	if len(line) > maxUnitLine || len(stdin) > maxUnitInput {
		return nil, errors.New("the update is too long for the unit that runs handlers")
	}
	return append(append(line, '\n'), stdin...), nil
}

// readUnitRequest reads a request with its input.
func readUnitRequest(r *bufio.Reader) (q unitRequest, stdin []byte, err error) {
	line, err := readLine(r, maxUnitLine)
	if err != nil {
		return q, nil, fmt.Errorf("reading a run: %w", err)
	}
	if err := json.Unmarshal(line, &q); err != nil {
		return q, nil, fmt.Errorf("reading a run: %w", err)
	}
	switch {
	case q.Version != unitVersion:
		return q, nil, fmt.Errorf("the daemon speaks version %d and this unit version %d; restart what is older", q.Version, unitVersion)
	case len(q.Argv) == 0 || q.TimeoutMS <= 0 || q.Stdin < 0 || q.Stdin > maxUnitInput:
		return q, nil, errors.New("reading a run: it is no request of the daemon's")
	}
	stdin = make([]byte, q.Stdin)
	if _, err := io.ReadFull(r, stdin); err != nil {
		return q, nil, fmt.Errorf("reading a run's input: %w", err)
	}
	return q, stdin, nil
}

// readLine reads up to a newline, and no more than limit bytes.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > limit:
			return nil, fmt.Errorf("longer than %d bytes", limit)
		case err == nil:
			return bytes.TrimSuffix(line, []byte{'\n'}), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// unitFailure says over the wire why a program didn't start.
type unitFailure struct {
	Kind  string `json:"kind"` // missing, permission or other
	Error string `json:"error"`
}

func toUnitFailure(err error) unitFailure {
	f := unitFailure{Kind: "other", Error: err.Error()}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.Kind = "missing"
	case errors.Is(err, fs.ErrPermission):
		f.Kind = "permission"
	}
	return f
}

// err is what the unit said, as an error of the same kind.
func (f unitFailure) err() error {
	e := &unitError{text: f.Error}
	switch f.Kind {
	case "missing":
		e.is = fs.ErrNotExist
	case "permission":
		e.is = fs.ErrPermission
	}
	return e
}

// unitError is an error that came over the wire, with its kind.
type unitError struct {
	text string
	is   error // nil: none that matters
}

// Error is what the unit said.
func (e *unitError) Error() string { return e.text }

// Unwrap returns the kind.
func (e *unitError) Unwrap() error { return e.is }
