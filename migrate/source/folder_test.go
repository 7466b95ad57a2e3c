package source

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

const twoItems = `{"id":{"S":"a"}}` + "\n" + `{"id":{"S":"b"}}` + "\n"

func TestOpen_SourcesOfOtherPrograms(t *testing.T) {
	t.Parallel()
	page := func(id, last string) string { return `{"Items":[{"id":{"S":"` + id + `"}}],"Count":1` + last + `}` }
	const more = `,"LastEvaluatedKey":{"id":{"S":"x"}}`
	const schema = `{"Table":{"TableName":"Users","KeySchema":[{"AttributeName":"id","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"}]}}`
	for name, c := range map[string]struct {
		files map[string]string
		open  string
		o     Options
		want  string
		named string
	}{
		"pages in one file":           {map[string]string{"in.json": page("a", more) + page("b", "")}, "in.json", Options{}, twoItems, "in_"},
		"pages in files":              {map[string]string{"d/page-1.json": page("a", more), "d/page-2.json": page("b", "")}, "d", Options{}, twoItems, "d__"},
		"part files":                  {map[string]string{"out/_SUCCESS": "", "out/.part-0.crc": "x", "out/part-00000": `{"id":{"S":"a"}}` + "\n", "out/part-00001.json.gz": string(exporttest.Pack([]byte(`{"id":{"S":"b"}}`)))}, "out", Options{}, twoItems, "out"},
		"dump with a description":     {map[string]string{"dump/users/schema.json": schema, "dump/users/data/0001.json": page("a", more), "dump/users/data/0002.json": page("b", "")}, "dump/users", Options{}, twoItems, "Users"},
		"data of an export":           {map[string]string{"orders/data/x.json": `{"Item":{"id":{"S":"a"}}}`, "orders/data/y.json": `{"Item":{"id":{"S":"b"}}}`}, "orders/data", Options{}, twoItems, "orders"},
		"tags of Data Pipeline":       {map[string]string{"in.json": `{"id":{"s":"a"},"n":{"nS":["1"]},"l":{"l":[{"bOOL":true},{"m":{"s":{"n":"2"}}}]},"z":{"nULLValue":true},"e":{"m":{}}}`}, "in.json", Options{}, `{"e":{"M":{}},"id":{"S":"a"},"l":{"L":[{"BOOL":true},{"M":{"s":{"N":"2"}}}]},"n":{"NS":["1"]},"z":{"NULL":true}}` + "\n", "in_"},
		"items of Hive":               {map[string]string{"in.txt": "id\x03{\"s\":\"a\"}\x02n\x03{\"n\":\"1\"}\n" + "n\"\x03{\"sS\":[\"x\"]}\x02id\x03{\"s\":\"b\"}\n"}, "in.txt", Options{}, `{"id":{"S":"a"},"n":{"N":"1"}}` + "\n" + `{"id":{"S":"b"},"n\"":{"SS":["x"]}}` + "\n", "in.txt"},
		"columns of Hive":             {map[string]string{"in.csv": "a\x011\nb\x012\n"}, "in.csv", Options{CSV: CSVOptions{Delimiter: "\x01", Header: []string{"id", "n:N"}}}, `{"id":{"S":"a"},"n":{"N":"1"}}` + "\n" + `{"id":{"S":"b"},"n":{"N":"2"}}` + "\n", "in_"},
		"a table called Responses":    {map[string]string{"in.json": `{"Responses":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}`}, "in.json", Options{}, `{"id":{"S":"a"}}` + "\n", "Responses"},
		"an attribute called format":  {map[string]string{"in.json": `{"format":{"S":"onetable:1"},"id":{"S":"a"}}`}, "in.json", Options{}, `{"format":{"S":"onetable:1"},"id":{"S":"a"}}` + "\n", "in_"},
		"plain JSON":                  {map[string]string{"in.json": `{"tags":["x",1],"id":"a","o":{"k":null}}`}, "in.json", Options{Plain: true, Key: "id"}, `{"id":{"S":"a"},"o":{"M":{"k":{"NULL":true}}},"tags":{"L":[{"S":"x"},{"N":"1"}]}}` + "\n", "in_"},
		"plain JSON in an array":      {map[string]string{"in.json": `[{"id":"a"},{"id":"b"}]`}, "in.json", Options{Plain: true, Key: "id"}, twoItems, "in_"},
		"CSV that looks like a mark":  {map[string]string{"in.csv": "ORCID,PAR1\na,b\n"}, "in.csv", Options{}, `{"ORCID":{"S":"a"},"PAR1":{"S":"b"}}` + "\n", "in_"},
		"CSV parts":                   {map[string]string{"c/1.csv": "id\na\n", "c/2.csv": "id\nb\n"}, "c", Options{}, twoItems, "c__"},
		"pages of the items' plain":   {map[string]string{"p/1.json": `{"Items":[{"id":"a"}]}`, "p/2.json": `{"Items":[{"id":"b"}]}`}, "p", Options{Plain: true, Key: "id"}, twoItems, "p__"},
		"text that looks like a mark": {map[string]string{"in.json": `{"id":{"S":"PAR1"}}`}, "in.json", Options{}, `{"id":{"S":"PAR1"}}` + "\n", "in_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := fstest.MapFS{}
			for file, text := range c.files {
				fsys[file] = &fstest.MapFile{Data: []byte(text)}
			}
			if got := readAllItems(t, fsys, c.open, c.o); got != c.want {
				t.Errorf("items:\n%s\nwant:\n%s", got, c.want)
			}
			src, err := OpenFS(fsys, c.open, c.o)
			if err != nil || src.Tables[0].Name != c.named {
				t.Errorf("table %s, %v; want %s", src.Tables[0].Name, err, c.named)
			}
		})
	}
}

