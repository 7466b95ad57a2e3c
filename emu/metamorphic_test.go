package emu_test

import (
	"flag"
	"fmt"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/metamorphic"
)

var (
	opsFlag  = flag.Int("meta.ops", 2000, "operations of a run")
	seedFlag = flag.Uint64("meta.seed", 0, "seed of the one run to do; 0 runs the usual seeds")
)

// TestMetamorphic runs the same operations on the model and on variants of the engine: in memory, on
// files that survive a crash, in a directory, with buffers so small that all data is in files,
// and with eager rules.
func TestMetamorphic(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1}
	if long.Enabled() {
		seeds = append(seeds, 2, 3, 4, 5, 6)
	}
	if *seedFlag != 0 {
		seeds = []uint64{*seedFlag}
	}
	for _, seed := range seeds {
		for name, options := range map[string]func(*testing.T) engine.Options{
			"memory": func(*testing.T) engine.Options { return engine.Options{} },
			"files":  func(*testing.T) engine.Options { return engine.Options{Dir: "data", FS: vfs.NewCrashableMem()} },
			"directory": func(t *testing.T) engine.Options {
				t.Helper()
				return engine.Options{Dir: t.TempDir(), NoSync: true}
			},
			"tiny": func(*testing.T) engine.Options { return engine.Options{MemTableBytes: 32 << 10} },
			"tinyfiles": func(*testing.T) engine.Options {
				return engine.Options{Dir: "data", FS: vfs.NewCrashableMem(), MemTableBytes: 32 << 10}
			},
			"eager": func(*testing.T) engine.Options {
				return engine.Options{Dir: "data", FS: vfs.NewCrashableMem(), EagerGC: true, MemTableBytes: 64 << 10}
			},
		} {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				t.Parallel()
				metamorphic.Run(t, seed, *opsFlag, options(t))
			})
		}
	}
}

// TestMetamorphic_Answers: a generator whose operations all fail would compare errors with errors.
func TestMetamorphic_Answers(t *testing.T) {
	t.Parallel()
	metamorphic.Covers(t)
}
