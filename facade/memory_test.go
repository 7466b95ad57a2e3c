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
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

// memorySize is the size of a test that limits the memory of a server.
type memorySize struct {
	items, itemBytes int
	batchBytes       int // see Options.batchBytes
	most             uint64
}

// smallMemory is a table of 2 MiB with batches of 64 KiB, fullMemory one of 86 MB with the
// default batches and items near the maximum size.
var (
	smallMemory = memorySize{items: 96, itemBytes: 20 << 10, batchBytes: 64 << 10, most: 7 << 19}
	fullMemory  = memorySize{items: 240, itemBytes: 360 << 10, most: 64 << 20}
)

// options sets the size of batches, and a Bigtable in another process, whose memory the test does
// not measure.
func (m memorySize) options(t *testing.T) func(*Options) {
	t.Helper()
	dir := inMemory
	if m.batchBytes == 0 {
		dir = t.TempDir()
	}
	conn := otherProcess(t, dir)
	return func(o *Options) { o.Conn, o.batchBytes, o.wall = conn, m.batchBytes, clock.New() }
}

// check runs work and compares its peak memory with the limit.
func (m memorySize) check(t *testing.T, what string, work func()) {
	t.Helper()
	peak := memory.Peak(work)
	t.Logf("%s: the peak is %d KiB", what, peak>>10)
	if peak > m.most {
		t.Errorf("%s: the peak is %d KiB, want at most %d", what, peak>>10, m.most>>10)
	}
}

// The memory of an import does not depend on the sizes of its files.
func TestImports_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	size := smallMemory
	if long.Enabled() {
		size = fullMemory
	}
	memory.Alone(t, func(t *testing.T) { importsInMemory(t, size) })
}

func importsInMemory(t *testing.T, size memorySize) {
	t.Helper()
	dir := t.TempDir()
	buckets := openBuckets(t, dir)
	s := newTestServer(t, size.options(t), func(o *Options) { o.Buckets = buckets })
	body := strings.Repeat("a", size.itemBytes)
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
		_, _ = w.WriteString(format.head) // Flush returns the error
		for i := range size.items {
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
		size.check(t, format.name, func() {
			imported := answerOf[struct {
				ImportTableDescription struct{ ImportArn string }
			}](t, s, "ImportTable", `{"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "`+format.name+`"}, "InputFormat": "`+format.name+
				`", "TableCreationParameters": `+strings.Replace(createOrders, `"orders"`, `"`+table+`"`, 1)+`}`)
			waitForJobs(t, s)
			if got := must(t, s, "DescribeImport", `{"ImportArn": "`+imported.ImportTableDescription.ImportArn+`"}`); !strings.Contains(got, `"ImportStatus":"COMPLETED"`) || !strings.Contains(got, fmt.Sprintf(`"ImportedItemCount":%d`, size.items)) {
				t.Errorf("%s: %s", format.name, got)
			}
		})
	}
}

// The memory for writing, reading and deleting a log does not depend on its size: one answer
// of GetRecords has about a megabyte.
func TestStreams_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	size := smallMemory
	if long.Enabled() {
		size = fullMemory
	}
	memory.Alone(t, func(t *testing.T) { streamsInMemory(t, size) })
}

func streamsInMemory(t *testing.T, size memorySize) {
	t.Helper()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, size.options(t), func(o *Options) { o.Now = now.Now })
	of := createStreamed(t, s, "NEW_AND_OLD_IMAGES")
	records := 2 * size.items // each with both images
	write := func() {
		for _, text := range []string{"a", "b"} {
			body := strings.Repeat(text, size.itemBytes)
			for i := range size.items {
				must(t, s, "PutItem", put(fmt.Sprint(i), `, "text": {"S": "`+body+`"}`))
			}
		}
	}
	before := memory.Live()
	if size.batchBytes == 0 {
		size.check(t, "written", write)
	} else {
		write() // without a check, since its peak comes mostly from single requests
	}
	if after := memory.Live(); after > before+size.most { // the log keeps the last records in memory
		t.Errorf("%d KiB are held after %d writes, %d before", after>>10, records, before>>10)
	}
	size.check(t, "read", func() {
		shard := answerOf[struct {
			StreamDescription struct {
				Shards []struct {
					ShardID string `json:"ShardId"`
				}
			}
		}](t, s, "DescribeStream", `{"StreamArn": "`+of+`"}`).StreamDescription.Shards[0].ShardID
		next := answerOf[struct{ ShardIterator string }](t, s, "GetShardIterator", `{"StreamArn": "`+of+`", "ShardId": "`+shard+`", "ShardIteratorType": "TRIM_HORIZON"}`).ShardIterator
		read := 0
		for read < records {
			page := answerOf[struct {
				Records           []struct{}
				NextShardIterator string
			}](t, s, "GetRecords", `{"ShardIterator": "`+next+`"}`)
			if read, next = read+len(page.Records), page.NextShardIterator; len(page.Records) == 0 {
				break
			}
		}
		if read != records {
			t.Errorf("%d records are read, want %d", read, records)
		}
	})
	now.Advance(25 * time.Hour)
	size.check(t, "forgotten", func() {
		if got := newStreamReader(of).read(t, s); len(got) != 0 {
			t.Errorf("%d records are there after a day", len(got))
		}
	})
}
