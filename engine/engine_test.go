package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"github.com/cockroachdb/pebble/v2/vfs"
	"go.uber.org/goleak"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
)

func TestMain(m *testing.M) {
	memory.CollectSeldom()
	goleak.VerifyTestMain(m)
}

// epoch is the time of the tests' stopped clocks.
var epoch = time.UnixMicro(1_700_000_000_123_456)

// openTest opens a store that the test closes.
func openTest(tb testing.TB, o Options) *DB {
	tb.Helper()
	if o.Now == nil {
		o.Now = clock.NewFrozen(epoch).Now
	}
	d, err := Open(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Errorf("close: %v", err)
		}
	})
	return d
}

// createTest creates table "t" with the families.
func createTest(tb testing.TB, d *DB, families ...string) {
	tb.Helper()
	def := Table{Name: "t"}
	for _, f := range families {
		def.Families = append(def.Families, Family{Name: f})
	}
	if _, err := createTable(tb.Context(), d, def); err != nil {
		tb.Fatal(err)
	}
}

// createTable creates one table in a catalog change of its own.
func createTable(ctx context.Context, d *DB, def Table) (t *Table, err error) {
	err = d.UpdateCatalog(ctx, func(tx *CatalogTx) error { t, err = tx.CreateTable(def); return err })
	return t, err
}

// modifyFamilies changes the families of one table.
func modifyFamilies(ctx context.Context, d *DB, name string, changes []FamilyChange) (t *Table, err error) {
	err = d.UpdateCatalog(ctx, func(tx *CatalogTx) error { t, err = tx.ModifyFamilies(name, changes); return err })
	return t, err
}

// deleteTable permanently deletes one table.
func deleteTable(ctx context.Context, d *DB, name string) error {
	return d.UpdateCatalog(ctx, func(tx *CatalogTx) error { return tx.DeleteTable(name) })
}

func set(family, qualifier string, micros int64, value string) Mutation {
	return Mutation{Kind: SetCell, Family: family, Qualifier: []byte(qualifier), Timestamp: micros, Value: []byte(value)}
}

func mustMutate(tb testing.TB, d *DB, row string, muts ...Mutation) {
	tb.Helper()
	if err := d.Mutate(tb.Context(), "t", []byte(row), muts); err != nil {
		tb.Fatal(err)
	}
}

// dump returns the cells that the scan visits, one per line.
func dump(d *DB, table string, o ScanOptions) (string, error) {
	s, err := d.Scan(context.Background(), table, o)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for s.NextRow() {
		for s.NextCell() {
			writeCell(&b, s.Row(), *s.Cell())
		}
	}
	return b.String(), s.Close()
}

