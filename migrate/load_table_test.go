package migrate

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// guideRows reads the table of docs/guide.md about loads into existing tables, by the contents
// of the table and the source.
func guideRows(t *testing.T) map[[2]string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/guide.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "| the table holds | the source | the load |\n|---|---|---|\n")
	if !found {
		t.Fatal("docs/guide.md has no table of loads into existing tables")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[[2]string]string{}
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 3 {
			t.Fatalf("row %q has %d cells, want 3", line, len(cells))
		}
		rows[[2]string{cells[0], cells[1]}] = cells[2]
	}
	return rows
}

// TestLoad_GuideTable checks each row of the table of docs/guide.md against the program: a
// plain load, and one with each overriding flag, whether the row names it or not.
func TestLoad_GuideTable(t *testing.T) {
	t.Parallel()
	before, after := plainStates()
	o := LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mustLoad(t, plainMapping)}}}
	full := func() *source.Source { return exports(t, true, before) }
	increments := func() *source.Source { return exports(t, true, before, after) }
	later := func() *source.Source {
		src := exports(t, true, after)
		src.Tables[0].ExportTime = exporttest.Time.Add(2 * time.Hour)
		return src
	}
	file := func() *source.Source { return undated(t, before) }
	otherFile := func() *source.Source { return undated(t, after) }
	type holder func(t *testing.T, conn grpc.ClientConnInterface)
	holds := func(src func() *source.Source) holder {
		return func(t *testing.T, conn grpc.ClientConnInterface) {
			t.Helper()
			if _, err := Load(t.Context(), conn, src(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
	written := func(src func() *source.Source) holder {
		return func(t *testing.T, conn grpc.ClientConnInterface) {
			t.Helper()
			holds(src)(t, conn)
			s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: o.Mappings, NoAuth: true})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			for _, item := range before {
				callEndpoint(t, s, "PutItem", fmt.Sprintf(`{"TableName":%q,"Item":%s}`, o.Mappings[0].SourceTable(), item))
				break
			}
		}
	}
	cutOff := errors.New("cut off")
	cut := func(t *testing.T, conn grpc.ClientConnInterface) {
		t.Helper()
		broken := &failing{ClientConnInterface: conn, fail: func(call int, _ *btpb.MutateRowsRequest) error {
			if call > 4 {
				return cutOff
			}
			return nil
		}}
		if _, err := Load(t.Context(), broken, full(), o); !errors.Is(err, cutOff) {
			t.Fatal(err)
		}
		if tableText(t, conn, "t") == "" {
			t.Fatal("the load was cut off before its first row")
		}
	}
	follows := func(t *testing.T, conn grpc.ClientConnInterface) {
		t.Helper()
		holds(full)(t, conn)
		followTable(t, conn, "t")
	}
	wasFollowed := func(t *testing.T, conn grpc.ClientConnInterface) {
		t.Helper()
		follows(t, conn)
		endFollowing(t, conn, "t")
	}
	cases := map[[2]string]struct {
		hold holder
		src  func() *source.Source
	}{
		{"nothing", "any source"}:                                    {nil, full},
		{"a source", "the same source"}:                              {holds(file), file},
		{"a full export", "the same export and its increments"}:      {holds(full), increments},
		{"an export", "a later full export"}:                         {holds(full), later},
		{"an export and its increments", "an earlier export"}:        {holds(increments), full},
		{"an export", "a source without a time"}:                     {holds(full), file},
		{"a source without a time", "another source without a time"}: {holds(file), otherFile},
		{"a source without a time", "an export"}:                     {holds(file), full},
		{"an export, then writes of the endpoint", "increments"}:     {written(full), increments},
		{"a source, then writes of the endpoint", "anything else"}:   {written(file), file},
		{"rows of a load that was cut off", "the same source"}:       {cut, full},
		{"rows of a load that was cut off", "another source"}:        {cut, later},
		{"a load that begins at the same moment", "any source"}:      {nil, full},

		{"the items of a live table, which a migration follows", "any source"}: {follows, full},

		{"the items of a live table, after the end of its migration", "any source"}: {wasFollowed, full},
	}
	rows := guideRows(t)
	for row := range cases {
		if rows[row] == "" {
			t.Errorf("the table has no row %q", row)
		}
	}
	for row, does := range rows {
		c, known := cases[row]
		if !known {
			t.Errorf("the test has no case for row %q", row)
			continue
		}
		for _, flag := range []string{"", "--mix", "--keep-writes"} {
			t.Run(strings.Join(append(slices.Clone(row[:]), flag), ", "), func(t *testing.T) {
				t.Parallel()
				conn := newBigtableServer(t)
				if c.hold != nil {
					c.hold(t, conn)
				}
				if strings.Contains(row[0], "at the same moment") {
					server := conn
					conn = beforeCheck{server, sync.OnceFunc(func() { holds(increments)(t, server) })}
				}
				with := o
				with.Mix, with.KeepWrites = flag == "--mix", flag == "--keep-writes"
				want := strings.HasPrefix(does, "loads") || flag != "" && strings.Contains(does, "`"+flag+"` loads")
				_, err := Load(t.Context(), conn, c.src(), with)
				followed := strings.Contains(does, "with the phase") || strings.Contains(does, "with its time")
				if damage := source.DamageOf(err); want != (err == nil) || err != nil && damage != source.TargetNewer && damage != source.TargetWritten && (damage != source.TargetFollowed || !followed) {
					t.Errorf("the load answers %v, the guide says: %s", err, does)
				}
			})
		}
	}
}
