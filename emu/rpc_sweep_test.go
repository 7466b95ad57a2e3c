package emu

import (
	"context"
	"errors"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// sweptRPC is a method of a registered service, with the types of its messages.
type sweptRPC struct {
	service, method string
	request         protoreflect.MessageDescriptor
	response        protoreflect.MessageDescriptor
	stream          *grpc.StreamDesc // nil for unary methods
}

// registeredRPCs returns the methods of all services registered on the wire.
func registeredRPCs(tb testing.TB, s *grpc.Server) []sweptRPC {
	tb.Helper()
	services := s.GetServiceInfo()
	var out []sweptRPC
	for _, name := range slices.Sorted(maps.Keys(services)) {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
		methods := d.(protoreflect.ServiceDescriptor).Methods()
		if got := len(services[name].Methods); got != methods.Len() {
			tb.Errorf("%s: %d methods are registered of %d", name, got, methods.Len())
		}
		for i := range methods.Len() {
			m := methods.Get(i)
			r := sweptRPC{service: name, method: string(m.Name()), request: m.Input(), response: m.Output()}
			if m.IsStreamingClient() || m.IsStreamingServer() {
				r.stream = &grpc.StreamDesc{StreamName: r.method, ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}
			}
			out = append(out, r)
		}
	}
	return out
}

// raw is an encoded message.
type raw []byte

type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) ([]byte, error) { return *v.(*raw), nil }

func (rawCodec) Unmarshal(b []byte, v any) error {
	*v.(*raw) = append(raw(nil), b...)
	return nil
}

// call sends encoded messages, one to a unary method, and reads all responses.
func (r sweptRPC) call(ctx context.Context, conn grpc.ClientConnInterface, messages ...[]byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	path, rawly := "/"+r.service+"/"+r.method, grpc.ForceCodec(rawCodec{})
	if r.stream == nil {
		return conn.Invoke(ctx, path, (*raw)(&messages[0]), &raw{}, rawly)
	}
	s, err := conn.NewStream(ctx, r.stream, path, rawly)
	if err != nil {
		return err
	}
	if !r.stream.ClientStreams {
		messages = messages[:1]
	}
	for _, m := range messages {
		if err := s.SendMsg((*raw)(&m)); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	for {
		if err := s.RecvMsg(&raw{}); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if r.service == "grpc.health.v1.Health" {
			return nil // Watch does not end
		}
	}
}

// sweep generates encoded messages of any type from its descriptor. Other than hostile
// messages, they are valid and decodable. Hostile messages have extreme numbers, huge texts,
// broken names, unknown enum values, several members of a oneof, and fields of wrong or invalid
// wire types. A few contain invalid UTF-8, which servers cannot decode.
type sweep struct {
	rng     *rand.Rand
	hostile bool
	budget  int // remaining bytes for texts
}

// sweptNames are names of the server's resources, so that some messages pass the first check.
var sweptNames = []string{
	"projects/p", "projects/p/locations/us-east1-b", testInstance, testTable,
	"projects/p/instances/made", "projects/p/instances/made/tables/t", "projects/p/instances/made/clusters/c1",
	testTable + "/authorizedViews/v", testTable + "/schemaBundles/s", "projects/p/instances/made/appProfiles/default", "operations/projects/p/instances/made/operations/1", "operations",
	"t", "f", "default", "c1", "new", "",
}

var hostileTexts = []string{
	"projects/p/instances/i/tables/\x00", "projects//instances//tables/", "projects/p/instances/i/tables/t/tables/t", "projects/-/instances/-",
	"../../../../etc/passwd", "%s%n%!d", "\x00", "-", "*", "\U0001F600\u202e", strings.Repeat("a/", 1000),
	"(((((((((((((((((((((((((((((((((((((((((((((", "(x{1000}){1000}", `[[:word:]-\Q`, strings.Repeat("x", 1<<16),
}

func (s *sweep) text() []byte {
	switch n := s.rng.IntN(20); {
	case n < 10:
		return []byte(sweptNames[s.rng.IntN(len(sweptNames))])
	case n < 19 && s.hostile:
		text := hostileTexts[s.rng.IntN(len(hostileTexts))]
		if s.budget -= len(text); s.budget < 0 {
			return nil
		}
		return []byte(text)
	case s.hostile:
		return []byte("not \xff UTF-8 \xc3")
	}
	b := make([]byte, s.rng.IntN(12))
	for i := range b {
		b[i] = byte(' ' + s.rng.IntN(0x7f-' '))
	}
	return b
}

func (s *sweep) bytes() []byte {
	if s.hostile || s.rng.IntN(2) == 0 {
		return s.text()
	}
	b := make([]byte, s.rng.IntN(12))
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return b
}

func (s *sweep) number() uint64 {
	extremes := []int64{0, 1, -1, math.MinInt64, math.MaxInt64, math.MinInt32, math.MaxInt32, math.MaxUint32, 1000}
	if s.hostile || s.rng.IntN(4) == 0 {
		return uint64(extremes[s.rng.IntN(len(extremes))])
	}
	return s.rng.Uint64N(2000)
}

// value appends one value of a field, without its tag, in the field's wire type.
func (s *sweep) value(b []byte, f protoreflect.FieldDescriptor, depth int) []byte {
	switch f.Kind() {
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		if s.hostile && s.rng.IntN(2) == 0 {
			return protowire.AppendVarint(b, s.number())
		}
		return protowire.AppendVarint(b, uint64(values.Get(s.rng.IntN(values.Len())).Number()))
	case protoreflect.BoolKind, protoreflect.Int32Kind, protoreflect.Int64Kind, protoreflect.Uint32Kind, protoreflect.Uint64Kind,
		protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.AppendVarint(b, s.number())
	case protoreflect.Fixed32Kind, protoreflect.Sfixed32Kind:
		return protowire.AppendFixed32(b, uint32(s.number()))
	case protoreflect.FloatKind:
		return protowire.AppendFixed32(b, math.Float32bits(float32(s.float())))
	case protoreflect.Fixed64Kind, protoreflect.Sfixed64Kind:
		return protowire.AppendFixed64(b, s.number())
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(b, math.Float64bits(s.float()))
	case protoreflect.StringKind:
		return protowire.AppendBytes(b, s.text())
	case protoreflect.BytesKind:
		return protowire.AppendBytes(b, s.bytes())
	case protoreflect.MessageKind:
		return protowire.AppendBytes(b, s.message(f.Message(), depth+1))
	case protoreflect.GroupKind:
		return protowire.AppendGroup(b, f.Number(), s.message(f.Message(), depth+1))
	}
	return b
}

func (s *sweep) float() float64 {
	if s.hostile {
		return []float64{math.NaN(), math.Inf(1), math.Inf(-1), -0.5, math.MaxFloat64}[s.rng.IntN(5)]
	}
	return s.rng.Float64()
}

var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.GroupKind: protowire.StartGroupType,
}

