// Package history computes what a table contained at a time, from its present contents and
// the log of its changes. Nothing was stored at that time.
//
// An item that has changed since was what the first of these changes found: the old
// image of the earliest record behind the time. Any other is what it is now. So the
// items are read, while they may be written, and after each few of them the log is
// read up to there; those that are found in it are left to the log. What the log says of
// them, one image an item, goes to a scratch table in the Bigtable: it may be as much as
// the table holds.
package history

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// The defaults of Options.BatchItems and Options.BatchBytes.
const (
	batchItems = 1000
	batchBytes = 2 << 20
)

// Log is the log of changes.
type Log interface {
	// Beyond returns a number above all records of changes whose calls have returned.
	Beyond(ctx context.Context) (uint64, error)
	// Floor returns one below which no record will be added.
	Floor(ctx context.Context) (uint64, error)
	// ReadSlots yields the records of all slots between two numbers, those of an item in
	// their order unless the number of slots shrank meanwhile. They share memory with
	// messages.
	ReadSlots(ctx context.Context, log *tabledef.Log, from, before uint64) iter.Seq2[changelog.Entry, error]
}

// Options are what a Reader works with.
type Options struct {
	Bigtable *btclient.Client
	// NewScratch returns an id for a scratch table, never the same.
	NewScratch func() string
	Wall       *clock.Clock
	Log        Log
	// Scan yields the items of a table in an order that stays the same.
	Scan func(ctx context.Context, t *tabledef.Table) iter.Seq2[layout.Stored, error]
	// BatchItems is how many items or records are held at once. Default: 1000.
	BatchItems int
	// BatchBytes is about how many bytes of items or records are held at once. Default: 2 MiB.
	BatchBytes int
	// Order compares the places of two keys in that order. An item that cannot be in
	// the table comes last.
	Order func(ctx context.Context, t *tabledef.Table, a, b attr.Item) (int, error)
}

// Reader reads tables as they were. It is safe for concurrent use.
type Reader struct{ o Options }

// New returns a Reader.
func New(o Options) *Reader {
	o.BatchItems, o.BatchBytes = cmp.Or(o.BatchItems, batchItems), cmp.Or(o.BatchBytes, batchBytes)
	return &Reader{o}
}

// ErrNoLog says that the changes of the table are not recorded with both images.
var ErrNoLog = errors.New("the changes of the table are not recorded")

// Before returns the number that the changes up to a time are below, its whole
// millisecond included.
func Before(t time.Time) uint64 {
	return changelog.SequenceAt(t.Truncate(time.Millisecond).Add(time.Millisecond))
}

// Item is an item of a table at a time.
type Item struct {
	// JSON is the text of its attributes, as attr.AppendItemJSON has it. The memory is
	// used again after the next item.
	JSON []byte
	// Size is that of attr.Item.Size.
	Size int

	stored layout.Stored // nil: it is to be decoded
}

// Attributes returns the item decoded.
func (i *Item) Attributes() (attr.Item, error) {
	if i.stored != nil {
		return i.stored.Item()
	}
	return attr.DecodeItem(jsontext.NewDecoder(bytes.NewReader(i.JSON)))
}

// Stored yields what is stored as it is.
func Stored(all iter.Seq2[layout.Stored, error]) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		var i Item
		for stored, err := range all {
			if i.stored = stored; err == nil {
				var sizes attr.Sizes
				i.JSON, sizes, err = stored.AppendJSON(i.JSON[:0])
				i.Size = sizes.Item
			}
			if !yield(i, err) || err != nil {
				return
			}
		}
	}
}

// NewScratch returns the id of a scratch table that nobody has. Who works on a job notes
// it before Items makes the table, so that the next can drop it.
func (r *Reader) NewScratch() string { return r.o.NewScratch() }

// DropScratch removes what an earlier call left of a scratch table, which may not be
// there.
func (r *Reader) DropScratch(ctx context.Context, id string) error {
	return r.o.Bigtable.DropTable(ctx, id)
}

// Now returns a number that all changes are below whose calls have returned. Of those that
// return later, only some of other processes may be.
func (r *Reader) Now(ctx context.Context) (uint64, error) { return r.o.Log.Beyond(ctx) }

