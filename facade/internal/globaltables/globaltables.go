package facade

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/internal/validation"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// The operations of this file are those of global tables of 2017, which the service
// makes no more: it answers as for an account that has none.

// globalTableInput is what they have in common.
type globalTableInput struct{ GlobalTableName *string }

// createGlobalTableInput is the request of CreateGlobalTable.
type createGlobalTableInput struct {
	GlobalTableName  *string
	ReplicationGroup []struct{ RegionName *string }
}

// updateGlobalTableInput is the request of UpdateGlobalTable.
type updateGlobalTableInput struct {
	GlobalTableName *string
	ReplicaUpdates  []struct {
		Create, Delete *struct{ RegionName *string }
	}
}

// listGlobalTablesInput is the request of ListGlobalTables.
type listGlobalTablesInput struct {
	ExclusiveStartGlobalTableName *string
	Limit                         *int32
	RegionName                    *string
}

// listGlobalTablesOutput is the answer of ListGlobalTables.
type listGlobalTablesOutput struct{ GlobalTables []struct{} }

// globalTableName checks the name of a global table.
func (v *validator) globalTableName(name *string) error {
	v.Required("GlobalTableName", name != nil)
	if name != nil {
		if n := utf8.RuneCountInString(*name); n < validation.MinTableNameChars || n > validation.MaxTableNameChars {
			return validationError(validation.MsgTableNameLength)
		}
		v.Name("GlobalTableName", *name)
	}
	return v.Constrained()
}

// createGlobalTable refuses, once the request has the right shape.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateGlobalTable.html
func (s *Server) createGlobalTable(_ context.Context, in *createGlobalTableInput) (*noOutput, error) {
	v := s.validator("CreateGlobalTable")
	v.Required("ReplicationGroup", in.ReplicationGroup != nil)
	if err := v.globalTableName(in.GlobalTableName); err != nil {
		return nil, err
	}
	return nil, validationError(msgGlobalTables2017)
}

// noGlobalTable answers that there is no global table of a name.
func (s *Server) noGlobalTable(v *validator, name *string) (*noOutput, error) {
	if err := v.globalTableName(name); err != nil {
		return nil, err
	}
	return nil, badRequest(wire.CodeGlobalTableNotFound, fmt.Sprintf(msgGlobalTableNotFound, *name))
}

func (s *Server) describeGlobalTable(_ context.Context, in *globalTableInput) (*noOutput, error) {
	return s.noGlobalTable(s.validator("DescribeGlobalTable"), in.GlobalTableName)
}

func (s *Server) describeGlobalTableSettings(_ context.Context, in *globalTableInput) (*noOutput, error) {
	return s.noGlobalTable(s.validator("DescribeGlobalTableSettings"), in.GlobalTableName)
}

func (s *Server) updateGlobalTable(_ context.Context, in *updateGlobalTableInput) (*noOutput, error) {
	v := s.validator("UpdateGlobalTable")
	v.Required("ReplicaUpdates", in.ReplicaUpdates != nil)
	return s.noGlobalTable(v, in.GlobalTableName)
}

func (s *Server) updateGlobalTableSettings(_ context.Context, in *globalTableInput) (*noOutput, error) {
	return s.noGlobalTable(s.validator("UpdateGlobalTableSettings"), in.GlobalTableName)
}

func (s *Server) listGlobalTables(_ context.Context, in *listGlobalTablesInput) (*listGlobalTablesOutput, error) {
	v := s.validator("ListGlobalTables")
	v.AtLeast("Limit", in.Limit, 1)
	if in.ExclusiveStartGlobalTableName != nil {
		v.Name("ExclusiveStartGlobalTableName", *in.ExclusiveStartGlobalTableName)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	return &listGlobalTablesOutput{[]struct{}{}}, nil
}

// noReplicas answers, of a table that is there or not, that it is no global table.
func (s *Server) noReplicas(operation string, in *tableInput) (*noOutput, error) {
	name, err := s.validator(operation).ControlTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	return nil, resourceNotFoundError(fmt.Sprintf(msgNoReplicas, name))
}

func (s *Server) describeTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return s.noReplicas("DescribeTableReplicaAutoScaling", in)
}

func (s *Server) updateTableReplicaAutoScaling(_ context.Context, in *tableInput) (*noOutput, error) {
	return s.noReplicas("UpdateTableReplicaAutoScaling", in)
}
