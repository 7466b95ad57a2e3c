package facade

import "context"

// This file has the operations by which clients learn about their account and endpoint.

// emptyInput is a request without members.
type emptyInput struct{}

type describeLimitsOutput struct {
	AccountMaxReadCapacityUnits  int64
	AccountMaxWriteCapacityUnits int64
	TableMaxReadCapacityUnits    int64
	TableMaxWriteCapacityUnits   int64
}

// describeLimits returns the default limits of an account. They apply only if Options.Throttle
// is set.
func (s *Server) describeLimits(context.Context, *emptyInput) (*describeLimitsOutput, error) {
	return &describeLimitsOutput{
		AccountMaxReadCapacityUnits: accountMaxCapacityUnits, AccountMaxWriteCapacityUnits: accountMaxCapacityUnits,
		TableMaxReadCapacityUnits: tableMaxCapacityUnits, TableMaxWriteCapacityUnits: tableMaxCapacityUnits,
	}, nil
}

type describeEndpointsOutput struct {
	Endpoints []endpoint
}

type endpoint struct {
	Address              string
	CachePeriodInMinutes int64
}

type describeEndpointsInput struct {
	Host string `json:"-"` // the host of the request
}

func (in *describeEndpointsInput) sentTo(host string) { in.Host = host }

// describeEndpoints returns the host of the request, so that a client with endpoint discovery
// continues to use it.
func (s *Server) describeEndpoints(_ context.Context, in *describeEndpointsInput) (*describeEndpointsOutput, error) {
	return &describeEndpointsOutput{[]endpoint{{Address: in.Host, CachePeriodInMinutes: endpointCachePeriodMinutes}}}, nil
}
