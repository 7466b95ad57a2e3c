package facade

import "context"

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
	if _, err := s.controlTable(ctx, "DescribeContinuousBackups", in.TableName); err != nil {
		return nil, err
	}
	return &describeContinuousBackupsOutput{continuousBackupsDescription{
		ContinuousBackupsStatus:        "ENABLED", // it is for every table of DynamoDB
		PointInTimeRecoveryDescription: pointInTimeRecoveryDescription{"DISABLED"},
	}}, nil
}
