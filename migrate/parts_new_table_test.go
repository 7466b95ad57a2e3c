package migrate

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// lookUps counts the reads of a load that name rows of the items' table.
type lookUps struct {
	grpc.ClientConnInterface
	reads atomic.Int64
}

func (c *lookUps) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/ReadRows") {
		return s, err
	}
	return &lookUpStream{s, c}, nil
}

type lookUpStream struct {
	grpc.ClientStream
	c *lookUps
}

func (s *lookUpStream) SendMsg(m any) error {
	if r := m.(*btpb.ReadRowsRequest); len(r.GetRows().GetRowKeys()) > 0 && r.GetFilter() == nil && strings.HasSuffix(r.GetTableName(), "/t") {
		s.c.reads.Add(1)
	}
	return s.ClientStream.SendMsg(m)
}

// newTableRun is a load in parts of an export, each with many batches.
type newTableRun struct {
	t    *testing.T
	conn *lookUps
	o    LoadOptions

	first *btpb.MutateRowsRequest // of the last part that began
}

const newTableItems = 150

func newNewTableRun(t *testing.T) *newTableRun {
	t.Helper()
	r := &newTableRun{t: t, conn: &lookUps{ClientConnInterface: newBigtableServer(t)}, o: LoadOptions{Checkpoint: t.TempDir()}}
	r.o.Mappings, r.o.knobs = []*mapping.Mapping{mappingOf(t, partsPlain)}, table.Knobs{Batch: 1 << 9, CheckpointBytes: 1 << 30}
	return r
}

func (r *newTableRun) source() *source.Source {
	return openExport(r.t, partsExport(newTableItems, 9, entityLine))
}

// prepare returns the part after its check, as in its own process.
func (r *newTableRun) prepare(part int) *Prepared {
	r.t.Helper()
	o := r.o
	o.Part = source.Part{Index: part, Of: 3}
	p, err := Prepare(r.t.Context(), r.source(), o)
	if err != nil {
		r.t.Fatal(err)
	}
	return p
}

// load loads the prepared part, and returns the number of batches that it looked up.
func (r *newTableRun) load(p *Prepared) (*report.Report, int64) {
	r.t.Helper()
	before := r.conn.reads.Load()
	rep, err := p.Load(r.t.Context(), r.conn)
	if err != nil {
		r.t.Fatal(err)
	}
	return rep, r.conn.reads.Load() - before
}

// begin loads a part up to a number of writes, then kills it.
func (r *newTableRun) begin(part, writes int) (written int64) {
	r.t.Helper()
	r.first = nil
	killed := errors.New("killed")
	_, err := r.prepare(part).Load(r.t.Context(), &intercepted{ClientConnInterface: r.conn, before: func(req *btpb.MutateRowsRequest) error {
		if strings.HasSuffix(req.GetTableName(), "/"+layout.SchemaTable) {
			return nil
		}
		if writes--; writes < 0 {
			return killed
		}
		if r.first == nil {
			r.first = req
		}
		for _, e := range req.GetEntries() {
			written += int64(len(e.GetMutations()))
		}
		return nil
	}})
	if !errors.Is(err, killed) {
		r.t.Fatalf("error %v, want the part to be killed", err)
	}
	return written
}

// deleteFirst deletes the rows of a part's first write, so that its next first batch finds
// nothing. It returns the number of deleted cells.
func (r *newTableRun) deleteFirst() (gone int64) {
	r.t.Helper()
	id := r.first.GetTableName()[strings.LastIndex(r.first.GetTableName(), "/")+1:]
	for _, e := range r.first.GetEntries() {
		gone += int64(len(e.GetMutations()))
		if err := table.NewBigtable(r.conn, table.Options{}).MutateRow(r.t.Context(), id, e.GetRowKey(), []*btpb.Mutation{btclient.DeleteRow()}); err != nil {
			r.t.Fatal(err)
		}
	}
	return gone
}

// elsewhere runs the next parts on another machine, without files.
func (r *newTableRun) elsewhere() { r.o.Checkpoint = r.t.TempDir() }

