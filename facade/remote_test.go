package facade

import (
	"context"
	"errors"
	goflag "flag"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
)

var remoteBigtable = goflag.String("facade.bigtable", "",
	"HOST:PORT of a Bigtable without TLS that the tests use instead of one in this process; it should collect no garbage by itself")

// testBigtable is the Bigtable of one test, empty, with the clock now: in this
// process, or an instance of its own at -facade.bigtable, whose clock is its
// own. Tests that need that clock, or garbage to be collected at a moment, open
// one in this process themselves.
func testBigtable(tb testing.TB, now func() time.Time) grpc.ClientConnInterface {
	tb.Helper()
	if *remoteBigtable != "" {
		return dialRemote(tb)
	}
	db, err := engine.Open(engine.Options{Now: now})
	if err != nil {
		tb.Fatal(err)
	}
	srv, err := emu.New(emu.Options{DB: db, Now: now, CloneInProcess: true})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	})
	return srv.Conn()
}

// remoteConn is a connection on which every instance is one that no other
// connection uses, in this run of the tests or in another.
type remoteConn struct {
	*grpc.ClientConn
	suffix string // of the names of instances
}

var remoteConns atomic.Int64

func dialRemote(tb testing.TB) *remoteConn {
	tb.Helper()
	conn, err := grpc.NewClient("passthrough:///"+*remoteBigtable, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(256<<20), grpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := conn.Close(); err != nil {
			tb.Error(err)
		}
	})
	return (&remoteConn{ClientConn: conn}).another()
}

// another is the same connection with other instances.
func (c *remoteConn) another() *remoteConn {
	return &remoteConn{c.ClientConn, fmt.Sprintf("-%x-%d", time.Now().UnixNano(), remoteConns.Add(1))}
}

// Invoke implements grpc.ClientConnInterface.
func (c *remoteConn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	out, err := c.rename(args, c.theirs)
	if err != nil {
		return err
	}
	if err := c.ClientConn.Invoke(ctx, method, out, reply, opts...); err != nil {
		return err
	}
	in, err := c.rename(reply, c.ours)
	if err == nil {
		proto.Reset(reply.(proto.Message))
		proto.Merge(reply.(proto.Message), in)
	}
	return err
}

// NewStream implements grpc.ClientConnInterface. The answers of streams name
// no instance.
func (c *remoteConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConn.NewStream(ctx, desc, method, opts...)
	return &remoteStream{stream, c}, err
}

type remoteStream struct {
	grpc.ClientStream
	conn *remoteConn
}

// SendMsg implements grpc.ClientStream.
func (s *remoteStream) SendMsg(m any) error {
	out, err := s.conn.rename(m, s.conn.theirs)
	if err != nil {
		return err
	}
	return s.ClientStream.SendMsg(out)
}

var instanceName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+`)

func (c *remoteConn) theirs(name string) string {
	return instanceName.ReplaceAllString(name, "${0}"+c.suffix)
}

func (c *remoteConn) ours(name string) string { return strings.Replace(name, c.suffix, "", 1) }

// rename returns a copy of a message with other names of instances.
func (c *remoteConn) rename(m any, name func(string) string) (proto.Message, error) {
	out := proto.Clone(m.(proto.Message))
	// A name is a field of the message, or of the tables that are listed.
	err := protorange.Range(out.ProtoReflect(), func(p protopath.Values) error {
		last := p.Index(-1)
		if text, ok := last.Value.Interface().(string); ok && instanceName.MatchString(text) {
			if at := last.Step.FieldDescriptor; last.Step.Kind() == protopath.FieldAccessStep {
				p.Index(-2).Value.Message().Set(at(), protoreflect.ValueOfString(name(text)))
			}
		}
		return nil
	})
	return out, err
}
