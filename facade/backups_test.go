package facade

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/backups"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
	"github.com/tabletop-emu/tabletop/internal/test/long"
	"github.com/tabletop-emu/tabletop/internal/test/memory"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/race"
)

const createOrders = `{"TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
	"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "v", "AttributeType": "N"}],
	"KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
	"GlobalSecondaryIndexes": [{"IndexName": "by-v", "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"}}]}`

const recover35 = `{"TableName": "orders", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`

// awaitJobs waits until all jobs of backups have ended.
func awaitJobs(t *testing.T, s *Server) {
	t.Helper()
	for _, kind := range []string{backups.KindBackup, backups.KindRestore} {
		if err := s.store.Jobs.Wait(t.Context(), kind); err != nil {
			t.Fatal(err)
		}
	}
}

// orders returns the attribute v of each item in a table that createOrders describes, by id. It
// checks that the index by-v has the same items.
func orders(t *testing.T, s *Server, table string) map[string]string {
	t.Helper()
	all := func(more string) map[string]string {
		var page struct {
			Items []struct {
				ID struct{ S string } `json:"id"`
				V  struct{ N string } `json:"v"`
			}
		}
		if err := json.Unmarshal([]byte(must(t, s, "Scan", `{"TableName": "`+table+`"`+more+`}`)), &page); err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, i := range page.Items {
			found[i.ID.S] = i.V.N
		}
		return found
	}
	items, index := all(""), all(`, "IndexName": "by-v"`)
	if d := gocmp.Diff(items, index); d != "" {
		t.Errorf("table %s and its index differ (-table +index):\n%s", table, d)
	}
	return items
}

