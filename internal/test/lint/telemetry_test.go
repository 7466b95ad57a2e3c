package lint

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// dialers are the files that open connections, with their targets.
var dialers = map[string]string{
	"cmd/tabletop/ctl_ask.go":               "the server that a flag or its port file names",
	"cmd/tabletop/plain_conn.go":            "the Bigtable that a flag names, and whether it speaks TLS",
	"cmd/tabletop/migrate_target.go":        "the Bigtable that a flag names",
	"cmd/tabletop/stand_in.go":              "a port of its own container",
	"testkit/internal/server/connection.go": "itself, in memory",
}

var dials = newPattern(`grpc\.(NewClient|Dial)\b|net\.Dial|\.Dial(Context|TLS)?\(|http\.((Get|Head|Post|PostForm|DefaultClient|DefaultTransport)\b|(Transport|Client)\{\})`)

// TestNoTelemetry checks that the program only connects to targets that the user names.
func TestNoTelemetry(t *testing.T) {
	race.OneAfterTheOther(t)
	t.Parallel()
	found := map[string]bool{}
	for _, f := range productionFiles(t) {
		if within(f.path, "internal/test/peer") || within(f.path, "conformance") {
			continue // for developers
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(f.path)))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			code, _, _ := strings.Cut(line, "//")
			if !dials.MatchString(code) {
				continue
			}
			if dialers[f.path] == "" {
				t.Errorf("%s opens a connection: %s", f.path, strings.TrimSpace(line))
			}
			found[f.path] = true
		}
	}
	if got, want := slices.Sorted(maps.Keys(found)), slices.Sorted(maps.Keys(dialers)); !slices.Equal(got, want) {
		t.Errorf("files that open connections: %q, want %q", got, want)
	}
}
