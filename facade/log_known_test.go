package facade

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// unawares returns two servers over one Bigtable, and their clocks. The first has created a
// table.
func unawares(t *testing.T, create string, change ...func(*Options)) (a, b *Server, now, wall *clock.Clock) {
	t.Helper()
	now, wall = clock.NewFrozen(testTime), clock.NewFrozen(testTime)
	a, b = newTwoTestServers(t, append(change, func(o *Options) {
		o.Conn, o.Now, o.wall = peer.Bigtable(t, now), now.Now, wall
	})...)
	must(t, a, "CreateTable", create)
	return a, b, now, wall
}

const streamKeys = `{"TableName": "streamed", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}`

const plainStreamed = `{"TableName": "streamed", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}`

// A new stream is ENABLING until another process knows it. From then on each write has one
// record.
func TestStreams_BeginsBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	a, b, now, _ := unawares(t, plainStreamed)
	must(t, b, "PutItem", put("before", ""))
	answer := must(t, a, "UpdateTable", streamKeys)
	if !strings.Contains(answer, `"TableStatus":"UPDATING"`) {
		t.Errorf("the answer is %s", answer)
	}
	var out struct {
		TableDescription struct{ LatestStreamArn string }
	}
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(err)
	}
	reader := newStreamReader(out.TableDescription.LatestStreamArn)
	is := func(want string) {
		t.Helper()
		for _, s := range []*Server{a, b} {
			if got := must(t, s, "DescribeStream", `{"StreamArn": "`+reader.arn+`"}`); !strings.Contains(got, `"StreamStatus":"`+want+`"`) {
				t.Errorf("it is %s, want %s", got, want)
			}
		}
	}
	must(t, b, "PutItem", put("meanwhile", "")) // it may be recorded or not
	is("ENABLING")
	now.Advance(2*time.Second - time.Millisecond)
	is("ENABLING")
	now.Advance(time.Millisecond)
	is("ENABLED")
	must(t, b, "PutItem", put("b", ""))
	must(t, a, "PutItem", put("a", ""))
	must(t, b, "DeleteItem", keyOf("before", ""))
	meet(t, a, b)
	var got []streamRecord
	for _, r := range reader.read(t, a) {
		if !strings.Contains(r.text(), "meanwhile") {
			got = append(got, r)
		}
	}
	slices.SortFunc(got, func(a, b streamRecord) int { return strings.Compare(a.text(), b.text()) }) // they are of different items
	expectRecords(t, got, `INSERT {"id":{"S":"a"}} new null old null`, `INSERT {"id":{"S":"b"}} new null old null`, `REMOVE {"id":{"S":"before"}} new null old null`)
}

// Without other processes a new stream is not delayed: neither by a closed process, nor by an
// earlier one of the same slot.
func TestStreams_BeginsAlone(t *testing.T) {
	t.Parallel()
	var shared Options
	cut := newTestServer(t, func(o *Options) { o.Slot = "here"; shared = *o })
	must(t, cut, "CreateTable", plainStreamed)
	for _, slot := range []string{"here", "there"} {
		if slot == "there" {
			if err := cut.Close(); err != nil {
				t.Fatal(err)
			}
		}
		shared.Slot = slot
		s, err := New(t.Context(), shared)
		if err != nil {
			t.Fatal(err)
		}
		answer := must(t, s, "UpdateTable", streamKeys)
		if !strings.Contains(answer, `"TableStatus":"ACTIVE"`) {
			t.Errorf("%s: the answer is %s", slot, answer)
		}
		must(t, s, "UpdateTable", `{"TableName": "streamed", "StreamSpecification": {"StreamEnabled": false}}`)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// With a stream of keys, a Kinesis destination gets images from the first record on, and
// every write after it is ACTIVE.
func TestKinesis_BeginsBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		a, b, now, wall := unawares(t, strings.TrimSuffix(plainStreamed, "}")+`, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}`,
			func(o *Options) { o.KinesisDir = dir })
		const destination = `{"TableName": "streamed", "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes"}`
		must(t, b, "PutItem", put("before", ""))
		must(t, a, "EnableKinesisStreamingDestination", destination)
		must(t, b, "PutItem", put("meanwhile", ""))
		status := func() string {
			return answerOf[struct {
				KinesisDataStreamDestinations []struct{ DestinationStatus string }
			}](t, a, "DescribeKinesisStreamingDestination", `{"TableName": "streamed"}`).KinesisDataStreamDestinations[0].DestinationStatus
		}
		if got := status(); got != "ENABLING" {
			t.Errorf("it is %s while another process does not know of it", got)
		}
		for now.Advance(2 * time.Second); status() != "ACTIVE"; synctest.Wait() {
			wall.Advance(time.Second)
		}
		must(t, b, "PutItem", put("b", ""))
		must(t, a, "PutItem", put("a", ""))
		must(t, a, "DisableKinesisStreamingDestination", destination)
		var text []byte
		for !strings.Contains(string(text), `"S":"a"`) {
			wall.Advance(time.Second)
			meet(t, a, b)
			synctest.Wait()
			text, _ = os.ReadFile(filepath.Join(dir, "changes.jsonl"))
		}
		if n := strings.Count(string(text), "\n"); n < 2 || strings.Count(string(text), `"NewImage"`) != n || !strings.Contains(string(text), `"S":"b"`) {
			t.Errorf("delivered is %s", text)
		}
	})
}

