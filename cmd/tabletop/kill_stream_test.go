package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/iam/apiv1/iampb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/internal/clock"
)

// backUp creates a backup of the table.
func (k *killed) backUp(id string) error {
	_, err := k.tables.CreateBackup(k.t.Context(), &btapb.CreateBackupRequest{
		Parent: killCluster, BackupId: id,
		Backup: &btapb.Backup{SourceTable: killTable, ExpireTime: timestamppb.New(clock.New().Now().Add(48 * time.Hour))},
	})
	return err
}

// stream gives the table a change stream and returns a time before its records. The time is in
// whole seconds; a reader may begin one second before the stream, but no earlier.
func (k *killed) stream() *timestamppb.Timestamp {
	k.t.Helper()
	ask(k, k.tables.UpdateTable, &btapb.UpdateTableRequest{
		Table:      &btapb.Table{Name: killTable, ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(24 * time.Hour)}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"change_stream_config"}},
	})
	return timestamppb.New(clock.New().Now().Truncate(time.Second))
}

// change is a record of a stream.
type change struct {
	row, token string
	values     []string // of the cells that it sets
}

// readChanges calls each with the records of the last partition, which begins at start. It
// reads from a time or, if given, after a token, and until end if given. It returns why it
// ended.
func (k *killed) readChanges(ctx context.Context, start string, from *timestamppb.Timestamp, token string, end *timestamppb.Timestamp, each func(change)) error {
	last := &btpb.StreamPartition{RowRange: &btpb.RowRange{
		StartKey: &btpb.RowRange_StartKeyClosed{StartKeyClosed: []byte(start)}, EndKey: &btpb.RowRange_EndKeyOpen{},
	}}
	req := &btpb.ReadChangeStreamRequest{
		TableName: killTable, Partition: last, EndTime: end, StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: from},
	}
	if token != "" {
		req.StartFrom = &btpb.ReadChangeStreamRequest_ContinuationTokens{ContinuationTokens: &btpb.StreamContinuationTokens{
			Tokens: []*btpb.StreamContinuationToken{{Partition: last, Token: token}},
		}}
	}
	stream, err := k.data.ReadChangeStream(ctx, req)
	if err != nil {
		return err
	}
	var c change
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if closed := resp.GetCloseStream(); closed != nil && closed.GetStatus().GetCode() != int32(codes.OK) {
			return status.ErrorProto(closed.GetStatus())
		}
		data := resp.GetDataChange()
		if data == nil {
			continue
		}
		if row := data.GetRowKey(); len(row) > 0 {
			c = change{row: string(row)}
		}
		for _, chunk := range data.GetChunks() {
			if set := chunk.GetMutation().GetSetCell(); set != nil {
				c.values = append(c.values, string(set.GetValue()))
			}
		}
		if data.GetDone() {
			c.token = data.GetToken()
			each(c)
		}
	}
}

// changes returns the result of readChanges up to now.
func (k *killed) changes(start string, from *timestamppb.Timestamp, token string) []change {
	k.t.Helper()
	var all []change
	if err := k.readChanges(k.t.Context(), start, from, token, timestamppb.New(clock.New().Now()), func(c change) { all = append(all, c) }); err != nil {
		k.t.Fatal(err)
	}
	return all
}

// dress gives the table a view, a bundle, a backup and a stream with two later records, and
// returns a time before these.
func (k *killed) dress(policy *iampb.Policy) *timestamppb.Timestamp {
	k.t.Helper()
	ask(k, k.tables.CreateAuthorizedView, &btapb.CreateAuthorizedViewRequest{Parent: killTable, AuthorizedViewId: "v", AuthorizedView: &btapb.AuthorizedView{
		AuthorizedView: &btapb.AuthorizedView_SubsetView_{SubsetView: &btapb.AuthorizedView_SubsetView{
			RowPrefixes: [][]byte{[]byte("r")}, FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{"f": {QualifierPrefixes: [][]byte{nil}}},
		}},
	}})
	ask(k, k.tables.SetIamPolicy, &iampb.SetIamPolicyRequest{Resource: killTable + "/authorizedViews/v", Policy: policy})
	ask(k, k.tables.CreateSchemaBundle, &btapb.CreateSchemaBundleRequest{Parent: killTable, SchemaBundleId: "s", SchemaBundle: &btapb.SchemaBundle{
		Type: &btapb.SchemaBundle_AvroSchema{AvroSchema: &btapb.AvroSchema{JsonSchemas: []string{`"int"`}}},
	}})
	if err := k.backUp("b"); err != nil {
		k.t.Fatal(err)
	}
	began := k.stream()
	for _, row := range []string{"r", "s"} {
		ask(k, k.data.MutateRow, &btpb.MutateRowRequest{TableName: killTable, RowKey: []byte(row), Mutations: cells("changed")})
	}
	return began
}

