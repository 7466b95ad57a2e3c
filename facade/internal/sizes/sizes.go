// Package sizes schedules the counting of a table's items, and caches the results.
//
// A write does not know whether it inserts an item, and would need a read to find out.
// Therefore tables are counted on demand: a small table at once, a large one in the
// background, for the next request. A write only increments a number in memory, which
// makes the count outdated.
//
// Writes of other processes and native writes do not change that number. Therefore a
// count also expires. The count of a small table expires after smallEvery. The count of a
// large table expires after largeEvery, if its Bigtable reports another size.
package sizes

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"time"
)

const (
	smallEvery = time.Second
	largeEvery = time.Minute // minimum time between two counts
)

// Count is the number of items in a table or an index, and their size in bytes by
// DynamoDB's rules.
type Count struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// Counts holds the counts of a table and of its indexes, by name.
type Counts struct {
	Count
	Indexes map[string]Count `json:"indexes,omitempty"`
}

// Table holds a process's knowledge of the size of a table. It survives changes to the table's
// definition.
type Table struct {
	// written grows with every finished write of this process, and with some that wrote
	// nothing.
	written atomic.Uint64
	// kept is the text of the last kept count of a large table; nil if unknown.
	kept atomic.Pointer[[]byte]

	turn     chan struct{} // held to read known or to count a small table
	known    *known
	counting bool      // in the background
	begun    time.Time // start of the last background count
}

// known is one count, with the circumstances at its start.
type known struct {
	Counts
	large     bool
	at        time.Time // zero: not complete
	written   uint64
	version   string // of the definition
	sizeBytes int64  // size of a large table in its Bigtable
}

// NewTable returns a Table that has no count yet.
func NewTable() *Table { return &Table{turn: make(chan struct{}, 1)} }

// Wrote makes the count outdated. Call it after a write has ended, since a count that
// began earlier may have missed the write.
func (t *Table) Wrote() { t.written.Add(1) }

// Kept records the text that any process last stored with Source.Keep.
func (t *Table) Kept(text []byte) {
	if kept := t.kept.Load(); kept == nil || !bytes.Equal(*kept, text) {
		t.kept.Store(new(bytes.Clone(text)))
	}
}

// recall returns the kept count; ok is false without a valid one.
func (t *Table) recall() (counts Counts, ok bool) {
	kept := t.kept.Load()
	return counts, kept != nil && json.Unmarshal(*kept, &counts) == nil
}

// Source is a table with its current definition.
type Source interface {
	// Version identifies the definition.
	Version() string
	// Fresh reports whether counts stay correct as long as nothing is written.
	Fresh() bool
	// Count counts the items of the table and of each index, up to most items each; 0
	// means no limit. It reports whether it counted all of them.
	Count(ctx context.Context, counts *Counts, most int64) (all bool, err error)
	// StoredBytes returns the size of the table in its Bigtable.
	StoredBytes(ctx context.Context) (int64, error)
	// Keep stores text that later processes can read.
	Keep(ctx context.Context, text []byte) error
}

// Counter configures how tables are counted.
type Counter struct {
	MostItems  int64 // maximum number of items in a small table
	Now        func() time.Time
	Log        *slog.Logger
	Background func(func(ctx context.Context)) // runs a function without waiting for it
}

// Now returns the counts of a table and its indexes. It counts a small table at once. For
// a large table it returns the last result, and starts another count in the background.
// If a count fails, Now returns the last result. It returns an error only if ctx ends.
func (t *Table) Now(ctx context.Context, c *Counter, src Source) (Counts, error) {
	if err := t.take(ctx); err != nil {
		return Counts{}, err
	}
	defer t.give()
	now := c.Now()
	if t.known == nil {
		t.known = &known{}
		t.known.Counts, t.known.large = t.recall()
	}
	if t.known.large {
		t.countLater(c, src, now)
		return t.known.Counts, nil
	}
	if src.Fresh() && t.isOf(t.known, src) && now.Sub(t.known.at) < smallEvery {
		return t.known.Counts, nil
	}
	counted := known{at: now, written: t.written.Load(), version: src.Version()}
	all, err := src.Count(ctx, &counted.Counts, c.MostItems)
	switch {
	case ctx.Err() != nil:
		return Counts{}, ctx.Err()
	case err != nil:
		c.warn(ctx, err)
	case all:
		t.known = &counted
	default:
		t.known = &known{Counts: counted.Counts, large: true}
		t.countLater(c, src, now)
	}
	return t.known.Counts, nil
}

// Last returns the last result of Now without counting.
func (t *Table) Last(ctx context.Context) (Counts, error) {
	if err := t.take(ctx); err != nil {
		return Counts{}, err
	}
	defer t.give()
	if t.known != nil {
		return t.known.Counts, nil
	}
	counts, _ := t.recall()
	return counts, nil
}

func (t *Table) take(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Table) give() { <-t.turn }

// isOf reports whether, as far as this process knows, nothing has changed since k.
func (t *Table) isOf(k *known, src Source) bool {
	return !k.at.IsZero() && k.written == t.written.Load() && k.version == src.Version()
}

// countLater starts a count of a large table in the background, if one is due. The caller
// holds turn.
func (t *Table) countLater(c *Counter, src Source, now time.Time) {
	if t.counting || !t.begun.IsZero() && now.Sub(t.begun) < largeEvery {
		return
	}
	t.counting, t.begun = true, now
	last := t.known
	c.Background(func(ctx context.Context) {
		counted, err := t.countLarge(ctx, c, src, last, now)
		if err != nil && ctx.Err() == nil {
			c.warn(ctx, err)
		}
		t.turn <- struct{}{}
		defer t.give()
		if t.counting = false; err == nil {
			t.known = counted
		}
	})
}

// countLarge counts a table of any size and keeps the result, unless the table is unchanged
// since last.
func (t *Table) countLarge(ctx context.Context, c *Counter, src Source, last *known, now time.Time) (*known, error) {
	counted := &known{at: now, written: t.written.Load(), version: src.Version()}
	var err error
	if counted.sizeBytes, err = src.StoredBytes(ctx); err != nil {
		return nil, err
	}
	if t.isOf(last, src) && last.sizeBytes == counted.sizeBytes {
		counted.Counts, counted.large = last.Counts, last.large
		return counted, nil
	}
	if _, err := src.Count(ctx, &counted.Counts, 0); err != nil {
		return nil, err
	}
	counted.large = counted.Items > c.MostItems
	text, err := json.Marshal(&counted.Counts)
	if err != nil {
		return nil, err
	}
	return counted, src.Keep(ctx, text)
}

func (c *Counter) warn(ctx context.Context, err error) {
	c.Log.WarnContext(ctx, "counting the items of a table", "error", err)
}
