package facade

import (
	"context"
	"errors"
	"fmt"

	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// describeContinuousBackupsOutput is the answer of DescribeContinuousBackups.
type describeContinuousBackupsOutput struct {
	ContinuousBackupsDescription continuousBackupsDescription
}

type continuousBackupsDescription struct {
	ContinuousBackupsStatus        string
	PointInTimeRecoveryDescription pointInTimeRecoveryDescription
}

type pointInTimeRecoveryDescription struct {
	PointInTimeRecoveryStatus string
}

// describeContinuousBackups answers that a table has no point-in-time
// recovery.
func (s *Server) describeContinuousBackups(ctx context.Context, in *tableInput) (*describeContinuousBackupsOutput, error) {
	name, err := s.validator("DescribeContinuousBackups").controlTableName(in.TableName)
	if err != nil {
		return nil, err
	}
	switch _, err := s.store.TableNow(ctx, name); {
	case errors.Is(err, store.ErrTableNotFound): // the operations on backups have an exception of their own
		return nil, badRequest(wire.CodeTableNotFound, fmt.Sprintf(msgBackupsTableNotFound, name))
	case err != nil:
		return nil, err
	}
	return &describeContinuousBackupsOutput{continuousBackupsDescription{
		ContinuousBackupsStatus:        "ENABLED", // it is for every table of DynamoDB
		PointInTimeRecoveryDescription: pointInTimeRecoveryDescription{"DISABLED"},
	}}, nil
}
