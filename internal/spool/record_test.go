package spool

import (
	"reflect"
	"strings"
	"testing"
)

// TestRecords_NumbersAreUnique: of two fields with one number the encoder drops
// one without a word.
func TestRecords_NumbersAreUnique(t *testing.T) {
	for _, rec := range []any{
		jobRec{}, runRec{}, chatRec{}, botRec{}, updateRec{}, leaseRec{}, fallbackRec{}, refRec{}, partRec{}, File{}, JobError{}, Evidence{},
	} {
		typ := reflect.TypeOf(rec)
		seen := map[string]string{}
		for f := range typ.Fields() {
			tag, stored := f.Tag.Lookup("cbor")
			if !stored {
				continue
			}
			number, _, _ := strings.Cut(tag, ",")
			if other, twice := seen[number]; twice {
				t.Errorf("%s: %s and %s are both number %s", typ.Name(), other, f.Name, number)
			}
			seen[number] = f.Name
		}
	}
}
