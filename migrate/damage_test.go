package migrate

import (
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/klauspost/compress/zstd"
)

func pack(data []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	z.Write(data)
	z.Close()
	return b.Bytes()
}

func packZstd(data []byte) []byte {
	z, err := zstd.NewWriter(nil)
	if err != nil {
		panic(err)
	}
	defer z.Close()
	return z.EncodeAll(data, nil)
}

// flip changes one byte, counted from the end if at is negative.
func flip(s string, at int) string {
	b := []byte(s)
	b[(at+len(b))%len(b)] ^= 1
	return string(b)
}

func sum64(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

const exportDir = "bucket/pre/AWSDynamoDB/01716790307109-5f9d6aaa"

// exported builds an export to S3 of the given lines, one slice a data file,
// as the service lays it out.
func exported(files ...[]string) fstest.MapFS {
	fsys := fstest.MapFS{exportDir + "/_started": {}}
	var list strings.Builder
	total := 0
	for i, lines := range files {
		text := strings.Join(lines, "\n")
		if text != "" {
			text += "\n"
		}
		data := pack([]byte(text))
		name := fmt.Sprintf("data/file%d.json.gz", i)
		fsys[path.Join(exportDir, name)] = &fstest.MapFile{Data: data}
		fmt.Fprintf(&list, `{"itemCount":%d,"md5Checksum":"%s","etag":"x","dataFileS3Key":"%s"}`+"\n",
			len(lines), sum64(data), strings.TrimPrefix(path.Join(exportDir, name), "bucket/"))
		total += len(lines)
	}
	put := func(name, text string) {
		fsys[path.Join(exportDir, name)] = &fstest.MapFile{Data: []byte(text)}
		fsys[path.Join(exportDir, strings.TrimSuffix(name, ".json")+".md5")] = &fstest.MapFile{Data: []byte(sum64([]byte(text)) + "\n")}
	}
	put("manifest-files.json", list.String())
	put("manifest-summary.json", fmt.Sprintf(`{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/T/export/01716790307109-5f9d6aaa",
		"tableArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/T","exportTime":"2024-05-27T06:11:47.109Z","s3Bucket":"bucket","s3Prefix":"pre",
		"manifestFilesS3Key":"pre/AWSDynamoDB/01716790307109-5f9d6aaa/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`, total))
	return fsys
}

// edit replaces text in one file of an export, and drops the checksum beside
// it, which would be noticed first.
func edit(fsys fstest.MapFS, name, from, to string) {
	p := path.Join(exportDir, name)
	delete(fsys, strings.TrimSuffix(p, ".json")+".md5")
	fsys[p] = &fstest.MapFile{Data: []byte(strings.Replace(string(fsys[p].Data), from, to, 1))}
}

// repack replaces the text of a data file, with its MD5 in the manifest.
func repack(fsys fstest.MapFS, name, text string) {
	p := path.Join(exportDir, name)
	was := sum64(fsys[p].Data)
	fsys[p] = &fstest.MapFile{Data: pack([]byte(text))}
	edit(fsys, "manifest-files.json", was, sum64(fsys[p].Data))
}

var exportLines = []string{`{"Item":{"id":{"S":"a"},"n":{"N":"1"}}}`, `{"Item":{"id":{"S":"b"},"n":{"N":"2"}}}`}

// damages are all ways to spoil an export that are told apart. The text is
// what the message must contain, after the file's folder.
var damages = []struct {
	name   string
	spoil  func(fsys fstest.MapFS)
	damage Damage
	text   string
}{
	{"truncated gzip", func(f fstest.MapFS) {
		p := exportDir + "/data/file0.json.gz"
		f[p] = &fstest.MapFile{Data: f[p].Data[:len(f[p].Data)-12]}
	}, PackingTruncated, "/data/file0.json.gz: the gzip data ends early: the file is truncated"},
	{"corrupt gzip", func(f fstest.MapFS) {
		p := exportDir + "/data/file0.json.gz"
		data := bytes.Clone(f[p].Data)
		data[len(data)-6] ^= 1 // in the CRC
		f[p] = &fstest.MapFile{Data: data}
	}, PackingCorrupt, "/data/file0.json.gz: the gzip data is damaged"},
	{"wrong MD5", func(f fstest.MapFS) {
		f[exportDir+"/data/file1.json.gz"] = f[exportDir+"/data/file0.json.gz"]
		edit(f, "manifest-files.json", `"itemCount":1`, `"itemCount":2`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":4`)
	}, ChecksumMismatch, "/data/file1.json.gz: the MD5 of the data file is"},
	{
		"missing data file", func(f fstest.MapFS) { delete(f, exportDir+"/data/file1.json.gz") },
		DataFileMissing, "/data/file1.json.gz: the data file is missing; line 2 of manifest-files.json lists it",
	},
	{"wrong count of a file", func(f fstest.MapFS) {
		edit(f, "manifest-files.json", `"itemCount":2`, `"itemCount":5`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":6`)
	}, CountMismatch, "/data/file0.json.gz: the file holds 2 items, line 1 of manifest-files.json says 5"},
	{"more items than counted", func(f fstest.MapFS) {
		edit(f, "manifest-files.json", `"itemCount":2`, `"itemCount":1`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":2`)
	}, CountMismatch, "/data/file0.json.gz:2: the file holds more items than the 1 of line 1 of manifest-files.json"},
	{
		"wrong total", func(f fstest.MapFS) { edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":4`) },
		CountMismatch, "/manifest-summary.json: manifest-summary.json says 4 items in all, the files of manifest-files.json add up to 3",
	},
	{
		"missing summary", func(f fstest.MapFS) { delete(f, exportDir+"/manifest-summary.json") },
		ManifestMissing, "/manifest-summary.json: the manifest is missing",
	},
	{
		"missing file list", func(f fstest.MapFS) { delete(f, exportDir+"/manifest-files.json") },
		ManifestMissing, "/manifest-files.json: the manifest is missing",
	},
	{"no manifest at all", func(f fstest.MapFS) {
		for name := range f {
			if !strings.Contains(name, "/data/") {
				delete(f, name)
			}
		}
	}, ManifestMissing, "/manifest-summary.json: the manifest is missing"},
	{
		"summary not JSON", func(f fstest.MapFS) { edit(f, "manifest-summary.json", `"version":`, `"version" `) },
		ManifestInvalid, "/manifest-summary.json: the manifest cannot be parsed",
	},
	{
		"file list not JSON", func(f fstest.MapFS) { edit(f, "manifest-files.json", "}\n{", "}\n") },
		ManifestInvalid, "/manifest-files.json:2: the manifest cannot be parsed",
	},
	{"manifest checksum", func(f fstest.MapFS) {
		f[exportDir+"/manifest-summary.md5"] = &fstest.MapFile{Data: []byte("rzAeIrtALbOlNdK5Hh8tgA==")}
	}, ChecksumMismatch, "/manifest-summary.json: the MD5 of the manifest is"},
	{
		"unknown version", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "2020-06-30", "2031-01-01") },
		ManifestInvalid, `the manifest is of version "2031-01-01"`,
	},
	{
		"unknown type of export", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "FULL_EXPORT", "PARTIAL_EXPORT") },
		ManifestInvalid, `exportType is "PARTIAL_EXPORT", want FULL_EXPORT or INCREMENTAL_EXPORT`,
	},
	{"ion", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "DYNAMODB_JSON", "ION") }, Unsupported, "Ion"},
	{
		"a key that leaves the export", func(f fstest.MapFS) { edit(f, "manifest-files.json", "data/file0", "data/../../file0") },
		ManifestInvalid, "/manifest-files.json:1: dataFileS3Key cannot be followed",
	},
	{"extra data file", func(f fstest.MapFS) {
		f[exportDir+"/data/zz.json.gz"] = &fstest.MapFile{Data: pack(nil)}
	}, DataFileExtra, "/data/zz.json.gz: the data file is not listed in manifest-files.json"},
	{
		"line not JSON", func(f fstest.MapFS) { repack(f, "data/file0.json.gz", exportLines[0]+"\n{\"Item\":{\"id\"\n") },
		NotJSON, "/data/file0.json.gz:2: not JSON",
	},
	{
		"line of another shape", func(f fstest.MapFS) { repack(f, "data/file0.json.gz", exportLines[0]+"\n[1]\n") },
		NotAnItem, `/data/file0.json.gz:2: a JSON array stands where {"Item": …} is expected`,
	},
	{
		"no key", func(f fstest.MapFS) { repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"n":{"N":"2"}}}`) },
		KeyMissing, `/data/file0.json.gz:2: the item has no attribute "id", which is part of the key of table T`,
	},
	{"key of another type", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"id":{"BOOL":true},"n":{"N":"2"}}}`)
	}, KeyTypeMismatch, `/data/file0.json.gz:2: key attribute "id" is of type BOOL`},
	{"unknown type", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"id":{"S":"b"},"l":{"L":[{"S":"x"},{"Q":"y"}]}}}`)
	}, TypeUnknown, "/data/file0.json.gz:2: unknown type: Item.l[1]"},
	{"no number", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"N":"2O"}}}`)
	}, NumberInvalid, `/data/file0.json.gz:2: not a DynamoDB number: Item.n: not a number: "2O"`},
	{"too many digits", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"NS":["1","`+strings.Repeat("9", 39)+`"]}}}`)
	}, NumberInvalid, "/data/file0.json.gz:2: not a DynamoDB number: Item.n"},
	{"empty set", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"SS":[]}}}`)
	}, ValueInvalid, "/data/file0.json.gz:2: not a DynamoDB value: Item.n"},
	{"endless line", func(f fstest.MapFS) {
		repack(f, "data/file0.json.gz", exportLines[0]+"\n"+strings.Repeat(" ", maxItemBytes+1))
	}, TooLong, "/data/file0.json.gz:2: the text of one item is longer than"},
}

