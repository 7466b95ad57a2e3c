package source

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/migrate/internal/exporttest"
)

// images returns the members of a record with the images of an item; 0 leaves one out.
func images(id string, old, new int) string {
	text := `"Keys":` + exporttest.Key(id)
	if new != 0 {
		text += `,"NewImage":` + exporttest.Item(id, new)
	}
	if old != 0 {
		text += `,"OldImage":` + exporttest.Item(id, old)
	}
	return text
}

func event(old, new int) string {
	switch {
	case old == 0:
		return eventInsert
	case new == 0:
		return eventRemove
	}
	return eventModify
}

// kinesisRecord returns a line of serve --kinesis-dir.
func kinesisRecord(eventID string, at time.Time, id string, old, new int) string {
	return fmt.Sprintf(`{"awsRegion":"us-east-1","eventID":"%s","eventName":"%s","userIdentity":null,"recordFormat":"application/json","tableName":"T","dynamodb":{"ApproximateCreationDateTime":%d,%s,"SizeBytes":9},"eventSource":"aws:dynamodb"}`,
		eventID, event(old, new), at.UnixMilli(), images(id, old, new)) + "\n"
}

// streamRecord returns a record of DynamoDB Streams, by its sequence number.
func streamRecord(number int, at time.Time, id string, old, new int) string {
	return fmt.Sprintf(`{"eventID":"e%d","eventName":"%s","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"us-east-1","userIdentity":{"PrincipalId":"p"},"dynamodb":{"ApproximateCreationDateTime":%q,%s,"SequenceNumber":"%d","SizeBytes":9,"StreamViewType":"NEW_AND_OLD_IMAGES"}}`,
		number, event(old, new), at.Format(time.RFC3339), images(id, old, new), number)
}