// finds loads a part, and compares the number of cells that it found: want, or -1 for all.
func (r *newTableRun) finds(p *Prepared, want int64, lookedUp bool) {
	r.t.Helper()
	rep, looked := r.load(p)
	at := rep.Tables[0]
	if want < 0 {
		want = at.CellsUnchanged + at.CellsWritten
	}
	if at.CellsUnchanged != want || at.CellsWritten == 0 && want == 0 {
		r.t.Errorf("%d cells unchanged, %d written; want %d unchanged", at.CellsUnchanged, at.CellsWritten, want)
	}
	if lookedUp != (looked > 3) {
		r.t.Errorf("%d batches were looked up; of all: %t", looked, lookedUp)
	}
}

// whole loads the source in one go.
func (r *newTableRun) whole() {
	r.t.Helper()
	if _, err := Load(r.t.Context(), r.conn, r.source(), LoadOptions{Common: r.o.Common}); err != nil {
		r.t.Fatal(err)
	}
}

// noted reports whether parts have written notes.
func (r *newTableRun) noted() (noted bool) {
	r.t.Helper()
	rows, err := table.NewBigtable(r.conn, table.Options{}).SchemaOf(r.t.Context(), "t")
	if err != nil {
		r.t.Fatal(err)
	}
	for _, row := range rows {
		for _, c := range row.Cells {
			noted = noted || strings.HasPrefix(string(c.Qualifier), loadnote.PartsPrefix)
		}
	}
	return noted
}

// noteEndpoint writes the note of a DynamoDB endpoint that writes to the table target.
func noteEndpoint(t *testing.T, conn grpc.ClientConnInterface, target string, at time.Time) {
	t.Helper()
	set := btclient.SetCell(layout.SchemaFamily, []byte(loadnote.WrittenColumn), at.UnixMicro(), loadnote.MomentValue(at))
	if err := table.NewBigtable(conn, table.Options{}).MutateRow(t.Context(), layout.SchemaTable, layout.SchemaRowPrefix(target), []*btpb.Mutation{set}); err != nil {
		t.Fatal(err)
	}
}

// beforeAdmin runs a function once, before the first admin call on a table.
type beforeAdmin struct {
	grpc.ClientConnInterface
	do func()
}

func (c *beforeAdmin) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	if do := c.do; do != nil && strings.Contains(method, "TableAdmin/") {
		c.do = nil
		do()
	}
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

