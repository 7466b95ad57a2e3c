package sqlclient

import (
	"regexp"
	"strconv"
	"strings"

	"google.golang.org/grpc/status"
)

// position matches the position in an error message: a line and a column, both from 1.
var position = regexp.MustCompile(`\[at ([0-9]+):([0-9]+)\]`)

const (
	// tabWidth is the distance between tab stops. The column of an error counts a tab up to the
	// next stop.
	tabWidth = 8
	// maxMarked is the number of characters that Mark shows on each side of an error, at most.
	maxMarked = 60
)

// Mark returns the part of query's line at the position in err, and below it a line with ^ under the
// column. It returns "" if err has no position, or one outside of query.
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

// untabbed returns the characters of a line. Tabs become blanks up to the next stop, and a character
// that is not printable becomes one blank.
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
