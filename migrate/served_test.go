package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// The mapping of a table with two indexes, one of which lacks items.
const servedMapping = `apiVersion: migration/v1
source:
  table: Tee
  key: {hash: {name: id, type: S}}
  schema: {g: S, n: N, m: {M: S}}
  gsis:
  - {name: G, hash: {name: g, type: S}, projection: ALL}
  - {name: K, hash: {name: n, type: N}, projection: KEYS_ONLY}
target: {table: t, joiner: oc, families: {a: {gc: {versions: 1}}, m.m: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`

// servedExport is an export to S3 of n items of that table.
func servedExport(t *testing.T, n int) *source.Source {
	t.Helper()
	var lines []string
	for i := range n {
		line := fmt.Sprintf(`{"Item":{"id":{"S":"i%04d"},"g":{"S":"g%d"},"m":{"M":{"x":{"S":"y"}}}`, i, i%7)
		if i%2 == 0 {
			line += fmt.Sprintf(`,"n":{"N":"%d"}`, i%5)
		}
		lines = append(lines, line+"}}")
	}
	src, err := source.OpenFS(exporttest.New(lines), "bucket", source.Options{Table: "T"})
	if err != nil {
		t.Fatal(err)
	}
	return src
}

func mappingOf(t *testing.T, text string) *mapping.Mapping {
	t.Helper()
	m, err := mapping.Load("mapping.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// progressOf collects the progress of an endpoint's work.
type progressOf struct {
	mu  sync.Mutex
	all []facade.Progress
}

func (p *progressOf) report(at facade.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, at)
}

// items returns the number of items, by completed phases.
func (p *progressOf) items() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	ended := map[string]int64{}
	for _, at := range p.all {
		if at.Done {
			ended[at.Phase] += at.Items
		}
	}
	return ended
}

