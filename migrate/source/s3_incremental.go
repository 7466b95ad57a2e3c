package source

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// maxReplayBytes bounds the changes in memory. If there are more, the full export is read
// several times, each time for another part of the keys.
const maxReplayBytes = 64 << 20

// itemChange is one line of an incremental export: the change of one item between the two times
// of the export. Source: developer guide, "DynamoDB table export output format", incremental
// export output.
type itemChange struct {
	at       Position
	export   int   // index among the exports after the full one
	micros   int64 // of the last write
	keys     attr.Item
	new, old attr.Item // nil if absent
	text     []byte    // of new
	event    string    // of a change record; "" in an export
}

// heldChange holds the changes of one item as hashes and JSON text, a fraction of the size of
// items.
type heldChange struct {
	first, last Position
	began       int          // the export of the first change
	export      int          // of the last change
	old, new    extsort.Hash // of OldImage of the first change, and NewImage of the last
	then        extsort.Hash // of NewImage of the first change; zero if it has none
	micros      int64        // of the first change
	until       int64        // of the last change, in microseconds
	event       string       // of the first change record; "" in exports
	created     bool         // the first change has no OldImage
	deleted     bool         // the last change has no NewImage
	met         bool         // found in the full export
	keys, text  []byte       // Keys, and NewImage of the last change
	was         [][]byte     // for collect with was: the states before the last
}

// heldChangeBytes is the memory of a heldChange without its text: itself, and its place in a
// growing map and list, rounded up.
const heldChangeBytes = 432

// Change is the combined effect that the incremental exports after a full one have on one
// item.
type Change struct {
	Key      attr.Item   // key of the item
	Was      []attr.Item // earlier states of the item in the exports, oldest first
	Now      attr.Item   // new state; nil if the item was deleted
	Position Position    // position of the last change
	Time     time.Time   // of the last write
}

// replayed is a full export with its incremental exports: the table at the end of the last one.
type replayed struct {
	t        tree
	full     exportPart
	after    []exportPart // in order of time; for change records, their times alone
	records  *recordSet   // nil for incremental exports
	parts    uint64       // passes over the full export; 0: unknown
	maxBytes int

	// apart means that no item of the full export was written in the moment that it shares with
	// the first incremental export: the end of one and the beginning of the other.
	apart atomic.Bool
}

// adjoin reports whether the first incremental export begins where the full one ends.
func (r *replayed) adjoin() bool { return r.records == nil && r.after[0].from.Equal(r.full.to) }

// overlap reports whether the full export may include changes of the first incremental one.
func (r *replayed) overlap() bool { return !r.after[0].from.After(r.full.to) && !r.apart.Load() }

// exportMoment is the precision of an export's times.
const exportMoment = time.Millisecond

// joint compares the changes with the full export before them.
type joint struct {
	moment         time.Time // at which the full export ends
	agree, overlap int
	differ         error // the first change that does not fit the full export
}

// compare compares the first change of an item with the full export; full is zero if it lacks
// the item. An item written in the shared moment may differ, if others agree.
func (j *joint) compare(s *heldChange, full extsort.Hash, found string) error {
	switch none := (extsort.Hash{}); {
	case s.created && full == none, !s.created && s.old == full:
		j.agree++
	case s.created, s.began == 0 && s.then == full && time.UnixMicro(s.micros).Before(j.moment.Add(exportMoment)):
		j.overlap++
	case s.began > 0:
		return staleImage(s.first, s.keys, found)
	case j.differ == nil:
		j.differ = staleImage(s.first, s.keys, found)
	}
	return nil
}

// end returns the error at the end of a read.
func (j *joint) end() error {
	if j.agree > 0 {
		return nil
	}
	return j.differ
}

