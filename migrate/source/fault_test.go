package source

import (
	"bytes"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// If the MD5 of a data file differs from the manifest, the error reports that, and not its
// effect on an item.
func TestExport_ChecksumFirst(t *testing.T) {
	t.Parallel()
	const data = exporttest.Dir + "/data/file0.json.gz"
	text := strings.Join(exporttest.Lines, "\n") + "\n"
	for _, c := range []struct {
		name, from, to string
		damage         Damage
		text           string
	}{
		{"a type tag", `"N":"2"`, `"O":"2"`, ChecksumMismatch, "file0.json.gz: the MD5 of the data file is"},
		{"a key's name", `"id":{"S":"b"}`, `"ie":{"S":"b"}`, ChecksumMismatch, "file0.json.gz: the MD5 of the data file is"},
		{"a line's end", "\n{", "\n\n{}\n{", ChecksumMismatch, "file0.json.gz: the MD5 of the data file is"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			fsys := exporttest.Sample()
			changed := strings.Replace(text, c.from, c.to, 1)
			if changed == text {
				t.Fatalf("%q is not in the file", c.from)
			}
			fsys[data] = &fstest.MapFile{Data: exporttest.Pack([]byte(changed))}
			n, err := drain(fsys, "bucket", Options{Key: "id"})
			WantDamage(t, err, c.damage, c.text)
			if n != 0 {
				t.Errorf("%d items of the damaged file came before that was said", n)
			}
		})
	}
	// Damaged compression is reported along with it.
	fsys := exporttest.Sample()
	whole := fsys[data].Data
	fsys[data] = &fstest.MapFile{Data: bytes.Clone(whole[:len(whole)-12])}
	_, err := drain(fsys, "bucket", Options{Key: "id"})
	WantDamage(t, err, PackingTruncated, "the file is truncated; the MD5 of the data file is")

	// The same applies to changes of an incremental export.
	fsys = exporttest.Sample()
	later := exporttest.Time.Add(time.Hour)
	exporttest.AddIncremental(fsys, "01716793907109-5f9d6bbb", exporttest.Time, later,
		exporttest.Change(later.Add(-time.Minute), exporttest.Key("a"), exporttest.Item("a", 1), exporttest.Item("a", 2)))
	if n, err := drain(fsys, "bucket", Options{Key: "id"}); n != 3 || err != nil {
		t.Fatalf("with an incremental export: %d items, error %v", n, err)
	}
	changes := path.Join(path.Dir(exporttest.Dir), "data", "01716793907109-5f9d6bbb-0.json.gz")
	fsys[changes] = &fstest.MapFile{Data: exporttest.Pack([]byte("{}\n"))}
	_, err = drain(fsys, "bucket", Options{Key: "id"})
	WantDamage(t, err, ChecksumMismatch, "5f9d6bbb-0.json.gz: the MD5 of the data file is")

	// The same applies to dead letters: a damaged file has none.
	fsys = exporttest.Sample()
	fsys[data] = &fstest.MapFile{Data: exporttest.Pack([]byte(strings.Replace(text, `"N":"2"`, `"O":"2"`, 1)))}
	src, err := OpenFS(fsys, "bucket", Options{Key: "id"})
	if err != nil {
		t.Fatal(err)
	}
	src.Tables[0].Lenient = true
	for _, err = range src.Tables[0].Entries() {
		if err != nil {
			break
		}
	}
	WantDamage(t, err, ChecksumMismatch, "the MD5 of the data file is")
}

// A page of a Scan that is not the last one is not a whole table: the missing rest would go
// unnoticed.
func TestInfer_PageOfSeveral(t *testing.T) {
	t.Parallel()
	const page = `{"Items":[{"id":{"S":"a"}}],"Count":1`
	for member, refused := range map[string]bool{
		"":                                     false,
		`,"LastEvaluatedKey":null`:             false,
		`,"LastEvaluatedKey":{}`:               false,
		`,"LastEvaluatedKey":{"id":{"S":"a"}}`: true,
		`,"NextToken":"eyJFeGNsdXNpdmVTdGFydEtl"`: true,
	} {
		n, err := drain(fstest.MapFS{"in.json": {Data: []byte(page + member + "}")}}, "in.json", Options{Key: "id"})
		if refused {
			WantDamage(t, err, Unsupported, "in.json:1: the response is one page of several")
		} else if n != 1 || err != nil {
			t.Errorf("%s: %d items, error %v", member, n, err)
		}
	}
}
