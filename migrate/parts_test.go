package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// partsPlain is a mapping with a row per item, and an index whose rows identify their items.
var partsPlain = strings.Replace(caughtUpItems, "  - {name: H, hash: H, projection: [n], as: table, row: [H, PK]}\n", "", 1)

// partsExport returns an export of n items in the given number of files.
func partsExport(n, files int, line func(i int) string) fstest.MapFS {
	lines := make([][]string, files)
	for i := range n {
		lines[i*i%files] = append(lines[i*i%files], `{"Item":`+line(i)+`}`)
	}
	return exporttest.New(lines...)
}

func entityLine(i int) string {
	return fmt.Sprintf(`{"PK":{"S":"p%03d"},"SK":{"S":"s%d"},"G":{"S":"g%d"},"GS":{"S":"t%d"},"H":{"S":"h%d"},"n":{"N":"%d"},"tags":{"SS":["x%d"]}}`, i/3, i%3, i%5, i, i, i, i%4)
}

// commentLine returns an item that shares its row with many others.
func commentLine(i int) string {
	return fmt.Sprintf(`{"PK":{"S":"p%02d"},"SK":{"S":"c%013d"},"c":{"S":"text %d"}}`, i%20, 8300000000000+i, i)
}

func openExport(t *testing.T, fsys fstest.MapFS) *source.Source {
	t.Helper()
	src, err := source.OpenFS(fsys, ".", source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// eachPart runs a function for all parts at once, each with its own source.
func eachPart(t *testing.T, fsys fstest.MapFS, of int, do func(ctx context.Context, p source.Part, src *source.Source) error) error {
	t.Helper()
	work, ctx := errgroup.WithContext(t.Context())
	for i := range of {
		src := openExport(t, fsys)
		work.Go(func() error { return do(ctx, source.Part{Index: i + 1, Of: of}, src) })
	}
	return work.Wait()
}

// loadParts loads an export in the given number of parts at once.
func loadParts(t *testing.T, conn grpc.ClientConnInterface, fsys fstest.MapFS, of int, o LoadOptions) error {
	t.Helper()
	return eachPart(t, fsys, of, func(ctx context.Context, p source.Part, src *source.Source) error {
		o := o
		o.Part = p
		_, err := Load(ctx, conn, src, o)
		return err
	})
}

// TestParts loads an export in parts at once, each killed and resumed, and compares the result
// with a load in one go. Then as many parts verify it, and find each missing, changed or extra
// row.
func TestParts(t *testing.T) {
	t.Parallel()
	parts, items, files, writes := 4, int64(100), 11, int64(12)
	if long.Enabled() {
		parts, items, files, writes = 10, 240, 23, 25
	}
	for _, c := range []struct {
		name, mapping string
		line          func(int) string
		rows          int64
	}{
		{"separate rows", partsPlain, entityLine, items},
		{"an index whose rows do not say whose they are", caughtUpItems, entityLine, items},
		{"a delimiter in one key", partsPlain, func(i int) string { return strings.Replace(entityLine(i), `"p007"`, `"p#007"`, 1) }, items},
		{"rows of many items", caughtUpRows, commentLine, 20},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := partsExport(int(items), files, c.line)
			one, many := newBigtableServer(t), newBigtableServer(t)
			if _, err := Load(t.Context(), one, openExport(t, fsys), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, c.mapping)}}}); err != nil {
				t.Fatal(err)
			}

			o := LoadOptions{Checkpoint: t.TempDir(), Tablets: 4}
			o.Mappings, o.knobs = []*mapping.Mapping{mappingOf(t, c.mapping)}, table.Knobs{Batch: 1 << 10, CheckpointBytes: 1}
			load := func(conn grpc.ClientConnInterface) error {
				return loadParts(t, conn, fsys, parts, o)
			}
			killed := errors.New("killed")
			var calls atomic.Int64
			dying := &intercepted{ClientConnInterface: many, before: func(*btpb.MutateRowsRequest) error {
				if calls.Add(1) > writes {
					return killed
				}
				return nil
			}}
			if err := load(dying); !errors.Is(err, killed) {
				t.Fatalf("error %v, want the parts to be killed", err)
			}
			_, err := FinishLoad(t.Context(), many, openExport(t, fsys), o)
			WantDamage(t, err, source.CheckpointInvalid, "these are not complete")
			if err := load(many); err != nil {
				t.Fatal(err)
			}
			if err := load(&intercepted{ClientConnInterface: many, before: func(*btpb.MutateRowsRequest) error { return killed }}); err != nil {
				t.Errorf("complete parts do something: %v", err)
			}
			for _, name := range []string{fmt.Sprintf("load-3-of-%d.rows.t.123", parts), fmt.Sprintf("load-3-of-%d.lock", parts), "load-1-of-3.lock"} { // of killed processes
				if err := os.WriteFile(filepath.Join(o.Checkpoint, name), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			r, err := FinishLoad(t.Context(), many, openExport(t, fsys), o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Items != items || r.Rows != c.rows || !r.Equal() {
				t.Errorf("%d items in %d rows, %d differences; want %d in %d, 0", r.Items, r.Rows, r.Differences, items, c.rows)
			}
			if text, want := r.Text(), fmt.Sprintf("load, table %s: %d items\n", r.Tables[0].Target, items); !strings.Contains(text, want) || strings.Contains(text, " 0 a second") {
				t.Errorf("the report of all parts does not say %q, or has a rate of none:\n%s", want, text)
			}
			if got, want := allTables(t, many), allTables(t, one); got != want {
				t.Error("the rows of the parts are not those of one load")
			}
			left, err := os.ReadDir(o.Checkpoint)
			if err != nil || len(left) > 0 {
				t.Errorf("%v is left of the parts, error %v", left, err)
			}

			verify := func(change ...*btpb.Mutation) *report.Report {
				o := VerifyOptions{Stored: true, Parts: t.TempDir()}
				o.Mappings = []*mapping.Mapping{mappingOf(t, c.mapping)}
				client := table.NewBigtable(many, table.Options{})
				if len(change) > 0 {
					if err := client.MutateRow(t.Context(), "t", firstRow(t, client), change); err != nil {
						t.Fatal(err)
					}
				}
				if err := eachPart(t, fsys, parts, func(ctx context.Context, p source.Part, src *source.Source) error {
					o := o
					o.Part = p
					_, err := Verify(ctx, many, OfSource(src), o)
					return err
				}); err != nil {
					t.Fatal(err)
				}
				r, err := FinishVerify(t.Context(), many, OfSource(openExport(t, fsys)), o)
				if err != nil {
					t.Fatal(err)
				}
				return r
			}
			r = verify()
			if text := r.Text(); !strings.Contains(text, fmt.Sprintf("rows of the part, table t: %d rows, ", c.rows)) || strings.Contains(text, "in the range of the part") {
				t.Errorf("the report is not the sum of the parts:\n%s", text)
			}
			if !r.Equal() || r.Items != items || r.Rows != c.rows {
				t.Errorf("%d items in %d rows, want %d in %d and nothing that differs: %v", r.Items, r.Rows, items, c.rows, r.Failures)
			}
			r = verify(btclient.DeleteRow())
			whole, err := Verify(t.Context(), many, OfSource(openExport(t, fsys)), VerifyOptions{Stored: true, Common: Common{Mappings: o.Mappings}})
			if err != nil {
				t.Fatal(err)
			}
			if r.Equal() || fmt.Sprint(r.Failures) != fmt.Sprint(whole.Failures) || r.Rows != whole.Rows {
				t.Errorf("parts find %v in %d rows, a verification of all %v in %d", r.Failures, r.Rows, whole.Failures, whole.Rows)
			}
		})
	}
}

