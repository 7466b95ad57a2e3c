package layout

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

const segmentsMapping = `apiVersion: migration/v1
source:
  table: Readings
  key: {hash: {name: PK, type: S}, range: {name: SK, type: N}}
  schema: {Value: N}
target: {table: readings, joiner: escaped('#'), families: {a: {gc: {versions: 1}}}}
rules:
- name: reading
  when: {PK: "Device-{id:s}"}
  row: ["{id}", "mem", "{SK:revms(13)}"]
  put: [{attr: Value, cell: "a:v"}]
`

func TestSegments(t *testing.T) {
	t.Parallel()
	m, err := Load("mapping.yaml", []byte(segmentsMapping))
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{
		{Template: "{id}", Attrs: []string{"PK"}, Encoders: []string{"s"}},
		{Template: "mem"},
		{Template: "{SK:revms(13)}", Attrs: []string{"SK"}, Encoders: []string{"revms(13)"}, Time: true, Reversed: true},
	}
	if diff := cmp.Diff(want, m.Segments("reading")); diff != "" {
		t.Errorf("segments (-want +got):\n%s", diff)
	}
	if m.Segments("none") != nil {
		t.Error("a rule that is not there has segments")
	}
	segments, ok := m.SplitRowKey("reading", []byte("a$23b#mem#8305627524999"))
	if !ok || string(segments[0]) != "a#b" || string(segments[2]) != "8305627524999" {
		t.Errorf("SplitRowKey gives %q, %t", segments, ok)
	}
	if _, ok := m.SplitRowKey("reading", []byte("ab")); ok {
		t.Error("a key of one segment was taken apart into three")
	}
	for path, wantLine := range map[string]int{"rules[0].row[1]": 10, "rules[0].row[7]": 10, "target.families.a": 6, "nowhere": 0} {
		if _, line, _ := m.Spec().Position(path); line != wantLine {
			t.Errorf("%s is at line %d, want %d", path, line, wantLine)
		}
	}
}

func TestCutRowKey(t *testing.T) {
	t.Parallel()
	m, err := Load("mapping.yaml", []byte(segmentsMapping))
	if err != nil {
		t.Fatal(err)
	}
	row := Row{Key: []byte("a$23b#mem#8305627524999")}
	at, err := attr.Number("1694372475000")
	if err != nil {
		t.Fatal(err)
	}
	want := []KeyPart{
		{Segment: 0, Name: "id", Encoder: "s", Bytes: []byte("a#b"), Value: attr.String("a#b")},
		{Segment: 1, Bytes: []byte("mem")},
		{Segment: 2, Name: "SK", Encoder: "revms(13)", Bytes: []byte("8305627524999"), Value: at, Time: true},
	}
	for _, rule := range []string{"", "reading"} {
		if diff := cmp.Diff(want, m.CutRowKey(rule, row)); diff != "" {
			t.Errorf("rule %q (-want +got):\n%s", rule, diff)
		}
	}
	for _, key := range []string{"", "ab", "a#other#8305627524999", "a#mem#83056275249990"} {
		if got := m.CutRowKey("", Row{Key: []byte(key)}); got != nil {
			t.Errorf("%q, which is not a row of the rule, is split into %+v", key, got)
		}
	}
	if got := m.CutRowKey("none", row); got != nil {
		t.Errorf("a rule that is not there cuts a key into %+v", got)
	}
	plain, err := Default("Readings", "readings", m.Key())
	if err != nil {
		t.Fatal(err)
	}
	if got := plain.CutRowKey("", row); got != nil {
		t.Errorf("a layout without rules cuts a key into %+v", got)
	}
}
