package spool_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/tgspool/tgspool/internal/spool"
)

// TestPages_HealthyFilesAreWhole changes a file at random, in ways that split,
// merge and move its pages, and looks at it after each transaction: what bbolt
// writes is never called damaged.
func TestPages_HealthyFilesAreWhole(t *testing.T) {
	for _, unsynced := range []bool{true, false} {
		for seed := range uint64(2) {
			t.Run(fmt.Sprint(unsynced, seed), func(t *testing.T) {
				path := filepath.Join(t.TempDir(), "bolt.db")
				db, err := bolt.Open(path, 0o600, &bolt.Options{PageSize: 4096, NoFreelistSync: unsynced, FreelistType: bolt.FreelistMapType, NoSync: true})
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = db.Close() }()
				r := rand.New(rand.NewPCG(seed, 3))
				for i := range 60 {
					if err := db.Update(func(tx *bolt.Tx) error { return stir(tx, r, i) }); err != nil {
						t.Fatal(err)
					}
					if err := spool.CheckPages(path); err != nil {
						t.Fatalf("after transaction %d: %v", i, err)
					}
				}
			})
		}
	}
}

// stir does some of everything to a few buckets.
func stir(tx *bolt.Tx, r *rand.Rand, i int) error {
	for n := range 4 {
		name := []byte{byte('a' + n)}
		b, err := tx.CreateBucketIfNotExists(name)
		if err != nil {
			return err
		}
		b.FillPercent = []float64{0.5, 0.9}[r.IntN(2)]
		for range r.IntN(300) {
			k := binary.BigEndian.AppendUint64(nil, uint64(r.IntN(5000)))
			if err := b.Put(k, make([]byte, r.IntN(50)*r.IntN(50)*r.IntN(10))); err != nil {
				return err
			}
		}
		if r.IntN(3) == 0 { // a run of keys, first ones too
			c := b.Cursor()
			from := binary.BigEndian.AppendUint64(nil, uint64(r.IntN(3)*r.IntN(3000)))
			for k, _ := c.Seek(from); k != nil && r.IntN(600) > 0; k, _ = c.Next() {
				if err := c.Delete(); err != nil {
					return err
				}
			}
		}
		if i%40 == 39 && n == 0 {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
	}
	return nil
}
