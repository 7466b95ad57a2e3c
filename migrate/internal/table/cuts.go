package table

import (
	"bytes"
	"slices"

	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
)

// maxSampledKeys bounds the row keys that determine the cuts of a table.
const maxSampledKeys = 10_000

// keySample is a sample of row keys: those with the smallest hashes, so that it does not depend
// on their order.
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

// cuts returns the keys that divide the table into n ranges of about as many rows, or fewer
// ranges if there are too few keys.
func (s *keySample) cuts(n int) (keys [][]byte) {
	s.trim()
	rows := make([][]byte, len(*s))
	for i, k := range *s {
		rows[i] = k.row
	}
	slices.SortFunc(rows, bytes.Compare)
	keys = parts.EvenCuts(rows, n)
	if len(keys) > 0 && bytes.Equal(keys[0], rows[0]) { // nothing is before it
		return keys[1:]
	}
	return keys
}

// RangesOf divides each table of the job into at most n ranges.
func (j *Job) RangesOf(n int) parts.Ranges { return parts.RangesOf(j.Cuts(n)) }

// Cuts returns, by table id, the keys that divide each table of the job into at most n
// ranges. They depend on the whole source, not on the part.
func (j *Job) Cuts(n int) map[string][][]byte {
	samples := map[string]*keySample{}
	for _, table := range j.Targets() {
		samples[table] = &keySample{}
	}
	p := Placed{Index: make([]lens.Placed, len(j.Indexes))}
	for e := range j.whole.Sample() {
		if err := j.place(e, nil, &p); err != nil {
			continue // reported when all items are laid out
		}
		samples[j.Report.Target].add(p.Base.Row)
		for i, x := range j.Indexes {
			if p.Index[i].Row != nil {
				samples[x.TargetTable()].add(p.Index[i].Row)
			}
		}
	}
	cuts := map[string][][]byte{}
	for table, s := range samples {
		cuts[table] = s.cuts(n)
	}
	return cuts
}
