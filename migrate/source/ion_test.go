package source

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// TestOpen_Ion reads an export in Ion text, and an incremental one after it, and gets the same
// items as from DynamoDB JSON.
func TestOpen_Ion(t *testing.T) {
	t.Parallel()
	item := func(text string) attr.Item {
		t.Helper()
		it, err := attr.UnmarshalItem([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return it
	}
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	full := []attr.Item{
		item(`{"id":{"S":"a"},"all":{"L":[{"N":"-1.5E+30"},{"B":"AQI="},{"BOOL":true},{"NULL":true},{"SS":["x"]},{"NS":["7"]},{"BS":["AQ=="]},{"M":{"":{"S":"\"\n"}}}]}}`),
		item(`{"id":{"S":"b"}}`),
	}
	read := func(format string) (out []string) {
		t.Helper()
		root, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		export := s3export.Export{ID: "01", View: "NEW_AND_OLD_IMAGES", TableArn: "arn:aws:dynamodb:us-east-1:123456789012:table/t", Format: format, Time: at, Started: at, Bucket: "b"}
		w, err := s3export.Create(root, export)
		if err != nil {
			t.Fatal(err)
		}
		for _, it := range full {
			if err := w.Add(it); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(at); err != nil {
			t.Fatal(err)
		}
		// The later changes.
		export.ID, export.From, export.Time, export.Started = "02", at, at.Add(time.Hour), at.Add(time.Hour)
		if w, err = s3export.Create(root, export); err != nil {
			t.Fatal(err)
		}
		for _, c := range []s3export.Change{
			{WriteMicros: at.Add(time.Minute).UnixMicro(), Keys: item(`{"id":{"S":"b"}}`), Old: item(`{"id":{"S":"b"}}`)},
			{WriteMicros: at.Add(time.Minute).UnixMicro(), Keys: item(`{"id":{"S":"c"}}`), New: item(`{"id":{"S":"c"},"n":{"N":"1"}}`)},
		} {
			if err := w.AddChange(c); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(at.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
		src, err := OpenFS(root.FS(), "AWSDynamoDB", Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range src.Tables[0].Entries() {
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, string(attr.AppendItemJSON(nil, e.Item)))
		}
		return out
	}
	want, got := read(s3export.FormatDynamoDBJSON), read(s3export.FormatIon)
	if strings.Join(got, "\n") != strings.Join(want, "\n") || len(got) != 2 || !strings.Contains(got[1], `"c"`) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestOpen_IonLines reads a file of Ion text; a damaged line is reported as one item.
func TestOpen_IonLines(t *testing.T) {
	t.Parallel()
	const good, bad = `$ion_1_0 {Item:{id:"a",n:7.}}`, "$ion_1_0 {Item:{id:}}"
	text := good + "\n\n" + bad + "\n$ion_1_0 {Item:{id:\"c\"}}"
	first, err := OpenFS(fstest.MapFS{"first.ion": {Data: []byte(bad + "\n" + good)}}, "first.ion", Options{})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for e, err := range first.Tables[0].All {
		found = append(found, fmt.Sprint(string(attr.AppendItemJSON(nil, e.Item)), err))
	}
	if len(found) != 2 || !strings.Contains(found[0], "first.ion:1: not an item: ") || first.Format != "ion-text" || first.Tables[0].Name != "first" {
		t.Errorf("%s: table %s: %q", first.Format, first.Tables[0].Name, found)
	}
	for _, packed := range [][]byte{[]byte(text), exporttest.Pack([]byte(text))} {
		src, err := OpenFS(fstest.MapFS{"items.ion": {Data: packed}}, "items.ion", Options{Key: "id"})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for e, err := range src.Tables[0].All {
			if err != nil {
				got = append(got, err.Error())
				continue
			}
			got = append(got, string(attr.AppendItemJSON(nil, e.Item)))
		}
		if len(got) != 3 || got[0] != `{"id":{"S":"a"},"n":{"N":"7"}}` || got[2] != `{"id":{"S":"c"}}` {
			t.Errorf("got %q", got)
		} else if !strings.Contains(got[1], "items.ion:3: not an item: ") || !strings.Contains(got[1], "byte") {
			t.Errorf("the damaged line is reported as %q", got[1])
		}
	}
}
