package request

import (
	"unicode/utf8"

	"github.com/tabletop-emu/tabletop/facade/awserr"
)

// GlobalTableInput is a request that names a global table. Its other members are ignored.
type GlobalTableInput struct{ GlobalTableName *string }

// CreateGlobalTableInput is the request of CreateGlobalTable.
type CreateGlobalTableInput struct {
	GlobalTableName  *string
	ReplicationGroup []struct{ RegionName *string }
}

// UpdateGlobalTableInput is the request of UpdateGlobalTable.
type UpdateGlobalTableInput struct {
	GlobalTableName *string
	ReplicaUpdates  []struct {
		Create, Delete *struct{ RegionName *string }
	}
}

// ListGlobalTablesInput is the request of ListGlobalTables.
type ListGlobalTablesInput struct {
	ExclusiveStartGlobalTableName *string
	Limit                         *int32
	RegionName                    *string
}

// ListGlobalTablesOutput is the response of ListGlobalTables.
type ListGlobalTablesOutput struct{ GlobalTables []struct{} }

// checkName checks the name of a global table.
func checkName(v *Validator, name *string) error {
	v.Required("GlobalTableName", name != nil)
	if name != nil {
		if n := utf8.RuneCountInString(*name); n < MinTableNameChars || n > MaxTableNameChars {
			return awserr.Validation(awserr.MsgNameLength, "TableName")
		}
		v.Name("GlobalTableName", *name)
	}
	return v.Constrained()
}

// CreateGlobalTable checks the request and then rejects it.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_CreateGlobalTable.html
func CreateGlobalTable(v *Validator, in *CreateGlobalTableInput) error {
	v.Required("ReplicationGroup", in.ReplicationGroup != nil)
	if err := checkName(v, in.GlobalTableName); err != nil {
		return err
	}
	return awserr.Validation(awserr.MsgVersion2017)
}

// NoGlobalTable checks the name of a global table, and returns the error that the table
// does not exist.
func NoGlobalTable(v *Validator, in *GlobalTableInput) error {
	if err := checkName(v, in.GlobalTableName); err != nil {
		return err
	}
	text := awserr.MsgGlobalTableNotFound
	if v.Operation == "DescribeGlobalTableSettings" || v.Operation == "UpdateGlobalTableSettings" {
		text = awserr.MsgNoReplicas
	}
	return awserr.New(awserr.CodeGlobalTableNotFound, text, *in.GlobalTableName)
}

// UpdateGlobalTable is like NoGlobalTable, but takes the request of UpdateGlobalTable.
func UpdateGlobalTable(v *Validator, in *UpdateGlobalTableInput) error {
	v.Required("ReplicaUpdates", in.ReplicaUpdates != nil)
	return NoGlobalTable(v, &GlobalTableInput{in.GlobalTableName})
}

// ListGlobalTables checks the request and returns an empty list.
func ListGlobalTables(v *Validator, in *ListGlobalTablesInput) (*ListGlobalTablesOutput, error) {
	v.AtLeast("Limit", in.Limit, 1)
	if in.ExclusiveStartGlobalTableName != nil {
		v.Name("ExclusiveStartGlobalTableName", *in.ExclusiveStartGlobalTableName)
	}
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	return &ListGlobalTablesOutput{[]struct{}{}}, nil
}

// NoReplicas returns the error for a table that is not a global table, whether or not the
// table exists.
func NoReplicas(v *Validator, table *string) error {
	name, err := v.ControlTableName(table)
	if err != nil {
		return err
	}
	return awserr.New(awserr.CodeResourceNotFound, awserr.MsgNoReplicas, name)
}
