package source

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// readAllItems returns the canonical JSON of all items of a source's first table, one per line.
func readAllItems(t *testing.T, fsys fstest.MapFS, name string, o Options) string {
	t.Helper()
	src, err := OpenFS(fsys, name, o)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for e, err := range src.Tables[0].Entries() {
		if err != nil {
			t.Fatal(err)
		}
		b.Write(attr.AppendItemJSON(nil, e.Item))
		b.WriteByte('\n')
	}
	return b.String()
}

func TestOpen_CSV(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file, data string
		options          Options
		want             string
	}{
		{
			"all types", "items.csv", `id,n:N,b:B,t:BOOL,z:NULL,ss:SS,ns:NS,bs:BS,l:L,"m:M"` + "\r\n" +
				`a,1.50,aGk=,TRUE,true,"[""x"",""y""]","[1,""2""]","[""aGk=""]","[{""S"":""x""}]","{""k"":{""N"":""1""}}"` + "\r\n",
			Options{},
			`{"b":{"B":"aGk="},"bs":{"BS":["aGk="]},"id":{"S":"a"},"l":{"L":[{"S":"x"}]},"m":{"M":{"k":{"N":"1"}}},"n":{"N":"1.5"},"ns":{"NS":["1","2"]},"ss":{"SS":["x","y"]},"t":{"BOOL":true},"z":{"NULL":true}}` + "\n",
		},
		{
			"line ends inside quotes stay", "items.csv", "id,text\na,\"1\r\n2, \"\"3\"\"\"\n\nb, x ",
			Options{},
			`{"id":{"S":"a"},"text":{"S":"1\r\n2, \"3\""}}` + "\n" + `{"id":{"S":"b"},"text":{"S":" x "}}` + "\n",
		},
		{"empty cells", "items.csv", "id,x,y\na,,\"\"\n", Options{}, `{"id":{"S":"a"},"y":{"S":""}}` + "\n"},
		{"quoted empty cells are absent", "items.csv", "id,x,y\na,,\"\"\n", Options{CSV: CSVOptions{QuotedEmpty: EmptyAbsent}}, `{"id":{"S":"a"}}` + "\n"},
		{"ragged", "items.csv", "id,x,y\na\nb,1,2,,\n", Options{CSV: CSVOptions{Ragged: true}}, `{"id":{"S":"a"}}` + "\n" + `{"id":{"S":"b"},"x":{"S":"1"},"y":{"S":"2"}}` + "\n"},
		{"plain JSON in typed columns", "items.csv", `id,m:M,l:L` + "\n" + `a,"{""k"":1}","[""x"",true]"` + "\n", Options{}, `{"id":{"S":"a"},"l":{"L":[{"S":"x"},{"BOOL":true}]},"m":{"M":{"k":{"N":"1"}}}}` + "\n"},
		{"tabs", "items.tsv", "id\tx:N\na\t1\n", Options{}, `{"id":{"S":"a"},"x":{"N":"1"}}` + "\n"},
		{"delimiter and header given", "items.csv", "a;1\n", Options{CSV: CSVOptions{Delimiter: ";", Header: []string{"id", "x:N"}}}, `{"id":{"S":"a"},"x":{"N":"1"}}` + "\n"},
		{"types of the key", "items.csv", "id,sk\na,10\n", Options{TableSchema: []byte(`{"KeySchema":[{"AttributeName":"id","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
			"AttributeDefinitions":[{"AttributeName":"id","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}]}`)}, `{"id":{"S":"a"},"sk":{"N":"10"}}` + "\n"},
		{"zstd", "items.csv.zst", string(exporttest.PackZstd([]byte("id\na\n"))), Options{}, `{"id":{"S":"a"}}` + "\n"},
		{"gzip", "items.csv.gz", string(exporttest.Pack([]byte("id\na\n"))), Options{}, `{"id":{"S":"a"}}` + "\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := readAllItems(t, fstest.MapFS{c.file: {Data: []byte(c.data)}}, c.file, c.options); got != c.want {
				t.Errorf("items:\n%s\nwant:\n%s", got, c.want)
			}
		})
	}
}