func writeOrder(t *testing.T, s *Server, model map[string]string, rnd *rand.Rand) {
	t.Helper()
	id, v := fmt.Sprint(rnd.IntN(20)), fmt.Sprint(rnd.IntN(100))
	if rnd.IntN(3) == 0 {
		delete(model, id)
		must(t, s, "DeleteItem", `{"TableName": "orders", "Key": {"id": {"S": "`+id+`"}}}`)
		return
	}
	model[id] = v
	must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "`+id+`"}, "v": {"N": "`+v+`"}}}`)
}

func restoreTo(at time.Time, target string) string {
	return fmt.Sprintf(`{"SourceTableName": "orders", "TargetTableName": %q, "RestoreDateTime": %.3f}`, target, float64(at.UnixMilli())/1000)
}

// A restore to any second of a random history has the items that the table had then.
func TestRestoreTableToPointInTime_EachSecond(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) {
		o.Conn, o.Now, o.StreamShards, o.StreamShardRotation = peer.Bigtable(t, now), now.Now, []int{1, 2}, 20*time.Second
	})
	must(t, s, "CreateTable", createOrders)
	must(t, s, "UpdateContinuousBackups", recover35)
	rnd, model := rand.New(rand.NewPCG(1, 2)), map[string]string{}
	var seconds []map[string]string
	for second := range 60 {
		for range 3 + second%2 {
			writeOrder(t, s, model, rnd)
			now.Advance(200 * time.Millisecond)
		}
		now.AdvanceTo(testTime.Add(time.Duration(second+1)*time.Second - time.Millisecond))
		seconds = append(seconds, maps.Clone(model))
		now.Advance(time.Millisecond)
	}
	every := 3
	if long.Enabled() {
		every = 1
	}
	for i, want := range seconds {
		if i%every != 0 {
			continue
		}
		target := fmt.Sprintf("at-%d", i)
		answer := must(t, s, "RestoreTableToPointInTime", restoreTo(testTime.Add(time.Duration(i+1)*time.Second-time.Millisecond), target))
		if !strings.Contains(answer, `"TableStatus":"CREATING"`) || !strings.Contains(answer, `"RestoreInProgress":true`) {
			t.Errorf("the answer is %s", answer)
		}
		awaitJobs(t, s)
		if d := gocmp.Diff(want, orders(t, s, target)); d != "" {
			t.Fatalf("after second %d (-want +got):\n%s", i+1, d)
		}
		described := must(t, s, "DescribeTable", `{"TableName": "`+target+`"}`)
		if !strings.Contains(described, `"TableStatus":"ACTIVE"`) || !strings.Contains(described, `"RestoreInProgress":false`) {
			t.Errorf("then it is %s", described)
		}
		must(t, s, "DeleteTable", `{"TableName": "`+target+`"}`)
	}
	def, err := s.store.TableNow(t.Context(), "orders")
	if err != nil || len(def.Copies) > 0 {
		t.Errorf("the log is still held by %v, %v", def.Copies, err)
	}
}

// A backup contains the state at its request, regardless of later changes, and outlives its
// table.
func TestCreateBackup_OutlivesItsTable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newTestServer(t, func(o *Options) { o.wall = clock.New() }) // a copy waits for pending writes
		must(t, s, "CreateTable", createOrders)
		rnd, model := rand.New(rand.NewPCG(1, 2)), map[string]string{}
		for range 50 {
			writeOrder(t, s, model, rnd)
		}
		want := maps.Clone(model)
		var made struct {
			BackupDetails struct{ BackupArn, BackupStatus string }
		}
		answer := must(t, s, "CreateBackup", `{"TableName": "orders", "BackupName": "first"}`)
		if err := json.Unmarshal([]byte(answer), &made); err != nil || made.BackupDetails.BackupStatus != "CREATING" {
			t.Fatalf("%s, %v", answer, err)
		}
		for range 50 {
			writeOrder(t, s, model, rnd)
		}
		awaitJobs(t, s)
		arn := made.BackupDetails.BackupArn
		described := must(t, s, "DescribeBackup", `{"BackupArn": "`+arn+`"}`)
		if !strings.Contains(described, `"BackupStatus":"AVAILABLE"`) || !strings.Contains(described, fmt.Sprintf(`"ItemCount":%d`, len(want))) || strings.Contains(described, `"BackupSizeBytes":0`) {
			t.Errorf("it is %s", described)
		}
		if def, err := s.store.TableNow(t.Context(), "orders"); err != nil || def.Log.On() {
			t.Errorf("the log of the table is still on: %+v, %v", def.Log, err)
		}
		must(t, s, "DeleteTable", `{"TableName": "orders"}`)
		must(t, s, "RestoreTableFromBackup", `{"TargetTableName": "again", "BackupArn": "`+arn+`"}`)
		awaitJobs(t, s)
		if d := gocmp.Diff(want, orders(t, s, "again")); d != "" {
			t.Errorf("restored (-want +got):\n%s", d)
		}
		must(t, s, "PutItem", `{"TableName": "again", "Item": {"id": {"S": "new"}, "v": {"N": "1"}}}`)
		must(t, s, "DeleteBackup", `{"BackupArn": "`+arn+`"}`)
		if _, err := s.Call(t.Context(), "DescribeBackup", []byte(`{"BackupArn": "`+arn+`"}`)); !isCode(err, awserr.CodeBackupNotFound) {
			t.Errorf("after its deletion: %v", err)
		}
		if _, err := s.ReapExpired(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids, err := s.store.BigtableTables(t.Context())
		if err != nil || len(ids) != 3 { // the catalog, the table and its index
			t.Errorf("tables %v are left, %v", ids, err)
		}
	})
}

func isCode(err error, code string) bool {
	e, ok := awserr.As(err)
	return ok && e.Code == code
}

// When a table with point-in-time recovery is deleted, the server makes a backup of it, and
// keeps the backup for 35 days.
func TestDeleteTable_LeavesASystemBackup(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Conn, o.Now = peer.Bigtable(t, now), now.Now })
	must(t, s, "CreateTable", createOrders)
	must(t, s, "UpdateContinuousBackups", recover35)
	rnd, model := rand.New(rand.NewPCG(1, 2)), map[string]string{}
	for range 50 {
		writeOrder(t, s, model, rnd)
	}
	must(t, s, "DeleteTable", `{"TableName": "orders"}`)
	if list := must(t, s, "ListBackups", `{"TableName": "orders"}`); list != `{"BackupSummaries":[]}` {
		t.Errorf("backups of users: %s", list)
	}
	var list struct {
		BackupSummaries []struct{ BackupArn, BackupName, BackupType, BackupStatus string }
	}
	if err := json.Unmarshal([]byte(must(t, s, "ListBackups", `{"BackupType": "SYSTEM"}`)), &list); err != nil || len(list.BackupSummaries) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	b := list.BackupSummaries[0]
	if b.BackupName != "orders$DeletedTableBackup" || b.BackupStatus != "AVAILABLE" || !strings.HasSuffix(b.BackupArn, "-00000000") {
		t.Errorf("%+v", b)
	}
	_, err := s.Call(t.Context(), "DeleteBackup", []byte(`{"BackupArn": "`+b.BackupArn+`"}`))
	if e, ok := awserr.As(err); !ok || e.Message != "Invalid Request: User is not allowed to delete the system backup with arn "+b.BackupArn+". It will automatically expire on 2026-12-25T12:00:00Z" {
		t.Errorf("deletion: %v", err)
	}
	must(t, s, "CreateTable", createOrders) // another table of the same name
	must(t, s, "RestoreTableFromBackup", `{"TargetTableName": "again", "BackupArn": "`+b.BackupArn+`"}`)
	awaitJobs(t, s)
	if d := gocmp.Diff(model, orders(t, s, "again")); d != "" {
		t.Errorf("restored (-want +got):\n%s", d)
	}
	now.Advance(35*24*time.Hour + time.Millisecond)
	if _, err := s.ReapExpired(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list := must(t, s, "ListBackups", `{"BackupType": "ALL"}`); list != `{"BackupSummaries":[]}` {
		t.Errorf("after 35 days: %s", list)
	}
	ids, err := s.store.BigtableTables(t.Context())
	if err != nil || len(ids) != 5 { // the catalog, two tables with an index each
		t.Errorf("tables %v are left, %v", ids, err)
	}
}

// If a server ends in the middle of a restore, the next one finishes it.
func TestRestore_GoesOnAfterARestart(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	var o Options
	s := newTestServer(t, func(opts *Options) { opts.Conn, opts.Now = peer.Bigtable(t, now), now.Now; o = *opts })
	must(t, s, "CreateTable", createOrders)
	must(t, s, "UpdateContinuousBackups", recover35)
	rnd, model := rand.New(rand.NewPCG(1, 2)), map[string]string{}
	for range 50 {
		writeOrder(t, s, model, rnd)
	}
	restart := func() {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := New(context.WithoutCancel(t.Context()), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := next.Close(); err != nil {
				t.Error(err)
			}
		})
		s = next
	}
	for i := range 20 {
		must(t, s, "RestoreTableToPointInTime", restoreTo(now.Now(), "again"))
		if i%2 == 0 {
			restart()
		}
		awaitJobs(t, s)
		if d := gocmp.Diff(model, orders(t, s, "again")); d != "" {
			t.Fatalf("restored (-want +got):\n%s", d)
		}
		must(t, s, "DeleteTable", `{"TableName": "again"}`)
		writeOrder(t, s, model, rnd)
	}
	must(t, s, "RestoreTableToPointInTime", restoreTo(now.Now(), "again"))
	awaitJobs(t, s)
	must(t, s, "UpdateTable", `{"TableName": "again", "DeletionProtectionEnabled": true}`)
	restart()
	if got := must(t, s, "DescribeTable", `{"TableName": "again"}`); !strings.Contains(got, `"RestoreInProgress":false`) {
		t.Errorf("after a restart the restored table is %s", got)
	}
}

// Records of a stream have the images of its view, even if the log has both.
func TestGetRecords_ViewsOfARecoverableTable(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	must(t, s, "CreateTable", createOrders)
	must(t, s, "UpdateContinuousBackups", recover35)
	must(t, s, "UpdateTable", `{"TableName": "orders", "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "KEYS_ONLY"}}`)
	must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "1"}}}`)
	def, err := s.store.TableNow(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	arn := s.tableARN("orders") + "/stream/" + def.StreamLabel
	var stream struct {
		StreamDescription struct{ Shards []struct{ ShardID string } }
		ShardIterator     string
	}
	if err := json.Unmarshal([]byte(must(t, s, "DescribeStream", `{"StreamArn": "`+arn+`"}`)), &stream); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(must(t, s, "GetShardIterator", `{"StreamArn": "`+arn+`", "ShardId": "`+stream.StreamDescription.Shards[0].ShardID+`", "ShardIteratorType": "TRIM_HORIZON"}`)), &stream); err != nil {
		t.Fatal(err)
	}
	records := must(t, s, "GetRecords", `{"ShardIterator": "`+stream.ShardIterator+`"}`)
	if !strings.Contains(records, `"Keys":{"id":{"S":"a"}}`) || strings.Contains(records, "Image") {
		t.Errorf("the records are %s", records)
	}
}

// gateBackups delays reads of the tables with backups until open is closed.
func gateBackups(open <-chan struct{}) intercept.Func {
	return func(ctx context.Context, req any) error {
		if r, ok := req.(*btpb.ReadRowsRequest); ok && strings.Contains(r.GetTableName(), "/_tabletop.b.") {
			select {
			case <-open:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	}
}

// checkRestoring checks that table again, which is being restored from the first of two
// backups, supports only DescribeTable.
func checkRestoring(t *testing.T, s *Server, arns []string) {
	t.Helper()
	restore := func(arn, target string) string {
		return `{"BackupArn": "` + arn + `", "TargetTableName": "` + target + `"}`
	}
	const (
		table    = `{"TableName": "again"}`
		arn      = "arn:aws:dynamodb:us-east-1:000000000000:table/again"
		resource = `{"ResourceArn": "` + arn + `"`
		missing  = "ResourceNotFoundException: Requested resource not found: Table: again not found"
		untagged = "ResourceNotFoundException: Requested resource not found: ResourcArn: " + arn + " not found"
		kinesis  = `{"TableName": "again", "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/one"}`
	)
	if got := must(t, s, "DescribeTable", table); !strings.Contains(got, `"TableStatus":"CREATING"`) || !strings.Contains(got, `"RestoreInProgress":true`) {
		t.Errorf("it is %s", got)
	}
	for _, c := range []struct{ operation, body, want string }{
		{"DeleteBackup", `{"BackupArn": "` + arns[0] + `"}`, "BackupInUseException: Backup is being used to restore table: " + arns[0]},
		{"RestoreTableFromBackup", restore(arns[1], "again"), "TableInUseException: Table: again is already being restored from backup: " + arns[0]},
		{"RestoreTableFromBackup", restore(arns[0], "other"), "BackupInUseException: Backup is being used to restore another table: " + arns[0]},
		{"CreateTable", strings.Replace(createOrders, `"orders"`, `"again"`, 1), "ResourceInUseException: Attempt to change a resource which is still in use: Table is being used: again"},
		{"DeleteTable", table, "ResourceInUseException: Attempt to change a resource which is still in use: Table is being created: again"},
		{"DescribeContinuousBackups", table, "TableNotFoundException: Table not found: again"},
		{"UpdateContinuousBackups", `{"TableName": "again", "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": true}}`, "TableNotFoundException: Table not found: again"},
		{"CreateBackup", `{"TableName": "again", "BackupName": "one"}`, "TableNotFoundException: Table not found: again"},
		{"GetItem", `{"TableName": "again", "Key": {"id": {"S": "a"}}}`, "ResourceNotFoundException: Requested resource not found"},
		{"UpdateTable", `{"TableName": "again", "DeletionProtectionEnabled": true}`, missing},
		{"TagResource", resource + `, "Tags": [{"Key": "a", "Value": "b"}]}`, untagged},
		{"UntagResource", resource + `, "TagKeys": ["a"]}`, "ResourceNotFoundException: Requested resource not found"},
		{"ListTagsOfResource", resource + "}", untagged},
		{"UpdateTimeToLive", `{"TableName": "again", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": true}}`, missing},
		{"DescribeTimeToLive", table, missing},
		{"PutResourcePolicy", resource + `, "Policy": "{\"Version\": \"2012-10-17\", \"Statement\": {\"Effect\": \"Deny\", \"Principal\": \"*\", \"Action\": \"dynamodb:GetItem\", \"Resource\": \"` + arn + `\"}}"}`, missing},
		{"GetResourcePolicy", resource + "}", missing},
		{"DeleteResourcePolicy", resource + "}", missing},
		{"UpdateContributorInsights", `{"TableName": "again", "ContributorInsightsAction": "ENABLE"}`, missing},
		{"DescribeContributorInsights", table, missing},
		{"EnableKinesisStreamingDestination", kinesis, missing},
		{"DescribeKinesisStreamingDestination", table, missing},
	} {
		if _, err := s.Call(t.Context(), c.operation, []byte(c.body)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", c.operation, err, c.want)
		}
	}
}

