package source

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// inputPath returns a path below migrate/testdata/inputs, which its README describes.
func inputPath(name string) string {
	return filepath.Join("..", "testdata", "inputs", filepath.FromSlash(name))
}

// tableSummary is the result that tests of readers compare.
type tableSummary struct {
	Name     string
	Key      string
	Items    int
	Indexes  int
	Exported string
}

func summarize(t *testing.T, src *Source) []tableSummary {
	t.Helper()
	var out []tableSummary
	for _, table := range src.Tables {
		s := tableSummary{Name: table.Name, Indexes: len(table.Indexes)}
		for _, k := range []attr.KeyAttr{table.Key.Hash, table.Key.Range} {
			if k.Name != "" {
				s.Key += k.Name + ":" + k.Type.String() + " "
			}
		}
		if !table.ExportTime.IsZero() {
			s.Exported = table.ExportTime.Format("2006-01-02T15:04:05.000Z07:00")
		}
		for _, err := range table.Entries() {
			if err != nil {
				t.Fatal(err)
			}
			s.Items++
		}
		out = append(out, s)
	}
	return out
}

func TestOpen_Inputs(t *testing.T) {
	t.Parallel()
	const exported = "2026-01-05T10:00:00.125Z"
	const export = "s3-export/AWSDynamoDB/01767607200125-5e1f0a9c"
	for _, c := range []struct {
		path, format string
		want         []tableSummary
	}{
		{"s3-export", "s3-export", []tableSummary{{"Things", "", 3, 0, exported}}},
		{"s3-export/AWSDynamoDB", "s3-export", []tableSummary{{"Things", "", 3, 0, exported}}},
		{export, "s3-export", []tableSummary{{"Things", "", 3, 0, exported}}},
		{export + "/data/h4qk2r7vzi3mzcw5p6bynxdaeu.json.gz", "json-lines", []tableSummary{{"h4qk2r7vzi3mzcw5p6bynxdaeu", "", 2, 0, ""}}},
		{export + "/manifest-summary.json", "s3-export", []tableSummary{{"Things", "", 3, 0, exported}}},
		{"s3-incremental-export", "s3-incremental-export", []tableSummary{{"Shelves", "", 4, 0, "2026-01-07T10:00:00.000Z"}}},
		{"change-records", "s3-export-with-change-records", []tableSummary{{"orders", "", 5, 0, "2026-11-29T02:22:53.682Z"}}},
		{"json-lines/members.json.gz", "json-lines", []tableSummary{{"members", "", 120, 0, ""}}},
		{"json-lines/member.json", "json-lines", []tableSummary{{"member", "", 1, 0, ""}}},
		{"csv/loans.csv", "csv", []tableSummary{{"loans", "", 4, 0, ""}}},
		{"batch-write/Repairs.json", "batch-write", []tableSummary{{"Repairs", "", 5, 0, ""}}},
		{"batch-write/Tools-request.json", "batch-write", []tableSummary{{"Tools", "", 3, 0, ""}}},
		{"workbench/Lending.json", "workbench", []tableSummary{{"Lending", "PK:S SK:S ", 16, 2, ""}}},
		{"workbench/Club.json", "workbench", []tableSummary{{"Club", "PK:S SK:S ", 10, 0, ""}}},
		{"workbench/Notes.json", "workbench", []tableSummary{{"Notes", "PK:S SK:S ", 5, 1, ""}}},
	} {
		t.Run(c.path, func(t *testing.T) {
			t.Parallel()
			src, err := Open(inputPath(c.path), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if src.Format != c.format {
				t.Errorf("recognized as %s, want %s", src.Format, c.format)
			}
			if diff := cmp.Diff(c.want, summarize(t, src)); diff != "" {
				t.Errorf("tables (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOpen_Forms(t *testing.T) {
	t.Parallel()
	const item = `{"id":{"S":"a"},"n":{"N":"1"}}`
	want := []attr.Item{
		{"id": attr.String("a"), "n": attr.Int(1)},
		{"id": attr.String("b"), "n": attr.Int(2)},
	}
	const second = `{"n":{"N":"2.0"},"id":{"S":"b"}}`
	model := func(members string) string {
		return `{"ModelName":"m","DataModel":[{"TableName":"T","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},` + members + `}]}`
	}
	for name, text := range map[string]string{
		"wrapped lines":           `{"Item":` + item + "}\n\n" + `{"Item":` + second + "}\r\n",
		"wrapped lines, no end":   `{"Item":` + item + "}\n" + `{"Item":` + second + "}",
		"plain lines":             item + "\n" + second + "\n",
		"put request lines":       `{"PutRequest":{"Item":` + item + "}}\n" + `{"PutRequest":{"Item":` + second + "}}\n",
		"texts over lines":        "{\n\"Item\":\n" + item + "}\n{\"Item\"\n:" + second + "\n}",
		"texts on one line":       `{"Item":` + item + `}{"Item":` + second + `}`,
		"a line, then over lines": `{"Item":` + item + "}\n{\"Item\":\n" + second + "\n}\n",
		"array":                   "[" + item + ",\n" + second + "]",
		"array of wrapped":        `[{"Item":` + item + `},{"Item":` + second + `}]`,
		"scan answer":             `{"Count":2,"Items":[` + item + "," + second + `],"ConsumedCapacity":{"CapacityUnits":1}}`,
		"byte order mark":         "\ufeff" + item + "\n" + second,
		"batch write":             `{"T":[{"PutRequest":{"Item":` + item + `}},{"PutRequest":{"Item":` + second + `}}]}`,
		"batch write request":     `{"ReturnConsumedCapacity":"NONE","RequestItems":{"T":[{"PutRequest":{"Item":` + item + `}},{"PutRequest":{"Item":` + second + `}}]}}`,
		"model":                   model(`"TableData":[` + item + "," + second + `],"TableFacets":null`),
		"model with facets":       model(`"TableFacets":[{"FacetName":"f","TableData":[` + item + `]},{"TableData":[` + second + "," + item + `]},{"FacetName":"none"}],"TableData":[` + item + `]`),
		"attribute called Items":  `{"Items":{"S":"x"},` + item[1:] + "\n",
	} {
		for _, packed := range []bool{false, true} {
			data := []byte(text)
			if packed {
				data = exporttest.Pack(data)
			}
			src, err := OpenFS(fstest.MapFS{"in.bin": {Data: data}}, "in.bin", Options{})
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			var got []attr.Item
			for e, err := range src.Tables[0].Entries() {
				if err != nil {
					t.Errorf("%s: %v", name, err)
					break
				}
				delete(e.Item, "Items")
				got = append(got, e.Item)
			}
			if diff := cmp.Diff(want[:len(got)], got); diff != "" || len(got) == 0 {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			if len(got) == 1 && name != "attribute called Items" {
				t.Errorf("%s: one item, want two", name)
			}
		}
	}
}

// Documents of a model are in DynamoDB JSON or, as a whole, in plain JSON.
func TestOpen_WorkbenchDocuments(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"M":{"on":true,"v":"x","n":-1.50,"none":null,"in":{"l":[1,[],{}]}}}`: `{"M":{"in":{"M":{"l":{"L":[{"N":"1"},{"L":[]},{"M":{}}]}}},"n":{"N":"-1.5"},"none":{"NULL":true},"on":{"BOOL":true},"v":{"S":"x"}}}`,
		`{"L":["x",{"S":"y"}]}`:            `{"L":[{"S":"x"},{"M":{"S":{"S":"y"}}}]}`,
		`{"L":[{"S":"x"},{"N":"1"}]}`:      `{"L":[{"S":"x"},{"N":"1"}]}`,
		`{"M":{"M":{"HP":{"S":"50"}}}}`:    `{"M":{"M":{"M":{"HP":{"M":{"S":{"S":"50"}}}}}}}`,
		`{"M":{"\u0022q\u0022":"\u00e9"}}`: `{"M":{"\"q\"":{"S":"é"}}}`,
		`{"M":[1]}`:                        "",
		`{"M":{"a":1},"L":[]}`:             "",
		`{"S":{"a":1}}`:                    "",
		`{"M":{"n":1e999}}`:                "",
	} {
		src, err := OpenFS(fstest.MapFS{"m": {Data: []byte(`{"ModelName":"m","DataModel":[{"TableName":"T",
			"KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},"TableData":[{"id":{"S":"a"},"doc":` + text + `}]}]}`)}}, "m", Options{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		for e, err := range src.Tables[0].Entries() {
			switch got := string(attr.AppendJSON(nil, e.Item["doc"])); {
			case want == "" && err == nil:
				t.Errorf("%s is taken for %s, want an error", text, got)
			case want != "" && (err != nil || got != want):
				t.Errorf("%s is taken for %s, error %v; want %s", text, got, err, want)
			}
		}
	}
}

func TestOpen_SchemaAndKey(t *testing.T) {
	t.Parallel()
	fsys := fstest.MapFS{"in": {Data: []byte(`{"id":{"S":"a"},"n":{"N":"1"}}`)}}
	schema := []byte(`{"Table":{"TableName":"Things","AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"n","AttributeType":"N"}],
		"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"n","KeyType":"RANGE"}],
		"LocalSecondaryIndexes":[{"IndexName":"L","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"Projection":{"ProjectionType":"KEYS_ONLY"}}]}}`)
	src, err := OpenFS(fsys, "in", Options{TableSchema: schema})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tableSummary{{"Things", "id:S n:N ", 1, 1, ""}}, summarize(t, src)); diff != "" {
		t.Error(diff)
	}
	src, err = OpenFS(fsys, "in", Options{Key: "id, n", Table: "Other"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]tableSummary{{"Other", "id: n: ", 1, 0, ""}}, summarize(t, src)); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []Options{{Key: ",x"}, {Key: "a,b,c"}, {TableSchema: []byte("{}")}, {TableSchema: []byte("[")}} {
		var input *Error
		if _, err := OpenFS(fsys, "in", bad); !errors.As(err, &input) || input.Damage != SchemaInvalid {
			t.Errorf("%+v: error %v, want damage %s", bad, err, SchemaInvalid)
		}
	}
}

// TestOpen_SystemError: an error of a failing disk is not a fault of the input.
func TestOpen_SystemError(t *testing.T) {
	t.Parallel()
	src, err := OpenFS(failingFS{fstest.MapFS{"in": {Data: []byte(strings.Repeat(`{"id":{"S":"a"}}`+"\n", 100_000))}}}, "in", Options{Key: "id"})
	if err == nil {
		for _, err = range src.Tables[0].Entries() {
			if err != nil {
				break
			}
		}
	}
	var fault *Error
	if !errors.Is(err, syscall.EIO) || errors.As(err, &fault) || !strings.Contains(err.Error(), "in") {
		t.Errorf("got %v, want the system's error with the file's name", err)
	}
}

// failingFS has files whose reads fail after a while.
type failingFS struct{ fs.FS }

func (f failingFS) Open(name string) (fs.File, error) {
	file, err := f.FS.Open(name)
	return &failingFile{File: file}, err
}

type failingFile struct {
	fs.File
	n int
}

func (f *failingFile) Read(p []byte) (int, error) {
	if f.n > 500_000 {
		return 0, &fs.PathError{Op: "read", Path: "in", Err: syscall.EIO}
	}
	n, err := f.File.Read(p)
	f.n += n
	return n, err
}

// An error about a folder of fixtures, opened as an input, names them.
func TestOpen_FolderOfFixtures(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{"all/a/mapping.yaml": {}, "all/b/source/items.jsonl": {}, "all/c/README": {}, "none/README": {}}
	for i := range 20 {
		files[fmt.Sprintf("many/%02d/fixture.yaml", i)] = &fstest.MapFile{}
	}
	for folder, want := range map[string]string{
		"all":  "; nor is it a fixture: fixtures below it are a, b",
		".":    "; nor is it a fixture: fixtures below it are all/a, all/b, many/00, many/01, many/02, many/03, many/04, many/05, many/06, many/07, many/08, many/09 and 10 more",
		"none": "; nor is it a fixture: no folder below it is one",
	} {
		_, err := OpenFS(files, folder, Options{})
		WantDamage(t, err, Unrecognized, want)
	}
	_, err := OpenFS(fstest.MapFS{"fixture/source/README": {}}, "fixture/source", Options{}) // its name is that of a part of a fixture
	WantDamage(t, err, Unrecognized, "; nor is it a fixture: no folder below it is one")
}
