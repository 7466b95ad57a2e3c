package syntax

import (
	"fmt"
	"unicode/utf8"
)

// Error is a syntax error. Message is the text without "Syntax error: " and the position.
type Error struct {
	Message string
	Offset  int // in bytes
	text    string
	bare    bool // GoogleSQL does not call it a syntax error
}

// Error returns the text of GoogleSQL: Syntax error: Unclosed string literal [at 1:8].
func (e *Error) Error() string {
	text := e.Message + " " + At(e.text, e.Offset)
	if e.bare {
		return text
	}
	return "Syntax error: " + text
}

// Unsupported rejects a construct of GoogleSQL that Bigtable does not have.
type Unsupported struct {
	Construct string // "LEFT JOIN", or "Subqueries"
	Offset    int    // in bytes
	text      string
}

// Error returns the text with the name and the position of the construct. The service's text for
// subqueries has no position.
func (e *Unsupported) Error() string {
	if e.Construct == subqueries {
		return "Subqueries are not supported"
	}
	return fmt.Sprintf("%s is not supported %s", e.Construct, At(e.text, e.Offset))
}

// subqueries is the construct of a subquery in an expression.
const subqueries = "Subqueries"

// tabWidth is the distance of the stops of tabs, which GoogleSQL counts as columns.
const tabWidth = 8

// At returns the position of a byte of a statement in the form of GoogleSQL's errors: [at 1:8].
// Lines end with LF, CR, or both. Columns count characters, and a tab fills its columns.
func At(text string, offset int) string {
	line, column := 1, 1
	for i := 0; i < offset && i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		i += size
		switch {
		case r == '\r' && i < len(text) && text[i] == '\n':
		case r == '\n' || r == '\r':
			line, column = line+1, 1
		case r == '\t':
			column += tabWidth - (column-1)%tabWidth
		default:
			column++
		}
	}
	return fmt.Sprintf("[at %d:%d]", line, column)
}
