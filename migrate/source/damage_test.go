package source

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// drain opens a source and reads all of it.
func drain(fsys fstest.MapFS, name string, o Options) (items int, err error) {
	src, err := OpenFS(fsys, name, o)
	if err != nil {
		return 0, err
	}
	for _, t := range src.Tables {
		for _, err := range t.Entries() {
			if err != nil {
				return items, err
			}
			items++
		}
	}
	return items, nil
}

func TestOpen_DamagedExport(t *testing.T) {
	t.Parallel()
	if n, err := drain(exporttest.Sample(), "bucket", Options{Key: "id"}); n != 3 || err != nil {
		t.Fatalf("the export itself: %d items, error %v", n, err)
	}
	for _, c := range exporttest.Damages {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			fsys := exporttest.Sample()
			c.Spoil(fsys)
			_, err := drain(fsys, "bucket", Options{Key: "id"})
			WantDamage(t, err, Damage(c.Damage), c.Text)
		})
	}
}

func TestOpen_DamagedFile(t *testing.T) {
	t.Parallel()
	lines := strings.Join(exporttest.Lines, "\n") + "\n"
	packed := exporttest.Pack([]byte(lines))
	for _, c := range []struct {
		name   string
		data   string
		damage Damage
		text   string
	}{
		{"empty", "", Unrecognized, "in.json: the file is empty"},
		{"empty gzip", string(exporttest.Pack(nil)), Unrecognized, "in.json: the gzip data holds no text"},
		{"gzip header only", string(packed[:8]), PackingTruncated, "in.json: the gzip data ends early"},
		{"truncated", string(packed[:len(packed)-9]), PackingTruncated, "in.json: the gzip data ends early"},
		{"truncated zstd", string(exporttest.PackZstd([]byte(lines))[:30]), PackingTruncated, "in.json: the zstd data ends early"},
		{"corrupt zstd", exporttest.Flip(string(exporttest.PackZstd([]byte(lines))), -1), PackingCorrupt, "in.json: the zstd data is damaged: its own checksum"},
		{"zstd with trailing data", string(exporttest.PackZstd([]byte(lines))) + "junk", PackingCorrupt, "in.json: the zstd data is damaged"},
		{"empty zstd", string(exporttest.PackZstd(nil)), Unrecognized, "in.json: the zstd data holds no text"},
		{"bomb of blank lines", string(exporttest.Pack([]byte(lines + strings.Repeat("\n", MaxItemBytes+2)))), TooLong, "bytes of white space between items"},
		{"zip", "PK\x03\x04....", Unsupported, "in.json: the file is a zip archive"},
		{"second line of Hive damaged", "id\x03{\"s\":\"a\"}\nid\n", NotJSON, "in.json:2: not JSON"},
		{"ion", "\xe0\x01\x00\xea\x00", Unsupported, "in.json: the file is in binary Ion"},
		{"text", "hello\n", Unrecognized, "in.json:1: not a known input"},
		{"csv", "a,b\n1,2\n", Unrecognized, "in.json:1: not a known input"},
		{"trailing data", string(packed) + "junk", PackingCorrupt, "in.json: trailing data follows the gzip data"},
		{"one trailing byte", string(packed) + "\n", PackingCorrupt, "in.json: trailing data follows the gzip data"},
		{"truncated second member", string(packed) + string(packed[:len(packed)-9]), PackingTruncated, "in.json: the gzip data ends early"},
		{"number", "17\n", Unrecognized, "in.json: not a known input: neither an export to S3, JSON lines"},
		{"plain JSON", `{"id":"a","n":1}` + "\n" + `{"id":"b","n":2}` + "\n", NotAnItem, `in.json:1: not an item: Item.id: want a JSON object with a type tag, such as {"S": "a"}, found string; --plain reads JSON without type tags`},
		{"plain JSON with a list", `{"n":1,"tags":["x"]}`, NotAnItem, `in.json:1: not an item: Item.n: want a JSON object with a type tag`},
		{"array of plain JSON", `[{"id":"a"},` + "\n" + `{"id":"b"}]`, NotAnItem, `in.json:1: not an item: Item.id: want a JSON object with a type tag`},
		{"object of nothing", "{}\n", Unrecognized, "in.json: not a known input"},
		{"first line damaged", `{"Item":{"id":{"S":"a"}` + "\n" + exporttest.Lines[1] + "\n", NotJSON, "in.json:1: not JSON"},
		{"second line damaged", exporttest.Lines[0] + "\n{]\n", NotJSON, "in.json:2: not JSON"},
		{"plain after wrapped", exporttest.Lines[0] + "\n" + `{"id":{"S":"b"}}`, NotAnItem, `in.json:2: found member "id"; expected "Item"`},
		{"more beside the item", exporttest.Lines[0][:len(exporttest.Lines[0])-1] + `,"x":1}` + "\n", NotAnItem, `in.json:1: unexpected member "x" beside the item`},
		{"incremental", `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"a"}}}`, Unsupported, "incremental"},
		{"schema", `{"Table":{"TableName":"T","KeySchema":[]}}`, Unrecognized, "table description"},
		{"delete request", `{"T":[{"DeleteRequest":{"Key":{"id":{"S":"a"}}}}]}`, NotAnItem, `found member "DeleteRequest"; expected "PutRequest"`},
		{"array cut", `[{"id":{"S":"a"}},` + "\n" + `{"id":{"S":`, NotJSON, "in.json:2: not JSON"},
		{"array item", `[{"id":{"S":"a"}},` + "\n\n" + `{"id":{"X":"a"}}]`, TypeUnknown, "in.json:3: unknown type: Item.id"},
		{"model without key", `{"ModelName":"m","DataModel":[{"TableName":"T"}]}`, SchemaInvalid, "has no TableName or no KeyAttributes"},
		{"model item", `{"ModelName":"m","DataModel":[{"TableName":"T","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},` + "\n" +
			`"TableData":[{"id":{"S":"a"}},` + "\n" + `{"no":{"S":"a"}}]}]}`, KeyMissing, `in.json:3: the item has no attribute "id"`},
		{"endless text", `[{"id":{"S":"` + strings.Repeat("x", 2*MaxItemBytes) + `"}}]`, TooLong, "in.json:1: the text of one item is longer"},
		{"text for a boolean", `{"id":{"S":"a"},"m":{"M":{"k":{"BOOL" : "true"}}}}`, ValueInvalid, `in.json:1: not a DynamoDB value: a string follows "BOOL", expected true or false without quotes`},
		{"text for NULL", `{"Item":{"id":{"S":"a"},"l":{"L":[{"NULL":"true"}]}}}`, ValueInvalid, `a string follows "NULL"`},
		{"duplicate attribute", `{"id":{"S":"a"},"id":{"S":"b"}}`, NotJSON, "in.json:1: not valid JSON for an item: Item: member name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := drain(fstest.MapFS{"in.json": {Data: []byte(c.data)}}, "in.json", Options{})
			WantDamage(t, err, Damage(c.damage), c.text)
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(strings.Join(exporttest.Lines, "\n")))
	f.Add(exporttest.Pack([]byte(exporttest.Lines[0])))
	f.Add(exporttest.PackZstd([]byte("id,n:N,t:BOOL,ns:NS,m:M\na,1,true,\"[1,2]\",\"{\"\"k\"\":{\"\"S\"\":\"\"x\"\"}}\"\n")))
	f.Add([]byte("id,\"a\"\"b\"\r\nx,\"\r\n\"\r\n"))
	f.Add([]byte(`{"T":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}`))
	f.Add([]byte(`{"ModelName":"m","DataModel":[{"TableName":"T","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},"TableData":[]}]}`))
	f.Add([]byte("id\x03{\"s\":\"a\"}\x02n\x03{\"n\":\"1\"}\n"))
	f.Add([]byte(`{"AttributeDefinitions":[]}` + "\n" + `{"Responses":[{"Item":{}}]}`))
	later := exporttest.Time.Add(time.Hour)
	f.Add([]byte(kinesisRecord("1", later, "b", 2, 20) + kinesisRecord("2", later, "b", 20, 0)))
	f.Add([]byte(`{"Records":[` + streamRecord(1, later, "b", 2, 20) + `]}`))
	f.Add([]byte(`[` + streamRecord(1, later, "b", 2, 20) + `]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		records := withRecords(map[string]string{"r": string(data)})
		for name, fsys := range map[string]fstest.MapFS{"in": {"in": {Data: data}}, "in.csv": {"in.csv": {Data: data}}, "bucket": records} {
			_, err := drain(fsys, name, Options{})
			var input *Error
			if err != nil && !errors.As(err, &input) {
				t.Errorf("%s: error %v of type %T, want an Error", name, err, err)
			}
		}
	})
}
