package wire

import (
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
)

// Codec implements [encoding.CodecV2].
type Codec struct {
	others    encoding.CodecV2
	responses responsePool
}

// NewCodec returns a Codec that falls back to gRPC's codec for other messages.
func NewCodec() *Codec { return &Codec{others: encoding.GetCodecV2(protocodec.Name)} }

// Name returns the name of the gRPC codec that Codec replaces.
func (c *Codec) Name() string { return protocodec.Name }

// Marshal returns the wire form of v. It does not retain v.
func (c *Codec) Marshal(v any) (mem.BufferSlice, error) {
	resp, ok := v.(*btpb.ReadRowsResponse)
	if !ok {
		return c.others.Marshal(v)
	}
	size, ok := readRowsSize(resp)
	if !ok {
		return c.others.Marshal(v)
	}
	if mem.IsBelowBufferPoolingThreshold(size) {
		return mem.BufferSlice{mem.SliceBuffer(appendReadRows(make([]byte, 0, size), resp))}, nil
	}
	buf := c.responses.Get(size)
	*buf = appendReadRows((*buf)[:0], resp)
	return mem.BufferSlice{mem.NewBuffer(buf, &c.responses)}, nil
}

// Unmarshal decodes v from its wire form. Byte fields of v may share memory with each other, but
// with nothing else.
func (c *Codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch m := v.(type) {
	case *btpb.MutateRowsRequest:
		return unmarshal(data, m, (*decoder).mutateRows)
	case *btpb.MutateRowRequest:
		return unmarshal(data, m, (*decoder).mutateRow)
	}
	return c.others.Unmarshal(data, v)
}

func unmarshal[M proto.Message](data mem.BufferSlice, m M, read func(*decoder, []byte, M) bool) error {
	src := data.Materialize()
	proto.Reset(m)
	if read(&decoder{}, src, m) {
		return nil
	}
	proto.Reset(m)
	return proto.Unmarshal(src, m)
}