// A restore is in progress as long as its table is CREATING, even after all items are there.
func TestRestore_Delayed(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.Now, o.StatusDelays.Create = now.Now, 4*time.Second })
	must(t, s, "CreateTable", createOrders)
	now.Advance(4 * time.Second)
	must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "1"}}}`)
	var arns []string
	for range 2 {
		arns = append(arns, answerOf[struct{ BackupDetails struct{ BackupArn string } }](t, s, "CreateBackup", `{"TableName": "orders", "BackupName": "one"}`).BackupDetails.BackupArn)
	}
	awaitJobs(t, s)
	must(t, s, "RestoreTableFromBackup", `{"BackupArn": "`+arns[0]+`", "TargetTableName": "again"}`)
	awaitJobs(t, s)
	now.Advance(time.Second)
	checkRestoring(t, s, arns)
	now.Advance(3 * time.Second)
	if got := orders(t, s, "again"); got["a"] != "1" {
		t.Errorf("it has %v", got)
	}
	must(t, s, "RestoreTableFromBackup", `{"BackupArn": "`+arns[0]+`", "TargetTableName": "other"}`)
	awaitJobs(t, s)
	now.Advance(4 * time.Second)
	must(t, s, "DeleteBackup", `{"BackupArn": "`+arns[0]+`"}`)
}

// During a restore, its table supports only DescribeTable, and neither the table nor its
// backup can be used for another restore.
func TestRestore_UnderWay(t *testing.T) {
	t.Parallel()
	open := make(chan struct{})
	s := newTestServer(t, func(o *Options) { o.Conn = intercept.New(o.Conn, gateBackups(open)) })
	must(t, s, "CreateTable", createOrders)
	must(t, s, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "1"}}}`)
	var arns []string
	for range maxTestRestores + 1 {
		var made struct{ BackupDetails struct{ BackupArn string } }
		if err := json.Unmarshal([]byte(must(t, s, "CreateBackup", `{"TableName": "orders", "BackupName": "one"}`)), &made); err != nil {
			t.Fatal(err)
		}
		arns = append(arns, made.BackupDetails.BackupArn)
	}
	awaitJobs(t, s)
	restore := func(arn, target string) string {
		return `{"BackupArn": "` + arn + `", "TargetTableName": "` + target + `"}`
	}
	must(t, s, "RestoreTableFromBackup", restore(arns[0], "again"))
	checkRestoring(t, s, arns)
	for i := 1; i < maxTestRestores; i++ {
		must(t, s, "RestoreTableFromBackup", restore(arns[i], fmt.Sprintf("again-%d", i)))
	}
	want := "LimitExceededException: Subscriber limit exceeded: Only 50 restore operations can be done simultaneously"
	if _, err := s.Call(t.Context(), "RestoreTableFromBackup", []byte(restore(arns[maxTestRestores], "one-more"))); err == nil || err.Error() != want {
		t.Errorf("one more restore: %v", err)
	}
	close(open)
	awaitJobs(t, s)
	for _, target := range []string{"again", "again-49"} {
		if got := orders(t, s, target); got["a"] != "1" || len(got) != 1 {
			t.Errorf("table %s has %v", target, got)
		}
	}
}

