package follow_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/infer"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/testkit"
)

// readers are the verbs that read stored rows of loaded items.
var readers = map[string]func(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, m *mapping.Mapping) error{
	"load": func(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, m *mapping.Mapping) error {
		t.Helper()
		r, err := migrate.Load(t.Context(), conn, src, migrate.LoadOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}}})
		if err == nil && r.Tables[0].CellsWritten != 0 {
			return fmt.Errorf("%d cells were written again", r.Tables[0].CellsWritten)
		}
		return err
	},
	"verify": func(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, m *mapping.Mapping) error {
		t.Helper()
		return equal(migrate.Verify(t.Context(), conn, migrate.OfSource(src), migrate.VerifyOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}}, Stored: true}))
	},
	"lint of stored rows": func(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, m *mapping.Mapping) error {
		t.Helper()
		o := migrate.VerifyOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{m}}, Stored: true, Lint: &migrate.LintRules{}}
		return equal(migrate.Verify(t.Context(), conn, migrate.OfSource(src), o))
	},
	"diff of items": func(t *testing.T, conn grpc.ClientConnInterface, src *source.Source, m *mapping.Mapping) error {
		t.Helper()
		rows := migrate.Side{Name: "rows", Conn: conn, Project: "tabletop", Instance: "tabletop", Mapping: m}
		return equal(migrate.Diff(t.Context(), migrate.Side{Name: "source", Source: src}, rows, migrate.DiffOptions{}))
	},
	"diff of rows": func(t *testing.T, conn grpc.ClientConnInterface, _ *source.Source, m *mapping.Mapping) error {
		t.Helper()
		rows := migrate.Side{Name: "rows", Conn: conn, Project: "tabletop", Instance: "tabletop", Table: m.TargetTable()}
		return equal(migrate.Diff(t.Context(), rows, rows, migrate.DiffOptions{}))
	},
	"reverse": func(t *testing.T, conn grpc.ClientConnInterface, _ *source.Source, m *mapping.Mapping) error {
		t.Helper()
		r, err := migrate.Reverse(t.Context(), conn, m, t.TempDir(), migrate.ReverseOptions{})
		if err == nil && r.Items != brokenItems {
			return fmt.Errorf("%d items, want %d", r.Items, brokenItems)
		}
		return err
	},
}

func equal(r *report.Report, err error) error {
	if err == nil && !r.Equal() {
		return fmt.Errorf("it differs:\n%s", r.Text())
	}
	return err
}

// brokenItems is the number of items in tests of broken reads.
const brokenItems = 300

// startLoaded starts a Bigtable that holds the items of a source, by a mapping.
func startLoaded(t *testing.T) (*testkit.Env, *source.Source, *mapping.Mapping) {
	t.Helper()
	var lines strings.Builder
	for i := range brokenItems {
		fmt.Fprintf(&lines, `{"Item":{"id":{"S":"%05d"},"text":{"S":"%s"}}}`+"\n", i, strings.Repeat("x", 2048))
	}
	src, err := source.OpenFS(fstest.MapFS{"items.jsonl": {Data: []byte(lines.String())}}, "items.jsonl", source.Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	in, err := infer.Table(t.Context(), src.Tables[0], infer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	env := testkit.Start(t, testkit.WithInstance("tabletop", "tabletop"))
	if _, err := migrate.Load(t.Context(), env.Conn(), src, migrate.LoadOptions{Common: migrate.Common{Mappings: []*mapping.Mapping{in.Mapping}}}); err != nil {
		t.Fatal(err)
	}
	return env, src, in.Mapping
}

// A broken read continues, in every verb that reads rows.
func TestDeadlines_BrokenReads(t *testing.T) {
	t.Parallel()
	unavailable := status.Error(codes.Unavailable, "the connection broke")
	for name, run := range readers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, src, m := startLoaded(t)
			refused := env.Fail("ReadRows", unavailable, testkit.Times(1))
			if err := run(t, env.Conn(), src, m); err != nil || refused.Hits() != 1 {
				t.Errorf("with a read refused %d times: %v", refused.Hits(), err)
			}
			cut := env.CutReadRows(7, unavailable, testkit.Times(1))
			if err := run(t, env.Conn(), src, m); err != nil || cut.Hits() != 1 {
				t.Errorf("with a read cut %d times: %v", cut.Hits(), err)
			}
		})
	}
}

// A connection that is cut during a read is opened again, and the read continues.
func TestDeadlines_BrokenConnection(t *testing.T) {
	t.Parallel()
	for name, run := range readers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env, src, m := startLoaded(t)
			addr, cuts := cutOnce(t, env.Addr(), 200<<10)
			conn, err := grpc.NewClient("passthrough:///"+addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := run(t, conn, src, m); err != nil || cuts.Load() != 1 {
				t.Errorf("with %d connections cut: %v", cuts.Load(), err)
			}
		})
	}
}

// cutOnce forwards connections to a server, and cuts the first one that has received the given
// number of bytes.
func cutOnce(t *testing.T, server string, after int64) (addr string, cuts *atomic.Int64) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() {
		lis.Close()
		<-done
	})
	cuts = &atomic.Int64{}
	go func() {
		defer close(done)
		for {
			in, err := lis.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", server)
			if err != nil {
				in.Close()
				continue
			}
			go func() {
				io.Copy(out, in)
				out.Close()
			}()
			go func() {
				if n, _ := io.CopyN(in, out, after); n == after && cuts.CompareAndSwap(0, 1) {
					in.Close()
					out.Close()
					return
				}
				io.Copy(in, out)
				in.Close()
			}()
		}
	}()
	return lis.Addr().String(), cuts
}

// A server that accepts connections but never answers causes an error that names it.
func TestDeadlines_Deadline(t *testing.T) {
	t.Parallel()
	_, src, m := startLoaded(t)
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer lis.Close()
	conn, err := grpc.NewClient("passthrough:///"+lis.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	o := migrate.Common{Mappings: []*mapping.Mapping{m}, Deadline: 50 * time.Millisecond}
	for name, verb := range map[string]func() (*report.Report, error){
		"load": func() (*report.Report, error) {
			return migrate.Load(t.Context(), conn, src, migrate.LoadOptions{Common: o})
		},
		"verify": func() (*report.Report, error) {
			return migrate.Verify(t.Context(), conn, migrate.OfSource(src), migrate.VerifyOptions{Common: o, Stored: true})
		},
	} {
		if _, err := verb(); err == nil || !strings.Contains(err.Error(), lis.Addr().String()) {
			t.Errorf("%s: error %v, want one that names %s", name, err, lis.Addr())
		}
	}
}
