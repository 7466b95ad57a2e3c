package admin

import (
	"context"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/tabletop-emu/tabletop/emu/internal/filter"
	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
	"github.com/tabletop-emu/tabletop/emu/internal/resname"
	"github.com/tabletop-emu/tabletop/engine"
)

// DropRowRange deletes the rows whose keys begin with a prefix, or all rows. If
// delete_all_data_from_table is set to false, it does nothing.
func (s tableAdminService) DropRowRange(ctx context.Context, req *btapb.DropRowRangeRequest) (*emptypb.Empty, error) {
	t, err := FindTable(s.DB, "name", req.GetName())
	if err != nil {
		return nil, err
	}
	var span engine.Span
	switch k := req.GetTarget().(type) {
	case *btapb.DropRowRangeRequest_RowKeyPrefix:
		if len(k.RowKeyPrefix) == 0 {
			return nil, refusal.Invalid("row_key_prefix", "Prefix cannot be zero length")
		}
		span = engine.Span(filter.Prefix(k.RowKeyPrefix).Spans[0])
	case *btapb.DropRowRangeRequest_DeleteAllDataFromTable:
		if !k.DeleteAllDataFromTable {
			return &emptypb.Empty{}, nil
		}
	default:
		return nil, refusal.Invalid("target", "neither row_key_prefix nor delete_all_data_from_table is set")
	}
	if ctx, err = s.Rows.Dropping(ctx, t, resname.First(t.Name, 4)); err == nil {
		err = s.DB.DropRows(ctx, t.Name, span)
	}
	if err != nil {
		return nil, refusal.Of(err)
	}
	return &emptypb.Empty{}, nil
}
