package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/globaltables"
)

// The operations of this file are those of global tables of 2017, and of replicas: there are none.

func (s *Server) createGlobalTable(_ context.Context, in *globaltables.CreateInput) (*noOutput, error) {
	return nil, globaltables.Create(&s.validator("CreateGlobalTable").Validator, in)
}

func (s *Server) describeGlobalTable(_ context.Context, in *globaltables.Named) (*noOutput, error) {
	return nil, globaltables.None(&s.validator("DescribeGlobalTable").Validator, in)
}

func (s *Server) describeGlobalTableSettings(_ context.Context, in *globaltables.Named) (*noOutput, error) {
	return nil, globaltables.None(&s.validator("DescribeGlobalTableSettings").Validator, in)
}

func (s *Server) updateGlobalTable(_ context.Context, in *globaltables.UpdateInput) (*noOutput, error) {
	return nil, globaltables.Update(&s.validator("UpdateGlobalTable").Validator, in)
}

func (s *Server) updateGlobalTableSettings(_ context.Context, in *globaltables.Named) (*noOutput, error) {
	return nil, globaltables.None(&s.validator("UpdateGlobalTableSettings").Validator, in)
}

func (s *Server) listGlobalTables(_ context.Context, in *globaltables.ListInput) (*globaltables.ListOutput, error) {
	return globaltables.List(&s.validator("ListGlobalTables").Validator, in)
}

func (s *Server) describeTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return nil, globaltables.NoReplicas(&s.validator("DescribeTableReplicaAutoScaling").Validator, in.TableName)
}

func (s *Server) updateTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return nil, globaltables.NoReplicas(&s.validator("UpdateTableReplicaAutoScaling").Validator, in.TableName)
}
