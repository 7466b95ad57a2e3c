package control

import (
	"context"

	"github.com/tabletop-emu/tabletop/engine"
)

// mostLarge is the largest number of rows measured for one map.
const mostLarge = 16

// rowLevels are limits for sizes of rows.
type rowLevels struct {
	large int64 // a row is marked from this size on
	huge  int64 // a row must not exceed this size
}

// lintLevels are the levels of the lint rule L41 row-too-large.
var lintLevels = rowLevels{large: 100 << 20, huge: 256 << 20}

// large is an oversized row.
type large struct {
	Key   Bytes `json:"key"`
	Bytes int64 `json:"bytes"`          // size of its qualifiers and values, all versions
	More  bool  `json:"more,omitempty"` // the row is beyond the limit, and was not read further
}

// largeRows returns the rows of at least l.large bytes among keys. It reads only rows that
// have a bucket of their own, in which requests moved at least that many bytes, and at most
// mostLarge rows.
func (l rowLevels) largeRows(ctx context.Context, db *engine.DB, table string, keys []bucket) ([]large, error) {
	found := []large{}
	looked := 0
	for _, k := range keys {
		if k.First.Base64 != k.Last.Base64 || k.Bytes < uint64(l.large) || looked == mostLarge {
			continue
		}
		looked++
		key, err := k.First.decode()
		if err != nil {
			return nil, err
		}
		size, more, err := l.rowBytes(ctx, db, table, key)
		if err != nil {
			return nil, err
		}
		if size >= l.large {
			found = append(found, large{Key: k.First, Bytes: size, More: more})
		}
	}
	return found, nil
}

// rowBytes adds up the sizes of a row's qualifiers and values. It stops above l.huge bytes,
// and more is then true.
func (l rowLevels) rowBytes(ctx context.Context, db *engine.DB, table string, key []byte) (size int64, more bool, err error) {
	scan, err := db.Scan(ctx, table, engine.ScanOptions{Spans: []engine.Span{{Start: key, End: append(key[:len(key):len(key)], 0)}}})
	if err != nil {
		return 0, false, err
	}
	if scan.NextRow() {
		for !more && scan.NextCell() {
			c := scan.Cell()
			size += int64(len(c.Qualifier) + len(c.Value))
			more = size > l.huge
		}
	}
	return size, more, scan.Close()
}
