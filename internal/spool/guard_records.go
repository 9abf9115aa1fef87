package spool

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// shape is what all keys of a bucket have in common: their length, that of their
// values, and whether these are sealed.
type shape struct {
	key    int // bytes; 0: at least 3
	value  int // bytes; anyLen where they differ
	sealed bool
}

const anyLen = -1

// shapes holds every bucket whose keys have a fixed length. Another length is
// damage that no checksum shows.
var shapes = map[string]shape{
	"botnum": {8, 2, false}, "bots": {2, anyLen, true}, "notes": {0, anyLen, true},
	"live": {10, anyLen, true}, "parked": {11, anyLen, true}, "ended": {11, anyLen, true},
	"body": {8, anyLen, true}, "run": {10, anyLen, true},
	"queue": {15, 17, false}, "ready": {11, 12, false}, "key": {18, 16, false},
	"chat": {6, anyLen, true}, "alias": {0, 4, false},
	"inbox": {10, anyLen, true}, "inended": {11, anyLen, true}, "inbody": {10, anyLen, true}, "inlease": {10, anyLen, true},
	"inqueue": {18, 16, false}, "inready": {18, 8, false}, "inpull": {10, 9, false}, "session": {18, anyLen, true}, "seen": {10, anyLen, false}, "timer": {19, 0, false},
}

// smallBuckets are those that a start needs whole and that stay small. Where
// the file is big only they are looked at before it is used.
var smallBuckets = map[string]bool{
	"meta": true, "botnum": true, "bots": true, "notes": true, "run": true, "inlease": true,
	"ready": true, "inready": true, "damaged": true,
}

// laterBuckets came after the first files of this version: where one is missing,
// the file is older, and it is made at the next start.
var laterBuckets = map[string]bool{"inpull": true, "session": true}

// wholeUpTo is the size in bytes up to which a file is looked at as a whole
// before it is used: a second on a slow card.
const wholeUpTo = 64 << 20

// finding is what the look at a file before its use has shown.
type finding struct {
	version uint64 // of the schema
	doubt   bool   // one of the two heads is unusable
	whole   bool   // every page was looked at
	bad     int    // records whose checksum is wrong; the code sets them aside
	pages   uint64
	free    uint64 // pages that are free
	size    int64  // of the file, in bytes
	page    int64  // of a page, in bytes
}

// examine looks at a store's file without mapping it. It fails with a
// DamageError when the file can't be used, with ErrNewer, and with ErrForeign
// for a file that isn't a spool.
func examine(path string, all bool) (found finding, err error) {
	defer func() {
		if d, ok := errors.AsType[*DamageError](err); ok {
			err = &DamageError{Path: path, Reason: d.Reason}
		}
	}()
	p, err := openPages(path)
	if err != nil {
		return found, notOurs(path, err)
	}
	defer p.close()
	// Without a list of free pages bbolt itself reads every page at open, and
	// must not meet a bad one.
	found = finding{doubt: p.doubt, pages: p.head.pages, size: p.size, page: p.pageSize}
	found.whole = all || p.size <= wholeUpTo || p.head.freelist == noFreelist
	if found.version, err = readVersion(p); err != nil {
		return found, fmt.Errorf("spool %q: %w", path, err)
	}
	w := &walker{}
	if found.version == schemaVersion {
		w.fn = found.record // older ones may have had other keys
	}
	if !found.whole {
		w.only = func(bucket string) bool { return smallBuckets[bucket] }
	}
	if err := p.walk(w); err != nil {
		return found, err
	}
	found.free = uint64(len(w.pending))
	if found.whole {
		found.free = p.head.pages - w.nused
	}
	for _, name := range allBuckets() {
		if found.version == schemaVersion && !w.buckets[string(name)] && !laterBuckets[string(name)] {
			return found, damagef("bucket %s is missing", name)
		}
	}
	return found, nil
}

// readVersion finds the schema's version, before anything is said about
// records that a newer program may have written in another form.
func readVersion(p *pageFile) (version uint64, err error) {
	found := false
	w := &walker{
		only: func(bucket string) bool { return bucket == string(bMeta) },
		fn: func(_ string, k, v []byte) error {
			if string(k) == string(kSchema) && len(v) == 8 {
				version, found = binary.BigEndian.Uint64(v), true
			}
			return nil
		},
	}
	if err := p.walk(w); err != nil {
		return 0, err
	}
	switch {
	case !found && w.buckets["live"]:
		return 0, damagef("its version is missing")
	case !found:
		return 0, fmt.Errorf("it holds another program's data: %w", ErrForeign)
	case version > schemaVersion:
		return version, ErrNewer
	}
	return version, nil
}

// record checks one record. A wrong checksum is no reason to give up the file,
// but for the few without which nothing goes.
func (f *finding) record(bucket string, k, v []byte) error {
	s, known := shapes[bucket]
	if !known {
		return nil
	}
	if s.key != len(k) && (s.key != 0 || len(k) < 3) {
		return damagef("bucket %s: key %x has a wrong length", bucket, k)
	}
	if !s.sealed {
		if s.value != anyLen && s.value != len(v) {
			return damagef("bucket %s: the value of key %x has a wrong length", bucket, k)
		}
		return nil
	}
	if _, err := unseal(k, v); err != nil {
		if bucket == "bots" {
			return damagef("bucket %s: %w", bucket, err)
		}
		f.bad++
	}
	return nil
}

// notOurs tells a damaged spool from a file that never was one: where no page
// looks like one of bbolt's and the file isn't zeroed either, it belongs to
// somebody else and must stay where it is.
func notOurs(path string, damage error) error {
	if !errors.Is(damage, ErrDamaged) {
		return damage
	}
	f, err := os.Open(path)
	if err != nil {
		return damage
	}
	defer func() { _ = f.Close() }()
	const size, most = 4096, 256
	buf, zero := make([]byte, size), true
	for i := range uint64(most) {
		n, _ := f.ReadAt(buf, int64(i)*size)
		if n < pageHeader {
			break
		}
		for _, b := range buf[:n] {
			zero = zero && b == 0
		}
		kind := binary.NativeEndian.Uint16(buf[8:])
		if binary.NativeEndian.Uint64(buf) == i && (kind == leafPage || kind == branchPage || kind == freelistPage || kind == 4) {
			return damage
		}
		if binary.NativeEndian.Uint32(buf[pageHeader:]) == boltMagic {
			return damage
		}
	}
	if zero {
		return damage
	}
	return fmt.Errorf("%q holds another program's data: %w", path, ErrForeign)
}
