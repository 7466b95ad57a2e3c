package peer

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protopath"
	"google.golang.org/protobuf/reflect/protorange"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Conn is a connection whose instances no other connection uses, neither in this run of the tests
// nor in another.
type Conn struct {
	*grpc.ClientConn
	suffix string // of the names of instances
}

var conns atomic.Int64

// Apart returns a connection over conn that uses separate instances.
func Apart(conn *grpc.ClientConn) *Conn { return (&Conn{ClientConn: conn}).Another() }

// Another returns a connection over the same conn that uses other instances.
func (c *Conn) Another() *Conn {
	return &Conn{c.ClientConn, fmt.Sprintf("-%x-%d", time.Now().UnixNano(), conns.Add(1))} //nolint:forbidigo // names must differ between runs
}

// Invoke implements grpc.ClientConnInterface.
func (c *Conn) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
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

// NewStream implements grpc.ClientConnInterface. It leaves responses unchanged, because those of
// streams do not name instances.
func (c *Conn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConn.NewStream(ctx, desc, method, opts...)
	return &renamedStream{stream, c}, err
}

type renamedStream struct {
	grpc.ClientStream
	conn *Conn
}

// SendMsg implements grpc.ClientStream.
func (s *renamedStream) SendMsg(m any) error {
	out, err := s.conn.rename(m, s.conn.theirs)
	if err != nil {
		return err
	}
	return s.ClientStream.SendMsg(out)
}

var instanceName = regexp.MustCompile(`^projects/[^/]+/instances/[^/]+`)

func (c *Conn) theirs(name string) string {
	return instanceName.ReplaceAllString(name, "${0}"+c.suffix)
}

func (c *Conn) ours(name string) string { return strings.Replace(name, c.suffix, "", 1) }

// rename returns a copy of a message with other names of instances.
func (c *Conn) rename(m any, name func(string) string) (proto.Message, error) {
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
