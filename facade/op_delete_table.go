package facade

import "context"

// deleteTable deletes a table, its indexes and its items.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_DeleteTable.html
func (s *Server) deleteTable(ctx context.Context, in *tableInput) (*tableOutput, error) {
	t, err := s.controlTable(ctx, "DeleteTable", in.TableName)
	if err != nil {
		return nil, err
	}
	if t.DeletionProtection {
		return nil, validationError(msgDeletionProtected)
	}
	deleted, err := s.store.DeleteTable(ctx, t.Name)
	if err != nil {
		return nil, controlError(err, t.Name)
	}
	return &tableOutput{s.describe(deleted)}, nil
}
