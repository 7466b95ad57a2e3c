package soak

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const (
	streamReaders = 10
	// hours is the number of hours between two windows, with a backup each: after some windows
	// the number of records and backups is stable.
	hours      = 4
	streamKeep = 24 * time.Hour
	backupKeep = 8 * time.Hour
	lastRow    = "the last"
)

// followers read the change stream of the clients' rows, and make backups of them.
type followers struct {
	*soak
	admin   btapb.BigtableTableAdminClient
	cluster string
	backup  string // the last one
	made    int
	readers []*follower
	all     sync.WaitGroup
}

// follower reads the stream on a connection of its own. Its records must reproduce the rows.
type follower struct {
	*followers
	api  btpb.BigtableClient
	done chan struct{} // closed when it has stopped reading

	cells   map[string]string // by row and column: the newest value
	records int
	resumed int
	token   string

	mu     sync.Mutex // guards cancel
	cancel context.CancelFunc
}

func newFollowers(s *soak) *followers {
	t := s.t
	t.Helper()
	dial := func() *grpc.ClientConn {
		conn, err := grpc.NewClient("passthrough:///"+s.env.Addr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	conn := dial()
	f := &followers{soak: s, admin: btapb.NewBigtableTableAdminClient(conn)}
	began := timestamppb.New(s.env.Now().Truncate(time.Second))
	if _, err := f.admin.UpdateTable(t.Context(), &btapb.UpdateTableRequest{
		Table:      &btapb.Table{Name: tableName(s, rowsTable), ChangeStreamConfig: &btapb.ChangeStreamConfig{RetentionPeriod: durationpb.New(streamKeep)}},
		UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"change_stream_config"}},
	}); err != nil {
		t.Fatal(err)
	}
	clusters, err := btapb.NewBigtableInstanceAdminClient(conn).ListClusters(t.Context(), &btapb.ListClustersRequest{
		Parent: "projects/" + s.env.Project() + "/instances/" + s.env.Instance(),
	})
	if err != nil || len(clusters.GetClusters()) == 0 {
		t.Fatal(clusters, err)
	}
	f.cluster = clusters.GetClusters()[0].GetName()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(func() {
		cancel()
		f.all.Wait()
	})
	for range streamReaders {
		r := &follower{followers: f, api: btpb.NewBigtableClient(dial()), done: make(chan struct{}), cells: map[string]string{}}
		f.readers = append(f.readers, r)
		f.all.Go(func() { r.run(ctx, began) })
	}
	return f
}

// run reads until the last row, or until ctx is done.
func (r *follower) run(ctx context.Context, began *timestamppb.Timestamp) {
	defer close(r.done)
	for {
		once, cancel := context.WithCancel(ctx)
		r.mu.Lock()
		r.cancel = cancel
		r.mu.Unlock()
		last, err := r.read(once, began)
		cancel()
		switch {
		case last:
			return
		case ctx.Err() != nil:
			return
		case status.Code(err) != codes.Canceled:
			r.t.Errorf("change stream: it ended with %v", err)
			return
		}
		r.resumed++
	}
}

// read continues, and reports whether it has reached the last row.
func (r *follower) read(ctx context.Context, began *timestamppb.Timestamp) (last bool, err error) {
	whole := &btpb.StreamPartition{RowRange: &btpb.RowRange{StartKey: &btpb.RowRange_StartKeyClosed{}, EndKey: &btpb.RowRange_EndKeyOpen{}}}
	req := &btpb.ReadChangeStreamRequest{
		TableName: tableName(r.soak, rowsTable), Partition: whole, StartFrom: &btpb.ReadChangeStreamRequest_StartTime{StartTime: began},
	}
	if r.token != "" {
		req.StartFrom = &btpb.ReadChangeStreamRequest_ContinuationTokens{ContinuationTokens: &btpb.StreamContinuationTokens{
			Tokens: []*btpb.StreamContinuationToken{{Partition: whole, Token: r.token}},
		}}
	}
	stream, err := r.api.ReadChangeStream(ctx, req)
	if err != nil {
		return false, err
	}
	row, pending := "", map[string]string{}
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return false, errors.New("end of the stream")
		}
		if err != nil {
			return false, err
		}
		if beat := resp.GetHeartbeat(); beat != nil {
			r.token = beat.GetContinuationToken().GetToken()
		}
		change := resp.GetDataChange()
		if change == nil {
			continue
		}
		if change.GetType() != btpb.ReadChangeStreamResponse_DataChange_CONTINUATION {
			row = string(change.GetRowKey())
		}
		for _, chunk := range change.GetChunks() { // collected cells are old
			if set := chunk.GetMutation().GetSetCell(); set != nil {
				pending[cellName(row, set.GetFamilyName(), set.GetColumnQualifier())] = string(set.GetValue())
			}
		}
		if !change.GetDone() {
			continue
		}
		maps.Copy(r.cells, pending)
		clear(pending)
		r.records++
		if r.token = change.GetToken(); row == lastRow {
			return true, nil
		}
	}
}

