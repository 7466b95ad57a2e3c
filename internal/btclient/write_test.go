package btclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"github.com/google/go-cmp/cmp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// entries returns writes of rows with these keys.
func entries(keys ...string) []*btpb.MutateRowsRequest_Entry {
	var out []*btpb.MutateRowsRequest_Entry
	for _, k := range keys {
		out = append(out, &btpb.MutateRowsRequest_Entry{RowKey: []byte(k), Mutations: []*btpb.Mutation{btclient.DeleteRow()}})
	}
	return out
}

// answers returns one message per word "index" or "index:code".
func answers(words ...string) []proto.Message {
	var out []proto.Message
	for _, w := range words {
		var e btpb.MutateRowsResponse_Entry
		index, code, failed := strings.Cut(w, ":")
		if _, err := fmt.Sscan(index, &e.Index); err != nil {
			panic(err)
		}
		if failed {
			var c codes.Code
			if err := c.UnmarshalJSON([]byte(`"` + code + `"`)); err != nil {
				panic(err)
			}
			e.Status = &spb.Status{Code: int32(c), Message: "entry"}
		}
		out = append(out, &btpb.MutateRowsResponse{Entries: []*btpb.MutateRowsResponse_Entry{&e}})
	}
	return out
}

// TestMutateRows: only transient failures are sent again, with the unanswered entries.
func TestMutateRows(t *testing.T) {
	t.Parallel()
	type call struct {
		words string
		err   error
	}
	for _, c := range []struct {
		name    string
		keys    string
		writes  int
		calls   []call
		sent    string // keys of each call
		refused string // entry and code of each
		err     string
	}{
		{"all written", "a b", 0, []call{{"1 0", io.EOF}}, "a b", "", ""},
		{"none to write", "", 0, nil, "", "", ""},
		{"refused", "a b c", 3, []call{{"0 1:INVALID_ARGUMENT 2", io.EOF}}, "a b c", "1 InvalidArgument", ""},
		{"passing", "a b c", 3, []call{{"0:ABORTED 1 2:UNAVAILABLE", io.EOF}, {"1 0:RESOURCE_EXHAUSTED", io.EOF}, {"0", io.EOF}}, "a b c|a c|a", "", ""},
		{"passing, without patience", "a b c", 0, []call{{"0:ABORTED 1 2:UNAVAILABLE", io.EOF}}, "a b c", "0 Aborted 2 Unavailable", ""},
		{"passing too often", "a b", 1, []call{{"0:ABORTED 1", io.EOF}, {"0:ABORTED", io.EOF}}, "a b|a", "0 Aborted", ""},
		{"refused later", "a b c", 2, []call{{"0:ABORTED 1 2:ABORTED", io.EOF}, {"0 1:NOT_FOUND", io.EOF}}, "a b c|a c", "2 NotFound", ""},
		{"refused at last", "a b c d", 3, []call{{"0 1:ABORTED 2:ABORTED 3:ABORTED", io.EOF}, {"0 1:ABORTED 2:ABORTED", io.EOF}, {"0 1:NOT_FOUND", io.EOF}}, "a b c d|b c d|c d", "3 NotFound", ""},
		{"not reached", "a b", 2, []call{{"", errBroken}, {"0 1", io.EOF}}, "a b|a b", "", ""},
		{"broken in between", "a b c d", 2, []call{{"1 2:ABORTED", errBroken}, {"1", errBroken}, {"0 1", io.EOF}}, "a b c d|a c d|a d", "", ""},
		{"broken behind all", "a b", 0, []call{{"0 1", errBroken}}, "a b", "", ""},
		{"broken, without patience", "a b", 0, []call{{"0", errBroken}}, "a b", "", "writing to table t: rpc error: code = Unavailable desc = broken by the test"},
		{"broken too often", "a b", 1, []call{{"0", errBroken}, {"", errBroken}}, "a b|b", "", "writing to table t: rpc error: code = Unavailable desc = broken by the test"},
		{"final", "a", 3, []call{{"", status.Error(codes.NotFound, "no table")}}, "a", "", "writing to table t: rpc error: code = NotFound desc = no table"},
		{"ended early", "a b", 3, []call{{"1", io.EOF}, {"", io.EOF}, {"0", io.EOF}}, "a b|a|a", "", ""},
		{"ended early too often", "a b", 1, []call{{"1", io.EOF}, {"", io.EOF}}, "a b|a", "", "writing to table t: rpc error: code = Unavailable desc = the response ended early, with results for 0 of 1 rows"},
		{"answered twice", "a b", 3, []call{{"1 1", io.EOF}}, "a b", "", "writing to table t: the response names row 1 of 2, which does not exist or already has a result"},
		{"never sent", "a", 3, []call{{"1", io.EOF}}, "a", "", "writing to table t: the response names row 1 of 1, which does not exist or already has a result"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{answer: func(n int, _ proto.Message) ([]proto.Message, error) {
				if n >= len(c.calls) {
					return nil, errors.New("one call too many")
				}
				return answers(strings.Fields(c.calls[n].words)...), c.calls[n].err
			}}
			bt := f.client(btclient.Options{Retry: btclient.Retry{Writes: c.writes, First: time.Hour}}) // without waits
			refused, err := bt.MutateRows(t.Context(), "t", entries(strings.Fields(c.keys)...))
			if err == nil && c.err != "" || err != nil && err.Error() != c.err {
				t.Errorf("error %v, want %s", err, c.err)
			}
			var got []string
			for _, r := range refused {
				got = append(got, fmt.Sprint(r.Entry, " ", status.Code(r.Err)))
			}
			if strings.Join(got, " ") != c.refused {
				t.Errorf("refused %q, want %q", got, c.refused)
			}
			var sent []string
			for _, req := range f.reqs {
				var keys []string
				for _, e := range req.(*btpb.MutateRowsRequest).GetEntries() {
					keys = append(keys, string(e.GetRowKey()))
				}
				sent = append(sent, strings.Join(keys, " "))
			}
			if got := strings.Join(sent, "|"); got != c.sent {
				t.Errorf("sent %q, want %q", got, c.sent)
			}
		})
	}
}

