package source

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/property"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

func TestOpen_IncrementalExport(t *testing.T) {
	t.Parallel()
	t1, t2 := exporttest.Time.Add(time.Hour), exporttest.Time.Add(2*time.Hour)
	fsys := exporttest.Sample() // a 1, b 2, c 3
	exporttest.AddIncremental(fsys, "02", t1, t2, exporttest.Change(t1.Add(1), exporttest.Key("d"), exporttest.Item("d", 4), exporttest.Item("d", 5)), exporttest.Change(t2, exporttest.Key("c"), exporttest.Item("c", 3), ""))
	exporttest.AddIncremental(fsys, "01", exporttest.Time, t1,
		exporttest.Change(t1.Add(-1), exporttest.Key("b"), exporttest.Item("b", 2), exporttest.Item("b", 20)), exporttest.Change(t1.Add(-2), exporttest.Key("d"), "", exporttest.Item("d", 4)),
		exporttest.Change(t1.Add(-3), exporttest.Key("e"), "", "")) // created and deleted
	want := exporttest.Item("a", 1) + "\n" + exporttest.Item("b", 20) + "\n" + exporttest.Item("d", 5) + "\n"
	src, err := OpenFS(fsys, "bucket", Options{})
	if err != nil {
		t.Fatal(err)
	}
	if src.Format != "s3-incremental-export" || !src.Tables[0].ExportTime.Equal(t2) {
		t.Errorf("format %s of %s, want s3-incremental-export of %s", src.Format, src.Tables[0].ExportTime, t2)
	}
	if got := readAllItems(t, fsys, "bucket", Options{Key: "id"}); got != want {
		t.Errorf("items:\n%s\nwant:\n%s", got, want)
	}
}

// The change of each item is reported once, in whatever parts the changes are held.
func TestTable_Changes(t *testing.T) {
	t.Parallel()
	t1, t2 := exporttest.Time.Add(time.Hour), exporttest.Time.Add(2*time.Hour)
	fsys := exporttest.Sample() // a 1, b 2, c 3
	exporttest.AddIncremental(fsys, "01", exporttest.Time, t1,
		exporttest.Change(t1, exporttest.Key("b"), exporttest.Item("b", 2), exporttest.Item("b", 20)), exporttest.Change(t1, exporttest.Key("c"), exporttest.Item("c", 3), ""),
		exporttest.Change(t1, exporttest.Key("d"), "", exporttest.Item("d", 4)), exporttest.Change(t1, exporttest.Key("e"), "", ""))
	exporttest.AddIncremental(fsys, "02", t1, t2, exporttest.Change(t2, exporttest.Key("b"), exporttest.Item("b", 20), exporttest.Item("b", 21)), exporttest.Change(t2, exporttest.Key("d"), "", ""))
	want := []string{
		exporttest.Key("b") + ": " + exporttest.Item("b", 2) + " " + exporttest.Item("b", 20) + " -> " + exporttest.Item("b", 21),
		exporttest.Key("c") + ": " + exporttest.Item("c", 3) + " -> gone",
		exporttest.Key("d") + ": " + exporttest.Item("d", 4) + " -> gone",
		exporttest.Key("e") + ": -> gone",
	}
	news := exporttest.Sample() // exports without old images: the full export has them
	exporttest.AddIncremental(news, "01", exporttest.Time, t1,
		exporttest.Change(t1, exporttest.Key("b"), "", exporttest.Item("b", 20)), exporttest.Change(t1, exporttest.Key("c"), "", ""),
		exporttest.Change(t1, exporttest.Key("d"), "", exporttest.Item("d", 4)), exporttest.Change(t1, exporttest.Key("e"), "", ""))
	exporttest.AddIncremental(news, "02", t1, t2, exporttest.Change(t2, exporttest.Key("b"), "", exporttest.Item("b", 21)), exporttest.Change(t2, exporttest.Key("d"), "", ""))
	const less = 64 // than a change takes
	for n, maxBytes := range []int{less, maxReplayBytes, less, maxReplayBytes} {
		r := replayOf(t, []fstest.MapFS{fsys, news}[n/2], "01", "02")
		r.maxBytes = maxBytes
		var got []string
		r.eachChange(func(c Change, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			text := string(attr.AppendItemJSON(nil, c.Key)) + ":"
			for _, item := range c.Was {
				text += " " + string(attr.AppendItemJSON(nil, item))
			}
			now := "gone"
			if c.Now != nil {
				now = string(attr.AppendItemJSON(nil, c.Now))
			}
			got = append(got, text+" -> "+now)
			return true
		})
		slices.Sort(got)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("case %d, with %d bytes:\n%s", n, maxBytes, d)
		}
	}
}

