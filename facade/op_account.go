package facade

import "context"

// The operations of this file answer what clients ask about the account before
// they do anything.

// emptyInput is a request without members.
type emptyInput struct{}

// describeLimitsOutput is the answer of DescribeLimits.
type describeLimitsOutput struct {
	AccountMaxReadCapacityUnits  int64
	AccountMaxWriteCapacityUnits int64
	TableMaxReadCapacityUnits    int64
	TableMaxWriteCapacityUnits   int64
}

// describeLimits answers the default limits of an account, which count with Options.Throttle.
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

// describeEndpointsInput is the request of DescribeEndpoints.
type describeEndpointsInput struct {
	Host string `json:"-"` // that it was sent to
}

func (in *describeEndpointsInput) sentTo(host string) { in.Host = host }

// describeEndpoints answers the host that the request was sent to, with which a
// client that discovers endpoints goes on.
func (s *Server) describeEndpoints(_ context.Context, in *describeEndpointsInput) (*describeEndpointsOutput, error) {
	return &describeEndpointsOutput{[]endpoint{{Address: in.Host, CachePeriodInMinutes: endpointCachePeriodMinutes}}}, nil
}