// TestMutateRows_Waits reports each wait, and an error of a wait ends it.
func TestMutateRows_Waits(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return answers("0:ABORTED"), io.EOF }}
	var reported []btclient.Wait
	c := f.client(btclient.Options{Retry: btclient.Retry{
		Writes: 3, First: time.Second,
		Waiting: func(w btclient.Wait) { reported = append(reported, w) },
		Sleep: func(context.Context, time.Duration) error {
			if len(reported) == 2 {
				return context.Canceled
			}
			return nil
		},
	}})
	if _, err := c.MutateRows(t.Context(), "t", entries("a")); !errors.Is(err, context.Canceled) || f.calls() != 2 {
		t.Errorf("%v after %d calls", err, f.calls())
	}
	for i, want := range []btclient.Wait{{Next: time.Second, Left: 7 * time.Second}, {Spent: time.Second, Next: 2 * time.Second, Left: 6 * time.Second}} {
		want.Table, want.Call, want.Err = "t", "MutateRows", reported[i].Err
		if reported[i] != want || status.Code(want.Err) != codes.Aborted {
			t.Errorf("waits %+v, want %+v", reported[i], want)
		}
	}
}

// TestMutateRow: a write of one row is retried; one that depends on stored data is not.
func TestMutateRow(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, errBroken }}
	c := f.client(btclient.Options{Retry: btclient.Retry{Reads: 2, Writes: 2}})
	const want = `writing row "a" of table t: rpc error: code = Unavailable desc = broken by the test`
	if err := c.MutateRow(t.Context(), "t", []byte("a"), nil); err == nil || err.Error() != want || f.calls() != 3 {
		t.Errorf("MutateRow: %v after %d calls", err, f.calls())
	}
	f.reqs = nil
	if _, err := c.CheckAndMutate(t.Context(), "t", []byte("a"), nil, nil, nil); err == nil || err.Error() != want || f.calls() != 1 {
		t.Errorf("CheckAndMutate: %v after %d calls", err, f.calls())
	}
	f.reqs = nil
	if _, err := c.ReadModifyWrite(t.Context(), "t", []byte("a"), btclient.Increment("f", nil, 1)); err == nil || err.Error() != want || f.calls() != 1 {
		t.Errorf("ReadModifyWrite: %v after %d calls", err, f.calls())
	}
	ctx, cancel := context.WithCancel(t.Context())
	f.reqs, f.answer = nil, func(int, proto.Message) ([]proto.Message, error) {
		cancel()
		return nil, errBroken
	}
	if err := c.MutateRow(ctx, "t", []byte("a"), nil); err == nil || f.calls() != 1 {
		t.Errorf("canceled: %v after %d calls", err, f.calls())
	}
}

// TestHeaders: Cloud Bigtable finds a table by a header, and accepts reversed reads only from
// clients that declare support for them.
func TestHeaders(t *testing.T) {
	t.Parallel()
	f := &fake{answer: func(int, proto.Message) ([]proto.Message, error) { return nil, io.EOF }}
	c := f.client(btclient.Options{})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "own", "x")
	const features = "CAE=" // FeatureFlags{reverse_scans: true}
	for range 2 {
		if _, err := c.ReadRow(ctx, "t", []byte("a"), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.ReadRow(t.Context(), "t", []byte("a"), nil); err != nil {
		t.Fatal(err)
	}
	data := metadata.Pairs("x-goog-request-params", "table_name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft", "bigtable-features", features)
	own := metadata.Join(data, metadata.Pairs("own", "x"))
	f.answer = func(int, proto.Message) ([]proto.Message, error) { return nil, errBroken }
	_, _ = c.Tables(ctx)
	_, _ = c.Families(t.Context(), "t")
	want := []metadata.MD{
		own, own, data,
		metadata.Pairs("x-goog-request-params", "parent=projects%2Fp%2Finstances%2Fi", "own", "x"),
		metadata.Pairs("x-goog-request-params", "name=projects%2Fp%2Finstances%2Fi%2Ftables%2Ft"),
	}
	if diff := cmp.Diff(want, f.headers); diff != "" {
		t.Errorf("headers (- want, + got):\n%s", diff)
	}
}
