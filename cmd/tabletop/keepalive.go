package main

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// How the client library of Cloud Bigtable pings, which its servers take.
const (
	cloudPingAfter = 30 * time.Second
	pingPatience   = 10 * time.Second
)

// leastPingAfter is how often gRPC lets a client ping at most.
const leastPingAfter = 10 * time.Second

// findDead ends a connection over which nothing comes any more, so that the next call
// makes another: without it one that a machine in between forgot is kept for ever.
//
// Servers of gRPC end a connection with ENHANCE_YOUR_CALM at the third ping within five
// minutes between which they have sent nothing, and at pings without a call; some have
// it otherwise. So one that is not Cloud Bigtable is pinged during calls alone, and not
// more than twice before a call without an answer ends, which timeout is.
func findDead(cloud bool, timeout time.Duration) grpc.DialOption {
	if cloud {
		return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: cloudPingAfter, Timeout: pingPatience, PermitWithoutStream: true})
	}
	return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: max(leastPingAfter, timeout), Timeout: pingPatience})
}
