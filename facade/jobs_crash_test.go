package facade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/facade/internal/jobs"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/s3export"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
)

// cutConn is the connection of a process that is killed at a call.
type cutConn struct {
	grpc.ClientConnInterface
	done bool          // whether the last call is executed; its answer is lost in any case
	cut  chan struct{} // closed when the process has ended

	mu    sync.Mutex
	armed bool
	left  int // calls that are answered before the process ends
	ended bool
}

// begin reports whether the next call is made, and whether it is answered.
func (c *cutConn) begin() (made, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.ended:
		return false, false
	case !c.armed || c.left > 0:
		c.left--
		return true, true
	}
	c.ended = true
	close(c.cut)
	return c.done, false
}

// arm ends the process at the call after the next left calls.
func (c *cutConn) arm(left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.left = true, left
}

// revive lets a test read through the connection again.
func (c *cutConn) revive() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed, c.ended = false, false
}

var errCut = status.Error(codes.Unavailable, "the process has ended")

func (c *cutConn) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	made, answered := c.begin()
	var err error
	if made {
		err = c.ClientConnInterface.Invoke(context.WithoutCancel(ctx), method, req, resp, opts...)
	}
	if !answered {
		return errCut
	}
	return err
}

func (c *cutConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	made, answered := c.begin()
	if !made {
		return nil, errCut
	}
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	if err != nil || answered {
		return stream, err
	}
	return cutStream{stream}, nil
}

// cutStream is the stream of a call that is executed, and whose answer is lost.
type cutStream struct{ grpc.ClientStream }

func (s cutStream) RecvMsg(m any) error {
	for {
		if err := s.ClientStream.RecvMsg(m); err != nil {
			return errCut
		}
	}
}

// crashed is a script for a server that is killed in the middle, with checks of the server after
// it.
type crashed struct {
	kind string // of the jobs
	// prepare runs first. do gets its result and returns what was acknowledged; the process may
	// be killed at any call of do.
	prepare func(t *testing.T, s *Server) (given string)
	do      func(t *testing.T, s *Server, given string) (acknowledged string, err error)
	// resume, unless nil, runs on the next server before its jobs end.
	resume func(t *testing.T, s *Server)
	// check checks the next server after its jobs have ended.
	check func(t *testing.T, s *Server, acknowledged string)
}

// jobsOf returns the jobs of a kind.
func jobsOf(t *testing.T, s *Server, kind string) (all []jobs.Job) {
	t.Helper()
	for j, err := range s.store.Jobs.All(t.Context(), kind, "") {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, j)
	}
	return all
}

// endJobs waits until no job of a kind runs, not even one of a process that was killed. The
// leases of such jobs end in the time of the synctest bubble.
func endJobs(t *testing.T, s *Server, kind string) {
	t.Helper()
	running := func(j jobs.Job) bool { return j.State == jobs.Running }
	for slices.ContainsFunc(jobsOf(t, s, kind), running) {
		time.Sleep(time.Second)
	}
}

// crashAt runs a script in a synctest bubble, and kills its process after step calls; done is
// that of cutConn. It reports whether the script ended before.
func crashAt(t *testing.T, c crashed, step int, done bool) (whole bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { whole = crashInBubbleAt(t, c, step, done) })
	return whole
}

func crashInBubbleAt(t *testing.T, c crashed, step int, done bool) (whole bool) {
	t.Helper()
	now := clock.NewFrozen(testTime)
	cut := &cutConn{ClientConnInterface: peer.Bigtable(t, now), cut: make(chan struct{}), done: done}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bucket"), 0o777); err != nil {
		t.Fatal(err)
	}
	o := Options{
		Conn: cut, Now: now.Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true, Slot: "test", wall: clock.New(),
		Buckets: openBuckets(t, dir), KinesisDir: filepath.Join(dir, "streams"),
	}
	s, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	given := c.prepare(t, s)
	cut.arm(step)
	acknowledged, err := c.do(t, s, given)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-cut.cut:
			cancel()
		case <-ctx.Done():
		}
	}()
	_ = s.store.Jobs.Wait(ctx, c.kind) // the process may be killed meanwhile
	select {
	case <-cut.cut:
	default:
		if whole = true; err != nil {
			t.Errorf("nothing is cut off, and %v", err)
		}
	}
	_ = s.Close() // its process has ended
	cut.revive()
	o.Conn, o.wall = cut.ClientConnInterface, clock.New()
	next, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.Close(); err != nil {
			t.Error(err)
		}
	}()
	if c.resume != nil {
		c.resume(t, next)
	}
	endJobs(t, next, c.kind)
	c.check(t, next, acknowledged)
	return whole
}