func withRecords(files map[string]string) fstest.MapFS {
	fsys := exporttest.Sample() // a 1, b 2, c 3
	for name, text := range files {
		fsys["bucket/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestOpen_ChangeRecords(t *testing.T) {
	t.Parallel()
	later := exporttest.Time.Add(time.Hour)
	at := func(ms int) time.Time { return later.Add(time.Duration(ms) * time.Millisecond) }
	page := func(records ...string) string {
		return `{"Records":[` + strings.Join(records, ",") + `],"NextShardIterator":"x"}` + "\n"
	}
	want := exporttest.Item("a", 1) + "\n" + exporttest.Item("b", 21) + "\n" + exporttest.Item("d", 5) + "\n"
	kinesis := []string{
		kinesisRecord("1", at(1), "b", 2, 20), kinesisRecord("2", at(1), "b", 20, 22), kinesisRecord("3", at(1), "b", 22, 21),
		kinesisRecord("4", at(2), "c", 3, 0), kinesisRecord("5", at(3), "d", 0, 4), kinesisRecord("6", at(4), "d", 4, 5), kinesisRecord("7", at(5), "e", 0, 1), kinesisRecord("8", at(6), "e", 1, 0),
	}
	stream := []string{
		streamRecord(8, later, "b", 2, 20), streamRecord(9, later, "c", 3, 0), streamRecord(10, later, "b", 20, 21), streamRecord(11, later, "d", 0, 4), streamRecord(100, later, "d", 4, 5),
	}
	arn := strings.NewReplacer(`"awsRegion"`, `"eventSourceARN":"arn:aws:dynamodb:eu-central-1:123456789012:table/T/stream/2024-05-27T00:00:00.000","awsRegion"`)
	reversed := slices.Clone(stream)
	slices.Reverse(reversed)
	for name, files := range map[string]map[string]string{
		"kinesis":                  {"orders.jsonl": strings.Join(kinesis, "")},
		"kinesis, delivered again": {"orders.jsonl": strings.Join(slices.Concat(kinesis[:4], kinesis[1:], kinesis[5:7]), "")},
		"kinesis, two files":       {"k/1.jsonl": strings.Join(kinesis[4:], ""), "k/2.gz": string(exporttest.Pack([]byte(strings.Join(kinesis[:4], "")))), "k/README.txt": "hello"},
		"pages of GetRecords":      {"r.json": page() + page(stream[:3]...) + page(stream[2:]...)},
		"another order of shards":  {"r.json": page(reversed...)},
		"lines of Lambda":          {"r.json": arn.Replace(strings.Join(stream, "\n"))},
		"arrays of Pipes":          {"r.json": arn.Replace("[" + strings.Join(stream[:2], ",") + "]\n[" + strings.Join(stream[2:], ",") + "]\n")},
		"new images alone":         {"r.json": strings.NewReplacer(`,"OldImage":`+exporttest.Item("b", 2), "", `,"OldImage":`+exporttest.Item("b", 20), "", "NEW_AND_OLD_IMAGES", "NEW_IMAGE").Replace(page(stream...))},
		"also before the export":   {"r.json": page(append(stream, streamRecord(1, exporttest.Time.Add(-time.Hour), "a", 0, 1))...)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fsys := withRecords(files)
			if got := readAllItems(t, fsys, "bucket", Options{Key: "id"}); got != want {
				t.Errorf("items:\n%s\nwant:\n%s", got, want)
			}
			src, err := OpenFS(fsys, "bucket", Options{})
			if err != nil || src.Format != formatRecords || !src.Tables[0].FullTime.Equal(exporttest.Time) || src.Tables[0].ExportTime.Before(later.Truncate(time.Second)) {
				t.Errorf("source %+v, error %v", src, err)
			}
		})
	}
}

// The result does not depend on the memory for changes and for sorting.
func TestTable_ChangesOfRecords(t *testing.T) {
	t.Parallel()
	later := exporttest.Time.Add(time.Hour)
	fsys := withRecords(map[string]string{"r.jsonl": kinesisRecord("1", later, "b", 2, 20) + kinesisRecord("2", later.Add(1e6), "b", 20, 21) + kinesisRecord("1", later, "b", 2, 20) +
		kinesisRecord("3", later, "c", 3, 0) + kinesisRecord("4", later, "d", 0, 4) + kinesisRecord("5", later.Add(1e6), "d", 4, 0)})
	want := []string{
		exporttest.Key("b") + ": " + exporttest.Item("b", 2) + exporttest.Item("b", 20) + " -> " + exporttest.Item("b", 21),
		exporttest.Key("c") + ": " + exporttest.Item("c", 3) + " -> null",
		exporttest.Key("d") + ": " + exporttest.Item("d", 4) + " -> null",
	}
	for _, most := range []int{500, maxReplayBytes} {
		tr := tree{FS: fsys}
		full, err := openOneExport(tr, exporttest.Dir)
		if err != nil {
			t.Fatal(err)
		}
		sets, err := recordsOf(tr, "bucket", []string{exporttest.Dir}, map[string]exportPart{"T": full})
		if err != nil {
			t.Fatal(err)
		}
		sets["T"].most = most - 499
		r, err := replayRecords(tr, full, sets["T"])
		if err != nil {
			t.Fatal(err)
		}
		r.maxBytes = most
		var got []string
		r.eachChange(func(c Change, err error) bool {
			if err != nil {
				t.Fatal(err)
			}
			text := string(attr.AppendItemJSON(nil, c.Key)) + ": "
			for _, was := range c.Was {
				text += string(attr.AppendItemJSON(nil, was))
			}
			got = append(got, text+" -> "+string(attr.AppendItemJSON(nil, c.Now)))
			return true
		})
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("with %d bytes: %q, want %q", most, got, want)
		}
	}
}

