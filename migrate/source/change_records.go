package source

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/s3export"
)

// Change records are the records of DynamoDB Streams, and those that DynamoDB delivers to a
// Kinesis data stream: one record for each change of an item. Sources: the reference of
// GetRecords, and developer guide, "Using Kinesis Data Streams to capture changes".

// The events of change records.
const (
	eventInsert = "INSERT"
	eventModify = "MODIFY"
	eventRemove = "REMOVE"
)

// recordText is the JSON of a change record.
type recordText struct {
	ID     string        `json:"eventID"`
	Event  string        `json:"eventName"`
	Table  string        `json:"tableName"`      // from Kinesis
	Stream string        `json:"eventSourceARN"` // from Lambda and EventBridge Pipes
	Change *recordChange `json:"dynamodb"`
}

type recordChange struct {
	Time      jsontext.Value `json:"ApproximateCreationDateTime"`
	Precision string         `json:"ApproximateCreationDateTimePrecision"` // from Kinesis; "": MILLISECOND
	Keys      jsontext.Value `json:"Keys"`
	New       jsontext.Value `json:"NewImage"`
	Old       jsontext.Value `json:"OldImage"`
	Sequence  string         `json:"SequenceNumber"` // from streams
	View      string         `json:"StreamViewType"`
}

// changeRecord is one change record.
type changeRecord struct {
	itemChange
	table    string // "" if the record does not name it
	id       string // the same for repeated records
	order    string // orders the changes of an item
	numbered bool   // order is a SequenceNumber
	exact    bool   // the time is in microseconds, and says so
}

// parseRecord parses one change record.
func parseRecord(text []byte, at Position) (changeRecord, error) {
	bad := func(err error, format string, args ...any) (changeRecord, error) {
		return changeRecord{}, ofAll(Damaged(NotAnItem, at, err, format, args...))
	}
	var in recordText
	if err := json.Unmarshal(text, &in); err != nil {
		return bad(JSONCause(err), "not a change record")
	}
	if in.Change == nil {
		return bad(nil, `not a change record: it has no member "dynamodb"`)
	}
	r := changeRecord{itemChange: itemChange{at: at, event: in.Event}, table: in.Table, id: in.ID}
	if arn, ok := s3export.TableName(in.Stream); ok && r.table == "" {
		r.table, _, _ = strings.Cut(arn, "/")
	}
	var ok bool
	if r.micros, ok = recordMicros(in.Change.Time); !ok {
		return bad(nil, "ApproximateCreationDateTime of the change record is not a time")
	}
	micros, err := strconv.ParseInt(string(in.Change.Time), 10, 64)
	r.exact = in.Change.Precision == "MICROSECOND" && err == nil && micros == r.micros
	r.numbered = in.Change.Sequence != ""
	if r.order, ok = recordOrder(r.micros, in.Change.Sequence); !ok {
		return bad(nil, "SequenceNumber %.40q of the change record is not a number", in.Change.Sequence)
	}
	for _, image := range []struct {
		text jsontext.Value
		into *attr.Item
	}{{in.Change.Keys, &r.keys}, {in.Change.New, &r.new}, {in.Change.Old, &r.old}} {
		if len(image.text) == 0 || image.text.Kind() == 'n' {
			continue
		}
		item, err := attr.UnmarshalItem(image.text)
		if err != nil {
			return changeRecord{}, ofAll(itemError(err, at))
		}
		*image.into = item
	}
	if r.new != nil {
		r.text = in.Change.New
	}
	if r.id == "" { // some programs drop it
		r.id = string(slices.Concat(in.Change.Old, []byte("\n"), in.Change.New))
	}
	if err := r.check(in.Change.View); err != nil {
		return changeRecord{}, ofAll(err)
	}
	return r, nil
}

// KinesisRecord is a change of an item, as DynamoDB delivers it to a Kinesis data stream.
type KinesisRecord struct {
	Table string
	Keys  attr.Item // the key attributes
	Old   attr.Item // the item before the change; nil if it was created
	New   attr.Item // the item after the change; nil if it was deleted
	Time  time.Time // of the change
	Exact bool      // Time is exact to the microsecond, otherwise to the millisecond
}

// ParseKinesisRecord parses the JSON of a record of Kinesis Data Streams for DynamoDB.
func ParseKinesisRecord(text []byte, at Position) (KinesisRecord, error) {
	in, err := parseRecord(text, at)
	if err != nil {
		return KinesisRecord{}, err
	}
	r := KinesisRecord{Table: in.table, Keys: in.keys, Old: in.old, New: in.new, Time: time.UnixMicro(in.micros).UTC(), Exact: in.exact}
	switch {
	case in.numbered:
		err = Damaged(Unsupported, at, nil, "the record has a SequenceNumber, so it comes from DynamoDB Streams, not from Kinesis: follow the stream itself (tabletop migrate follow, without a folder)")
	case in.micros < 0:
		err = Damaged(NotAnItem, at, nil, "ApproximateCreationDateTime of the change record is before 1970")
	case r.Table == "":
		err = Damaged(NotAnItem, at, nil, "the change record does not name its table (tableName)")
	case (in.event == eventInsert) != (r.Old == nil):
		err = Damaged(NotAnItem, at, nil, "the OldImage of the change record contradicts its event %s", in.event)
	}
	return r, ofAll(err)
}