func TestOpen_RefusedByMarks(t *testing.T) {
	t.Parallel()
	tar := strings.Repeat("\x00", 257) + "ustar" + strings.Repeat("\x00", 250)
	for text, want := range map[string]string{
		"PK\x03\x04":              "zip archive",
		"BZh91AY&SY\x00":          "bzip2",
		"\xfd7zXZ\x00":            "xz",
		"PAR1\x15":                "Parquet",
		"Obj\x01\x04":             "Avro",
		"ORC\x08\x03":             "ORC",
		"\x04\x22\x4d\x18\x40":    "lz4",
		"\xff\x06\x00\x00sNaPpY":  "Snappy",
		"SQLite format 3\x00\x10": "DynamoDB Local",
		"\xe0\x01\x00\xea\xee":    "binary Ion: convert it to Ion text",
		string(exporttest.Pack([]byte("\xe0\x01\x00\xea\xee"))):                               "binary Ion",
		string(exporttest.Pack([]byte(tar))):                                                  "tar archive",
		string(exporttest.PackZstd([]byte(tar))):                                              "tar archive",
		"id\x03a\x02n\x031\n":                                                                 "Hive's format with control characters: rename it to *.csv",
		"a\x011\x01x\n":                                                                       "Hive's format",
		`{"Responses":{"Tab":[{"id":{"S":"a"}}]},"UnprocessedKeys":{}}`:                       "a BatchGetItem response",
		`{"Responses":{}}`:                                                                    "a BatchGetItem response",
		`{"Responses":[{"Item":{"id":{"S":"a"}}}]}`:                                           "a TransactGetItems or",
		`{"TransactItems":[{"Put":{"TableName":"Tab","Item":{"id":{"S":"a"}}}}]}`:             "a TransactWriteItems request",
		`{"format":"onetable:1.1.0","indexes":{"primary":{"hash":"pk"}},"data":[{"pk":"a"}]}`: "OneTable",
		`{"AttributeDefinitions":[],"TableName":"T"}` + "\n" + `{"id":{"S":"a"}}` + "\n":      "as dyno writes it",
		`{"Table":{"KeySchema":[],"TableName":"T"}}` + "\n" + `{"id":{"S":"a"}}` + "\n":       "as dyno writes it",
	} {
		for _, fsys := range []fstest.MapFS{{"in": {Data: []byte(text)}}, {"in/part-0": {Data: []byte(text)}}} {
			_, err := OpenFS(fsys, "in", Options{})
			WantDamage(t, err, Unsupported, want)
		}
	}
	for _, files := range []fstest.MapFS{
		{"in": {Data: []byte(`{"Items":[],"LastEvaluatedKey":{"id":{"S":"x"}}}`)}},
		{"in/1": {Data: []byte(`{"Items":[],"LastEvaluatedKey":{"id":{"S":"x"}}}`)}, "in/2": {Data: []byte(`{"Items":[],"LastEvaluatedKey":{"id":{"S":"y"}}}`)}},
	} {
		_, err := drain(files, "in", Options{})
		WantDamage(t, err, Unsupported, "one page of several")
	}
	_, err := OpenFS(fstest.MapFS{"in": {Data: []byte(`{"id":"a"}`)}}, "in", Options{Plain: true})
	WantDamage(t, err, KeyUnknown, "plain JSON needs a declared key")
	_, err = OpenFS(fstest.MapFS{"in/a": {Data: []byte(`{"id":{"S":"a"}}`)}, "in/b": {Data: []byte(`{"T":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}`)}}, "in", Options{})
	WantDamage(t, err, Unsupported, "the format batch-write, which cannot")
}
