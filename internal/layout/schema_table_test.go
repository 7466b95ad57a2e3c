package layout

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

// checkStored checks whether rows hold m exactly.
func checkStored(t *testing.T, m *Mapping, rows []Row, want bool) {
	t.Helper()
	if got, err := m.IsStored(rows); err != nil || got != want {
		t.Errorf("the mapping is in the rows: %v, %v; want %v", got, err, want)
	}
}

// TestSchemaRows shows the rows of the schema table; the mapping in them reads the table.
func TestSchemaRows(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(lockedMapping))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := m.SchemaRows(expTime)
	if err != nil {
		t.Fatal(err)
	}
	again, err := FromSchemaRows("t", rows[:1])
	if err != nil {
		t.Fatal(err)
	}
	was, _ := m.Lock()
	if is, err := again.Lock(); err != nil || len(was.Changes(is)) > 0 {
		t.Errorf("the mapping in the table has %v, %v", was.Changes(is), err)
	}
	checkStored(t, m, rows, true)
	checkStored(t, again, rows, true)
	checkStored(t, m, rows[1:], false)
	other, err := Load("m.yaml", []byte(strings.Replace(lockedMapping, "tags: SS", "tags: NS", 1)))
	if err != nil {
		t.Fatal(err)
	}
	checkStored(t, other, rows, false)
	var got []byte
	for _, r := range rows {
		for i, c := range r.Cells {
			if q := string(c.Qualifier); q == "mapping" || q == "hash" {
				r.Cells[i].Value = []byte("…")
			}
		}
		got = rowtext.FormatRow(got, r)
	}
	const want = `t# [7423]
  m:hash @1715685260608000 = "…"
  m:joiner @1715685260608000 = "oc"
  m:mapping @1715685260608000 = "…"
  m:source @1715685260608000 = "T"
t#at [74236174]
  m:key @1715685260608000 = "range"
  m:type @1715685260608000 = "\"N\""
t#id [74236964]
  m:key @1715685260608000 = "hash"
  m:type @1715685260608000 = "\"S\""
t#m [74236d]
  m:type @1715685260608000 = {"M":{"k":"N"},"else":{"L":"S"}}
t#more [74236d6f7265]
  m:type @1715685260608000 = "\"NS\""
t#tags [742374616773]
  m:type @1715685260608000 = "\"SS\""
`
	if d := cmp.Diff(want, string(got)); d != "" {
		t.Errorf("rows (-want +got):\n%s", d)
	}
	if none, err := FromSchemaRows("t", rows[1:]); none != nil || err != nil {
		t.Errorf("a mapping without its row: %v, %v", none, err)
	}
	if none, err := FromSchemaRows("t", []Row{{Key: []byte("t#")}}); none != nil || err != nil {
		t.Errorf("a mapping of a row without one: %v, %v", none, err)
	}
}

// The file in the table has auto, as its author wrote, and the next cell has the outcome:
// readers of the rows use that.
func TestSchemaRows_Joiner(t *testing.T) {
	t.Parallel()
	m, err := Load("m.yaml", []byte(strings.Replace(lockedMapping, "joiner: oc", "joiner: auto", 1)))
	if err != nil {
		t.Fatal(err)
	}
	for _, proven := range []string{"plain('#')", "escaped('#')", "auto"} {
		of := m
		if proven != "auto" {
			if of, err = m.Proven(proven); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := of.SchemaRows(expTime)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range rows[0].Cells {
			if string(c.Qualifier) == "joiner" && string(c.Value) != proven {
				t.Errorf("the joiner in the table is %s, want %s", c.Value, proven)
			}
			if string(c.Qualifier) == "mapping" && !strings.Contains(string(c.Value), "joiner: auto") {
				t.Errorf("the mapping in the table is another one than the author's:\n%s", c.Value)
			}
		}
		checkStored(t, of, rows, true)
		checkStored(t, m, rows, proven == "auto")
		again, err := FromSchemaRows("t", rows)
		if err != nil || again.Joiner() != proven {
			t.Fatalf("the joiner comes back as %v, %v", again.Joiner(), err)
		}
		lock, err := again.Lock()
		if err != nil {
			t.Fatal(err)
		}
		if was, err := of.Lock(); err != nil || lock.Joiner != proven || len(was.Changes(lock)) > 0 {
			t.Errorf("the lock has joiner %s, and changes: %v, %v", lock.Joiner, was.Changes(lock), err)
		}
		if proven == "auto" {
			continue
		}
		// The proven joiner and the author's give the same rows, and one lock.
		written, err := m.WithJoiner(proven)
		if err != nil {
			t.Fatal(err)
		}
		if is, err := written.Lock(); err != nil || len(lock.Changes(is)) > 0 {
			t.Errorf("joiner %s written out has another lock: %v, %v", proven, lock.Changes(is), err)
		}
	}
	for _, wrong := range []string{"oc", "auto", ""} {
		if _, err := m.Proven(wrong); err == nil {
			t.Errorf("auto has the outcome %q", wrong)
		}
	}
	rows, err := m.SchemaRows(expTime)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range rows[0].Cells {
		if string(c.Qualifier) == "joiner" {
			rows[0].Cells[i].Value = []byte("glue")
		}
	}
	if _, err := FromSchemaRows("t", rows); err == nil {
		t.Error("an invalid joiner in the table is accepted")
	}
}

// A mapping with a protobuf comes back with its descriptor set; an attribute with a name
// longer than a row key has no row.
func TestSchemaRows_Descriptors(t *testing.T) {
	t.Parallel()
	set := userDescriptors(t)
	long := strings.Repeat("n", lens.MaxRowKeyBytes)
	text := strings.Replace(protoMapping, "schema: {", "schema: {"+long+": S, ", 1)
	m, err := Load("m.yaml", []byte(text), fstest.MapFS{"user.binpb": {Data: set}})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := m.SchemaRows(expTime)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if len(r.Key) > lens.MaxRowKeyBytes {
			t.Errorf("a row key of %d bytes", len(r.Key))
		}
	}
	again, err := FromSchemaRows(m.TargetTable(), rows)
	if err != nil {
		t.Fatal(err)
	}
	was, _ := m.Lock()
	if is, err := again.Lock(); err != nil || len(was.Changes(is)) > 0 {
		t.Errorf("the mapping in the table has %v, %v", was.Changes(is), err)
	}
	other, err := Load("m.yaml", []byte(text), fstest.MapFS{"user.binpb": {Data: append(set, 0x12, 0x00)}}) // one more file, empty
	if err != nil {
		t.Fatal(err)
	}
	checkStored(t, m, rows, true)
	checkStored(t, other, rows, false)
	if is, _ := other.Lock(); len(was.Changes(is)) == 0 {
		t.Error("a mapping with other descriptors has the same lock")
	}
}
