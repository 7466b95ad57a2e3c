package s3export

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
)

var export = Export{
	ID: NewID(time.UnixMilli(1716790307109), 0x5f9d6aaa), TableArn: "arn:aws:dynamodb:us-east-1:000000000000:table/T", Time: time.UnixMilli(1716790307109),
}

// bucket returns an empty folder.
func bucket(t *testing.T) *os.Root {
	t.Helper()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	})
	return root
}

// filesOf returns the files of a bucket, with data files as their text.
func filesOf(t *testing.T, root *os.Root) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root.FS(), name)
		if err == nil && path.Ext(name) == ".gz" {
			var z *gzip.Reader
			if z, err = gzip.NewReader(bytes.NewReader(text)); err == nil {
				text, err = io.ReadAll(z)
			}
		}
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func write(t *testing.T, root *os.Root, e Export, n int) *Writer {
	t.Helper()
	w, err := Create(root, e)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := w.Add(attr.Item{"id": attr.Value{Type: attr.N, Str: fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func TestWriter(t *testing.T) {
	t.Parallel()
	root := bucket(t)
	e := export
	e.FileBytes = 50 // two lines
	if err := root.MkdirAll("AWSDynamoDB/."+e.ID+"/data/of a run that was killed", 0o777); err != nil {
		t.Fatal(err)
	}
	w := write(t, root, e, 3)
	if _, err := root.Stat(e.Path()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before Finish: error %v, want that the export is not there", err)
	}
	if err := w.Finish(export.Time); err != nil {
		t.Fatal(err)
	}
	w.Abandon() // no effect
	if w.Files() != 2 {
		t.Errorf("%d data files, want 2", w.Files())
	}
	got := filesOf(t, root)
	list := got[e.Path()+"/"+FilesName]
	want := map[string]string{}
	for i, line := range strings.Split(strings.TrimSuffix(list, "\n"), "\n") {
		_, key, _ := strings.Cut(line, `"dataFileS3Key":"`)
		want[strings.TrimSuffix(key, `"}`)] = [...]string{
			`{"Item":{"id":{"N":"0"}}}` + "\n" + `{"Item":{"id":{"N":"1"}}}` + "\n", `{"Item":{"id":{"N":"2"}}}` + "\n",
		}[i]
	}
	const arn, id = "arn:aws:dynamodb:us-east-1:000000000000:table/T", "01716790307109-5f9d6aaa"
	summary := `{"version":"2020-06-30","exportArn":"` + arn + `/export/` + id + `","startTime":"2024-05-27T06:11:47.109Z","endTime":"2024-05-27T06:11:47.109Z","tableArn":"` + arn +
		`","exportTime":"2024-05-27T06:11:47.109Z","s3Prefix":null,"manifestFilesS3Key":"AWSDynamoDB/` + id + `/manifest-files.json","billedSizeBytes":11,"itemCount":3,"outputFormat":"DYNAMODB_JSON","exportType":"FULL_EXPORT"}` + "\n"
	for name, text := range map[string]string{
		"_started": "", "manifest-files.json": list, "manifest-files.md5": ChecksumOf([]byte(list)), "manifest-summary.json": summary, "manifest-summary.md5": ChecksumOf([]byte(summary)),
	} {
		want["AWSDynamoDB/"+id+"/"+name] = text
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if _, err := Create(root, e); !errors.Is(err, fs.ErrExist) {
		t.Errorf("again: error %v, want that it is there", err)
	}
}

// An export without items has a data file without lines.
func TestWriter_Empty(t *testing.T) {
	t.Parallel()
	root := bucket(t)
	if err := write(t, root, export, 0).Finish(export.Time); err != nil {
		t.Fatal(err)
	}
	if got := filesOf(t, root); len(got) != 6 || !strings.Contains(got[export.Path()+"/"+SummaryName], `"itemCount":0,`) {
		t.Errorf("files %q", got)
	}
}

// An abandoned export leaves no files.
func TestWriter_Abandon(t *testing.T) {
	t.Parallel()
	root := bucket(t)
	write(t, root, export, 2).Abandon()
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil || len(entries) > 0 {
		t.Errorf("%v is left, error %v", entries, err)
	}
}

func TestAppendChange(t *testing.T) {
	t.Parallel()
	item := func(id string) attr.Item { return attr.Item{"id": attr.Value{Type: attr.S, Str: id}} }
	for want, c := range map[string]Change{
		`{"Metadata":{"WriteTimestampMicros":{"N":"7"}},"Keys":{"id":{"S":"k"}},"OldImage":{"id":{"S":"o"}},"NewImage":{"id":{"S":"n"}}}`: {WriteMicros: 7, Keys: item("k"), Old: item("o"), New: item("n")},
		`{"Metadata":{"WriteTimestampMicros":{"N":"7"}},"Keys":{"id":{"S":"k"}},"NewImage":{"id":{"S":"n"}}}`:                             {WriteMicros: 7, Keys: item("k"), New: item("n")},
		`{"Metadata":{"WriteTimestampMicros":{"N":"7"}},"Keys":{"id":{"S":"k"}}}`:                                                         {WriteMicros: 7, Keys: item("k")},
	} {
		if got := string(AppendChange(nil, c)); got != want+"\n" {
			t.Errorf("got  %swant %s", got, want)
		}
		text := func(item attr.Item) Text {
			if item == nil {
				return Text{}
			}
			return Text{JSON: attr.AppendItemJSON(nil, item), Size: item.Size()}
		}
		if got := string(appendChangeText(nil, ChangeText{WriteMicros: c.WriteMicros, Keys: c.Keys, Old: text(c.Old), New: text(c.New)})); got != want+"\n" {
			t.Errorf("of texts: got  %swant %s", got, want)
		}
	}
}

func TestSummary_DataPath(t *testing.T) {
	t.Parallel()
	const manifest = "pre/AWSDynamoDB/01/manifest-files.json"
	for _, c := range []struct{ manifest, key, want string }{
		{manifest, "pre/AWSDynamoDB/01/data/a.gz", "in/01/data/a.gz"},
		{manifest, "pre/AWSDynamoDB/data/a.gz", "in/data/a.gz"},
		{"", "pre/AWSDynamoDB/01/data/a.gz", "in/01/data/a.gz"},
		{manifest, "pre/AWSDynamoDB/01/data/../../a.gz", ""},
		{manifest, "pre/AWSDynamoDB/01/other/a.gz", ""},
		{manifest, "a.gz", ""},
		{"", "a.gz", ""},
	} {
		got, err := (&Summary{ManifestFilesS3Key: c.manifest}).DataPath("in/01", c.key)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s of manifest %q: %q, error %v; want %q", c.key, c.manifest, got, err, c.want)
		}
	}
}

// The manifests of an incremental export, in a folder of a bucket.
func TestWriter_Incremental(t *testing.T) {
	t.Parallel()
	item := func(id string) attr.Item { return attr.Item{"id": attr.Value{Type: attr.S, Str: id}} }
	for format, want := range map[string]string{
		FormatDynamoDBJSON: `{"Metadata":{"WriteTimestampMicros":{"N":"7"}},"Keys":{"id":{"S":"k"}},"OldImage":{"id":{"S":"o"}}}` + "\n" +
			`{"Metadata":{"WriteTimestampMicros":{"N":"8"}},"Keys":{"id":{"S":"l"}},"NewImage":{"id":{"S":"n"}}}` + "\n",
		FormatIon: `$ion_1_0 {Metadata:{WriteTimestampMicros:7.},Keys:{id:"k"},OldImage:{id:"o"}}` + "\n" +
			`$ion_1_0 {Metadata:{WriteTimestampMicros:8.},Keys:{id:"l"},NewImage:{id:"n"}}` + "\n",
	} {
		root := bucket(t)
		e := export
		e.From, e.View, e.Bucket, e.Prefix, e.Format = e.Time.Add(-time.Hour), "NEW_AND_OLD_IMAGES", "b", "x/y", format
		e.SSEAlgorithm, e.KMSKeyID, e.TableID, e.Started = "KMS", "key", "id", e.Time.Add(time.Second)
		w, err := Create(root, e)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []Change{{WriteMicros: 7, Keys: item("k"), Old: item("o")}, {WriteMicros: 8, Keys: item("l"), New: item("n")}} {
			if err := w.AddChange(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(e.Time.Add(2 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if w.Items() != 2 || w.BilledBytes() != 10_000_000 {
			t.Errorf("%d items, %d bytes", w.Items(), w.BilledBytes())
		}
		const id = "01716790307109-5f9d6aaa"
		files := filesOf(t, root)
		summary := `{"version":"2023-08-01","exportArn":"arn:aws:dynamodb:us-east-1:000000000000:table/T/export/` + id + `","startTime":"2024-05-27T06:11:48.109Z","endTime":"2024-05-27T06:11:49.109Z",` +
			`"tableArn":"arn:aws:dynamodb:us-east-1:000000000000:table/T","tableId":"id","exportFromTime":"2024-05-27T05:11:47.109Z","exportToTime":"2024-05-27T06:11:47.109Z",` +
			`"s3Bucket":"b","s3Prefix":"x/y","s3SseAlgorithm":"KMS","s3SseKmsKeyId":"key","manifestFilesS3Key":"x/y/AWSDynamoDB/` + id + `/manifest-files.json",` +
			`"billedSizeBytes":10000000,"itemCount":2,"outputFormat":"` + format + `","exportType":"INCREMENTAL_EXPORT","outputView":"NEW_AND_OLD_IMAGES"}` + "\n"
		if got := files["x/y/AWSDynamoDB/"+id+"/"+SummaryName]; got != summary {
			t.Errorf("got  %swant %s", got, summary)
		}
		for name, text := range files {
			if path.Ext(name) != ".gz" {
				continue
			}
			if text != want || strings.HasSuffix(name, ".ion.gz") != (format == FormatIon) {
				t.Errorf("%s:\n%s", name, text)
			}
			if list := files["x/y/AWSDynamoDB/"+id+"/"+FilesName]; path.Dir(name) != "x/y/AWSDynamoDB/data" || !strings.Contains(list, `"dataFileS3Key":"`+name+`"`) {
				t.Errorf("the data file is %s, the manifest says %s", name, list)
			}
		}
		if len(files) != 6 {
			t.Errorf("%d files, want 6: %v", len(files), files)
		}
	}
}

// A killed run leaves data files of an incremental export in the shared folder. The next run
// removes them; other exports keep theirs.
func TestWriter_IncrementalKilled(t *testing.T) {
	t.Parallel()
	root := bucket(t)
	e := export
	e.From, e.View, e.FileBytes = e.Time.Add(-time.Hour), "NEW_IMAGE", 1
	other := e
	other.ID = NewID(e.Time, 7)
	begin := func(e Export, n int) *Writer {
		t.Helper()
		w, err := Create(root, e)
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			if err := w.AddChange(Change{WriteMicros: int64(i), Keys: attr.Item{"id": attr.Value{Type: attr.N, Str: fmt.Sprint(i)}}}); err != nil {
				t.Fatal(err)
			}
		}
		return w
	}
	if err := begin(other, 1).Finish(e.Time); err != nil {
		t.Fatal(err)
	}
	kept := filesOf(t, root)
	if err := begin(e, 3).share(); err != nil { // then killed
		t.Fatal(err)
	}
	begin(e, 0).Abandon()
	if diff := cmp.Diff(kept, filesOf(t, root)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	w := begin(e, 2)
	if err := w.Finish(e.Time); err != nil {
		t.Fatal(err)
	}
	w.Abandon() // no effect
	if files := filesOf(t, root); len(files) != len(kept)+7 {
		t.Errorf("%d files, want %d: %v", len(files), len(kept)+7, files)
	}
}

// Folders created for an abandoned export are removed with it, others stay.
func TestWriter_AbandonPrefix(t *testing.T) {
	t.Parallel()
	root := bucket(t)
	if err := root.MkdirAll("x", 0o777); err != nil {
		t.Fatal(err)
	}
	if err := root.WriteFile("x/other", nil, 0o666); err != nil {
		t.Fatal(err)
	}
	e := export
	e.Prefix = "x/y/z"
	write(t, root, e, 2).Abandon()
	if got := filesOf(t, root); len(got) != 1 {
		t.Errorf("%v is left", got)
	}
	if _, err := root.Stat("x/y"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder is left, error %v", err)
	}
}
