package emu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// once sends a mutation with a token.
func (e *env) once(row, token string, start time.Time, m ...*btpb.Mutation) error {
	id := &btpb.Idempotency{Token: []byte(token)}
	if !start.IsZero() {
		id.StartTime = timestamppb.New(start)
	}
	_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte(row), Mutations: m, Idempotency: id})
	return err
}

func TestTrap51_IdempotencyTokens(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	add := addTo("sum", "q", 0, intValueOf(5))
	const token = "token..1"
	for range 3 {
		if err := e.once("r", token, e.clock.Now(), add); err != nil {
			t.Fatal(err)
		}
	}
	e.wantStates("r sum:q@0=5")
	// Another token, another row, another table: another mutation.
	if err := errors.Join(e.once("r", "token..2", time.Time{}, add), e.once("s", token, time.Time{}, add)); err != nil {
		t.Fatal(err)
	}
	e.wantStates("r sum:q@0=10", "s sum:q@0=5")
	// A failed mutation is not recorded.
	wantCode(t, e.once("r", "token..3", time.Time{}, add, set("nope", "q", 0, "")), codes.NotFound)
	if err := e.once("r", "token..3", time.Time{}, add); err != nil {
		t.Fatal(err)
	}
	e.wantStates("r sum:q@0=15", "s sum:q@0=5")

	// The window is 15 minutes, at any offset in a period.
	for range 7 {
		e.clock.Advance(2 * time.Minute)
		if err := e.once("r", token, time.Time{}, add); err != nil {
			t.Fatal(err)
		}
	}
	e.wantStates("r sum:q@0=15", "s sum:q@0=5")
	e.clock.Advance(time.Minute)
	if err := e.once("r", token, e.clock.Now().Add(-time.Minute), add); err != nil {
		t.Fatal(err)
	}
	e.wantStates("r sum:q@0=20", "s sum:q@0=5")

	// A mutation with a start_time is not applied again after the window.
	err := e.once("r", token, e.clock.Now().Add(-idempotencyWindow), add)
	wantCode(t, err, codes.FailedPrecondition, codes.InvalidArgument) // the code is a belief
	for _, id := range []*btpb.Idempotency{{}, {Token: []byte("1234567")}, {Token: []byte(token), StartTime: &timestamppb.Timestamp{Nanos: -1}}} {
		_, err := e.data.MutateRow(e.ctx(), &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("r"), Mutations: []*btpb.Mutation{add}, Idempotency: id})
		wantCode(t, err, codes.InvalidArgument)
	}

	// Entries of MutateRows.
	once := func(token string) *btpb.MutateRowsRequest_Entry {
		en := entry("m", add)
		en.Idempotency = &btpb.Idempotency{Token: []byte(token)}
		return en
	}
	got, err := e.mutateRows(once("12345678"), once("12345678"), once("short"), once("87654321"))
	if err != nil || fmt.Sprint(got) != fmt.Sprint([]codes.Code{codes.OK, codes.OK, codes.InvalidArgument, codes.OK}) {
		t.Errorf("%v, %v", got, err)
	}
	e.wantStates("m sum:q@0=10", "r sum:q@0=20", "s sum:q@0=5")

	// Old tokens are removed.
	e.clock.Advance(2 * idempotencyWindow)
	if err := e.once("r", "token..9", time.Time{}, set("f", "q", 0, "")); err != nil {
		t.Fatal(err)
	}
	tokens, err := e.db.Resources(idempotencyPrefix)
	if err != nil || len(tokens) != 1 {
		t.Errorf("%d tokens are kept, want one: %v", len(tokens), err)
	}
}

// TestTrap51_Replays sends one mutation from many clients at once.
func TestTrap51_Replays(t *testing.T) {
	t.Parallel()
	e := newAggregates(t)
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if err := e.once("r", "the token", time.Time{}, addTo("sum", "q", 0, intValueOf(1))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	e.wantStates("r sum:q@0=1")
}

// TestTrap51_Restart replays a mutation to a server that was restarted.
func TestTrap51_Restart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := clock.NewFrozen(start)
	for range 2 {
		db, err := engine.Open(engine.Options{Dir: dir, Now: c.Now})
		if err != nil {
			t.Fatal(err)
		}
		srv, err := New(Options{DB: db, Clock: c})
		if err != nil {
			t.Fatal(err)
		}
		e := &env{t: t, clock: c, db: db, srv: srv, data: btpb.NewBigtableClient(srv.Conn()), admin: btapb.NewBigtableTableAdminClient(srv.Conn())}
		if len(db.Tables("")) == 0 {
			e.createTable("t")
			e.modifyFamilies("t", createFamily("sum", aggregateOf("sum", int64Type())))
		}
		if err := e.once("r", "the token", time.Time{}, addTo("sum", "q", 0, rawValue(be(1)))); err != nil {
			t.Fatal(err)
		}
		e.wantStates("r sum:q@0=1")
		if err := errors.Join(srv.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMutateRows_RateLimitInfo covers clients that limit their rate.
func TestMutateRows_RateLimitInfo(t *testing.T) {
	t.Parallel()
	e := newTable(t, "f")
	for _, c := range []struct {
		flags *btpb.FeatureFlags
		want  bool
	}{
		{&btpb.FeatureFlags{}, false},
		{&btpb.FeatureFlags{MutateRowsRateLimit: true}, true},
		{&btpb.FeatureFlags{MutateRowsRateLimit2: true}, true},
	} {
		stream, err := e.data.MutateRows(withFeatures(e.ctx(), c.flags, base64.RawURLEncoding), &btpb.MutateRowsRequest{
			TableName: testTable, Entries: []*btpb.MutateRowsRequest_Entry{entry("r", set("f", "q", 0, ""))},
		})
		if err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		info := resp.GetRateLimitInfo()
		if (info != nil) != c.want || c.want && (info.GetPeriod().AsDuration() <= 0 || info.GetFactor() < 1) {
			t.Errorf("%v: %v", c.flags, info)
		}
		if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
			t.Error(err)
		}
	}
}