// TestParts_NewTable: a part does not look up its rows if another part created the table and
// this one has written nothing. Otherwise it does, and counts the found ones.
func TestParts_NewTable(t *testing.T) {
	t.Parallel()
	one := newNewTableRun(t)
	one.whole()
	want := allTables(t, one.conn)
	for name, do := range map[string]func(*newTableRun){
		"as it should be": func(r *newTableRun) {
			if _, looked := r.load(r.prepare(1)); looked != 0 {
				r.t.Errorf("the part that made the table looked %d batches up", looked)
			}
			if _, looked := r.load(r.prepare(2)); looked != 1 {
				r.t.Errorf("a part that found the table new looked %d batches up, want the first", looked)
			}
			r.finds(r.prepare(3), 0, false)
			if _, err := FinishLoad(r.t.Context(), r.conn, r.source(), r.o); err != nil {
				r.t.Fatal(err)
			}
			if r.noted() {
				r.t.Error("notes of parts are left")
			}
			r.finds(r.prepare(2), -1, true)
		},
		"a part that is loaded again": func(r *newTableRun) {
			r.load(r.prepare(1))
			r.load(r.prepare(2))
			r.elsewhere()
			for part := range 2 {
				r.finds(r.prepare(part+1), -1, true)
			}
		},
		"killed at once, and begun again": func(r *newTableRun) {
			r.load(r.prepare(1))
			r.finds(r.prepare(2), r.begin(2, 2), true)
		},
		"killed later, and begun again elsewhere": func(r *newTableRun) {
			r.load(r.prepare(1))
			written := r.begin(2, 30)
			r.elsewhere()
			r.finds(r.prepare(2), written, true)
		},
		"killed, and its first rows deleted": func(r *newTableRun) {
			r.load(r.prepare(1))
			written := r.begin(2, 31)
			r.elsewhere()
			r.finds(r.prepare(2), written-r.deleteFirst(), true)
		},
		"the one that made the table is killed": func(r *newTableRun) {
			written := r.begin(1, 8)
			r.finds(r.prepare(2), 0, false)
			r.finds(r.prepare(1), written, true)
		},
		"killed and resumed at a checkpoint": func(r *newTableRun) {
			r.load(r.prepare(1))
			r.o.knobs.CheckpointBytes = 4 << 10
			written := r.begin(2, 30)
			rep, looked := r.load(r.prepare(2))
			if at := rep.Tables[0]; at.ItemsResumed == 0 || at.CellsUnchanged == 0 || at.CellsUnchanged >= written || looked < 3 {
				r.t.Errorf("%d items resumed, %d cells found of %d, %d batches looked up", at.ItemsResumed, at.CellsUnchanged, written, looked)
			}
		},
		"two processes of one part": func(r *newTableRun) {
			r.load(r.prepare(1))
			one := r.prepare(2)
			r.elsewhere()
			other := r.prepare(2)
			r.finds(one, 0, false)
			r.finds(other, -1, true)
		},
		"another load meanwhile": func(r *newTableRun) {
			r.load(r.prepare(1))
			conn := r.conn
			r.conn = &lookUps{ClientConnInterface: newBigtableServer(r.t)}
			r.begin(2, 1) // on another machine: look up the first rows
			r.conn = conn
			r.elsewhere()
			late := r.prepare(2)
			r.whole()
			if r.noted() {
				r.t.Error("a load keeps the notes of parts, though it writes their rows")
			}
			gone := r.deleteFirst()
			rep, looked := r.load(late)
			if at := rep.Tables[0]; at.CellsWritten != gone || at.CellsUnchanged == 0 || looked < 3 {
				r.t.Errorf("%d cells written, %d unchanged, %d batches looked up; %d were gone", at.CellsWritten, at.CellsUnchanged, looked, gone)
			}
		},
		"another load in other parts meanwhile": func(r *newTableRun) {
			r.load(r.prepare(1))
			r.elsewhere()
			o := r.o
			for i := range 2 {
				o.Part = source.Part{Index: i + 1, Of: 2}
				if _, err := Load(r.t.Context(), r.conn, r.source(), o); err != nil {
					r.t.Fatal(err)
				}
			}
			r.elsewhere()
			r.finds(r.prepare(2), -1, true)
		},
		"rows that somebody else wrote": func(r *newTableRun) {
			r.load(r.prepare(1))
			from := newBigtableServer(r.t)
			if _, err := Load(r.t.Context(), from, r.source(), LoadOptions{Common: r.o.Common}); err != nil {
				r.t.Fatal(err)
			}
			to := table.NewBigtable(r.conn, table.Options{})
			for row, err := range table.NewBigtable(from, table.Options{}).TableRows(r.t.Context(), "t") {
				if err == nil {
					err = to.MutateRow(r.t.Context(), "t", row.Key, btclient.AppendSets(nil, row.Cells))
				}
				if err != nil {
					r.t.Fatal(err)
				}
			}
			rep, _ := r.load(r.prepare(2))
			if rep.Tables[0].CellsUnchanged == 0 {
				r.t.Error("the part finds nothing")
			}
		},
		"a table that was there": func(r *newTableRun) {
			if _, err := table.NewBigtable(r.conn, table.Options{}).MakeTable(r.t.Context(), "t", (*layout.Mapping)(r.o.Mappings[0]).Families()); err != nil {
				r.t.Fatal(err)
			}
			for part := range 2 {
				r.finds(r.prepare(part+1), 0, true)
			}
		},
		"an index that was there": func(r *newTableRun) {
			x := (*layout.Mapping)(r.o.Mappings[0]).Indexes()[0]
			if _, err := table.NewBigtable(r.conn, table.Options{}).MakeTable(r.t.Context(), x.TargetTable(), x.Families()); err != nil {
				r.t.Fatal(err)
			}
			r.load(r.prepare(1))
			r.finds(r.prepare(2), 0, true)
		},
		"a table that is made again": func(r *newTableRun) {
			r.load(r.prepare(1))
			if err := table.NewBigtable(r.conn, table.Options{}).DropTable(r.t.Context(), "t"); err != nil {
				r.t.Fatal(err)
			}
			r.load(r.prepare(2))
			r.elsewhere()
			r.finds(r.prepare(2), -1, true)
			r.finds(r.prepare(3), 0, false)
		},
		"dropped after an endpoint wrote": func(r *newTableRun) {
			r.load(r.prepare(1))
			noteEndpoint(r.t, r.conn, "t", time.UnixMilli(1000))
			for _, id := range []string{"t", (*layout.Mapping)(r.o.Mappings[0]).Indexes()[0].TargetTable()} {
				if err := table.NewBigtable(r.conn, table.Options{}).DropTable(r.t.Context(), id); err != nil {
					r.t.Fatal(err)
				}
			}
			if _, looked := r.load(r.prepare(2)); looked != 0 {
				r.t.Errorf("the part that made the table looked %d batches up", looked)
			}
			r.finds(r.prepare(3), 0, false)
		},
		"another load, which looked before there were notes": func(r *newTableRun) {
			conn := r.conn
			r.conn = &lookUps{ClientConnInterface: &beforeAdmin{ClientConnInterface: conn, do: func() {
				r := *r
				r.conn = conn
				r.load(r.prepare(1))
			}}}
			r.whole()
			r.conn = conn
			if r.noted() {
				r.t.Error("a load keeps the notes of parts, though it writes their rows")
			}
			r.finds(r.prepare(2), -1, true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newNewTableRun(t)
			do(r)
			r.elsewhere()
			for part := range 3 {
				r.load(r.prepare(part + 1))
			}
			if _, err := FinishLoad(t.Context(), r.conn, r.source(), r.o); err != nil {
				t.Fatal(err)
			}
			if allTables(t, r.conn) != want {
				t.Error("the rows are not those of one load")
			}
		})
	}
}