// The folder of one export opens by any path to it. Incremental exports have their data beside
// their folder, as the service writes them, or in it; data of others there is ignored.
func TestOpen_ExportFolder(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	fsys := exporttest.Sample()
	exporttest.AddIncremental(fsys, "01", exporttest.Time, exporttest.Time.Add(time.Hour), exporttest.Change(exporttest.Time, exporttest.Key("d"), "", ""))
	exporttest.AddIncremental(fsys, "02", exporttest.Time.Add(time.Hour), exporttest.Time.Add(2*time.Hour))
	if err := os.CopyFS(root, fsys); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(root, filepath.FromSlash(path.Dir(exporttest.Dir)))
	if err := os.Symlink(filepath.Join(dir, "01"), filepath.Join(root, "link")); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{filepath.Join(dir, "01"), filepath.Join(dir, "01") + "/", filepath.Join(dir, "01", "..", "01", "."), filepath.Join(root, "link")} {
		_, err := Open(name, Options{})
		WantDamage(t, err, ReplayGap, "AWSDynamoDB/01: the incremental export of table T has only changes")
	}
	src, err := Open(filepath.Join(dir, path.Base(exporttest.Dir)), Options{})
	if err != nil || src.Path != filepath.ToSlash(filepath.Join(dir, path.Base(exporttest.Dir))) {
		t.Fatalf("%+v, %v", src, err)
	}
}

// The full export may include writes of its last moment, with which the incremental one begins.
func TestReplay_Overlap(t *testing.T) {
	t.Parallel()
	t0, t1 := exporttest.Time, exporttest.Time.Add(time.Hour)
	fsys := exporttest.Sample() // a 1, b 2, c 3
	exporttest.AddIncremental(fsys, "01", t0, t1,
		exporttest.Change(t1.Add(-1), exporttest.Key("a"), exporttest.Item("a", 1), exporttest.Item("a", 2)), // after the moment
		exporttest.Change(t0, exporttest.Key("b"), exporttest.Item("b", 1), exporttest.Item("b", 2)),         // in both
		exporttest.Change(t1.Add(-1), exporttest.Key("c"), exporttest.Item("c", 2), exporttest.Item("c", 4)), // in both, and after it
		exporttest.Change(t0, exporttest.Key("d"), exporttest.Item("d", 1), ""))                              // in both
	r := replayOfOne(t, fsys)
	var items, changes []string
	r.entries(func(e Entry, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, string(attr.AppendItemJSON(nil, e.Item)))
		return true
	})
	if want := []string{exporttest.Item("a", 2), exporttest.Item("b", 2), exporttest.Item("c", 4)}; !slices.Equal(items, want) {
		t.Errorf("items %v, want %v", items, want)
	}
	r.eachChange(func(c Change, err error) bool {
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, was := range c.Was {
			text += string(attr.AppendItemJSON(nil, was))
		}
		changes = append(changes, text)
		return true
	})
	if want := []string{exporttest.Item("a", 1), exporttest.Item("b", 2) + exporttest.Item("b", 1), exporttest.Item("c", 3) + exporttest.Item("c", 2), exporttest.Item("d", 1)}; !slices.Equal(changes, want) {
		t.Errorf("former states %v, want %v", changes, want)
	}
}

