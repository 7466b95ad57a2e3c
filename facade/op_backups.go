package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/backups"
	"github.com/tabletop-emu/tabletop/facade/internal/sizes"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// This file has the operations of continuous backups, backups and restores; package backups
// implements them.

func (s *Server) backups(operation string) *backups.Service {
	return &backups.Service{
		Options: backups.Options{
			Store: s.store, Now: s.opts.Now, Region: s.opts.Region, Account: s.opts.AccountID, Random: s.opts.random,
			Delays: backups.Delays{Backup: s.opts.StatusDelays.Backup, Create: s.opts.StatusDelays.Create},
		},
		V: s.validator(operation).Validator,
	}
}

func (s *Server) createBackup(ctx context.Context, in *backups.CreateInput) (*backups.CreateOutput, error) {
	return s.backups("CreateBackup").Create(ctx, in)
}

func (s *Server) deleteBackup(ctx context.Context, in *backups.ARNInput) (*backups.DescribeOutput, error) {
	return s.backups("DeleteBackup").Delete(ctx, in)
}

func (s *Server) describeBackup(ctx context.Context, in *backups.ARNInput) (*backups.DescribeOutput, error) {
	return s.backups("DescribeBackup").Describe(ctx, in)
}

func (s *Server) describeContinuousBackups(ctx context.Context, in *backups.ContinuousInput) (*backups.ContinuousOutput, error) {
	return s.backups("DescribeContinuousBackups").DescribeContinuous(ctx, in)
}

func (s *Server) listBackups(ctx context.Context, in *backups.ListInput) (*backups.ListOutput, error) {
	return s.backups("ListBackups").List(ctx, in)
}

func (s *Server) restoreTableFromBackup(ctx context.Context, in *backups.FromBackupInput) (*tableOutput, error) {
	return s.restored(s.backups("RestoreTableFromBackup").FromBackup(ctx, in))
}

func (s *Server) restoreTableToPointInTime(ctx context.Context, in *backups.ToTimeInput) (*tableOutput, error) {
	return s.restored(s.backups("RestoreTableToPointInTime").ToTime(ctx, in))
}

func (s *Server) restored(t *tabledef.Table, err error) (*tableOutput, error) {
	if err != nil {
		return nil, err
	}
	return &tableOutput{s.describe(t, sizes.Counts{})}, nil
}

func (s *Server) updateContinuousBackups(ctx context.Context, in *backups.UpdateContinuousInput) (*backups.ContinuousOutput, error) {
	return s.backups("UpdateContinuousBackups").UpdateContinuous(ctx, in)
}
