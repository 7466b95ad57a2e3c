package kinesis

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// Bounds of the lines that are read at once, and of one line: a record has two images.
const (
	maxLines      = 1000
	maxBatchBytes = 4 << 20
	maxLineBytes  = 2*source.MaxItemBytes + 1<<20
)

// line is a line of a file.
type line struct {
	text   []byte
	offset int64 // of its beginning
	end    int64
	number int
}

// read reads complete lines of a file up to its end as it was seen; none if the last one is not
// complete.
func (f *Folder) read(of *file) (lines []line, err error) {
	in, err := f.fsys.Open(of.Name)
	if err != nil {
		return nil, source.Damaged(source.ReplayGap, f.at(of.Name, 0), err, "the file cannot be opened")
	}
	defer func() { _ = in.Close() }() // only read
	if _, err := in.(io.Seeker).Seek(of.Offset, io.SeekStart); err != nil {
		return nil, f.unread(of, err)
	}
	text := bufio.NewReaderSize(io.LimitReader(in, of.size-of.Offset), 64<<10)
	offset, number := of.Offset, of.Line
	for total := 0; len(lines) < maxLines && total < maxBatchBytes; {
		var l []byte
		for {
			part, err := text.ReadSlice('\n')
			l = append(l, part...)
			if len(l) > maxLineBytes {
				return nil, source.Damaged(source.TooLong, f.at(of.Name, number+1), nil, "the line has more than %d bytes, which no record has", maxLineBytes)
			}
			if errors.Is(err, io.EOF) {
				return lines, nil
			}
			if err == nil {
				break
			}
			if !errors.Is(err, bufio.ErrBufferFull) {
				return nil, f.unread(of, err)
			}
		}
		number++
		lines = append(lines, line{l, offset, offset + int64(len(l)), number})
		offset += int64(len(l))
		total += len(l)
	}
	return lines, nil
}

func (f *Folder) unread(of *file, err error) error {
	return fmt.Errorf("%s: %w", f.at(of.Name, 0), err)
}

// tails applies last lines that are complete except for their newlines. They are read again, since
// the program that wrote them may replace them. It reports whether it found records of the table.
func (f *Folder) tails(ctx context.Context, apply func(context.Context, []Record) error) (found bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		of := f.files[name]
		if of.Offset == of.size || of.tail == of.size || of.size-of.Offset > maxLineBytes {
			continue
		}
		text, err := f.tail(of)
		if err != nil {
			return found, err
		}
		if bytes.IndexByte(text, '\n') >= 0 || !jsontext.Value(text).IsValid() {
			continue
		}
		records, some, err := f.records(ctx, of, []line{{text: text, offset: of.Offset, end: of.size, number: of.Line + 1}}, apply)
		if err == nil && len(records) > 0 {
			err = apply(ctx, records)
		}
		if err != nil {
			return found, err
		}
		found = found || some
		f.mu.Lock()
		of.tail, f.open = of.size, f.ties.open
		f.mu.Unlock()
	}
	return found, nil
}

// tail returns the text after the last complete line of a file.
func (f *Folder) tail(of *file) (text []byte, err error) {
	in, err := f.fsys.Open(of.Name)
	if err != nil {
		return nil, f.unread(of, err)
	}
	defer func() { _ = in.Close() }() // only read
	text = make([]byte, of.size-of.Offset)
	if _, err := in.(io.ReaderAt).ReadAt(text, of.Offset); err != nil {
		return nil, f.unread(of, err)
	}
	return text, nil
}

// process applies the records of lines, and notes the progress. It reports whether some are of the
// table.
func (f *Folder) process(ctx context.Context, of *file, lines []line, apply func(context.Context, []Record) error) (found bool, err error) {
	records, found, err := f.records(ctx, of, lines, apply)
	if err == nil && len(records) > 0 {
		err = apply(ctx, records)
	}
	if err != nil {
		return found, err
	}
	if at := time.UnixMicro(of.newest).UTC(); of.newest > 0 && at.After(f.newest) {
		f.newest = at
	}
	if found {
		f.idle = 0
	}
	last := lines[len(lines)-1]
	f.mu.Lock()
	of.Offset, of.Line, of.Applied = last.end, last.number, max(of.Applied, last.end)
	f.open = f.ties.open
	f.mu.Unlock()
	return found, f.expire(ctx, of.newest-f.o.Allowance.Microseconds(), apply)
}

// records converts lines to the records that have a place in the order of their items. It reports
// whether some are of the table.
func (f *Folder) records(ctx context.Context, of *file, lines []line, apply func(context.Context, []Record) error) (records []Record, found bool, err error) {
	var all []change
	var from []line
	oldest := time.Time{}
	for _, l := range lines {
		if len(bytes.TrimSpace(l.text)) == 0 {
			continue
		}
		at := f.at(of.Name, l.number)
		r, err := source.ParseKinesisRecord(l.text, at)
		if err == nil && r.Table == f.o.Table {
			err = f.check(&r, at)
		}
		if err != nil {
			return nil, false, err
		}
		if r.Table != f.o.Table {
			continue
		}
		if oldest.IsZero() || r.Time.Before(oldest) {
			oldest = r.Time
		}
		all, from = append(all, change{linkOf(&r), r, at}), append(from, l)
	}
	if len(all) == 0 {
		return nil, false, nil
	}
	if !f.begun && !f.o.Since.IsZero() && oldest.After(f.o.Since) {
		return nil, false, source.Damaged(source.ReplayGap, all[0].at, nil,
			"the oldest record of table %s is of %s, after %s, up to which changes are applied: records in between may be missing; put them into the folder, or apply an incremental export over that time first (tabletop migrate follow %s --increments DIR)",
			f.o.Table, oldest.Format(time.RFC3339Nano), f.o.Since.UTC().Format(time.RFC3339Nano), f.o.Table)
	}
	f.mu.Lock()
	f.begun = true
	f.mu.Unlock()
	for i := range all {
		some, err := f.place(ctx, of, &all[i], from[i], apply)
		if err != nil {
			return nil, true, err
		}
		records = append(records, some...)
	}
	return records, true, nil
}

