package facade

import (
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// exporting is a server with buckets, its own clock, and a table with point-in-time recovery.
type exporting struct {
	*Server
	now *clock.Clock
	dir string // with a folder for each bucket
}

func newExporting(t *testing.T, change ...func(*Options)) *exporting {
	t.Helper()
	e := &exporting{now: clock.NewFrozen(testTime), dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(e.dir, "bucket"), 0o777); err != nil {
		t.Fatal(err)
	}
	buckets := openBuckets(t, e.dir)
	e.Server = newTestServer(t, append(change, func(o *Options) { o.Now, o.Buckets = e.now.Now, buckets })...)
	must(t, e.Server, "CreateTable", createPair)
	must(t, e.Server, "UpdateContinuousBackups", `{"TableName": "pairs", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`)
	return e
}

// The error of a server without buckets names the flag for them.
func TestExports_NoBuckets(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	for _, operation := range []string{"DescribeExport", "DescribeImport", "ExportTableToPointInTime", "ImportTable", "ListExports", "ListImports"} {
		want := "Tabletop does not support the operation " + operation + " without buckets: start tabletop serve with --buckets DIR, whose folders stand for buckets"
		if got, err := s.Call(t.Context(), operation, []byte(`{}`)); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: answered %s, %v", operation, got, err)
		}
	}
}

// export exports the table and returns the description of the export; more are further members
// of the request.
func (e *exporting) export(t *testing.T, more string) (d struct {
	ExportArn, ExportStatus, ExportManifest, FailureCode, FailureMessage string
	ItemCount, BilledSizeBytes                                           int64
	ExportTime                                                           float64
},
) {
	t.Helper()
	out := struct{ ExportDescription any }{&d}
	decode := func(answer string) {
		if err := json.Unmarshal([]byte(answer), &out); err != nil {
			t.Fatal(err)
		}
	}
	decode(must(t, e.Server, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "S3Bucket": "bucket"`+more+`}`))
	waitForJobs(t, e.Server)
	decode(must(t, e.Server, "DescribeExport", `{"ExportArn": "`+d.ExportArn+`"}`))
	return d
}

// replayed returns the items of the exports in a folder, as a migration reads them.
func replayed(t *testing.T, dir string) map[string]string {
	t.Helper()
	src, err := source.Open(dir, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]string{}
	for entry, err := range src.Tables[0].Entries() {
		if err != nil {
			t.Fatal(err)
		}
		items[entry.Item["pk"].Str+"/"+entry.Item["sk"].Str] = entry.Item.String()
	}
	return items
}

// tableItems returns the items of the table.
func tableItems(t *testing.T, s *Server) map[string]string {
	t.Helper()
	items := map[string]string{}
	table, err := s.store.TableNow(t.Context(), "pairs")
	if err != nil {
		t.Fatal(err)
	}
	for stored, err := range s.store.Scan(t.Context(), table, nil, 0, 1, nil) {
		if err != nil {
			t.Fatal(err)
		}
		item, err := stored.Item()
		if err != nil {
			t.Fatal(err)
		}
		items[item["pk"].Str+"/"+item["sk"].Str] = item.String()
	}
	return items
}

func same(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Errorf("%s: %d items, want %d\ngot  %v\nwant %v", what, len(got), len(want), got, want)
	}
}

// A full export and the incremental ones after it have the items that the table had at the end
// of each, and the migration's reader accepts their files unchanged.
func TestExports_RoundTrip(t *testing.T) {
	t.Parallel()
	e := newExporting(t)
	random := rand.New(rand.NewPCG(1, 2))
	write := func(n int) {
		for range n {
			key := fmt.Sprintf(`"pk": {"S": "p%d"}, "sk": {"N": "%d"}`, random.IntN(7), random.IntN(9))
			switch random.IntN(4) {
			case 0:
				must(t, e.Server, "DeleteItem", `{"TableName": "pairs", "Key": {`+key+`}}`)
			case 1:
				must(t, e.Server, "UpdateItem", `{"TableName": "pairs", "Key": {`+key+`}, "UpdateExpression": "ADD n :n", "ExpressionAttributeValues": {":n": {"N": "1"}}}`)
			default:
				must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {%s, "v": {"S": "é\n\"%d"}, "l": {"L": [{"NULL": true}, {"NS": ["1", "2"]}]}, "b": {"B": "AAEC"}}}`, key, random.IntN(1000)))
			}
			e.now.Advance(time.Duration(random.IntN(3000)) * time.Microsecond)
		}
	}
	write(200)
	full := e.export(t, "")
	if full.ExportStatus != "COMPLETED" || full.ItemCount != int64(len(tableItems(t, e.Server))) {
		t.Fatalf("%+v, want %d items", full, len(tableItems(t, e.Server)))
	}
	same(t, "full", replayed(t, e.dir), tableItems(t, e.Server))
	from := full.ExportTime
	for i := range 3 {
		e.now.Advance(time.Millisecond)
		write(100)
		e.now.Advance(time.Hour)
		write(20)
		e.now.Advance(time.Millisecond)
		until := float64(e.now.Now().UnixMilli()) / 1000
		done := e.export(t, fmt.Sprintf(`, "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": %.3f, "ExportToTime": %.3f}`, from, until))
		if done.ExportStatus != "COMPLETED" {
			t.Fatalf("%+v", done)
		}
		from = until
		same(t, fmt.Sprintf("increment %d", i), replayed(t, e.dir), tableItems(t, e.Server))
	}
}

