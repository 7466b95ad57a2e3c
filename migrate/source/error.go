package source

import (
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Damage names the kind of damage of an input.
type Damage string

// The kinds of damage. Each has its own message.
const (
	Unrecognized     Damage = "unrecognized"      // no known input format
	Unsupported      Damage = "unsupported"       // a known format that is not read
	PackingTruncated Damage = "packing-truncated" // the gzip or zstd stream ends early
	PackingCorrupt   Damage = "packing-corrupt"   // the gzip or zstd stream is damaged inside
	ChecksumMismatch Damage = "checksum-mismatch" // MD5 differs from the manifest's
	DataFileMissing  Damage = "data-file-missing" // listed in the manifest, but missing
	DataFileExtra    Damage = "data-file-extra"   // present, but not listed in the manifest
	CountMismatch    Damage = "count-mismatch"    // item count differs from the manifest's
	ManifestMissing  Damage = "manifest-missing"  // a manifest file does not exist
	ManifestInvalid  Damage = "manifest-invalid"  // a manifest file cannot be understood
	ReplayGap        Damage = "replay-gap"        // an incremental export does not begin where the state before it ends, or change records are missing
	ReplayOrder      Damage = "replay-order"      // a change is outside its export's time, or applies to another state
	NotJSON          Damage = "not-json"          // a line or document that is not JSON
	NotCSV           Damage = "not-csv"           // a record that is not CSV, or of another length than the header
	NotAnItem        Damage = "not-an-item"       // JSON of another shape than an item's
	TooLong          Damage = "too-long"          // an item larger than any item can be
	TypeUnknown      Damage = "type-unknown"      // a type tag that DynamoDB does not have
	NumberInvalid    Damage = "number-invalid"    // an N or NS that is not a DynamoDB number
	ValueInvalid     Damage = "value-invalid"     // a value that its type does not allow
	SourceEmpty      Damage = "source-empty"      // nothing to verify
	KeyMissing       Damage = "key-missing"       // an item without its declared key
	KeyTypeMismatch  Damage = "key-type-mismatch" // a key attribute of another type
	KeyDuplicate     Damage = "key-duplicate"     // two items with the same key
	KeyUnknown       Damage = "key-unknown"       // no key is declared, and none can be inferred
	SchemaInvalid    Damage = "schema-invalid"    // a table description that cannot be used
	FixtureInvalid   Damage = "fixture-invalid"   // a fixture directory that cannot be used
	MappingRefused   Damage = "mapping-refused"   // the mapping cannot hold an item
	ItemUnmatched    Damage = "unmatched"         // no rule of the mapping takes an item
	ItemBeyondLimit  Damage = "limit-exceeded"    // an item beyond a limit of DynamoDB or Bigtable
	CellCollision    Damage = "cell-collision"    // two items laid out on one cell

	LoadTimeUnknown   Damage = "load-time-unknown"  // the time of a new export is unknown
	TargetExists      Damage = "target-exists"      // the output already exists
	TargetWritten     Damage = "target-written"     // a DynamoDB endpoint wrote rows that incremental exports would overwrite
	TargetNewer       Damage = "target-newer"       // a load wrote rows that the source would undo in part, or cells newer than those of the source
	TargetFollowed    Damage = "target-followed"    // a migration follows a live table into the target
	WriteRefused      Damage = "write-refused"      // Bigtable rejected a row
	CheckpointInvalid Damage = "checkpoint-invalid" // the checkpoint belongs to another load
)

// Error is a fault of an input, with its position. Nothing has been written when a function
// returns it, with three exceptions: WriteRefused, a row that a load of incremental exports
// cannot read, and a fixture that compares nothing.
type Error struct {
	Damage Damage // kind of fault
	File   string // as named by the caller, or its path inside the source
	Line   int    // 1-based; 0 if there is no line
	Column int    // 1-based; 0 if unknown
	Detail string // the fault
	Err    error  // the cause, or nil

	all bool // other lines cannot be read either
}

// Error returns "FILE:LINE: detail", "FILE:LINE:COLUMN: detail", or only the detail if the
// fault is not in a file.
func (e *Error) Error() string { return phrase.Fault(e.File, e.Line, e.Column, e.Detail, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Damaged returns an Error at a place. err is its cause, or nil; format and args are its
// detail.
func Damaged(d Damage, p Position, err error, format string, args ...any) *Error {
	return &Error{Damage: d, File: p.File, Line: p.Line, Detail: fmt.Sprintf(format, args...), Err: err}
}

// Refused converts a mapping's error about an item to an Error.
func Refused(p Position, err error, format string, args ...any) *Error {
	d := MappingRefused
	var broken *maperr.Error
	if errors.As(err, &broken) {
		switch broken.Code { //nolint:exhaustive // the other codes have no kind of their own
		case maperr.CodeUnmatched:
			d = ItemUnmatched
		case maperr.CodeKeySize, maperr.CodeLimit:
			d = ItemBeyondLimit
		}
	}
	return Damaged(d, p, err, format, args...)
}

// DamageOf returns the damage of an error, or "" if the error is not about an input.
func DamageOf(err error) Damage {
	var input *Error
	if errors.As(err, &input) {
		return input.Damage
	}
	return ""
}

// OfItem reports whether an error concerns a single item, so that later items can still be
// read.
func OfItem(err error) bool {
	var input *Error
	if !errors.As(err, &input) {
		return false
	}
	switch input.Damage { //nolint:exhaustive // the other kinds are of whole inputs
	case NotJSON, NotCSV, NotAnItem, TypeUnknown, NumberInvalid, ValueInvalid, KeyMissing, KeyTypeMismatch,
		MappingRefused, ItemUnmatched, ItemBeyondLimit, KeyDuplicate, CellCollision:
		return input.Line > 0 && !input.all
	}
	return false
}

// ofAll marks the error of a line as one that affects the whole input.
func ofAll(err error) error {
	if input, ok := errors.AsType[*Error](err); ok {
		input.all = true
	}
	return err
}
