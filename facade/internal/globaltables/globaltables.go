// Package globaltables answers for global tables of 2017, which the service makes no more, as
// it does for an account that has none, and for the replicas of tables, of which there are none.
package globaltables

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/internal/validation"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Named is a request that names a global table, and nothing else that counts.
type Named struct{ GlobalTableName *string }

// CreateInput is the request of CreateGlobalTable.
type CreateInput struct {
	GlobalTableName  *string
	ReplicationGroup []struct{ RegionName *string }
}

// UpdateInput is the request of UpdateGlobalTable.
type UpdateInput struct {
	GlobalTableName *string
	ReplicaUpdates  []struct {
		Create, Delete *struct{ RegionName *string }
	}
}

// ListInput is the request of ListGlobalTables.
type ListInput struct {
	ExclusiveStartGlobalTableName *string
	Limit                         *int32
	RegionName                    *string
}

// ListOutput is the answer of ListGlobalTables.
type ListOutput struct{ GlobalTables []struct{} }

// checkName checks the name of a global table.
func checkName(v *validation.Validator, name *string) error {
	v.Required("GlobalTableName", name != nil)
	if name != nil {
		if n := utf8.RuneCountInString(*name); n < validation.MinTableNameChars || n > validation.MaxTableNameChars {
			return wire.ValidationError(fmt.Sprintf(validation.MsgNameLength, "TableName"))
		}
		v.Name("GlobalTableName", *name)
	}
	return v.Constrained()
}

// Create refuses, once the request has the right shape.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateGlobalTable.html
func Create(v *validation.Validator, in *CreateInput) error {
	v.Required("ReplicationGroup", in.ReplicationGroup != nil)
	if err := checkName(v, in.GlobalTableName); err != nil {
		return err
	}
	return wire.ValidationError(msgVersion2017)
}

// None answers that there is no global table of a name.
func None(v *validation.Validator, in *Named) error {
	if err := checkName(v, in.GlobalTableName); err != nil {
		return err
	}
	text := msgNotFound
	if v.Operation == "DescribeGlobalTableSettings" || v.Operation == "UpdateGlobalTableSettings" {
		text = msgNoReplicas
	}
	return &wire.Refusal{Code: wire.CodeGlobalTableNotFound, HTTPStatus: http.StatusBadRequest, Message: fmt.Sprintf(text, *in.GlobalTableName)}
}

// Update is None for UpdateGlobalTable.
func Update(v *validation.Validator, in *UpdateInput) error {
	v.Required("ReplicaUpdates", in.ReplicaUpdates != nil)
	return None(v, &Named{in.GlobalTableName})
}

// List lists none.
func List(v *validation.Validator, in *ListInput) (*ListOutput, error) {
	v.AtLeast("Limit", in.Limit, 1)
	if in.ExclusiveStartGlobalTableName != nil {
		v.Name("ExclusiveStartGlobalTableName", *in.ExclusiveStartGlobalTableName)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	return &ListOutput{[]struct{}{}}, nil
}

// NoReplicas answers, of a table that is there or not, that it is no global table.
func NoReplicas(v *validation.Validator, table *string) error {
	name, err := v.ControlTableName(table)
	if err != nil {
		return err
	}
	return &wire.Refusal{Code: wire.CodeResourceNotFound, HTTPStatus: http.StatusBadRequest, Message: fmt.Sprintf(msgNoReplicas, name)}
}
