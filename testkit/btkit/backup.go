package btkit

import (
	"context"
	"fmt"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/control/lab"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// backupLife is the longest lifetime of a backup in the service. Env.Backup requests a minute less.
const backupLife = 90 * 24 * time.Hour

// WithBackupBytes limits the total size of the keys and values in all backups. A backup that would
// exceed the limit fails with ResourceExhausted. Default: 4 GiB in memory, unlimited with WithDir.
func WithBackupBytes(n int64) Option { return func(c *server.Config) { c.Lab.Store.BackupBytes = n } }

// Backup backs up a table of the environment's instance in its current state, stores the backup in
// the instance's first cluster, and returns its resource name. The backup expires a minute before 90
// days have passed on the environment's clock.
func (e *Env) Backup(tb testing.TB, table string) (backup string) {
	tb.Helper()
	e.server.Use(tb)
	ctx := lab.Probe(tb.Context())
	parent, err := e.firstCluster(ctx)
	for n := 1; err == nil; n++ {
		id := fmt.Sprintf("%.40s-%d", table, n)
		req := &btapb.CreateBackupRequest{Parent: parent, BackupId: id, Backup: &btapb.Backup{
			SourceTable: e.server.Lab().TableName(table), ExpireTime: timestamppb.New(e.Now().Add(backupLife - time.Minute)),
		}}
		_, err = btapb.NewBigtableTableAdminClient(e.Conn()).CreateBackup(ctx, req)
		if err == nil {
			return parent + "/backups/" + id
		}
		if status.Code(err) == codes.AlreadyExists {
			err = nil
		}
	}
	tb.Fatalf("testkit: Backup of %s: %v%s", table, err, e.server.Elsewhere(table))
	return ""
}

// RestoreBackup restores the backup with the given resource name into a new table of the
// environment's instance.
func (e *Env) RestoreBackup(tb testing.TB, backup, table string) {
	tb.Helper()
	e.server.Use(tb)
	_, err := btapb.NewBigtableTableAdminClient(e.Conn()).RestoreTable(lab.Probe(tb.Context()), &btapb.RestoreTableRequest{
		Parent: e.server.InstanceName(), TableId: table, Source: &btapb.RestoreTableRequest_Backup{Backup: backup},
	})
	if err != nil {
		tb.Fatalf("testkit: RestoreBackup of %s: %v", backup, err)
	}
}

// firstCluster returns the name of the instance's first cluster.
func (e *Env) firstCluster(ctx context.Context) (string, error) {
	resp, err := btapb.NewBigtableInstanceAdminClient(e.Conn()).ListClusters(ctx, &btapb.ListClustersRequest{Parent: e.server.InstanceName()})
	if err != nil {
		return "", err
	}
	if len(resp.GetClusters()) == 0 {
		return "", fmt.Errorf("instance %s has no cluster", e.server.InstanceName())
	}
	return resp.GetClusters()[0].GetName(), nil
}