// replay returns the table of a full export after its incremental exports. It checks that the
// exports are contiguous.
func replay(t tree, full exportPart, after []exportPart) (*replayed, error) {
	slices.SortFunc(after, func(a, b exportPart) int { return a.from.Compare(b.from) })
	end, before := full.to, full
	for i, part := range after {
		at := Position{File: t.label(part.dir)}
		span := fmt.Sprintf("the incremental export covers %s to %s", s3export.Stamp(part.from), s3export.Stamp(part.to))
		switch {
		case !part.from.Before(part.to):
			return nil, Damaged(ManifestInvalid, at, nil, "%s, whose end is not after its beginning", span)
		case part.from.After(end):
			return nil, Damaged(ReplayGap, at, nil, "%s, but the previous export, %s, ends at %s: the changes in between are missing", span, t.label(before.dir), s3export.Stamp(end))
		case i > 0 && part.from.Before(end), part.to.Before(end):
			return nil, Damaged(ReplayOrder, at, nil, "%s, but the previous export, %s, ends at %s: it must begin where that one ends", span, t.label(before.dir), s3export.Stamp(end))
		}
		end, before = part.to, part
	}
	return &replayed{t: t, full: full, after: after, maxBytes: maxReplayBytes}, nil
}

// entries yields the items after all changes, starting with those of the full export.
func (r *replayed) entries(yield func(Entry, error) bool) {
	err := r.run(yield)
	if err != nil && !errors.Is(err, errStopped) {
		yield(Entry{}, err)
	}
}

func (r *replayed) run(yield func(Entry, error) bool) error {
	if r.parts == 0 {
		size := 0
		err := r.changes(func(c itemChange) error {
			size += cap(c.text) + 2*c.keys.Size() + heldChangeBytes
			return nil
		})
		if err != nil {
			return err
		}
		r.parts = uint64(size/r.maxBytes) + 1
	}
	j := joint{moment: r.full.to}
	for part := range r.parts {
		if err := r.runPart(part, &j, yield); err != nil {
			return err
		}
	}
	r.apart.Store(r.adjoin() && j.overlap == 0 && j.differ == nil)
	return j.end()
}

// eachChange yields the change of every changed item. First come items whose former state only
// the full export has, in its order; then the others in the order of their first changes.
func (r *replayed) eachChange(yield func(Change, error) bool) {
	size := 0
	images := make([]bool, len(r.after)) // the exports with old images
	err := r.changes(func(c itemChange) error {
		size += cap(c.text) + 2*c.old.Size() + 2*c.keys.Size() + heldChangeBytes
		images[c.export] = images[c.export] || c.old != nil
		return nil
	})
	parts := uint64(size/r.maxBytes) + 1
	for part := uint64(0); err == nil && part < parts; part++ {
		err = r.changesOfPart(part, parts, images, yield)
	}
	if err != nil && !errors.Is(err, errStopped) {
		yield(Change{}, err)
	}
}

