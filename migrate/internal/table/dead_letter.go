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

// DeadLetters writes the items that could not be loaded.
type DeadLetters struct {
	w io.Writer
	r *report.Report
}

// NewDeadLetters writes letters to w, and counts the items as differences in r.
func NewDeadLetters(w io.Writer, r *report.Report) *DeadLetters { return &DeadLetters{w, r} }

// DeadLetter is one line of the dead letters: an item that was not loaded, or not as a
// whole.
type DeadLetter struct {
	File   string        `json:"file"` // position in the source
	Line   int           `json:"line"`
	Table  string        `json:"table"` // the DynamoDB table
	Damage source.Damage `json:"damage"`
	Error  string        `json:"error"`
	// Item is the item. Text is the text of the entry if it is not an item.
	Item jsontext.Value `json:"item,omitzero"`
	Text string         `json:"text,omitzero"`
	// Key replaces Item if the source deletes an item that could not be deleted.
	Key jsontext.Value `json:"key,omitzero"`
}

// Add writes one letter and counts it as a difference.
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

// Write writes a letter.
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

// NotLoaded returns the failure of an item that is not loaded.
func NotLoaded(j *Job, key string, err error) report.Failure {
	return report.Failure{Kind: report.NotLoaded, Table: j.Report.Target, ItemKey: key, Damage: source.DamageOf(err), Detail: err.Error()}
}
