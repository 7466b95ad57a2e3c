package pending

import (
	"bytes"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC)

func equal(a, b State) bool { return a.At.Equal(b.At) && bytes.Equal(a.Note, b.Note) }

// Records round-trip, and their messages contain only the message.
func TestEncode(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]State{
		"a time":        {At: at},
		"before 1970":   {At: time.UnixMicro(-5)},
		"1970":          {At: time.UnixMicro(0)},
		"a note":        {Note: []byte("note")},
		"both":          {At: at, Note: []byte{0}},
		"neither":       {},
		"an empty note": {Note: []byte{}},
	} {
		for _, m := range []*btapb.Cluster{{Name: "c"}, {}} {
			raw, err := Encode(m, want)
			if err != nil {
				t.Fatal(err)
			}
			stored := &btapb.Cluster{}
			got, err := Decode(raw, stored)
			if err != nil || !equal(got, want) || got.At.IsZero() != want.At.IsZero() || (got.Note == nil) != (want.Note == nil) || !proto.Equal(stored, m) {
				t.Errorf("%s: %v with %v, %v; want %v with %v", name, stored, got, err, m, want)
			}
			if again, err := Encode(stored, got); err != nil || !IsRecord(raw) || !bytes.Equal(again, raw) {
				t.Errorf("%s: %x, again %x, %v", name, raw, again, err)
			}
		}
	}
}

// earlier returns a cluster as stored by earlier versions, with the state in
// unknown fields.
func earlier(t *testing.T, hidden ...[]byte) []byte {
	t.Helper()
	c := &btapb.Cluster{Name: "c"}
	c.ProtoReflect().SetUnknown(bytes.Join(hidden, nil))
	raw, err := proto.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Decode reads records of earlier versions, and removes their unknown fields.
func TestDecode_Earlier(t *testing.T) {
	t.Parallel()
	tag := protowire.AppendTag
	hiddenAt := protowire.AppendVarint(tag(nil, earlierAt, protowire.VarintType), uint64(at.UnixMicro()))
	hiddenNote := protowire.AppendString(tag(nil, earlierNote, protowire.BytesType), "note")
	other := protowire.AppendString(tag(nil, 100, protowire.BytesType), "x")
	for name, c := range map[string]struct {
		raw  []byte
		want State
	}{
		"the message alone":    {earlier(t), State{}},
		"a time":               {earlier(t, hiddenAt), State{At: at}},
		"a note":               {earlier(t, hiddenNote), State{Note: []byte("note")}},
		"both":                 {earlier(t, hiddenNote, hiddenAt), State{At: at, Note: []byte("note")}},
		"behind another field": {earlier(t, other, hiddenAt), State{At: at}},
		"a time of text":       {earlier(t, protowire.AppendString(tag(nil, earlierAt, protowire.BytesType), "x")), State{}},
	} {
		stored := &btapb.Cluster{}
		got, err := Decode(c.raw, stored)
		if err != nil || !equal(got, c.want) || !proto.Equal(stored, &btapb.Cluster{Name: "c"}) {
			t.Errorf("%s: %v with %v, %v; want %v", name, stored, got, err, c.want)
		}
	}
}

// Unknown fields from a client's message do not affect a record.
func TestDecode_UnknownFields(t *testing.T) {
	t.Parallel()
	sent := &btapb.Cluster{Name: "c"}
	sent.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, earlierAt, protowire.VarintType), uint64(at.UnixMicro())))
	raw, err := Encode(sent, State{})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Decode(raw, &btapb.Cluster{}); err != nil || !equal(got, State{}) {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDecode_Damaged(t *testing.T) {
	t.Parallel()
	raw, err := Encode(&btapb.Cluster{Name: "c"}, State{At: at, Note: []byte("note")})
	if err != nil {
		t.Fatal(err)
	}
	fields := map[int]bool{1: true} // starts of fields
	for n := 1; n < len(raw); {
		_, _, size := protowire.ConsumeField(raw[n:])
		n += size
		fields[n] = true
	}
	for n := 1; n < len(raw); n++ {
		if _, err := Decode(raw[:n], &btapb.Cluster{}); (err == nil) != fields[n] {
			t.Errorf("%d of %d bytes: %v", n, len(raw), err)
		}
	}
	if _, err := Decode([]byte{0xff}, &btapb.Cluster{}); err == nil {
		t.Error("a damaged message is read")
	}
	if _, err := Decode([]byte{mark, 0x0a, 1, 0xff}, &btapb.Cluster{}); err == nil {
		t.Error("a record of a damaged message is read")
	}
}

func TestState_Before(t *testing.T) {
	t.Parallel()
	if s := (State{At: at}); s.Before(at) || !s.Before(at.Add(-1)) || (State{}).Before(at) {
		t.Error("the state is reached at its time")
	}
}
