package run

import (
	"bytes"
	"context"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// maxSampledKeys is how many row keys of a table decide where it is cut.
const maxSampledKeys = 10_000

// keySample is a sample of row keys: those of the smallest hashes, so that it is the same
// for the same keys in any order.
type keySample []sampledKey

type sampledKey struct {
	hash extsort.Hash
	row  []byte
}

func (s *keySample) add(row []byte) {
	*s = append(*s, sampledKey{extsort.HashOf(row), bytes.Clone(row)})
	if len(*s) >= 2*maxSampledKeys {
		s.trim()
	}
}

func (s *keySample) trim() {
	slices.SortFunc(*s, func(a, b sampledKey) int { return a.hash.Compare(b.hash) })
	*s = slices.CompactFunc(*s, func(a, b sampledKey) bool { return a.hash == b.hash })
	*s = (*s)[:min(len(*s), maxSampledKeys)]
}

// cuts are the keys at which n ranges of about as many rows begin, but for the first;
// fewer where there are not so many keys.
func (s *keySample) cuts(n int) (keys [][]byte) {
	s.trim()
	rows := make([][]byte, len(*s))
	for i, k := range *s {
		rows[i] = k.row
	}
	slices.SortFunc(rows, bytes.Compare)
	for i := 1; i < n && len(rows) > 1; i++ {
		key := rows[i*len(rows)/n]
		if !bytes.Equal(key, rows[0]) && (len(keys) == 0 || !bytes.Equal(key, keys[len(keys)-1])) {
			keys = append(keys, key)
		}
	}
	return keys
}

// cuts are the keys at which the tables of the job are cut into n ranges, by table. They
// are those of the whole source, whatever the part.
func (j tablePart) cuts(n int) map[string][][]byte {
	samples := map[string]*keySample{}
	for _, table := range j.Targets() {
		samples[table] = &keySample{}
	}
	p := Placed{index: make([]lens.Placed, len(j.Indexes))}
	for e := range j.whole.Sample() {
		if err := j.place(e, &p); err != nil {
			continue // who lays out all items tells of it
		}
		samples[j.Report.Target].add(p.Base.Row)
		for i, x := range j.Indexes {
			if p.index[i].Row != nil {
				samples[x.TargetTable()].add(p.index[i].Row)
			}
		}
	}
	cuts := map[string][][]byte{}
	for table, s := range samples {
		cuts[table] = s.cuts(n)
	}
	return cuts
}

// splitTables has the tables that the load makes begin in as many tablets as it is to
// have. Tables that are there stay as they are.
func (j tablePart) splitTables(ctx context.Context, b *Bigtable) error {
	if j.Options.Tablets < 2 {
		return nil
	}
	if there, err := b.hasTable(ctx, j.Report.Target); there || err != nil {
		return err
	}
	if b.splits == nil {
		b.splits = map[string][][]byte{}
	}
	for table, keys := range j.cuts(j.Options.Tablets) {
		b.splits[table] = keys
	}
	return nil
}

// spansOf are the ranges that begin at cuts, so that they have all keys.
func spansOf(cuts [][]byte) []layout.Span {
	spans := []layout.Span{{}}
	for _, key := range cuts {
		spans[len(spans)-1].End = key
		spans = append(spans, layout.Span{Start: key})
	}
	return spans
}

// inSpan reports whether a key is in a span.
func inSpan(s layout.Span, key []byte) bool {
	return bytes.Compare(key, s.Start) >= 0 && (len(s.End) == 0 || bytes.Compare(key, s.End) < 0)
}