// Records yields the records of a table between two numbers, as Log.ReadSlots does, when
// all of them are there.
func (r *Reader) Records(ctx context.Context, t *tabledef.Table, from, before uint64) iter.Seq2[changelog.Entry, error] {
	return func(yield func(changelog.Entry, error) bool) {
		err := errNoImages(t)
		if err == nil {
			err = r.reach(ctx, before)
		}
		if err != nil {
			yield(changelog.Entry{}, err)
			return
		}
		r.o.Log.ReadSlots(ctx, t.Log, from, before)(yield)
	}
}

func errNoImages(t *tabledef.Table) error {
	if !t.Log.On() || !t.Log.HasImages() {
		return fmt.Errorf("%w: table %s", ErrNoLog, t.Name)
	}
	return nil
}

// floorPause comes between two looks at a floor that is held by writes under way.
const floorPause = time.Millisecond

// reach waits until no record will be added below a number.
func (r *Reader) reach(ctx context.Context, number uint64) error {
	for {
		floor, err := r.o.Log.Floor(ctx)
		if err != nil || floor >= number {
			return err
		}
		if err := r.o.Wall.Wait(ctx, floorPause); err != nil {
			return err
		}
	}
}

// Items yields the items that a table held when all changes below a number had been made,
// and none of the others, in any order. The table is written meanwhile as it may be. What
// was written natively since is as it is now: no log knows of it. Errors: ErrNoLog, also
// where the log begins behind the number.
func (r *Reader) Items(ctx context.Context, t *tabledef.Table, scratch string, before uint64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		p := &past{Reader: r, t: t, earliest: r.images(t, scratch, false)}
		err := errNoImages(t)
		if err == nil {
			// What was written before the log had both images is in the table.
			p.read = max(before, t.Log.Images)
			err = p.earliest.create(ctx)
		}
		if err == nil {
			err = p.items(ctx, yield)
			if dropErr := r.DropScratch(context.WithoutCancel(ctx), scratch); err == nil {
				err = dropErr
			}
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Item{}, err)
		}
	}
}

func (r *Reader) images(t *tabledef.Table, scratch string, latest bool) images {
	column := columnEarliest
	if latest {
		column = columnLatest
	}
	return images{bt: r.o.Bigtable, table: scratch, t: t, column: column, latest: latest}
}

// Change is what became of an item between two times.
type Change struct {
	Key      attr.Item
	Old, New changelog.Image    // at both; the zero value: there was none
	At       changelog.Position // of the last record between them
}

// Changes yields the items that were written between two numbers, each once, in any
// order: also those that are as they were. Errors: ErrNoLog.
func (r *Reader) Changes(ctx context.Context, t *tabledef.Table, scratch string, from, before uint64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		earliest, latest := r.images(t, scratch, false), r.images(t, scratch, true)
		err := earliest.create(ctx)
		if err == nil {
			err = r.gather(ctx, t, from, before, &earliest, &latest)
		}
		for c, readErr := range changes(ctx, &earliest) {
			if err = cmp.Or(err, readErr); err != nil {
				break
			}
			if !yield(c, nil) {
				err = errStop
				break
			}
		}
		if dropErr := r.DropScratch(context.WithoutCancel(ctx), scratch); err == nil {
			err = dropErr
		}
		if err != nil && !errors.Is(err, errStop) {
			yield(Change{}, err)
		}
	}
}

// gather finds the images at both ends of a part of the log.
func (r *Reader) gather(ctx context.Context, t *tabledef.Table, from, before uint64, earliest, latest *images) error {
	first, last := r.batch(earliest), r.batch(latest)
	for e, err := range r.Records(ctx, t, from, before) {
		var key attr.Item
		if err == nil {
			key, err = keyOfRecord(&e)
		}
		if err == nil {
			err = first.add(ctx, key, e.At, e.Old)
		}
		if err == nil {
			err = last.add(ctx, key, e.At, e.New)
		}
		if err != nil {
			return err
		}
	}
	return cmp.Or(first.flush(ctx), last.flush(ctx))
}