// maxTestRestores is the limit of concurrent restores.
const maxTestRestores = 50

// Two servers over one Bigtable see each other's backups and restores, and a copy by one of
// them is correct while the other writes.
func TestBackups_TwoServers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := clock.New()
		a, b := newTwoTestServers(t, func(o *Options) { o.Conn, o.Now, o.wall = peer.Bigtable(t, now), now.Now, clock.New() })
		must(t, a, "CreateTable", createOrders)
		must(t, a, "UpdateContinuousBackups", recover35)
		now.Advance(2 * time.Second) // then both know
		rnd, model := rand.New(rand.NewPCG(1, 2)), map[string]string{}
		for i := range 100 {
			writeOrder(t, []*Server{a, b}[i%2], model, rnd)
		}
		if _, err := a.ReapExpired(t.Context()); err != nil { // it learns that there is another server
			t.Fatal(err)
		}
		var made struct{ BackupDetails struct{ BackupArn string } }
		if err := json.Unmarshal([]byte(must(t, b, "CreateBackup", `{"TableName": "orders", "BackupName": "one"}`)), &made); err != nil {
			t.Fatal(err)
		}
		awaitJobs(t, b)
		if got := must(t, a, "DescribeBackup", `{"BackupArn": "`+made.BackupDetails.BackupArn+`"}`); !strings.Contains(got, `"BackupStatus":"AVAILABLE"`) {
			t.Errorf("the other server has %s", got)
		}
		must(t, a, "RestoreTableFromBackup", `{"BackupArn": "`+made.BackupDetails.BackupArn+`", "TargetTableName": "again"}`)
		awaitJobs(t, a)
		now.Advance(2 * time.Second)
		if d := gocmp.Diff(model, orders(t, b, "again")); d != "" {
			t.Errorf("restored (-want +got):\n%s", d)
		}
	})
}

