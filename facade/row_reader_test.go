package facade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
)

// chunk makes a chunk from a text of words: row=, family=, column=, ts=,
// value=, size= (of the whole value), commit, reset.
func chunk(t *testing.T, text string) *btpb.ReadRowsResponse_CellChunk {
	t.Helper()
	c := &btpb.ReadRowsResponse_CellChunk{}
	for _, word := range strings.Fields(text) {
		name, value, _ := strings.Cut(word, "=")
		switch name {
		case "row":
			c.RowKey = []byte(value)
		case "family":
			c.FamilyName = wrapperspb.String(value)
		case "column":
			c.Qualifier = wrapperspb.Bytes([]byte(value))
		case "value":
			c.Value = []byte(value)
		case "ts":
			if _, err := fmt.Sscan(value, &c.TimestampMicros); err != nil {
				t.Fatal(err)
			}
		case "size":
			if _, err := fmt.Sscan(value, &c.ValueSize); err != nil {
				t.Fatal(err)
			}
		case "commit":
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_CommitRow{CommitRow: true}
		case "reset":
			c.RowStatus = &btpb.ReadRowsResponse_CellChunk_ResetRow{ResetRow: true}
		default:
			t.Fatalf("unknown word %q", word)
		}
	}
	return c
}

func TestRowReader_Chunks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, chunks, want string
	}{
		{
			"columns and versions",
			"row=r family=f column=a ts=2000 value=x; ts=1000 value=y; column=b ts=1000 value=z; family=g column=a value=w commit",
			"r f:a@2000=x f:a@1000=y f:b@1000=z g:a@0=w\n",
		},
		{
			"split value",
			"row=r family=f column=a ts=1000 value=ab size=5; value=cd size=5; value=e; column=b value=z commit",
			"r f:a@1000=abcde f:b@0=z\n",
		},
		{
			"two rows",
			"row=r family=f column=a value=x commit; row=s family=f column=a value=y commit",
			"r f:a@0=x\ns f:a@0=y\n",
		},
		{
			"reset",
			"row=r family=f column=a value=x; column=b value=ab size=4; reset; row=r family=f column=a value=y commit",
			"r f:a@0=y\n",
		},
		{"empty qualifier", "row=r family=f column= value=x commit", "r f:@0=x\n"},
		{"no row key", "family=f column=a value=x commit", "error: a row begins without a key"},
		{"no column", "row=r family=f value=x commit", `error: row "r" begins without a column`},
		{"row in row", "row=r family=f column=a value=x; row=s family=f column=a value=y commit", `error: row "s" begins inside row "r"`},
		{"commit in value", "row=r family=f column=a value=x size=4 commit", `error: row "r" is committed inside a value`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var m chunkMerger
			var got strings.Builder
			for text := range strings.SplitSeq(test.chunks, ";") {
				row, done, err := m.add(chunk(t, text))
				if err != nil {
					fmt.Fprintf(&got, "error: %v", err)
					break
				}
				if !done {
					continue
				}
				fmt.Fprintf(&got, "%s", row.Key)
				for _, c := range row.Cells {
					fmt.Fprintf(&got, " %s:%s@%d=%s", c.Family, c.Qualifier, c.Timestamp, c.Value)
				}
				got.WriteString("\n")
			}
			if d := gocmp.Diff(test.want, got.String()); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
		})
	}
}

// brokenConn breaks each ReadRows stream after some messages.
type brokenConn struct {
	grpc.ClientConnInterface
	after int
}

func (c *brokenConn) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	stream, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &brokenStream{stream, c.after}, err
}

type brokenStream struct {
	grpc.ClientStream
	left int
}

func (s *brokenStream) RecvMsg(m any) error {
	if s.left--; s.left < 0 {
		return status.Error(codes.Unavailable, "broken by the test")
	}
	return s.ClientStream.RecvMsg(m)
}

// A read goes on behind its last row when the connection breaks, and gives up
// when nothing comes any more.
func TestRowReader_Resume(t *testing.T) {
	t.Parallel()
	conn := backends["emu"](t)
	s := openStore(t, testOptions(conn))
	def := newTable(t, s, tableDef{Name: "resume", Key: testSchemas["SN"]})
	var want []attr.Item
	for i := range 10 {
		item := attr.Item{"p": attr.String("p"), "s": attr.Int(int64(i))}
		want = append(want, item)
		if err := put(t.Context(), s, def, item); err != nil {
			t.Fatal(err)
		}
	}
	cond := mapping.KeyCondition{Hash: attr.String("p")}
	for _, forward := range []bool{true, false} {
		s.data = btpb.NewBigtableClient(&brokenConn{conn, 3})
		got, err := collect(s.query(t.Context(), def, nil, indexCondition{KeyCondition: cond}, forward, nil))
		if !forward {
			slices.Reverse(got)
		}
		if d := diffItems(want, got); d != "" || err != nil {
			t.Errorf("forward %v: %v (-want +got):\n%s", forward, err, d)
		}
	}
	s.data = btpb.NewBigtableClient(&brokenConn{conn, 0})
	if _, err := collect(s.query(t.Context(), def, nil, indexCondition{KeyCondition: cond}, true, nil)); status.Code(err) != codes.Unavailable {
		t.Errorf("dead connection: %v", err)
	}
	s.data = btpb.NewBigtableClient(conn)
}