// check rejects a record that does not determine the item after the change. view is the
// StreamViewType of the record, for messages.
func (r *changeRecord) check(view string) error {
	if view != "" {
		view = " (StreamViewType " + view + ")"
	}
	switch {
	case r.event != eventInsert && r.event != eventModify && r.event != eventRemove:
		return Damaged(NotAnItem, r.at, nil, "eventName %.40q of the change record is not INSERT, MODIFY or REMOVE", r.event)
	case len(r.keys) == 0:
		return Damaged(NotAnItem, r.at, nil, "the change record has no Keys")
	case r.event == eventRemove && r.new != nil:
		return Damaged(NotAnItem, r.at, nil, "the change record is a REMOVE with a NewImage")
	case r.event != eventRemove && r.new == nil:
		return Damaged(Unsupported, r.at, nil,
			"the record of the %s%s has no NewImage, so the changed item is unknown: give the table a stream with NEW_AND_OLD_IMAGES, export the table to S3 again, and use the records since then", r.event, view)
	}
	return r.imagesFit()
}

// recordMicros parses the time of a record: a number of seconds, milliseconds or microseconds,
// or the ISO 8601 text of the AWS CLI.
func recordMicros(v jsontext.Value) (micros int64, ok bool) {
	switch v.Kind() { //nolint:exhaustive // other kinds are no times
	case '"':
		var text string
		if json.Unmarshal(v, &text) != nil {
			return 0, false
		}
		t, err := time.Parse(time.RFC3339Nano, text)
		return t.UnixMicro(), err == nil
	case '0':
		n, err := strconv.ParseFloat(string(v), 64)
		const largestSeconds, largestMillis = 1e11, 1e14 // in the year 5138
		switch {
		case err != nil || n < 0 || n >= largestMillis*1e3:
			return 0, false
		case n < largestSeconds:
			return int64(n * 1e6), true
		case n < largestMillis:
			return int64(n * 1e3), true
		}
		return int64(n), true
	}
	return 0, false
}

// recordOrder returns a text that orders the changes of an item, by their sequence numbers
// or, without them, by their times in microseconds. ok is false for a sequence that is not a
// number of at most 40 digits.
func recordOrder(micros int64, sequence string) (order string, ok bool) {
	const longest = 40
	if sequence == "" {
		sequence = strconv.FormatInt(micros, 10)
	}
	if strings.Trim(sequence, "0123456789") != "" || len(sequence) > longest {
		return "", false
	}
	sequence = strings.TrimLeft(sequence, "0")
	return string(rune('A'+len(sequence))) + sequence, true
}

// recordFile is a file with change records.
type recordFile struct {
	name   string
	layout fileLayout
}

// findRecords lists the files with change records below a folder, except inside the given
// exports, in the order of their paths.
func findRecords(t tree, dir string, exports []string) (files []recordFile, err error) {
	err = fs.WalkDir(t, dir, func(name string, d fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case name != dir && (strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")), base == s3export.Folder, slices.Contains(exports, name):
			if d.IsDir() {
				return fs.SkipDir
			}
		case d.IsDir() && strings.Count(name, "/") > strings.Count(dir, "/")+maxExportDepth:
			return fs.SkipDir
		case d.Type().IsRegular(), d.Type() == fs.ModeSymlink:
			if found := recordLayout(t, name); found != unknownLayout {
				files = append(files, recordFile{name, found})
			}
		}
		return nil
	})
	if err != nil {
		return nil, Damaged(Unrecognized, Position{File: t.label(dir)}, err, "cannot read the folder")
	}
	return files, nil
}

// recordLayout returns the layout of a file with change records, and unknownLayout for other
// files.
func recordLayout(t tree, name string) fileLayout {
	in, err := t.open(name)
	if err != nil {
		return unknownLayout // another file beside the export
	}
	defer in.close()
	found, _, err := recognize(in)
	if err == nil && found.ofRecords() {
		return found
	}
	return unknownLayout
}

// ofRecords reports whether files of the layout have change records.
func (l fileLayout) ofRecords() bool {
	return l == recordLines || l == recordArrays || l == recordPages
}

// read yields the text of each record of a file.
func (f recordFile) read(t tree, yield func(text []byte, at Position) error) error {
	in, err := t.open(f.name)
	if err != nil {
		return err
	}
	defer in.close()
	d := newDocument(in)
	one := func() error {
		text, at, err := d.value()
		if err != nil {
			return err
		}
		return yield(text, at)
	}
	for next := d.PeekKind(); next == '{' || next == '['; next = d.PeekKind() {
		switch f.layout { //nolint:exhaustive // the other layouts have no records
		case recordArrays:
			err = d.array(one)
		case recordPages:
			err = d.object(func(name string) error {
				if name == "Records" {
					return d.array(one)
				}
				return d.skip()
			})
		default:
			err = one()
		}
		if err != nil {
			return ofAll(err)
		}
	}
	return ofAll(d.end())
}

// recordsOfKinesis rejects the answer of GetRecords of Kinesis, whose records are encoded.
func recordsOfKinesis(d *document) error {
	return Damaged(Unsupported, Position{File: d.in.label}, nil,
		"the file has records of a Kinesis data stream, whose Data is base64: decode it to one change record per line (jq -r '.Records[].Data | @base64d')")
}

// recordsAlone rejects change records without the export before them.
func recordsAlone(at Position) error {
	return Damaged(Unsupported, at, nil,
		"the file has change records of a stream, but not the items that they change: put it into a folder with the full export to S3 that precedes them, and open that folder")
}
