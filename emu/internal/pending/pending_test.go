package pending

import (
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// A time survives being stored, is not shown once it is taken, and nothing is
// taken for one that is none.
func TestSet(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 20, 12, 0, 0, 1000, time.UTC)
	for name, want := range map[string]time.Time{"a time": at, "before 1970": time.UnixMicro(-5), "none": {}} {
		c := &btapb.Cluster{Name: "c"}
		Set(c, at.Add(time.Hour)) // which is replaced
		Set(c, want)
		raw, err := proto.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		stored := &btapb.Cluster{}
		if err := proto.Unmarshal(raw, stored); err != nil {
			t.Fatal(err)
		}
		if got := Of(stored); !got.Equal(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
		if got := Take(stored); !got.Equal(want) || !proto.Equal(stored, &btapb.Cluster{Name: "c"}) {
			t.Errorf("%s: took %v, left %v", name, got, stored)
		}
	}
	noted := &btapb.Cluster{Name: "c"}
	SetNote(noted, []byte("old"))
	Set(noted, at)
	SetNote(noted, []byte("new"))
	if got := Of(noted); string(Note(noted)) != "new" || !got.Equal(at) {
		t.Errorf("noted %q, at %v", Note(noted), got)
	}
	if Set(noted, time.Time{}); string(Note(noted)) != "new" {
		t.Errorf("noted %q when there is no time", Note(noted))
	}
	if Take(noted); Note(noted) != nil {
		t.Errorf("noted %q when it is shown", Note(noted))
	}
	for name, raw := range map[string][]byte{
		"cut":       {0xff},
		"tag alone": protowire.AppendTag(nil, timeField, protowire.VarintType),
		"text":      protowire.AppendString(protowire.AppendTag(nil, timeField, protowire.BytesType), "x"),
	} {
		c := &btapb.Cluster{}
		c.ProtoReflect().SetUnknown(raw)
		if got := Of(c); !got.IsZero() {
			t.Errorf("%s: %v", name, got)
		}
	}
	c := &btapb.Cluster{}
	Set(c, at)
	c.ProtoReflect().SetUnknown(append(protowire.AppendString(protowire.AppendTag(nil, 100, protowire.BytesType), "x"), c.ProtoReflect().GetUnknown()...))
	if got := Of(c); !got.Equal(at) {
		t.Errorf("behind another field: %v", got)
	}
}

func TestBroadcast(t *testing.T) {
	t.Parallel()
	var b Broadcast
	b.Notify() // nobody waits
	first, second := b.Next(), b.Next()
	b.Notify()
	<-first
	<-second
	select {
	case <-b.Next():
		t.Error("what happened is told to who came later")
	default:
	}
}
