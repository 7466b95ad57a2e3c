package migrate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/test/synthetic"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// benchItems is the length of the migrated table.
const benchItems = 5000

// BenchmarkVerify infers, loads, reads back and lints a table. Its source is held in memory
// (small), or decoded in each pass (large).
func BenchmarkVerify(b *testing.B) {
	var lines bytes.Buffer
	if err := synthetic.WriteLines(&lines, 1, benchItems); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(b.TempDir(), "items.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o666); err != nil {
		b.Fatal(err)
	}
	for name, held := range map[string]int{"small": source.MaxHeldBytes, "large": 1} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				src, err := source.Open(file, source.Options{})
				if err != nil {
					b.Fatal(err)
				}
				err = withBigtable(func(conn grpc.ClientConnInterface) error {
					r, err := Verify(b.Context(), conn, OfSource(src), VerifyOptions{Common: Common{knobs: table.Knobs{Held: held}}, Lint: &LintRules{}})
					if err == nil && (!r.Equal() || r.Items != benchItems) {
						err = errors.New(r.Text())
					}
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*benchItems/b.Elapsed().Seconds(), "items/s")
		})
	}
}

// withBigtable runs do on a Bigtable in this process's memory.
func withBigtable(do func(grpc.ClientConnInterface) error) (err error) {
	db, err := engine.Open(engine.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	server, err := emu.New(emu.Options{DB: db})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	return do(server.Conn())
}