// A request on a table without backups or point-in-time recovery makes no calls for them.
func TestBackups_CostNothing(t *testing.T) {
	t.Parallel()
	conn := newCountingConn()
	s := newTestServer(t, func(o *Options) { conn.ClientConnInterface, o.Conn = o.Conn, conn })
	must(t, s, "CreateTable", createOrders)
	value := 0
	calls := func() int64 {
		before := conn.calls.Load()
		value++
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "orders", "Item": {"id": {"S": "a"}, "n": {"N": "%d"}}}`, value))
		return conn.calls.Load() - before
	}
	calls()
	plain := calls()
	must(t, s, "UpdateContinuousBackups", recover35)
	calls()
	if logged := calls(); logged <= plain {
		t.Errorf("a write takes %d calls with recovery, %d without", logged, plain)
	}
	must(t, s, "UpdateContinuousBackups", strings.Replace(recover35, "true", "false", 1))
	calls()
	if again := calls(); again != plain {
		t.Errorf("a write takes %d calls once recovery is off, %d before it was on", again, plain)
	}
}

// Another server finishes the restore of a server that stopped.
func TestRestore_IsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewFrozen(testTime)
		conn := peer.Bigtable(t, now)
		open := make(chan struct{})
		a := newTestServer(t, func(o *Options) { o.Conn, o.Now = intercept.New(conn, gateBackups(open)), now.Now })
		must(t, a, "CreateTable", createOrders)
		must(t, a, "PutItem", `{"TableName": "orders", "Item": {"id": {"S": "a"}, "v": {"N": "1"}}}`)
		var made struct{ BackupDetails struct{ BackupArn string } }
		if err := json.Unmarshal([]byte(must(t, a, "CreateBackup", `{"TableName": "orders", "BackupName": "one"}`)), &made); err != nil {
			t.Fatal(err)
		}
		awaitJobs(t, a)
		must(t, a, "RestoreTableFromBackup", `{"TargetTableName": "again", "BackupArn": "`+made.BackupDetails.BackupArn+`"}`)
		wall := clock.NewFrozen(testTime)
		b := newTestServer(t, func(o *Options) { o.Conn, o.Now, o.wall = conn, now.Now, wall })
		for !strings.Contains(must(t, b, "DescribeTable", `{"TableName": "again"}`), `"TableStatus":"ACTIVE"`) {
			wall.Advance(time.Second)
			synctest.Wait()
		}
		if got := orders(t, b, "again"); got["a"] != "1" || len(got) != 1 {
			t.Errorf("it has %v", got)
		}
		close(open)
	})
}

// The memory of a restore does not depend on the size of its table.
func TestBackups_Memory(t *testing.T) { //nolint:paralleltest // Alone makes it parallel
	if race.Enabled {
		t.Skip("the race detector counts in memory of its own")
	}
	size := smallMemory
	if long.Enabled() {
		size = fullMemory
	}
	memory.Alone(t, func(t *testing.T) { restoresInMemory(t, size) })
}

func restoresInMemory(t *testing.T, size memorySize) {
	t.Helper()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, size.options(t), func(o *Options) { o.Now = now.Now })
	must(t, s, "CreateTable", createOrders)
	fill := func(text string) {
		body := strings.Repeat(text, size.itemBytes)
		for i := range size.items {
			must(t, s, "PutItem", fmt.Sprintf(`{"TableName": "orders", "Item": {"id": {"S": "%d"}, "v": {"N": "%d"}, "text": {"S": "`, i, i)+body+`"}}}`)
		}
	}
	fill("a")
	must(t, s, "UpdateContinuousBackups", recover35)
	at := now.Advance(time.Second)
	now.Advance(time.Second)
	fill("b")
	size.check(t, "restored", func() {
		must(t, s, "RestoreTableToPointInTime", restoreTo(at, "again"))
		awaitJobs(t, s)
	})
	if got := must(t, s, "GetItem", `{"TableName": "again", "Key": {"id": {"S": "17"}}}`); !strings.Contains(got, `"aaaa`) {
		t.Errorf("it has %.100s", got)
	}
}

