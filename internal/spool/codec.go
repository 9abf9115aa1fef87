package spool

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"hash/fnv"

	"github.com/fxamacker/cbor/v2"
)

// Records are CBOR with small integer keys: compact, and a field may be added
// or dropped without rewriting what is stored.
var (
	encMode = must(cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode())
	decMode = must(cbor.DecOptions{MaxArrayElements: 1 << 20}.DecMode())
)

var crcTable = crc32.MakeTable(crc32.Castagnoli)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// sum is the checksum over key and value: a value under a wrong key is damage too.
func sum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, crcTable), crcTable, value)
}

// seal puts the checksum before a value.
func seal(key, value []byte) []byte {
	out := make([]byte, 4, 4+len(value))
	binary.BigEndian.PutUint32(out, sum(key, value))
	return append(out, value...)
}

// unseal checks a stored value and returns what was sealed. The result is
// valid only as long as the transaction.
func unseal(key, stored []byte) ([]byte, error) {
	if len(stored) < 4 {
		return nil, fmt.Errorf("key %x: %d bytes: %w", key, len(stored), ErrDamaged)
	}
	if value := stored[4:]; binary.BigEndian.Uint32(stored) == sum(key, value) {
		return value, nil
	}
	return nil, fmt.Errorf("key %x: wrong checksum: %w", key, ErrDamaged)
}

// encode makes the stored form of a record under its key.
func encode(key []byte, rec any) []byte {
	return seal(key, must(encMode.Marshal(rec)))
}

// decode reads the stored form of a record. It copies everything out of the
// transaction's memory.
func decode[T any](key, stored []byte) (*T, error) {
	value, err := unseal(key, stored)
	if err != nil {
		return nil, err
	}
	rec := new(T)
	if err := decMode.Unmarshal(value, rec); err != nil {
		return nil, fmt.Errorf("key %x: %w: %w", key, err, ErrDamaged)
	}
	return rec, nil
}

// hash64 shortens order keys and handler names for index keys. Two names with
// one hash would share a queue, which costs speed but loses nothing.
func hash64(s string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s))
	return h.Sum64()
}
