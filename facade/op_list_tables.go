package facade

import "context"

type listTablesInput struct {
	ExclusiveStartTableName *string
	Limit                   *int32
}

type listTablesOutput struct {
	LastEvaluatedTableName string `json:",omitzero"`
	TableNames             []string
}

// listTables returns a page of the names of all tables, in ascending order.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_ListTables.html
func (s *Server) listTables(ctx context.Context, in *listTablesInput) (*listTablesOutput, error) {
	v := s.validator("ListTables")
	after, limit := "", maxListTablesLimit
	if in.ExclusiveStartTableName != nil {
		after = *in.ExclusiveStartTableName
		v.Name("ExclusiveStartTableName", after)
	}
	v.AtLeast("Limit", in.Limit, 1)
	v.AtMost("Limit", in.Limit, maxListTablesLimit)
	if err := v.Constrained(); err != nil {
		return nil, err
	}
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	if err := s.store.RemoveDeleted(ctx); err != nil {
		return nil, err
	}
	names, more, err := s.store.ListTables(ctx, after, limit)
	if err != nil {
		return nil, err
	}
	out := &listTablesOutput{TableNames: names}
	if names == nil {
		out.TableNames = []string{}
	}
	if more && len(names) > 0 {
		out.LastEvaluatedTableName = names[len(names)-1]
	}
	return out, nil
}
