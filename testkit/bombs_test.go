package testkit_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"cloud.google.com/go/bigtable"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/klauspost/compress/zstd"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/migrate"
	"github.com/tabletop-emu/tabletop/migrate/source"
	"github.com/tabletop-emu/tabletop/testkit"
)

const (
	mib      = 1 << 20
	rowCells = 20
)

// within fails if call allocates more than most bytes in total. With the race detector, which
// allocates too, it only calls. Tests that use it run alone.
func within(t *testing.T, most uint64, call func()) {
	t.Helper()
	got := memory.Allocated(call)
	t.Logf("%.1f MiB of %.1f MiB are allocated", float64(got)/mib, float64(most)/mib)
	if got > most && !race.Enabled {
		t.Errorf("%d bytes are allocated, want %d at most", got, most)
	}
}

// newBombTable creates an environment with a Bigtable table, with one row of some cells with values
// of 100 bytes.
func newBombTable(t *testing.T) (btpb.BigtableClient, string) {
	t.Helper()
	env := testkit.Start(t)
	if err := env.BigtableAdmin(t).CreateTableFromConf(t.Context(), &bigtable.TableConf{
		TableID: "t", Families: map[string]bigtable.GCPolicy{"f": bigtable.NoGcPolicy()},
	}); err != nil {
		t.Fatal(err)
	}
	c, table := btpb.NewBigtableClient(env.Conn()), "projects/"+env.Project()+"/instances/"+env.Instance()+"/tables/t"
	if err := bombMutate(t, c, table, bombCells(rowCells, strings.Repeat("a", 100))); err != nil {
		t.Fatal(err)
	}
	return c, table
}

func bombCells(n int, value string) []*btpb.Mutation {
	out := make([]*btpb.Mutation, n)
	for i := range out {
		out[i] = &btpb.Mutation{Mutation: &btpb.Mutation_SetCell_{SetCell: &btpb.Mutation_SetCell{
			FamilyName: "f", ColumnQualifier: fmt.Appendf(nil, "q%06d", i), TimestampMicros: 1000, Value: []byte(value),
		}}}
	}
	return out
}

func bombMutate(t *testing.T, c btpb.BigtableClient, table string, muts []*btpb.Mutation) error {
	t.Helper()
	_, err := c.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: table, RowKey: []byte("r"), Mutations: muts})
	return err
}

func wantBombCode(t *testing.T, err error, code codes.Code) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("got %v (%.200v), want %v", got, err, code)
	}
}

// bombRead reads the row with a filter and returns the total size of the values.
func bombRead(t *testing.T, c btpb.BigtableClient, table string, filter *btpb.RowFilter, each func()) (n int, err error) {
	t.Helper()
	stream, err := c.ReadRows(t.Context(), &btpb.ReadRowsRequest{TableName: table, Filter: filter})
	if err != nil {
		return 0, err
	}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		for _, chunk := range resp.GetChunks() {
			n += len(chunk.GetValue())
		}
		each()
	}
}

func nothing() {}

func chainFilter(filters ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Chain_{Chain: &btpb.RowFilter_Chain{Filters: filters}}}
}

func interleaveFilter(filters ...*btpb.RowFilter) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_Interleave_{Interleave: &btpb.RowFilter_Interleave{Filters: filters}}}
}

func passFilter() *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_PassAllFilter{PassAllFilter: true}}
}

func valueFilter(pattern string) *btpb.RowFilter {
	return &btpb.RowFilter{Filter: &btpb.RowFilter_ValueRegexFilter{ValueRegexFilter: []byte(pattern)}}
}

// nestFilter nests a filter into the given number of chains of two.
func nestFilter(f *btpb.RowFilter, depth int) *btpb.RowFilter {
	for range depth {
		f = chainFilter(f, passFilter())
	}
	return f
}

func TestBombs_Filters(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, testBombsFilters)
}