// message returns a message of a type.
func (s *sweep) message(d protoreflect.MessageDescriptor, depth int) []byte {
	var b []byte
	if depth > 8 {
		return nil
	}
	chosen := map[protoreflect.FullName]int{} // the member to set, by oneof
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if o := f.ContainingOneof(); o != nil && !s.hostile {
			if _, ok := chosen[o.FullName()]; !ok {
				chosen[o.FullName()] = s.rng.IntN(o.Fields().Len() + 1) // or none
			}
			if n := chosen[o.FullName()]; n == o.Fields().Len() || o.Fields().Get(n) != f {
				continue
			}
		} else if s.rng.IntN(10) < min(depth, 5) {
			continue
		}
		n := 1
		if f.Cardinality() == protoreflect.Repeated {
			n = s.rng.IntN(4)
		}
		for range n {
			b = s.value(protowire.AppendTag(b, f.Number(), wireTypes[f.Kind()]), f, depth)
		}
		if s.hostile && s.rng.IntN(40) == 0 { // with a wrong wire type
			b = protowire.AppendVarint(protowire.AppendTag(b, f.Number(), protowire.VarintType), math.MaxUint64)
		}
	}
	if s.hostile && s.rng.IntN(4) == 0 {
		b = protowire.AppendBytes(protowire.AppendTag(b, protowire.MaxValidNumber, protowire.BytesType), []byte("unknown"))
	}
	return b
}

// cycle finds a path from a message type to one that contains itself: the fields up to it, and
// the fields of one cycle.
func cycle(d protoreflect.MessageDescriptor, path []protoreflect.FieldDescriptor, seen []protoreflect.FullName) (way, turn []protoreflect.FieldDescriptor) {
	if i := slices.Index(seen, d.FullName()); i >= 0 {
		return path[:i], path[i:]
	}
	seen = append(slices.Clip(seen), d.FullName())
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if f.Message() == nil {
			continue
		}
		if way, turn := cycle(f.Message(), append(slices.Clip(path), f), seen); turn != nil {
			return way, turn
		}
	}
	return nil, nil
}