// bigtableDir is the environment variable that tells the process of otherProcess the folder of
// its Bigtable, or inMemory.
const (
	bigtableDir = "TABLETOP_TEST_BIGTABLE_DIR"
	inMemory    = "memory"
)

// otherProcess returns a connection to a Bigtable in another process, which stores its data in
// the folder dir, or in its memory if dir is inMemory. The test does not measure the memory of
// that process.
func otherProcess(t *testing.T, dir string) *grpc.ClientConn {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), self, "-test.run=^TestBackups_OtherProcess$")
	cmd.Env, cmd.Stderr = append(os.Environ(), bigtableDir+"="+dir, "GOGC=1000"), os.Stderr // less garbage collection: the test does not measure its memory
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close() // that ends the process
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	conn, err := grpc.NewClient(strings.TrimSpace(addr), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20)),
		// By default the windows grow with the speed of the machine, up to 16 MiB.
		grpc.WithStaticStreamWindowSize(64<<10), grpc.WithStaticConnWindowSize(64<<10))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// TestBackups_OtherProcess serves the Bigtable of otherProcess. It stops when its standard input
// ends.
func TestBackups_OtherProcess(t *testing.T) {
	dir := os.Getenv(bigtableDir)
	if dir == "" {
		t.Skip("the memory tests run it, in a process of its own")
	}
	db, err := engine.Open(engine.Options{Dir: strings.TrimPrefix(dir, inMemory), NoSync: true, Now: clock.New().Now})
	if err != nil {
		t.Fatal(err)
	}
	bt, err := emu.New(emu.Options{DB: db})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- bt.Serve(l) }()
	fmt.Println(l.Addr())
	_, err = io.Copy(io.Discard, os.Stdin)
	if err := errors.Join(err, bt.Close(), <-served, db.Close()); err != nil {
		t.Error(err)
	}
}

