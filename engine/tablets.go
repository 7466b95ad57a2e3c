package engine

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// sampleBytes is the approximate amount of data between two split points derived from
	// size.
	sampleBytes = 8 << 20
	// Limits of the reads of SampleRowKeys that weigh data which is not in files yet.
	sampleReadCells = 4096
	sampleReadBytes = 1 << 20
)

// SampleRowKeys returns sample keys in ascending order, each with the approximate number of bytes
// before it. The samples are the table's initial split points, the keys in at, and keys that divide
// a large table into pieces of about 8 MiB. The keys need not be keys of rows. The last sample is
// the end of the table. The cost does not grow with the number of rows: it adds up the sizes of
// files, and reads a bounded part of the table.
func (d *DB) SampleRowKeys(ctx context.Context, table string, at ...[]byte) ([]Sample, error) {
	if err := d.enter(); err != nil {
		return nil, err
	}
	defer d.leave()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	t, err := d.lookup(table)
	if err != nil {
		return nil, err
	}
	samples, err := d.sample(t, sampleBytes, at)
	if err != nil {
		return nil, fmt.Errorf("engine: sample table %q: %w", table, err)
	}
	return samples, nil
}

// cut is a possible split point: a row prefix.
type cut struct {
	prefix  []byte
	initial bool
}

// sample computes the samples, with a split about every `every` bytes and at the keys of at.
func (d *DB) sample(t *table, every uint64, at [][]byte) ([]Sample, error) {
	cuts, err := d.fileCuts(t)
	if err != nil {
		return nil, err
	}
	for _, s := range slices.Concat(t.def.Splits, at) {
		if len(s) > 0 { // "" is the beginning of the table, which is not a split
			cuts = append(cuts, cut{prefix: appendRowPrefix(nil, t.def.ID, s), initial: true})
		}
	}
	slices.SortFunc(cuts, func(a, b cut) int {
		if c := bytes.Compare(a.prefix, b.prefix); c != 0 || a.initial == b.initial {
			return c
		}
		if a.initial {
			return -1
		}
		return 1
	})
	cuts = slices.CompactFunc(cuts, func(a, b cut) bool { return bytes.Equal(a.prefix, b.prefix) })

	begin := appendTablePrefix(nil, t.def.ID)
	end := prefixEnd(bytes.Clone(begin))
	w, err := d.weigh(begin, end)
	if err != nil {
		return nil, err
	}
	var samples []Sample
	var filed, sampled uint64 // bytes of files before the cut, and before the last sample
	from := begin
	for _, c := range append(cuts, cut{prefix: end, initial: true}) {
		n, err := d.pebble.EstimateDiskUsage(from, c.prefix)
		if err != nil {
			return nil, err
		}
		filed, from = filed+n, c.prefix
		if !c.initial && filed-sampled < every {
			continue
		}
		sampled = filed
		read, err := w.before(c.prefix)
		if err != nil {
			return nil, err
		}
		s := Sample{OffsetBytes: int64(max(filed, read))}
		if len(samples) > 0 {
			s.OffsetBytes = max(s.OffsetBytes, samples[len(samples)-1].OffsetBytes)
		}
		if !bytes.Equal(c.prefix, end) {
			s.RowKey = appendUnescaped([]byte{}, c.prefix[tablePrefixLen:])
		}
		samples = append(samples, s)
	}
	return samples, w.it.Close()
}

// fileCuts returns the first rows of the files that hold the table.
func (d *DB) fileCuts(t *table) ([]cut, error) {
	levels, err := d.pebble.SSTables()
	if err != nil {
		return nil, err
	}
	var cuts []cut
	for _, level := range levels {
		for i := range level {
			k := level[i].Smallest.UserKey
			n, _, ok := splitCellKey(k)
			if ok && binary.BigEndian.Uint32(k[1:]) == t.def.ID && n > tablePrefixLen+terminatorLen {
				cuts = append(cuts, cut{prefix: bytes.Clone(k[:n])})
			}
		}
	}
	return cuts, nil
}

// weighing reads the beginning of a table once, from cut to cut.
type weighing struct {
	it    *pebble.Iterator
	bytes uint64
	cells int
	valid bool
}

func (d *DB) weigh(lower, upper []byte) (*weighing, error) {
	it, err := d.pebble.NewIter(&pebble.IterOptions{LowerBound: lower, UpperBound: upper})
	if err != nil {
		return nil, err
	}
	return &weighing{it: it, valid: it.First()}, nil
}

// before reads on to key, within the limits, and returns the size of all cells read so far.
func (w *weighing) before(key []byte) (uint64, error) {
	for w.valid && w.cells < sampleReadCells && w.bytes < sampleReadBytes && bytes.Compare(w.it.Key(), key) < 0 {
		value, err := w.it.ValueAndErr()
		if err != nil {
			return 0, err
		}
		w.bytes += uint64(len(w.it.Key()) + len(value))
		w.cells++
		w.valid = w.it.Next()
	}
	return w.bytes, nil
}
