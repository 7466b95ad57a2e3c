package report

import (
	"fmt"
	"strings"
)

// diffHunk is the difference in one place.
type diffHunk struct {
	Kind  Kind
	Parts []placePart // the place
	Lines []string    // each begins with '-' (expected), '+' (found) or ' '
}

// Place returns the place of the hunk, on one line.
func (h diffHunk) Place() string {
	text := string(h.Kind)
	for _, p := range h.Parts {
		text += " " + p.Name + " " + p.Text
	}
	return text
}

// diffOf converts a failure to a hunk of a unified diff.
func diffOf(f Failure) diffHunk {
	h := diffHunk{Kind: f.Kind}
	for _, part := range append(f.place(), placePart{"at", f.lines()}) {
		if part.Text != "" {
			h.Parts = append(h.Parts, part)
		}
	}
	add := func(mark, text string) {
		if text == "" {
			return
		}
		for line := range strings.SplitSeq(text, "\n") {
			h.Lines = append(h.Lines, mark+line)
		}
	}
	add("-", f.Want)
	add("+", f.Got)
	add(" ", f.Decoded)
	add(" ", f.Detail)
	return h
}

// unifiedDiff formats failures as one unified diff from expected to found.
func unifiedDiff(failures []Failure) string {
	if len(failures) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("--- expected\n+++ found\n")
	for _, f := range failures {
		h := diffOf(f)
		fmt.Fprintf(&b, "@@ %s @@\n", h.Place())
		for _, line := range h.Lines {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