func mustDump(tb testing.TB, d *DB) string {
	tb.Helper()
	text, err := dump(d, "t", ScanOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func writeCell(b *strings.Builder, row []byte, c Cell) {
	fmt.Fprintf(b, "%q %s:%q @%d %q\n", row, c.Family, c.Qualifier, c.Timestamp, c.Value)
}

// field reads a word of a test file, quoted or plain.
func field(tb testing.TB, s string) string {
	tb.Helper()
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	u, err := strconv.Unquote(s)
	if err != nil {
		tb.Fatalf("%s: %v", s, err)
	}
	return u
}

func number(tb testing.TB, s string) int64 {
	tb.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// parseRule reads versions(2), age(1h), union(…,…), intersection(…,…), none.
func parseRule(tb testing.TB, s string) GCRule {
	tb.Helper()
	name, rest, _ := strings.Cut(s, "(")
	rest = strings.TrimSuffix(rest, ")")
	switch name {
	case "none":
		return GCRule{}
	case "versions":
		return GCRule{Kind: MaxVersions, Versions: int(number(tb, rest))}
	case "age":
		age, err := time.ParseDuration(rest)
		if err != nil {
			tb.Fatal(err)
		}
		return GCRule{Kind: MaxAge, Age: age}
	case "union", "intersection":
		r := GCRule{Kind: Union}
		if name == "intersection" {
			r.Kind = Intersection
		}
		depth, from := 0, 0
		for i := 0; i <= len(rest); i++ {
			switch {
			case i == len(rest) || rest[i] == ',' && depth == 0:
				if from < i {
					r.Rules = append(r.Rules, parseRule(tb, rest[from:i]))
				}
				from = i + 1
			case rest[i] == '(':
				depth++
			case rest[i] == ')':
				depth--
			}
		}
		return r
	}
	tb.Fatalf("unknown rule %q", s)
	return GCRule{}
}

// parseFamily reads: name [aggregate=kind] [gc=rule] [meta=text].
func parseFamily(tb testing.TB, words []string) *Family {
	tb.Helper()
	f := &Family{Name: field(tb, words[0])}
	for _, w := range words[1:] {
		switch name, value, _ := strings.Cut(w, "="); name {
		case "gc":
			f.GC = parseRule(tb, value)
		case "aggregate":
			f.Aggregate = Aggregate(slices.Index([]string{"none", "sum", "min", "max", "hll"}, value))
		case "meta":
			f.Meta = []byte(value)
		default:
			tb.Fatalf("unknown argument %q", w)
		}
	}
	return f
}

func parseMutations(tb testing.TB, input string) []Mutation {
	tb.Helper()
	var muts []Mutation
	for line := range strings.Lines(input) {
		w := strings.Fields(line)
		m := Mutation{}
		if len(w) > 1 {
			m.Family = field(tb, w[1])
		}
		if len(w) > 2 {
			m.Qualifier = []byte(field(tb, w[2]))
		}
		switch w[0] {
		case "set":
			m.Kind, m.Timestamp = SetCell, ServerTimestamp
			if w[3] != "now" {
				m.Timestamp = number(tb, w[3])
			}
			if len(w) > 4 {
				m.Value = []byte(field(tb, w[4]))
			}
		case "delete-column":
			m.Kind = DeleteFromColumn
			if len(w) > 3 {
				m.Start, m.End = number(tb, w[3]), number(tb, w[4])
			}
		case "delete-family":
			m.Kind = DeleteFromFamily
		case "delete-row":
			m.Kind = DeleteFromRow
		case "add", "add-bytes", "merge", "merge-none":
			m.Kind, m.Timestamp = AddToCell, ServerTimestamp
			if w[3] != "now" {
				m.Timestamp = number(tb, w[3])
			}
			switch w[0] {
			case "add":
				m.Input = number(tb, w[4])
			case "add-bytes":
				m.Value = []byte(field(tb, w[4]))
			case "merge":
				m.Kind, m.Value = MergeToCell, []byte(field(tb, w[4]))
			case "merge-none":
				m.Kind = MergeToCell
			}
		case "unknown":
			m.Kind = 99
		default:
			tb.Fatalf("unknown mutation %q", line)
		}
		muts = append(muts, m)
	}
	return muts
}

func describe(t *Table) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s id=%d granularity=%d meta=%q splits=%q\n", t.Name, t.ID, t.Granularity, t.Meta, t.Splits)
	for _, f := range t.Families {
		aggregate := ""
		if f.Aggregate != NoAggregate {
			aggregate = fmt.Sprintf(" aggregate=%d", f.Aggregate)
		}
		fmt.Fprintf(&b, "  %d %s%s gc=%v meta=%q\n", f.Ordinal, f.Name, aggregate, f.GC, f.Meta)
	}
	return b.String()
}

// TestEngine runs the cases of testdata/engine on a store in memory and on one in a file
// system, which "reopen" closes and opens again. Files whose names begin with eager are for
// stores with EagerGC.
func TestEngine(t *testing.T) {
	t.Parallel()
	for _, store := range []string{"memory", "files"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			datadriven.Walk(t, "testdata/engine", func(t *testing.T, path string) {
				t.Helper()
				c := clock.NewFrozen(epoch)
				o := Options{Now: c.Now, EagerGC: strings.HasPrefix(filepath.Base(path), "eager")}
				snapshots := map[string]*Snapshot{}
				if store == "files" {
					o.Dir, o.FS = "data", vfs.NewMem()
				}
				d, err := Open(o)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = d.Close() }()
				datadriven.RunTest(t, path, func(t *testing.T, td *datadriven.TestData) string {
					t.Helper()
					if td.Cmd == "reopen" {
						if store == "memory" {
							return "" // a store in memory loses its data
						}
						if err := d.Close(); err != nil {
							return err.Error() + "\n"
						}
						if d, err = Open(o); err != nil {
							t.Fatal(err)
						}
						return ""
					}
					out, err := runCommand(t, d, c, snapshots, td)
					if err != nil {
						return out + "error: " + err.Error() + "\n"
					}
					return out
				})
			})
		})
	}
}

