package main

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// The ping settings of Cloud Bigtable's client library, which its servers accept.
const (
	cloudPingAfter = 30 * time.Second
	pingPatience   = 10 * time.Second
)

// leastPingAfter is the shortest ping interval that gRPC allows.
const leastPingAfter = 10 * time.Second

// findDead closes a connection that no longer receives anything, so that the next call
// opens another: otherwise a connection that a middlebox dropped is kept forever.
//
// gRPC servers close a connection with ENHANCE_YOUR_CALM after a third ping within five
// minutes without sending data, and after pings without a call; some are configured
// differently. So servers other than Cloud Bigtable are pinged only during calls, and at
// most twice within timeout, the deadline of an unanswered call.
func findDead(cloud bool, timeout time.Duration) grpc.DialOption {
	if cloud {
		return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: cloudPingAfter, Timeout: pingPatience, PermitWithoutStream: true})
	}
	return grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: max(leastPingAfter, timeout), Timeout: pingPatience})
}