// TestParts_NoteOfDroppedTable: an endpoint's note about a deleted table never coexists with a
// new one: wherever a part is killed, later exports are not refused for it.
func TestParts_NoteOfDroppedTable(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	killed := errors.New("killed")
	deaths := 0
	for at := 0; ; at++ {
		conn := newBigtableServer(t)
		if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
			t.Fatal(err)
		}
		noteEndpoint(t, conn, "t", time.UnixMilli(1000))
		if err := table.NewBigtable(conn, table.Options{}).DropTable(t.Context(), "t"); err != nil {
			t.Fatal(err)
		}
		left := at
		_, err := Load(t.Context(), &intercepted{ClientConnInterface: conn, before: func(*btpb.MutateRowsRequest) error {
			if left--; left < 0 {
				return killed
			}
			return nil
		}}, exports(t, true, before), LoadOptions{Common: o, Part: source.Part{Index: 1, Of: 1}, Checkpoint: t.TempDir()})
		if _, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o}); err != nil {
			t.Errorf("a part was killed at its write %d: %v", at, err)
		}
		if err == nil {
			break
		}
		if deaths++; !errors.Is(err, killed) {
			t.Fatal(err)
		}
	}
	if deaths < 3 {
		t.Errorf("killed %d times, want more", deaths)
	}
}

// TestParts_NoteOfNewTable: an endpoint's note about the new table stays, even if it comes
// while a load removes the note about the old one.
func TestParts_NoteOfNewTable(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	noteEndpoint(t, conn, "t", time.UnixMilli(1000))
	if err := table.NewBigtable(conn, table.Options{}).DropTable(t.Context(), "t"); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), &beforeAdmin{conn, func() { noteEndpoint(t, conn, "t", time.UnixMilli(2000)) }}, exports(t, true, before), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	_, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o})
	WantDamage(t, err, source.TargetWritten, "Bigtable table t: a DynamoDB endpoint has written to it since the load")
}
