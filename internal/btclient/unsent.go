package btclient

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnsentError is the error of a call that was never sent, so it was not applied.
type UnsentError struct{ Err error }

// Error returns the text of the wrapped error.
func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error, which has the status.
func (e *UnsentError) Unwrap() error { return e.Err }

// ReportUnsent makes a connection return an [*UnsentError] for calls that were never sent because
// the server could not be reached. Without this option, a client cannot retry calls that are not
// idempotent.
func ReportUnsent() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		var reached peer.Peer
		err := invoke(ctx, method, req, reply, conn, append(options, grpc.Peer(&reached))...)
		if status.Code(err) == codes.Unavailable && reached.Addr == nil {
			return &UnsentError{err}
		}
		return err
	})
}

// neverSent reports whether a call was certainly not sent.
func neverSent(err error) bool {
	unsent := (*UnsentError)(nil)
	return errors.As(err, &unsent)
}
