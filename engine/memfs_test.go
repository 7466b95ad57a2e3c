package engine

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/tabletop-emu/tabletop/engine/internal/memfs"
)

// TestMemFS_Pebble runs a store with its log on a memfs.FS through flushes, a
// checkpoint and opening again.
func TestMemFS_Pebble(t *testing.T) {
	t.Parallel()
	fs := memfs.New(func() time.Time { return time.Unix(1_700_000_000, 0) })
	t.Cleanup(fs.Release)
	open := func(dir string) *pebble.DB {
		d, err := pebble.Open(dir, &pebble.Options{FS: fs, MemTableSize: 64 << 10})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := open("db")
	value := bytes.Repeat([]byte("v"), 1000)
	for i := range 2000 {
		if err := d.Set([]byte{byte(i >> 8), byte(i)}, value, pebble.Sync); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(d.Checkpoint("copy"), d.Close()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"db", "copy"} {
		d := open(dir)
		it, err := d.NewIter(nil)
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for it.First(); it.Valid(); it.Next() {
			n++
		}
		if n != 2000 {
			t.Errorf("%s: %d keys, want 2000", dir, n)
		}
		if err := errors.Join(it.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