// crashEverywhereIn runs a script once for each of its calls, and kills the process at that call.
// If all is set, it does so twice for each call, which is executed once and lost once; otherwise
// it alternates.
func crashEverywhereIn(t *testing.T, all bool, c crashed) {
	t.Helper()
	const most = 1000 // calls of a script
	for done, name := range map[bool]string{false: "not sent", true: "answer lost"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step, stride := 0, 1
			if !all {
				stride = 2
				if done {
					step = 1
				}
			}
			for whole := false; !whole && !t.Failed(); step += stride {
				if step >= most {
					t.Fatalf("the script has more than %d calls", most)
				}
				whole = crashAt(t, c, step, done)
				if t.Failed() {
					t.Errorf("this is what holds after an end at call %d", step)
				}
			}
			t.Logf("%d calls", step-stride)
		})
	}
}

// manyOrders puts items into orders, and returns them.
func manyOrders(t *testing.T, s *Server, n int) map[string]string {
	t.Helper()
	model := map[string]string{}
	for i := range n {
		id, v := fmt.Sprint("id", i), fmt.Sprint(i%3)
		must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "`+id+`"}, "v": {"N": "`+v+`"}}}`)
		model[id] = v
	}
	return model
}

// unlogged checks that a table has no log, and that jobs left nothing behind: tables is the
// number of Bigtable tables that should exist besides those of logs.
func unlogged(t *testing.T, s *Server, table string, tables int) {
	t.Helper()
	def, err := s.store.TableNow(t.Context(), table)
	if err != nil {
		t.Error(err)
	} else if def.Log.On() || len(def.Copies) > 0 {
		t.Errorf("table %s has a log for nobody: %v, %v", table, def.Log.KnownReasons(), def.Copies)
	}
	ids, err := s.store.BigtableTables(t.Context())
	ids = slices.DeleteFunc(ids, func(id string) bool { return strings.HasPrefix(id, "_tabletop.l.") })
	if err != nil || len(ids) != tables {
		t.Errorf("%d tables are left, want %d: %v, %v", len(ids), tables, ids, err)
	}
}

const backUpOrders = `{"TableName": "orders", "BackupName": "one"}`

// CreateBackup, killed at any call: an acknowledged backup exists and has the table's
// contents at that time; otherwise it may exist or not, and the table is unchanged.
func TestKilled_Backup(t *testing.T) {
	t.Parallel()
	const items = 5
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "backup",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", createOrders)
			manyOrders(t, s, items)
			return ""
		},
		do: func(t *testing.T, s *Server, given string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "CreateBackup", []byte(backUpOrders))
			if err != nil {
				return "", err
			}
			// The backup does not contain writes after the answer.
			_, err = s.Call(t.Context(), "PutItem", []byte(`{"TableName": "orders", "Item": {"id": {"S": "id0"}, "v": {"N": "77"}}}`))
			return between(string(answer), `"BackupArn":"`, `"`), err
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			arns := backupsOf(t, s)
			if acknowledged != "" && (len(arns) != 1 || arns[0] != acknowledged) {
				t.Errorf("there are the backups %v, want %s", arns, acknowledged)
			}
			tables := 3 // the catalog, the table, its index
			for _, arn := range arns {
				tables++
				if got := must(t, s, "DescribeBackup", `{"BackupArn": "`+arn+`"}`); !strings.Contains(got, `"BackupStatus":"AVAILABLE"`) {
					t.Errorf("the backup is %s", got)
				}
			}
			unlogged(t, s, "orders", tables)
			for _, arn := range arns {
				must(t, s, "RestoreTableFromBackup", `{"TargetTableName": "again", "BackupArn": "`+arn+`"}`)
				awaitJobs(t, s)
				got := orders(t, s, "again")
				if acknowledged == "" {
					continue // it has the contents at some time
				}
				if got["id0"] != "0" || len(got) != items {
					t.Errorf("the backup holds %v", got)
				}
			}
		},
	})
}

func backupsOf(t *testing.T, s *Server) (arns []string) {
	t.Helper()
	var list struct{ BackupSummaries []struct{ BackupArn string } }
	if err := json.Unmarshal([]byte(must(t, s, "ListBackups", `{"BackupType": "ALL"}`)), &list); err != nil {
		t.Fatal(err)
	}
	for _, b := range list.BackupSummaries {
		arns = append(arns, b.BackupArn)
	}
	return arns
}

// checkTarget checks that a table exists with the expected items. If it was not acknowledged,
// it may be missing, and then can be created.
func checkTarget(t *testing.T, s *Server, acknowledged bool, want map[string]string) {
	t.Helper()
	if _, err := s.Call(t.Context(), "DescribeTable", []byte(`{"TableName": "again"}`)); err != nil && !acknowledged {
		must(t, s, "CreateTable", strings.Replace(createOrders, `"orders"`, `"again"`, 1))
		return
	}
	if got := must(t, s, "DescribeTable", `{"TableName": "again"}`); !strings.Contains(got, `"TableStatus":"ACTIVE"`) {
		t.Errorf("the table is %s", got)
		return
	}
	if d := gocmp.Diff(want, orders(t, s, "again")); d != "" {
		t.Errorf("the table holds (-want +got):\n%s", d)
	}
}

// RestoreTableFromBackup, killed at any call: the table exists completely or not at all.
func TestKilled_RestoreFromBackup(t *testing.T) {
	t.Parallel()
	const items = 5
	want := map[string]string{}
	for i := range items {
		want[fmt.Sprint("id", i)] = fmt.Sprint(i % 3)
	}
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "restore",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", createOrders)
			manyOrders(t, s, items)
			must(t, s, "CreateBackup", backUpOrders)
			awaitJobs(t, s)
			return backupsOf(t, s)[0]
		},
		do: func(t *testing.T, s *Server, given string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "RestoreTableFromBackup", []byte(`{"TargetTableName": "again", "BackupArn": "`+given+`"}`))
			return string(answer), err
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			checkTarget(t, s, acknowledged != "", want)
			must(t, s, "DeleteBackup", `{"BackupArn": "`+backupsOf(t, s)[0]+`"}`) // nothing uses it
		},
	})
}

// RestoreTableToPointInTime, killed at any call: the table exists completely or not at all.
func TestKilled_RestoreToTime(t *testing.T) {
	t.Parallel()
	const items = 5
	want := map[string]string{"id0": "77", "id1": "1", "id2": "2", "id3": "0", "id4": "1"}
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "restore",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", createOrders)
			must(t, s, "UpdateContinuousBackups", recover35)
			manyOrders(t, s, items)
			must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "id0"}, "v": {"N": "77"}}}`)
			return ""
		},
		do: func(t *testing.T, s *Server, given string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "RestoreTableToPointInTime", []byte(restoreTo(testTime, "again")))
			return string(answer), err
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			checkTarget(t, s, acknowledged != "", want)
			if def, err := s.store.TableNow(t.Context(), "orders"); err != nil || len(def.Copies) > 0 {
				t.Errorf("the log is held for nobody: %+v, %v", def, err)
			}
		},
	})
}

