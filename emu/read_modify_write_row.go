package emu

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/emu/internal/load"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// ReadModifyWriteRow atomically applies a list of rules, in order. Each rule appends to or
// increments the newest cell of a column. The timestamp of the new cell is the later of the newest
// cell's timestamp and the server's time. The response has the final cell of each changed column.
func (c *call) ReadModifyWriteRow(ctx context.Context, req *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	resp, err := c.readModifyWriteRow(ctx, req)
	load.ReadModifyWriteRow(c.load(ctx, req, err), req, err)
	return resp, err
}

func (c *call) readModifyWriteRow(ctx context.Context, req *btpb.ReadModifyWriteRowRequest) (*btpb.ReadModifyWriteRowResponse, error) {
	t, err := c.writeTarget(req.GetTableName(), req.GetAuthorizedViewName())
	if err != nil {
		return nil, err
	}
	if ctx, err = c.admitWrite(ctx, req, t.Table, req.GetAppProfileId(), transacts); err != nil {
		return nil, err
	}
	if err := c.limits.CheckRowKey("row_key", req.GetRowKey()); err != nil {
		return nil, err
	}
	if err := t.checkRow(req.GetRowKey()); err != nil {
		return nil, err
	}
	if err := t.checkRules(req.GetRules()); err != nil {
		return nil, err
	}
	rules, err := c.readModifyWriteRules(t.Table, req.GetRules())
	if err != nil {
		return nil, err
	}
	cells, err := c.db.ReadModifyWrite(ctx, t.Name, req.GetRowKey(), rules)
	if err != nil {
		return nil, refusal.Of(err)
	}
	return &btpb.ReadModifyWriteRowResponse{Row: toRow(req.GetRowKey(), cells)}, nil
}
