package tabletsim

import (
	"slices"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

// The model of the service: the capacity of a node, the size at which a tablet splits, and the
// time it is unavailable when it then moves. nodeRows is Google's guidance of 10,000 reads, or
// writes of 1 KB, per second and node; the others have the observed order of magnitude.
// https://cloud.google.com/bigtable/docs/performance
const (
	nodeRows   = 10_000  // per second
	splitBytes = 4 << 30 // of a tablet
	moveTime   = time.Second
	askPeriod  = 10 * time.Second // of RateLimitInfo

	perRow = time.Second / nodeRows
)

// keyCells is the number of cells of the key space; a tablet is a range of cells.
const keyCells = 1 << 16

// service is the model. Its time is that of the surrounding bubble.
type service struct {
	p   Plan
	now func() time.Duration

	mu      sync.Mutex
	tablets []tablet        // unordered
	of      [keyCells]int32 // the tablet of each cell
	hosted  []int           // tablets per node
	free    []time.Duration // when each node has finished its work
	moves   int64
	served  int64 // rows, read and written
	out     Outcome
}

// tablet is a range of keys on a node.
type tablet struct {
	from, to int // cells
	node     int
	bytes    int64
	away     time.Duration // end of its unavailability
}

func newService(p Plan, now func() time.Duration) *service {
	n := max(1, p.Tablets)
	s := &service{p: p, now: now, hosted: make([]int, p.Nodes), free: make([]time.Duration, p.Nodes)}
	for i := range n {
		s.add(tablet{from: i * keyCells / n, to: (i + 1) * keyCells / n, node: i % p.Nodes})
	}
	return s
}

func (s *service) add(t tablet) {
	for cell := t.from; cell < t.to; cell++ {
		s.of[cell] = int32(len(s.tablets))
	}
	s.hosted[t.node]++
	s.tablets = append(s.tablets, t)
}

// cellOf returns the cell of a row key, which begins with its position in the key space.
func cellOf(key []byte) int { return int(key[0])<<8 | int(key[1]) }

// read serves a ReadRows call. It returns the time at which the last row is read, or an error
// if a tablet is away.
func (s *service) read(keys [][]byte) (done time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.out.Reads++
	for _, key := range keys {
		if s.tablets[s.of[cellOf(key)]].away > now {
			s.out.Away++
			return now, status.ErrorProto(moving)
		}
	}
	done = now
	for _, key := range keys {
		done = max(done, s.take(s.tablets[s.of[cellOf(key)]].node, now))
	}
	return done, nil
}

// take adds a row to the work of a node, and returns the time at which the node finishes it.
func (s *service) take(node int, now time.Duration) time.Duration {
	s.served++
	s.free[node] = max(s.free[node], now) + perRow
	return s.free[node]
}

var moving = &spb.Status{Code: int32(codes.Unavailable), Message: "the tablet is moving"}

// write serves a MutateRows call: it returns the answer and its time, or the error of the whole
// call.
func (s *service) write(rows []*btpb.MutateRowsRequest_Entry) (answer *btpb.MutateRowsResponse, done time.Duration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	done = now
	s.out.Calls++
	entries := written(len(rows))
	no := func(row int, why *spb.Status) {
		if &entries[0] == &allWritten[0] { // shared by all calls
			entries = slices.Clone(entries)
		}
		entries[row] = &btpb.MutateRowsResponse_Entry{Index: int64(row), Status: why}
	}
	var full map[int]*spb.Status // by node
	var queue time.Duration      // of the slowest node
	refused, away := int64(0), int64(0)
	for i, row := range rows {
		t := &s.tablets[s.of[cellOf(row.GetRowKey())]]
		if t.away > now {
			no(i, moving)
			away++
			continue
		}
		held := s.free[t.node] - now
		if s.p.Room > 0 && held >= s.p.Room {
			if full == nil {
				full = map[int]*spb.Status{}
			}
			if full[t.node] == nil {
				full[t.node] = s.noRoom(held)
			}
			no(i, full[t.node])
			refused++
			continue
		}
		queue = max(queue, held)
		done = max(done, s.take(t.node, now))
		if t.bytes += s.p.RowBytes; t.bytes*s.p.scale() >= splitBytes && t.to-t.from > 1 {
			s.split(int(s.of[cellOf(row.GetRowKey())]), now)
		}
	}
	if refused > 0 {
		s.out.Refused++
	}
	if away > 0 {
		s.out.Away++
	}
	if s.p.Lost > 0 && s.out.Calls%s.p.Lost == 0 {
		s.out.Lost++
		return nil, done, status.Error(codes.Unavailable, "the answer is lost")
	}
	s.out.Written += int64(len(rows)) - refused - away
	answer = &btpb.MutateRowsResponse{Entries: entries}
	if s.p.Asks > 0 && queue > s.p.Asks {
		s.out.Asked++
		answer.RateLimitInfo = &btpb.RateLimitInfo{Factor: float64(s.p.Asks) / float64(queue), Period: durationpb.New(askPeriod)}
	}
	return answer, done, nil
}

// allWritten answers calls whose rows are all written.
var allWritten = func() []*btpb.MutateRowsResponse_Entry {
	entries := make([]*btpb.MutateRowsResponse_Entry, 20_000)
	for i := range entries {
		entries[i] = &btpb.MutateRowsResponse_Entry{Index: int64(i)}
	}
	return entries
}()

func written(rows int) []*btpb.MutateRowsResponse_Entry { return allWritten[:rows:rows] }

// noRoom returns the answer for a row that a node refuses because it has work for the time held.
func (s *service) noRoom(held time.Duration) *spb.Status {
	st := status.New(codes.ResourceExhausted, "the node has no room")
	if s.p.RetryInfo {
		if detailed, err := st.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(held)}); err == nil {
			st = detailed
		}
	}
	return st.Proto()
}

// split moves the upper half of a tablet to the node with the fewest tablets.
func (s *service) split(i int, now time.Duration) {
	t := &s.tablets[i]
	half := tablet{from: (t.from + t.to) / 2, to: t.to, bytes: t.bytes / 2, node: slices.Index(s.hosted, slices.Min(s.hosted))}
	t.to, t.bytes = half.from, t.bytes-half.bytes
	if half.node != t.node {
		if s.moves++; (s.moves+s.p.scale()/2)%s.p.scale() == 0 {
			half.away = now + moveTime
		}
	}
	s.add(half)
}