func cellName(row, family string, qualifier []byte) string {
	return fmt.Sprintf("%q %s:%q", row, family, qualifier)
}

// between lets hours pass and makes a backup in each, while no call is running. Every second
// reader is cut off.
func (f *followers) between() {
	for i, r := range f.readers {
		if i%2 == 0 {
			r.mu.Lock()
			r.cancel()
			r.mu.Unlock()
		}
	}
	for range hours {
		f.env.Advance(time.Hour)
		f.made++
		id := fmt.Sprintf("hourly-%d", f.made)
		if _, err := f.admin.CreateBackup(f.t.Context(), &btapb.CreateBackupRequest{Parent: f.cluster, BackupId: id, Backup: &btapb.Backup{
			SourceTable: tableName(f.soak, rowsTable), ExpireTime: timestamppb.New(f.env.Now().Add(backupKeep)),
		}}); err != nil {
			f.t.Errorf("backup %d: %v", f.made, err)
			return
		}
		f.backup = f.cluster + "/backups/" + id
	}
	list, err := f.admin.ListBackups(f.t.Context(), &btapb.ListBackupsRequest{Parent: f.cluster})
	if n := len(list.GetBackups()); err != nil || n > int(backupKeep/time.Hour)+1 {
		f.t.Errorf("%d backups are there, %v", n, err)
	}
}

// check compares the read records, and a restore of the last backup, since which nothing was
// written, with the rows.
func (f *followers) check() {
	ctx := f.t.Context()
	table := tableName(f.soak, rowsTable)
	api := f.readers[0].api
	want, err := newestCells(ctx, api, table)
	if err != nil {
		f.t.Fatal(err)
	}
	f.env.RestoreBackup(f.t, f.backup, "restored")
	if got, err := newestCells(ctx, api, tableName(f.soak, "restored")); err != nil || !maps.Equal(got, want) {
		f.t.Errorf("the restored table has %d cells (%v), the table %d: %s", len(got), err, len(want), firstOther(got, want))
	}
	if _, err := api.MutateRow(ctx, &btpb.MutateRowRequest{TableName: table, RowKey: []byte(lastRow), Mutations: both(1)}); err != nil {
		f.t.Fatal(err)
	}
	for _, r := range f.readers {
		<-r.done
	}
	f.all.Wait()
	if want, err = newestCells(ctx, api, table); err != nil {
		f.t.Fatal(err)
	}
	for i, r := range f.readers {
		if r.records != f.readers[0].records || !maps.Equal(r.cells, want) {
			f.t.Errorf("reader %d was cut off %d times and has %d records of %d, which result in %d cells of %d: %s",
				i, r.resumed, r.records, f.readers[0].records, len(r.cells), len(want), firstOther(r.cells, want))
		}
	}
	f.t.Logf("%d readers of the change stream have %d records each, half of them cut off %d times; %d backups were made",
		len(f.readers), f.readers[0].records, f.readers[0].resumed, f.made)
}

// firstOther names a cell in which two sets differ.
func firstOther(got, want map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			return fmt.Sprintf("%s is %x, want %x", name, got[name], want[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			return fmt.Sprintf("%s is %x, want none", name, got[name])
		}
	}
	return "no difference"
}

// newestCells returns the newest values of all cells of a table.
func newestCells(ctx context.Context, api btpb.BigtableClient, table string) (map[string]string, error) {
	stream, err := api.ReadRows(ctx, &btpb.ReadRowsRequest{TableName: table, Filter: latest()})
	if err != nil {
		return nil, err
	}
	cells := map[string]string{}
	var row, family string
	var qualifier []byte
	var value strings.Builder
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return cells, nil
		}
		if err != nil {
			return nil, err
		}
		for _, chunk := range resp.GetChunks() {
			if len(chunk.GetRowKey()) > 0 {
				row = string(chunk.GetRowKey())
			}
			if chunk.GetFamilyName() != nil {
				family = chunk.GetFamilyName().GetValue()
			}
			if chunk.GetQualifier() != nil {
				qualifier = chunk.GetQualifier().GetValue()
			}
			value.Write(chunk.GetValue())
			if chunk.GetValueSize() == 0 {
				cells[cellName(row, family, qualifier)] = value.String()
				value.Reset()
			}
		}
	}
}
