package facade

import (
	"context"

	"github.com/tabletop-emu/tabletop/facade/internal/request"
)

// This file has the operations on global tables of version 2017.11.29, and on replicas. Here,
// tables have neither.

func (s *Server) createGlobalTable(_ context.Context, in *request.CreateGlobalTableInput) (*noOutput, error) {
	return nil, request.CreateGlobalTable(&s.validator("CreateGlobalTable").Validator, in)
}

func (s *Server) describeGlobalTable(_ context.Context, in *request.GlobalTableInput) (*noOutput, error) {
	return nil, request.NoGlobalTable(&s.validator("DescribeGlobalTable").Validator, in)
}

func (s *Server) describeGlobalTableSettings(_ context.Context, in *request.GlobalTableInput) (*noOutput, error) {
	return nil, request.NoGlobalTable(&s.validator("DescribeGlobalTableSettings").Validator, in)
}

func (s *Server) updateGlobalTable(_ context.Context, in *request.UpdateGlobalTableInput) (*noOutput, error) {
	return nil, request.UpdateGlobalTable(&s.validator("UpdateGlobalTable").Validator, in)
}

func (s *Server) updateGlobalTableSettings(_ context.Context, in *request.GlobalTableInput) (*noOutput, error) {
	return nil, request.NoGlobalTable(&s.validator("UpdateGlobalTableSettings").Validator, in)
}

func (s *Server) listGlobalTables(_ context.Context, in *request.ListGlobalTablesInput) (*request.ListGlobalTablesOutput, error) {
	return request.ListGlobalTables(&s.validator("ListGlobalTables").Validator, in)
}

func (s *Server) describeTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return nil, request.NoReplicas(&s.validator("DescribeTableReplicaAutoScaling").Validator, in.TableName)
}

func (s *Server) updateTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return nil, request.NoReplicas(&s.validator("UpdateTableReplicaAutoScaling").Validator, in.TableName)
}
