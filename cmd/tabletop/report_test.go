package main

import (
	"regexp"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// A person who watches sees how far the work is, its rate and the time left, and
// nothing of it once it is done.
func TestShowProgress(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{stderr: &out, progress: true}
	var o migrate.Common
	done := p.showProgress(&o.Progress)
	shown := regexp.MustCompile(`loading items +[0-9]+%.*\([0-9]+/1000000, [0-9]+ items/s\) \[[0-9hms]+:[0-9hms]+\]`)
	for n := int64(1); !shown.MatchString(out.String()); n = n%999_999 + 1 { // the test's own time is the bound
		o.Progress(source.Progress{Table: "items", Phase: "loading", Items: n, Total: 1_000_000})
	}
	o.Progress(source.Progress{Table: "items", Phase: "comparing", Items: 1, Total: -1}) // how much there is, is not known
	done()
	if text := out.String(); strings.TrimRight(text[strings.LastIndexByte(text, '\r')+1:], " ") != "" {
		t.Errorf("it leaves %q", text)
	}
	o.Progress = nil
	(&program{stderr: &out}).showProgress(&o.Progress)()
	if o.Progress != nil {
		t.Error("progress is shown where nobody watches")
	}
}