// TestKill_Stream: a server is killed during writes, while readers follow the stream and others
// make backups. Each acknowledged write has one complete record. A reader that continues from
// its last token gets each record once, and the kill takes none back. Each acknowledged backup
// can be restored.
func TestKill_Stream(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	k := serveKilled(t, dir)
	ask(k, k.instances.CreateInstance, &btapb.CreateInstanceRequest{
		Parent: killProject, InstanceId: "one", Instance: &btapb.Instance{DisplayName: "One"},
		Clusters: map[string]*btapb.Cluster{"c1": {Location: killProject + "/locations/z1", ServeNodes: 1}},
	})
	ask(k, k.tables.CreateTable, &btapb.CreateTableRequest{
		Parent: killInstance, TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}, "g": {}}},
	})
	began := k.stream()
	const writers, enough, backupsEnough = 4, 50, 3
	var mu sync.Mutex // guards the following
	var written [writers]int
	var backups []int // rows of each writer that were acknowledged before each backup
	var read []change
	progress := make(chan struct{}, 1)
	locked := func(what func()) {
		mu.Lock()
		what()
		mu.Unlock()
		select {
		case progress <- struct{}{}:
		default:
		}
	}
	var all sync.WaitGroup
	stopped := make(chan error, writers+2) // by the kill, or earlier
	for w := range writers {
		all.Go(func() {
			for i := 1; ; i++ {
				row := fmt.Sprintf("%d-%06d", w, i)
				if _, err := k.data.MutateRow(t.Context(), &btpb.MutateRowRequest{TableName: killTable, RowKey: []byte(row), Mutations: cells(row)}); err != nil {
					stopped <- err
					return
				}
				locked(func() { written[w] = i })
			}
		})
	}
	all.Go(func() {
		for i := 0; ; i++ {
			mu.Lock()
			before := written[0]
			mu.Unlock()
			if err := k.backUp(fmt.Sprint("b", i)); err != nil {
				stopped <- err
				return
			}
			locked(func() { backups = append(backups, before) })
		}
	})
	all.Go(func() {
		stopped <- k.readChanges(t.Context(), "", began, "", nil, func(c change) { locked(func() { read = append(read, c) }) })
	})
	for done := false; !done; {
		select {
		case <-progress:
		case err := <-stopped:
			t.Fatal(err)
		}
		mu.Lock()
		done = len(backups) >= backupsEnough && len(read) >= enough
		for _, n := range written {
			done = done && n >= enough
		}
		mu.Unlock()
	}
	k.server.end(t, syscall.SIGKILL)
	all.Wait()

	k = serveKilled(t, dir)
	rows, recorded := k.values(killTable), k.changes("", began, "")
	seen := map[string]int{}
	for _, c := range recorded {
		seen[c.row]++
		if len(c.values) != 4 || c.values[0] != c.row || c.values[3] != c.row {
			t.Errorf("half of a write is recorded: row %s, %q", c.row, c.values)
		}
	}
	for row := range rows {
		if seen[row] != 1 {
			t.Errorf("row %s has %d records", row, seen[row])
		}
	}
	for row := range seen {
		if len(rows[row]) != 4 {
			t.Errorf("row %s is recorded, and holds %q", row, rows[row])
		}
	}
	for w, n := range written {
		for i := 1; i <= n; i++ {
			if row := fmt.Sprintf("%d-%06d", w, i); seen[row] != 1 {
				t.Errorf("the write of %s was acknowledged and has %d records", row, seen[row])
			}
		}
	}
	before := len(read)
	read = append(read, k.changes("", nil, read[before-1].token)...)
	if len(read) != len(recorded) {
		t.Fatalf("a reader has had %d records before the kill and %d after it, of %d", before, len(read)-before, len(recorded))
	}
	for i, c := range read {
		if c.row != recorded[i].row {
			t.Fatalf("record %d of a reader that was cut off after %d is of row %s, want %s", i, before, c.row, recorded[i].row)
		}
	}
	// One more backup may exist, unacknowledged.
	list := ask(k, k.tables.ListBackups, &btapb.ListBackupsRequest{Parent: killCluster}).GetBackups()
	if n := len(list); n != len(backups) && n != len(backups)+1 {
		t.Errorf("%d backups exist, %d were acknowledged", n, len(backups))
	}
	for _, b := range list {
		if b.GetState() != btapb.Backup_READY {
			t.Errorf("backup %s is %v", b.GetName(), b.GetState())
		}
	}
	for i, atLeast := range backups {
		id := fmt.Sprint("restored", i)
		ask(k, k.tables.RestoreTable, &btapb.RestoreTableRequest{
			Parent: killInstance, TableId: id, Source: &btapb.RestoreTableRequest_Backup{Backup: killCluster + "/backups/b" + fmt.Sprint(i)},
		})
		has := k.values(killInstance + "/tables/" + id)
		for row, values := range has {
			if len(values) != 4 || values[0] != row {
				t.Errorf("backup %d: row %s holds %q", i, row, values)
			}
		}
		for n := 1; n <= atLeast; n++ {
			if row := fmt.Sprintf("0-%06d", n); len(has[row]) == 0 {
				t.Errorf("backup %d is without row %s, which was acknowledged before", i, row)
			}
		}
	}
}
