package emu

import (
	"context"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
)

// PingAndWarm answers at once: there is nothing to warm. The instance must be
// well named; it exists because it was named.
func (s dataService) PingAndWarm(_ context.Context, req *btpb.PingAndWarmRequest) (*btpb.PingAndWarmResponse, error) {
	if err := parseInstance("name", req.GetName()); err != nil {
		return nil, err
	}
	return &btpb.PingAndWarmResponse{}, nil
}
