package stream

import (
	"fmt"
	"time"
)

// Kind names the kind of an [Error].
type Kind string

// The kinds of errors.
const (
	NoTable     Kind = "no-table"     // the source does not have the table
	NotEnabled  Kind = "not-enabled"  // the table has no enabled stream
	View        Kind = "view"         // the records of the stream lack the new images
	OtherStream Kind = "other-stream" // the expected stream is not the latest one of the table
	OtherTable  Kind = "other-table"  // the table of the checkpoint was deleted; this one only has its name
	Gap         Kind = "gap"          // records are missing
	BadRecord   Kind = "bad-record"   // a record contradicts the documentation of streams
	Refused     Kind = "refused"      // the source refuses a call permanently
	Unanswered  Kind = "unanswered"   // the source does not answer
)

// Error is an error of the source. Its text includes the next step of the user.
type Error struct {
	Kind   Kind
	Table  string
	Shard  string    // "" if it concerns the whole stream
	Since  time.Time // of a Gap: records before it were applied; the zero time if unknown
	Detail string
	Err    error // the cause, or nil
}

// Error returns "table T: detail" or "table T, shard S: detail", and the cause.
func (e *Error) Error() string {
	text := "table " + e.Table
	if e.Shard != "" {
		text += ", shard " + e.Shard
	}
	text += ": " + e.Detail
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func (s *Stream) fail(kind Kind, shard string, err error, format string, args ...any) *Error {
	return &Error{Kind: kind, Table: s.opts.Table, Shard: shard, Err: err, Detail: fmt.Sprintf(format, args...)}
}

// startAgain is the remedy if the changes cannot be continued: the target keeps an old state.
const startAgain = "export the table again, load it into another instance, and follow it there"

// gap returns an error for missing records: those since a time, or of an unknown time if it is
// zero.
func (s *Stream) gap(shard string, since time.Time, err error, format string, args ...any) *Error {
	e := s.fail(Gap, shard, err, format, args...)
	if e.Since = since; !since.IsZero() {
		e.Detail += fmt.Sprintf("; records since %s are missing; apply incremental exports from then on (tabletop migrate follow %s --increments DIR), and follow the stream again; or "+
			startAgain, since.UTC().Format(time.RFC3339), s.opts.Table)
		return e
	}
	e.Detail += "; " + startAgain
	return e
}
