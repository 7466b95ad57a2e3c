package phrase

import (
	"fmt"
	"strconv"
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
