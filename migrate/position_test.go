package migrate

import (
	"testing"
	"testing/fstest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
	"github.com/tabletop-emu/tabletop/internal/layout/migrationstate"
	"github.com/tabletop-emu/tabletop/migrate/internal/statetable"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// addPositions adds position cells to all rows of a table, as a migration from a live source
// leaves them, and such cells alone in other rows.
func addPositions(t *testing.T, conn grpc.ClientConnInterface, id string) (rows int) {
	t.Helper()
	b := table.NewBigtable(conn, table.Options{})
	if _, err := b.EnsureTable(t.Context(), id, []layout.Family{{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}}, nil); err != nil {
		t.Fatal(err)
	}
	keys := map[string]bool{"alone": true}
	for row, err := range b.Rows(t.Context(), btclient.Read{Table: id, Spans: []layout.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
		keys[string(row.Key)], keys[string(row.Key)+"0"] = true, true
	}
	for key := range keys {
		change(t, conn, id, key, setCell(lens.FamilyPosition, "", 1_795_000_000_000_000, "position"), setCell(lens.FamilyPosition, "0123456789abcdef", 1000, "position"))
	}
	return len(keys)
}

// positionRows counts the rows of a table with position cells.
func positionRows(t *testing.T, conn grpc.ClientConnInterface, id string) (rows int) {
	t.Helper()
	for _, err := range table.NewBigtable(conn, table.Options{}).Rows(t.Context(), btclient.Read{Table: id, Spans: []layout.Span{{}}, Filter: btclient.OfFamily(lens.FamilyPosition)}) {
		if err != nil {
			t.Fatal(err)
		}
		rows++
	}
	return rows
}

// Position cells belong to no item and no index entry: a verification finds no difference, and
// an export of the rows and a comparison with others are as without them.
func TestPositions(t *testing.T) {
	t.Parallel()
	src, err := source.OpenFS(fstest.MapFS{"model": {Data: []byte(indexedModel)}}, "model", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plain, conn := newBigtableServer(t), newBigtableServer(t)
	var m *mapping.Mapping
	for _, server := range []grpc.ClientConnInterface{plain, conn} {
		p, err := Prepare(t.Context(), src, LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Load(t.Context(), server); err != nil {
			t.Fatal(err)
		}
		m = (*mapping.Mapping)(p.run.Jobs[0].Mapping)
	}
	for _, id := range []string{m.TargetTable(), "Orders__ByState"} {
		if rows := addPositions(t, conn, id); rows < 5 {
			t.Fatalf("table %s has %d rows with positions", id, rows)
		}
	}
	r, err := Verify(t.Context(), conn, OfSource(src), VerifyOptions{Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if want, err := Verify(t.Context(), plain, OfSource(src), VerifyOptions{Stored: true}); err != nil || r.Text() != want.Text() {
		t.Errorf("the report is, error %v\n%s\nwant\n%s", err, r.Text(), want.Text())
	}
	at := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	exported := map[grpc.ClientConnInterface]map[string]string{}
	for _, server := range []grpc.ClientConnInterface{plain, conn} {
		dir := t.TempDir()
		back, err := Reverse(t.Context(), server, m, dir, ReverseOptions{ExportTime: at})
		if err != nil || len(back.Warnings) > 0 || back.Rows != 3 {
			t.Errorf("reverse: %v, warnings %q, error %v", back, back.Warnings, err)
		}
		exported[server] = filesIn(t, dir)
	}
	if diff := gocmp.Diff(exported[plain], exported[conn]); diff != "" {
		t.Errorf("exports (-without +with positions):\n%s", diff)
	}
	side := func(conn grpc.ClientConnInterface, table string, m *mapping.Mapping) Side {
		return Side{Name: table, Conn: conn, Project: "tabletop", Instance: "tabletop", Table: table, Mapping: m}
	}
	for name, sides := range map[string][2]Side{
		"items":         {side(plain, "", m), side(conn, "", m)},
		"rows":          {side(plain, m.TargetTable(), nil), side(conn, m.TargetTable(), nil)},
		"index rows":    {side(conn, "Orders__ByState", nil), side(plain, "Orders__ByState", nil)},
		"source, items": {{Name: "source", Source: src}, side(conn, "", m)},
	} {
		d, err := Diff(t.Context(), sides[0], sides[1], DiffOptions{})
		if err != nil || d.Differences != 0 {
			t.Errorf("%s: error %v\n%s", name, err, d.Text())
		}
	}
}

// A load of incremental exports neither deletes position cells nor takes them for items.
func TestPositions_CatchUp(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	for key := range before {
		delete(after, key)
		break
	}
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	rows := addPositions(t, conn, "t")
	if _, err := Load(t.Context(), conn, exports(t, true, before, after), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(t.Context(), conn, OfSource(exports(t, true, before, after)), VerifyOptions{Common: o, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if got := positionRows(t, conn, "t"); got != rows {
		t.Errorf("%d rows have positions, want %d", got, rows)
	}
}

// followTable notes that a migration follows a live table into a Bigtable table.
func followTable(t *testing.T, conn grpc.ClientConnInterface, id string) {
	t.Helper()
	b := table.NewBigtable(conn, table.Options{})
	for name, families := range map[string][]layout.Family{layout.SchemaTable: table.SchemaFamilies, migrationstate.Table: migrationstate.Families()} {
		if _, err := b.MakeTable(t.Context(), name, families); err != nil {
			t.Fatal(err)
		}
	}
	at := time.Date(2026, 11, 28, 9, 0, 0, 0, time.UTC)
	cell, err := migrationstate.Encode(migrationstate.State{Phase: migrationstate.Following, By: "ana@host", At: at})
	if err != nil {
		t.Fatal(err)
	}
	change(t, conn, migrationstate.Table, string(migrationstate.StateRow(id)), setCell(migrationstate.FamilyState, migrationstate.Column, 1000, string(cell)))
	change(t, conn, layout.SchemaTable, string(layout.SchemaRowPrefix(id)), setCell(layout.SchemaFamily, loadnote.FollowedColumn, 1000, string(loadnote.MomentValue(at))))
}

// endFollowing ends the migration of followTable, as the command does.
func endFollowing(t *testing.T, conn grpc.ClientConnInterface, id string) {
	t.Helper()
	b := table.NewBigtable(conn, table.Options{})
	store := statetable.Store{B: b, Table: id, Now: func() time.Time { return time.Date(2026, 11, 28, 10, 0, 0, 0, time.UTC) }}
	if err := store.EndFollowed(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, of := range tableIDs(t, conn) {
		if err := b.DropFamily(t.Context(), of, lens.FamilyPosition); err != nil {
			t.Fatal(err)
		}
	}
}

// A load into a table that a migration follows into is refused with the phase, and nothing is
// written; the notes of the table are as before for verifications and reverse loads.
func TestFollowed(t *testing.T) {
	t.Parallel()
	before, _ := plainStates()
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, plainMapping)}}
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	followTable(t, conn, "t")
	there := allTables(t, conn)
	_, err := Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o})
	WantDamage(t, err, source.TargetFollowed, "Bigtable table t follows a live table (phase FOLLOWING since 2026-11-28T09:00:00Z, set by ana@host), and the load would undo some of the later changes: end the migration first: tabletop migrate finish")
	if got := allTables(t, conn); got != there {
		t.Errorf("the tables hold\n%s\nwant\n%s", got, there)
	}
	r, err := Verify(t.Context(), conn, OfSource(exports(t, true, before)), VerifyOptions{Common: o, Stored: true})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	stored, err := StoredMappings(t.Context(), conn, Common{})
	if err != nil || len(stored) != 1 {
		t.Errorf("the stored mappings are %v, error %v", stored, err)
	}
	change(t, conn, migrationstate.Table, string(migrationstate.StateRow("t")), deleteRow())
	_, err = Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o})
	WantDamage(t, err, source.TargetFollowed, "(since 2026-11-28T09:00:00Z)")
	endFollowing(t, conn, "t")
	_, err = Load(t.Context(), conn, exports(t, true, before), LoadOptions{Common: o, Mix: true, KeepWrites: true})
	WantDamage(t, err, source.TargetFollowed, "Bigtable table t has the changes of a live table, which a migration followed until 2026-11-28T10:00:00Z, and the load would undo some of them")
	if r, err := Verify(t.Context(), conn, OfSource(exports(t, true, before)), VerifyOptions{Common: o, Stored: true}); err != nil {
		t.Error(err)
	} else {
		wantEqual(t, r)
	}

	// A migration can begin before any load: then the table has neither a mapping nor a time.
	early := newBigtableServer(t)
	followTable(t, early, "t")
	if stored, err := StoredMappings(t.Context(), early, Common{}); err != nil || len(stored) != 0 {
		t.Errorf("without a load the stored mappings are %v, error %v", stored, err)
	}
	_, err = Reverse(t.Context(), early, o.Mappings[0], t.TempDir(), ReverseOptions{Common: o})
	WantDamage(t, err, source.LoadTimeUnknown, "the time of the export is unknown")
}
