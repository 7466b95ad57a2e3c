package facade

import "context"

// describeTimeToLiveOutput is the answer of DescribeTimeToLive.
type describeTimeToLiveOutput struct {
	TimeToLiveDescription timeToLiveDescription
}

type timeToLiveDescription struct {
	AttributeName    string `json:",omitzero"`
	TimeToLiveStatus string
}

// describeTimeToLive answers whether items of a table expire.
func (s *Server) describeTimeToLive(ctx context.Context, in *tableInput) (*describeTimeToLiveOutput, error) {
	t, err := s.controlTable(ctx, "DescribeTimeToLive", in.TableName)
	if err != nil {
		return nil, err
	}
	d := timeToLiveDescription{TimeToLiveStatus: "DISABLED"}
	if t.TTLAttribute != "" {
		d = timeToLiveDescription{AttributeName: t.TTLAttribute, TimeToLiveStatus: "ENABLED"}
	}
	return &describeTimeToLiveOutput{d}, nil
}
