package exporttest

import (
	"bytes"
	"crypto/md5" //nolint:gosec // the checksum that the export format uses
	"encoding/base64"
	"fmt"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Pack compresses data with gzip.
func Pack(data []byte) []byte {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.StatelessCompression) // many exports are small: no tables
	if err != nil {
		panic(err)
	}
	_, _ = z.Write(data) // a buffer never fails
	_ = z.Close()
	return b.Bytes()
}

// PackZstd compresses data with zstd.
func PackZstd(data []byte) []byte {
	z, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true))
	if err != nil {
		panic(err)
	}
	defer func() { _ = z.Close() }() // it has no resources
	return z.EncodeAll(data, nil)
}

// Flip changes the byte of s at an index. A negative index counts from the end.
func Flip(s string, at int) string {
	b := []byte(s)
	b[(at+len(b))%len(b)] ^= 1
	return string(b)
}

func sum64(data []byte) string {
	sum := md5.Sum(data)
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Dir is the folder of the full export; its first element is the bucket.
const Dir = "bucket/pre/AWSDynamoDB/01716790307109-5f9d6aaa"

// New builds a full export to S3 in the layout of the service. Each slice of lines
// becomes one data file.
func New(files ...[]string) fstest.MapFS {
	fsys := fstest.MapFS{Dir + "/_started": {}}
	var list strings.Builder
	total := 0
	for i, lines := range files {
		text := strings.Join(lines, "\n")
		if text != "" {
			text += "\n"
		}
		data := Pack([]byte(text))
		name := fmt.Sprintf("data/file%d.json.gz", i)
		fsys[path.Join(Dir, name)] = &fstest.MapFile{Data: data}
		fmt.Fprintf(&list, `{"itemCount":%d,"md5Checksum":"%s","etag":"x","dataFileS3Key":"%s"}`+"\n",
			len(lines), sum64(data), strings.TrimPrefix(path.Join(Dir, name), "bucket/"))
		total += len(lines)
	}
	put := func(name, text string) {
		fsys[path.Join(Dir, name)] = &fstest.MapFile{Data: []byte(text)}
		fsys[path.Join(Dir, strings.TrimSuffix(name, ".json")+".md5")] = &fstest.MapFile{Data: []byte(sum64([]byte(text)) + "\n")}
	}
	put("manifest-files.json", list.String())
	put("manifest-summary.json", fmt.Sprintf(`{"version":"2020-06-30","exportArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/T/export/01716790307109-5f9d6aaa",
		"tableArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/T","exportTime":"2024-05-27T06:11:47.109Z","s3Bucket":"bucket","s3Prefix":"pre",
		"manifestFilesS3Key":"pre/AWSDynamoDB/01716790307109-5f9d6aaa/manifest-files.json","itemCount":%d,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}`, total))
	return fsys
}

// edit replaces text in one file of an export, and removes its checksum, which would be
// reported first.
func edit(fsys fstest.MapFS, name, from, to string) {
	p := path.Join(Dir, name)
	delete(fsys, strings.TrimSuffix(p, ".json")+".md5")
	fsys[p] = &fstest.MapFile{Data: []byte(strings.Replace(string(fsys[p].Data), from, to, 1))}
}

// repack replaces the text of the first data file, and its MD5 in the manifest.
func repack(fsys fstest.MapFS, text string) {
	p := path.Join(Dir, "data/file0.json.gz")
	was := sum64(fsys[p].Data)
	fsys[p] = &fstest.MapFile{Data: Pack([]byte(text))}
	edit(fsys, "manifest-files.json", was, sum64(fsys[p].Data))
}

// Lines are two items in the format of a full export.
var Lines = []string{`{"Item":{"id":{"S":"a"},"n":{"N":"1"}}}`, `{"Item":{"id":{"S":"b"},"n":{"N":"2"}}}`}

// Damages lists every kind of damage that errors distinguish. The error message must
// contain the given text after the file's folder.
var Damages = []struct {
	Name   string
	Spoil  func(fsys fstest.MapFS)
	Damage string
	Text   string
}{
	{"truncated gzip", func(f fstest.MapFS) {
		p := Dir + "/data/file0.json.gz"
		f[p] = &fstest.MapFile{Data: f[p].Data[:len(f[p].Data)-12]}
	}, "packing-truncated", "/data/file0.json.gz: the gzip data ends early: the file is truncated"},
	{"corrupt gzip", func(f fstest.MapFS) {
		p := Dir + "/data/file0.json.gz"
		data := bytes.Clone(f[p].Data)
		data[len(data)-6] ^= 1 // in the CRC
		f[p] = &fstest.MapFile{Data: data}
	}, "packing-corrupt", "/data/file0.json.gz: the gzip data is damaged"},
	{"wrong MD5", func(f fstest.MapFS) {
		f[Dir+"/data/file1.json.gz"] = f[Dir+"/data/file0.json.gz"]
		edit(f, "manifest-files.json", `"itemCount":1`, `"itemCount":2`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":4`)
	}, "checksum-mismatch", "/data/file1.json.gz: the MD5 of the data file is"},
	{"a byte of the text flipped", func(f fstest.MapFS) { // its effect on the item is not the fault
		p := Dir + "/data/file0.json.gz"
		f[p] = &fstest.MapFile{Data: Pack([]byte(strings.Replace(strings.Join(Lines, "\n"), `"N":"2"`, `"O":"2"`, 1)))}
	}, "checksum-mismatch", "/data/file0.json.gz: the MD5 of the data file is"},
	{
		"missing data file", func(f fstest.MapFS) { delete(f, Dir+"/data/file1.json.gz") },
		"data-file-missing", "/data/file1.json.gz: the data file is missing; line 2 of manifest-files.json lists it",
	},
	{"wrong count of a file", func(f fstest.MapFS) {
		edit(f, "manifest-files.json", `"itemCount":2`, `"itemCount":5`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":6`)
	}, "count-mismatch", "/data/file0.json.gz: the file holds 2 items, but line 1 of manifest-files.json says 5"},
	{"more items than counted", func(f fstest.MapFS) {
		edit(f, "manifest-files.json", `"itemCount":2`, `"itemCount":1`)
		edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":2`)
	}, "count-mismatch", "/data/file0.json.gz:2: the file holds more items than the 1 that line 1 of manifest-files.json declares"},
	{
		"wrong total", func(f fstest.MapFS) { edit(f, "manifest-summary.json", `"itemCount":3`, `"itemCount":4`) },
		"count-mismatch", "/manifest-summary.json: manifest-summary.json says 4 items in all, but the files of manifest-files.json add up to 3",
	},
	{
		"missing summary", func(f fstest.MapFS) { delete(f, Dir+"/manifest-summary.json") },
		"manifest-missing", "/manifest-summary.json: the manifest is missing",
	},
	{
		"missing file list", func(f fstest.MapFS) { delete(f, Dir+"/manifest-files.json") },
		"manifest-missing", "/manifest-files.json: the manifest is missing",
	},
	{"no manifest at all", func(f fstest.MapFS) {
		for name := range f {
			if !strings.Contains(name, "/data/") {
				delete(f, name)
			}
		}
	}, "manifest-missing", "/manifest-summary.json: the manifest is missing"},
	{
		"summary not JSON", func(f fstest.MapFS) { edit(f, "manifest-summary.json", `"version":`, `"version" `) },
		"manifest-invalid", "/manifest-summary.json: the manifest cannot be parsed",
	},
	{
		"file list not JSON", func(f fstest.MapFS) { edit(f, "manifest-files.json", "}\n{", "}\n") },
		"manifest-invalid", "/manifest-files.json:2: the manifest cannot be parsed",
	},
	{"manifest checksum", func(f fstest.MapFS) {
		f[Dir+"/manifest-summary.md5"] = &fstest.MapFile{Data: []byte("rzAeIrtALbOlNdK5Hh8tgA==")}
	}, "checksum-mismatch", "/manifest-summary.json: the MD5 of the manifest is"},
	{
		"unknown version", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "2020-06-30", "2031-01-01") },
		"manifest-invalid", `the manifest has version "2031-01-01"`,
	},
	{
		"unknown type of export", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "FULL_EXPORT", "PARTIAL_EXPORT") },
		"manifest-invalid", `exportType is "PARTIAL_EXPORT", want FULL_EXPORT or INCREMENTAL_EXPORT`,
	},
	{
		"unknown format", func(f fstest.MapFS) { edit(f, "manifest-summary.json", "DYNAMODB_JSON", "PARQUET") },
		"manifest-invalid", `outputFormat is "PARQUET", want DYNAMODB_JSON or ION`,
	},
	{
		"a key that leaves the export", func(f fstest.MapFS) { edit(f, "manifest-files.json", "data/file0", "data/../../file0") },
		"manifest-invalid", "/manifest-files.json:1: dataFileS3Key does not name a file of the export",
	},
	{"extra data file", func(f fstest.MapFS) {
		f[Dir+"/data/zz.json.gz"] = &fstest.MapFile{Data: Pack(nil)}
	}, "data-file-extra", "/data/zz.json.gz: the data file is not listed in manifest-files.json"},
	{
		"line not JSON", func(f fstest.MapFS) { repack(f, Lines[0]+"\n{\"Item\":{\"id\"\n") },
		"not-json", "/data/file0.json.gz:2: not JSON",
	},
	{
		"line of another shape", func(f fstest.MapFS) { repack(f, Lines[0]+"\n[1]\n") },
		"not-an-item", `/data/file0.json.gz:2: found a JSON array; expected {"Item": …}`,
	},
	{
		"no key", func(f fstest.MapFS) { repack(f, Lines[0]+"\n"+`{"Item":{"n":{"N":"2"}}}`) },
		"key-missing", `/data/file0.json.gz:2: the item has no attribute "id", which is part of the key of table T`,
	},
	{"key of another type", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+`{"Item":{"id":{"BOOL":true},"n":{"N":"2"}}}`)
	}, "key-type-mismatch", `/data/file0.json.gz:2: key attribute "id" is of type BOOL`},
	{"unknown type", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+`{"Item":{"id":{"S":"b"},"l":{"L":[{"S":"x"},{"Q":"y"}]}}}`)
	}, "type-unknown", "/data/file0.json.gz:2: unknown type: Item.l[1]"},
	{"no number", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"N":"2O"}}}`)
	}, "number-invalid", `/data/file0.json.gz:2: not a DynamoDB number: Item.n: not a number: "2O"`},
	{"too many digits", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"NS":["1","`+strings.Repeat("9", 39)+`"]}}}`)
	}, "number-invalid", "/data/file0.json.gz:2: not a DynamoDB number: Item.n"},
	{"empty set", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+`{"Item":{"id":{"S":"b"},"n":{"SS":[]}}}`)
	}, "value-invalid", "/data/file0.json.gz:2: not a DynamoDB value: Item.n"},
	{"endless line", func(f fstest.MapFS) {
		repack(f, Lines[0]+"\n"+strings.Repeat(" ", 8<<20+1))
	}, "too-long", "/data/file0.json.gz:2: more than 8388608 bytes of white space between items"},
}