// An endpoint over the rows of a loaded export keeps them and the index entries unchanged:
// verification passes before and after, and the endpoint reports its progress. Missing entries
// get the time of the load.
func TestNotedMapping_ServeOverLoadedExport(t *testing.T) {
	t.Parallel()
	const n = 1203
	conn := newBigtableServer(t)
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, servedMapping)}}
	if _, err := Load(t.Context(), conn, servedExport(t, n), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	verify := func(when string) {
		t.Helper()
		r, err := Verify(t.Context(), conn, OfSource(servedExport(t, n)), VerifyOptions{Common: o, Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		if !r.Equal() {
			t.Errorf("%s: %d differences, such as %v", when, r.Differences, r.Failures[0])
		}
	}
	verify("after the load")
	serve := func(m *mapping.Mapping) map[string]int64 {
		t.Helper()
		progress := &progressOf{}
		s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{m}, Progress: progress.report})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return progress.items()
	}
	before := tableText(t, conn, "t__G") + tableText(t, conn, "t__K")
	if progress := serve(o.Mappings[0]); progress["filling index G"] != n || progress["filling index K"] != n {
		t.Errorf("progress of %v, want %d items of each index", progress, n)
	}
	verify("after an endpoint")
	if after := tableText(t, conn, "t__G") + tableText(t, conn, "t__K"); after != before {
		t.Error("the endpoint wrote to the indexes")
	}
	if progress := serve(o.Mappings[0]); len(progress) > 0 {
		t.Errorf("a second endpoint goes over all items again: %v", progress)
	}
	verify("after a second endpoint")

	// A loader without indexes: their entries also get the time of the load.
	other := newBigtableServer(t)
	if _, err := Load(t.Context(), other, servedExport(t, n), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	b := table.NewBigtable(other, table.Options{})
	if err := b.EmptyTable(t.Context(), "t__G"); err != nil {
		t.Fatal(err)
	}
	change(t, other, "t__K", firstKey(t, other, "t__K"), &btpb.Mutation{Mutation: &btpb.Mutation_DeleteFromRow_{DeleteFromRow: &btpb.Mutation_DeleteFromRow{}}})
	conn = other
	serve(o.Mappings[0])
	verify("after an endpoint that filled indexes")
}

// firstKey returns the first row key of a table.
func firstKey(t *testing.T, conn grpc.ClientConnInterface, id string) string {
	t.Helper()
	for row, err := range table.NewBigtable(conn, table.Options{}).TableRows(t.Context(), id) {
		if err != nil {
			t.Fatal(err)
		}
		return string(row.Key)
	}
	t.Fatalf("table %s has no rows", id)
	return ""
}

// An endpoint rejects a mapping by which existing items would have another layout, whether a
// load or another endpoint wrote them. An equivalent or extended mapping is accepted.
func TestNotedMapping_ServeOverAnotherMapping(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		from, to string
		refused  string // "" if it is accepted
	}{
		"the same":         {"", "", ""},
		"a comment":        {"apiVersion", "# mine\napiVersion", ""},
		"a lag":            {"projection: ALL}", "projection: ALL, lag: 1s}", ""},
		"a type more":      {"{g: S,", "{h: S, g: S,", ""},
		"a column":         {"a:{attr}", "a:x{attr}", `it has a cell in column a:g, which the mapping does not read there`},
		"a row":            {`["{id}"]`, `["x", "{id}"]`, `it is in row i0000, but the mapping expects it in row "x\x00\x01i0000"`},
		"a codec":          {`cell: "a:{attr}"}]`, `cell: "a:{attr}", codec: ddbjson}]`, ""}, // see below
		"a column renamed": {`put: [`, `put: [{attr: g, cell: "a:G"}, `, `item {"id":{"S":"i0000"}}: it has `},
		"an index row":     {"projection: ALL}", "projection: ALL, joiner: escaped('#')}", `in index G, it is in row`},
		"a projection":     {"projection: ALL}", "projection: KEYS_ONLY}", `in index G, it has a cell in column`},
	} {
		if name == "a codec" {
			c.refused = "its cell in column a:g does not hold the value that the mapping expects there"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(servedMapping, c.from, c.to, 1)
			if c.from != "" && text == servedMapping {
				t.Fatalf("%q is not in the mapping", c.from)
			}
			for _, by := range []string{"load", "endpoint"} {
				conn := newBigtableServer(t)
				first := mappingOf(t, servedMapping)
				serve := func(m *mapping.Mapping) (*facade.Server, error) {
					return facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{m}})
				}
				if by == "load" {
					if _, err := Load(t.Context(), conn, servedExport(t, 3), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{first}}}); err != nil {
						t.Fatal(err)
					}
				} else {
					s, err := serve(first)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := s.Call(t.Context(), "PutItem", []byte(`{"TableName":"Tee","Item":{"id":{"S":"i0000"},"g":{"S":"g"},"m":{"M":{"x":{"S":"y"}}}}}`)); err != nil {
						t.Fatal(err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
				}
				before := tableText(t, conn, "t")
				s, err := serve(mappingOf(t, text))
				if c.refused == "" {
					if err != nil {
						t.Errorf("%s: refused: %v", by, err)
						continue
					}
					answer, err := s.Call(t.Context(), "GetItem", []byte(`{"TableName":"Tee","Key":{"id":{"S":"i0000"}}}`))
					if err != nil || !bytes.Contains(answer, []byte(`"y"`)) {
						t.Errorf("%s: the item reads as %s, error %v", by, answer, err)
					}
					if err := s.Close(); err != nil {
						t.Fatal(err)
					}
					continue
				}
				if !errors.Is(err, facade.ErrOtherMapping) || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("%s: error %v, want a refusal with %q", by, err, c.refused)
				}
				if tableText(t, conn, "t") != before {
					t.Errorf("%s: a refused mapping wrote", by)
				}
				// The mapping itself is still accepted.
				if s, err = serve(first); err != nil {
					t.Errorf("%s: the mapping of the rows is refused then: %v", by, err)
					continue
				}
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// A mapping without an index that an endpoint maintains is rejected: its rows would be taken
// for those of another layout.
func TestNotedMapping_IndexLess(t *testing.T) {
	t.Parallel()
	const index = "  - {name: K, hash: {name: n, type: N}, projection: KEYS_ONLY}\n"
	conn := newBigtableServer(t)
	serve := func(text string) error {
		t.Helper()
		s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{mappingOf(t, text)}})
		if err != nil {
			return err
		}
		return s.Close()
	}
	if err := serve(servedMapping); err != nil {
		t.Fatal(err)
	}
	const want = "index K of table Tee is in Bigtable table t__K according to the mapping that the table was created with, but the current mapping does not have the index: restore that in the mapping"
	if err := serve(strings.Replace(servedMapping, index, "", 1)); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if err := serve(servedMapping); err != nil {
		t.Error(err)
	}
}

