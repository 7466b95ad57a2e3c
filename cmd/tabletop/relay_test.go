package main

import (
	"bytes"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// frames is a codec that passes messages through.
type frames struct{}

func (frames) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (frames) Unmarshal(data []byte, v any) error { *v.(*[]byte) = slices.Clone(data); return nil }
func (frames) Name() string                       { return "proto" }

// relay is a gRPC server that forwards calls to another one, except for one call.
type relay struct {
	addr string
	held chan struct{} // closed when a call is held: neither forwarded nor answered
}

// relayTo forwards calls with one request to a Bigtable, until hold holds one. Only MutateRows
// of the given table are passed to hold, one at a time.
func relayTo(t *testing.T, target, table string, hold func() bool) *relay {
	t.Helper()
	conn, err := dialBigtable(target, "")
	if err != nil {
		t.Fatal(err)
	}
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{addr: lis.Addr().String(), held: make(chan struct{})}
	var mu sync.Mutex
	holds := func(method string, request []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		select {
		case <-r.held:
			return false
		default:
		}
		if method != "/google.bigtable.v2.Bigtable/MutateRows" || !bytes.Contains(request, []byte("/tables/"+table)) || !hold() {
			return false
		}
		close(r.held)
		return true
	}
	srv := grpc.NewServer(grpc.ForceServerCodec(frames{}), grpc.MaxRecvMsgSize(1<<30), grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error {
		var message []byte
		if err := in.RecvMsg(&message); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(in)
		ctx := in.Context()
		if holds(method, message) {
			<-ctx.Done()
			return ctx.Err()
		}
		if md, ok := metadata.FromIncomingContext(ctx); ok {
			ctx = metadata.NewOutgoingContext(ctx, md)
		}
		out, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, method, grpc.ForceCodec(frames{}), grpc.MaxCallRecvMsgSize(1<<30))
		if err == nil {
			err = out.SendMsg(&message)
		}
		if err == nil {
			err = out.CloseSend()
		}
		for err == nil {
			if err = out.RecvMsg(&message); err == nil {
				err = in.SendMsg(&message)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}))
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := errors.Join(<-served, conn.Close()); err != nil {
			t.Error(err)
		}
	})
	return r
}