// A table can be restored only to times at which all processes knew that its writes are
// recorded. The restored table has no writes after the time of the restore.
func TestBackups_BeginBesideAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, now, wall := unawares(t, createOrders)
		order := func(s *Server, id, v string) {
			must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "`+id+`"}, "v": {"N": "`+v+`"}}}`)
		}
		order(b, "x", "1")
		described := must(t, a, "UpdateContinuousBackups", recover35)
		order(b, "x", "2") // unrecorded
		now.Advance(2 * time.Second)
		at := now.Now()
		if since := fmt.Sprintf(`"EarliestRestorableDateTime":%d`, at.Unix()); !strings.Contains(described, since) {
			t.Errorf("it is %s, want %s", described, since)
		}
		now.Advance(time.Second)
		order(b, "x", "3")
		order(a, "y", "3")
		now.Advance(10 * time.Minute)
		must(t, a, "RestoreTableToPointInTime", restoreTo(at, "then"))
		for !strings.Contains(must(t, a, "DescribeTable", `{"TableName": "then"}`), `"TableStatus":"ACTIVE"`) {
			wall.Advance(time.Second)
			meet(t, a, b)
			synctest.Wait()
		}
		if d := gocmp.Diff(map[string]string{"x": "2"}, orders(t, a, "then")); d != "" {
			t.Errorf("restored is (-want +got):\n%s", d)
		}
	})
}

// If CreateBackup turns the log of a table on, the backup contains the writes of another process
// until that process knows the log, and no later ones.
func TestCreateBackup_BesideAnotherProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b, now, wall := unawares(t, createOrders)
		order := `{"TableName": "orders", "Item": {"id": {"S": "x"}, "v": {"N": "%d"}}}`
		must(t, b, "PutItem", fmt.Sprintf(order, 1))
		backedUp := make(chan string)
		go func() {
			out, err := a.Call(t.Context(), "CreateBackup", []byte(backUpOrders))
			if err != nil {
				t.Error(err)
			}
			backedUp <- string(out)
		}()
		for held := false; !held; synctest.Wait() {
			def, err := a.store.TableNow(t.Context(), "orders")
			if err != nil {
				t.Fatal(err)
			}
			held = def.Log.On()
		}
		must(t, b, "PutItem", fmt.Sprintf(order, 2)) // unrecorded
		select {
		case out := <-backedUp:
			t.Fatalf("it is there before others know: %s", out)
		default:
		}
		now.Advance(2 * time.Second)
		for ended := false; !ended; synctest.Wait() {
			wall.Advance(time.Second)
			select {
			case <-backedUp:
				ended = true
			default:
			}
		}
		must(t, b, "PutItem", fmt.Sprintf(order, 3))
		for !strings.Contains(must(t, a, "ListBackups", `{}`), `"BackupStatus":"AVAILABLE"`) {
			wall.Advance(time.Second)
			meet(t, a, b)
		}
		arn := answerOf[struct{ BackupSummaries []struct{ BackupArn string } }](t, a, "ListBackups", `{}`).BackupSummaries[0].BackupArn
		must(t, a, "RestoreTableFromBackup", `{"BackupArn": "`+arn+`", "TargetTableName": "then"}`)
		for !strings.Contains(must(t, a, "DescribeTable", `{"TableName": "then"}`), `"TableStatus":"ACTIVE"`) {
			wall.Advance(time.Second)
			meet(t, a, b)
		}
		if d := gocmp.Diff(map[string]string{"x": "2"}, orders(t, a, "then")); d != "" {
			t.Errorf("restored is (-want +got):\n%s", d)
		}
	})
}
