package emu

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// cutReader reads a table's changes in ranges. Its tokens cover the whole key space without
// overlaps, in key order.
type cutReader struct {
	e      *env
	tokens []*btpb.StreamContinuationToken
	seen   map[int]int    // number of deliveries by write
	last   map[string]int // the last write by row
	closed map[codes.Code]int
}

// endsBefore compares ends of ranges; "" is after all keys.
func endsBefore(a, b []byte) bool { return len(a) > 0 && (len(b) == 0 || bytes.Compare(a, b) < 0) }

// within returns the tokens of the reader, narrowed to the keys inside, before and after the range
// of p.
func (c *cutReader) within(p *btpb.StreamPartition) (inside []*btpb.StreamContinuationToken, before, after []*btpb.StreamContinuationToken) {
	from, to := p.GetRowRange().GetStartKeyClosed(), p.GetRowRange().GetEndKeyOpen()
	for _, t := range c.tokens {
		first, end := t.GetPartition().GetRowRange().GetStartKeyClosed(), t.GetPartition().GetRowRange().GetEndKeyOpen()
		part := func(first, end []byte) []*btpb.StreamContinuationToken {
			if len(end) > 0 && bytes.Compare(first, end) >= 0 {
				return nil
			}
			return []*btpb.StreamContinuationToken{{Partition: partition(string(first), string(end)), Token: t.GetToken()}}
		}
		least := func(a, b []byte) []byte {
			if endsBefore(a, b) {
				return a
			}
			return b
		}
		most := func(a, b []byte) []byte { return slices.MaxFunc([][]byte{a, b}, bytes.Compare) }
		if len(from) > 0 {
			before = append(before, part(first, least(end, from))...)
		}
		inside = append(inside, part(most(first, from), least(end, to))...)
		if len(to) > 0 {
			after = append(after, part(most(first, to), end)...)
		}
	}
	return inside, before, after
}

// read reads at most n records of a range, all committed by now.
func (c *cutReader) read(p *btpb.StreamPartition, n int) {
	c.e.t.Helper()
	inside, before, after := c.within(p)
	if len(inside) == 0 {
		c.e.t.Fatalf("no token for %v in %v", p, c.tokens)
	}
	end := c.e.clock.Advance(time.Second).Add(-time.Millisecond)
	r := c.e.changes(&btpb.ReadChangeStreamRequest{Partition: p, StartFrom: fromTokens(inside...), EndTime: timestamppb.New(end)})
	defer r.cancel()
	for ; n > 0; n-- {
		rec, _, closed, err := r.next()
		if err != nil {
			c.e.t.Fatalf("reading %v by %v: %v", p, inside, err)
		}
		if closed != nil {
			c.closed[codes.Code(closed.GetStatus().GetCode())]++
			if len(closed.GetContinuationTokens()) > 0 {
				inside = closed.GetContinuationTokens()
			}
			break
		}
		if rec == nil {
			continue // a heartbeat
		}
		row := string(rec.row)
		write, err := strconv.Atoi(string(rec.muts[0].GetSetCell().GetValue()))
		if err != nil {
			c.e.t.Fatal(err)
		}
		if c.seen[write]++; write <= c.last[row] {
			c.e.t.Fatalf("write %d of row %s follows %d", write, row, c.last[row])
		}
		c.last[row] = write
		inside = []*btpb.StreamContinuationToken{{Partition: p, Token: rec.token}}
	}
	c.tokens = slices.Concat(before, inside, after)
}

// partitions returns the current partitions of the table.
func (e *env) partitions() (out []*btpb.StreamPartition) {
	e.t.Helper()
	stream, err := e.data.GenerateInitialChangeStreamPartitions(e.ctx(), &btpb.GenerateInitialChangeStreamPartitionsRequest{TableName: testTable})
	e.must(err)
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out
		}
		e.must(err)
		out = append(out, resp.GetPartition())
	}
}

// TestProperty_AnyCut is property (b) of change streams, on the server. A table is split and
// merged during writes and reads; readers use partitions or other ranges, from token to token.
// Each write is delivered once, and the writes of a row in order.
func TestProperty_AnyCut(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 11))
			e := newStream(t, "a")
			key := func() string { return string(rune('b'+r.IntN(4))) + []string{"", "m", "x"}[r.IntN(3)] }
			splits := map[string]bool{}
			writes := 1
			e.mustMutate("a", set("a", "q", 1000, "1"))
			first := e.changes(&btpb.ReadChangeStreamRequest{Partition: partition("", ""), StartFrom: fromTime(start)}).take(1)[0]
			c := &cutReader{
				e: e, seen: map[int]int{1: 1}, last: map[string]int{"a": 1}, closed: map[codes.Code]int{},
				tokens: []*btpb.StreamContinuationToken{{Partition: partition("", ""), Token: first.token}},
			}
			for range 120 {
				switch r.IntN(8) {
				case 0, 1, 2, 3:
					writes++
					e.mustMutate(key(), set("a", "q", 1000, fmt.Sprint(writes)), set("a", "p", 1000, "beside"))
				case 4:
					at := key()
					if splits[at] {
						e.must(e.srv.MergePartitions(e.ctx(), testTable, []byte(at)))
					} else {
						e.must(e.srv.SplitPartition(e.ctx(), testTable, []byte(at)))
					}
					splits[at] = !splits[at]
				case 5, 6:
					all := e.partitions()
					c.read(all[r.IntN(len(all))], r.IntN(4)+1)
				default:
					from, to := key(), key()
					if from > to {
						from, to = to, from
					}
					if from != to {
						c.read(partition(from, to), r.IntN(4)+1)
					}
				}
			}
			for _, p := range e.partitions() {
				c.read(p, writes+1)
			}
			for write := 1; write <= writes; write++ {
				if c.seen[write] != 1 {
					t.Errorf("write %d of %d was delivered %d times", write, writes, c.seen[write])
				}
			}
			if len(c.seen) != writes || c.closed[codes.OutOfRange] == 0 || c.closed[codes.OK] == 0 {
				t.Errorf("%d of %d writes, closed %v", len(c.seen), writes, c.closed)
			}
		})
	}
}
