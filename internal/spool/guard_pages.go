package spool

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"os"

	bolt "go.etcd.io/bbolt"
)

// pageFile looks into a bbolt file through read calls. bbolt itself maps the
// file and trusts every page: one wrong number in it leads outside the mapping,
// which ends the process. Whatever is said here about a file is said before
// bbolt touches it.
type pageFile struct {
	f        *os.File
	size     int64
	pageSize int64
	head     fileHead
	// doubt: one of the two heads is unusable. It may have been the newer one,
	// and with it the last transaction is gone.
	doubt bool
}

// fileHead is what a meta page says.
type fileHead struct {
	root     uint64 // page of the bucket of buckets
	freelist uint64 // page of the list of free pages; noFreelist when it isn't kept
	pages    uint64 // pages in use or free; what is behind them is nothing
	txid     uint64
}

// The forms of bbolt's file, version 2.
const (
	boltMagic      = 0xED0CDAED
	boltVersion    = 2
	pageHeader     = 16
	elementSize    = 16
	metaSize       = 64
	branchPage     = 0x01
	leafPage       = 0x02
	freelistPage   = 0x10
	bucketElement  = 0x01
	noFreelist     = math.MaxUint64
	maxTreeDepth   = 32 // a tree of 4 KiB pages is 6 deep at most; deeper is a circle
	minPage        = 1 << 10
	maxPage64K     = 1 << 16
	manyFreePages  = math.MaxUint16
	freelistIDSize = 8
)

