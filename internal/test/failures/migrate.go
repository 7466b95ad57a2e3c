package failures

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// migration is a load of some items, or their verification.
type migration struct {
	t      *testing.T
	what   string
	conn   *failingConn
	common migrate.Common
}

func newMigration(t *testing.T, conn grpc.ClientConnInterface, what string, run int) *migration {
	t.Helper()
	return &migration{t: t, what: what, conn: newFailingConn(conn), common: migrate.Common{
		Instance: fmt.Sprint("instance-", run), Now: time.Now, Deadline: callTimeout,
		Sleep: func(ctx context.Context, d time.Duration) error {
			time.Sleep(d)
			return ctx.Err()
		},
	}}
}

// items returns a new reader of the source.
func (m *migration) items() *source.Source {
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"id":{"S":"%03d"},"n":{"N":"%d"},"tags":{"SS":["x","y"]}}`+"\n", i, i)
	}
	src, err := source.OpenFS(fstest.MapFS{"items.jsonl": {Data: []byte(lines.String())}}, "items.jsonl", source.Options{Key: "id"})
	if err != nil {
		m.t.Fatal(err)
	}
	return src
}

func (m *migration) load() error {
	_, err := migrate.Load(m.t.Context(), m.conn, m.items(), migrate.LoadOptions{Common: m.common})
	return err
}

// verify compares the table with the source; a difference is not an outcome.
func (m *migration) verify() error {
	r, err := migrate.Verify(m.t.Context(), m.conn, migrate.OfSource(m.items()), migrate.VerifyOptions{Common: m.common, Stored: true})
	if err == nil && !r.Equal() {
		m.t.Errorf("%s: verified with %d differences", m.what, r.Differences)
	}
	return err
}

// verifyNothing verifies an empty target, which must be reported.
func (m *migration) verifyNothing() error {
	r, err := migrate.Verify(m.t.Context(), m.conn, migrate.OfSource(m.items()), migrate.VerifyOptions{Common: m.common, Stored: true})
	if err == nil && r.Equal() {
		m.t.Errorf("%s: an empty target equals the source", m.what)
	}
	return err
}

// bare creates tables without families.
func (m *migration) bare(tables []string) {
	m.t.Helper()
	bt := btclient.New(m.conn, "tabletop", m.common.Instance, btclient.Options{})
	for _, id := range tables {
		if _, err := bt.EnsureTable(m.t.Context(), id, nil, nil); err != nil {
			m.t.Fatal(err)
		}
	}
}

// meet runs do while calls fail.
func (m *migration) meet(do func() error, rpc string, how failure, from, most int) outcome {
	m.conn.set(rpc, how, from, most)
	return m.judge(do, how)
}

// judge runs do, and checks its error.
func (m *migration) judge(do func() error, how failure) outcome {
	begun := time.Now()
	err := do()
	o := outcome{text: "done", after: time.Since(begun)}
	if err != nil {
		o.text = "fails"
		if code := status.Code(err); code == codes.OK || how.err != nil && !strings.Contains(err.Error(), "a fault") && !strings.Contains(err.Error(), "the response ended early") {
			m.t.Errorf("%s: the error does not say why: %v", m.what, err)
		}
	}
	return o
}

// meetLoads makes a load meet a failure at its calls. The next load is complete, whatever the
// first one left.
func meetLoads(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell {
	t.Helper()
	cells, runs := map[string]*cell{}, 1
	whole := newMigration(t, conn, "load", runs)
	if err := whole.load(); err != nil {
		t.Fatal(err)
	}
	tables, err := btclient.New(conn, "tabletop", whole.common.Instance, btclient.Options{}).Tables(t.Context())
	if err != nil || len(tables) == 0 {
		t.Fatalf("a load made the tables %v, %v", tables, err)
	}
	into := func(tables []string) func(what, rpc string, from, most int) outcome {
		return func(what, rpc string, from, most int) outcome {
			runs++
			m := newMigration(t, conn, what, runs)
			m.bare(tables)
			o := m.meet(m.load, rpc, how, from, most)
			m.conn.set("", failure{}, 0, 0)
			if o.text != "done" {
				if err := m.load(); err != nil {
					t.Errorf("%s: then loaded: %v", what, err)
				}
			}
			if err := m.verify(); err != nil {
				t.Errorf("%s: then verified: %v", what, err)
			}
			return o
		}
	}
	meetEach(t, cells, "load", whole.conn, how, into(nil))
	runs++
	bare := newMigration(t, conn, "load into tables without families", runs)
	bare.bare(tables)
	bare.conn.set("", failure{}, 0, 0)
	if err := bare.load(); err != nil {
		t.Fatal(err)
	}
	meetEach(t, cells, bare.what, bare.conn, how, into(tables))
	return cells
}

// meetVerifications makes a verification meet a failure at its calls: it never reports a false
// difference.
func meetVerifications(t *testing.T, conn grpc.ClientConnInterface, how failure) map[string]*cell {
	t.Helper()
	cells := map[string]*cell{}
	whole := newMigration(t, conn, "verify", 1)
	if err := whole.load(); err != nil {
		t.Fatal(err)
	}
	whole.conn.set("", failure{}, 0, 0)
	if err := whole.verify(); err != nil {
		t.Fatal(err)
	}
	meetEach(t, cells, "verify", whole.conn, how, func(what, rpc string, from, most int) outcome {
		m := newMigration(t, conn, what, 1)
		return m.meet(m.verify, rpc, how, from, most)
	})
	nothing := newMigration(t, conn, "verify without a table", 2)
	if err := nothing.verifyNothing(); err != nil {
		t.Fatal(err)
	}
	meetEach(t, cells, nothing.what, nothing.conn, how, func(what, rpc string, from, most int) outcome {
		m := newMigration(t, conn, what, 2)
		return m.meet(m.verifyNothing, rpc, how, from, most)
	})
	return cells
}
