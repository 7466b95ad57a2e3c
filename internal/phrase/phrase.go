package phrase

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Clip shortens a text to at most 200 bytes, for a line of a report.
func Clip(s string) string { return ClipTo(s, 200) }

// Column returns the form in which reports show a qualifier.
func Column(qualifier string) string {
	quoted := strconv.QuoteToGraphic(qualifier)
	if quoted == `"`+qualifier+`"` {
		return qualifier
	}
	return quoted
}

// ClipTo shortens a text to at most n bytes, at a character boundary, and marks the omission.
func ClipTo(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := range min(n, utf8.UTFMax) {
		if utf8.RuneStart(s[n-back]) {
			n -= back
			break // invalid UTF-8 is cut at n
		}
	}
	return s[:n] + "…"
}

// ClipHex returns b in hexadecimal, shortened to at most n digits.
func ClipHex(b []byte, n int) string {
	return ClipTo(hex.EncodeToString(b[:min(len(b), n)]), n)
}

// Counted returns a number with its noun: "1 item", "2 items".
func Counted(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Fault formats a mistake in a file as "FILE:LINE:COLUMN: detail: cause". It omits unknown parts
// ("", 0, nil).
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
