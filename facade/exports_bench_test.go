package facade

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
)

// BenchmarkExport compares a full export with a Scan of the same items, and with what
// the compression of its lines takes alone: an export is to take, that apart, no more
// than 2.5 Scans.
func BenchmarkExport(b *testing.B) {
	const items = 5000
	dir := b.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bucket"), 0o777); err != nil {
		b.Fatal(err)
	}
	buckets := openBuckets(b, dir)
	s := newTestServer(b, func(o *Options) { o.Buckets = buckets })
	must(b, s, "CreateTable", createPair)
	must(b, s, "UpdateContinuousBackups", `{"TableName": "pairs", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`)
	line := func(i int) string {
		return fmt.Sprintf(`{"pk": {"S": "p%d"}, "sk": {"N": "%d"}, "v": {"S": "%s"}, "l": {"L": [{"N": "1"}, {"BOOL": true}]}, "w": {"S": "%d"}}`, i%50, i, strings.Repeat("0123456789abcdef", 60), i*7919)
	}
	for i := range items {
		must(b, s, "PutItem", `{"TableName": "pairs", "Item": `+line(i)+`}`)
	}
	b.Run("what=scan", func(b *testing.B) {
		for range b.N {
			n, start := 0, ""
			for {
				page := must(b, s, "Scan", `{"TableName": "pairs"`+start+`}`)
				n += strings.Count(page, `"l":`)
				_, last, more := strings.Cut(page, `"LastEvaluatedKey":`)
				if !more {
					break
				}
				start = `, "ExclusiveStartKey": ` + last[:strings.Index(last, "}}")+len("}}")]
			}
			if n != items {
				b.Fatalf("%d items", n)
			}
		}
	})
	b.Run("what=export", func(b *testing.B) {
		for range b.N {
			must(b, s, "ExportTableToPointInTime", `{"TableArn": "arn:aws:dynamodb:us-east-1:000000000000:table/pairs", "S3Bucket": "bucket"}`)
			waitForJobs(b, s)
		}
	})
	b.Run("what=compression", func(b *testing.B) {
		for range b.N {
			z := gzip.NewWriter(io.Discard)
			for i := range items {
				if _, err := io.WriteString(z, line(i)); err != nil {
					b.Fatal(err)
				}
			}
			if err := z.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
