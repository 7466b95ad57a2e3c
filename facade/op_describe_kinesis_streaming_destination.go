package facade

import "context"

// describeKinesisOutput is the answer of DescribeKinesisStreamingDestination.
type describeKinesisOutput struct {
	TableName                     string
	KinesisDataStreamDestinations []kinesisDestination
}

// kinesisDestination is a stream that gets the changes of a table: there is
// none.
type kinesisDestination struct{}

// describeKinesisStreamingDestination answers that no Kinesis stream gets the
// changes of a table.
func (s *Server) describeKinesisStreamingDestination(ctx context.Context, in *tableInput) (*describeKinesisOutput, error) {
	t, err := s.controlTable(ctx, "DescribeKinesisStreamingDestination", in.TableName)
	if err != nil {
		return nil, err
	}
	return &describeKinesisOutput{TableName: t.Name, KinesisDataStreamDestinations: []kinesisDestination{}}, nil
}