// nested returns a message that contains itself the given number of times, or nil for a type
// without cycles.
func nested(d protoreflect.MessageDescriptor, turns int) []byte {
	way, turn := cycle(d, nil, nil)
	if turn == nil {
		return nil
	}
	// Each field is prepended, from the inside out. The bytes are built in reverse, since
	// moving them for each field takes quadratic time.
	var b []byte
	wrap := func(fields []protoreflect.FieldDescriptor) {
		for _, f := range slices.Backward(fields) {
			head := protowire.AppendVarint(protowire.AppendTag(nil, f.Number(), protowire.BytesType), uint64(len(b)))
			slices.Reverse(head)
			b = append(b, head...)
		}
	}
	for range turns {
		wrap(turn)
	}
	wrap(way)
	slices.Reverse(b)
	return b
}

// messages returns the sweep's messages for a method.
func (s *sweep) messages(d protoreflect.MessageDescriptor, most int) [][]byte {
	out := [][]byte{nil}
	for i := range most {
		s.hostile, s.budget = i%2 == 0, 1<<20
		m := s.message(d, 0)
		out = append(out, m)
		if n := len(m); n > 0 && i%6 < 2 {
			out = append(out, m[:s.rng.IntN(n)]) // truncated
		}
	}
	for _, turns := range []int{100, 4000, 10_001} { // protobuf itself rejects the last
		if m := nested(d, turns); m != nil {
			s.hostile = false
			out = append(out, m, append(s.message(d, 0), m...))
		}
	}
	return out
}

// TestTrap66_EveryRPCAnswers sends empty, hostile and random messages of the request type to
// every method of every registered service. Each returns a response or a status of the server,
// and the server stays readable.
func TestTrap66_EveryRPCAnswers(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	conn := e.dial()
	rng := rand.New(rand.NewPCG(1, 2))
	listed := map[string]Status{}
	for _, f := range Support() {
		listed[f.Group+"."+f.Name] = f.Status
	}
	// The final read uses names outside the messages.
	const apart = "projects/apart/instances/i"
	families := map[string]*btapb.ColumnFamily{"f": {}}
	if _, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: apart, TableId: "t", Table: &btapb.Table{ColumnFamilies: families}}); err != nil {
		t.Fatal(err)
	}
	data := btpb.NewBigtableClient(conn)
	req := &btpb.MutateRowRequest{TableName: apart + "/tables/t", RowKey: []byte("r"), Mutations: []*btpb.Mutation{set("f", "q", 0, "1")}}
	if _, err := data.MutateRow(e.ctx(), req); err != nil {
		t.Fatal(err)
	}

	most := 12
	if long.Enabled() {
		most = 60
	}
	methods, messages, answered := 0, 0, 0
	for _, r := range registeredRPCs(t, e.srv.grpc) {
		// Messages may have deleted these resources.
		_ = e.createInstance("made", nodes("us-east1-b", 1))
		for _, parent := range []string{testInstance, "projects/p/instances/made"} {
			_, err := e.admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: parent, TableId: "t", Table: &btapb.Table{ColumnFamilies: families}})
			wantCode(t, err, codes.OK, codes.AlreadyExists, codes.NotFound)
		}
		methods++
		s := &sweep{rng: rng}
		feature, known := listed[shortService(r.service)+"."+r.method]
		for i, m := range s.messages(r.request, most) {
			messages++
			sent := [][]byte{m, m}
			err := r.call(e.ctx(), conn, sent...)
			st, ok := status.FromError(err)
			if err == nil {
				answered++
			}
			switch {
			case !ok:
				t.Fatalf("%s/%s: %v is no status", r.service, r.method, err)
			case known && feature == Refused && (st.Code() != codes.Unimplemented || !strings.Contains(st.Message(), r.method)):
				t.Errorf("%s/%s: got %v, want Unimplemented by name", r.service, r.method, err)
			case known && feature == Served && i == 0 && st.Code() != codes.InvalidArgument:
				t.Errorf("%s/%s: an empty message: %v", r.service, r.method, err)
			case st.Code() == codes.Internal && strings.Contains(st.Message(), "unmarshal"):
				// gRPC's own response to undecodable bytes.
			case st.Code() == codes.Unavailable, st.Code() == codes.Internal, st.Code() == codes.Unknown && known:
				t.Errorf("%s/%s with %d bytes %x: %v", r.service, r.method, len(m), m[:min(len(m), 200)], err)
			}
		}
	}
	if methods < 89 || answered < messages/50 {
		t.Errorf("%d methods, %d messages, %d of them with a response", methods, messages, answered)
	}
	t.Logf("%d methods, %d messages, %d of them with a response", methods, messages, answered)
	res, err := readRows(e.ctx(), data, &btpb.ReadRowsRequest{TableName: req.GetTableName()})
	if want := "r\n  f:q @0 = \"1\"\n"; err != nil || res.text() != want {
		t.Errorf("a read after the sweep: %v\n%s", err, res.text())
	}
}