// CreateBackup accepts a table that is being deleted, as the service does. The backup has all
// items, and CreateBackup does not wait for the deletion.
func TestCreateBackup_OfATableThatGoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		now := clock.NewFrozen(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC))
		s := newTestServer(t, func(o *Options) {
			o.Now, o.wall = now.Now, clock.New()
			o.StatusDelays = StatusDelays{Delete: time.Minute}
		})
		must(t, s, "CreateTable", createOrders)
		rnd, want := rand.New(rand.NewPCG(1, 2)), map[string]string{}
		for range 20 {
			writeOrder(t, s, want, rnd)
		}
		must(t, s, "DeleteTable", `{"TableName": "orders"}`)
		if described := must(t, s, "DescribeTable", `{"TableName": "orders"}`); !strings.Contains(described, `"TableStatus":"DELETING"`) {
			t.Fatalf("it is %s", described)
		}
		var made struct{ BackupDetails struct{ BackupArn string } }
		answer := must(t, s, "CreateBackup", `{"TableName": "orders", "BackupName": "last"}`)
		if err := json.Unmarshal([]byte(answer), &made); err != nil {
			t.Fatal(err)
		}
		awaitJobs(t, s)
		now.Advance(2 * time.Minute)
		refuses(t, s, "CreateBackup", `{"TableName": "orders", "BackupName": "late"}`, "TableNotFoundException: Table not found: orders")
		must(t, s, "RestoreTableFromBackup", `{"TargetTableName": "again", "BackupArn": "`+made.BackupDetails.BackupArn+`"}`)
		awaitJobs(t, s)
		if d := gocmp.Diff(want, orders(t, s, "again")); d != "" {
			t.Errorf("restored (-want +got):\n%s", d)
		}
	})
}
