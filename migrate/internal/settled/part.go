package settled

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/layout"
	ms "github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/internal/phrase"
	compared "github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/internal/follow"
	"github.com/tabletop-emu/tabletop/migrate/internal/parts"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// part is a part of a verification. Each part reads a share of the source and a range of the rows,
// each once, and saves a hash of every item. The keys of the two sides are in unrelated orders, so the
// items are summed up by the hash of their key.
type part struct {
	source.Part
	saved *extsort.Sorter[hashed]
	n     int64 // saved
}

// hashed is an item of one side, or a changed key.
type hashed struct {
	id   attr.ItemID
	side byte
	item extsort.Hash
}

// The sides of hashed, in their order.
const (
	sideChanged = iota
	sideSource
	sideTarget
)

// maxHashedBytes bounds the memory for hashes.
const maxHashedBytes = 32 << 20

const hashedBytes = len(attr.ItemID{}) + 1 + extsort.HashBytes

func newHashes(dir string) *extsort.Sorter[hashed] {
	return &extsort.Sorter[hashed]{
		What: "the hashes of a large table", Dir: dir, Most: maxHashedBytes,
		Size:    func(hashed) int { return hashedBytes },
		Compare: func(a, b hashed) int { return cmp.Or(bytes.Compare(a.id[:], b.id[:]), cmp.Compare(a.side, b.side)) },
		Append: func(dst []byte, h hashed) []byte {
			return h.item.Append(append(append(dst, h.id[:]...), h.side))
		},
		Read: func(in *bufio.Reader) (h hashed, err error) {
			var text [hashedBytes]byte
			if _, err := io.ReadFull(in, text[:]); err != nil {
				return h, err
			}
			n := copy(h.id[:], text[:])
			h.side, h.item = text[n], extsort.ParseHash(text[n+1:])
			return h, nil
		},
	}
}

// buckets is the number of sums, one for each value of the first two bytes of an item's id.
const buckets = 1 << 16

// bucketOf returns the bucket of a key.
func bucketOf(id attr.ItemID) int { return int(id[0])<<8 | int(id[1]) }

// Identity describes a table, its source, stream and mapping: parts with another one belong to another
// verification.
func Identity(ctx context.Context, o Options) (string, error) {
	m := o.Mapping
	if m.ProveVersions() != nil {
		return "", source.Damaged(source.MappingRefused, source.Position{}, nil,
			"table %s: its mapping has rules whose items are copies of others (latest), which may be in another part: verify it without parts", m.SourceTable())
	}
	hash, err := follow.Hash(m)
	if err != nil {
		return "", err
	}
	s, err := statetable.Store{B: o.B, Table: m.TargetTable(), Now: o.Now}.State(ctx)
	return fmt.Sprintf("%q %q %s %q %q", m.SourceTable(), m.TargetTable(), hash, s.TableID, s.Stream), err
}

// partCheck is the check of a part.
const partCheck = "live comparison of a part"

// RunPart verifies a part of one table, and adds the result to the report. It saves hashes of the
// items in the folder.
func RunPart(ctx context.Context, o Options, of source.Part, folder parts.Folder) (done parts.Table, err error) {
	v := newVerification(o)
	v.part = &part{Part: of, saved: newHashes(o.Table.TempDir)}
	defer v.part.saved.Close()
	err = o.Report.Check(partCheck, v.store.Table, func() (string, error) {
		if done, err = v.runPart(ctx); err == nil {
			err = v.part.save(folder, v.store.Table)
		}
		return fmt.Sprintf("%s of the source, %s of the target", phrase.Counted(v.j.Report.Items, "item"), phrase.Counted(v.j.Report.Rows, "row")), err
	})
	o.Report.Tables = append(o.Report.Tables, v.j.Report)
	return done, err
}

