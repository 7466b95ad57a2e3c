package table

import (
	"fmt"
	"io"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// DeadLetters writes the items that could not be loaded to a stream.
type DeadLetters struct {
	w io.Writer
	r *report.Report
}

// NewDeadLetters returns a DeadLetters that writes to w, and counts the items as
// differences in r.
func NewDeadLetters(w io.Writer, r *report.Report) *DeadLetters { return &DeadLetters{w, r} }

// DeadLetter is one line of the dead letters. It describes an item that was not loaded, or
// was loaded only in part.
type DeadLetter struct {
	File   string        `json:"file"` // position in the source
	Line   int           `json:"line"`
	Table  string        `json:"table"` // name of the DynamoDB table
	Damage source.Damage `json:"damage"`
	Error  string        `json:"error"`
	// Item is the item. If the entry is not an item, Text holds its text instead.
	Item jsontext.Value `json:"item,omitzero"`
	Text string         `json:"text,omitzero"`
	// Key replaces Item for an item that the source deletes but the load could not
	// delete.
	Key jsontext.Value `json:"key,omitzero"`
}

// Add writes the letter of entry e, which could not be loaded because of err, and counts the
// item as a difference.
func (l *DeadLetters) Add(j *Job, e source.Entry, err error) error {
	letter, key := DeadLetter{}, ""
	if e.Item != nil {
		letter.Item, key = attr.AppendItemJSON(nil, e.Item), j.KeyJSON(e.Item)
	} else {
		letter.Text = string(e.Text)
	}
	l.r.Fail(NotLoaded(j, key, err))
	return l.Write(j, letter, e.Position, err)
}

// Write fills in the position and the error of a letter, and writes it. It counts the letter
// in j's report, but does not count the item as a difference.
func (l *DeadLetters) Write(j *Job, letter DeadLetter, at source.Position, err error) error {
	letter.File, letter.Line, letter.Table, letter.Damage, letter.Error = at.File, at.Line, j.Report.Name, source.DamageOf(err), err.Error()
	j.Report.DeadLetters++
	text, err := json.Marshal(letter, jsontext.AllowInvalidUTF8(true))
	if err != nil {
		return fmt.Errorf("writing a dead letter: %w", err)
	}
	if _, err := l.w.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("writing a dead letter: %w", err)
	}
	return nil
}

// NotLoaded returns the failure of an item that was not loaded.
func NotLoaded(j *Job, key string, err error) report.Failure {
	return report.Failure{Kind: report.NotLoaded, Table: j.Report.Target, ItemKey: key, Damage: source.DamageOf(err), Detail: err.Error()}
}
