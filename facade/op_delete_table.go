package facade

import (
	"context"
	"errors"
	"strings"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// deleteTable deletes a table, its indexes and its items. The description in its response omits
// the same members as on AWS, and has the results of the last count of items.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteTable.html
func (s *Server) deleteTable(ctx context.Context, in *tableInput) (*tableOutput, error) {
	t, err := s.controlTable(ctx, "DeleteTable", in.TableName)
	if err != nil {
		return nil, err
	}
	if t.DeletionProtection {
		return nil, awserr.Validation(awserr.MsgDeletionProtected)
	}
	if err := s.checkIndexesAtRest(t); err != nil {
		return nil, err
	}
	counts, err := s.store.KnownCounts(ctx, t)
	if err != nil {
		return nil, controlError(err, t.Name)
	}
	deleted, err := s.store.DeleteTable(ctx, t.Name)
	var busy *tabledef.TableInUseError
	if errors.As(err, &busy) && busy.Stream != "" {
		return nil, awserr.New(awserr.CodeResourceInUse, awserr.MsgStreamHoldsTable, strings.ToLower(busy.Stream)+"d")
	}
	if err != nil {
		return nil, controlError(err, t.Name)
	}
	s.opts.deliveries(s.store).Deleted(ctx, deleted)
	d := s.describe(deleted, counts)
	return &tableOutput{&tableDescription{
		BillingModeSummary:        d.BillingModeSummary,
		DeletionProtectionEnabled: d.DeletionProtectionEnabled,
		ItemCount:                 d.ItemCount,
		ProvisionedThroughput:     d.ProvisionedThroughput,
		TableArn:                  d.TableArn,
		TableID:                   d.TableID,
		TableName:                 d.TableName,
		TableSizeBytes:            d.TableSizeBytes,
		TableStatus:               d.TableStatus,
	}}, nil
}