func (v *verification) runPart(ctx context.Context) (done parts.Table, err error) {
	_, generation, err := v.begin(ctx)
	if err != nil {
		return done, err
	}
	split, err := v.store.Split(ctx, v.part.Of, func() (ms.Split, error) { return v.split(ctx) })
	if err != nil {
		return done, err
	}
	text, err := json.Marshal(split)
	if err != nil {
		return done, err
	}
	sum := sha256.Sum256(text)
	done.Live = &parts.Live{Generation: generation, Cuts: hex.EncodeToString(sum[:8]), Segments: v.o.Segments * v.part.Of, Consistent: v.o.Consistent}

	group, inner := errgroup.WithContext(ctx)
	for i := range v.o.Segments {
		group.Go(func() error {
			return v.pages(inner, (v.part.Index-1)*v.o.Segments+i, v.o.Segments*v.part.Of, v.saveItems, func(some []*suspect) error {
				return v.o.Table.Pace.Wait(inner, len(some))
			})
		})
	}
	if err := group.Wait(); err != nil {
		return done, err
	}
	for id, ranges := range parts.RangesOf(split.Cuts) {
		if v.part.Index > len(ranges) {
			continue // fewer ranges than parts
		}
		span := ranges[v.part.Index-1].Span
		if id == v.store.Table {
			err = v.partRows(ctx, span)
		}
		for _, x := range v.j.Indexes {
			if err == nil && x.TargetTable() == id {
				err = v.indexRows(ctx, x, span)
			}
		}
		if err != nil {
			return done, err
		}
	}
	if err := v.settleRest(ctx); err != nil {
		return done, err
	}
	if v.followed {
		if err := v.mark.await(ctx, v.last); err != nil {
			return done, err
		}
	}
	v.live.To, v.live.Rule, v.live.Compared = v.mark.last.Watermark, v.mark.last.Progress.Rule, 0
	done.Rows, done.Live.Last, done.Live.Seen = v.part.n, v.last, v.live
	return done, nil
}

// split divides the tables at the keys at which the Bigtable splits them.
func (v *verification) split(ctx context.Context) (ms.Split, error) {
	s := ms.Split{Cuts: map[string][][]byte{}, At: v.o.Now()}
	for _, id := range v.j.Targets() {
		keys, _, err := v.b.SampleKeys(ctx, id)
		if err != nil && status.Code(err) != codes.NotFound { // the comparison of entries reports a missing table
			return s, err
		}
		s.Cuts[id] = parts.EvenCuts(keys, v.part.Of)
	}
	return s, nil
}

// saveItems saves the hashes of items of the source, as the mapping returns them.
func (v *verification) saveItems(some []*suspect) error {
	m := v.o.Mapping
	for _, x := range some {
		h := hashed{id: x.id, side: sideSource} // without a hash, it differs from any row
		if placed, err := m.Place(x.item, v.j.Micros); err == nil {
			back, _ := m.Returned(x.item, placed)
			h.item = extsort.HashItem(back)
		}
		if err := v.part.add(h); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) add(h hashed) error {
	p.n++
	return p.saved.Add(h)
}

// partRows saves the hashes of the items of a range of rows, and compares the entries of indexes with
// them.
func (v *verification) partRows(ctx context.Context, span layout.Span) error {
	stored := map[*suspect]attr.Item{}
	flush := func() error {
		stale, err := v.stale(ctx, stored)
		stored = map[*suspect]attr.Item{}
		for x := range stale {
			if err == nil {
				err = v.suspect(ctx, x)
			}
		}
		return err
	}
	err := v.targetRows(ctx, func(id attr.ItemID, item attr.Item) error {
		if err := v.part.add(hashed{id, sideTarget, extsort.HashItem(item)}); err != nil || len(v.j.Indexes) == 0 {
			return err
		}
		x, err := v.newSuspect(item)
		if err != nil || x.at.Derived {
			return err
		}
		if stored[x] = item; len(stored) < chunk {
			return nil
		}
		return flush()
	}, span)
	if err != nil {
		return err
	}
	v.reportFaults()
	return flush()
}

// save writes the hashes to the folder, in order.
func (p *part) save(folder parts.Folder, table string) error {
	next, err := p.saved.Sorted()
	if err != nil {
		return err
	}
	file, err := folder.CreateRows(p.Part, table)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	var text []byte
	for {
		h, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			text = p.saved.Append(text[:0], h)
			_, err = w.Write(text)
		}
		if err != nil {
			return folder.PlaceRows(file, p.Part, table, err)
		}
	}
	return folder.PlaceRows(file, p.Part, table, w.Flush())
}

// FinishParts compares the sums of the parts of one table, in their order, and then the keys of the
// buckets whose sums differ. of is the joined report of the parts.
func FinishParts(ctx context.Context, o Options, folder parts.Folder, done []parts.Table, of *report.TableReport) error {
	v := newVerification(o)
	v.c.cells = true // the parts compared the cells of the rows that they read
	o.Report.Restate(partCheck, v.store.Table, fmt.Sprintf("%s of the source, %s of the target", phrase.Counted(of.Items, "item"), phrase.Counted(of.Rows, "row")))
	_, err := compared.Families(ctx, o.B, o.Report, v.j)
	if err == nil {
		err = o.Report.Check(CheckName, v.store.Table, func() (string, error) { return v.finishParts(ctx, folder, done) })
	}
	v.skipViews()
	of.Live = &v.live
	return err
}