// An incremental export includes writes at its start and excludes those at its end, even on a
// clock that does not move. A full export of the same time includes some of the writes at that
// time, too: a migration reads both exports.
func TestExports_HalfOpen(t *testing.T) {
	t.Parallel()
	e := newExporting(t)
	put := func(key string, v int) {
		t.Helper()
		must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "%s"}, "sk": {"N": "1"}, "v": {"N": "%d"}}}`, key, v))
	}
	run := func(prefix string, from, until time.Time) {
		t.Helper()
		if d := e.export(t, fmt.Sprintf(`, "S3Prefix": "%s", "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": %d, "ExportToTime": %d}`, prefix, from.Unix(), until.Unix())); d.ExportStatus != "COMPLETED" {
			t.Fatalf("%+v", d)
		}
	}
	increment := func(prefix string, from, until time.Time) (keys []string) {
		t.Helper()
		run(prefix, from, until)
		for _, line := range exportedLines(t, filepath.Join(e.dir, "bucket", prefix)) {
			if _, key, ok := strings.Cut(line, `"pk":{"S":"`); ok {
				keys = append(keys, key[:1])
			}
		}
		slices.Sort(keys)
		return keys
	}
	put("a", 1)
	put("b", 1)
	put("c", 1)
	e.now.Advance(time.Hour)
	from := e.now.Now()
	put("a", 2)
	must(t, e.Server, "DeleteItem", `{"TableName": "pairs", "Key": {"pk": {"S": "b"}, "sk": {"N": "1"}}}`)
	e.export(t, `, "S3Prefix": "all"`)
	put("a", 3) // in the same moment as the full export, after it
	put("d", 1)
	e.now.Advance(time.Minute)
	put("c", 2)
	e.now.Advance(time.Hour)
	until := e.now.Now()
	put("e", 1)
	if got, want := increment("one", from, until), []string{"a", "b", "c", "d"}; !slices.Equal(got, want) {
		t.Errorf("changes of %v, want %v", got, want)
	}
	if got := increment("none", from.Add(10*time.Minute), until); got != nil {
		t.Errorf("changes of %v, want none: e was written at the end", got)
	}
	run("all", from, until)
	e.now.Advance(time.Hour)
	if got, want := increment("two", until, e.now.Now()), []string{"e"}; !slices.Equal(got, want) {
		t.Errorf("changes of %v, want %v", got, want)
	}
	run("all", until, e.now.Now())
	same(t, "all", replayed(t, filepath.Join(e.dir, "bucket", "all")), tableItems(t, e.Server))
}