// drain opens a source and reads all of it.
func drain(fsys fstest.MapFS, name string, o SourceOptions) (items int, err error) {
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

func newExport() fstest.MapFS {
	return exported(exportLines, []string{`{"Item":{"id":{"S":"c"},"n":{"N":"3"}}}`}, nil)
}

func TestOpen_DamagedExport(t *testing.T) {
	t.Parallel()
	if n, err := drain(newExport(), "bucket", SourceOptions{Key: "id"}); n != 3 || err != nil {
		t.Fatalf("the export itself: %d items, error %v", n, err)
	}
	for _, c := range damages {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := newExport()
			c.spoil(fsys)
			_, err := drain(fsys, "bucket", SourceOptions{Key: "id"})
			wantDamage(t, err, c.damage, c.text)
		})
	}
}

func wantDamage(t *testing.T, err error, damage Damage, text string) {
	t.Helper()
	var input *InputError
	if !errors.As(err, &input) {
		t.Fatalf("error %v, want an InputError", err)
	}
	if input.Damage != damage || !strings.Contains(err.Error(), text) {
		t.Errorf("damage %s, message %q; want %s, %q", input.Damage, err, damage, text)
	}
}

func TestOpen_DamagedFile(t *testing.T) {
	t.Parallel()
	lines := strings.Join(exportLines, "\n") + "\n"
	packed := pack([]byte(lines))
	for _, c := range []struct {
		name   string
		data   string
		damage Damage
		text   string
	}{
		{"empty", "", Unrecognized, "in.json: the file is empty"},
		{"empty gzip", string(pack(nil)), Unrecognized, "in.json: the gzip data holds no text"},
		{"gzip header only", string(packed[:8]), PackingTruncated, "in.json: the gzip data ends early"},
		{"truncated", string(packed[:len(packed)-9]), PackingTruncated, "in.json: the gzip data ends early"},
		{"truncated zstd", string(packZstd([]byte(lines))[:30]), PackingTruncated, "in.json: the zstd data ends early"},
		{"corrupt zstd", flip(string(packZstd([]byte(lines))), -1), PackingCorrupt, "in.json: the zstd data is damaged: its own checksum"},
		{"zstd with trailing data", string(packZstd([]byte(lines))) + "junk", PackingCorrupt, "in.json: the zstd data is damaged"},
		{"empty zstd", string(packZstd(nil)), Unrecognized, "in.json: the zstd data holds no text"},
		{"bomb of blank lines", string(pack([]byte(lines + strings.Repeat("\n", maxItemBytes+2)))), TooLong, "blank lines stand here"},
		{"zip", "PK\x03\x04....", Unsupported, "in.json: the file is compressed, but by neither gzip nor zstd"},
		{"ion", "\xe0\x01\x00\xea\x00", Unsupported, "in.json: the file is in Ion format"},
		{"text", "hello\n", Unrecognized, "in.json:1: not a known input"},
		{"csv", "a,b\n1,2\n", Unrecognized, "in.json:1: not a known input"},
		{"trailing data", string(packed) + "junk", PackingCorrupt, "in.json: trailing data follows the gzip data"},
		{"one trailing byte", string(packed) + "\n", PackingCorrupt, "in.json: trailing data follows the gzip data"},
		{"truncated second member", string(packed) + string(packed[:len(packed)-9]), PackingTruncated, "in.json: the gzip data ends early"},
		{"number", "17\n", Unrecognized, "in.json: not a known input: neither an export to S3, JSON lines"},
		{"plain JSON", `{"id":"a","n":1}` + "\n" + `{"id":"b","n":2}` + "\n", NotAnItem, `in.json:1: not an item: Item.id: want a JSON object with a type tag, such as {"S": "a"}, found string`},
		{"plain JSON with a list", `{"n":1,"tags":["x"]}`, NotAnItem, `in.json:1: not an item: Item.n: want a JSON object with a type tag`},
		{"array of plain JSON", `[{"id":"a"},` + "\n" + `{"id":"b"}]`, NotAnItem, `in.json:1: not an item: Item.id: want a JSON object with a type tag`},
		{"object of nothing", "{}\n", Unrecognized, "in.json: not a known input"},
		{"first line damaged", `{"Item":{"id":{"S":"a"}` + "\n" + exportLines[1] + "\n", NotJSON, "in.json:1: not JSON"},
		{"second line damaged", exportLines[0] + "\n{]\n", NotJSON, "in.json:2: not JSON"},
		{"plain after wrapped", exportLines[0] + "\n" + `{"id":{"S":"b"}}`, NotAnItem, `in.json:2: member "id" stands where "Item" is expected`},
		{"more beside the item", exportLines[0][:len(exportLines[0])-1] + `,"x":1}` + "\n", NotAnItem, `in.json:1: member "x" stands beside the item`},
		{"incremental", `{"Metadata":{"WriteTimestampMicros":{"N":"1"}},"Keys":{"id":{"S":"a"}}}`, Unsupported, "incremental"},
		{"schema", `{"Table":{"TableName":"T","KeySchema":[]}}`, Unrecognized, "table description"},
		{"delete request", `{"T":[{"DeleteRequest":{"Key":{"id":{"S":"a"}}}}]}`, NotAnItem, `member "DeleteRequest" stands where "PutRequest" is expected`},
		{"array cut", `[{"id":{"S":"a"}},` + "\n" + `{"id":{"S":`, NotJSON, "in.json:2: not JSON"},
		{"array item", `[{"id":{"S":"a"}},` + "\n\n" + `{"id":{"X":"a"}}]`, TypeUnknown, "in.json:3: unknown type: Item.id"},
		{"model without key", `{"ModelName":"m","DataModel":[{"TableName":"T"}]}`, SchemaInvalid, "has no TableName or no KeyAttributes"},
		{"model item", `{"ModelName":"m","DataModel":[{"TableName":"T","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},` + "\n" +
			`"TableData":[{"id":{"S":"a"}},` + "\n" + `{"no":{"S":"a"}}]}]}`, KeyMissing, `in.json:3: the item has no attribute "id"`},
		{"endless text", `[{"id":{"S":"` + strings.Repeat("x", 2*maxItemBytes) + `"}}]`, TooLong, "in.json:1: the text of one item is longer"},
		{"duplicate attribute", `{"id":{"S":"a"},"id":{"S":"b"}}`, NotJSON, "in.json:1: not JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := drain(fstest.MapFS{"in.json": {Data: []byte(c.data)}}, "in.json", SourceOptions{})
			wantDamage(t, err, c.damage, c.text)
		})
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte(strings.Join(exportLines, "\n")))
	f.Add(pack([]byte(exportLines[0])))
	f.Add(packZstd([]byte("id,n:N,t:BOOL,ns:NS,m:M\na,1,true,\"[1,2]\",\"{\"\"k\"\":{\"\"S\"\":\"\"x\"\"}}\"\n")))
	f.Add([]byte("id,\"a\"\"b\"\r\nx,\"\r\n\"\r\n"))
	f.Add([]byte(`{"T":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}`))
	f.Add([]byte(`{"ModelName":"m","DataModel":[{"TableName":"T","KeyAttributes":{"PartitionKey":{"AttributeName":"id","AttributeType":"S"}},"TableData":[]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, name := range []string{"in", "in.csv"} {
			_, err := drain(fstest.MapFS{name: {Data: data}}, name, SourceOptions{})
			var input *InputError
			if err != nil && !errors.As(err, &input) {
				t.Errorf("%s: error %v of type %T, want an InputError", name, err, err)
			}
		}
	})
}
