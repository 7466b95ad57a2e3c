// Package csvtext parses CSV files according to RFC 4180. Unlike encoding/csv, it keeps line ends
// inside quotes, distinguishes quoted empty cells from unquoted ones, and limits the size of a
// record.
package csvtext

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// Cell is a cell of a record.
type Cell struct {
	Text   []byte
	Quoted bool
}

// ErrTooLong is returned if a record, or the blank lines before it, have more than Reader.MaxBytes.
var ErrTooLong = errors.New("the record is too long")

// SyntaxError reports invalid CSV and its line.
type SyntaxError struct {
	Line int
	What string
}

// Error returns the line and the mistake.
func (e *SyntaxError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.What) }

// Reader reads records. All exported fields must be set.
type Reader struct {
	Text      *bufio.Reader
	Delimiter byte // separates cells
	MaxBytes  int  // maximum size of a record
	line      int  // one less than the line of the next character
}

// Line returns the 1-based line number of the next character.
func (r *Reader) Line() int { return r.line + 1 }

// Record returns the next record that is not a blank line, and the number of its first line.
// Unquoted cells are returned unchanged. After the last record it returns io.EOF. Other errors are
// ErrTooLong, a *SyntaxError, and those of Text.
func (r *Reader) Record() (cells []Cell, line int, err error) {
	size, line := 0, r.Line()
	var cell Cell
	const (
		begin  = iota // of a cell
		plain         // in an unquoted cell
		quoted        // in a quoted cell
		closed        // after the closing quote
	)
	state := begin
	fail := func(what string) ([]Cell, int, error) { return nil, line, &SyntaxError{r.Line(), what} }
	for {
		c, err := r.Text.ReadByte()
		end := errors.Is(err, io.EOF)
		switch {
		case end && state == quoted:
			return fail("a quoted cell has no closing quote")
		case end && len(cells) == 0 && state == begin:
			return nil, line, io.EOF
		case err != nil && !end:
			return nil, line, err
		}
		if size++; size > r.MaxBytes {
			return nil, line, ErrTooLong
		}
		if !end && c == '\r' && state != quoted {
			next, _ := r.Text.Peek(1)
			if len(next) == 1 && next[0] == '\n' {
				continue // the line end follows
			}
		}
		switch {
		case end, c == '\n' && state != quoted:
			if !end {
				r.line++
			}
			if len(cells) == 0 && state == begin { // a blank line
				line = r.Line()
				continue
			}
			return append(cells, cell), line, nil
		case state == quoted && c == '"':
			state = closed
		case state == closed && c == '"': // two quotes are one
			cell.Text, state = append(cell.Text, '"'), quoted
		case c == r.Delimiter && state != quoted:
			cells, cell, state = append(cells, cell), Cell{}, begin
		case state == closed:
			return fail("text follows a closing quote; a quote inside a quoted cell must be doubled")
		case state == begin && c == '"':
			cell.Quoted, state = true, quoted
		case state == plain && c == '"':
			return fail("an unquoted cell contains a quote")
		default:
			if c == '\n' {
				r.line++
			}
			if cell.Text = append(cell.Text, c); state == begin {
				state = plain
			}
		}
	}
}
