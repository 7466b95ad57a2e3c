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

// Plan describes a load in parts, and the cluster that it writes to.
type Plan struct {
	Rows     int64         // number of rows
	RowBytes int64         // size of a stored row, which the load also uses as its estimate
	Parts    int           // number of parts, which run at once; each has one pending call; at most 1024
	Check    time.Duration // CPU time of a part per row, before it writes any
	LayOut   time.Duration // CPU time of a part per row, not spent during calls
	Wire     time.Duration // duration of a round trip
	Pace     int           // rows per second of a part; 0 means no limit
	There    bool          // the table exists, and each part looks its rows up; otherwise one part creates it, and the others look up their first batch
	Sorted   bool          // the files are in row-key order; otherwise each batch has rows of all tablets
	Tablets  int           // number of tablets at the start
	Nodes    int           // number of servers
	Lost     int64         // one write in Lost loses its answer; 0 means none
	Scale    int64         // one row in Scale is written; 0 means 1

	Room      time.Duration // work that a node queues before it refuses writes; 0 means no limit
	RetryInfo bool          // refusals include a RetryInfo
	Asks      time.Duration // work that a node queues before it asks for less (RateLimitInfo); 0 means that it never asks
}

func (p Plan) scale() int64 { return max(1, p.Scale) }

// Outcome is the result of a plan. Its counts cover only the rows that were written:
// multiply them by Scale for the full size.
type Outcome struct {
	Took    time.Duration // duration of the load at full size
	Reads   int64         // calls of ReadRows
	Calls   int64         // calls of MutateRows
	Refused int64         // number of Calls that a node refused
	Away    int64         // number of Reads and Calls that met a moving tablet
	Lost    int64         // number of Calls whose answer was lost
	Asked   int64         // number of Calls whose answer asked for less
	Waited  float64       // share of the time of all parts spent waiting before retries
	Tablets int           // number of tablets at the end
	Busy    float64       // share of the nodes' capacity that was used

	Written int64 // rows that were acknowledged
}

// alignment keeps the times of parts apart, and bounds their number: a part acts only at times
// whose nanoseconds, modulo alignment, are its index. So do the timers of its client, whose
// times are multiples of it. Then the same plan gives the same figures.
const alignment = 1 << 10

// Run runs a plan. It takes a monotonic clock that starts at 0 and the clock's sleep
// function. Both must belong to a testing/synctest bubble, since the load's client has
// timers.
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
	waited time.Duration // before retries
	took   time.Duration
	err    error
}

// until waits until t, or slightly longer, for the part's own alignment.
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

// rowMaker creates the rows of a part, batch by batch, in memory that batches share.
type rowMaker struct {
	x    *part
	of   int64 // all of the part
	rows []*btpb.MutateRowsRequest_Entry
	at   []float64 // position among all keys, from 0 to 1
}

// row returns a row of a batch, without a key.
func (m *rowMaker) row(i int64) *btpb.MutateRowsRequest_Entry {
	if i == int64(len(m.rows)) {
		m.rows = append(m.rows, &btpb.MutateRowsRequest_Entry{RowKey: make([]byte, 8), Mutations: []*btpb.Mutation{btclient.SetCell("f", nil, 0, nil)}})
	}
	return m.rows[i]
}

// place sets the keys of a batch: those after the first done rows of the part, or random ones.
// They ascend, which only affects the cost of the load's reads here.
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
		for i := range m.at { // as if each had been drawn independently
			m.at[i] /= sum
		}
	}
	for i, at := range m.at {
		binary.BigEndian.PutUint64(m.rows[i].GetRowKey(), uint64(at*(1<<53))<<11)
	}
}
