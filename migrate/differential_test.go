package migrate

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/report"
)

// Items that the shipped mappings accept come back: from the mapping alone, from rows of the
// DynamoDB endpoint and from rows of the loader.
func TestDifferential_Subjects(t *testing.T) {
	t.Parallel()
	n := 15 // items, and requests
	if long.Enabled() {
		n = 200
	}
	for _, s := range subjectsAnd(t, long.Enabled()) {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(s.Files), VerifyOptions{Differential: n, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			c := checkNamed(t, r, "differential")
			if c.State != report.CheckOK || strings.Contains(c.Detail, fmt.Sprintf("%d refused", n)) {
				t.Errorf("nothing was checked: %+v", c)
			}
			want := report.Check{Name: "differential requests", Table: c.Table, State: report.CheckOK, Detail: fmt.Sprintf("%d requests of seed 1", n)}
			if s.Name == "s4-versions" {
				want.State, want.Detail = report.CheckSkipped, "the mapping keeps copies of items, which DynamoDB does not"
			}
			if got := checkNamed(t, r, want.Name); got != want {
				t.Errorf("check %+v, want %+v", got, want)
			}
		})
	}
}

func checkNamed(t *testing.T, r *report.Report, name string) report.Check {
	t.Helper()
	i := slices.IndexFunc(r.Checks, func(c report.Check) bool { return c.Name == name })
	if i < 0 {
		t.Fatalf("no check %s in %+v", name, r.Checks)
	}
	return r.Checks[i]
}

// dropsZeroBytes is an inverse that loses the zero bytes of texts.
func dropsZeroBytes(m *layout.Mapping, row layout.Row) ([]attr.Item, error) {
	items, err := m.Items(row)
	for _, item := range items {
		for name, v := range item {
			if v.Type == attr.S && name != m.Key().Hash.Name && name != m.Key().Range.Name {
				item[name] = attr.String(strings.ReplaceAll(v.Str, "\x00", ""))
			}
		}
	}
	return items, err
}

// A broken inverse is found. Its counterexample is one item with one short attribute, and the
// saved fixture fails until the inverse is repaired.
func TestDifferential_BrokenLens(t *testing.T) {
	t.Parallel()
	subjects := shippedSubjects(t)
	dir := t.TempDir()
	broken := VerifyOptions{Common: Common{knobs: table.Knobs{Inverse: dropsZeroBytes}}, Differential: 200, Seed: 7, Regress: dir}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(subjects[0].Files), broken)
	if err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, "differential"); c.State != report.CheckFailed || c.Differences != 1 || !strings.Contains(c.Detail, "shrunk to 1 item") {
		t.Errorf("check %+v", c)
	}
	if len(r.Failures) != 1 || r.Failures[0].Kind != report.ValueDiffers || r.Failures[0].RowKey == "" || r.Failures[0].ItemKey == "" || r.Failures[0].Want != `{"S":"\u0000"}` {
		t.Fatalf("failures %v", r.Failures)
	}
	saved := filepath.Join(dir, "7-200")
	text, err := os.ReadFile(filepath.Join(saved, "items.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", text)
	if len(text) > 120 {
		t.Errorf("not shrunk: %s", text)
	}
	for _, again := range []struct {
		name  string
		o     Common
		equal bool
	}{
		{"broken", Common{knobs: table.Knobs{Inverse: dropsZeroBytes}}, false},
		{"repaired", Common{}, true},
	} {
		r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(os.DirFS(saved)), VerifyOptions{Common: again.o})
		if err != nil {
			t.Fatal(err)
		}
		if r.Equal() != again.equal {
			t.Errorf("%s: failures %v", again.name, r.Failures)
		}
	}
}

// Mappings that accept losses pass the same checks, with items and requests: the items must
// come back with exactly those losses.
func TestDifferential_AcceptedLosses(t *testing.T) {
	t.Parallel()
	n := 40 // items, and requests
	if long.Enabled() {
		n = 300
	}
	for name, text := range map[string]string{
		"lossy":         lossyMapping,
		"with an index": strings.Replace(lossyMapping, "schema: {s: S,", "gsis: [{name: ByPlot, hash: {name: s, type: S}, range: {name: f, type: N}, projection: ALL, as: table}], schema: {s: S,", 1),
		"nulls":         strings.Replace(lossyMapping, `{what: precision, why: "a plot"}]`, `{what: precision, why: "a plot"}, {what: "null", why: "nothing"}]`, 1),
		"absent": `apiVersion: migration/v1
source: {table: Documents, key: {hash: {name: id, type: S}, range: {name: version, type: S}}, schema: {title: S, pages: N}}
target: {table: documents, families: {d: {gc: {versions: 100}}}}
fidelity: idiomatic
accept_loss: [{what: absent, why: "readers know"}, {what: retention, why: "a hundred are enough"}]
timestamps: {default: "2024-01-01T00:00:00Z"}
rules: [{name: version, when: {version: "v{n:ver}"}, row: ["{id}"], put: [{attr: title, cell: "d:title", ts: "{n}"}, {attr: pages, cell: "d:pages", ts: "{n}"}, {attr: null, cell: "d:there", ts: "{n}"}]}]
`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			items := lossyItems
			if name == "absent" {
				items = `{"Item":{"id":{"S":"1"},"version":{"S":"v1"}}}`
			}
			files := fstest.MapFS{"mapping.yaml": {Data: []byte(text)}, "source/items.jsonl": {Data: []byte(items)}}
			r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Differential: n, Seed: 3})
			if err != nil {
				t.Fatal(err)
			}
			wantEqual(t, r)
			for _, name := range []string{"differential", "differential requests"} {
				if c := checkNamed(t, r, name); c.State != report.CheckOK || strings.Contains(c.Detail, fmt.Sprintf("%d refused", n)) {
					t.Errorf("%+v", c)
				}
			}
		})
	}
}