func (v *verification) finishParts(ctx context.Context, folder parts.Folder, done []parts.Table) (string, error) {
	damaged := func(i int) error {
		return source.Damaged(source.CheckpointInvalid, source.Position{File: folder.File(source.Part{Index: i + 1, Of: len(done)}, parts.Done)}, nil, "the file is not the result of a part of a live table: remove it, and run the part again")
	}
	first, last := done[0].Live, time.Time{}
	if first == nil {
		return "", damaged(0)
	}
	from, begun := first.Generation, first.Seen.From
	v.o.Consistent = first.Consistent
	for i, p := range done {
		l := p.Live
		switch {
		case l == nil:
			return "", damaged(i)
		case l.Cuts != first.Cuts || l.Segments != first.Segments:
			return "", v.refused("part %d divides the table differently from part 1: run it again with the same --segments, or remove the files of all parts and run them again", i+1)
		}
		from, v.o.Consistent = min(from, l.Generation), v.o.Consistent && l.Consistent
		if last.Before(l.Last) {
			last = l.Last
		}
		if l.Seen.From.Before(begun) {
			begun = l.Seen.From
		}
		v.live.Suspects, v.live.Unsettled = v.live.Suspects+l.Seen.Suspects, v.live.Unsettled+l.Seen.Unsettled
		v.live.UnsettledKeys = append(v.live.UnsettledKeys, l.Seen.UnsettledKeys...)
	}
	verified, generation, err := v.begin(ctx)
	switch {
	case err != nil:
		return "", err
	case verified > from:
		return "", v.refused("another verification has deleted the keys that changed since these parts began: remove the files of the parts, and verify them again")
	}
	v.live.From = begun
	// From here on the generations before this one have all keys that changed between the scans.
	if v.followed {
		if err := v.mark.await(ctx, last); err != nil {
			return "", err
		}
	}
	before := v.o.Report.AllDifferences()
	differing, err := v.sums(ctx, folder, done, from, generation-1)
	if err == nil {
		err = v.changed(ctx, from, generation-1)
	}
	if err == nil && differing > 0 {
		err = v.all(ctx)
	}
	if err != nil {
		return "", err
	}
	if v.last.Before(last) {
		v.last = last
	}
	v.ends()
	different := v.o.Report.AllDifferences() - before
	for _, c := range v.o.Report.Checks { // also in the parts
		if c.Table == v.store.Table {
			different += c.Differences
		}
	}
	err = v.end(ctx, verified, generation, different)
	return fmt.Sprintf("%s; the sums of %s added up, and the keys of %d of %d buckets were compared one by one", v.detail(different == 0), phrase.Counted(int64(len(done)), "part"), differing, buckets), err
}

// sums adds up the hashes of all parts, without the keys that changed in the given generations. It
// sets the buckets whose sums differ, and returns their number.
func (v *verification) sums(ctx context.Context, folder parts.Folder, done []parts.Table, from, to uint64) (differing int, err error) {
	all := newHashes(v.o.Table.TempDir)
	defer all.Close()
	saved := int64(0)
	for i, p := range done {
		name := folder.RowsFile(source.Part{Index: i + 1, Of: len(done)}, v.store.Table)
		file, err := os.Open(name)
		if err != nil {
			return 0, source.Damaged(source.CheckpointInvalid, source.Position{File: name}, err, "the hashes of part %d/%d are missing: copy them, or run the part again", i+1, len(done))
		}
		all.Join(file)
		saved += p.Rows
	}
	for d, err := range v.store.DirtyIn(ctx, from, to) {
		if err != nil {
			return 0, err
		}
		key, err := attr.UnmarshalItem([]byte(d.Key))
		if err == nil {
			err = all.Add(hashed{id: v.o.Mapping.Key().ID(key)})
		}
		if err != nil {
			return 0, fmt.Errorf("reading the stored key of a changed item: %w", err)
		}
	}
	next, err := all.Sorted()
	if err != nil {
		return 0, err
	}
	sums := new([buckets][2]extsort.Bag)
	var changed *attr.ItemID
	for {
		h, err := next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if h.side == sideChanged {
			changed = &h.id
			continue
		}
		if saved--; h.side > sideTarget {
			return 0, source.Damaged(source.CheckpointInvalid, source.Position{File: folder.Dir}, nil, "the hashes of the parts are damaged: remove the files of the parts, and verify them again")
		}
		if changed == nil || h.id != *changed {
			sums[bucketOf(h.id)][h.side-sideSource].Add(h.item)
		}
	}
	if saved != 0 {
		return 0, source.Damaged(source.CheckpointInvalid, source.Position{File: folder.Dir}, nil, "the hashes of the parts are incomplete: remove the files of the parts, and verify them again")
	}
	v.buckets = new([buckets]bool)
	for i, s := range sums {
		if v.buckets[i] = s[0] != s[1]; v.buckets[i] {
			differing++
		} else {
			v.live.Compared += s[0].Count
		}
	}
	return differing, nil
}