// catalogStep runs one step of update-catalog.
func catalogStep(t *testing.T, tx *CatalogTx, w []string) (string, error) {
	t.Helper()
	described := func(tab *Table, err error) (string, error) {
		if err != nil {
			return "", err
		}
		return describe(tab), nil
	}
	switch w[0] {
	case "put-resource":
		return "", tx.PutResource(field(t, w[1]), []byte(field(t, w[2])))
	case "delete-resource":
		return "", tx.DeleteResource(field(t, w[1]))
	case "delete-resources":
		return "", tx.DeleteResources(field(t, w[1]), field(t, w[2]))
	case "resource":
		value, err := tx.Resource(field(t, w[1]))
		return fmt.Sprintf("%q\n", value), err
	case "resources":
		return resourcesText(tx.Resources(field(t, w[1])))
	case "create-table":
		def := Table{Name: w[1]}
		for _, f := range w[2:] {
			def.Families = append(def.Families, Family{Name: f})
		}
		return described(tx.CreateTable(def))
	case "create-family":
		return described(tx.ModifyFamilies(w[1], []FamilyChange{{Create: &Family{Name: w[2]}}}))
	case "drop-family":
		return described(tx.ModifyFamilies(w[1], []FamilyChange{{Drop: w[2]}}))
	case "update-table":
		return described(tx.UpdateTable(w[1], func(tab *Table) error {
			switch name, value, _ := strings.Cut(w[2], "="); name {
			case "meta":
				tab.Meta = []byte(value)
			case "name":
				tab.Name = value
			case "fail":
				return errors.New("fn failed")
			}
			return nil
		}))
	case "delete-table":
		return "", tx.DeleteTable(w[1])
	case "soft-delete-table":
		return "", tx.SoftDeleteTable(w[1])
	case "undelete-table":
		return described(tx.UndeleteTable(w[1]))
	case "purge-tables":
		return "", tx.PurgeTables(w[1])
	case "table":
		return described(tx.Table(w[1]))
	case "tables":
		var b strings.Builder
		for _, tab := range tx.Tables("") {
			b.WriteString(describe(tab))
		}
		return b.String(), nil
	case "fail":
		return "", errors.New("fn failed")
	}
	t.Fatalf("unknown step %q", w)
	return "", nil
}

