package spool_test

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// otherBolt makes a bolt file that is no spool.
func otherBolt(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "other.db")
	editBolt(t, path, func(tx *bolt.Tx) error {
		b, err := tx.CreateBucketIfNotExists([]byte("somebody's"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), []byte("v"))
	})
	return path
}

// newerFile is a store that a later program has written.
func newerFile(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "spool.db")
	s, err := spool.Open(t.Context(), spool.Options{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	editBolt(t, path, func(tx *bolt.Tx) error {
		if err := tx.DeleteBucket([]byte("ready")); err != nil { // it may look quite different
			return err
		}
		return tx.Bucket([]byte("meta")).Put([]byte("schema"), binary.BigEndian.AppendUint64(nil, 99))
	})
	return mustRead(t, path)
}

func editBolt(t *testing.T, path string, edit func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Update(edit); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
