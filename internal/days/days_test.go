package days_test

import (
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/days"
)

// Texts of time.ParseDuration have the same result; days may precede them.
func TestMapping_DurationsInDays(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{
		"400d": 400 * day, "1d": day, "0d": 0, "1.5d": 36 * time.Hour, "-1d": -day, "+2d": 2 * day,
		"1d12h": 36 * time.Hour, "-1d12h": -36 * time.Hour, "30d0h1ms": 30*day + time.Millisecond,
		"720h": 720 * time.Hour, "1m30s": 90 * time.Second, "-1h": -time.Hour, "0": 0, "106751d": 106751 * day,
	} {
		if got, err := days.Parse(text); err != nil || got != want {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "d", "-d", "1dd", "1d-1h", "1d+1h", "1d2d", "1d 1h", "--1d", "1e3d", "0x1d", "infd", "nand", "1d1x", "106752d", "106751d47h", "1.2.3d", "12h1d", "day"} {
		if got, err := days.Parse(text); err == nil {
			t.Errorf("Parse(%q) = %v, want an error", text, got)
		}
	}
}
