package failures

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// parts is the number of parts of a load or a verification.
const parts = 2

const partsMapping = `apiVersion: migration/v1
source:
  table: things
  key: {hash: {name: id, type: S}}
  schema: {g: S}
  gsis: [{name: byG, hash: g, projection: ALL, as: table}]
target: {table: things, families: {o: {}}}
rules: [{name: thing, row: ["{id}"], put: [{attr: "*", cell: "o:{attr}"}]}]
`

// partsMapped is partsMapping, compiled once for all runs.
var partsMapped = sync.OnceValues(func() (*mapping.Mapping, error) { return mapping.Load("mapping.yaml", []byte(partsMapping)) })

// partly is a migration of an export, in parts.
type partly struct {
	*migration
	export string // its folder
	folder string // of the parts
}

// writeExport writes an export with one file per part.
func writeExport(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }() // nothing uses it any more
	at := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	const each = 8
	w, err := s3export.Create(root, s3export.Export{ID: s3export.NewID(at, 1), TableArn: "arn:aws:dynamodb:us-east-1:123456789012:table/things", Time: at, FileBytes: each * 50})
	for i := 0; err == nil && i < parts*each; i++ {
		err = w.Add(attr.Item{"id": attr.String(fmt.Sprintf("%03d", i)), "g": attr.String(fmt.Sprint("g", i%3))})
	}
	if err == nil {
		err = w.Finish(at)
	}
	if err != nil || w.Files() < parts {
		t.Fatalf("an export of %d files, error %v", w.Files(), err)
	}
	return dir
}

func newPartly(t *testing.T, conn grpc.ClientConnInterface, export, what string, run int) *partly {
	t.Helper()
	m := newMigration(t, conn, what, run)
	mapped, err := partsMapped()
	if err != nil {
		t.Fatal(err)
	}
	m.common.Mappings = []*mapping.Mapping{mapped}
	return &partly{migration: m, export: export, folder: t.TempDir()}
}

func (p *partly) source() *source.Source {
	src, err := source.OpenFS(os.DirFS(p.export), ".", source.Options{})
	if err != nil {
		p.t.Fatal(err)
	}
	return src
}

// loads returns the commands of a load: one per part, and the final one.
func (p *partly) loads() (commands []func() error) {
	for i := range parts {
		commands = append(commands, func() error {
			_, err := migrate.Load(p.t.Context(), p.conn, p.source(), migrate.LoadOptions{Common: p.common, Checkpoint: p.folder, Part: source.Part{Index: i + 1, Of: parts}})
			return err
		})
	}
	return append(commands, func() error {
		_, err := migrate.FinishLoad(p.t.Context(), p.conn, p.source(), migrate.LoadOptions{Common: p.common, Checkpoint: p.folder})
		return err
	})
}

// verifications returns the commands of a verification that must find the given number of
// differences.
func (p *partly) verifications(differences int64) (commands []func() error) {
	o := migrate.VerifyOptions{Common: p.common, Stored: true, Parts: p.folder}
	for i := range parts {
		commands = append(commands, func() error {
			o := o
			o.Part = source.Part{Index: i + 1, Of: parts}
			_, err := migrate.Verify(p.t.Context(), p.conn, migrate.OfSource(p.source()), o)
			return err
		})
	}
	return append(commands, func() error {
		r, err := migrate.FinishVerify(p.t.Context(), p.conn, migrate.OfSource(p.source()), o)
		if err == nil && r.Differences != differences {
			p.t.Errorf("%s: verified in parts with %d differences, want %d", p.what, r.Differences, differences)
		}
		return err
	})
}

// must runs commands that cannot fail.
func (p *partly) must(commands []func() error) {
	p.t.Helper()
	p.conn.set("", failure{}, 0, 0)
	for i, do := range commands {
		if err := do(); err != nil {
			p.t.Fatalf("%s: then command %d: %v", p.what, i+1, err)
		}
	}
}

// meetEachOf runs commands while calls fail, up to the first failing command; the outcome has
// the longest time of one.
func (p *partly) meetEachOf(commands []func() error, rpc string, how failure, from, most int) (o outcome) {
	p.conn.set(rpc, how, from, most)
	for _, do := range commands {
		one := p.judge(do, how)
		o.text, o.after = one.text, max(o.after, one.after)
		if o.text != "done" {
			break
		}
	}
	return o
}

// meetPartLoads makes a load in parts meet a failure at its calls. Repeating the same commands
// completes it.
func meetPartLoads(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell {
	t.Helper()
	cells, runs, export := map[string]*cell{}, 1, writeExport(t)
	whole := newPartly(t, conn, export, "load in parts", runs)
	whole.must(whole.loads())
	meetEach(t, cells, whole.what, whole.conn, how, func(what, rpc string, from, most int) outcome {
		runs++
		p := newPartly(t, conn, export, what, runs)
		o := p.meetEachOf(p.loads(), rpc, how, from, most)
		if o.text != "done" {
			p.must(p.loads())
		}
		p.must(p.verifications(0))
		return o
	})
	return cells
}

// meetPartVerifications makes a verification in parts meet a failure at its calls, for
// complete rows and with one row missing.
func meetPartVerifications(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell {
	t.Helper()
	cells, export := map[string]*cell{}, writeExport(t)
	for lacking := range 2 {
		whole := newPartly(t, conn, export, fmt.Sprintf("verify in parts, %d rows lacking", lacking), 1+lacking)
		whole.must(whole.loads())
		if lacking > 0 {
			if err := btclient.New(conn, "tabletop", whole.common.Instance, btclient.Options{}).DropRows(t.Context(), "things", []byte("001")); err != nil {
				t.Fatal(err)
			}
		}
		whole.must(whole.verifications(int64(lacking)))
		meetEach(t, cells, whole.what, whole.conn, how, func(what, rpc string, from, most int) outcome {
			p := newPartly(t, conn, export, what, 1+lacking)
			o := p.meetEachOf(p.verifications(int64(lacking)), rpc, how, from, most)
			if o.text != "done" {
				p.must(p.verifications(int64(lacking)))
			}
			return o
		})
	}
	return cells
}