func TestOpen_ChangeRecordsRefused(t *testing.T) {
	t.Parallel()
	later := exporttest.Time.Add(time.Hour)
	line := kinesisRecord("1", later, "b", 2, 20)
	for name, c := range map[string]struct {
		text   string
		damage Damage
		want   string
	}{
		"keys only":           {strings.Replace(strings.Replace(line, `,"NewImage":`+exporttest.Item("b", 20), "", 1), `"SizeBytes"`, `"StreamViewType":"KEYS_ONLY","SizeBytes"`, 1), Unsupported, "bucket/r.jsonl:1: the record of the MODIFY (StreamViewType KEYS_ONLY) has no NewImage"},
		"missing before":      {kinesisRecord("1", later, "b", 3, 20), ReplayGap, "earlier change records are missing"},
		"missing creation":    {kinesisRecord("1", later, "x", 3, 20), ReplayGap, "the MODIFY of item " + exporttest.Key("x") + " does not fit the full export"},
		"created twice":       {kinesisRecord("1", later, "b", 0, 20), ReplayGap, "the INSERT of item"},
		"missing between":     {line + kinesisRecord("2", later.Add(1e6), "b", 21, 22), ReplayOrder, "does not match the state before the change"},
		"missing deletion":    {line + kinesisRecord("2", later.Add(1e6), "b", 0, 22), ReplayGap, "the records in between are missing"},
		"missing after":       {kinesisRecord("1", exporttest.Time.Add(-time.Hour), "b", 2, 20) + kinesisRecord("2", later, "d", 0, 1), ReplayGap, "later records are missing"},
		"all before":          {kinesisRecord("1", exporttest.Time.Add(-time.Hour), "b", 1, 2), ReplayOrder, "remove the records from the folder"},
		"another table":       {strings.Replace(line, `"T"`, `"U"`, 1), ReplayGap, "the change records are of table U, whose full export is not in the folder"},
		"of stream and queue": {line + strings.Replace(streamRecord(1, later, "b", 2, 20), `"eventID"`, `"tableName":"T","eventID"`, 1), Unsupported, "come from a stream and from Kinesis"},
		"one without a table": {line + streamRecord(1, later, "b", 2, 20), Unsupported, "do not name their table"},
		"cut":                 {line + line[:50], NotJSON, "bucket/r.jsonl:2: not JSON"},
		"no time":             {strings.Replace(line, "Approximate", "", 1), NotAnItem, "is not a time"},
		"no change":           {line + `{"eventName":"INSERT"}`, NotAnItem, `it has no member "dynamodb"`},
		"unknown event":       {strings.Replace(line, "MODIFY", "TRUNCATE", 1), NotAnItem, "is not INSERT, MODIFY or REMOVE"},
		"another key":         {strings.Replace(line, exporttest.Key("b"), exporttest.Key("c"), 1), ValueInvalid, "differs from Keys"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := drain(withRecords(map[string]string{"r.jsonl": c.text}), "bucket", Options{})
			WantDamage(t, err, c.damage, c.want)
		})
	}
	for text, want := range map[string]string{
		line: "put it into a folder with the full export",
		`{"Records":[` + streamRecord(1, later, "a", 1, 2) + `]}`: "put it into a folder with the full export",
		`[` + streamRecord(1, later, "a", 1, 2) + `]`:             "put it into a folder with the full export",
		`{"Records":[{"SequenceNumber":"1","Data":"e30="}]}`:      "whose Data is base64",
	} {
		_, err := OpenFS(fstest.MapFS{"in": {Data: []byte(text)}}, "in", Options{})
		WantDamage(t, err, Unsupported, want)
	}
	fsys := withRecords(map[string]string{"r.jsonl": line})
	exporttest.AddIncremental(fsys, "01", exporttest.Time, later, exporttest.Change(later, exporttest.Key("d"), "", ""))
	_, err := OpenFS(fsys, "bucket", Options{})
	WantDamage(t, err, Unsupported, "incremental exports and change records")
	// A table of a request may be called Records.
	src, err := OpenFS(fstest.MapFS{"in": {Data: []byte(`{"Records":[{"PutRequest":{"Item":{"id":{"S":"a"}}}}]}`)}}, "in", Options{})
	if err != nil || src.Format != "batch-write" {
		t.Errorf("source %+v, error %v", src, err)
	}
}
