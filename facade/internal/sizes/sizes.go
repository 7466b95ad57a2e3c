// Package sizes decides when the items of a table are counted, and remembers the counts.
//
// A write does not know whether it inserts, and to find out would cost it a read. So
// the items of a table are counted when someone asks: those of a small table there
// and then, those of a large one in the background, for whoever asks next. All that a
// write does for it is to raise a number in memory, which says that a count has aged.
//
// What other processes write, and what is written natively, nothing tells of. It
// shows when a count is too old: after smallEvery in a small table, and in a large
// one after largeEvery, if its Bigtable says that its size has changed.
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
	largeEvery = time.Minute // at most
)

// Count is how many items a table or an index has, and how many bytes they are by
// DynamoDB's rules.
type Count struct {
	Items int64 `json:"items"`
	Bytes int64 `json:"bytes"`
}

// Counts are those of a table and, by name, of its indexes.
type Counts struct {
	Count
	Indexes map[string]Count `json:"indexes,omitempty"`
}

// Table is what a process knows of the size of a table, through all changes of its
// definition.
type Table struct {
	// written grows with every write of this process that has ended, and with some
	// that wrote nothing.
	written atomic.Uint64
	// kept is the text of the last count of a large table that was kept, nil for
	// none.
	kept atomic.Pointer[[]byte]

	turn     chan struct{} // held while known is looked at, or a small table is counted
	known    *known
	counting bool      // in the background
	begun    time.Time // when a count in the background last was
}

// known is one count, with what was the case when it began.
type known struct {
	Counts
	large     bool
	at        time.Time // zero: it is not complete
	written   uint64
	version   string // of the definition
	sizeBytes int64  // as the Bigtable of a large table had it
}

// NewTable returns the Table of a table that was not counted yet.
func NewTable() *Table { return &Table{turn: make(chan struct{}, 1)} }

// Wrote ages the count. It is called when a write has ended, so that a count which
// began before it is not taken for one that saw it.
func (t *Table) Wrote() { t.written.Add(1) }

// Kept notes what Source.Keep last kept, in whichever process.
func (t *Table) Kept(text []byte) {
	if kept := t.kept.Load(); kept == nil || !bytes.Equal(*kept, text) {
		t.kept.Store(new(bytes.Clone(text)))
	}
}

// recall returns what was kept; a text that is no count is as good as none.
func (t *Table) recall() (counts Counts, ok bool) {
	kept := t.kept.Load()
	return counts, kept != nil && json.Unmarshal(*kept, &counts) == nil
}

// Source is a table as it is defined now.
type Source interface {
	// Version tells definitions apart.
	Version() string
	// Fresh reports whether what was counted stays so while nothing is written.
	Fresh() bool
	// Count counts up to most items of the table and of each index; 0 means unlimited.
	// It reports whether it counted all of them.
	Count(ctx context.Context, counts *Counts, most int64) (all bool, err error)
	// StoredBytes is how large its Bigtable says that it is.
	StoredBytes(ctx context.Context) (int64, error)
	// Keep keeps a text for the processes to come.
	Keep(ctx context.Context, text []byte) error
}

// Counter says how tables are counted.
type Counter struct {
	MostItems  int64 // of a small table
	Now        func() time.Time
	Log        *slog.Logger
	Background func(func(ctx context.Context)) // runs what no one waits for
}

// Now returns how many items a table and its indexes have: of a small table now, of
// a large one as last counted, which it has done again. What cannot be counted is as
// it was. Its error is that of ctx.
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

// Last returns what Now last did, without counting.
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

// isOf reports whether nothing that this process knows of has changed since.
func (t *Table) isOf(k *known, src Source) bool {
	return !k.at.IsZero() && k.written == t.written.Load() && k.version == src.Version()
}

// countLater counts a large table in the background, if it is time to. The turn is
// held.
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

// countLarge counts a table of any size, unless it is as it was when it was last
// counted, and has the count kept.
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
