package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/internal/store/segment"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/cells"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// The requests of one parallel scan come from many clients, at any time and
// through any process, and each must see the table cut at the same places. So
// the cuts are kept in the catalog, at s/<Bigtable table>, for as long as
// requests go on using them; a scan that begins when they have not been used
// for a while chooses new ones. A table too small to be worth it has none.
const (
	segmentsRowPrefix = "s/"

	// segmentsKept is how long cuts last without being used: the longest that a
	// client may pause between two pages of a parallel scan.
	segmentsKept = 15 * time.Minute
	// segmentsTouched is how often their use is recorded. In between a process
	// relies on the cuts that it knows.
	segmentsTouched = time.Minute

	// A table with fewer rows, and fewer bytes, is small.
	smallTableRows  = 256
	smallTableBytes = 512 << 10
	// countedTableBytes is the size up to which a table's keys are read to cut
	// it evenly; a larger one is cut where its Bigtable says.
	countedTableBytes = 64 << 20
)

var (
	segmentsVersion = []byte("version")
	segmentsCuts    = []byte("cuts")
)

// ErrOtherSegment says that a scan is to go on after a key that is not in its segment.
var ErrOtherSegment = errors.New("the start key belongs to another segment")

// segments keeps the cuts that this process knows, by Bigtable table, and those in
// the catalog.
type segments struct {
	*instance
	mu    sync.Mutex
	known map[string]knownCuts
	// using is held by the one that looks at the catalog, so that the requests
	// that begin a scan together do not all choose cuts.
	using chan struct{}
}

func newSegments(in *instance) *segments {
	return &segments{instance: in, known: map[string]knownCuts{}, using: make(chan struct{}, 1)}
}

type knownCuts struct {
	cuts    [][]byte
	touched time.Time
}

// lookup returns cuts whose use was recorded a short while ago: no process
// chooses others before segmentsKept has passed since.
func (sg *segments) lookup(table string, now time.Time) ([][]byte, bool) {
	sg.mu.Lock()
	defer sg.mu.Unlock()
	known, ok := sg.known[table]
	return known.cuts, ok && now.Sub(known.touched) < segmentsTouched
}

// remember notes cuts, and forgets those of tables that are not scanned any
// more.
func (sg *segments) remember(table string, known knownCuts) {
	sg.mu.Lock()
	defer sg.mu.Unlock()
	maps.DeleteFunc(sg.known, func(_ string, k knownCuts) bool { return known.touched.Sub(k.touched) >= segmentsTouched })
	sg.known[table] = known
}

// segmentsOf returns the segments of a scan over the rows of a Bigtable table
// whose items have the partition key hash. begins says that the request is the
// first of its segment.
func (sg *segments) segmentsOf(ctx context.Context, table string, hash []lens.KeyAttr, spans []layout.Span, total int, begins bool) (segment.Segments, error) {
	seg := segment.Segments{Total: total, Hash: hash}
	if total <= 1 {
		return seg, nil
	}
	var err error
	seg.Cuts, err = sg.cutsOf(ctx, table, spans, begins)
	return seg, err
}

// cutsOf returns the cuts of a table that are in use, or, for a scan that
// begins, new ones when there are none.
func (sg *segments) cutsOf(ctx context.Context, table string, spans []layout.Span, begins bool) ([][]byte, error) {
	if cuts, ok := sg.lookup(table, sg.o.Now()); ok {
		return cuts, nil
	}
	select {
	case sg.using <- struct{}{}:
		defer func() { <-sg.using }()
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for the segments of table %s: %w", table, ctx.Err())
	}
	for range maxWriteAttempts {
		now := sg.o.Now()
		if cuts, ok := sg.lookup(table, now); ok {
			return cuts, nil
		}
		kept, err := sg.readCuts(ctx, table)
		if err != nil {
			return nil, err
		}
		cuts := kept.cuts
		if kept.version == nil || begins && now.Sub(time.UnixMicro(kept.micros)) >= segmentsKept {
			if cuts, err = sg.chooseCuts(ctx, table, spans); err != nil {
				return nil, err
			}
		}
		ok, err := sg.writeCuts(ctx, table, kept, cuts)
		if err != nil {
			return nil, err
		}
		if ok {
			sg.remember(table, knownCuts{cuts, now})
			return cuts, nil
		}
	}
	return nil, fmt.Errorf("%w: the segments of table %s", ErrContended, table)
}

// keptCuts are cuts as the catalog has them.
type keptCuts struct {
	cuts    [][]byte
	version []byte // nil: there are none
	micros  int64  // when they were used
}

func segmentsRow(table string) []byte { return []byte(segmentsRowPrefix + table) }

func (sg *segments) readCuts(ctx context.Context, table string) (keptCuts, error) {
	row, err := sg.bt.ReadRow(ctx, sg.o.Catalog, segmentsRow(table), btclient.Chain(btclient.OfFamily(requestFamily), btclient.Newest(1)))
	if err != nil {
		return keptCuts{}, err
	}
	var kept keptCuts
	for _, c := range row.Cells {
		switch string(c.Qualifier) {
		case string(segmentsVersion):
			kept.version, kept.micros = c.Value, c.Timestamp
		case string(segmentsCuts):
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

// writeCuts keeps cuts, used now, unless others have come in the place of
// those that were read.
func (sg *segments) writeCuts(ctx context.Context, table string, old keptCuts, cuts [][]byte) (bool, error) {
	var text []byte
	for _, cut := range cuts {
		text = tabledef.AppendBytes(text, cut)
	}
	micros := max(sg.nowMicros(), old.micros)
	write := []*btpb.Mutation{
		btclient.DeleteRow(),
		btclient.SetCell(requestFamily, segmentsVersion, micros, sg.newToken()),
		btclient.SetCell(requestFamily, segmentsCuts, micros, text),
	}
	version := btclient.OfColumn(requestFamily, segmentsVersion)
	if old.version == nil {
		there, err := sg.bt.CheckAndMutate(ctx, sg.o.Catalog, segmentsRow(table), version, nil, write)
		return !there, err
	}
	return sg.bt.CheckAndMutate(ctx, sg.o.Catalog, segmentsRow(table), btclient.Chain(version, btclient.Newest(1), btclient.OfValue(old.version)), write, nil)
}

// chooseCuts cuts the rows of spans into pieces of about the same size.
func (sg *segments) chooseCuts(ctx context.Context, table string, spans []layout.Span) ([][]byte, error) {
	samples, size, err := sg.bt.SampleKeys(ctx, table)
	if err != nil {
		return nil, err
	}
	if size > countedTableBytes {
		inside := func(key []byte) bool {
			return len(cells.Intersect(spans, []layout.Span{{Start: key, End: append(bytes.Clone(key), 0)}})) > 0
		}
		samples = slices.DeleteFunc(samples, func(key []byte) bool { return !inside(key) })
		return segment.Cuts(samples), nil
	}
	var keys segment.Sample
	for row, err := range sg.bt.Read(ctx, btclient.Read{Table: table, Spans: spans, Filter: btclient.KeysOnly()}) {
		if err != nil {
			return nil, err
		}
		keys.Add(row.Key)
	}
	if keys.Rows < 2 || keys.Rows < smallTableRows && size < smallTableBytes {
		return nil, nil
	}
	return segment.Cuts(keys.Keys[1:]), nil
}
