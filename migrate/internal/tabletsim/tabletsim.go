package tabletsim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/migrate/internal/load"
	"github.com/tabletop-emu/tabletop/migrate/internal/pace"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
)

// Plan is a load in parts, and the cluster that takes it.
type Plan struct {
	Rows     int64         // in all
	RowBytes int64         // of a row as it is stored, and as a load reckons it
	Parts    int           // that run at once, each with one call under way; 1024 at most
	Check    time.Duration // CPU of a part for a row, before it writes any
	LayOut   time.Duration // CPU of a part for a row, which is not spent while a call is under way
	Wire     time.Duration // of a round trip
	Pace     int           // rows a second of a part; 0: as fast as they go
	There    bool          // the table was there, and each part looks its rows up; else one part makes it, and the others look at their first batch
	Sorted   bool          // the files are in the order of row keys; else any batch has rows of all tablets
	Tablets  int           // with which the table begins
	Nodes    int           // servers
	Lost     int64         // one write in Lost loses its answer; 0: none does
	Scale    int64         // one row in Scale is written; 0: 1

	Room  time.Duration // of work that a node holds, beyond which it refuses writes; 0: it holds all
	Tells bool          // a refusal says when to retry (RetryInfo)
	Asks  time.Duration // of work that a node holds, beyond which it asks for less (RateLimitInfo); 0: it does not
}

func (p Plan) scale() int64 { return max(1, p.Scale) }

// Outcome is what came of a plan. Its counts are of the rows that were written: there are
// Scale times as many at full size.
type Outcome struct {
	Took    time.Duration // at full size
	Reads   int64         // calls of ReadRows
	Calls   int64         // calls of MutateRows
	Refused int64         // of them, those that some node had no room for
	Away    int64         // of both, those that met a tablet which was moving
	Lost    int64         // of them, those whose answer was lost
	Asked   int64         // of them, those that were asked for less
	Waited  float64       // share of the time of all parts that they waited before they sent something again
	Tablets int           // at the end
	Busy    float64       // share of what the nodes could have done meanwhile

	Written int64 // rows that were answered as written
}

// alignment is what keeps parts apart, and how many there may be: a part acts only at
// times whose nanoseconds, by this modulus, are its index. So do the timers of its client,
// whose times are multiples of it. Then the same plan gives the same figures.
const alignment = 1 << 10

// Run runs a plan, by a monotonic clock that stands at 0 and a way to wait by it: those
// of a bubble of testing/synctest, since the client of the load has timers.
func Run(ctx context.Context, p Plan, now func() time.Duration, sleep func(context.Context, time.Duration) error) (Outcome, error) {
	if p.Parts < 1 || p.Parts > alignment || p.Nodes < 1 {
		return Outcome{}, fmt.Errorf("a load of %d parts on %d nodes: want 1 to %d, and 1 or more", p.Parts, p.Nodes, alignment)
	}
	p.Rows /= p.scale()
	s := newService(p, now)
	parts := make([]part, p.Parts)
	var wg sync.WaitGroup
	for i := range parts {
		x := &parts[i]
		*x = part{p: p, index: i, s: s, sleep: sleep, rand: rand.New(rand.NewPCG(1, uint64(i)))}
		wg.Go(func() { x.err = x.load(ctx) })
	}
	wg.Wait()
	out := s.out
	out.Tablets = len(s.tablets)
	var waited, all time.Duration
	for i := range parts {
		x := &parts[i]
		if x.err != nil {
			return out, fmt.Errorf("part %d: %w", i+1, x.err)
		}
		out.Took, waited, all = max(out.Took, x.took), waited+x.waited, all+x.took
	}
	if all > 0 {
		out.Waited = float64(waited) / float64(all)
		out.Busy = float64(s.served) / (float64(nodeRows*p.Nodes) * out.Took.Seconds())
	}
	out.Took *= time.Duration(p.scale())
	return out, nil
}

// part is a process of the load.
type part struct {
	p      Plan
	index  int
	s      *service
	sleep  func(context.Context, time.Duration) error
	rand   *rand.Rand
	waited time.Duration // before it sent something again
	took   time.Duration
	err    error
}

// until waits until t, or a little longer: the part's own time comes.
func (x *part) until(ctx context.Context, t time.Duration) error {
	now := x.s.now()
	t = max(t, now)
	t += (time.Duration(x.index) - t%alignment + alignment) % alignment
	return x.sleep(ctx, t-now)
}

// wait waits for some time.
func (x *part) wait(ctx context.Context, d time.Duration) error { return x.until(ctx, x.s.now()+d) }

// load checks and writes the rows of the part, as migrate load --part does.
func (x *part) load(ctx context.Context) error {
	n := x.p.Rows / int64(x.p.Parts)
	if int64(x.index) < x.p.Rows%int64(x.p.Parts) {
		n++
	}
	if err := x.wait(ctx, time.Duration(n)*x.p.Check); err != nil {
		return err
	}
	o := table.Options{
		Sleep: x.wait, Jitter: x.rand.Float64, Waiting: func(w btclient.Wait) { x.waited += w.Next },
		Pace: pace.New(x.p.Pace, x.s.now, x.wait),
	}
	stream := load.NewStream(table.NewBigtable(conn{x.s, x.until}, o), o, "t", x.p.There || x.index > 0, !x.p.There)
	rows := rowMaker{x: x, of: n}
	for done := int64(0); done < n; {
		batch := int64(0)
		for ; done+batch < n && !stream.Full(); batch++ {
			stream.Add(rows.row(batch), int(x.p.RowBytes))
		}
		rows.place(done, batch)
		if err := x.wait(ctx, time.Duration(batch)*x.p.LayOut); err != nil {
			return err
		}
		if err := stream.Flush(ctx); err != nil {
			return err
		}
		done += batch
	}
	x.took = x.s.now()
	return nil
}

// rowMaker makes the rows of a part, batch by batch, in memory that batches share.
type rowMaker struct {
	x    *part
	of   int64 // all of the part
	rows []*btpb.MutateRowsRequest_Entry
	at   []float64 // where among all keys, from 0 to 1
}

// row is a row of a batch, which has no key yet.
func (m *rowMaker) row(i int64) *btpb.MutateRowsRequest_Entry {
	if i == int64(len(m.rows)) {
		m.rows = append(m.rows, &btpb.MutateRowsRequest_Entry{RowKey: make([]byte, 8), Mutations: []*btpb.Mutation{btclient.SetCell("f", nil, 0, nil)}})
	}
	return m.rows[i]
}

// place gives the rows of a batch their keys: those behind the done first of the part, or
// any at all. They ascend, which changes nothing but what the reads of a load cost here.
func (m *rowMaker) place(done, batch int64) {
	m.at = m.at[:0]
	if m.x.p.Sorted {
		for i := range batch {
			m.at = append(m.at, (float64(m.x.index)+float64(done+i)/float64(m.of))/float64(m.x.p.Parts))
		}
	} else {
		sum := 0.0
		for range batch {
			sum += m.x.rand.ExpFloat64()
			m.at = append(m.at, sum)
		}
		sum += m.x.rand.ExpFloat64()
		for i := range m.at { // now they are as if each had been drawn by itself
			m.at[i] /= sum
		}
	}
	for i, at := range m.at {
		binary.BigEndian.PutUint64(m.rows[i].GetRowKey(), uint64(at*(1<<53))<<11)
	}
}
