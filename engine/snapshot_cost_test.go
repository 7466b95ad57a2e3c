package engine

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRestore_Cost: a restore links files and reads their bounds, however many rows are in
// them: it copies nothing.
func TestRestore_Cost(t *testing.T) {
	t.Parallel()
	calls := func(rows int) (links, others int) {
		t.Helper()
		var mu sync.Mutex
		counted := map[errorfs.OpKind]int{}
		fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
			if strings.Contains(op.Path, "restore-") {
				mu.Lock()
				defer mu.Unlock()
				counted[op.Kind]++
			}
			return nil
		}))
		d := openTest(t, Options{Dir: "data", FS: fs})
		createTest(t, d, "f")
		for i := range rows {
			mustMutate(t, d, fmt.Sprintf("%06d", i), set("f", "q", 1000, "before"))
		}
		s := mustSnapshot(t, d)
		mustMutate(t, d, "000000", set("f", "q", 2000, "after"))
		mustRestore(t, d, s)
		mu.Lock()
		defer mu.Unlock()
		for kind, n := range counted {
			switch kind { //nolint:exhaustive // the others read, or are of the folder
			case errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpReuseForWrite:
				t.Errorf("with %d rows files were written %d times", rows, n)
			case errorfs.OpLink:
				links += n
			default:
				others += n
			}
		}
		return links, others
	}
	links, others := calls(10)
	manyLinks, manyOthers := calls(10_000)
	if links == 0 || manyLinks != links || manyOthers > others+4 {
		t.Errorf("of 10 rows %d links and %d other calls, of 10,000 %d and %d", links, others, manyLinks, manyOthers)
	}
}