// Loading again by another mapping makes that the served one.
func TestNotedMapping_LoadedAnew(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	second := mappingOf(t, strings.Replace(servedMapping, "a:{attr}", "a:x{attr}", 1))
	for _, m := range []*mapping.Mapping{mappingOf(t, servedMapping), second} {
		if _, err := Load(t.Context(), conn, servedExport(t, 3), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}, Remap: true}); err != nil {
			t.Fatal(err)
		}
		s, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{m}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// An unreadable row fails a scan over HTTP with an answer that names the row and the attribute;
// reads of other items succeed.
func TestUnreadableRows_UnreadableRowOverHTTP(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	m := mappingOf(t, servedMapping)
	if _, err := Load(t.Context(), conn, servedExport(t, 3), LoadOptions{Common: Common{Mappings: []*mapping.Mapping{m}}}); err != nil {
		t.Fatal(err)
	}
	endpoint, err := facade.New(t.Context(), facade.Options{Conn: conn, Mappings: []*mapping.Mapping{m}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = endpoint.Close() })
	change(t, conn, "t", "i0001", setCell("a", "n", 4102444800000000, "no number"))
	server := httptest.NewServer(endpoint)
	t.Cleanup(server.Close)
	for _, c := range []struct {
		operation, body string
		status          int
		want            []string
	}{
		{"Scan", `{"TableName": "Tee"}`, http.StatusBadRequest, []string{`i0001`, `attribute \"n\"`}},
		{"GetItem", `{"TableName": "Tee", "Key": {"id": {"S": "i0001"}}}`, http.StatusBadRequest, []string{`i0001`, `attribute \"n\"`}},
		{"GetItem", `{"TableName": "Tee", "Key": {"id": {"S": "i0002"}}}`, http.StatusOK, []string{`"i0002"`}},
	} {
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/x-amz-json-1.0")
		q.Header.Set("X-Amz-Target", "DynamoDB_20120810."+c.operation)
		q.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=x/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=x")
		q.Header.Set("X-Amz-Date", "20260101T000000Z")
		answer, err := server.Client().Do(q)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if answer.StatusCode != c.status {
			t.Errorf("%s %s: status %d, want %d: %s", c.operation, c.body, answer.StatusCode, c.status, text)
		}
		for _, want := range c.want {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s %s: %s, want %s in it", c.operation, c.body, text, want)
			}
		}
	}
}

// Writes that bypass an endpoint do not update indexes: verification names the written row, and
// an index entry only if the index's own table was written.
func TestVerify_NativeWritesAndIndexes(t *testing.T) {
	t.Parallel()
	conn := newBigtableServer(t)
	o := Common{Mappings: []*mapping.Mapping{mappingOf(t, servedMapping)}}
	if _, err := Load(t.Context(), conn, servedExport(t, 3), LoadOptions{Common: o}); err != nil {
		t.Fatal(err)
	}
	tables := func() []string {
		r, err := Verify(t.Context(), conn, OfSource(servedExport(t, 3)), VerifyOptions{Common: o, Stored: true})
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range r.Failures {
			all = append(all, f.Table)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	change(t, conn, "t", "i0001", setCell("a", "g", 4102444800000000, "other"))
	if got, want := tables(), []string{"t"}; !slices.Equal(got, want) {
		t.Errorf("after a write to an item: differences in %q, want %q", got, want)
	}
	entry, err := (*layout.Mapping)(o.Mappings[0]).Index("G").Locate(attr.Item{"id": attr.String("i0002"), "g": attr.String("g2")})
	if err != nil {
		t.Fatal(err)
	}
	change(t, conn, "t__G", string(entry.Row), deleteRow())
	if got, want := tables(), []string{"t", "t__G"}; !slices.Equal(got, want) {
		t.Errorf("after a write to the index: differences in %q, want %q", got, want)
	}
}