// check rejects a record whose time has whole milliseconds, unless Options.AcceptTies is set:
// the order of changes in one millisecond may be unknown.
func (f *Folder) check(r *source.KinesisRecord, at source.Position) error {
	if !r.Exact && !f.o.AcceptTies {
		return source.Damaged(source.Unsupported, at, nil,
			"the time of the record has whole milliseconds, so that the order of changes in one millisecond may be unknown: set the precision of the destination to MICROSECOND (aws dynamodb update-kinesis-streaming-destination), or accept such records (--accept-ties)")
	}
	return nil
}

// linkOf identifies the images of a record.
func linkOf(r *source.KinesisRecord) (l link) {
	if r.Old != nil {
		l.old = extsort.HashItem(r.Old)
	}
	if r.New != nil {
		l.new = extsort.HashItem(r.New)
	}
	return l
}

// place adds a change to the group of its item and time. It returns the records whose places
// in the order of the item are now known: this one, and waiting ones.
func (f *Folder) place(ctx context.Context, of *file, c *change, l line, apply func(context.Context, []Record) error) ([]Record, error) {
	micros := c.Time.UnixMicro()
	at := moment{extsort.HashOf(attr.AppendItemJSON(nil, c.Keys)), micros}
	fresh := l.offset >= of.from
	g := f.ties.groups[at]
	known := g != nil
	if !known {
		g = &group{moment: at, file: of.Name, offset: l.offset, line: l.number - 1}
		f.ties.groups[at] = g
	}
	f.mu.Lock()
	if fresh && c.Time.Before(f.status.Watermark) {
		f.status.Late++
	}
	if !known {
		f.queue = append(f.queue, g)
	}
	f.mu.Unlock()
	if over := micros <= of.newest-f.o.Allowance.Microseconds(); !known && over && fresh && !c.Exact && f.o.Fetch != nil {
		// Others of its millisecond may have been here, and are forgotten.
		g.waiting, g.others = []*change{c}, []link{c.link}
		f.ties.open++
		return nil, f.settle(ctx, g, apply)
	}
	of.newest = max(of.newest, micros)
	placed, tied := f.ties.add(g, c)
	records := make([]Record, len(placed))
	for i, p := range placed {
		records[i] = Record{Keys: p.Keys, New: p.New, Complete: true, Time: p.Time, Tie: tied[i], At: p.at}
		if p.Old != nil {
			records[i].Was = []attr.Item{p.Old}
		}
	}
	return records, nil
}

// settle ends the wait of a group's changes: it fetches their item, and applies the fetched
// state as one record.
func (f *Folder) settle(ctx context.Context, g *group, apply func(context.Context, []Record) error) error {
	if len(g.waiting) == 0 {
		return nil
	}
	last := g.waiting[len(g.waiting)-1]
	r := Record{Keys: last.Keys, New: last.New, Time: last.Time, Tie: tieTop + g.settled, At: last.at}
	for _, c := range g.waiting {
		for _, image := range []attr.Item{c.Old, c.New} {
			if image != nil {
				r.Was = append(r.Was, image)
			}
		}
	}
	if f.o.Fetch == nil {
		r.Undecided = source.Damaged(source.ReplayOrder, last.at, nil,
			"the item has several changes at %s, and their images do not show their order: name the source, from which the item can be read (--dynamodb-endpoint or --region), or change the item again", last.Time.Format(time.RFC3339Nano))
	} else {
		var err error
		if r.New, err = f.o.Fetch(ctx, last.Keys); err != nil {
			return err
		}
	}
	if err := apply(ctx, []Record{r}); err != nil {
		return err
	}
	f.ties.open--
	g.waiting, g.settled = nil, g.settled+1
	return nil
}

// expire settles and forgets the oldest groups up to a time, inclusive: no other change of
// them is expected. It also does so while there are more than maxGroups.
func (f *Folder) expire(ctx context.Context, micros int64, apply func(context.Context, []Record) error) error {
	for len(f.queue) > 0 && (f.queue[0].micros <= micros || len(f.queue) > maxGroups) {
		g := f.queue[0]
		if err := f.settle(ctx, g, apply); err != nil {
			return err
		}
		delete(f.ties.groups, g.moment)
		f.mu.Lock()
		f.queue[0] = nil // for the garbage collector
		f.queue, f.open = f.queue[1:], f.ties.open
		f.mu.Unlock()
	}
	return nil
}