// Accepted losses do not hide a fault.
func TestDifferential_LossyAndBroken(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"mapping.yaml": {Data: []byte(lossyMapping)}, "source/items.jsonl": {Data: []byte(lossyItems)}}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Common: Common{knobs: table.Knobs{Inverse: dropsZeroBytes}}, Differential: 300, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, "differential"); c.State != report.CheckFailed || !strings.Contains(c.Detail, "shrunk to 1 item") {
		t.Errorf("%+v", c)
	}
}

// The layout of another tool has losses by design: verification counts them, and nothing else.
func TestVerify_Compat(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"mapping.yaml": {Data: []byte(`apiVersion: migration/v1
compat: google-utility
source: {table: Users, key: {hash: {name: id, type: S}}}
target: {table: users, families: {cf1: {}}}
`)}, "source/items.jsonl": {Data: []byte(lossyItems)}}
	r, err := Verify(t.Context(), newBigtableServer(t), OfFixture(files), VerifyOptions{Differential: 200, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if c := checkNamed(t, r, "round trip"); c.State != report.CheckOK {
		t.Errorf("%+v", c)
	}
	if c := checkNamed(t, r, "differential"); c.State != report.CheckOK || strings.Contains(c.Detail, "200 refused") {
		t.Errorf("%+v", c)
	}
	for _, name := range []string{"scan through the DynamoDB endpoint", "differential requests"} {
		if c := checkNamed(t, r, name); c.State != report.CheckSkipped || !strings.Contains(c.Detail, "does not serve it") {
			t.Errorf("%+v", c)
		}
	}
	if len(r.Tables[0].Accepted) == 0 {
		t.Error("no loss is counted")
	}
}

// forgetful is a Bigtable that does not delete columns.
type forgetful struct{ grpc.ClientConnInterface }

func (c forgetful) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	kept := func(all []*btpb.Mutation) []*btpb.Mutation {
		return slices.DeleteFunc(slices.Clone(all), func(m *btpb.Mutation) bool { return m.GetDeleteFromColumn() != nil })
	}
	switch q := args.(type) {
	case *btpb.MutateRowRequest:
		q = proto.CloneOf(q)
		q.Mutations = kept(q.GetMutations())
		args = q
	case *btpb.CheckAndMutateRowRequest:
		q = proto.CloneOf(q)
		q.TrueMutations, q.FalseMutations = kept(q.GetTrueMutations()), kept(q.GetFalseMutations())
		args = q
	}
	return c.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
}

// An endpoint whose writes leave something behind is found by the requests alone. The failing
// case shrinks to one item and one request, is saved, fails again, and passes once the endpoint
// is repaired.
func TestDifferential_BrokenEndpoint(t *testing.T) {
	t.Parallel()
	subjects := shippedSubjects(t)
	dir := t.TempDir()
	r, err := Verify(t.Context(), forgetful{newBigtableServer(t)}, OfFixture(subjects[0].Files), VerifyOptions{Differential: 200, Seed: 7, Regress: dir})
	if err != nil {
		t.Fatal(err)
	}
	if c := checkNamed(t, r, "differential"); c.State != report.CheckOK {
		t.Errorf("items alone: %+v", c)
	}
	if c := checkNamed(t, r, "differential requests"); c.State != report.CheckFailed || !strings.Contains(c.Detail, "shrunk to 1 item and 1 request") {
		t.Errorf("requests: %+v", c)
	}
	saved := filepath.Join(dir, "7-requests")
	for _, again := range []struct {
		name  string
		conn  grpc.ClientConnInterface
		equal bool
	}{
		{"broken", forgetful{newBigtableServer(t)}, false},
		{"repaired", newBigtableServer(t), true},
	} {
		r, err := Verify(t.Context(), again.conn, OfFixture(os.DirFS(saved)), VerifyOptions{})
		if err != nil {
			t.Fatal(err)
		}
		c := checkNamed(t, r, "differential requests")
		if r.Equal() != again.equal || (c.State == report.CheckOK) != again.equal {
			t.Errorf("%s: %+v, failures %v", again.name, c, r.Failures)
		}
	}
}

// Drawn items have the time of the source, as its own items do.
func TestDifferential_ExportTime(t *testing.T) {
	t.Parallel()
	src := open(t, `{"id":{"S":"a"},"n":{"N":"1"}}`+"\n"+`{"id":{"S":"b"},"s":{"SS":["x","y"]}}`)
	src.Tables[0].ExportTime = time.Date(2023, 11, 14, 22, 13, 20, 0, time.UTC)
	r, err := Verify(t.Context(), newBigtableServer(t), OfSource(src), VerifyOptions{Differential: 20, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	wantEqual(t, r)
	if c := checkNamed(t, r, "differential"); c.State != report.CheckOK {
		t.Errorf("%+v", c)
	}
}