// firstRow returns the first row of a table.
func firstRow(t *testing.T, b *table.Bigtable) []byte {
	t.Helper()
	for row, err := range b.TableRows(t.Context(), "t") {
		if err != nil {
			t.Fatal(err)
		}
		return row.Key
	}
	t.Fatal("there is no row")
	return nil
}

// intercepted calls a function of the test before each write, from several goroutines.
type intercepted struct {
	grpc.ClientConnInterface
	before func(*btpb.MutateRowsRequest) error
}

func (c *intercepted) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || !strings.HasSuffix(method, "/MutateRows") {
		return s, err
	}
	return &interceptedStream{s, c}, nil
}

type interceptedStream struct {
	grpc.ClientStream
	c *intercepted
}

func (s *interceptedStream) SendMsg(m any) error {
	if err := s.c.before(m.(*btpb.MutateRowsRequest)); err != nil {
		return err
	}
	return s.ClientStream.SendMsg(m)
}

// TestParts_ExtraRow: a row that no part expects is found when the parts are joined.
func TestParts_ExtraRow(t *testing.T) {
	t.Parallel()
	fsys := partsExport(50, 5, entityLine)
	conn := newBigtableServer(t)
	if _, err := Load(t.Context(), conn, openExport(t, fsys), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{mappingOf(t, partsPlain)}}}); err != nil {
		t.Fatal(err)
	}
	client := table.NewBigtable(conn, table.Options{})
	for _, row := range []string{"a", "p004#z", "zz"} {
		if err := client.MutateRow(t.Context(), "t", []byte(row), []*btpb.Mutation{btclient.SetCell("a", []byte("n"), 1000, []byte("1"))}); err != nil {
			t.Fatal(err)
		}
	}
	o := VerifyOptions{Stored: true, Parts: t.TempDir()}
	o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
	if err := eachPart(t, fsys, 3, func(ctx context.Context, p source.Part, src *source.Source) error {
		o := o
		o.Part = p
		_, err := Verify(ctx, conn, OfSource(src), o)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r, err := FinishVerify(t.Context(), conn, OfSource(openExport(t, fsys)), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Differences != 3 || r.Failures[0].Kind != report.ExtraRow {
		t.Errorf("%v, want three extra rows", r.Failures)
	}
}

// TestParts_Meet: items with the same key in two parts are found in the cases in which one load
// refuses them.
func TestParts_Meet(t *testing.T) {
	t.Parallel()
	line := func(i int) string { return `{"Item":` + entityLine(i) + `}` }
	fsys := exporttest.New([]string{line(1), line(2)}, []string{line(3)}, []string{line(4), line(1)})
	conn := newBigtableServer(t)
	o := LoadOptions{Checkpoint: t.TempDir()}
	o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
	if err := loadParts(t, conn, fsys, 3, o); err != nil {
		t.Fatal(err)
	}
	_, err := FinishLoad(t.Context(), conn, openExport(t, fsys), o)
	WantDamage(t, err, source.KeyDuplicate, "the parts are written, but do not fit together")
}

// TestParts_Twice: a second run of a part, beside the first, that ends early does not disturb
// it; the result of the first counts.
func TestParts_Twice(t *testing.T) {
	t.Parallel()
	line := func(i int) string { return `{"Item":` + entityLine(i) + `}` }
	fsys := exporttest.New([]string{line(1), line(2)}, []string{line(3)}, []string{line(4), line(1)})
	conn := newBigtableServer(t)
	o := LoadOptions{Part: source.Part{Index: 1, Of: 3}, Checkpoint: t.TempDir()}
	o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
	var all [2]*Prepared
	for i := range all {
		p, err := Prepare(t.Context(), openExport(t, fsys), o)
		if err != nil {
			t.Fatal(err)
		}
		all[i] = p
	}
	cut, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Prepare(cut, openExport(t, fsys), o); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want the part to be cut off while it is checked", err)
	}
	for i, p := range all {
		r, err := p.Load(t.Context(), conn)
		if err != nil {
			t.Fatal(err)
		}
		if warned := slices.ContainsFunc(r.Warnings, func(w string) bool {
			return strings.HasPrefix(w, "part 1/3 was completed by another process in the meantime")
		}); warned != (i == 1) {
			t.Errorf("run %d of the part warns of %q", i+1, r.Warnings)
		}
	}
	for i := 2; i <= 3; i++ {
		other := o
		other.Part.Index = i
		if _, err := Load(t.Context(), conn, openExport(t, fsys), other); err != nil {
			t.Fatal(err)
		}
	}
	finish := o
	finish.Part = source.Part{}
	_, err := FinishLoad(t.Context(), conn, openExport(t, fsys), finish)
	WantDamage(t, err, source.KeyDuplicate, "the parts are written, but do not fit together")
	if there, err := filepath.Glob(filepath.Join(o.Checkpoint, "load-1-of-3.*")); err != nil || len(there) != 2 {
		t.Errorf("the part has files %q, error %v; want its result and its rows", there, err)
	}
}

// TestParts_Refused: sources without parts, and parts that do not fit the others, are rejected.
func TestParts_Refused(t *testing.T) {
	t.Parallel()
	fsys := partsExport(50, 5, entityLine)
	changed := exporttest.New([]string{`{"Item":` + entityLine(1) + `}`}, nil)
	folder := t.TempDir()
	conn := newBigtableServer(t)
	part := func(i, of int) LoadOptions {
		o := LoadOptions{Part: source.Part{Index: i, Of: of}, Checkpoint: folder}
		o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
		return o
	}
	first := part(1, 2)
	if _, err := Load(t.Context(), conn, openExport(t, fsys), first); err != nil {
		t.Fatal(err)
	}
	inferred, nowhere, judged := first, first, first
	inferred.Mappings, nowhere.Checkpoint, judged.Lint = nil, "", &LintRules{}
	for _, c := range []struct {
		name string
		src  *source.Source
		o    LoadOptions
		kind source.Damage
		want string
	}{
		{"no export", manyItems(t, 3), first, source.Unsupported, "only the data files of an export to S3"},
		{"no files", openExport(t, fsys), part(6, 6), source.Unsupported, "the source has 5 data files, too few for 6 parts"},
		{"no such part", openExport(t, fsys), part(3, 2), source.Unsupported, "there is no part 3/2"},
		{"no mapping", openExport(t, fsys), inferred, source.MappingRefused, "parts need an explicit mapping"},
		{"no folder", openExport(t, fsys), nowhere, source.CheckpointInvalid, "part 1/2 has no folder for its progress"},
		{"lint", openExport(t, fsys), judged, source.Unsupported, "lint rules apply to all items"},
		{"another source", openExport(t, changed), first, source.CheckpointInvalid, "part 1/2 belongs to another load command"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(t.Context(), conn, c.src, c.o)
			WantDamage(t, err, c.kind, c.want)
		})
	}
	finish := first
	finish.Part = source.Part{}
	_, err := FinishLoad(t.Context(), conn, openExport(t, fsys), finish)
	WantDamage(t, err, source.CheckpointInvalid, "of 2 parts, these are not complete: 2/2")
	_, err = Load(t.Context(), conn, openExport(t, fsys), part(2, 3))
	WantDamage(t, err, source.CheckpointInvalid, "the folder holds parts of a load command with 2 parts, but this is part 2/3: name another folder, or remove load-*-of-2.* there")
	// Two parts that began at once.
	stray := filepath.Join(folder, "load-2-of-3.rows.items")
	if err := os.WriteFile(stray, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = FinishLoad(t.Context(), conn, openExport(t, fsys), finish)
	WantDamage(t, err, source.CheckpointInvalid, "the folder holds parts of a load command with 2 parts and of one with 3 parts: remove either load-*-of-2.* or load-*-of-3.*")
	if err := os.Remove(stray); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(t.Context(), conn, openExport(t, fsys), part(2, 2)); err != nil {
		t.Fatal(err)
	}
	_, err = FinishLoad(t.Context(), newBigtableServer(t), openExport(t, fsys), finish)
	if err == nil {
		t.Error("a target without the tables has the parts")
	}
}

// TestParts_DeadLetters: the joined report has the dead letters of the parts.
func TestParts_DeadLetters(t *testing.T) {
	t.Parallel()
	fsys := partsExport(40, 4, func(i int) string {
		if i%10 == 3 {
			return strings.Replace(commentLine(i), `"c8`, `"d8`, 1) // no rule takes it
		}
		return commentLine(i)
	})
	conn := newBigtableServer(t)
	o := LoadOptions{Checkpoint: t.TempDir(), DeadLetter: io.Discard}
	o.Mappings = []*mapping.Mapping{mappingOf(t, caughtUpRows)}
	if err := loadParts(t, conn, fsys, 4, o); err != nil {
		t.Fatal(err)
	}
	r, err := FinishLoad(t.Context(), conn, openExport(t, fsys), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Tables[0].DeadLetters != 4 || r.Differences != 4 || len(r.Failures) != 4 || r.Items != 36 {
		t.Errorf("%d dead letters, %d differences, %d listed, %d items; want 4, 4, 4, 36", r.Tables[0].DeadLetters, r.Differences, len(r.Failures), r.Items)
	}
}

// TestLoad_Tablets: a new table is split into tablets of equally many rows, and so are its
// indexes.
func TestLoad_Tablets(t *testing.T) {
	t.Parallel()
	fsys := partsExport(300, 6, entityLine)
	for _, c := range []struct {
		name string
		src  *source.Source
		part source.Part
	}{{"one load", openExport(t, fsys), source.Part{}}, {"a part", openExport(t, fsys), source.Part{Index: 2, Of: 3}}} {
		conn := newBigtableServer(t)
		o := LoadOptions{Tablets: 4, Part: c.part}
		if c.part.Of > 0 {
			o.Checkpoint = t.TempDir()
		}
		o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
		if _, err := Load(t.Context(), conn, c.src, o); err != nil {
			t.Fatal(err)
		}
		for _, id := range tableIDs(t, conn) {
			if strings.HasPrefix(id, "_") {
				continue
			}
			keys, _, err := table.NewBigtable(conn, table.Options{}).SampleKeys(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if len(keys) < 3 {
				t.Errorf("%s: table %s is cut at %q, want three keys", c.name, id, keys)
			}
			if id == "t" && !strings.HasPrefix(string(keys[0]), "p025") {
				t.Errorf("%s: the first tablet ends at %q, want a fourth of 100 partitions", c.name, keys[0])
			}
		}
	}
}

// TestLoad_Pace: the pace holds whatever the size of batches, and unused time is lost.
func TestLoad_Pace(t *testing.T) {
	t.Parallel()
	now, start := time.Duration(0), time.Duration(-1)
	rows := 0
	conn := &failing{ClientConnInterface: newBigtableServer(t)}
	conn.fail = func(call int, req *btpb.MutateRowsRequest) error {
		if start < 0 {
			start = now
		}
		if may := 10 + int((now-start)*100/time.Second); rows+len(req.GetEntries()) > may+10 {
			t.Errorf("%d rows after %v, want no more than %d", rows+len(req.GetEntries()), now-start, may)
		}
		rows += len(req.GetEntries())
		if call == 5 {
			now += time.Minute // the server is slow
			rows, start = 0, now
		}
		return nil
	}
	o := LoadOptions{}
	o.Stopwatch = func() time.Duration { return now }
	o.Sleep = func(_ context.Context, d time.Duration) error { now += d; return nil }
	o.MaxRowsPerSecond = 100
	if _, err := Load(t.Context(), conn, manyItems(t, 500), o); err != nil {
		t.Fatal(err)
	}
	if now < time.Minute+4*time.Second {
		t.Errorf("500 rows at 100 a second took %v, besides a minute for nothing", now)
	}
	conn.fail = nil
	begun := now
	if _, err := Load(t.Context(), conn, manyItems(t, 500), o); err != nil {
		t.Fatal(err)
	}
	if took := now - begun; took < 4*time.Second || took > 6*time.Second {
		t.Errorf("500 rows that were there took %v to look up", took)
	}
	noteEndpoint(t, conn, "items", time.UnixMilli(2000))
	o.KeepWrites = true
	begun = now
	if _, err := Load(t.Context(), conn, manyItems(t, 500), o); err != nil {
		t.Fatal(err)
	}
	if took := now - begun; took < 9*time.Second || took > 11*time.Second {
		t.Errorf("500 rows took %v to look up twice, for writes of an endpoint too", took)
	}
	begun = now
	o.MaxRowsPerSecond = 1000
	verify := VerifyOptions{Stored: true, Common: o.Common}
	r, err := Verify(t.Context(), conn, OfSource(manyItems(t, 1100)), verify)
	if err != nil || r.Equal() {
		t.Fatalf("error %v, want that rows are missing", err)
	}
	// They are read twice, with 256 before the first wait.
	if took := now - begun; took < 200*time.Millisecond || took > time.Second {
		t.Errorf("500 rows at 1000 a second took %v to read back and compare", took)
	}
}

// TestCatchUp_Pace: the pace also holds for the rows that a catch-up reads and changes.
func TestCatchUp_Pace(t *testing.T) {
	t.Parallel()
	before, after := itemsAt{}, itemsAt{}
	for i := range 100 {
		key := fmt.Sprintf(`{"PK":{"S":"p%02d"},"SK":{"S":"x"}}`, i)
		before[key], after[key] = key[:len(key)-1]+`,"n":{"N":"1"},"x":{"N":"1"}}`, key[:len(key)-1]+`,"n":{"N":"1"}}`
	}
	conn := newBigtableServer(t)
	now := time.Duration(0)
	o := LoadOptions{}
	o.Stopwatch = func() time.Duration { return now }
	o.Sleep = func(_ context.Context, d time.Duration) error { now += d; return nil }
	if _, err := Load(t.Context(), conn, exports(t, true, before), o); err != nil {
		t.Fatal(err)
	}
	o.MaxRowsPerSecond = 100
	begun := now
	r, err := Load(t.Context(), conn, exports(t, true, before, after), o)
	if err != nil || r.Tables[0].CellsDeleted != 100 {
		t.Fatalf("%d cells deleted, error %v", r.Tables[0].CellsDeleted, err)
	}
	if took := now - begun; took < 2700*time.Millisecond || took > 4*time.Second {
		t.Errorf("reading, changing and looking up 100 rows took %v", took)
	}
}

// TestParts_ShortRows: a truncated file of rows, as after a power failure, does not prove that
// parts share no rows.
func TestParts_ShortRows(t *testing.T) {
	t.Parallel()
	fsys := partsExport(60, 4, entityLine)
	conn := newBigtableServer(t)
	o := LoadOptions{Checkpoint: t.TempDir()}
	o.Mappings = []*mapping.Mapping{mappingOf(t, partsPlain)}
	load := func() {
		t.Helper()
		if err := loadParts(t, conn, fsys, 2, o); err != nil {
			t.Fatal(err)
		}
	}
	load()
	name := filepath.Join(o.Checkpoint, "load-2-of-2.rows.t")
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 16, len(whole) - 16, len(whole) - 1} {
		if err := os.WriteFile(name, whole[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := FinishLoad(t.Context(), conn, openExport(t, fsys), o)
		WantDamage(t, err, source.CheckpointInvalid, fmt.Sprintf("the file has %d bytes, but the %d rows of part 2/2 take %d: remove load-2-of-2.done beside it, and load the part again", size, len(whole)/16, len(whole)))
	}
	if err := os.Remove(filepath.Join(o.Checkpoint, "load-2-of-2.done")); err != nil {
		t.Fatal(err)
	}
	load()
	if _, err := FinishLoad(t.Context(), conn, openExport(t, fsys), o); err != nil {
		t.Error(err)
	}
}