// ImportTable, killed at any call: the table exists completely or not at all, and the items that
// clients write once it is ACTIVE stay.
func TestKilled_Import(t *testing.T) {
	t.Parallel()
	definition := strings.Replace(createOrders, `"orders"`, `"again"`, 1)
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "import",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			writeObject(t, s.opts.Buckets, "bucket/in.csv", "id,v\na,1\nb,2\n")
			s.store.Wait()
			return ""
		},
		do: func(t *testing.T, s *Server, given string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "ImportTable", []byte(`{"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in"}, "InputFormat": "CSV", "TableCreationParameters": `+definition+`}`))
			if err != nil {
				return "", err
			}
			acknowledged := between(string(answer), `"ImportArn":"`, `"`)
			for { // until it is ACTIVE
				answer, err := s.Call(t.Context(), "DescribeTable", []byte(`{"TableName": "again"}`))
				if strings.Contains(string(answer), `"TableStatus":"ACTIVE"`) {
					break
				}
				if err != nil && !strings.HasPrefix(err.Error(), "ResourceNotFoundException") {
					return acknowledged, err
				}
				time.Sleep(time.Millisecond)
			}
			if _, err = s.Call(t.Context(), "PutItem", []byte(`{"TableName": "again", "Item": {"id": {"S": "a"}, "v": {"N": "99"}}}`)); err == nil {
				acknowledged += " put"
			}
			return acknowledged, err
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			acknowledged, put := strings.CutSuffix(acknowledged, " put")
			want := map[string]string{"a": "1", "b": "2"}
			if _, err := s.Call(t.Context(), "DescribeTable", []byte(`{"TableName": "again"}`)); err == nil && (put || orders(t, s, "again")["a"] == "99") {
				want["a"] = "99"
			}
			checkTarget(t, s, acknowledged != "", want)
			if acknowledged == "" {
				return
			}
			if got := must(t, s, "DescribeImport", `{"ImportArn": "`+acknowledged+`"}`); !strings.Contains(got, `"ImportStatus":"COMPLETED"`) || !strings.Contains(got, `"ImportedItemCount":2`) {
				t.Errorf("the import is %s", got)
			}
		},
	})
}