// An export of a past time has the contents at that time, regardless of later writes.
func TestExports_AtTime(t *testing.T) {
	t.Parallel()
	e := newExporting(t)
	at := map[int64]map[string]string{}
	for i := range 20 {
		must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "%d"}, "v": {"N": "%d"}}}`, i%6, i))
		at[e.now.Now().UnixMilli()] = tableItems(t, e.Server)
		e.now.Advance(time.Second)
		if i%4 == 3 {
			must(t, e.Server, "DeleteItem", fmt.Sprintf(`{"TableName": "pairs", "Key": {"pk": {"S": "a"}, "sk": {"N": "%d"}}}`, (i+1)%6))
			at[e.now.Now().UnixMilli()] = tableItems(t, e.Server)
			e.now.Advance(time.Second)
		}
	}
	e.now.Advance(10 * time.Minute)
	for i, millis := range slices.Sorted(maps.Keys(at)) {
		prefix := fmt.Sprintf("at/%d", i)
		if d := e.export(t, fmt.Sprintf(`, "S3Prefix": "%s", "ExportTime": %d.%03d`, prefix, millis/1000, millis%1000)); d.ExportStatus != "COMPLETED" {
			t.Fatalf("%+v", d)
		}
		same(t, prefix, replayed(t, filepath.Join(e.dir, "bucket", filepath.FromSlash(prefix))), at[millis])
	}
}

// The options of an export determine its lines: their format, which changes they have, and which
// images.
func TestExports_Lines(t *testing.T) {
	t.Parallel()
	e := newExporting(t)
	start := e.now.Now()
	for i := range 3 {
		must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "p%d"}, "sk": {"N": "1"}, "v": {"N": "%d"}, "w": {"SS": ["x"]}}}`, i, i))
	}
	behind := start.Add(time.Second)
	e.now.Advance(time.Hour)
	must(t, e.Server, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "p1"}, "sk": {"N": "1"}, "v": {"N": "7"}}}`)
	must(t, e.Server, "DeleteItem", `{"TableName": "pairs", "Key": {"pk": {"S": "p2"}, "sk": {"N": "1"}}}`)
	must(t, e.Server, "PutItem", `{"TableName": "pairs", "Item": {"pk": {"S": "p3"}, "sk": {"N": "1"}, "v": {"N": "8"}}}`)
	must(t, e.Server, "DeleteItem", `{"TableName": "pairs", "Key": {"pk": {"S": "p3"}, "sk": {"N": "1"}}}`)
	written := e.now.Now()
	e.now.Advance(time.Hour)
	full := fmt.Sprintf(`, "ExportTime": %d`, start.Unix())
	period := fmt.Sprintf(`{"ExportFromTime": %d, "ExportToTime": %d`, behind.Unix(), start.Add(2*time.Hour).Unix())
	increment := `, "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": ` + period
	metadata := fmt.Sprintf(`{"Metadata":{"WriteTimestampMicros":{"N":"%d"}},"Keys":`, written.UnixMicro())
	const p0, p1, p2 = `{"pk":{"S":"p0"},"sk":{"N":"1"},"v":{"N":"0"},"w":{"SS":["x"]}}`, `{"pk":{"S":"p1"},"sk":{"N":"1"},"v":{"N":"1"},"w":{"SS":["x"]}}`, `{"pk":{"S":"p2"},"sk":{"N":"1"},"v":{"N":"2"},"w":{"SS":["x"]}}`
	const k1, k2, k3 = `{"pk":{"S":"p1"},"sk":{"N":"1"}}`, `{"pk":{"S":"p2"},"sk":{"N":"1"}}`, `{"pk":{"S":"p3"},"sk":{"N":"1"}}`
	const n1 = `{"pk":{"S":"p1"},"sk":{"N":"1"},"v":{"N":"7"}}`
	for i, c := range []struct {
		more string
		want []string
	}{
		{full, []string{`{"Item":` + p0 + `}`, `{"Item":` + p1 + `}`, `{"Item":` + p2 + `}`}},
		{"", []string{`{"Item":` + p0 + `}`, `{"Item":` + n1 + `}`}},
		{full + `, "ExportFormat": "ION"`, []string{`$ion_1_0 {Item:{pk:"p0",sk:1.,v:0.,w:$dynamodb_SS::["x"]}}`, `$ion_1_0 {Item:{pk:"p1",sk:1.,v:1.,w:$dynamodb_SS::["x"]}}`, `$ion_1_0 {Item:{pk:"p2",sk:1.,v:2.,w:$dynamodb_SS::["x"]}}`}},
		{
			full + `, "FilterSpecification": {"FilterExpression": "v > :n", "ProjectionExpression": "pk, #v", "ExpressionAttributeNames": {"#v": "v"}, "ExpressionAttributeValues": {":n": {"N": "0"}}}`,
			[]string{`{"Item":{"pk":{"S":"p1"},"v":{"N":"1"}}}`, `{"Item":{"pk":{"S":"p2"},"v":{"N":"2"}}}`},
		},
		{full + `, "FilterSpecification": {"KeyConditionExpression": "pk = :p AND sk BETWEEN :a AND :b", "ExpressionAttributeValues": {":p": {"S": "p1"}, ":a": {"N": "1"}, ":b": {"N": "2"}}}`, []string{`{"Item":` + p1 + `}`}},
		{increment + `}`, []string{metadata + k1 + `,"OldImage":` + p1 + `,"NewImage":` + n1 + `}`, metadata + k2 + `,"OldImage":` + p2 + `}`, metadata + k3 + `}`}},
		{increment + `, "ExportViewType": "NEW_IMAGE"}`, []string{metadata + k1 + `,"NewImage":` + n1 + `}`, metadata + k2 + `}`, metadata + k3 + `}`}},
		{
			increment + `}, "FilterSpecification": {"FilterExpression": "v IN (:a, :b)", "ProjectionExpression": "v", "ExpressionAttributeValues": {":a": {"N": "7"}, ":b": {"N": "2"}}}`,
			[]string{metadata + k1 + `,"OldImage":{"v":{"N":"1"}},"NewImage":{"v":{"N":"7"}}}`, metadata + k2 + `,"OldImage":{"v":{"N":"2"}}}`},
		},
	} {
		prefix := fmt.Sprintf("lines/%d", i)
		if d := e.export(t, `, "S3Prefix": "/`+prefix+`/"`+c.more); d.ExportStatus != "COMPLETED" || d.ItemCount != int64(len(c.want)) || !strings.HasPrefix(d.ExportManifest, prefix+"/AWSDynamoDB/") {
			t.Errorf("%s: %+v", c.more, d)
		}
		if got := exportedLines(t, filepath.Join(e.dir, "bucket", filepath.FromSlash(prefix))); !slices.Equal(got, c.want) {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.more, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// exportedLines returns the lines of the data files in a folder, sorted.
func exportedLines(t *testing.T, dir string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(name) != ".gz" {
			return err
		}
		lines = append(lines, unpackedLines(t, name)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lines)
	return lines
}

func unpackedLines(t *testing.T, name string) []string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}

// A closed server leaves exports and imports to the next, which finishes them; an unfinished
// export is not visible.
func TestExports_Restart(t *testing.T) {
	t.Parallel()
	var conn grpc.ClientConnInterface
	var buckets *os.Root
	keep := func(o *Options) {
		if conn == nil {
			conn, buckets = o.Conn, o.Buckets
		}
		o.Conn, o.Buckets = conn, buckets
	}
	e := newExporting(t, keep)
	buckets = e.opts.Buckets
	for i := range 100 {
		must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "a"}, "sk": {"N": "%d"}}}`, i))
	}
	want := tableItems(t, e.Server)
	writeObject(t, buckets, "bucket/in/items.csv", "pk,sk\na,1\na,2\n")
	arn := func(answer, name string) string {
		_, after, _ := strings.Cut(answer, `"`+name+`":"`)
		arn, _, _ := strings.Cut(after, `"`)
		return arn
	}
	exported := arn(must(t, e.Server, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "S3Bucket": "bucket", "S3Prefix": "out"}`), "ExportArn")
	imported := arn(must(t, e.Server, "ImportTable", `{"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in"}, "InputFormat": "CSV", "TableCreationParameters": `+strings.Replace(createPair, `"pairs"`, `"copy"`, 1)+`}`), "ImportArn")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	id := exported[strings.LastIndexByte(exported, '/')+1:]
	if _, err := buckets.Stat("bucket/out/AWSDynamoDB/" + id); err != nil { // the export did not end in time, so its files belong to no export
		writeObject(t, buckets, "bucket/out/AWSDynamoDB/."+id+"/data/left.json.gz", "left")
	}
	next := newTestServer(t, keep, func(o *Options) { o.Now, o.Buckets = e.now.Now, buckets })
	waitForJobs(t, next)
	for operation, body := range map[string]string{"DescribeExport": `{"ExportArn": "` + exported + `"}`, "DescribeImport": `{"ImportArn": "` + imported + `"}`} {
		if answer := must(t, next, operation, body); !strings.Contains(answer, `Status":"COMPLETED"`) {
			t.Errorf("%s: %s", operation, answer)
		}
	}
	same(t, "exported", replayed(t, filepath.Join(e.dir, "bucket", "out")), want)
	if answer := must(t, next, "Scan", `{"TableName": "copy", "Select": "COUNT"}`); !strings.Contains(answer, `"Count":2,`) {
		t.Errorf("imported %s", answer)
	}
}

