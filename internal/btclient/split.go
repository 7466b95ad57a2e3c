package btclient

import (
	"context"
	"fmt"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CreateSplit creates a table whose tablets are split at the given row keys. If the table exists,
// it leaves the table unchanged, and created is false.
// https://docs.cloud.google.com/bigtable/docs/managing-tables#splits
func (c *Client) CreateSplit(ctx context.Context, table string, families []Family, keys [][]byte) (created bool, err error) {
	req := &btapb.CreateTableRequest{Parent: c.instance, TableId: table, Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{}}}
	for _, f := range families {
		req.Table.ColumnFamilies[f.Name] = &btapb.ColumnFamily{GcRule: GCRule(f.GC)}
	}
	for _, key := range keys {
		req.InitialSplits = append(req.InitialSplits, &btapb.CreateTableRequest_Split{Key: key})
	}
	_, err = administer(ctx, c, c.writing(table, "CreateTable"), "parent", c.instance, btapb.BigtableTableAdminClient.CreateTable, req)
	switch {
	case status.Code(err) == codes.AlreadyExists:
		return false, nil
	case err != nil:
		return false, fmt.Errorf("creating table %s: %w", table, err)
	}
	return true, nil
}
