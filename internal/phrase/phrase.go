package phrase

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clip shortens a text to what a line of a report quotes.
func Clip(s string) string { return ClipTo(s, 200) }

// Column is a qualifier as reports show it.
func Column(qualifier string) string {
	quoted := strconv.QuoteToGraphic(qualifier)
	if quoted == `"`+qualifier+`"` {
		return qualifier
	}
	return quoted
}

// ClipTo shortens a text to n bytes, or to some less so as not to cut inside a
// character, and says so.
func ClipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := range min(n, utf8.UTFMax) {
		if utf8.RuneStart(s[n-back]) {
			n -= back
			break // bytes that are no text are cut where they are
		}
	}
	return s[:n] + "…"
}

// ClipHex is a text in hexadecimal digits, shortened to n of them.
func ClipHex(b []byte, n int) string {
	return ClipTo(hex.EncodeToString(b[:min(len(b), n)]), n)
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
