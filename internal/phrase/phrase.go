package phrase

import (
	"fmt"
	"strconv"
	"strings"
)

// Clip shortens a text to what a line of a report quotes.
func Clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// Column is a qualifier as reports show it.
func Column(qualifier string) string {
	quoted := strconv.QuoteToGraphic(qualifier)
	if quoted == `"`+qualifier+`"` {
		return qualifier
	}
	return quoted
}

// ClipTo shortens a text to n bytes, and says so.
func ClipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 { // not inside a character
		n--
	}
	return s[:n] + "…"
}

// Counted is a number of things: "1 item", "2 items".
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Fault is what is wrong in a file, with its cause: "FILE:LINE:COLUMN: detail: cause";
// what is not known ("", 0, nil) is left out.
func Fault(file string, line, column int, detail string, cause error) string {
	var b strings.Builder
	b.WriteString(file)
	if line > 0 {
		fmt.Fprintf(&b, ":%d", line)
	}
	if column > 0 {
		fmt.Fprintf(&b, ":%d", column)
	}
	if file != "" {
		b.WriteString(": ")
	}
	b.WriteString(detail)
	if cause != nil {
		b.WriteString(": ")
		b.WriteString(cause.Error())
	}
	return b.String()
}
