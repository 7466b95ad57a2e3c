package btclient_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
)

// TestRetry_Pushback: the wait that the server requests is used, up to the deadline of an
// answer, even if it is for one row of many.
func TestRetry_Pushback(t *testing.T) {
	t.Parallel()
	st, err := status.New(codes.ResourceExhausted, "no room").WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		first, deadline, want time.Duration
	}{
		{time.Millisecond, 0, 3 * time.Second},
		{time.Minute, 10 * time.Second, 3 * time.Second},
		{time.Millisecond, 2 * time.Second, 2 * time.Second},
	} {
		for name, do := range map[string]func(*btclient.Client) error{
			"MutateRow": func(b *btclient.Client) error { return b.MutateRow(t.Context(), "t", []byte("a"), nil) },
			"MutateRows": func(b *btclient.Client) error {
				refused, err := b.MutateRows(t.Context(), "t", entries("a"))
				if len(refused) > 0 {
					err = refused[0].Err
				}
				return err
			},
			"ReadRows": func(b *btclient.Client) error {
				for _, err := range b.Read(t.Context(), btclient.Read{Table: "t", Spans: []btclient.Span{{}}}) {
					return err
				}
				return nil
			},
		} {
			var waits []time.Duration
			f := &fake{answer: func(n int, req proto.Message) ([]proto.Message, error) {
				switch req.(type) {
				case *btpb.MutateRowsRequest:
					if n < 2 {
						return []proto.Message{&btpb.MutateRowsResponse{Entries: []*btpb.MutateRowsResponse_Entry{{Status: st.Proto()}}}}, io.EOF
					}
					return answers("0"), io.EOF
				case *btpb.ReadRowsRequest:
					if n == 2 {
						return nil, io.EOF
					}
				}
				if n < 2 {
					return nil, st.Err()
				}
				return []proto.Message{&btpb.MutateRowResponse{}}, io.EOF
			}}
			err := do(f.client(btclient.Options{Deadline: c.deadline, Retry: btclient.Retry{
				Reads: 2, Writes: 2, First: c.first, Jitter: func() float64 { return 1 },
				Sleep: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
			}}))
			if want := []time.Duration{c.want, c.want}; err != nil || !slices.Equal(waits, want) {
				t.Errorf("%s, %+v: %v, waits %v, want %v", name, c, err, waits, want)
			}
		}
	}
}

// quota is a Bigtable that accepts a limited number of rows at a time, and takes a millisecond
// for each call.
type quota struct {
	grpc.ClientConnInterface // the fake's streams

	mu             sync.Mutex
	most           int
	under, peak    int
	taken, refused int
}

// take is a call that writes the given number of rows.
func (q *quota) take(rows int) error {
	q.mu.Lock()
	q.under += rows
	q.peak = max(q.peak, q.under)
	full := q.under > q.most
	if full {
		q.refused++
	} else {
		q.taken++
	}
	q.mu.Unlock()
	time.Sleep(time.Millisecond) // virtual time
	q.mu.Lock()
	q.under -= rows
	q.mu.Unlock()
	if full {
		return status.Error(codes.ResourceExhausted, "no room")
	}
	return nil
}

// let sets the number of accepted rows, and resets the counters.
func (q *quota) let(most int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most, q.peak, q.taken, q.refused = most, 0, 0, 0
}

func (q *quota) Invoke(context.Context, string, any, any, ...grpc.CallOption) error { return q.take(1) }

// patient returns a client with waits in virtual time.
func patient(conn grpc.ClientConnInterface) *btclient.Client {
	return btclient.New(conn, "p", "i", btclient.Options{Deadline: 10 * time.Second, Retry: btclient.Retry{
		Writes: 8, First: 10 * time.Millisecond,
		Sleep: func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil },
	}})
}

