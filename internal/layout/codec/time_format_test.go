package codec

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// TestTimeFormat_From checks that no instant whose text is at or above a bound is before the
// bound's instant, and none below it is after that.
func TestTimeFormat_From(t *testing.T) {
	t.Parallel()
	parsed := 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for _, name := range []string{"iso(s)", "iso(ms)", "iso(s,Z)", "iso(ms,Z)"} {
			f := TimeFormats[name]
			draw := func() (int64, string) {
				millis := r.Int64N(4e12)
				if r.IntN(2) == 0 {
					millis = millis / 86400000 * 86400000 // midnight
				}
				if name == "iso(s)" || name == "iso(s,Z)" {
					millis = millis / 1000 * 1000
				}
				text, ok := f.Format(millis)
				if !ok {
					t.Fatalf("%s does not write %d", name, millis)
				}
				return millis, text
			}
			_, bound := draw()
			bound = bound[:r.IntN(len(bound)+1)]
			switch r.IntN(4) {
			case 0:
				bound += "\x00"
			case 1:
				bound += string(rune('0' + r.IntN(10)))
			}
			from, ok := f.From([]byte(bound))
			if !ok {
				continue
			}
			parsed++
			for range 20 {
				if millis, text := draw(); text >= bound && millis < from || text < bound && millis > from {
					t.Fatalf("%s: %s is at %d, the bound %q at %d", name, text, millis, bound, from)
				}
			}
		}
	})
	if parsed == 0 {
		t.Error("no bound was found")
	}
}
