package facade

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/race"
)

// mostHeld is what the log, an export, an import or a restore may hold, in bytes.
const mostHeld = 64 << 20

// checkHeld runs work, and checks what this process held meanwhile.
func checkHeld(t *testing.T, what string, work func()) {
	t.Helper()
	peak := peakHeap(work)
	t.Logf("%s: at most %d MiB", what, peak>>20)
	if peak > mostHeld {
		t.Errorf("%s: %d MiB were held, want at most %d", what, peak>>20, mostHeld>>20)
	}
}

// However much is imported, no more than 64 MiB of it are held. Each file is larger than
// that, and its items as large as they may be.
func TestImports_Memory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	const items, itemBytes = 240, 360 << 10 // 86 MB
	conn := otherProcess(t)
	dir := t.TempDir()
	buckets := openBuckets(t, dir)
	s := newTestServer(t, func(o *Options) { o.Conn, o.Buckets, o.wall = conn, buckets, clock.New() })
	body := strings.Repeat("a", itemBytes)
	for _, format := range []struct{ name, head, line, tail string }{
		{"DYNAMODB_JSON", "", `{"Item": {"id": {"S": "%d"}, "v": {"N": "%d"}, "text": {"S": "`, `"}}}`},
		{"CSV", "id,v,text\n", "%d,%d,", ""},
	} {
		folder := filepath.Join(dir, "bucket", format.name)
		if err := os.MkdirAll(folder, 0o777); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(filepath.Clean(filepath.Join(folder, "file")))
		if err != nil {
			t.Fatal(err)
		}
		w := bufio.NewWriter(f)
		_, _ = w.WriteString(format.head) // Flush has the error
		for i := range items {
			_, _ = fmt.Fprintf(w, format.line, i, i)
			_, _ = w.WriteString(body)
			_, _ = w.WriteString(format.tail + "\n")
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		table := "of_" + format.name
		checkHeld(t, format.name, func() {
			imported := answerOf[struct {
				ImportTableDescription struct{ ImportArn string }
			}](t, s, "ImportTable", `{"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "`+format.name+`"}, "InputFormat": "`+format.name+
				`", "TableCreationParameters": `+strings.Replace(createOrders, `"orders"`, `"`+table+`"`, 1)+`}`)
			waitForJobs(t, s)
			if got := must(t, s, "DescribeImport", `{"ImportArn": "`+imported.ImportTableDescription.ImportArn+`"}`); !strings.Contains(got, `"ImportStatus":"COMPLETED"`) || !strings.Contains(got, fmt.Sprintf(`"ImportedItemCount":%d`, items)) {
				t.Errorf("%s: %s", format.name, got)
			}
		})
	}
}

// However much the log has, writing it, reading it and forgetting it holds no more than
// 64 MiB: one answer of GetRecords is of a megabyte or so.
func TestStreams_Memory(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	const items, itemBytes = 240, 360 << 10 // 86 MB, twice: each change has both images
	conn := otherProcess(t)
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Conn, o.Now, o.wall = conn, now.Now, clock.New() })
	of := createStreamed(t, s, "NEW_AND_OLD_IMAGES")
	checkHeld(t, "written", func() {
		for _, text := range []string{"a", "b"} {
			body := strings.Repeat(text, itemBytes)
			for i := range items {
				must(t, s, "PutItem", put(fmt.Sprint(i), `, "text": {"S": "`+body+`"}`))
			}
		}
	})
	checkHeld(t, "read", func() {
		shard := answerOf[struct {
			StreamDescription struct {
				Shards []struct {
					ShardID string `json:"ShardId"`
				}
			}
		}](t, s, "DescribeStream", `{"StreamArn": "`+of+`"}`).StreamDescription.Shards[0].ShardID
		next := answerOf[struct{ ShardIterator string }](t, s, "GetShardIterator", `{"StreamArn": "`+of+`", "ShardId": "`+shard+`", "ShardIteratorType": "TRIM_HORIZON"}`).ShardIterator
		read := 0
		for read < 2*items {
			page := answerOf[struct {
				Records           []struct{}
				NextShardIterator string
			}](t, s, "GetRecords", `{"ShardIterator": "`+next+`"}`)
			if read, next = read+len(page.Records), page.NextShardIterator; len(page.Records) == 0 {
				break
			}
		}
		if read != 2*items {
			t.Errorf("%d records are read, want %d", read, 2*items)
		}
	})
	now.Advance(25 * time.Hour)
	checkHeld(t, "forgotten", func() {
		if got := newStreamReader(of).read(t, s); len(got) != 0 {
			t.Errorf("%d records are there after a day", len(got))
		}
	})
}