func (r *Reader) batch(to *images) *batch {
	return &batch{to: to, most: r.o.BatchItems, mostBytes: r.o.BatchBytes, found: map[string]found{}}
}

func keyOfRecord(e *changelog.Entry) (attr.Item, error) {
	key, err := attr.DecodeItem(jsontext.NewDecoder(bytes.NewReader(e.Key.JSON)))
	if err != nil {
		return nil, fmt.Errorf("the key of the record %v: %w", e.At, err)
	}
	return key, nil
}

// errStop: the caller wants no more.
var errStop = errors.New("no more is wanted")

// past is one reading of a table.
type past struct {
	*Reader
	t        *tabledef.Table
	read     uint64    // up to here the log was read
	earliest images    // of items that changed: what they were
	decided  attr.Item // key of the last item of which it is decided, with all before it, whether it has changed; nil: of none

	held []Item
	keys []attr.Item
	text []byte // of the batch
	ends []int  // of each item in text
}

func (p *past) items(ctx context.Context, yield func(Item, error) bool) error {
	// What changed before is read first: so each batch finds but what came since.
	if err := p.follow(ctx); err != nil {
		return err
	}
	for stored, err := range p.o.Scan(ctx, p.t) {
		if err != nil {
			return err
		}
		var sizes attr.Sizes
		if p.text, sizes, err = stored.AppendJSON(p.text); err != nil {
			return err
		}
		p.held = append(p.held, Item{Size: sizes.Item, stored: stored})
		p.ends = append(p.ends, len(p.text))
		p.keys = append(p.keys, keyOf(p.t, stored))
		if len(p.held) >= p.o.BatchItems || len(p.text) >= p.o.BatchBytes {
			if err := p.flush(ctx, yield); err != nil {
				return err
			}
		}
	}
	if err := p.flush(ctx, yield); err != nil {
		return err
	}
	for i, err := range p.earliest.all(ctx) {
		if err != nil {
			return err
		}
		if i.JSON != nil && !yield(Item{JSON: i.JSON, Size: i.Size}, nil) {
			return errStop
		}
	}
	return nil
}

func keyOf(t *tabledef.Table, stored layout.Stored) attr.Item {
	key := attr.Item{}
	for _, a := range t.Key.Attrs() {
		key[a.Name] = stored.Get(a.Name)
	}
	return key
}

// flush yields those of a batch that have not changed.
func (p *past) flush(ctx context.Context, yield func(Item, error) bool) error {
	if err := p.follow(ctx); err != nil {
		return err
	}
	changed, err := p.earliest.has(ctx, p.keys)
	if err != nil {
		return err
	}
	from := 0
	for i := range p.held {
		p.held[i].JSON = p.text[from:p.ends[i]:p.ends[i]]
		from = p.ends[i]
		if !changed[i] && !yield(p.held[i], nil) {
			return errStop
		}
	}
	if len(p.keys) > 0 {
		p.decided = p.keys[len(p.keys)-1]
	}
	clear(p.held)
	clear(p.keys)
	p.held, p.keys, p.text, p.ends = p.held[:0], p.keys[:0], p.text[:0], p.ends[:0]
	return nil
}

// follow reads the log up to all that can have been seen in the table. A change of an
// item of which it was decided before makes no difference.
func (p *past) follow(ctx context.Context) error {
	above, err := p.o.Log.Beyond(ctx)
	if err != nil {
		return err
	}
	if err := p.reach(ctx, above); err != nil {
		return err
	}
	if above <= p.read {
		return nil
	}
	b := p.batch(&p.earliest)
	for e, err := range p.o.Log.ReadSlots(ctx, p.t.Log, p.read, above) {
		if err != nil {
			return err
		}
		key, err := keyOfRecord(&e)
		if err != nil {
			return err
		}
		if p.decided != nil {
			if c, err := p.o.Order(ctx, p.t, key, p.decided); err != nil {
				return err
			} else if c <= 0 {
				continue
			}
		}
		if err := b.add(ctx, key, e.At, e.Old); err != nil {
			return err
		}
	}
	p.read = above
	return b.flush(ctx)
}