func testBombsFilters(t *testing.T) {
	c, table := newBombTable(t)
	var tenfold []*btpb.RowFilter
	for range 10 {
		tenfold = append(tenfold, passFilter())
	}
	copies := passFilter() // a million copies of each cell, without the limit
	for range 6 {
		copies = chainFilter(copies, interleaveFilter(tenfold...))
	}
	var wide []*btpb.RowFilter
	for range 4000 {
		wide = append(wide, passFilter())
	}
	for _, f := range []struct {
		name   string
		filter *btpb.RowFilter
		code   codes.Code
	}{
		{"as deep as may be", nestFilter(passFilter(), 20), codes.OK},
		{"too deep", nestFilter(passFilter(), 21), codes.InvalidArgument},
		{"deep as a well", nestFilter(passFilter(), 3000), codes.InvalidArgument},
		{"as long as may be", valueFilter(strings.Repeat("b", 20_480-6)), codes.OK},
		{"too long", valueFilter(strings.Repeat("b", 20_480)), codes.InvalidArgument},
		{"many", chainFilter(wide...), codes.OK},
		{"copies of copies", copies, codes.InvalidArgument},
		{"repeated repetition", valueFilter("((a{1000}){1000}){1000}"), codes.InvalidArgument},
		{"many repetitions", valueFilter(strings.Repeat("a{1000}", 2900)), codes.InvalidArgument},
		{"nested stars", valueFilter("((((a*)*)*)*)*b"), codes.OK},
		{"alternatives", valueFilter("(" + strings.Repeat("a|aa|", 3000) + ")*b"), codes.OK},
		{"classes", valueFilter(strings.Repeat(`\pL`, 3000)), codes.OK},
	} {
		t.Run(f.name, func(t *testing.T) {
			within(t, 128*mib, func() {
				_, err := bombRead(t, c, table, f.filter, nothing)
				wantBombCode(t, err, f.code)
			})
		})
	}
}

func TestBombs_Mutations(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	memory.Alone(t, testBombsMutations)
}

func testBombsMutations(t *testing.T) {
	c, table := newBombTable(t)
	for n, code := range map[int]codes.Code{100_000: codes.OK, 100_001: codes.InvalidArgument} {
		muts := bombCells(n, "v")
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			within(t, 256*mib, func() { wantBombCode(t, bombMutate(t, c, table, muts), code) })
		})
	}
}

// TestBombs_Row reads a large row: the heap holds only a few messages of it at a time. In the long
// tier the row has almost 256 MiB, the most that a read returns, and then more.
func TestBombs_Row(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	row := rowTest{size: 32 * mib, value: mib, most: 20 * mib, codes: []codes.Code{codes.OK}}
	if long.Enabled() {
		row = rowTest{size: 256 * mib, value: 8 * mib, most: 48 * mib, codes: []codes.Code{codes.OK, codes.FailedPrecondition}}
	}
	memory.Alone(t, row.run)
}

type rowTest struct {
	size, value int          // of the row and of its cells, in bytes
	most        uint64       // limit of the heap, in bytes
	codes       []codes.Code // codes of reads; between two of them the row grows
}

func (r rowTest) run(t *testing.T) {
	t.Helper()
	c, table := newBombTable(t)
	written := 0
	write := func(column, size int) {
		t.Helper()
		muts := bombCells(1, strings.Repeat("v", size))
		muts[0].GetSetCell().ColumnQualifier = fmt.Appendf(nil, "r%06d", column)
		if err := bombMutate(t, c, table, muts); err != nil {
			t.Fatal(err)
		}
		written += size
	}
	for i := range r.size/r.value - 1 {
		write(i, r.value)
	}
	write(r.size/r.value, r.value-64<<10)
	total := written + rowCells*100
	// Without C the cache of the store is on the heap: the first read fills it.
	if _, err := bombRead(t, c, table, nil, nothing); err != nil {
		t.Fatal(err)
	}
	for _, code := range r.codes {
		before, most := memory.Live(), uint64(0)
		n, err := bombRead(t, c, table, nil, func() { most = max(most, memory.Live()) })
		wantBombCode(t, err, code)
		if code == codes.OK && n != total {
			t.Errorf("%d bytes, want %d", n, total)
		}
		t.Logf("%v after %.1f MiB: at most %.1f MiB more are held", code, float64(n)/mib, (float64(most)-float64(before))/mib)
		if most > before+r.most {
			t.Errorf("the heap holds %d bytes while the row is read and %d before, want at most %d more", most, before, r.most)
		}
		write(r.size/r.value+1, 128<<10)
	}
}

// spaces reads as n spaces.
func spaces(n int64) io.Reader { return io.LimitReader(space{}, n) }

type space struct{}

