package facade

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/tabletop-emu/tabletop/internal/test/cputime"
)

// exportedItems is the number of items in the table of BenchmarkCompareExport. They have some
// 5 MB.
const exportedItems = 5000

// BenchmarkCompareExport compares the times of a full export and of a Scan of the same items. It
// subtracts the time in which an export compresses its lines.
func BenchmarkCompareExport(b *testing.B) {
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bucket"), 0o777); err != nil {
		b.Fatal(err)
	}
	buckets := openBuckets(b, dir)
	s := newTestServer(b, func(o *Options) { o.Buckets = buckets })
	must(b, s, "CreateTable", createPair)
	must(b, s, "UpdateContinuousBackups", `{"TableName": "pairs", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`)
	for i := range exportedItems {
		must(b, s, "PutItem", `{"TableName": "pairs", "Item": `+exportedItem(i)+`}`)
	}
	b.Run("scan", func(b *testing.B) {
		cputime.Loop(b, func(int) { scanExported(b, s) })
	})
	b.Run("uncompressed", func(b *testing.B) {
		cputime.LoopApart(b, func(int) {
			must(b, s, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "S3Bucket": "bucket"}`)
			waitForJobs(b, s)
		}, func(int) { compressExported(b) })
	})
}

// BenchmarkExport_Incremental exports the changes of 5000 items, each inserted once.
func BenchmarkExport_Incremental(b *testing.B) {
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bucket"), 0o777); err != nil {
		b.Fatal(err)
	}
	buckets := openBuckets(b, dir)
	now := time.Date(2024, 5, 27, 6, 0, 0, 0, time.UTC)
	s := newTestServer(b, func(o *Options) { o.Buckets, o.Now = buckets, func() time.Time { return now } })
	must(b, s, "CreateTable", createPair)
	must(b, s, "UpdateContinuousBackups", `{"TableName": "pairs", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`)
	from := now.Add(time.Minute)
	now = from.Add(time.Minute)
	for i := range exportedItems {
		must(b, s, "PutItem", `{"TableName": "pairs", "Item": `+exportedItem(i)+`}`)
	}
	now = now.Add(time.Hour)
	period := fmt.Sprintf(`{"ExportFromTime": %d, "ExportToTime": %d}`, from.Unix(), from.Add(20*time.Minute).Unix())
	b.ReportAllocs()
	for b.Loop() {
		must(b, s, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "S3Bucket": "bucket", "ExportType": "INCREMENTAL_EXPORT", "IncrementalExportSpecification": `+period+`}`)
		waitForJobs(b, s)
	}
}

func exportedItem(i int) string {
	return fmt.Sprintf(`{"pk":{"S":"p%d"},"sk":{"N":"%d"},"v":{"S":"%s"},"l":{"L":[{"N":"1"},{"BOOL":true}]},"w":{"S":"%d"}}`, i%50, i, strings.Repeat("0123456789abcdef", 60), i*7919)
}

// scanExported reads all items, page by page. It decodes only the end of a page, since the
// work of a client does not belong to the server.
func scanExported(b *testing.B, s *Server) {
	b.Helper()
	n, start := 0, ""
	for {
		page, err := s.Call(b.Context(), "Scan", []byte(`{"TableName": "pairs"`+start+`}`))
		if err != nil {
			b.Fatal(err)
		}
		var end struct {
			Count            int
			LastEvaluatedKey json.RawMessage
		}
		if err := json.Unmarshal(append([]byte("{"), page[bytes.LastIndex(page, []byte(`"Count":`)):]...), &end); err != nil {
			b.Fatal(err)
		}
		if n += end.Count; end.LastEvaluatedKey == nil {
			break
		}
		start = `, "ExclusiveStartKey": ` + string(end.LastEvaluatedKey)
	}
	if n != exportedItems {
		b.Fatalf("%d items", n)
	}
}

// compressExported compresses the content of an export's data files.
func compressExported(b *testing.B) {
	b.Helper()
	z := gzip.NewWriter(io.Discard)
	for i := range exportedItems {
		if _, err := fmt.Fprintf(z, "{\"Item\":%s}\n", exportedItem(i)); err != nil {
			b.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
}
