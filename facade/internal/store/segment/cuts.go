package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

const (
	// Kept is the time for which unused cuts are kept. It is the maximum pause of a
	// client between two pages of a parallel scan.
	Kept = 15 * time.Minute
	// Touched is the interval at which the use of cuts is recorded. Within it, a process
	// relies on its cached cuts.
	Touched = time.Minute

	// maxAttempts limits the attempts to store cuts that other processes keep changing.
	maxAttempts = 64

	// SmallRows is the minimum number of rows in a table that is cut.
	SmallRows  = 256
	smallBytes = 512 << 10
	// countedBytes is the size up to which all keys of a table are read to cut it evenly; a
	// larger one is cut at the sample keys of its Bigtable.
	countedBytes = 64 << 20
)

var (
	versionQualifier = []byte("version")
	cutsQualifier    = []byte("cuts")
)

// ErrContended means that other processes changed the cuts during every attempt to store
// new ones.
var ErrContended = errors.New("too many concurrent scans choose segments of one table")

// CutterOptions configures a Cutter.
type CutterOptions struct {
	Bigtable *btclient.Client
	Catalog  string // catalog table, which holds the cuts
	Family   string // family of the cuts; its cells expire some time after Kept
	Prefix   string // row-key prefix of the cuts
	Now      func() time.Time
	NewToken func() []byte // returns a token that is unique for each set of cuts
}

// Cutter chooses the cuts of Bigtable tables, stores them in the catalog, and caches
// them. It is safe for concurrent use.
type Cutter struct {
	o     CutterOptions
	mu    sync.Mutex
	known map[string]knownCuts
	// using is held during access to the catalog, so that requests that begin a scan together
	// do not all choose cuts.
	using chan struct{}
}

// NewCutter returns a Cutter with an empty cache.
func NewCutter(o CutterOptions) *Cutter {
	return &Cutter{o: o, known: map[string]knownCuts{}, using: make(chan struct{}, 1)}
}

type knownCuts struct {
	cuts    [][]byte
	touched time.Time
}

// lookup returns cached cuts with a recently recorded use: no process chooses others before
// Kept has passed since.
func (ct *Cutter) lookup(table string, now time.Time) ([][]byte, bool) {
	ct.mu.Lock()
	defer ct.mu.Unlock()
	known, ok := ct.known[table]
	return known.cuts, ok && now.Sub(known.touched) < Touched
}

// remember caches cuts, and drops those of tables that are no longer scanned.
func (ct *Cutter) remember(table string, known knownCuts) {
	ct.mu.Lock()
	defer ct.mu.Unlock()
	maps.DeleteFunc(ct.known, func(_ string, k knownCuts) bool { return known.touched.Sub(k.touched) >= Touched })
	ct.known[table] = known
}

// Of returns the segments for a scan of the rows that a read of a Bigtable table or view selects by
// spans. hash is the partition key of the items. begins means that the request is the first one of
// its segment.
func (ct *Cutter) Of(ctx context.Context, rows btclient.Read, hash []attr.KeyAttr, total int, begins bool) (Segments, error) {
	seg := Segments{Total: total, Hash: hash}
	if total <= 1 {
		return seg, nil
	}
	var err error
	seg.Cuts, err = ct.cutsOf(ctx, rows, begins)
	return seg, err
}

// cutsOf returns the current cuts of a table. If the table has no cuts and a scan begins, it
// chooses new ones.
func (ct *Cutter) cutsOf(ctx context.Context, rows btclient.Read, begins bool) ([][]byte, error) {
	table := rows.Table
	if cuts, ok := ct.lookup(table, ct.o.Now()); ok {
		return cuts, nil
	}
	select {
	case ct.using <- struct{}{}:
		defer func() { <-ct.using }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the segments of table %s: %w", table, ctx.Err())
	}
	for range maxAttempts {
		now := ct.o.Now()
		if cuts, ok := ct.lookup(table, now); ok {
			return cuts, nil
		}
		kept, err := ct.readCuts(ctx, table)
		if err != nil {
			return nil, err
		}
		cuts := kept.cuts
		if kept.version == nil || begins && now.Sub(time.UnixMicro(kept.micros)) >= Kept {
			if cuts, err = ct.chooseCuts(ctx, rows); err != nil {
				return nil, err
			}
		}
		ok, err := ct.writeCuts(ctx, table, kept, cuts)
		if err != nil {
			return nil, err
		}
		if ok {
			ct.remember(table, knownCuts{cuts, now})
			return cuts, nil
		}
	}
	return nil, fmt.Errorf("%w: the segments of table %s", ErrContended, table)
}

// keptCuts are cuts as stored in the catalog.
type keptCuts struct {
	cuts    [][]byte
	version []byte // nil: no cuts
	micros  int64  // time of the last use
}

func (ct *Cutter) row(table string) []byte { return []byte(ct.o.Prefix + table) }

func (ct *Cutter) readCuts(ctx context.Context, table string) (keptCuts, error) {
	row, err := ct.o.Bigtable.ReadRow(ctx, ct.o.Catalog, ct.row(table), btclient.Chain(btclient.OfFamily(ct.o.Family), btclient.Newest(1)))
	if err != nil {
		return keptCuts{}, err
	}
	var kept keptCuts
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case string(versionQualifier):
			kept.version, kept.micros = c.Value, c.Timestamp
		case string(cutsQualifier):
			for rest := c.Value; len(rest) > 0; {
				cut, behind, ok := tabledef.CutBytes(rest)
				if !ok {
					return kept, fmt.Errorf("the segments of table %s are damaged in the catalog", table)
				}
				kept.cuts, rest = append(kept.cuts, cut), behind
			}
		}
	}
	return kept, nil
}

// writeCuts stores cuts, used now, unless the stored ones have changed since they were read.
func (ct *Cutter) writeCuts(ctx context.Context, table string, old keptCuts, cuts [][]byte) (bool, error) {
	var text []byte
	for _, cut := range cuts {
		text = tabledef.AppendBytes(text, cut)
	}
	micros := max(ct.o.Now().UnixMilli()*1000, old.micros)
	guard := btclient.Guard{Family: ct.o.Family, Qualifier: versionQualifier, Was: old.version}
	return ct.o.Bigtable.Replace(ctx, ct.o.Catalog, ct.row(table), guard, ct.o.NewToken(), micros, btclient.SetCell(ct.o.Family, cutsQualifier, micros, text))
}

// chooseCuts divides rows into pieces of similar size.
func (ct *Cutter) chooseCuts(ctx context.Context, rows btclient.Read) ([][]byte, error) {
	sample := ct.o.Bigtable.SampleKeys
	if rows.View {
		sample = ct.o.Bigtable.SampleViewKeys
	}
	samples, size, err := sample(ctx, rows.Table)
	if err != nil {
		return nil, err
	}
	if size > countedBytes {
		inside := func(key []byte) bool {
			return len(cells.Intersect(rows.Spans, []layout.Span{{Start: key, End: append(bytes.Clone(key), 0)}})) > 0
		}
		samples = slices.DeleteFunc(samples, func(key []byte) bool { return !inside(key) })
		return Cuts(samples), nil
	}
	var keys Sample
	rows.Filter = btclient.KeysOnly()
	for row, err := range ct.o.Bigtable.Read(ctx, rows) {
		if err != nil {
			return nil, err
		}
		keys.Add(row.Key)
	}
	if keys.Rows < 2 || keys.Rows < SmallRows && size < smallBytes {
		return nil, nil
	}
	return Cuts(keys.Keys[1:]), nil
}
