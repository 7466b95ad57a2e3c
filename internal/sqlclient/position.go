package sqlclient

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
)

// position is the place in the text of an error: its line and its column, from 1.
var position = regexp.MustCompile(`\[at ([0-9]+):([0-9]+)\]`)

const (
	// tabWidth is the distance of the stops of tabs, which positions count as columns.
	tabWidth = 8
	// maxMarked is the number of characters of a line that Mark shows on each side of the place.
	maxMarked = 60
)

// Mark returns the line of a query to whose place an error refers, and below it a line that marks the
// place. It returns "" for an error without a place.
func Mark(query string, err error) string {
	m := position.FindStringSubmatch(status.Convert(err).Message())
	if m == nil {
		return ""
	}
	n, _ := strconv.Atoi(m[1]) // the pattern has digits; a huge number is out of range
	column, _ := strconv.Atoi(m[2])
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(query), "\n")
	if n < 1 || n > len(lines) || column < 1 {
		return ""
	}
	line := untabbed(lines[n-1])
	at := min(column-1, len(line))
	first, last := max(0, at-maxMarked), min(len(line), at+maxMarked)
	return string(line[first:last]) + "\n" + strings.Repeat(" ", at-first) + "^"
}

// untabbed returns the characters of a line, with blanks for tabs and for what a terminal does not show.
func untabbed(line string) []rune {
	var out []rune
	for _, r := range line {
		switch {
		case r == '\t':
			for blank := true; blank || len(out)%tabWidth > 0; blank = false {
				out = append(out, ' ')
			}
		case !strconv.IsPrint(r):
			out = append(out, ' ')
		default:
			out = append(out, r)
		}
	}
	return out
}
