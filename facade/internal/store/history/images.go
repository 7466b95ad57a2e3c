package history

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"maps"
	"slices"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// A scratch table has one row per item, with the position and the image for each kind of
// image.
const scratchFamily = "i"

var columnEarliest, columnLatest = []byte("e"), []byte("l")

// positionBytes is the length of a position in a cell.
const positionBytes = 8 + 2

// images are the images of items from their earliest records, or from their latest.
type images struct {
	bt     *btclient.Client
	table  string
	t      *tabledef.Table
	column []byte
	latest bool
	n      int // number of images
}

// supersedes reports whether a record replaces another: by kind, the earlier or the later
// one.
func (s *images) supersedes(at, other changelog.Position) bool {
	if s.latest {
		return at.Compare(other) > 0
	}
	return at.Compare(other) < 0
}

func (s *images) create(ctx context.Context) error {
	_, err := s.bt.EnsureTable(ctx, s.table, []layout.Family{{Name: scratchFamily, GC: layout.GC{Versions: 1}}}, nil)
	return err
}

func (s *images) row(key attr.Item) []byte { return s.t.Key.AppendKey(nil, key) }

// positions returns the positions of the existing images in rows.
func (s *images) positions(ctx context.Context, rows [][]byte) (map[string]changelog.Position, error) {
	there := map[string]changelog.Position{}
	if s.n == 0 || len(rows) == 0 {
		return there, nil
	}
	keys := slices.Clone(rows)
	slices.SortFunc(keys, bytes.Compare)
	positions := btclient.OfColumn(scratchFamily, positionColumn(s.column))
	for row, err := range s.bt.Read(ctx, btclient.Read{Table: s.table, Keys: keys, Filter: btclient.Chain(positions, btclient.Newest(1))}) {
		if err != nil {
			return nil, err
		}
		for _, c := range row.Cells {
			if there[string(row.Key)], err = positionOf(c.Value); err != nil {
				return nil, fmt.Errorf("row %q of table %s: %w", row.Key, s.table, err)
			}
		}
	}
	return there, nil
}

// positionColumn returns the column of the positions, which are read more often than the
// images.
func positionColumn(column []byte) []byte { return append(bytes.Clone(column), 'p') }

// changes yields the changes from two kinds of images.
func changes(ctx context.Context, earliest *images) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for row, err := range earliest.bt.Read(ctx, btclient.Read{Table: earliest.table, Spans: []layout.Span{{}}, Filter: btclient.Newest(1)}) {
			var c Change
			if err == nil {
				var ok bool
				if c.Key, _, ok = tabledef.CutKey(earliest.t.Key, row.Key); !ok {
					err = fmt.Errorf("row %q of table %s is not a key", row.Key, earliest.table)
				}
			}
			for _, cell := range row.Cells {
				switch string(cell.Qualifier) {
				case string(columnEarliest):
					c.Old, err = imageOf(cell.Value)
				case string(columnLatest):
					c.New, err = imageOf(cell.Value)
				case string(positionColumn(columnLatest)):
					c.At, err = positionOf(cell.Value)
				}
				if err != nil {
					break
				}
			}
			if !yield(c, err) || err != nil {
				return
			}
		}
	}
}

func positionOf(value []byte) (p changelog.Position, err error) {
	if len(value) != positionBytes {
		return p, fmt.Errorf("a position has %d bytes, expected %d", len(value), positionBytes)
	}
	return changelog.Position{Sequence: binary.BigEndian.Uint64(value), Writer: binary.BigEndian.Uint16(value[8:])}, nil
}

// has reports which keys have images.
func (s *images) has(ctx context.Context, keys []attr.Item) ([]bool, error) {
	rows := make([][]byte, len(keys))
	for i, key := range keys {
		rows[i] = s.row(key)
	}
	there, err := s.positions(ctx, rows)
	has := make([]bool, len(keys))
	for i, row := range rows {
		_, has[i] = there[string(row)]
	}
	return has, err
}

// all yields the images; the zero value means that the item did not exist.
func (s *images) all(ctx context.Context) iter.Seq2[changelog.Image, error] {
	return func(yield func(changelog.Image, error) bool) {
		if s.n == 0 {
			return
		}
		for row, err := range s.bt.Read(ctx, btclient.Read{Table: s.table, Spans: []layout.Span{{}}, Filter: btclient.Chain(btclient.OfColumn(scratchFamily, s.column), btclient.Newest(1))}) {
			var i changelog.Image
			if err == nil && len(row.Cells) == 1 {
				i, err = imageOf(row.Cells[0].Value)
			}
			if !yield(i, err) || err != nil {
				return
			}
		}
	}
}

func imageOf(value []byte) (i changelog.Image, err error) {
	if len(value) == 0 {
		return i, nil
	}
	size, n := binary.Uvarint(value)
	if n <= 0 || size > 1<<31 {
		return i, fmt.Errorf("the size at the start of a stored image of %d bytes is invalid", len(value))
	}
	return changelog.Image{JSON: value[n:], Size: int(size)}, nil
}

// found is an image that is not written yet.
type found struct {
	at    changelog.Position
	image changelog.Image
}

// batch collects images to write together.
type batch struct {
	to        *images
	most      int              // rows
	mostBytes int              // of rows and images
	found     map[string]found // by row
	bytes     int
}

// add adds the image of a record, if it supersedes the image of its key.
func (b *batch) add(ctx context.Context, key attr.Item, at changelog.Position, image changelog.Image) error {
	row := string(b.to.row(key))
	if was, ok := b.found[row]; ok && !b.to.supersedes(at, was.at) {
		return nil
	}
	b.found[row] = found{at, changelog.Image{JSON: bytes.Clone(image.JSON), Size: image.Size}}
	if b.bytes += len(row) + len(image.JSON); len(b.found) < b.most && b.bytes < b.mostBytes {
		return nil
	}
	return b.flush(ctx)
}

func (b *batch) flush(ctx context.Context) error {
	if len(b.found) == 0 {
		return nil
	}
	rows := make([][]byte, 0, len(b.found))
	for row := range maps.Keys(b.found) {
		rows = append(rows, []byte(row))
	}
	there, err := b.to.positions(ctx, rows)
	if err != nil {
		return err
	}
	var entries []*btpb.MutateRowsRequest_Entry
	for _, row := range rows {
		f := b.found[string(row)]
		before, ok := there[string(row)]
		if ok && !b.to.supersedes(f.at, before) {
			continue
		}
		if !ok {
			b.to.n++
		}
		position := binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint64(nil, f.at.Sequence), f.at.Writer)
		var value []byte
		if f.image.JSON != nil {
			value = append(binary.AppendUvarint(nil, uint64(f.image.Size)), f.image.JSON...)
		}
		entries = append(entries, &btpb.MutateRowsRequest_Entry{RowKey: row, Mutations: []*btpb.Mutation{
			btclient.SetCell(scratchFamily, positionColumn(b.to.column), 0, position),
			btclient.SetCell(scratchFamily, b.to.column, 0, value),
		}})
	}
	clear(b.found)
	b.bytes = 0
	if len(entries) == 0 {
		return nil
	}
	refused, err := b.to.bt.MutateRows(ctx, b.to.table, entries)
	if err == nil && len(refused) > 0 {
		err = refused[0].Err
	}
	return err
}
