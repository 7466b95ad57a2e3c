package kinesis

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/changelog"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// Sink takes records for streams. It is safe for concurrent use.
type Sink interface {
	// Has reports whether there is a stream.
	Has(ctx context.Context, stream string) (bool, error)
	// Put gives records to a stream, MaxPutRecords and about MaxPutBytes at most and no
	// two with the same partition key, and reports of each whether it was taken. Errors:
	// ErrRefused, of one record alone; any other is of all of them.
	Put(ctx context.Context, stream string, records []Record) (taken []bool, err error)
}

// OpenSink opens an endpoint or a folder, nil for neither.
func OpenSink(endpoint, dir, region string, wall *clock.Clock) (Sink, error) {
	switch {
	case endpoint != "" && dir != "":
		return nil, errors.New("an endpoint and a folder exclude each other")
	case endpoint != "":
		sink, err := NewEndpoint(endpoint, region, wall)
		if err != nil {
			return nil, err
		}
		return sink, nil
	case dir != "":
		sink, err := OpenDir(dir)
		if err != nil {
			return nil, err
		}
		return sink, nil
	}
	return nil, nil
}

// ErrRefused is returned for a record that no stream ever accepts.
var ErrRefused = errors.New("the record is refused")

// The bounds of a Put.
// https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html
const (
	MaxPutRecords = 500
	MaxPutBytes   = 5_000_000
)

// Source is where a delivery reads.
type Source interface {
	// Table returns the table as it is, or as it was when it was deleted; nil when
	// nothing is known of it any more.
	Table(ctx context.Context) (*tabledef.Table, error)
	// Found keeps whether there is the stream.
	Found(ctx context.Context, there bool) error
	// Floor returns a number below which no record is added any more.
	Floor(ctx context.Context) (uint64, error)
	// Read yields the records of a slot from a position on and before a number.
	Read(ctx context.Context, log *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error]
	// Grown returns a channel that is closed when records were added.
	Grown() <-chan struct{}
}

// Checkpoint is how far a delivery is: what a job keeps as its progress.
type Checkpoint struct {
	// At is a number below which all records were taken.
	At uint64 `json:"at"`
}

// Target is what a delivery is of.
type Target struct {
	StreamARN string `json:"streamARN"`
	Table     string `json:"table"`
	TableID   string `json:"tableID"`
	Region    string `json:"region"`
	From      uint64 `json:"from"` // of the destination
}

// Delivery gives the changes of a table to a stream.
type Delivery struct {
	Target Target
	Source Source
	Sink   Sink
	Now    func() time.Time // of the tables
	Wall   *clock.Clock     // of pauses
	Logger *slog.Logger
	// Changed tells that the destination may have changed.
	Changed <-chan struct{}
	// Save keeps a checkpoint.
	Save func(ctx context.Context, c Checkpoint) error

	checkpoint Checkpoint
	read       changelog.Position          // where the next page begins
	taken      map[changelog.Position]bool // at or above the checkpoint
	unsaved    bool                        // records were taken since the checkpoint was kept
}

const (
	// How long a delivery waits after what the sink did not take: twice as long each
	// time.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second

	// pollEvery is how often it looks for records of other processes.
	pollEvery = time.Second
)

// Run delivers from a checkpoint on until the destination has ended and all its records
// were taken, or nothing is left of them. Errors: those of ctx, and of Save.
func (d *Delivery) Run(ctx context.Context, from Checkpoint) error {
	d.checkpoint = from
	d.checkpoint.At = max(from.At, d.Target.From)
	d.read, d.taken = changelog.Position{Sequence: d.checkpoint.At}, map[changelog.Position]bool{}
	pause := firstPause
	for {
		grown, before := d.Source.Grown(), len(d.taken) // before it is read
		more, done, err := d.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done:
			return nil
		case errors.As(err, new(*saveError)):
			return err
		case err != nil:
			d.Logger.WarnContext(ctx, "changes wait for their Kinesis data stream", slog.String("table", d.Target.Table),
				slog.String("stream", d.Target.StreamARN), slog.Any("error", err))
			if len(d.taken) > before { // it goes on
				pause = firstPause
			}
			if err := d.wait(ctx, pause, nil); err != nil {
				return err
			}
			pause = min(2*pause, lastPause)
			continue
		case more:
			pause = firstPause
			continue
		}
		pause = firstPause
		if err := d.wait(ctx, pollEvery, grown); err != nil {
			return err
		}
	}
}