func (space) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// zippedSpaces compresses n MiB of spaces into as many members, which is quicker than one member.
func zippedSpaces(t *testing.T, n int) []byte {
	t.Helper()
	return bytes.Repeat(zipped(t, spaces(mib)), n)
}

func zipped(t *testing.T, parts ...io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, io.MultiReader(parts...))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zstandard(t *testing.T, parts ...io.Reader) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := zstd.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, io.MultiReader(parts...))
	if err := errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestBombs_Requests(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, testBombsRequests)
}

func testBombsRequests(t *testing.T) {
	transport := testkit.Start(t).RoundTripper()
	deep := func(open, end string) string {
		return `{"TableName":"bombs","Item":{"id":` + strings.Repeat(open, 200_000) + `{"S":"x"}` + strings.Repeat(end, 200_000) + `}}`
	}
	for _, r := range []struct {
		name, encoding string
		body           []byte
		status         int
	}{
		{"nested maps", "", []byte(deep(`{"M":{"a":`, "}}")), http.StatusBadRequest},
		{"nested lists", "", []byte(deep(`{"L":[`, "]}")), http.StatusBadRequest},
		{"nested arrays", "", []byte(strings.Repeat("[", 10*mib)), http.StatusBadRequest},
		{"nested condition", "", []byte(`{"TableName":"bombs","Key":{"id":{"S":"x"}},"ConditionExpression":"` +
			strings.Repeat("(", 100_000) + "a = a" + strings.Repeat(")", 100_000) + `"}`), http.StatusBadRequest},
		{"128 MiB of spaces", "gzip", append(zipped(t, strings.NewReader("{}")), zippedSpaces(t, 128)...), http.StatusRequestEntityTooLarge},
		{"gzip in gzip", "gzip", zipped(t, bytes.NewReader(zipped(t, spaces(mib)))), http.StatusBadRequest},
	} {
		t.Run(r.name, func(t *testing.T) {
			within(t, 128*mib, func() {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://tabletop.invalid/", bytes.NewReader(r.body))
				if err != nil {
					t.Fatal(err)
				}
				operation := "PutItem"
				if strings.Contains(string(r.body[:min(len(r.body), 100)]), "ConditionExpression") {
					operation = "DeleteItem"
				}
				req.Header.Set("X-Amz-Target", "DynamoDB_20120810."+operation)
				req.Header.Set("Content-Type", "application/x-amz-json-1.0")
				req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=a")
				req.Header.Set("X-Amz-Date", "20260101T000000Z")
				if r.encoding != "" {
					req.Header.Set("Content-Encoding", r.encoding)
				}
				resp, err := transport.RoundTrip(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil || resp.StatusCode != r.status {
					t.Errorf("%d, %.300s (%v), want %d", resp.StatusCode, text, err, r.status)
				}
				t.Logf("%.200s", text)
			})
		})
	}
}

func TestBombs_Exports(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	memory.Alone(t, testBombsExports)
}

func testBombsExports(t *testing.T) {
	line := `{"Item":{"id":{"S":"a"}}}` + "\n"
	for name, data := range map[string][]byte{
		"endless line, gzip":   append(zipped(t, strings.NewReader(line+`{"Item":{"id":{"S":"`)), zippedSpaces(t, 128)...),
		"endless line, zstd":   zstandard(t, strings.NewReader(line+`{"Item":{"id":{"S":"`), spaces(128*mib)),
		"nested lists":         []byte(line + `{"Item":{"id":{"S":"a"},"l":` + strings.Repeat(`{"L":[`, 60_000) + strings.Repeat("]}", 60_000) + "}}\n"),
		"an array of arrays":   []byte(strings.Repeat("[", mib)),
		"an endless CSV field": append(zipped(t, strings.NewReader("id\n\"")), zippedSpaces(t, 128)...),
	} {
		t.Run(name, func(t *testing.T) {
			within(t, 128*mib, func() {
				file := "in.json"
				if strings.Contains(name, "CSV") {
					file = "in.csv"
				}
				src, err := source.OpenFS(fstest.MapFS{file: {Data: data}}, file, source.Options{})
				if err == nil {
					for _, err = range src.Tables[0].Entries() {
						if err != nil {
							break
						}
					}
				}
				var input *source.Error
				if !errors.As(err, &input) {
					t.Errorf("got %v, want an InputError", err)
				}
				t.Logf("%.200v", err)
			})
		})
	}
}

// yamlBombs returns texts whose parsing or aliases would take more than their size.
func yamlBombs() map[string]string {
	var laughs strings.Builder
	laughs.WriteString("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]\n")
	for i := 1; i < 12; i++ {
		fmt.Fprintf(&laughs, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d, ", i-1), 10), ", "))
	}
	var merges strings.Builder
	merges.WriteString("a0: &a0 {x: 1}\n")
	for i := 1; i < 40; i++ {
		fmt.Fprintf(&merges, "a%d: &a%d {<<: *a%d, y%d: {<<: *a%d}}\n", i, i, i-1, i, i-1)
	}
	var keys strings.Builder
	for i := range 300_000 {
		fmt.Fprintf(&keys, "k%d: 1\n", i)
	}
	return map[string]string{
		"laughs":         laughs.String(),
		"merges":         merges.String(),
		"itself":         "a: &x [*x, *x]\n",
		"nested flow":    "a: " + strings.Repeat("[", 20_000),
		"nested maps":    "a: " + strings.Repeat("{a: ", 20_000),
		"nested lines":   deepLines(2_000),
		"nested dashes":  strings.Repeat("- ", 180_000) + "a\n",
		"anchors":        "a: " + strings.Repeat("&a ", 390_000) + "a\n",
		"tags":           "a: " + strings.Repeat("!a ", 390_000) + "a\n",
		"keys":           keys.String(),
		"commas":         "a: [" + strings.Repeat("a,", 2_000_000) + "]\n",
		"long text":      "apiVersion: " + strings.Repeat("x", 4*mib) + "\n",
		"many documents": strings.Repeat("---\na: 1\n", 20_000),
		"many ends":      strings.Repeat("a: 1\n...\n", 20_000),
	}
}

func TestBombs_Mappings(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	memory.Alone(t, testBombsMappings)
}

func testBombsMappings(t *testing.T) {
	for name, text := range yamlBombs() {
		t.Run(name, func(t *testing.T) {
			within(t, 256*mib, func() {
				_, err := mapping.Load("bomb.yaml", []byte(text))
				if err == nil {
					t.Error("it is loaded")
				}
				t.Logf("%.200v", err)
			})
		})
	}
}

// TestBombs_Fixtures puts the YAML bombs into the files of a fixture, and into the request of an
// access pattern, which accepts any value. The long tier puts each into every file, the quick
// one into one file each.
func TestBombs_Fixtures(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	race.OneAfterTheOther(t)
	all := long.Enabled()
	memory.Alone(t, func(t *testing.T) { testBombsFixtures(t, all) })
}

func testBombsFixtures(t *testing.T, all bool) {
	const access, request = "access/a.yaml", "id: x\nexpect: {count: 0}\ndynamodb:\n  op: Query\n  request:\n"
	bombs := yamlBombs()
	for n, name := range slices.Sorted(maps.Keys(bombs)) {
		for i, file := range []string{"fixture.yaml", "lint.yaml", access, "access/b.yaml"} {
			if !all && n%4 != i {
				continue
			}
			text := bombs[name]
			if file == "access/b.yaml" {
				text = request + "    " + strings.ReplaceAll(text, "\n", "\n    ")
			}
			t.Run(name+" "+file, func(t *testing.T) {
				within(t, 256*mib, func() {
					_, err := migrate.Lint(t.Context(), migrate.OfFixture(fstest.MapFS{
						file: {Data: []byte(text)}, "source/items.jsonl": {Data: []byte(`{"Item":{"id":{"S":"a"}}}`)},
						"mapping.yaml": {Data: []byte("apiVersion: migration/v1\nsource: {key: {hash: {name: id, type: S}}}\ntarget: {table: t, families: {a: {}}}\nrules: [{name: x, row: [\"{id}\"], put: [{attr: \"*\", cell: \"a:{attr}\"}]}]\n")},
					}), migrate.LintOptions{})
					var input *source.Error
					if !errors.As(err, &input) || !strings.Contains(err.Error(), file) {
						t.Errorf("got %.300v, want an InputError of %s", err, file)
					}
					t.Logf("%.200v", err)
				})
			})
		}
	}
}

// deepLines returns keys, each indented more than the previous one.
func deepLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i) + "a:\n")
	}
	return b.String()
}
