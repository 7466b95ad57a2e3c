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

// Sink accepts the records of streams. It is safe for concurrent use.
type Sink interface {
	// Has reports whether a stream exists.
	Has(ctx context.Context, stream string) (bool, error)
	// Put puts records with different partition keys into a stream: at most MaxPutRecords
	// records, and about MaxPutBytes. taken reports which of them were accepted. Put may
	// return ErrRefused only if there is a single record. Any other error applies to all
	// records.
	Put(ctx context.Context, stream string, records []Record) (taken []bool, err error)
}

// Noter is a Sink that also notes how far the records are complete.
type Noter interface {
	Sink
	// Note notes that a delivery has put all records before a time.
	Note(delivery string, before time.Time) error
	// Forget forgets a delivery that has ended.
	Forget(delivery string) error
}

// OpenSink opens the sink at an endpoint or in a folder. It returns nil if neither is
// given.
func OpenSink(endpoint, dir, region string, wall *clock.Clock) (Sink, error) {
	switch {
	case endpoint != "" && dir != "":
		return nil, errors.New("an endpoint and a folder cannot be combined")
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

// ErrRefused means that no stream will ever accept the record.
var ErrRefused = errors.New("the record was refused")

// Limits of a Put.
// https://docs.aws.amazon.com/kinesis/latest/APIReference/API_PutRecords.html
const (
	MaxPutRecords = 500
	MaxPutBytes   = 5_000_000
)

// Source provides the table that a delivery reads.
type Source interface {
	// Table returns the table as it is, or as it was when it was deleted. It returns nil
	// if the table is no longer known.
	Table(ctx context.Context) (*tabledef.Table, error)
	// Found records whether the stream exists.
	Found(ctx context.Context, there bool) error
	// Floor returns a number below which no more records are added.
	Floor(ctx context.Context) (uint64, error)
	// Read yields the records of a slot from a position, inclusive, to a number, exclusive: at
	// most limit.
	Read(ctx context.Context, log *tabledef.Log, slot uint16, from changelog.Position, before uint64, limit int) iter.Seq2[changelog.Entry, error]
	// Grown returns a channel that is closed when records are added.
	Grown() <-chan struct{}
}

// Checkpoint is the position that a delivery has reached. It is stored as the progress of
// the delivery's job.
type Checkpoint struct {
	// At is a number below which the stream has accepted all records.
	At uint64 `json:"at"`
}

// Target identifies the table and the stream of a delivery.
type Target struct {
	StreamARN string `json:"streamARN"`
	Table     string `json:"table"`
	TableID   string `json:"tableID"`
	Region    string `json:"region"`
	From      uint64 `json:"from"` // start of the destination
}

// Delivery delivers the changes of one table to one stream.
type Delivery struct {
	Target Target
	Source Source
	Sink   Sink
	Now    func() time.Time // clock of the tables
	Wall   *clock.Clock     // clock of the pauses
	Logger *slog.Logger
	// Changed receives a value when the destination may have changed.
	Changed <-chan struct{}
	// Save stores a checkpoint.
	Save func(ctx context.Context, c Checkpoint) error

	checkpoint Checkpoint
	read       changelog.Position          // start of the next page
	taken      map[changelog.Position]bool // positions of accepted records, at or above the checkpoint
	unsaved    bool                        // records were accepted since the last save
	noted      time.Time                   // by Wall: when the checkpoint was last noted
}

const (
	// noteEvery is the interval at which a Noter is called.
	noteEvery = time.Second

	// The pauses of a delivery after a failure of the sink; they double each time.
	firstPause = 100 * time.Millisecond
	lastPause  = 10 * time.Second

	// pollEvery is the interval between looks for records of other processes.
	pollEvery = time.Second
)

// Run delivers records from a checkpoint until the destination has ended, and all its
// records are accepted or expired. It returns the error of ctx or of Save.
func (d *Delivery) Run(ctx context.Context, from Checkpoint) error {
	d.checkpoint = from
	d.checkpoint.At = max(from.At, d.Target.From)
	d.read, d.taken = changelog.Position{Sequence: d.checkpoint.At}, map[changelog.Position]bool{}
	if err := d.note(); err != nil { // before the first records, which may fail
		d.Logger.WarnContext(ctx, "the time of a delivery is not noted", slog.String("table", d.Target.Table), slog.Any("error", err))
	}
	pause := firstPause
	for {
		grown, before := d.Source.Grown(), len(d.taken) // before the read
		more, done, err := d.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case done:
			return d.forget()
		case errors.As(err, new(*saveError)):
			return err
		case err != nil:
			d.Logger.WarnContext(ctx, "changes wait for their Kinesis data stream", slog.String("table", d.Target.Table),
				slog.String("stream", d.Target.StreamARN), slog.Any("error", err))
			if len(d.taken) > before { // progress resets the pause
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

// wait waits for a time, or until grown is closed or the destination changes.
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

// saveError means that a checkpoint could not be stored.
type saveError struct{ error }

// Unwrap returns the cause.
func (e *saveError) Unwrap() error { return e.error }

// pass reads and delivers at most one page. more reports whether records are left; done,
// whether the delivery has ended.
func (d *Delivery) pass(ctx context.Context) (more, done bool, err error) {
	floor, err := d.Source.Floor(ctx) // before the definition, so that an end that the definition lacks is not below floor
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
	stream, _ := StreamName(d.Target.StreamARN, d.Target.Region) // otherwise the destination would have failed
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
	if err := d.advance(ctx); err != nil {
		return more, ended, err
	}
	return more, ended, d.note()
}

// name identifies the delivery in a Noter, in which tables of several stores may be.
func (d *Delivery) name() string { return idOf(d.Target.TableID, d.Target.From) }

// note notes the checkpoint, unless that was done a moment ago.
func (d *Delivery) note() error {
	to, ok := d.Sink.(Noter)
	now := d.Wall.Now()
	if !ok || now.Sub(d.noted) < noteEvery {
		return nil
	}
	d.noted = now
	return to.Note(d.name(), changelog.Position{Sequence: d.checkpoint.At}.Time())
}

func (d *Delivery) forget() error {
	if to, ok := d.Sink.(Noter); ok {
		return to.Forget(d.name())
	}
	return nil
}

// advance moves the checkpoint up to d.read, and saves it if records were accepted since the last
// save.
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
	if !d.unsaved { // without records, a restart repeats none
		return nil
	}
	if err := d.Save(ctx, d.checkpoint); err != nil {
		return &saveError{err}
	}
	d.unsaved = len(d.taken) > 0
	return nil
}

// The limits of a page: records, and bytes of their images in the log.
const (
	pageRecords = 1000
	pageBytes   = 4 << 20
)

// deliver delivers a page of the records below before, and reports whether more of them follow.
func (d *Delivery) deliver(ctx context.Context, t *tabledef.Table, stream string, form Form, before uint64) (more bool, err error) {
	entries, end, err := d.page(ctx, t, d.read, before)
	if err != nil {
		return false, err
	}
	var records []Record
	for i := range entries {
		// A writer that did not know the destination yet may have kept no images.
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

// Pending calls visit with the changes of a table from a position up to a number, in
// their delivered form. It delivers nothing.
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

// page reads records of all slots from a position on, in order. end is the start of the next
// page.
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

// putAll puts records into the stream. It never puts two records with the same partition
// key in one call, so these stay in order.
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

// errNotTaken means that a stream accepted only some of the records.
var errNotTaken = errors.New("the stream did not accept all records")

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

// putRefused puts records one by one, and skips the refused one, which would block all later
// ones.
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
	d.Logger.ErrorContext(ctx, "skipping a change that its Kinesis data stream refuses", slog.String("table", d.Target.Table),
		slog.String("sequence", records[0].at.String()), slog.Any("error", refusal))
	return nil
}