// Sample returns an export of three items in three data files; one of the files is empty.
func Sample() fstest.MapFS {
	return New(Lines, []string{`{"Item":{"id":{"S":"c"},"n":{"N":"3"}}}`}, nil)
}

// Time is the time of the exports that New builds.
var Time = time.Date(2024, 5, 27, 6, 11, 47, 109e6, time.UTC)

// AddIncremental adds an incremental export of the given lines. Its data files go into
// the folder that all incremental exports share.
func AddIncremental(fsys fstest.MapFS, id string, from, to time.Time, lines ...string) {
	dir := path.Join(path.Dir(Dir), id)
	data := Pack([]byte(strings.Join(lines, "\n") + "\n"))
	if len(lines) == 0 {
		data = Pack(nil)
	}
	name := path.Join(path.Dir(Dir), "data", id+"-0.json.gz")
	fsys[name] = &fstest.MapFile{Data: data}
	put := func(file, text string) {
		fsys[path.Join(dir, file)] = &fstest.MapFile{Data: []byte(text)}
		fsys[path.Join(dir, strings.TrimSuffix(file, ".json")+".checksum")] = &fstest.MapFile{Data: []byte(sum64([]byte(text)))}
	}
	put("manifest-files.json", fmt.Sprintf(`{"itemCount":%d,"md5Checksum":"%s","dataFileS3Key":"%s"}`+"\n", len(lines), sum64(data), strings.TrimPrefix(name, "bucket/")))
	put("manifest-summary.json", fmt.Sprintf(`{"version":"2023-08-01","tableArn":"arn:aws:dynamodb:eu-central-1:123456789012:table/T",
		"exportFromTime":"%s","exportToTime":"%s","manifestFilesS3Key":"pre/AWSDynamoDB/%s/manifest-files.json","itemCount":%d,
		"outputFormat":"DYNAMODB_JSON","outputView":"NEW_AND_OLD_IMAGES","exportType":"INCREMENTAL_EXPORT"}`, from.UTC().Format("2006-01-02T15:04:05.000Z07:00"), to.UTC().Format("2006-01-02T15:04:05.000Z07:00"), id, len(lines)))
}

// Change returns one line of an incremental export. It leaves out an image that is "".
func Change(written time.Time, keys, old, new string) string {
	line := fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":%s`, written.UnixMicro(), keys)
	if old != "" {
		line += `,"OldImage":` + old
	}
	if new != "" {
		line += `,"NewImage":` + new
	}
	return line + "}"
}

// Key returns a key as JSON.
func Key(id string) string { return fmt.Sprintf(`{"id":{"S":%q}}`, id) }

// Item returns an item as JSON.
func Item(id string, n int) string { return fmt.Sprintf(`{"id":{"S":%q},"n":{"N":"%d"}}`, id, n) }

// WantDamage fails tb unless err is a source.Error of that kind, with the given text.
func WantDamage[Damage ~string](tb testing.TB, err error, got, want Damage, text string) {
	tb.Helper()
	if err == nil || got != want || !strings.Contains(err.Error(), text) {
		tb.Errorf("damage %q, error %v; want %q, %q", got, err, want, text)
	}
}