// openPages opens a file for inspection and reads its heads.
func openPages(path string) (*pageFile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	p := &pageFile{f: f}
	if err := p.readHeads(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

func (p *pageFile) close() { _ = p.f.Close() }

// readHeads finds the newer of the two valid heads.
func (p *pageFile) readHeads() error {
	fi, err := p.f.Stat()
	if err != nil {
		return err
	}
	p.size = fi.Size()
	if p.size == 0 {
		return damagef("the file is empty")
	}
	first, ok0 := p.headAt(0)
	size := p.pageSize
	second, ok1 := fileHead{}, false
	if ok0 {
		second, ok1 = p.headAt(size)
	} else {
		for size = minPage; size <= maxPage64K && !ok1; size *= 2 {
			if second, ok1 = p.headAt(size); ok1 {
				break
			}
		}
	}
	switch {
	case ok0 && (!ok1 || first.txid > second.txid):
		p.head = first
	case ok1:
		p.head, p.pageSize = second, size
	default:
		return damagef("neither of the file's two heads is valid")
	}
	p.doubt = !ok0 || !ok1
	if h := p.head; h.pages > uint64(p.size/p.pageSize) {
		return damagef("the file is cut short: it has %d bytes, its head speaks of %d pages of %d", p.size, h.pages, p.pageSize)
	} else if h.root < 2 || h.root >= h.pages {
		return damagef("the head points to page %d of %d", h.root, h.pages)
	}
	return nil
}

// headAt reads a meta page; false when there is no valid one. It takes over
// the page size from the first valid one that it sees.
func (p *pageFile) headAt(off int64) (h fileHead, ok bool) {
	var buf [pageHeader + metaSize]byte
	if _, err := p.f.ReadAt(buf[:], off); err != nil {
		return h, false
	}
	m := buf[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(m[:metaSize-8])
	size := int64(binary.NativeEndian.Uint32(m[8:]))
	if binary.NativeEndian.Uint32(m) != boltMagic || binary.NativeEndian.Uint32(m[4:]) != boltVersion ||
		binary.NativeEndian.Uint64(m[56:]) != sum.Sum64() || size < minPage || size > maxPage64K || size&(size-1) != 0 ||
		off != 0 && off != size {
		return h, false
	}
	p.pageSize = size
	return fileHead{
		root: binary.NativeEndian.Uint64(m[16:]), freelist: binary.NativeEndian.Uint64(m[32:]),
		pages: binary.NativeEndian.Uint64(m[40:]), txid: binary.NativeEndian.Uint64(m[48:]),
	}, true
}

// walker visits the records of a file.
type walker struct {
	p    *pageFile
	only func(bucket string) bool               // nil: all buckets
	fn   func(bucket string, k, v []byte) error // k and v are valid during the call; nil for a bucket itself
	// lenient: skip what can't be read instead of giving up.
	lenient bool

	used    []uint64                 // a bit for each page met
	nused   uint64                   // how many
	bufs    [maxTreeDepth + 1][]byte // a page for each level
	buckets map[string]bool          // those that are there
	pending []uint64                 // scratch of the freelist
	failed  error                    // the first that lenient has skipped
}

// walk visits what a walker asks for and checks each page on the way: its
// number, kind and size, that it is met once, and that its keys ascend.
func (p *pageFile) walk(w *walker) error {
	w.p = p
	w.used = make([]uint64, p.head.pages/64+1)
	w.buckets = map[string]bool{}
	w.nused = 2
	if err := w.freelist(); err != nil && !w.skip(err) {
		return err
	}
	if err := w.tree("", p.head.root, nil, nil, 0); err != nil && !w.skip(err) {
		return err
	}
	for _, id := range w.pending {
		// bbolt would write over it.
		if w.used[id/64]&(1<<(id%64)) != 0 {
			return damagef("page %d is in use and free", id)
		}
	}
	return nil
}

func (w *walker) skip(err error) bool {
	if w.failed == nil {
		w.failed = err
	}
	return w.lenient
}

// freelist checks the list of free pages, which bbolt believes.
func (w *walker) freelist() error {
	if w.p.head.freelist == noFreelist {
		return nil
	}
	buf, err := w.page(w.p.head.freelist, 0, freelistPage)
	if err != nil {
		return err
	}
	n, ids := uint64(binary.NativeEndian.Uint16(buf[10:])), buf[pageHeader:]
	if n == manyFreePages {
		n, ids = binary.NativeEndian.Uint64(ids), ids[freelistIDSize:]
	}
	if n > uint64(len(ids)/freelistIDSize) {
		return damagef("page %d: the list of free pages is longer than its page", w.p.head.freelist)
	}
	for i := range n {
		id := binary.NativeEndian.Uint64(ids[i*freelistIDSize:])
		if id < 2 || id >= w.p.head.pages {
			return damagef("page %d: free page %d doesn't exist", w.p.head.freelist, id)
		}
		w.pending = append(w.pending, id)
	}
	return nil
}

// page reads a page with what overflows from it.
func (w *walker) page(id uint64, depth int, kinds uint16) ([]byte, error) {
	p := w.p
	if id < 2 || id >= p.head.pages {
		return nil, damagef("page %d is outside of the file", id)
	}
	buf := w.room(depth, p.pageSize)
	if _, err := p.f.ReadAt(buf, int64(id)*p.pageSize); err != nil {
		return nil, damagef("page %d can't be read: %w", id, err)
	}
	kind, more := binary.NativeEndian.Uint16(buf[8:]), uint64(binary.NativeEndian.Uint32(buf[12:]))
	if binary.NativeEndian.Uint64(buf) != id || kind&kinds == 0 || kind&^kinds != 0 || kind == branchPage|leafPage {
		return nil, damagef("page %d isn't what it should be", id)
	}
	if more >= p.head.pages-id {
		return nil, damagef("page %d goes on behind the end of the file", id)
	}
	for i := id; i <= id+more; i++ {
		if w.used[i/64]&(1<<(i%64)) != 0 {
			return nil, damagef("page %d is used twice", i)
		}
		w.used[i/64] |= 1 << (i % 64)
		w.nused++
	}
	if more == 0 {
		return buf, nil
	}
	buf = w.room(depth, p.pageSize*int64(more+1))
	if _, err := p.f.ReadAt(buf, int64(id)*p.pageSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, damagef("page %d can't be read: %w", id, err)
	}
	return buf, nil
}

func (w *walker) room(depth int, size int64) []byte {
	if int64(cap(w.bufs[depth])) < size {
		w.bufs[depth] = make([]byte, size)
	}
	return w.bufs[depth][:size]
}

// tree visits a page and all below it. Keys are within [lo, hi), and the first
// is lo itself: bbolt finds a page in its parent by its first key, and where the
// two differ it would change the wrong entry.
func (w *walker) tree(bucket string, id uint64, lo, hi []byte, depth int) error {
	if depth >= maxTreeDepth {
		return damagef("page %d: the tree leads around in a circle", id)
	}
	buf, err := w.page(id, depth, branchPage|leafPage)
	if err != nil {
		return err
	}
	if binary.NativeEndian.Uint16(buf[8:]) == leafPage {
		return w.leaf(bucket, id, buf, lo, hi, depth)
	}
	n := int(binary.NativeEndian.Uint16(buf[10:]))
	if n == 0 {
		return damagef("page %d leads nowhere", id)
	}
	for i := range n {
		k, child, err := branchElement(buf, id, i, n)
		if err != nil {
			return err
		}
		next := hi
		if i+1 < n {
			if next, _, err = branchElement(buf, id, i+1, n); err != nil {
				return err
			}
		}
		if i == 0 && lo != nil && !bytes.Equal(k, lo) || bytes.Compare(k, lo) < 0 || next != nil && bytes.Compare(k, next) >= 0 {
			return damagef("page %d: its keys don't ascend", id)
		}
		if err := w.tree(bucket, child, k, next, depth+1); err != nil && !w.skip(err) {
			return err
		}
		lo = k
	}
	return nil
}

func branchElement(buf []byte, id uint64, i, n int) (k []byte, child uint64, err error) {
	at := pageHeader + i*elementSize
	if pageHeader+n*elementSize > len(buf) {
		return nil, 0, damagef("page %d: more entries than fit", id)
	}
	pos, size := uint64(binary.NativeEndian.Uint32(buf[at:])), uint64(binary.NativeEndian.Uint32(buf[at+4:]))
	from := uint64(at) + pos
	if from+size > uint64(len(buf)) {
		return nil, 0, damagef("page %d: entry %d lies outside", id, i)
	}
	return buf[from : from+size], binary.NativeEndian.Uint64(buf[at+8:]), nil
}

// leaf visits the records of a leaf page, or of a bucket that is small enough
// to stand in its parent's record.
func (w *walker) leaf(bucket string, id uint64, buf, lo, hi []byte, depth int) error {
	n := int(binary.NativeEndian.Uint16(buf[10:]))
	if pageHeader+n*elementSize > len(buf) {
		return damagef("page %d: more entries than fit", id)
	}
	for i := range n {
		at := pageHeader + i*elementSize
		flags := binary.NativeEndian.Uint32(buf[at:])
		pos := uint64(at) + uint64(binary.NativeEndian.Uint32(buf[at+4:]))
		ksize, vsize := uint64(binary.NativeEndian.Uint32(buf[at+8:])), uint64(binary.NativeEndian.Uint32(buf[at+12:]))
		if pos+ksize+vsize > uint64(len(buf)) || flags&^bucketElement != 0 {
			return damagef("page %d: entry %d lies outside", id, i)
		}
		k, v := buf[pos:pos+ksize], buf[pos+ksize:pos+ksize+vsize]
		if c := bytes.Compare(k, lo); c < 0 || c > 0 && i == 0 && lo != nil || c == 0 && i > 0 || hi != nil && bytes.Compare(k, hi) >= 0 {
			return damagef("page %d: its keys don't ascend", id)
		}
		lo = k
		err := w.element(bucket, id, flags&bucketElement != 0, k, v, depth)
		if err != nil && !w.skip(err) {
			return err
		}
	}
	return nil
}

func (w *walker) element(bucket string, id uint64, isBucket bool, k, v []byte, depth int) error {
	switch {
	case isBucket && bucket == "":
		return w.bucket(string(k), id, v, depth)
	case isBucket || bucket == "":
		return damagef("page %d: a bucket where none belongs, or none where one does", id)
	case w.fn == nil:
		return nil
	}
	return w.fn(bucket, k, v)
}

func (w *walker) bucket(name string, id uint64, v []byte, depth int) error {
	if len(v) < 16 {
		return damagef("page %d: bucket %q is cut short", id, name)
	}
	w.buckets[name] = true
	if w.only != nil && !w.only(name) {
		return nil
	}
	if root := binary.NativeEndian.Uint64(v); root != 0 {
		return w.tree(name, root, nil, nil, depth+1)
	}
	if len(v) < 16+pageHeader || binary.NativeEndian.Uint16(v[16+8:]) != leafPage {
		return damagef("page %d: bucket %q isn't what it should be", id, name)
	}
	return w.leaf(name, id, v[16:], nil, nil, depth)
}

// checkPages looks at all pages of a transaction's file, as bbolt's own check
// does; but it reads them, and so survives what it finds.
func (s *Store) checkPages(tx *bolt.Tx) error {
	p, err := openPages(s.path)
	if err != nil {
		return err
	}
	defer p.close()
	p.head.root = uint64(tx.Cursor().Bucket().Root())
	p.head.pages = uint64(tx.Size() / p.pageSize)
	p.head.freelist = noFreelist // the newest head's: it may be of a later transaction
	return p.walk(&walker{})
}

// damagef makes an error about the file as a whole.
func damagef(format string, args ...any) error {
	return &DamageError{Reason: fmt.Errorf(format, args...)}
}
