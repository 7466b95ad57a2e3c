package migrate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/compare"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// newRestarted is a Bigtable that can be closed and opened again over its files.
func newRestarted(t *testing.T) (grpc.ClientConnInterface, VerifyOptions) {
	t.Helper()
	var (
		disk   = vfs.NewMem()
		db     *engine.DB
		server *emu.Server
	)
	closeAll := func() error {
		if db == nil {
			return nil
		}
		err := errors.Join(server.Close(), db.Close())
		db = nil
		return err
	}
	restart := func(context.Context) (_ grpc.ClientConnInterface, err error) {
		if err := closeAll(); err != nil {
			return nil, err
		}
		if db, err = engine.Open(engine.Options{Dir: "/store", FS: disk, NoSync: true}); err != nil {
			return nil, err
		}
		if server, err = emu.New(emu.Options{DB: db}); err != nil {
			return nil, err
		}
		return server.Conn(), nil
	}
	t.Cleanup(func() {
		if err := closeAll(); err != nil {
			t.Error(err)
		}
	})
	conn, err := restart(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return conn, VerifyOptions{Restart: restart, RunGC: func(ctx context.Context) error {
		_, err := server.RunGC(ctx)
		return err
	}}
}

// The check after a restart counts the rows of a view, whose entries are compared as items.
func TestVerify_RestartOfView(t *testing.T) {
	t.Parallel()
	conn, o := newRestarted(t)
	o.Mappings = []*mapping.Mapping{mappingOf(t, viewMapping)}
	r, err := Verify(t.Context(), conn, OfSource(orders(t, "Rome", "Oslo")), o)
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	for _, c := range r.Checks {
		if c.Name == compare.RestartCheck && c.Table == "orders__by-city" {
			if c.Detail != "2 rows" {
				t.Errorf("the check has %q", c.Detail)
			}
			return
		}
	}
	t.Errorf("the view is not checked: %+v", r.Checks)
}

func TestVerify_Restart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		damage func(t *testing.T, conn grpc.ClientConnInterface)
		want   string // the failures
	}{
		{"nothing is lost", func(*testing.T, grpc.ClientConnInterface) {}, ""},
		{
			"a row", func(t *testing.T, conn grpc.ClientConnInterface) {
				t.Helper()
				change(t, conn, "comments", "v2", deleteRow())
			},
			`NotPersistent table comments rule comment item {"PK":{"S":"v2"},"SK":{"S":"C#8285823999999"}} row "v2" hex 7632: want 1 cell, got nothing: MissingRow`,
		},
		{
			"what a load notes", func(t *testing.T, conn grpc.ClientConnInterface) {
				t.Helper()
				change(t, conn, layout.SchemaTable, "no such row", setCell(layout.SchemaFamily, "q", 0, "x"))
			},
			`NotPersistent table _migration_schema: want `,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, m := comments(t, "versions: 2", `{what: retention, why: "x"}`)
			conn, o := newRestarted(t)
			o.Mappings = []*mapping.Mapping{m}
			restart := o.Restart
			o.Restart = func(ctx context.Context) (grpc.ClientConnInterface, error) {
				conn, err := restart(ctx)
				if err == nil {
					c.damage(t, conn)
				}
				return conn, err
			}
			r, err := Verify(t.Context(), conn, OfSource(src), o)
			if err != nil {
				t.Fatal(err)
			}
			if c.want == "" {
				wantEqual(t, r)
				if want := "ok   restart, table comments: 2 rows, 3 cells\n"; !strings.Contains(r.Text(), want) {
					t.Errorf("%q is not in\n%s", want, r.Text())
				}
				return
			}
			if len(r.Failures) != 1 || r.Differences != 1 || r.Failures[0].Check != compare.RestartCheck || !strings.HasPrefix(r.Failures[0].String(), c.want) {
				t.Errorf("want %s, got\n%s", c.want, r.Text())
			}
		})
	}
}

// A store that loses everything, including its tables; and one that does not open.
func TestVerify_RestartEmpty(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: p\n" + queryA + "expect: {count: 2}")
	conn, o := newRestarted(t)
	o.Restart = func(context.Context) (grpc.ClientConnInterface, error) { return newBigtableServer(t), nil }
	r, err := Verify(t.Context(), conn, OfFixture(files), o)
	if err != nil {
		t.Fatal(err)
	}
	if got := kinds(r); got != "NotPersistent NotPersistent" || r.Failures[0].Detail != "the table no longer exists" {
		t.Errorf("failures %q\n%s", got, r.Text())
	}
	conn, o = newRestarted(t)
	o.Restart = func(context.Context) (grpc.ClientConnInterface, error) { return nil, errors.New("no room") }
	if _, err := Verify(t.Context(), conn, OfFixture(files), o); err == nil || err.Error() != "closing the Bigtable and opening it again: no room" {
		t.Errorf("got %v", err)
	}
}

// Without a way to restart, the report says so.
func TestVerify_RestartSkipped(t *testing.T) {
	t.Parallel()
	files := patternFixture("id: p\n" + queryA + "expect: {count: 2}")
	conn := newBigtableServer(t)
	for _, c := range []struct {
		verify func(context.Context, grpc.ClientConnInterface, fstest.MapFS) (*report.Report, error)
		want   string
	}{
		{func(ctx context.Context, conn grpc.ClientConnInterface, files fstest.MapFS) (*report.Report, error) {
			return Verify(ctx, conn, OfFixture(files), VerifyOptions{})
		}, "this Bigtable cannot be closed and opened again from here"},
		{func(ctx context.Context, conn grpc.ClientConnInterface, files fstest.MapFS) (*report.Report, error) {
			return Verify(ctx, conn, OfFixture(files), VerifyOptions{Stored: true})
		}, "another loader's Bigtable is only read, and not closed"},
	} {
		r, err := c.verify(t.Context(), conn, files)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkNamed(t, r, compare.RestartCheck); got.State != report.CheckSkipped || got.Detail != c.want {
			t.Errorf("check %+v, want it skipped: %s", got, c.want)
		}
	}
}
