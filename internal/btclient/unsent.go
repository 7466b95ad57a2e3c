package btclient

import (
	"context"
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// UnsentError is the error of a call that nobody was sent: it surely was not applied.
type UnsentError struct{ Err error }

// Error is the text of the error inside.
func (e *UnsentError) Error() string { return e.Err.Error() }

// Unwrap returns the error inside, which has the status.
func (e *UnsentError) Unwrap() error { return e.Err }

// TellUnsent makes a connection say of a call that it was never sent, by an
// [*UnsentError]: there was no connection to send it on. Only who has that option can
// send such a call again that may not be sent twice.
func TellUnsent() grpc.DialOption {
	return grpc.WithChainUnaryInterceptor(func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		var reached peer.Peer
		err := invoke(ctx, method, req, reply, conn, append(options, grpc.Peer(&reached))...)
		if status.Code(err) == codes.Unavailable && reached.Addr == nil {
			return &UnsentError{err}
		}
		return err
	})
}

// neverSent reports whether a call was surely not sent.
func neverSent(err error) bool {
	unsent := (*UnsentError)(nil)
	return errors.As(err, &unsent)
}
