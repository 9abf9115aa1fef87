package spool

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
)

const (
	// reserveSize is the size in bytes of spool.reserve, which is given up when
	// the disk is full, so that what is queued can still be delivered and recorded.
	reserveSize = 2 << 20
	// roomAgain is how many bytes must be free before a full store takes
	// everything again: the reserve, and enough not to be full at once.
	roomAgain = reserveSize + 4<<20
	// smallJob is the size in bytes up to which jobs are tried even when the
	// store is full, so that "disk full" can be said.
	smallJob = 8 << 10
	// drainRoom is by how many bytes the file may pass its limit for the sake of
	// what ends something: at the limit even a claim needs pages, and bbolt wants
	// growBy more than it uses.
	drainRoom = 4 * growBy
)

// filling says what a transition adds. A full store turns away what adds much;
// what ends something is always tried.
type filling int

const (
	ends      filling = iota // it settles, decides or removes
	addsSmall                // jobs of at most smallJob bytes in all
	addsMuch                 // anything else that grows the store
)

// room is what the writer knows of the space that is left.
type room struct {
	limit        int64 // of the file, in bytes
	disk         bool  // the disk is full
	freeWhenFull int64 // what the file system called free then
	tryAt        int64 // when a disk that seems to have room is tried again
	pause        time.Duration
	size         bool // the file is near its limit
	over         bool // it is at its limit
}

func (s *Store) reservePath() string { return filepath.Join(s.Dir(), "spool.reserve") }

// keepReserve makes sure that the reserve is there. A disk that has no room for
// it now is tried again when the store has been full and isn't any more.
func (s *Store) keepReserve() {
	if fi, err := os.Stat(s.reservePath()); err == nil && fi.Size() == reserveSize {
		return
	}
	if err := writeReserve(s.reservePath()); err != nil {
		_ = os.Remove(s.reservePath())
		s.log.Warn("there is no room for the reserve", slog.Any("err", err))
	}
}

// writeReserve fills a file with something that no file system stores for free.
func writeReserve(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	block := make([]byte, 64<<10)
	for i := range block {
		block[i] = byte(i*7 + i>>8)
	}
	for n := 0; n < reserveSize && err == nil; n += len(block) {
		_, err = f.Write(block)
	}
	return errors.Join(err, f.Sync(), f.Close())
}

// admit answers at once what a full store doesn't take, and returns the rest.
func (s *Store) admit(batch []*op) []*op {
	if s.room.disk && s.roomIsBack() {
		s.room.disk = false
		s.keepReserve()
		s.log.Info("the disk has room again")
	}
	switch {
	case s.room.over, s.room.disk && s.spare() < reserveSize/2:
		return turnAway(batch, addsSmall)
	case s.room.disk, s.room.size:
		return turnAway(batch, addsMuch)
	}
	return batch
}

// roomIsBack looks whether a full disk isn't full any more. Where the file
// system says that there is room and takes nothing (a quota), only another try
// can tell, each later than the last.
func (s *Store) roomIsBack() bool {
	free, now := s.disk.free(), s.clock.now()
	if free < roomAgain || free < s.room.freeWhenFull+roomAgain/2 && now < s.room.tryAt {
		return false
	}
	return true
}

// spare is what is left for ending what is queued, in bytes: free space, and
// free pages of the file.
func (s *Store) spare() int64 {
	stats := s.db.Stats()
	return s.disk.free() + int64(stats.FreePageN+stats.PendingPageN)*int64(s.db.Info().PageSize)
}

// turnAway answers all that adds at least as much as told with ErrFull.
func turnAway(batch []*op, least filling) []*op {
	kept := batch[:0:0]
	for _, o := range batch {
		if o.adds < least {
			kept = append(kept, o)
			continue
		}
		o.done <- ErrFull
	}
	return kept
}

// noRoom answers a commit that found no room: the reserve is given up, and what
// adds most is turned away. It returns what is worth another try, and false
// when nothing is left to give way.
func (s *Store) noRoom(batch []*op) ([]*op, bool) {
	if !s.room.disk {
		s.room.disk = true
		s.room.freeWhenFull = s.disk.free()
		s.room.pause = min(max(2*s.room.pause, 15*time.Second), 5*time.Minute)
		s.room.tryAt = s.clock.now() + int64(s.room.pause)
		s.health.full.Store(true)
		s.log.Error("the disk is full: nothing new is taken, what is queued still goes out", slog.String("path", s.Dir()))
		_ = os.Remove(s.reservePath())
		return turnAway(batch, addsMuch), true
	}
	for _, least := range []filling{addsMuch, addsSmall} {
		if kept := turnAway(batch, least); len(kept) < len(batch) {
			return kept, true
		}
	}
	return batch, false
}

// A file from syncedFrom bytes on has its list of free pages written with each
// commit (a page more), since making it anew at the next start would mean to
// read the whole file. A list longer than syncedFree pages costs more than that
// start: after a mass deletion it is left out until it has been used up.
const (
	syncedFrom = 64 << 20
	syncedFree = 4096
)

// measure looks after a commit how near the file is to its limit, and whether
// the list of free pages is to be written with the next one.
func (s *Store) measure(size int64) {
	stats := s.db.Stats()
	free := stats.FreePageN + stats.PendingPageN
	s.db.NoFreelistSync = size < syncedFrom || free > syncedFree
	used := size - int64(free)*int64(s.db.Info().PageSize)
	was := s.room.size
	// From nine tenths on only what ends something goes on, with a margin, so
	// that it doesn't flutter.
	s.room.size = used > s.room.limit/10*9 || was && used > s.room.limit/100*85
	s.room.over = used > s.room.limit/100*97
	s.health.full.Store(s.room.disk || s.room.size)
	if s.room.size && !was {
		s.log.Error("the spool is near its max_size: nothing new is taken, what is queued still goes out",
			slog.Int64("count", used), slog.String("path", s.path))
	} else if was && !s.room.size {
		s.log.Info("the spool has room again", slog.Int64("count", used))
	}
}

// disk is what the writer asks of the file system; tests let it fail.
type disk struct {
	commit func(*bolt.Tx) error
	free   func() int64 // bytes
}

// freeBytes is the free space of the store's file system, 0 when unknown.
func (s *Store) freeBytes() int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(s.Dir(), &fs); err != nil {
		return 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize) //nolint:unconvert // the fields' types differ between architectures
}
