package source

import (
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Damage is a kind of damage to an input.
type Damage string

// Kinds of damage. Each has a distinct message.
const (
	Unrecognized     Damage = "unrecognized"      // the input has no known format
	Unsupported      Damage = "unsupported"       // the format is known, but cannot be read
	PackingTruncated Damage = "packing-truncated" // the gzip or zstd stream ends early
	PackingCorrupt   Damage = "packing-corrupt"   // the gzip or zstd stream is damaged
	ChecksumMismatch Damage = "checksum-mismatch" // the MD5 of a file differs from that in the manifest
	DataFileMissing  Damage = "data-file-missing" // a file that the manifest lists does not exist
	DataFileExtra    Damage = "data-file-extra"   // a file is not listed in the manifest
	CountMismatch    Damage = "count-mismatch"    // the number of items differs from that in the manifest
	ManifestMissing  Damage = "manifest-missing"  // a manifest file does not exist
	ManifestInvalid  Damage = "manifest-invalid"  // a manifest file cannot be parsed
	ReplayGap        Damage = "replay-gap"        // an incremental export does not begin where the previous state ends, or change records are missing
	ReplayOrder      Damage = "replay-order"      // a change is outside the time of its export, or applies to another state
	NotJSON          Damage = "not-json"          // a line or document is not JSON
	NotCSV           Damage = "not-csv"           // a record is not CSV, or its length differs from that of the header
	NotAnItem        Damage = "not-an-item"       // the JSON does not have the form of an item
	TooLong          Damage = "too-long"          // an item is larger than any DynamoDB item can be
	TypeUnknown      Damage = "type-unknown"      // DynamoDB does not have the type tag
	NumberInvalid    Damage = "number-invalid"    // an N or NS is not a DynamoDB number
	ValueInvalid     Damage = "value-invalid"     // a value is invalid for its type
	SourceEmpty      Damage = "source-empty"      // the source has no items to verify
	KeyMissing       Damage = "key-missing"       // an item lacks its declared key
	KeyTypeMismatch  Damage = "key-type-mismatch" // a key attribute has the wrong type
	KeyDuplicate     Damage = "key-duplicate"     // two items have the same key
	KeyUnknown       Damage = "key-unknown"       // no key is declared, and none can be inferred
	SchemaInvalid    Damage = "schema-invalid"    // a table description cannot be used
	FixtureInvalid   Damage = "fixture-invalid"   // a fixture directory cannot be used
	MappingRefused   Damage = "mapping-refused"   // the mapping cannot store an item
	ItemUnmatched    Damage = "unmatched"         // no rule of the mapping matches an item
	ItemBeyondLimit  Damage = "limit-exceeded"    // an item exceeds a limit of DynamoDB or Bigtable
	CellCollision    Damage = "cell-collision"    // two items are laid out in the same cell

	LoadTimeUnknown   Damage = "load-time-unknown"  // the time of a new export is unknown
	TargetExists      Damage = "target-exists"      // the output already exists
	TargetWritten     Damage = "target-written"     // a DynamoDB endpoint wrote rows that incremental exports would overwrite
	TargetNewer       Damage = "target-newer"       // a load wrote rows that the source would undo in part, or cells newer than those of the source
	TargetFollowed    Damage = "target-followed"    // a migration follows a live table into the target
	WriteRefused      Damage = "write-refused"      // Bigtable rejected a row
	CheckpointInvalid Damage = "checkpoint-invalid" // the checkpoint belongs to another load
)

// Error is a fault in an input, with its position. When a function returns an Error, it
// has written nothing, with three exceptions: WriteRefused, a row that a load of
// incremental exports cannot read, and a fixture that compares nothing.
type Error struct {
	Damage Damage // kind of fault
	File   string // name given by the caller, or path inside the source
	Line   int    // line number, from 1; 0 if there is no line
	Column int    // column number, from 1; 0 if unknown
	Detail string // description of the fault
	Err    error  // cause, or nil

	all bool // other lines cannot be read either
}

// Error returns "FILE:LINE: detail" or "FILE:LINE:COLUMN: detail". It returns only the
// detail if the fault is not in a file.
func (e *Error) Error() string { return phrase.Fault(e.File, e.Line, e.Column, e.Detail, e.Err) }

// Unwrap returns the cause of the error.
func (e *Error) Unwrap() error { return e.Err }

// Damaged returns an Error at a position. err is its cause, or nil. The detail is
// formatted from format and args.
func Damaged(d Damage, p Position, err error, format string, args ...any) *Error {
	return &Error{Damage: d, File: p.File, Line: p.Line, Detail: fmt.Sprintf(format, args...), Err: err}
}

// Refused converts the error of a mapping that refuses an item to an Error.
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

// DamageOf returns the kind of damage that err reports, or "" if err does not concern an
// input.
func DamageOf(err error) Damage {
	var input *Error
	if errors.As(err, &input) {
		return input.Damage
	}
	return ""
}

// OfItem reports whether an error concerns only a single item, so that later items can
// still be read.
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
