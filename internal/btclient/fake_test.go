package btclient_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// No test of this package starts a server, so that its test binary does not link one. The tests
// over a server are in facade/internal/store/btclient_test.go.

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errBroken = status.Error(codes.Unavailable, "broken by the test")

// fake is a connection whose calls a test answers. An answer has the returned messages and the
// error after them: io.EOF is a regular end; with nil the call hangs.
type fake struct {
	answer func(call int, req proto.Message) ([]proto.Message, error)
	share  bool          // rows share the memory of messages
	every  time.Duration // interval between the messages of a stream

	mu       sync.Mutex
	reqs     []proto.Message
	headers  []metadata.MD
	contexts []context.Context
}

func (f *fake) Target() string { return "fake:1" }

func (f *fake) begin(ctx context.Context, req proto.Message) ([]proto.Message, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	header, _ := metadata.FromOutgoingContext(ctx)
	f.reqs, f.headers, f.contexts = append(f.reqs, proto.Clone(req)), append(f.headers, header), append(f.contexts, ctx)
	return f.answer(len(f.reqs)-1, req)
}

func (f *fake) Invoke(ctx context.Context, _ string, args, reply any, _ ...grpc.CallOption) error {
	msgs, err := f.begin(ctx, args.(proto.Message))
	switch {
	case err == nil:
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err()
	case !errors.Is(err, io.EOF):
		return err
	}
	proto.Merge(reply.(proto.Message), msgs[0])
	return nil
}

func (f *fake) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &fakeStream{f: f, ctx: ctx}, nil
}

type fakeStream struct {
	f    *fake
	ctx  context.Context
	msgs []proto.Message
	err  error
}

func (s *fakeStream) SendMsg(m any) (err error) {
	s.msgs, s.err = s.f.begin(s.ctx, m.(proto.Message))
	return nil
}

func (s *fakeStream) RecvMsg(m any) error {
	switch {
	case s.ctx.Err() != nil:
		return status.FromContextError(s.ctx.Err()).Err()
	case len(s.msgs) > 0:
		time.Sleep(s.f.every) // in a synctest bubble
		if s.f.share {
			m.(*btpb.ReadRowsResponse).Chunks = s.msgs[0].(*btpb.ReadRowsResponse).GetChunks()
		} else {
			proto.Merge(m.(proto.Message), s.msgs[0])
		}
		s.msgs = s.msgs[1:]
		return nil
	case s.err == nil:
		<-s.ctx.Done()
		return status.FromContextError(s.ctx.Err()).Err()
	}
	return s.err
}

func (s *fakeStream) Header() (metadata.MD, error) { return nil, nil }
func (s *fakeStream) Trailer() metadata.MD         { return nil }
func (s *fakeStream) CloseSend() error             { return nil }
func (s *fakeStream) Context() context.Context     { return s.ctx }

// client returns a client of the fake.
func (f *fake) client(o btclient.Options) *btclient.Client {
	return btclient.New(f, "p", "i", o)
}

// text returns the keys and ranges that a ReadRows call requested; + is a zero byte.
func (f *fake) text(call int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	req := f.reqs[call].(*btpb.ReadRowsRequest)
	var words []string
	for _, k := range req.GetRows().GetRowKeys() {
		words = append(words, string(k))
	}
	for _, r := range req.GetRows().GetRowRanges() {
		words = append(words, "["+string(r.GetStartKeyClosed())+","+string(r.GetEndKeyOpen())+")")
	}
	return strings.ReplaceAll(strings.Join(words, " "), "\x00", "+")
}

func (f *fake) calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.reqs)
}

// selected returns the rows of a request, in its order; rows are sorted.
func selected(rows []btclient.Row, req *btpb.ReadRowsRequest) []btclient.Row {
	var out []btclient.Row
	for _, row := range rows {
		in := slices.ContainsFunc(req.GetRows().GetRowKeys(), func(k []byte) bool { return bytes.Equal(k, row.Key) }) ||
			slices.ContainsFunc(req.GetRows().GetRowRanges(), func(r *btpb.RowRange) bool {
				end := r.GetEndKeyOpen()
				return bytes.Compare(r.GetStartKeyClosed(), row.Key) <= 0 && (len(end) == 0 || bytes.Compare(row.Key, end) < 0)
			})
		if in || req.GetRows() == nil {
			out = append(out, row)
		}
	}
	if req.GetReversed() {
		slices.Reverse(out)
	}
	if n := int(req.GetRowsLimit()); n > 0 && len(out) > n {
		out = out[:n]
	}
	return out
}

// chunks returns the chunks of a row: one per cell, or per piece of a cell.
func chunks(row btclient.Row, piece int) []*btpb.ReadRowsResponse_CellChunk {
	var out []*btpb.ReadRowsResponse_CellChunk
	for i, c := range row.Cells {
		for from := 0; from == 0 || from < len(c.Value); from += piece {
			to := min(from+piece, len(c.Value))
			chunk := &btpb.ReadRowsResponse_CellChunk{Value: c.Value[from:to]}
			if from == 0 {
				chunk.FamilyName, chunk.Qualifier, chunk.TimestampMicros = wrapperspb.String(c.Family), wrapperspb.Bytes(c.Qualifier), c.Timestamp
				if i == 0 {
					chunk.RowKey = row.Key
				}
			}
			if to < len(c.Value) {
				chunk.ValueSize = int32(len(c.Value))
			}
			out = append(out, chunk)
		}
	}
	out[len(out)-1].RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
	return out
}

// row makes a row with cells of these values.
func row(key string, values ...string) btclient.Row {
	r := btclient.Row{Key: []byte(key)}
	for i, v := range values {
		r.Cells = append(r.Cells, btclient.Cell{Family: "f", Qualifier: []byte{byte('a' + i)}, Timestamp: 1000, Value: []byte(v)})
	}
	return r
}

// messages returns one message per chunk of the rows.
func messages(rows ...btclient.Row) []proto.Message {
	var out []proto.Message
	for _, r := range rows {
		for _, c := range chunks(r, 1<<20) {
			out = append(out, &btpb.ReadRowsResponse{Chunks: []*btpb.ReadRowsResponse_CellChunk{c}})
		}
	}
	return out
}

// joined joins the parts of rows, without void parts.
func joined(parts []btclient.Part) []btclient.Row {
	var rows []btclient.Row
	var open *btclient.Row // incomplete
	for _, p := range parts {
		if !p.Continues || open == nil {
			open = &btclient.Row{Key: p.Key}
		}
		open.Cells = append(open.Cells, p.Cells...)
		if !p.More {
			rows = append(rows, *open)
			open = nil
		}
	}
	return rows
}