func TestOpen_DamagedIncrementalExport(t *testing.T) {
	t.Parallel()
	t0, t1, t2 := exporttest.Time, exporttest.Time.Add(time.Hour), exporttest.Time.Add(2*time.Hour)
	for _, c := range []struct {
		name   string
		add    func(fsys fstest.MapFS)
		damage Damage
		text   string
	}{
		{"a gap behind the full export", func(f fstest.MapFS) { exporttest.AddIncremental(f, "01", t0.Add(1e6), t1) }, ReplayGap, "AWSDynamoDB/01: the incremental export covers"},
		{"a gap between two", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1)
			exporttest.AddIncremental(f, "02", t1.Add(1e6), t2)
		}, ReplayGap, "AWSDynamoDB/02: the incremental export covers"},
		{"an overlap", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1)
			exporttest.AddIncremental(f, "02", t0, t2)
		}, ReplayOrder, "it must begin where that one ends"},
		{"before the full export", func(f fstest.MapFS) { exporttest.AddIncremental(f, "01", t0.Add(-2e9), t0.Add(-1e9)) }, ReplayOrder, "it must begin"},
		{"no full export", func(f fstest.MapFS) {
			for name := range f {
				if strings.HasPrefix(name, exporttest.Dir) {
					delete(f, name)
				}
			}
			exporttest.AddIncremental(f, "01", t0, t1)
		}, ReplayGap, "has only changes"},
		{"written at another time", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t2, exporttest.Key("d"), "", exporttest.Item("d", 1)))
		}, ReplayOrder, "was written at"},
		{"another old image than the full export's", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("b"), exporttest.Item("b", 7), ""))
		}, ReplayOrder, "the full export, at"},
		{"an old image of an item that is not there", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("z"), exporttest.Item("z", 7), ""))
		}, ReplayOrder, "the full export has no such item"},
		{"another old image than the change before left", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("b"), exporttest.Item("b", 2), exporttest.Item("b", 3)))
			exporttest.AddIncremental(f, "02", t1, t2, exporttest.Change(t2, exporttest.Key("b"), exporttest.Item("b", 2), ""))
		}, ReplayOrder, "the previous change, at"},
		{"keys of other attributes", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("d"), "", exporttest.Item("d", 1)),
				exporttest.Change(t1, `{"QQ":{"S":"c"}}`, "", ""), exporttest.Change(t1, `{"QQ":{"S":"d"}}`, "", ""))
		}, ReplayOrder, `01-0.json.gz:2: the change has the Keys "QQ" (S), but the change at bucket/pre/AWSDynamoDB/data/01-0.json.gz:1 has "id" (S)`},
		{"keys of one attribute more", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("d"), "", ""))
			exporttest.AddIncremental(f, "02", t1, t2, exporttest.Change(t2, `{"id":{"S":"d"},"r":{"N":"1"}}`, "", ""))
		}, ReplayOrder, `02-0.json.gz:1: the change has the Keys "id" (S) and "r" (N)`},
		{"keys of another type", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("d"), "", ""), exporttest.Change(t1, `{"id":{"N":"1"}}`, "", ""))
		}, ReplayOrder, `the change has the Keys "id" (N)`},
		{"an item changed twice in one export", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("b"), exporttest.Item("b", 2), exporttest.Item("b", 3)), exporttest.Change(t1, exporttest.Key("b"), exporttest.Item("b", 3), exporttest.Item("b", 4)))
		}, ReplayOrder, `01-0.json.gz:2: item {"id":{"S":"b"}} is changed here and at`},
		{"no keys", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"NewImage":{"id":{"S":"a"}}}`)
		}, NotAnItem, "the change has no Keys"},
		{"a time as text of no number", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, `{"Metadata":{"WriteTimestampMicros":"soon"},"Keys":{"id":{"S":"a"}}}`)
		}, NotAnItem, "Metadata has no numeric WriteTimestampMicros"},
		{"no time", func(f fstest.MapFS) { exporttest.AddIncremental(f, "01", t0, t1, `{"Keys":{"id":{"S":"a"}}}`) }, NotAnItem, "the change has no Metadata"},
		{"an image of another key", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1, exporttest.Change(t1, exporttest.Key("b"), "", exporttest.Item("c", 2)))
		}, ValueInvalid, `attribute "id" of an image differs from Keys`},
		{"half a line", func(f fstest.MapFS) { exporttest.AddIncremental(f, "01", t0, t1, `{"Keys":{"id"`) }, NotJSON, "01-0.json.gz:1: not JSON"},
		{"an unlisted file in the shared folder", func(f fstest.MapFS) {
			exporttest.AddIncremental(f, "01", t0, t1)
			f[path.Join(path.Dir(exporttest.Dir), "data/zz.json.gz")] = &fstest.MapFile{Data: exporttest.Pack(nil)}
		}, DataFileExtra, "AWSDynamoDB/data/zz.json.gz"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := exporttest.Sample()
			c.add(fsys)
			_, err := drain(fsys, "bucket", Options{Key: "id"})
			WantDamage(t, err, c.damage, c.text)
		})
	}
}

// The memory for changes stays within its bound, whatever the size of the items.
func TestReplay_Memory(t *testing.T) { //nolint:paralleltest // memory.Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector takes memory too")
	}
	memory.Alone(t, func(t *testing.T) {
		t1 := exporttest.Time.Add(time.Hour)
		every := 500 // items, the memory is measured
		if long.Enabled() {
			every = 250
		}
		for _, c := range []struct{ elems, items int }{{0, 6_000}, {40, 3_000}} {
			var lines []string
			list := strings.TrimSuffix(strings.Repeat(`{"N":"1"},`, c.elems), ",")
			for i := range c.items {
				lines = append(lines, exporttest.Change(t1, exporttest.Key(fmt.Sprint("x", i)), "", fmt.Sprintf(`{"id":{"S":"x%d"},"l":{"L":[%s]}}`, i, list)))
			}
			fsys := exporttest.Sample()
			exporttest.AddIncremental(fsys, "01", exporttest.Time, t1, lines...)
			lines = nil
			r := replayOfOne(t, fsys)
			r.maxBytes = 1 << 19
			before, most, n := int64(memory.Live()), int64(0), 0
			r.entries(func(_ Entry, err error) bool {
				if err != nil {
					t.Fatal(err)
				}
				if n++; n%every == 1 {
					// The least of three: memory that a stopped goroutine refers to counts as
					// held once.
					most = max(most, int64(min(memory.Live(), memory.Live(), memory.Live()))-before)
				}
				return true
			})
			if n != c.items+3 {
				t.Errorf("%d items, want %d", n, c.items+3)
			}
			if bound := int64(r.maxBytes) * 5 / 4; most > bound || r.parts < 4 { // the parts differ in size, and a file is being read
				t.Errorf("lists of %d: %d bytes are held in %d parts, want at most %d in 4 or more", c.elems, most, r.parts, bound)
			}
			runtime.KeepAlive(fsys)
		}
	})
}

// TestReplay_Property: a table changes at random; its full export with its incremental exports
// gives the same as a full export at the end, in any number of passes.
func TestReplay_Property(t *testing.T) {
	t.Parallel()
	rapid.Check(t, property.First(30, func(t *rapid.T) {
		state := map[string]int{}
		id := rapid.StringMatching(`[a-f]`)
		for range rapid.IntRange(1, 6).Draw(t, "items") {
			state[id.Draw(t, "id")] = rapid.IntRange(0, 9).Draw(t, "n")
		}
		items := func() []string {
			var lines []string
			for id, n := range state {
				lines = append(lines, exporttest.Item(id, n))
			}
			slices.Sort(lines)
			return lines
		}
		var wrapped []string
		for _, line := range items() {
			wrapped = append(wrapped, `{"Item":`+line+`}`)
		}
		fsys := exporttest.New(wrapped)
		from := exporttest.Time
		for export := range rapid.IntRange(1, 3).Draw(t, "exports") {
			to := from.Add(time.Hour)
			before := map[string]string{}
			for range rapid.IntRange(0, 5).Draw(t, "changes") {
				id := id.Draw(t, "id")
				old := ""
				if n, ok := state[id]; ok {
					old = exporttest.Item(id, n)
				}
				if _, ok := before[id]; !ok {
					before[id] = old
				}
				if n := rapid.IntRange(-3, 9).Draw(t, "n"); n < 0 {
					delete(state, id)
				} else {
					state[id] = n
				}
			}
			var lines []string
			for id, old := range before {
				now := ""
				if n, ok := state[id]; ok {
					now = exporttest.Item(id, n)
				}
				lines = append(lines, exporttest.Change(to, exporttest.Key(id), old, now))
			}
			slices.Sort(lines)
			exporttest.AddIncremental(fsys, fmt.Sprint("0", export), from, to, lines...)
			from = to
		}
		full, err := openOneExport(tree{FS: fsys}, exporttest.Dir)
		if err != nil {
			t.Fatal(err)
		}
		found, err := findExports(tree{FS: fsys}, "bucket", maxExportDepth)
		if err != nil {
			t.Fatal(err)
		}
		var after []exportPart
		for _, dir := range found {
			part, err := openOneExport(tree{FS: fsys}, dir)
			if err != nil {
				t.Fatal(err)
			}
			if part.incremental {
				after = append(after, part)
			}
		}
		r, err := replay(tree{FS: fsys}, full, after)
		if err != nil {
			t.Fatal(err)
		}
		r.maxBytes = rapid.IntRange(40, 4000).Draw(t, "maxBytes")
		var got []string
		r.entries(func(e Entry, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(attr.AppendItemJSON(nil, e.Item)))
			return true
		})
		slices.Sort(got)
		if !slices.Equal(got, items()) {
			t.Fatalf("items %v, want %v", got, items())
		}
	}))
}

// A faulty item of the full export is reported once, in any number of passes.
func TestReplay_BadItemOnce(t *testing.T) {
	t.Parallel()
	t1 := exporttest.Time.Add(time.Hour)
	fsys := exporttest.New([]string{`{"Item":{"id":{"S":"a"}}}`, `{"Item":{"id":{"X":"b"}}}`})
	var lines []string
	for i := range 20 {
		lines = append(lines, exporttest.Change(t1, exporttest.Key(fmt.Sprint("x", i)), "", exporttest.Item(fmt.Sprint("x", i), i)))
	}
	exporttest.AddIncremental(fsys, "01", exporttest.Time, t1, lines...)
	r := replayOfOne(t, fsys)
	r.maxBytes = 1000
	bad, good := 0, 0
	r.entries(func(_ Entry, err error) bool {
		if err == nil {
			good++
			return true
		}
		WantDamage(t, err, TypeUnknown, "file0.json.gz:2")
		bad++
		return true
	})
	if r.parts < 2 || bad != 1 || good != 21 {
		t.Errorf("%d items and %d bad ones in %d parts, want 21 and 1 in several", good, bad, r.parts)
	}
}

// replayOfOne returns a full export with the incremental one called 01.
func replayOfOne(tb testing.TB, fsys fs.FS) *replayed {
	tb.Helper()
	return replayOf(tb, fsys, "01")
}

// replayOf returns the replay of the incremental exports with these ids.
func replayOf(tb testing.TB, fsys fs.FS, ids ...string) *replayed {
	tb.Helper()
	full, err := openOneExport(tree{FS: fsys}, exporttest.Dir)
	if err != nil {
		tb.Fatal(err)
	}
	var parts []exportPart
	for _, id := range ids {
		part, err := openOneExport(tree{FS: fsys}, path.Join(path.Dir(exporttest.Dir), id))
		if err != nil {
			tb.Fatal(err)
		}
		parts = append(parts, part)
	}
	r, err := replay(tree{FS: fsys}, full, parts)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// A change written by s3export is read back unchanged.
func TestParseChange_OfWriter(t *testing.T) {
	t.Parallel()
	id := attr.Value{Type: attr.S, Str: "a"}
	for _, c := range []s3export.Change{
		{WriteMicros: 7, Keys: attr.Item{"id": id}, Old: attr.Item{"id": id}, New: attr.Item{"id": id, "n": {Type: attr.N, Str: "1"}}},
		{WriteMicros: 8, Keys: attr.Item{"id": id}, New: attr.Item{"id": id}},
		{WriteMicros: 9, Keys: attr.Item{"id": id}},
	} {
		got, err := parseChange(s3export.AppendChange(nil, c), Position{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c, s3export.Change{WriteMicros: got.micros, Keys: got.keys, Old: got.old, New: got.new}); diff != "" {
			t.Errorf("change (-written +read):\n%s", diff)
		}
	}
}
