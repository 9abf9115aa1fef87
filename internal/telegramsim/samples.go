package telegramsim

import (
	"bytes"
	_ "embed" // the samples
	"encoding/json"
)

//go:embed testdata/samples.ndjson
var sampleLines []byte

// SampleUpdates are updates of our own making, without update_id: at least one
// of every official kind, and odd shapes. Each call returns fresh copies.
func SampleUpdates() []json.RawMessage {
	var list []json.RawMessage
	for line := range bytes.SplitSeq(sampleLines, []byte("\n")) {
		if len(line) > 0 {
			list = append(list, bytes.Clone(line))
		}
	}
	return list
}