// TestThrottle_Calls: of the calls of many lanes to a Bigtable that accepts ten at a time, few
// are refused and all complete. Once it accepts all again, they run concurrently as before.
func TestThrottle_Calls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lanes, rounds = 64, 100
		q := &quota{}
		bt := patient(q)
		write := func() {
			var wg sync.WaitGroup
			for range lanes {
				wg.Go(func() {
					for range rounds {
						if err := bt.MutateRow(t.Context(), "t", []byte("a"), nil); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		}
		q.let(lanes)
		begin := time.Now()
		write()
		free := time.Since(begin)
		if q.refused > 0 || q.peak != lanes || free != rounds*time.Millisecond {
			t.Errorf("with room for all: %d refused, %d at a time, in %v", q.refused, q.peak, free)
		}
		q.let(10)
		begin = time.Now()
		write()
		// Ten at a time take 640 rounds; attempts at more are refused and repeated.
		if took := time.Since(begin); q.taken != lanes*rounds || q.refused > q.taken/4 || took > 20*free {
			t.Errorf("with room for ten: %d taken, %d refused, in %v", q.taken, q.refused, took)
		}
		q.let(lanes)
		write() // the limit grows
		q.let(lanes)
		begin = time.Now()
		write()
		if took := time.Since(begin); q.refused > 0 || q.peak != lanes || took != free {
			t.Errorf("with room for all again: %d refused, %d at a time, in %v", q.refused, q.peak, took)
		}
	})
}

// TestThrottle_Rows: a call of many rows is divided when the Bigtable accepts fewer. All are
// written once, in order, and refusals belong to their rows.
func TestThrottle_Rows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &quota{most: 30}
		written := map[string]int{}
		f := &fake{answer: func(_ int, req proto.Message) ([]proto.Message, error) {
			rows := req.(*btpb.MutateRowsRequest).GetEntries()
			if err := q.take(len(rows)); err != nil {
				return nil, err
			}
			var words []string
			for i, e := range rows {
				if string(e.GetRowKey()) == "row 137" {
					words = append(words, fmt.Sprint(i, ":INVALID_ARGUMENT"))
					continue
				}
				written[string(e.GetRowKey())]++
				words = append(words, fmt.Sprint(i))
			}
			return answers(words...), io.EOF
		}}
		var keys []string
		for i := range 200 {
			keys = append(keys, fmt.Sprintf("row %03d", i))
		}
		bt := patient(f)
		for range 10 {
			refused, err := bt.MutateRows(t.Context(), "t", entries(keys...))
			if err != nil || len(refused) != 1 || refused[0].Entry != 137 {
				t.Errorf("%v, refused %v", err, refused)
			}
		}
		for _, key := range keys {
			if n := written[key]; n != 10 && !strings.HasSuffix(key, "137") {
				t.Errorf("%s was written %d times", key, n)
			}
		}
		if q.refused > q.taken/2 {
			t.Errorf("%d calls were refused, %d taken", q.refused, q.taken)
		}
		q.let(1000)
		for range 50 {
			if _, err := bt.MutateRows(t.Context(), "t", entries(keys...)); err != nil {
				t.Error(err)
			}
		}
		if q.refused > 0 || q.peak != len(keys) {
			t.Errorf("with room for all: %d refused, %d rows at a time", q.refused, q.peak)
		}
	})
}

// TestThrottle_Bounded: a call without room ends within the deadline and describes the cause;
// its context also ends it.
func TestThrottle_Bounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		calls := 0
		f := &fake{answer: func(_ int, _ proto.Message) ([]proto.Message, error) {
			calls++
			if calls == 1 {
				return nil, status.Error(codes.ResourceExhausted, "no room")
			}
			return nil, nil // it hangs
		}}
		bt := btclient.New(f, "p", "i", btclient.Options{Deadline: 10 * time.Second, Retry: btclient.Retry{First: time.Second}})
		if _, err := bt.CheckAndMutate(t.Context(), "t", []byte("a"), nil, nil, nil); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
		go func() {
			defer close(hold)
			if err := bt.MutateRow(t.Context(), "t", []byte("a"), nil); status.Code(err) != codes.DeadlineExceeded {
				t.Error(err)
			}
		}()
		synctest.Wait()
		gone, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := bt.MutateRow(gone, "t", []byte("b"), nil); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("its context ended: %v", err)
		}
		<-hold
	})
}

