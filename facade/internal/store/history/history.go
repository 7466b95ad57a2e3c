// Package history computes the contents of a table at a past time from its current
// contents and the log of its changes. Nothing needs to be stored at the past time
// itself.
//
// If an item has changed since, its past state is the old image of the first record after
// the time. Any other item is unchanged. A Reader therefore reads the items while writes
// continue. After each batch of items it reads the log up to the present, to find out
// which of the items have changed. The images from the log, one per item, go to a scratch
// table in the Bigtable, since they may be as large as the table.
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

// Log provides the log of a table's changes.
type Log interface {
	// Beyond returns a sequence number greater than those of all changes whose requests have
	// completed, in any process.
	Beyond(ctx context.Context) (uint64, error)
	// Floor returns a number below which no more records will be added.
	Floor(ctx context.Context) (uint64, error)
	// ReadSlots yields the records of all slots between two numbers. The records of an
	// item are in order, unless the number of slots shrinks meanwhile. The records share
	// memory with messages.
	ReadSlots(ctx context.Context, log *tabledef.Log, from, before uint64) iter.Seq2[changelog.Entry, error]
}

// Options configures a Reader.
type Options struct {
	Bigtable *btclient.Client
	// NewScratch returns a new unique id for a scratch table.
	NewScratch func() string
	Wall       *clock.Clock
	Log        Log
	// Scan yields the items of a table in a stable order.
	Scan func(ctx context.Context, t *tabledef.Table) iter.Seq2[layout.Stored, error]
	// BatchItems limits the number of items or records in memory. Default: 1000.
	BatchItems int
	// BatchBytes limits, approximately, the bytes of items or records in memory. Default:
	// 2 MiB.
	BatchBytes int
	// Order compares two keys in the order of Scan. A key a of an item that the table cannot hold
	// comes last. If only b is such a key, Order returns an error.
	Order func(ctx context.Context, t *tabledef.Table, a, b attr.Item) (int, error)
}

// Reader reads past states of tables. It is safe for concurrent use.
type Reader struct{ o Options }

// New returns a Reader with the given options.
func New(o Options) *Reader {
	o.BatchItems, o.BatchBytes = cmp.Or(o.BatchItems, batchItems), cmp.Or(o.BatchBytes, batchBytes)
	return &Reader{o}
}

// ErrNoLog means that the changes of a table are not recorded with both images.
var ErrNoLog = errors.New("the changes of the table are not recorded")

// Before returns the lowest sequence number above those of all changes up to a time, including
// the whole millisecond of that time.
func Before(t time.Time) uint64 {
	return changelog.SequenceAt(t.Truncate(time.Millisecond).Add(time.Millisecond))
}

// Item is an item that a table held at a past time.
type Item struct {
	// JSON is the text of the item's attributes, as from attr.AppendItemJSON. The next
	// item reuses the memory.
	JSON []byte
	// Size is the size of the item, as Item.Size of package attr computes it.
	Size int

	stored layout.Stored // nil: JSON must be decoded
}

// Attributes decodes the item.
func (i *Item) Attributes() (attr.Item, error) {
	if i.stored != nil {
		return i.stored.Item()
	}
	return attr.DecodeItem(jsontext.NewDecoder(bytes.NewReader(i.JSON)))
}

// Stored yields stored items as Items, without looking for changes.
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

// NewScratch returns the id of a new scratch table. A job records the id before Items
// creates the table, so that a later attempt can drop the table.
func (r *Reader) NewScratch() string { return r.o.NewScratch() }

// DropScratch drops the scratch table of an earlier call, if it exists.
func (r *Reader) DropScratch(ctx context.Context, id string) error {
	return r.o.Bigtable.DropTable(ctx, id)
}

// Now returns a sequence number greater than those of all changes whose requests have
// completed. Changes of later requests can be below it only if other processes make them.
func (r *Reader) Now(ctx context.Context) (uint64, error) { return r.o.Log.Beyond(ctx) }

// Records yields the records of a table between two numbers, like Log.ReadSlots. It first
// waits until all of them are in the log.
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

// floorPause is the pause between two checks of a floor that current writes hold back.
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

// Items yields exactly the items that a table held after all changes below a number, in
// any order. The table may be written to meanwhile. Later native writes appear in their
// current state, because no log has them. Items returns ErrNoLog if the table has no
// suitable log, or if the log begins after the number.
func (r *Reader) Items(ctx context.Context, t *tabledef.Table, scratch string, before uint64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		p := &past{Reader: r, t: t, earliest: r.images(t, scratch, false)}
		err := errNoImages(t)
		if err == nil {
			// The table includes writes from before the log had both images.
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

// Change is the change of an item between two times.
type Change struct {
	Key      attr.Item
	Old, New changelog.Image    // states at the first and the second time; the zero value means that the item did not exist
	At       changelog.Position // position of the last record in between
}

// Changes yields each item that was written between two numbers once, in any order, even
// if it did not change. It returns ErrNoLog if the table has no suitable log.
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

// gather reads the records from one sequence number to before another. For each item it adds the
// image before the first record to earliest, and the image after the last record to latest.
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

// errStop means that the caller stopped the iteration.
var errStop = errors.New("iteration stopped")

// past is one read of a table.
type past struct {
	*Reader
	t        *tabledef.Table
	read     uint64    // the log was read up to here
	earliest images    // the past states of changed items
	decided  attr.Item // the last key, in Scan's order, whose item was classified as changed or not; nil: none

	held []Item
	keys []attr.Item
	text []byte // of the batch
	ends []int  // of each item in text
}

func (p *past) items(ctx context.Context, yield func(Item, error) bool) error {
	// Earlier changes are read first, so each batch finds only the new ones.
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

// flush yields the unchanged items of a batch.
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

// follow reads the log up to everything that may be visible in the table. It ignores changes
// of items that were already classified.
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