// wait waits for a time, or until a channel is closed or the destination changes.
func (d *Delivery) wait(ctx context.Context, pause time.Duration, grown <-chan struct{}) error {
	over, stop := d.Wall.At(d.Wall.Now().Add(pause))
	defer stop()
	select {
	case <-over:
	case <-grown:
	case <-d.Changed:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// saveError says that a checkpoint was not kept.
type saveError struct{ error }

// Unwrap returns the cause.
func (e *saveError) Unwrap() error { return e.error }

// pass reads and delivers what there is, a page at most. It reports whether there is
// more, and whether there is nothing to be done any more.
func (d *Delivery) pass(ctx context.Context) (more, done bool, err error) {
	floor, err := d.Source.Floor(ctx) // before the definition: an end that it has not yet is not below
	if err != nil {
		return false, false, err
	}
	t, err := d.Source.Table(ctx)
	if err != nil {
		return false, false, err
	}
	if t == nil || t.ID != d.Target.TableID || t.Log == nil {
		return false, true, nil
	}
	at := t.KinesisDestination(d.Target.StreamARN)
	if at == nil || at.From != d.Target.From || at.State == tabledef.KinesisFailed {
		return false, true, nil
	}
	stream, _ := StreamName(d.Target.StreamARN, d.Target.Region) // else it would have failed
	if at.Unseen && at.Live() {
		there, err := d.Sink.Has(ctx, stream)
		if err == nil {
			err = d.Source.Found(ctx, there)
		}
		return err == nil, false, err
	}
	before, now := floor, d.Now()
	if at.Until != 0 {
		before = min(floor, at.Until)
		if now.Sub(at.Ended) >= tabledef.StreamRetention {
			return false, true, nil
		}
	}
	form := Form{Region: d.Target.Region, Table: t.Name, TableID: t.ID, Precision: at.Precision}
	if more, err = d.deliver(ctx, t, stream, form, before); err != nil {
		return false, false, err
	}
	ended := !more && at.Until != 0 && before == at.Until
	return more, ended, d.advance(ctx)
}

// advance moves the checkpoint to what was read.
func (d *Delivery) advance(ctx context.Context) error {
	next := d.read.Sequence
	if next <= d.checkpoint.At {
		return nil
	}
	d.checkpoint.At = next
	for at := range d.taken {
		if at.Sequence < next {
			delete(d.taken, at)
		}
	}
	if !d.unsaved { // where there were no records, none are read again
		return nil
	}
	if err := d.Save(ctx, d.checkpoint); err != nil {
		return &saveError{err}
	}
	d.unsaved = len(d.taken) > 0
	return nil
}

// The bounds of a page: records, and bytes of their images in the log.
const (
	pageRecords = 1000
	pageBytes   = 4 << 20
)

// deliver delivers a page, and reports whether there is more before a number.
func (d *Delivery) deliver(ctx context.Context, t *tabledef.Table, stream string, form Form, before uint64) (more bool, err error) {
	entries, end, err := d.page(ctx, t, d.read, before)
	if err != nil {
		return false, err
	}
	var records []Record
	for i := range entries {
		// A writer that did not know of the destination yet may have kept no images.
		if e := &entries[i]; !d.taken[e.At] && e.IsWhole() {
			records = append(records, form.Record(&entries[i]))
		}
	}
	if err := d.putAll(ctx, stream, records); err != nil {
		return false, err
	}
	d.read = end
	return end.Sequence < before, nil
}

// Pending hands the changes of a table from a position on and before a number to visit, as its stream gets them, and
// delivers none.
func (d *Delivery) Pending(ctx context.Context, t *tabledef.Table, precision string, from changelog.Position, before uint64, visit func(streamARN string, record []byte) error) error {
	form := Form{Region: d.Target.Region, Table: t.Name, TableID: t.ID, Precision: precision}
	for from.Sequence < before {
		entries, end, err := d.page(ctx, t, from, before)
		if err != nil {
			return err
		}
		for i := range entries {
			if !entries[i].IsWhole() {
				continue
			}
			if err := visit(d.Target.StreamARN, form.Record(&entries[i]).Data); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// page reads records of all slots from a position on, in order, and returns the position
// that the next page begins at.
func (d *Delivery) page(ctx context.Context, t *tabledef.Table, from changelog.Position, before uint64) (entries []changelog.Entry, end changelog.Position, err error) {
	end = changelog.Position{Sequence: before}
	if from.Compare(end) >= 0 {
		return nil, from, nil
	}
	slots := t.Log.MaxSlots()
	limit := max(pageRecords/slots, 1)
	for slot := range slots {
		n, size := 0, 0
		for e, err := range d.Source.Read(ctx, t.Log, uint16(slot), from, before, limit+1) {
			if err != nil {
				return nil, end, err
			}
			if n == limit || n > 0 && size > pageBytes/slots {
				if e.At.Compare(end) < 0 {
					end = e.At
				}
				break
			}
			n++
			size += len(e.Old.JSON) + len(e.New.JSON)
			e.Key.JSON, e.Old.JSON, e.New.JSON = slices.Clone(e.Key.JSON), slices.Clone(e.Old.JSON), slices.Clone(e.New.JSON)
			entries = append(entries, e)
		}
	}
	entries = slices.DeleteFunc(entries, func(e changelog.Entry) bool { return e.At.Compare(end) >= 0 })
	slices.SortFunc(entries, func(a, b changelog.Entry) int { return a.At.Compare(b.At) })
	return entries, end, nil
}

// putAll gives records to the stream, those of a partition key one after the other.
func (d *Delivery) putAll(ctx context.Context, stream string, records []Record) error {
	for len(records) > 0 {
		var now, later []Record
		keys, size, full := map[string]bool{}, 0, false
		for _, r := range records {
			full = full || len(now) == MaxPutRecords || len(now) > 0 && size+len(r.Data)+len(r.PartitionKey) > MaxPutBytes
			if full || keys[r.PartitionKey] {
				later = append(later, r)
				continue
			}
			keys[r.PartitionKey] = true
			now = append(now, r)
			size += len(r.Data) + len(r.PartitionKey)
		}
		if err := d.put(ctx, stream, now); err != nil {
			return err
		}
		records = later
	}
	return nil
}

// errNotTaken: a stream took some of the records.
var errNotTaken = errors.New("the stream did not take all records")

func (d *Delivery) put(ctx context.Context, stream string, records []Record) error {
	taken, err := d.Sink.Put(ctx, stream, records)
	if errors.Is(err, ErrRefused) {
		return d.putRefused(ctx, stream, records, err)
	}
	if err != nil {
		return err
	}
	for i, r := range records {
		if i >= len(taken) || !taken[i] {
			err = errNotTaken
			continue
		}
		d.taken[r.at], d.unsaved = true, true
	}
	return err
}

// putRefused gives records one by one, and passes over the one that is refused: it
// would hold up all that follow.
func (d *Delivery) putRefused(ctx context.Context, stream string, records []Record, refusal error) error {
	if len(records) > 1 {
		for _, r := range records {
			if err := d.put(ctx, stream, []Record{r}); err != nil {
				return err
			}
		}
		return nil
	}
	d.taken[records[0].at], d.unsaved = true, true
	d.Logger.ErrorContext(ctx, "a change is passed over: its Kinesis data stream refuses it", slog.String("table", d.Target.Table),
		slog.String("sequence", records[0].at.String()), slog.Any("error", refusal))
	return nil
}