// TestThrottle_Off: without refusals it costs a call no memory.
func TestThrottle_Off(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	allocations := func(first time.Duration) float64 {
		bt := btclient.New(&quota{most: 1, under: -1 << 40}, "p", "i", btclient.Options{Retry: btclient.Retry{First: first}})
		return testing.AllocsPerRun(100, func() {
			if err := bt.MutateRow(t.Context(), "t", nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	if without, with := allocations(0), allocations(time.Second); with != without {
		t.Errorf("%v allocations, %v without a throttle", with, without)
	}
}

// TestThrottle_RateLimitInfo: when the Bigtable requests a lower rate, fewer rows are written
// at a time, once in the period that it names; later the number grows back step by step.
func TestThrottle_RateLimitInfo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const period = 10 * time.Second
		var sizes []int
		var info *btpb.RateLimitInfo
		f := &fake{answer: func(_ int, req proto.Message) ([]proto.Message, error) {
			n := len(req.(*btpb.MutateRowsRequest).GetEntries())
			sizes = append(sizes, n)
			resp := &btpb.MutateRowsResponse{RateLimitInfo: info}
			for i := range n {
				resp.Entries = append(resp.Entries, &btpb.MutateRowsResponse_Entry{Index: int64(i), Status: &spb.Status{}})
			}
			return []proto.Message{resp}, io.EOF
		}}
		c := patient(f)
		keys := make([]string, 100)
		for i := range keys {
			keys[i] = fmt.Sprintf("%03d", i)
		}
		write := func(want ...int) {
			t.Helper()
			sizes = nil
			if refused, err := c.MutateRows(t.Context(), "t", entries(keys...)); err != nil || len(refused) > 0 {
				t.Fatalf("%v, %v", refused, err)
			}
			if want != nil && !slices.Equal(sizes, want) {
				t.Errorf("calls of %v rows, want %v", sizes, want)
			}
		}
		asks := func(factor float64) {
			info = &btpb.RateLimitInfo{Factor: factor, Period: durationpb.New(period)}
		}
		asks(1.3)
		write(100)
		asks(0) // not a factor
		write(100)
		asks(0.8)
		write(100)
		for range 10 { // the period continues
			write(80, 20)
		}
		time.Sleep(period)
		synctest.Wait() // it ends at exactly that moment
		asks(0.1)       // at most by 0.7 at once
		write(80, 20)
		write(56, 44)
		time.Sleep(period)
		synctest.Wait()
		info = nil
		n := 0
		for sizes = nil; !slices.Equal(sizes, []int{100}); n++ {
			if write(); n > 1000 {
				t.Fatalf("still calls of %v rows", sizes)
			}
		}
		if n < 20 {
			t.Errorf("all rows at once after %d writes", n)
		}
		// A client that would ignore the requests does not ask for them.
		for i, c := range []*btclient.Client{c, f.client(btclient.Options{})} {
			if _, err := c.MutateRows(t.Context(), "t", entries("a")); err != nil {
				t.Fatal(err)
			}
			text, err := base64.URLEncoding.DecodeString(f.headers[len(f.headers)-1].Get("bigtable-features")[0])
			flags := &btpb.FeatureFlags{}
			if err = errors.Join(err, proto.Unmarshal(text, flags)); err != nil || flags.GetMutateRowsRateLimit2() != (i == 0) || flags.GetMutateRowsRateLimit() || !flags.GetReverseScans() {
				t.Errorf("client %d: features %v, %v", i, flags, err)
			}
		}
	})
}
