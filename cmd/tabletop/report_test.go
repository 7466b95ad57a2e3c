package main

import (
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A terminal shows the progress, the rate and the remaining time in one line, and done clears it.
func TestShowProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	now := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	l := progressLog{w: &out, now: func() time.Time { return now }, terminal: true}
	for _, p := range []source.Progress{
		{Table: "items", Phase: "loading", Items: 0, Total: 1000},
		{Table: "items", Phase: "loading", Items: 50, Total: 1000}, // too early
		{Table: "items", Phase: "loading", Items: 100, Total: 1000},
	} {
		l.report(p)
		now = now.Add(60 * time.Millisecond)
	}
	l.clear()
	if got, want := out.String(), "\r\x1b[K\x1b[?7lloading items: 100 of 1000 items, 10 %, 833 a second, 1s left\x1b[?7h\r\x1b[K"; got != want {
		t.Errorf("it shows %q, want %q", got, want)
	}
}

// TestProgressLog: without a terminal, a line every half minute reports the progress of each
// pass; short passes print nothing.
func TestProgressLog(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	begun := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	now := begun
	l := progressLog{w: &out, now: func() time.Time { return now }}
	for _, c := range []struct {
		at   int // seconds
		p    source.Progress
		want string
	}{
		{0, source.Progress{Table: "t", Phase: "checking", Items: 256, Total: 1000}, ""},
		{40, source.Progress{Table: "t", Phase: "checking", Items: 1000, Total: 1000}, ""}, // at the end
		{41, source.Progress{Table: "t", Phase: "loading", Items: 256, Total: 100_000}, ""},
		{70, source.Progress{Table: "t", Phase: "loading", Items: 9000, Total: 100_000}, ""},
		{81, source.Progress{Table: "t", Phase: "loading", Items: 10_000, Total: 100_000}, "tabletop: loading t: 10000 of 100000 items, 10 %, 244 a second, 6m9s left\n"},
		{110, source.Progress{Table: "t", Phase: "loading", Items: 20_000, Total: 100_000}, ""},
		{121, source.Progress{Table: "t", Phase: "loading", Items: 50_000, Total: 100_000}, "tabletop: loading t: 50000 of 100000 items, 50 %, 622 a second, 1m20s left\n"},
		{122, source.Progress{Table: "t", Phase: "loading", Items: 256, Total: 100_000}, ""}, // again
		{130, source.Progress{Table: "u", Phase: "catching up", Items: 0, Total: -1}, ""},
		{170, source.Progress{Table: "u", Phase: "catching up", Items: 400, Total: -1}, "tabletop: catching up u: 400 items, 10 a second\n"},
		{210, source.Progress{Table: "u", Phase: "catching up", Items: 900, Total: 800}, "tabletop: catching up u: 900 of 800 items, 112 %, 11 a second, 0s left\n"},
		{220, source.Progress{Table: "v", Phase: "loading", Items: 900_000, Total: 1_000_000}, ""}, // resumed at a checkpoint
		{260, source.Progress{Table: "v", Phase: "loading", Items: 910_000, Total: 1_000_000}, "tabletop: loading v: 910000 of 1000000 items, 91 %, 250 a second, 6m0s left\n"},
	} {
		out.Reset()
		now = begun.Add(time.Duration(c.at) * time.Second)
		if l.report(c.p); out.String() != c.want {
			t.Errorf("after %d s it says %q, want %q", c.at, out.String(), c.want)
		}
	}
	var o migrate.Common
	done := (&program{stderr: &out}).showProgress(&o.Progress)
	out.Reset()
	o.Progress(source.Progress{Table: "t", Phase: "loading", Items: 1, Total: 2})
	if done(); out.Len() > 0 {
		t.Errorf("short work is reported: %q", out.String())
	}
}