// runCommand runs one command of a test file.
func runCommand(
	t *testing.T, d *DB, c *clock.Clock, snapshots map[string]*Snapshot, td *datadriven.TestData,
) (string, error) {
	t.Helper()
	ctx := t.Context()
	arg := func(i int) string { return field(t, td.CmdArgs[i].Key) }
	switch td.Cmd {
	case "create-table":
		def := Table{Name: arg(0)}
		if td.HasArg("micros") {
			def.Granularity = Micros
		}
		for line := range strings.Lines(td.Input) {
			switch w := strings.Fields(line); w[0] {
			case "family":
				def.Families = append(def.Families, *parseFamily(t, w[1:]))
			case "split":
				def.Splits = append(def.Splits, []byte(field(t, w[1])))
			case "meta":
				def.Meta = []byte(w[1])
			}
		}
		got, err := createTable(ctx, d, def)
		if err != nil {
			return "", err
		}
		return describe(got), nil
	case "tables":
		var b strings.Builder
		prefix := ""
		if len(td.CmdArgs) > 0 {
			prefix = arg(0)
		}
		for _, t := range d.Tables(prefix) {
			b.WriteString(describe(t))
		}
		return b.String(), nil
	case "deleted-tables":
		var b strings.Builder
		for _, x := range d.DeletedTables("") {
			fmt.Fprintf(&b, "deleted %d expires %d %s", x.Deleted.UnixMicro(), x.Expires.UnixMicro(), describe(x.Table))
		}
		return b.String(), nil
	case "resources":
		return resourcesText(d.Resources(field(t, td.CmdArgs[0].Key)))
	case "resource":
		value, err := d.Resource(arg(0))
		return fmt.Sprintf("%q\n", value), err
	case "delete-table", "soft-delete-table", "undelete-table", "put-resource", "delete-resource":
		var out string
		err := d.UpdateCatalog(ctx, func(tx *CatalogTx) (err error) {
			words := []string{td.Cmd}
			for _, a := range td.CmdArgs {
				words = append(words, a.Key)
			}
			out, err = catalogStep(t, tx, words)
			return err
		})
		return out, err
	case "update-catalog":
		var out string
		err := d.UpdateCatalog(ctx, func(tx *CatalogTx) error {
			for line := range strings.Lines(td.Input) {
				text, err := catalogStep(t, tx, strings.Fields(line))
				out += text
				if err != nil {
					return err
				}
			}
			return nil
		})
		return out, err
	case "modify-families":
		var changes []FamilyChange
		for line := range strings.Lines(td.Input) {
			switch w := strings.Fields(line); w[0] {
			case "create":
				changes = append(changes, FamilyChange{Create: parseFamily(t, w[1:])})
			case "update":
				changes = append(changes, FamilyChange{Update: parseFamily(t, w[1:])})
			case "drop":
				changes = append(changes, FamilyChange{Drop: w[1]})
			case "both":
				changes = append(changes, FamilyChange{Create: parseFamily(t, w[1:]), Drop: w[1]})
			}
		}
		got, err := modifyFamilies(ctx, d, arg(0), changes)
		if err != nil {
			return "", err
		}
		return describe(got), nil
	case "mutate":
		return "", d.Mutate(ctx, arg(0), []byte(arg(1)), parseMutations(t, td.Input))
	case "read-modify-write":
		var rules []RuleReadModifyWrite
		for line := range strings.Lines(td.Input) {
			w := strings.Fields(line)
			r := RuleReadModifyWrite{Family: field(t, w[1]), Qualifier: []byte(field(t, w[2]))}
			if w[0] == "append" {
				r.Append = []byte(field(t, w[3]))
			} else {
				r.Increment = number(t, w[3])
			}
			rules = append(rules, r)
		}
		cells, err := d.ReadModifyWrite(ctx, arg(0), []byte(arg(1)), rules)
		var b strings.Builder
		for _, cell := range cells {
			writeCell(&b, []byte(arg(1)), cell)
		}
		return b.String(), err
	case "scan":
		var o ScanOptions
		o.Reverse = td.HasArg("reverse")
		for line := range strings.Lines(td.Input) {
			w := strings.Fields(line)
			o.Spans = append(o.Spans, Span{Start: []byte(field(t, w[0])), End: []byte(field(t, w[1]))})
		}
		return dump(d, arg(0), o)
	case "walk":
		return walkRow(t, d, arg(0), td.Input)
	case "drop-rows":
		var span Span
		if len(td.CmdArgs) > 1 {
			span.Start = []byte(arg(1))
		}
		if len(td.CmdArgs) > 2 {
			span.End = []byte(arg(2))
		}
		return "", d.DropRows(ctx, arg(0), span)
	case "advance":
		by, err := time.ParseDuration(arg(0))
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%d\n", c.Advance(by).UnixMicro()), nil
	case "snapshot":
		s, err := d.Snapshot(ctx)
		if err == nil {
			snapshots[arg(0)] = s
		}
		return "", err
	case "restore":
		return "", d.Restore(ctx, snapshots[arg(0)])
	case "close-snapshot":
		return "", snapshots[arg(0)].Close()
	case "gc":
		stats, err := d.RunGC(ctx)
		return fmt.Sprintf("scanned %d, deleted %d\n", stats.CellsScanned, stats.CellsDeleted), err
	case "sample":
		samples, err := d.SampleRowKeys(ctx, arg(0))
		var b strings.Builder
		for _, s := range samples {
			fmt.Fprintf(&b, "%q %d\n", s.RowKey, s.OffsetBytes)
		}
		return b.String(), err
	}
	t.Fatalf("unknown command %q", td.Cmd)
	return "", nil
}

func resourcesText(rs []Resource, err error) (string, error) {
	var b strings.Builder
	for _, r := range rs {
		fmt.Fprintf(&b, "%q %q\n", r.Name, r.Value)
	}
	return b.String(), err
}

// walkRow runs one call of a Scan per line and prints its position after each.
func walkRow(t *testing.T, d *DB, table, script string) (string, error) {
	t.Helper()
	s, err := d.Scan(t.Context(), table, ScanOptions{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for line := range strings.Lines(script) {
		w := strings.Fields(line)
		switch w[0] {
		case "row":
			fmt.Fprintf(&b, "row: %v %q\n", s.NextRow(), s.Row())
		case "cell":
			if s.NextCell() {
				b.WriteString("cell: ")
				writeCell(&b, s.Row(), *s.Cell())
			} else {
				fmt.Fprintf(&b, "cell: false %v\n", s.Cell())
			}
		case "skip-column":
			s.SkipColumn()
		case "skip-family":
			s.SkipFamily()
		case "seek":
			s.SeekColumn(field(t, w[1]), []byte(field(t, w[2])))
		case "rewind":
			s.Rewind()
		default:
			t.Fatalf("unknown step %q", line)
		}
	}
	return b.String(), s.Close()
}
