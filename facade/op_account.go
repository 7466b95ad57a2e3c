package facade

import (
	"context"
)

// The operations of this file answer what clients and infrastructure tools
// ask before they do anything.

// emptyInput is a request without members.
type emptyInput struct{}

// describeLimitsOutput is the answer of DescribeLimits.
type describeLimitsOutput struct {
	AccountMaxReadCapacityUnits  int64
	AccountMaxWriteCapacityUnits int64
	TableMaxReadCapacityUnits    int64
	TableMaxWriteCapacityUnits   int64
}

// describeLimits answers the default limits of an account; none is enforced.
func (s *Server) describeLimits(context.Context, *emptyInput) (*describeLimitsOutput, error) {
	return &describeLimitsOutput{
		AccountMaxReadCapacityUnits: accountMaxCapacityUnits, AccountMaxWriteCapacityUnits: accountMaxCapacityUnits,
		TableMaxReadCapacityUnits: tableMaxCapacityUnits, TableMaxWriteCapacityUnits: tableMaxCapacityUnits,
	}, nil
}

// describeEndpointsOutput is the answer of DescribeEndpoints.
type describeEndpointsOutput struct {
	Endpoints []endpoint
}

type endpoint struct {
	Address              string
	CachePeriodInMinutes int64
}

// describeEndpoints answers the regional endpoint: a client that discovers
// endpoints is configured for AWS, not for this server.
func (s *Server) describeEndpoints(context.Context, *emptyInput) (*describeEndpointsOutput, error) {
	return &describeEndpointsOutput{[]endpoint{{
		Address: "dynamodb." + s.opts.Region + ".amazonaws.com", CachePeriodInMinutes: endpointCachePeriodMinutes,
	}}}, nil
}

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