// changesOfPart acts like eachChange for one part of the keys.
func (r *replayed) changesOfPart(part, parts uint64, images []bool, yield func(Change, error) bool) error {
	names, changed, order, err := r.collect(part, parts, true)
	if err != nil {
		return err
	}
	give := func(s *heldChange, was []attr.Item) error {
		c := Change{Position: s.last, Was: was, Time: time.UnixMicro(s.until)}
		var err error
		item := func(text []byte) attr.Item {
			it, bad := attr.UnmarshalItem(text)
			err = errors.Join(err, bad) // an earlier read
			return it
		}
		c.Key = item(s.keys)
		for _, text := range s.was {
			c.Was = append(c.Was, item(text))
		}
		if !s.deleted {
			c.Now = item(s.text)
		}
		if err == nil && !yield(c, nil) {
			err = errStopped
		}
		return err
	}
	// Without an old image the item is new, or its export has none. If the exports overlap, the
	// full one may have a later state than the old image.
	overlap := r.overlap()
	needsFull := func(s *heldChange) bool { return s.created && !images[s.began] || s.began == 0 && overlap }
	if slices.ContainsFunc(order, func(h extsort.Hash) bool { return needsFull(changed[h]) }) {
		readErr := r.full.read(r.t, func(e Entry, bad error) bool {
			if bad != nil {
				return true // reported, and not loaded
			}
			if s := changed[keyOf(e.Item, names)]; s != nil && needsFull(s) && !s.met {
				s.met = true
				was := []attr.Item{e.Item}
				if !s.created && s.old == extsort.HashItem(e.Item) {
					was = nil // it is the first of s.was
				}
				err = give(s, was)
			}
			return err == nil
		})
		if err = cmp.Or(err, readErr); err != nil {
			return err
		}
	}
	for _, h := range order {
		if s := changed[h]; !s.met {
			if err := give(s, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// collect collects the changes to one part of the keys, in the order of the first ones, with
// the names of the key's attributes. If was is set, it includes the states before the last.
func (r *replayed) collect(part, parts uint64, was bool) (names []string, changed map[extsort.Hash]*heldChange, order []extsort.Hash, err error) {
	changed = map[extsort.Hash]*heldChange{}
	err = r.changes(func(c itemChange) error {
		if names == nil {
			names = keyNames(c.keys)
		}
		h := keyOf(c.keys, names)
		if h.Hi%parts != part {
			return nil
		}
		s := changed[h]
		switch {
		case s == nil:
			s = &heldChange{first: c.at, began: c.export, micros: c.micros, event: c.event, keys: attr.AppendItemJSON(nil, c.keys), created: c.old == nil}
			if c.old != nil {
				s.old = extsort.HashItem(c.old)
				if was {
					s.was = append(s.was, attr.AppendItemJSON(nil, c.old))
				}
			}
			changed[h], order = s, append(order, h)
		case r.records != nil && s.misses(c):
			return Damaged(ReplayGap, c.at, nil, "the %s of item %s does not fit the previous change record, at %s: the records in between are missing", c.event, s.keys, s.last)
		case r.records == nil && s.export == c.export:
			return Damaged(ReplayOrder, c.at, nil, "item %s is changed here and at %s: an incremental export has one change per item, from its first state to its last",
				s.keys, s.last)
		case c.old != nil && (s.deleted || extsort.HashItem(c.old) != s.new):
			return staleImage(c.at, s.keys, fmt.Sprintf("the previous change, at %s, left a different item", s.last))
		}
		first := s.text == nil && !s.deleted
		if was && s.text != nil {
			s.was = append(s.was, s.text)
		}
		s.last, s.until, s.export, s.text, s.deleted = c.at, c.micros, c.export, c.text, c.new == nil
		if c.new != nil {
			if s.new = extsort.HashItem(c.new); first {
				s.then = s.new
			}
		}
		return nil
	})
	return names, changed, order, err
}

// runPart acts like run for the items of one part of the keys.
func (r *replayed) runPart(part uint64, j *joint, yield func(Entry, error) bool) error {
	names, changed, order, err := r.collect(part, r.parts, false)
	if err != nil {
		return err
	}
	err = r.full.read(r.t, func(e Entry, err error) bool {
		if err != nil { // an item with a fault, reported once: it may lack the key that determines its part
			return part > 0 || yield(e, err)
		}
		if len(names) == 0 {
			return yield(e, nil)
		}
		h := keyOf(e.Item, names)
		if h.Hi%r.parts != part {
			return true
		}
		s := changed[h]
		if s == nil {
			return yield(e, nil)
		}
		s.met = true
		found := func() string { return fmt.Sprintf("the full export, at %s, has a different item", e.Position) }
		if err := r.fits(s, j, extsort.HashItem(e.Item), found); err != nil {
			yield(Entry{}, err)
			return false
		}
		return s.deleted || yield(parseEntry(s.text, plainItem, s.last))
	})
	if err != nil {
		return err
	}
	for _, h := range order {
		s := changed[h]
		if s.met {
			continue
		}
		if err := r.fits(s, j, extsort.Hash{}, func() string { return "the full export has no such item" }); err != nil {
			return err
		}
		if !s.deleted && !yield(parseEntry(s.text, plainItem, s.last)) {
			return errStopped
		}
	}
	return nil
}

// fits compares the first change of an item with the full export; full is zero if it lacks the
// item.
func (r *replayed) fits(s *heldChange, j *joint, full extsort.Hash, found func() string) error {
	switch {
	case r.records != nil:
		return r.recorded(s, full)
	case r.adjoin():
		return j.compare(s, full, found())
	}
	return nil
}

func staleImage(at Position, keys []byte, found string) error {
	return Damaged(ReplayOrder, at, nil, "the OldImage of item %s does not match the state before the change: %s", keys, found)
}

func keyNames(keys attr.Item) []string {
	var names []string
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// keySchema formats the attributes of a key with their types.
func keySchema(keys attr.Item) string {
	var text []byte
	for i, name := range keyNames(keys) {
		if i > 0 {
			text = append(text, " and "...)
		}
		text = fmt.Appendf(text, "%q (%s)", name, keys[name].Type)
	}
	return string(text)
}

// keyOf hashes the key of an item, types included.
func keyOf(item attr.Item, names []string) extsort.Hash {
	var key []byte
	for _, name := range names {
		key = attr.AppendJSON(key, item[name])
	}
	return extsort.HashOf(key)
}

// changes yields all changes in the order of the exports. Changes of one export are to
// different items.
func (r *replayed) changes(yield func(itemChange) error) error {
	check := sameKeys()
	if r.records != nil {
		return r.records.changes(func(c itemChange) error {
			if err := check(c); err != nil {
				return err
			}
			return yield(c)
		})
	}
	for i, part := range r.after {
		err := part.changes(r.t, func(c itemChange) error {
			c.export = i
			if err := check(c); err != nil {
				return err
			}
			return yield(c)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// changes yields the changes of an incremental export, in its order.
func (p exportPart) changes(t tree, yield func(itemChange) error) error {
	return p.lines(t, func(text []byte, at Position) error {
		c, err := parseChange(text, at)
		if err != nil {
			return ofAll(err) // without it, the state of the table is unknown
		}
		if written := time.UnixMicro(c.micros); written.Before(p.from) || written.After(p.to) {
			return Damaged(ReplayOrder, at, nil, "the change of item %s was written at %s, outside the time of the export, %s to %s",
				attr.AppendItemJSON(nil, c.keys), s3export.Stamp(written), s3export.Stamp(p.from), s3export.Stamp(p.to))
		}
		return yield(c)
	})
}

// parseChange reads one line of an incremental export.
func parseChange(text []byte, at Position) (itemChange, error) {
	c := itemChange{at: at}
	bad := func(format string, args ...any) (itemChange, error) {
		return itemChange{}, Damaged(NotAnItem, at, nil, format, args...)
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if tok, err := d.ReadToken(); err != nil {
		return itemChange{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
	} else if tok.Kind() != '{' {
		return bad("found a JSON %s; expected {\"Metadata\": …, \"Keys\": …}", kindName(tok.Kind()))
	}
	written := false
	for d.PeekKind() == '"' {
		tok, err := d.ReadToken()
		if err != nil {
			return itemChange{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
		}
		name := tok.String()
		value, err := d.ReadValue()
		if err != nil {
			return itemChange{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
		}
		var into *attr.Item
		switch name {
		case "Metadata":
		case "Keys":
			into = &c.keys
		case "NewImage":
			into, c.text = &c.new, slices.Clone(value)
		case "OldImage":
			into = &c.old
		default:
			return bad("unexpected member %q in a change, which has Metadata, Keys, OldImage and NewImage", name)
		}
		if name == "Metadata" { // some write its time as a plain string or number
			var plain struct{ WriteTimestampMicros jsontext.Value }
			if json.Unmarshal(value, &plain) == nil && plain.WriteTimestampMicros.Kind() != '{' {
				if c.micros, err = strconv.ParseInt(strings.Trim(string(plain.WriteTimestampMicros), `"`), 10, 64); err != nil {
					return bad("Metadata has no numeric WriteTimestampMicros")
				}
				written = true
				continue
			}
		}
		item, err := attr.UnmarshalItem(value)
		if err != nil {
			return itemChange{}, itemError(err, at)
		}
		if into != nil {
			*into = item
			continue
		}
		if c.micros, err = strconv.ParseInt(item["WriteTimestampMicros"].Str, 10, 64); err != nil {
			return bad("Metadata has no numeric WriteTimestampMicros")
		}
		written = true
	}
	if _, err := d.ReadToken(); err != nil {
		return itemChange{}, Damaged(NotJSON, at, JSONCause(err), "not JSON")
	}
	if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
		return itemChange{}, Damaged(NotJSON, at, nil, "not JSON: more text follows the change")
	}
	switch {
	case len(c.keys) == 0:
		return bad("the change has no Keys")
	case !written:
		return bad("the change has no Metadata")
	}
	if err := c.imagesFit(); err != nil {
		return itemChange{}, err
	}
	return c, nil
}

// imagesFit returns an error if the key in an image differs from Keys.
func (c *itemChange) imagesFit() error {
	for name, v := range c.keys {
		for _, image := range []attr.Item{c.new, c.old} {
			if image != nil && !attr.Equal(image[name], v) {
				return Damaged(ValueInvalid, c.at, nil, "attribute %q of an image differs from Keys", name)
			}
		}
	}
	return nil
}
