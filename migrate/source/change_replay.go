package source

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/extsort"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// recordClock is the precision of the times of change records: streams cut them to seconds.
const recordClock = time.Second

// recordSet has the change records of one table.
type recordSet struct {
	t      tree
	files  []recordFile
	table  string // "": the records do not name it
	first  int64  // microseconds, of the earliest record
	last   int64  // of the latest
	at     Position
	number bool // the records have sequence numbers
	most   int  // size of a sorted run, in bytes
}

// surveyRecords reads all change records once, and returns them by table.
func surveyRecords(t tree, files []recordFile) (map[string]*recordSet, error) {
	sets := map[string]*recordSet{}
	for _, f := range files {
		err := f.read(t, func(text []byte, at Position) error {
			r, err := parseRecord(text, at)
			if err != nil {
				return err
			}
			s := sets[r.table]
			if s == nil {
				s = &recordSet{t: t, files: files, table: r.table, first: r.micros, last: r.micros, at: at, number: r.numbered, most: maxReplayBytes}
				sets[r.table] = s
			}
			if s.number != r.numbered {
				return ofAll(Damaged(Unsupported, at, nil,
					"this change record and the one at %s come from a stream and from Kinesis, so their order is unknown: use records from only one of them", s.at))
			}
			s.first, s.last = min(s.first, r.micros), max(s.last, r.micros)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// replayRecords returns the table of a full export after its change records. It rejects
// records that are all older than the export.
func replayRecords(t tree, full exportPart, records *recordSet) (*replayed, error) {
	from, to := time.UnixMicro(records.first).UTC(), time.UnixMicro(records.last).UTC()
	if to.Add(recordClock).Before(full.to) {
		return nil, Damaged(ReplayOrder, Position{File: records.at.File}, nil,
			"the change records end at %s, before the full export of table %s at %s, which has all their changes: remove the records from the folder", s3export.Stamp(to), full.table, s3export.Stamp(full.to))
	}
	part := exportPart{table: full.table, incremental: true, from: from, to: to}
	return &replayed{t: t, full: full, after: []exportPart{part}, records: records, maxBytes: maxReplayBytes}, nil
}

// recordsOf assigns the change records below a folder to the tables of full exports.
func recordsOf(t tree, dir string, exports []string, full map[string]exportPart) (map[string]*recordSet, error) {
	files, err := findRecords(t, dir, exports)
	if err != nil || len(files) == 0 {
		return nil, err
	}
	sets, err := surveyRecords(t, files)
	if err != nil {
		return nil, err
	}
	of := map[string]*recordSet{}
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		s := sets[name]
		if name == "" && len(full) == 1 && len(sets) == 1 {
			for only := range full {
				name = only
			}
		}
		switch _, ok := full[name]; {
		case name == "":
			return nil, ofAll(Damaged(Unsupported, s.at, nil, "the change records do not name their table, and the folder has several exports or other records: put them into a folder with only the full export of their table"))
		case !ok:
			return nil, ofAll(Damaged(ReplayGap, s.at, nil, "the change records are of table %s, whose full export is not in the folder: put both into one folder, or remove those records (jq -c 'select(.tableName != \"%[1]s\")')", name))
		}
		of[name] = s
	}
	return of, nil
}

// sortedRecord is a change record while the records are sorted.
type sortedRecord struct {
	key, order string
	n          int64 // in the order of the input
	at         Position
	text       []byte
}

// compareRecords orders the records of each item by their changes.
func compareRecords(a, b sortedRecord) int {
	return cmp.Or(strings.Compare(a.key, b.key), strings.Compare(a.order, b.order), cmp.Compare(a.n, b.n))
}

func appendRecord(dst []byte, r sortedRecord) []byte {
	for _, text := range []string{r.key, r.order, r.at.File, string(r.text)} {
		dst = append(binary.AppendUvarint(dst, uint64(len(text))), text...)
	}
	return binary.AppendVarint(binary.AppendVarint(dst, r.n), int64(r.at.Line))
}

func readRecord(in *bufio.Reader) (r sortedRecord, err error) {
	var texts [4][]byte
	for i := range texts {
		n, err := binary.ReadUvarint(in)
		if err != nil {
			return r, err
		}
		texts[i] = make([]byte, n)
		if _, err := io.ReadFull(in, texts[i]); err != nil {
			return r, err
		}
	}
	r.key, r.order, r.at.File, r.text = string(texts[0]), string(texts[1]), string(texts[2]), texts[3]
	if r.n, err = binary.ReadVarint(in); err != nil {
		return r, err
	}
	line, err := binary.ReadVarint(in)
	r.at.Line = int(line)
	return r, err
}

// changes yields the changes of each item in their order, items by their keys. It skips
// repeated records.
func (s *recordSet) changes(yield func(itemChange) error) error {
	sorter := &extsort.Sorter[sortedRecord]{
		What: "change records", Most: s.most, Compare: compareRecords, Append: appendRecord, Read: readRecord,
		Size: func(r sortedRecord) int { return len(r.key) + len(r.order) + len(r.text) + 128 },
	}
	defer sorter.Close()
	n := int64(0)
	for _, f := range s.files {
		err := f.read(s.t, func(text []byte, at Position) error {
			r, err := parseRecord(text, at)
			if err != nil || r.table != s.table {
				return err
			}
			n++
			return sorter.Add(sortedRecord{string(attr.AppendItemJSON(nil, r.keys)), r.order, n, at, bytes.Clone(text)})
		})
		if err != nil {
			return err
		}
	}
	next, err := sorter.Sorted()
	if err != nil {
		return err
	}
	var last sortedRecord
	seen := map[string]bool{} // the ids of the records with the same order
	for {
		sorted, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		r, err := parseRecord(sorted.text, sorted.at)
		if err != nil {
			return err // the file has changed
		}
		if sorted.key != last.key || sorted.order != last.order {
			clear(seen)
		}
		last = sorted
		if repeated := seen[r.id] || s.number && len(seen) > 0; repeated {
			continue
		}
		seen[r.id] = true
		if err := yield(r.itemChange); err != nil {
			return err
		}
	}
}

// recorded returns an error if the change records of an item, in s, do not fit the item in
// the full export. full is the hash of that item, and zero if the export lacks it. The full
// export may or may not include the changes of its last second.
func (r *replayed) recorded(s *heldChange, full extsort.Hash) error {
	none, after := extsort.Hash{}, s.new
	if s.deleted {
		after = none
	}
	switch first, last := time.UnixMicro(s.micros), time.UnixMicro(s.until); {
	case last.Add(recordClock).Before(r.full.to) && after != full:
		return Damaged(ReplayGap, s.last, nil, "the change record of item %s is older than the full export, which has a different state of the item: later records are missing", s.keys)
	case first.Add(-recordClock).After(r.full.to) && (s.event == eventInsert) != (full == none), first.Add(-recordClock).After(r.full.to) && !s.created && s.old != full:
		return Damaged(ReplayGap, s.first, nil, "the %s of item %s does not fit the full export, which has a different state of the item: earlier change records are missing", s.event, s.keys)
	}
	return nil
}

// misses reports whether records are missing between the last change in s and the change
// record c. Only an INSERT can follow a deletion, and it can follow nothing else.
func (s *heldChange) misses(c itemChange) bool { return (c.event == eventInsert) != s.deleted }

// sameKeys returns a function that rejects changes whose Keys are not those of the first one.
func sameKeys() func(itemChange) error {
	var first Position
	var key string
	return func(c itemChange) error {
		switch k := keySchema(c.keys); {
		case key == "":
			first, key = c.at, k
		case key != k:
			return Damaged(ReplayOrder, c.at, nil, "the change has the Keys %s, but the change at %s has %s: all items of a table have the same key attributes", k, first, key)
		}
		return nil
	}
}
