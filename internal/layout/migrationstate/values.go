package migrationstate

import (
	"encoding/json"
	"fmt"
	"time"
)

// format is the version of the values. A later program may add members; a value whose present
// members have another meaning has another format.
const format = 1

// Checkpoint is the progress of a follower: every change up to it is applied, without a gap.
type Checkpoint struct {
	// Source is the kind of the source: "" for DynamoDB Streams.
	Source    string    `json:"source,omitempty"`
	Stream    string    `json:"stream"`  // the ARN
	TableID   string    `json:"tableId"` // of the source
	From      time.Time `json:"from,omitzero"`
	Watermark time.Time `json:"watermark,omitzero"` // all writes that the source acknowledged before it are applied
	Epoch     uint16    `json:"epoch"`              // epoch of the first positions
	Shards    []Shard   `json:"shards,omitempty"`
	Window    *Window   `json:"window,omitempty"` // of an incremental export that is being applied
	Files     *Files    `json:"files,omitempty"`  // of a Kinesis data stream
	// Since is where the source began: all changes before it were applied.
	Since time.Time `json:"since,omitzero"`
	// Reached is the time up to which an earlier source may have applied changes: until the watermark
	// is after it, items may have states of different times.
	Reached  time.Time `json:"reached,omitzero"`
	Mapping  string    `json:"mapping"` // the hash of the mapping
	Version  string    `json:"version"` // of the program that wrote it
	At       time.Time `json:"at"`      // of the write
	Progress Progress  `json:"progress"`
	// Flags are the flags of the program, except those of the target and of the source, as in a shell.
	Flags       string `json:"flags,omitempty"`
	SourceFlags string `json:"sourceFlags,omitempty"` // the flags that name the DynamoDB; a verification has them too
}

// Lag returns how far a watermark of the table or of a shard is behind the source; negative if it is unknown.
// Until the first answers of all shards are applied, a watermark is only where the run begins to read.
func (c Checkpoint) Lag(watermark time.Time) time.Duration {
	if watermark.IsZero() || watermark.Before(c.Since) && (c.Progress.Rule == "" || !watermark.After(c.From)) {
		return -1
	}
	return max(0, c.Progress.SourceNow.Sub(watermark))
}

// Shard is the progress in a shard.
type Shard struct {
	ID        string    `json:"id"`
	Parent    string    `json:"parent,omitempty"`
	Sequence  string    `json:"sequence,omitempty"` // sequence number of the last applied record, in decimal
	Before    string    `json:"before,omitempty"`   // last sequence number in the parent's lineage
	Epoch     uint16    `json:"epoch"`              // of its positions
	Done      bool      `json:"done,omitempty"`
	Watermark time.Time `json:"watermark,omitzero"`
}

// Window is the progress in an incremental export.
type Window struct {
	Export  string    `json:"export"` // its folder
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Applied int64     `json:"applied"` // changes
}

// Files is the progress in a folder to which records are appended.
type Files struct {
	Begun  bool   `json:"begun,omitempty"` // a record of the table was found
	Late   int64  `json:"late,omitempty"`  // records that came after the watermark had passed them
	Folded Folded `json:"folded,omitzero"`
	Open   []File `json:"open,omitempty"`
}

// Folded are the files up to a name, which were read to their ends.
type Folded struct {
	Through string `json:"through"`
	Files   int    `json:"files"`
	Bytes   int64  `json:"bytes"`
}

// File is the progress in a file.
type File struct {
	Name    string `json:"name"`
	Offset  int64  `json:"offset"`  // where to continue
	Line    int    `json:"line"`    // number of lines before Offset
	Applied int64  `json:"applied"` // offset up to which records are applied
}

// Progress counts the work of a follower since its start.
type Progress struct {
	Started   time.Time `json:"started"`
	SourceNow time.Time `json:"sourceNow"` // the clock of the source at Checkpoint.At
	Rule      string    `json:"rule,omitempty"`
	Changes   int64     `json:"changes"` // records
	Applied   int64     `json:"applied"` // items
	Already   int64     `json:"already"` // items that had this position or a later one
	Refused   int64     `json:"refused"` // dead letters
	Unread    int64     `json:"unread"`  // rows written without a read
	Read      int64     `json:"read"`    // rows that were read first
	Raced     int64     `json:"raced"`   // rows that changed between the read and the write
	Rate      float64   `json:"rate"`    // recent records per second
	Throttles int       `json:"throttles"`
	Late      int64     `json:"late,omitempty"` // changes that came after the watermark had passed them
	Mode      string    `json:"mode"`           // guarded or ordered
	Lags      Lags      `json:"lags,omitzero"`
	// Dirty is the earliest generation to which the follower may still add keys of changes after
	// this checkpoint.
	Dirty uint64 `json:"dirty,omitempty"`
}

// Letter is a change that cannot be applied: the target keeps the older state of the item.
type Letter struct {
	Key      string    `json:"key"`               // of the item, in DynamoDB's JSON
	Code     string    `json:"code"`              // of the reason, such as E-DOMAIN
	Reason   string    `json:"reason"`            // with the value and the expectation
	Mapping  string    `json:"mapping,omitempty"` // the line of the mapping file
	Position []byte    `json:"position"`          // of the change
	Record   string    `json:"record,omitempty"`  // the change, in JSON
	At       time.Time `json:"at"`                // of the first attempt
}

// Dirty is the key of an item that changed since the previous generation was verified.
type Dirty struct {
	Key string    `json:"key"` // in DynamoDB's JSON
	At  time.Time `json:"at"`  // of the change
}

// Event is a change of a phase.
type Event struct {
	From  Phase     `json:"from,omitempty"` // "": the first phase
	To    Phase     `json:"to"`
	Epoch uint16    `json:"epoch"`
	By    string    `json:"by"`
	At    time.Time `json:"at"`
}

// Split divides the rows of a table, and of the tables of its indexes, among the parts of a
// verification: all parts must use the same ranges, even on several machines.
type Split struct {
	Cuts map[string][][]byte `json:"cuts"` // the first key of each range but the first, by table
	At   time.Time           `json:"at"`
}

// Value is a value of a row.
type Value interface {
	State | Checkpoint | Letter | Dirty | Event | Split
}

// versioned adds the format to a value.
type versioned[V Value] struct {
	Format int `json:"format"`
	Value  V   `json:"value"`
}

// Encode returns the value of a cell. It fails only for a time outside of the years 0 to 9999,
// which a source can have.
func Encode[V Value](v V) ([]byte, error) {
	text, err := json.Marshal(versioned[V]{format, v})
	if err != nil {
		return nil, fmt.Errorf("encoding a value for table %s: %w", Table, err)
	}
	return text, nil
}

// Decode returns the value of a cell in the row with the given key.
func Decode[V Value](row, cell []byte) (v V, err error) {
	var of struct {
		Format int             `json:"format"`
		Value  json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(cell, &of); err != nil {
		return v, fmt.Errorf("row %q of %s cannot be read: %w", row, Table, err)
	}
	if of.Format != format {
		return v, fmt.Errorf("row %q of %s has format %d, and this version reads format %d: use the version that wrote it", row, Table, of.Format, format)
	}
	if err := json.Unmarshal(of.Value, &v); err != nil {
		return v, fmt.Errorf("row %q of %s cannot be read: %w", row, Table, err)
	}
	return v, nil
}
