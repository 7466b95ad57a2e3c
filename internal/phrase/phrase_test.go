package phrase_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// A text is cut between characters; invalid UTF-8 is cut anywhere.
func TestClip(t *testing.T) {
	t.Parallel()
	for lead := range utf8.UTFMax {
		for _, char := range []string{"a", "é", "€", "😀"} {
			text := strings.Repeat("x", lead) + strings.Repeat(char, 400)
			got := phrase.Clip(text)
			cut := strings.TrimSuffix(got, "…")
			if !utf8.ValidString(got) || !strings.HasPrefix(text, cut) || len(cut) > 200 || len(cut) <= 200-len(char) || cut == got {
				t.Errorf("%d bytes before %s: %q of %d bytes", lead, char, got, len(got))
			}
		}
	}
	if got := phrase.ClipTo(strings.Repeat("\x80", 20), 10); got != strings.Repeat("\x80", 10)+"…" {
		t.Errorf("bytes that are no text: %q", got)
	}
	for text, want := range map[string]string{"": "", "abc": "abc", "abcd": "abc…"} {
		if got := phrase.ClipTo(text, 3); got != want {
			t.Errorf("ClipTo(%q, 3) = %q, want %q", text, got, want)
		}
	}
	if got := phrase.ClipHex([]byte("abc"), 4); got != "6162…" {
		t.Errorf("ClipHex gives %q", got)
	}
	if got := phrase.ClipHex([]byte("ab"), 4); got != "6162" {
		t.Errorf("ClipHex gives %q", got)
	}
}