// ExportTableToPointInTime, killed at any call: the folder of an export is complete once it is
// visible.
func TestKilled_Export(t *testing.T) {
	t.Parallel()
	const items = 5
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "export",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", createOrders)
			must(t, s, "UpdateContinuousBackups", recover35)
			manyOrders(t, s, items)
			return ""
		},
		do: func(t *testing.T, s *Server, given string) (string, error) {
			t.Helper()
			answer, err := s.Call(t.Context(), "ExportTableToPointInTime", []byte(`{"TableArn": "`+s.tableARN("orders")+`", "S3Bucket": "bucket"}`))
			return between(string(answer), `"ExportArn":"`, `"`), err
		},
		check: func(t *testing.T, s *Server, acknowledged string) {
			t.Helper()
			listed := strings.Count(must(t, s, "ListExports", `{"TableArn": "`+s.tableARN("orders")+`"}`), `"ExportStatus":"COMPLETED"`)
			if acknowledged != "" {
				if got := must(t, s, "DescribeExport", `{"ExportArn": "`+acknowledged+`"}`); !strings.Contains(got, `"ExportStatus":"COMPLETED"`) || !strings.Contains(got, fmt.Sprintf(`"ItemCount":%d`, items)) {
					t.Errorf("the export is %s", got)
				}
			}
			exports, err := fs.Glob(s.opts.Buckets.FS(), "bucket/AWSDynamoDB/*")
			if err != nil || len(exports) != listed || acknowledged != "" && listed != 1 {
				t.Errorf("there are the folders %v, %v, and %d exports", exports, err, listed)
			}
			for _, e := range exports {
				if _, err := s.opts.Buckets.Stat(e + "/" + s3export.SummaryName); err != nil {
					t.Errorf("export %s: %v", e, err)
				}
				if got := exportedLines(t, filepath.Join(s.opts.Buckets.Name(), e)); len(got) != items {
					t.Errorf("export %s has %q", e, got)
				}
			}
		},
	})
}

// A Kinesis destination, killed at any call while it is enabled, receives changes and is
// disabled: it gets each acknowledged change, in order, and none that was not made.
func TestKilled_Kinesis(t *testing.T) {
	t.Parallel()
	const changes = 3
	crashEverywhereIn(t, long.Enabled(), crashed{
		kind: "kinesis",
		prepare: func(t *testing.T, s *Server) string {
			t.Helper()
			must(t, s, "CreateTable", kinesisTable)
			return ""
		},
		do: func(t *testing.T, s *Server, given string) (acknowledged string, err error) {
			t.Helper()
			calls := []string{"EnableKinesisStreamingDestination"}
			bodies := []string{kinesisStream}
			for n := range changes {
				calls, bodies = append(calls, "PutItem"), append(bodies, fmt.Sprintf(`{"TableName": "music", "Item": {"id": {"S": "item0"}, "n": {"N": "%d"}}}`, n))
			}
			for i, call := range calls {
				if _, err := s.Call(t.Context(), call, []byte(bodies[i])); err != nil {
					return acknowledged, err
				}
				acknowledged = fmt.Sprint(i)
			}
			for { // until it is ACTIVE
				answer, err := s.Call(t.Context(), "DescribeKinesisStreamingDestination", []byte(`{"TableName": "music"}`))
				if err != nil {
					return acknowledged, err
				}
				if strings.Contains(string(answer), `"DestinationStatus":"ACTIVE"`) {
					break
				}
				time.Sleep(time.Millisecond)
			}
			_, err = s.Call(t.Context(), "DisableKinesisStreamingDestination", []byte(kinesisStream))
			return acknowledged, err
		},
		resume: func(t *testing.T, s *Server) {
			t.Helper()
			for {
				got := must(t, s, "DescribeKinesisStreamingDestination", `{"TableName": "music"}`)
				if strings.Contains(got, `"DestinationStatus":"ACTIVE"`) {
					must(t, s, "DisableKinesisStreamingDestination", kinesisStream)
				}
				if !strings.Contains(got, `"DestinationStatus":"ENABLING"`) {
					return
				}
				time.Sleep(time.Second) // the lease of the dead process ends
			}
		},
		check: checkDelivered,
	})
}