// TestTrap66_SessionsThatBeginWell opens sessions of each kind, then sends hostile and random
// messages, plain and as virtual RPCs. Each session ends with a status of the server, and a
// later session reads the earlier writes. Sessions on materialized views do not open, as none
// exist.
func TestTrap66_SessionsThatBeginWell(t *testing.T) {
	t.Parallel()
	most := 18
	if long.Enabled() {
		most = 60
	}
	e := newTable(t, "a", "f")
	e.mustCreateView("v", &btapb.AuthorizedView{AuthorizedView: &btapb.AuthorizedView_SubsetView_{SubsetView: &btapb.AuthorizedView_SubsetView{
		RowPrefixes:   [][]byte{nil},
		FamilySubsets: map[string]*btapb.AuthorizedView_FamilySubsets{"f": {QualifierPrefixes: [][]byte{nil}}},
	}}})
	e.mustMutate("read at the end", set("a", "q", 0, "1"))
	conn := e.dial()
	marshal := func(m proto.Message) []byte {
		t.Helper()
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	service := (&btpb.ReadRowsRequest{}).ProtoReflect().Descriptor().ParentFile().Services().Get(0)
	for _, kind := range []struct {
		method        string
		open, virtual proto.Message
		end           codes.Code // of a session that only opens and closes
	}{
		{"OpenTable", &btpb.OpenTableRequest{TableName: testTable, Permission: btpb.OpenTableRequest_PERMISSION_READ_WRITE}, &btpb.TableRequest{}, codes.OK},
		{"OpenAuthorizedView", &btpb.OpenAuthorizedViewRequest{AuthorizedViewName: viewName("v"), Permission: btpb.OpenAuthorizedViewRequest_PERMISSION_READ_WRITE}, &btpb.AuthorizedViewRequest{}, codes.OK},
		{"OpenMaterializedView", &btpb.OpenMaterializedViewRequest{MaterializedViewName: testInstance + "/materializedViews/v", Permission: btpb.OpenMaterializedViewRequest_PERMISSION_READ}, &btpb.MaterializedViewRequest{}, codes.NotFound},
	} {
		method := service.Methods().ByName(protoreflect.Name(kind.method))
		r := sweptRPC{service: string(service.FullName()), method: kind.method, stream: &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}}
		open := marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: marshal(kind.open)}}})
		closing := marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_CloseSession{CloseSession: &btpb.CloseSessionRequest{}}})
		wantCode(t, r.call(e.ctx(), conn, open, closing), kind.end)

		s := &sweep{rng: rand.New(rand.NewPCG(3, uint64(len(kind.method))))}
		sent := s.messages(method.Input(), most)
		for i, m := range s.messages(kind.virtual.ProtoReflect().Descriptor(), most) {
			sent = append(sent, marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_VirtualRpc{
				VirtualRpc: &btpb.VirtualRpcRequest{RpcId: int64(1 + i), Payload: m},
			}}))
		}
		for i, m := range sent {
			// Another message follows, which a finished session does not read.
			err := r.call(e.ctx(), conn, open, m, sent[s.rng.IntN(len(sent))], closing)
			st, ok := status.FromError(err)
			switch code := st.Code(); {
			case !ok:
				t.Fatalf("%s: %v is no status", kind.method, err)
			case code == codes.Internal && strings.Contains(st.Message(), "unmarshal"):
				// gRPC's own response to undecodable bytes.
			case code == codes.Unavailable, code == codes.Internal, code == codes.Unknown, code == codes.DeadlineExceeded:
				t.Errorf("%s, message %d, %d bytes %x: %v", kind.method, i, len(m), m[:min(len(m), 200)], err)
			}
		}
	}
	ss := e.openSession(e.ctx(), btpb.NewBigtableClient(conn), testTable, btpb.OpenTableRequest_PERMISSION_READ, nil)
	ss.opened()
	got, err := ss.rpc(1, sessionRead("read at the end", nil))
	if families := got.GetReadRow().GetRow().GetFamilies(); err != nil || len(families) != 1 {
		t.Errorf("a read after the sweep: %v, %v", families, err)
	}
}

// openingOf returns the first message of a session.
func openingOf(tb testing.TB) []byte {
	tb.Helper()
	payload, err := proto.Marshal(&btpb.OpenTableRequest{TableName: testTable, Permission: btpb.OpenTableRequest_PERMISSION_READ_WRITE})
	if err != nil {
		tb.Fatal(err)
	}
	m, err := proto.Marshal(&btpb.SessionRequest{Payload: &btpb.SessionRequest_OpenSession{OpenSession: &btpb.OpenSessionRequest{Payload: payload}}})
	if err != nil {
		tb.Fatal(err)
	}
	return m
}
