package btclient

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnsentError is the error of a call that was never sent, and so not applied.
type UnsentError struct{ Err error }

// Error returns the text of the error inside.
func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside, which has the status.
func (e *UnsentError) Unwrap() error { return e.Err }

// ReportUnsent makes a connection report calls that were never sent, for lack of a
// connection, by an [*UnsentError]. Only with this option can a client retry a call that is
// not idempotent.
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