func checkDelivered(t *testing.T, s *Server, acknowledged string) {
	t.Helper()
	if acknowledged == "" { // it may have been enabled or not
		return
	}
	least := 0
	if _, err := fmt.Sscan(acknowledged, &least); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(s.opts.KinesisDir, "changes.jsonl"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	item := must(t, s, "GetItem", `{"TableName": "music", "Key": {"id": {"S": "item0"}}}`)
	made := 0
	if item != "{}" {
		if _, err := fmt.Sscan(between(item, `"n":{"N":"`, `"`), &made); err != nil {
			t.Fatal(err)
		}
		made++
	}
	if made < least {
		t.Errorf("%d changes were made of %d that were acknowledged", made, least)
	}
	var got []string
	if len(text) > 0 {
		got = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	}
	items := 0
	if made > 0 {
		items = 1
	}
	checkChanges(t, got, items, made)
}

// An import whose result could not be saved runs again. If the table was ACTIVE already, the
// writes of clients stay.
func TestImport_AgainBehindClients(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		active := 0
		for n, whole := 0, false; !whole; n++ {
			conn := &faultyConn{}
			s := newTestServer(t, func(o *Options) {
				conn.ClientConnInterface, o.Conn = o.Conn, conn
				o.Buckets = openBuckets(t, t.TempDir())
			})
			writeObject(t, s.opts.Buckets, "bucket/in.csv", "id,v\na,1\n")
			writes, failed := 0, make(chan struct{})
			conn.set(false, func(req any) bool {
				m, ok := req.(*btpb.CheckAndMutateRowRequest)
				if !ok || !strings.HasPrefix(string(m.GetRowKey()), "j/import/") {
					return false
				}
				if writes++; writes == n+2 { // the operation makes the first
					close(failed)
				}
				return writes == n+2
			})
			must(t, s, "ImportTable", `{"S3BucketSource": {"S3Bucket": "bucket", "S3KeyPrefix": "in"}, "InputFormat": "CSV", "TableCreationParameters": `+createOrders+`}`)
			for waiting := true; waiting && !whole; { // then the work waits for the clock
				select {
				case <-failed:
					waiting = false
				default:
					whole = jobsOf(t, s, "import")[0].State != jobs.Running
					synctest.Wait()
				}
			}
			want := "1"
			if answer, err := s.Call(t.Context(), "DescribeTable", []byte(`{"TableName": "orders"}`)); err == nil && !whole && strings.Contains(string(answer), `"TableStatus":"ACTIVE"`) {
				must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "99"}}}`)
				want = "99"
				active++
			}
			for jobsOf(t, s, "import")[0].State == jobs.Running {
				s.opts.wall.Advance(time.Second)
				synctest.Wait()
			}
			if got := orders(t, s, "orders")["a"]; got != want {
				t.Errorf("after write %d of the job failed, the item is %s, want %s", n, got, want)
			}
			if got := must(t, s, "ListImports", "{}"); !strings.Contains(got, `"ImportStatus":"COMPLETED"`) {
				t.Errorf("after write %d of the job failed, the imports are %s", n, got)
			}
		}
		if active == 0 {
			t.Error("no write failed behind the table's being ACTIVE")
		}
	})
}