// The memory of an export does not depend on the size of its table or log.
func TestExports_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	size := smallMemory
	if long.Enabled() {
		size = fullMemory
	}
	memory.Alone(t, func(t *testing.T) { exportsInMemory(t, size) })
}

func exportsInMemory(t *testing.T, size memorySize) {
	t.Helper()
	e := newExporting(t, size.options(t))
	fill := func(text string) {
		body := strings.Repeat(text, size.itemBytes)
		for i := range size.items {
			must(t, e.Server, "PutItem", fmt.Sprintf(`{"TableName": "pairs", "Item": {"pk": {"S": "p"}, "sk": {"N": "%d"}, "text": {"S": "`, i)+body+`"}}}`)
		}
	}
	fill("a")
	written := e.now.Now()
	e.now.Advance(time.Hour)
	fill("b")
	e.now.Advance(time.Hour)
	for name, more := range map[string]string{
		"full":        fmt.Sprintf(`, "ExportTime": %d`, written.Unix()),
		"incremental": fmt.Sprintf(`, "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": {"ExportFromTime": %d}`, written.Unix()),
	} {
		size.check(t, name, func() {
			if d := e.export(t, more); d.ExportStatus != "COMPLETED" || d.ItemCount != int64(size.items) {
				t.Errorf("%s: %+v", name, d)
			}
		})
	}
}