func TestOpen_DamagedCSV(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		damage     Damage
		text       string
	}{
		{"empty", "", Unrecognized, "in.csv: the file is empty: it has no header"},
		{"unknown type", "id,x:n\n", SchemaInvalid, `in.csv:1: column 2 is called "x:n": "n" is not a type`},
		{"no name", "id,\n", SchemaInvalid, "in.csv:1: column 2 has no name"},
		{"two of a name", "id,id:N\n", SchemaInvalid, `in.csv:1: two columns are called "id"`},
		{"short record", "id,x\na\n", NotCSV, "in.csv:2: the record has 1 cells, but the header has 2 columns; --csv-ragged"},
		{"long record", "id,x\na,b,c\n", NotCSV, "in.csv:2: the record has 3 cells, but the header has 2 columns; a cell with the delimiter in its text needs quotes"},
		{"a record as header with equal cells", "a1,7,7\n", SchemaInvalid, `in.csv:1: two columns are called "7"; "7" looks like a value: if the file has no header, --csv-header`},
		{"a record as header with an empty cell", "3,\n", SchemaInvalid, `in.csv:1: column 2 has no name; "3" looks like a value`},
		{"a record as header with a time", "2026-01-02T10:00:00,x\n", SchemaInvalid, `"00" is not a type, want one of S N B BOOL NULL SS NS BS L M; a name with a colon needs its type; "2026-01-02T10:00:00" looks like a value`},
		{"open quote", "id\n\"a\nb", NotCSV, "in.csv:3: a quoted cell has no closing quote"},
		{"quote inside", "id\na\"b\n", NotCSV, "in.csv:2: an unquoted cell contains a quote"},
		{"text behind a quote", "id\n\"a\" b\n", NotCSV, "in.csv:2: text follows a closing quote"},
		{"no number", "id,x:N\na,1\nb,one\n", NumberInvalid, "in.csv:3: not a DynamoDB number: Item.x"},
		{"no boolean", "id,x:BOOL\na,yes\n", ValueInvalid, `in.csv:2: column "x", of type BOOL: the cell is neither true nor false`},
		{"no JSON", "id,x:SS\na,y\n", ValueInvalid, `in.csv:2: column "x", of type SS: the cell is not JSON`},
		{"no set of numbers", "id,x:NS\na,1\n", ValueInvalid, `in.csv:2: column "x", of type NS: the cell is not a JSON array`},
		{"no text", "id\n\xff\n", ValueInvalid, "in.csv:2: column \"id\""},
		{"endless cell", "id\n\"" + strings.Repeat("x", MaxItemBytes+1), TooLong, "in.csv:2: the text of one item is longer"},
		{"bomb of blank lines", "id\n" + strings.Repeat("\n", MaxItemBytes+1), TooLong, "in.csv:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := drain(fstest.MapFS{"in.csv": {Data: []byte(c.data)}}, "in.csv", Options{})
			WantDamage(t, err, c.damage, c.text)
		})
	}
	for _, o := range []CSVOptions{{Delimiter: "::"}, {Delimiter: "\n"}, {QuotedEmpty: "no"}} {
		_, err := drain(fstest.MapFS{"in.csv": {Data: []byte("id\na\n")}}, "in.csv", Options{CSV: o})
		WantDamage(t, err, SchemaInvalid, "in.csv: ")
	}
}

func TestTable_Doubts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, data string
		options    Options
		want       []string // parts of the warnings
	}{
		{"numbers and JSON", "id,n,doc,tags,on,zip\na1,10,\"{}\",\"[1]\",true,007\nb,1.5e3,,,FALSE,10\n", Options{}, []string{"these hold only numbers, booleans or JSON: n (numbers: :N), doc (JSON objects: :M), tags (JSON arrays: :L, :SS or :NS), on (true and false: :BOOL); set the type in the header, or in --csv-header, as in n:N"}},
		{"typed", "id,n:N\na,10\n", Options{}, nil},
		{"type of the key", "id,n\na,10\n", Options{TableSchema: []byte(`{"KeySchema":[{"AttributeName":"n","KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"n","AttributeType":"N"}]}`)}, nil},
		{"some text", "id,n\na,10\nb,ten\n", Options{}, nil},
		{"empty column", "id,n\na,\n", Options{}, nil},
		{"no header", "user-1,Ann\nuser-2,Bob\n", Options{}, []string{`the column name "user-1" looks like a value`}},
		{"no header, numbers", "Ann,7\nBob,8\n", Options{}, []string{`the column name "7" looks like a value`, "7 (numbers: :N)"}},
		{"numbered names", "line1,line2\nx,y\n", Options{}, nil},
		{"header given", "7,8\n", Options{CSV: CSVOptions{Header: []string{"7:S", "x:N"}}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			src, err := OpenFS(fstest.MapFS{"in.csv": {Data: []byte(c.data)}}, "in.csv", c.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, err := range src.Tables[0].Entries() {
				if err != nil {
					t.Fatal(err)
				}
			}
			got := src.Tables[0].Doubts()
			if len(got) != len(c.want) {
				t.Fatalf("doubts %q, want %d", got, len(c.want))
			}
			for i, want := range c.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("doubt %q, want %q in it", got[i], want)
				}
			}
		})
	}
}

func TestOpen_Remote(t *testing.T) {
	t.Parallel()
	for address, hint := range map[string]string{
		"s3://bucket/prefix":              "aws s3 sync s3://bucket/prefix FOLDER",
		"gs://bucket/prefix":              "gcloud storage cp --recursive gs://bucket/prefix FOLDER",
		"https://example.com/items.jsonl": "curl -O https://example.com/items.jsonl",
		"file:///tmp/x":                   "pass only the path",
		"hdfs://x/y":                      "copy it here",
	} {
		_, err := Open(address, Options{})
		WantDamage(t, err, Unsupported, hint)
	}
}
