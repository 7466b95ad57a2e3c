package differential

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/fixtures"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/migrate/internal/endpoints"
	"github.com/tabletop-emu/tabletop/migrate/internal/golden"
	"github.com/tabletop-emu/tabletop/migrate/internal/table"
	"github.com/tabletop-emu/tabletop/migrate/source"
)

// tickOp is the Op of an exchange in which time passes: items expire, garbage is collected, and
// the rest is read.
const tickOp = "Tick"

// tickRequest is the request of such an exchange.
type tickRequest struct {
	From    time.Time // the start, by the clock of the endpoint
	Seconds int64
}

func isTick(x fixtures.Exchange) bool { return x.Op == tickOp }

// scanAfter turns the tick x into the Scan that follows it.
func scanAfter(x fixtures.Exchange) fixtures.Exchange {
	x.Op, x.Request = "Scan", jsontext.Value(fmt.Sprintf(`{"TableName":%q,"ConsistentRead":true}`, Table))
	return x
}

// trialTime controls the time of a trial. Time passes only if garbage collection can be run,
// and so only on a private Bigtable: an expiring endpoint would also delete items of others.
type trialTime struct {
	start     time.Time
	runGC     func(context.Context) error // nil: no time passes
	collects  bool                        // runGC is used: no rule depends on the Bigtable's own clock
	attribute string                      // by which items expire, or ""
}

func newTrialTime(m *layout.Mapping, o table.Options) trialTime {
	t := trialTime{start: table.FallbackTime, runGC: o.RunGC}
	if o.Now != nil {
		t.start = o.Now().UTC().Truncate(time.Second)
	}
	t.collects = !slices.ContainsFunc(m.Families(), func(f layout.Family) bool { return f.GC.MaxAge > 0 })
	if e := m.Expiry(); e.Kept {
		t.attribute = e.Attribute
	}
	return t
}

func (t trialTime) passes() bool { return t.runGC != nil }

// takesVersions reports whether garbage collection may remove versions of a column that are
// items.
func (t trialTime) takesVersions(m *layout.Mapping) bool {
	spec := m.Spec()
	return t.passes() && t.collects && slices.ContainsFunc(spec.Rules, func(r mapfile.Rule) bool {
		return slices.ContainsFunc(r.Put, func(p mapfile.Put) bool {
			family, _, _ := strings.Cut(p.Cell, ":")
			return p.Time != (mapfile.PutTime{}) && slices.ContainsFunc(m.Families(), func(f layout.Family) bool { return f.Name == family && f.GC.Versions > 0 })
		})
	})
}

// timely changes items so that some of them expire during a run, and some are versions of one
// column. An item that the mapping would not accept then stays unchanged. Items with the key
// of an earlier one are dropped.
func (d *trial) timely(r *rand.Rand, items []attr.Item) []attr.Item {
	if !d.time.passes() {
		return items
	}
	hash, versions := d.mapping.Key().Hash.Name, d.time.takesVersions(d.mapping)
	keys := map[string]bool{}
	var out []attr.Item
	for _, item := range items {
		with := maps.Clone(item)
		if d.time.attribute != "" && r.IntN(3) > 0 {
			with[d.time.attribute] = attr.Int(d.time.start.Unix() + r.Int64N(2*3600) - 60)
		}
		if versions && r.IntN(3) > 0 {
			with[hash] = items[0][hash]
		}
		if _, err := d.mapping.Place(with, d.micros); err != nil {
			with = item
		}
		if key := d.key(with); !keys[key] {
			keys[key] = true
			out = append(out, with)
		}
	}
	return d.fitting(out, len(out))
}

// maxDuePolls bounds the polls for the endpoint's index of expiry times.
const maxDuePolls = 20_000

// awaitDueTimes waits until the endpoint, which indexes in the background, knows the expiry
// times of the loaded items.
func (d *trial) awaitDueTimes(ctx context.Context, pair *endpoints.Pair) error {
	if d.time.attribute == "" {
		return nil
	}
	for range maxDuePolls {
		answer, err := pair.Call(ctx, "DescribeTimeToLive", fmt.Appendf(nil, `{"TableName":%q}`, Table))
		if err != nil {
			return err
		}
		var found struct {
			TimeToLiveDescription struct{ TimeToLiveStatus string }
		}
		if err := json.Unmarshal(answer, &found); err != nil {
			return fmt.Errorf("the response of DescribeTimeToLive is not JSON: %w", err)
		}
		if found.TimeToLiveDescription.TimeToLiveStatus == "ENABLED" {
			return nil
		}
		if d.options.Sleep == nil {
			runtime.Gosched()
		} else if err := d.options.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
	return fmt.Errorf("table %s still has TimeToLiveStatus ENABLING after %d polls", Table, maxDuePolls)
}

// pass lets time pass in the naive DynamoDB, and returns an exchange with the remaining items.
func (d *trial) pass(db *naive, passed time.Duration) fixtures.Exchange {
	x := fixtures.Exchange{Op: tickOp, Request: jsontext.Value(ddbmodel.Text(tickRequest{db.Now(), int64(passed / time.Second)}))}
	db.passed += passed
	db.Expire()
	if d.time.collects {
		d.collect(db)
	}
	expect(&x, db, ddbmodel.Reading{Table: Table})
	return x
}

// collect removes from a naive DynamoDB the items, or parts of them, that are garbage-collected
// versions.
func (d *trial) collect(db *naive) {
	k := table.NewRetention(d.mapping.Families(), nil)
	rows, of := map[string]layout.Row{}, map[string][]ddbmodel.Item{}
	for _, item := range db.table.Items() {
		it, err := attr.UnmarshalItem([]byte(ddbmodel.Text(item)))
		if err != nil {
			continue // cannot happen: it was one
		}
		if p, err := d.mapping.Place(it, d.micros); err == nil {
			key := string(p.Row)
			rows[key] = layout.Row{Key: p.Row, Cells: append(rows[key].Cells, p.Cells...)}
			of[key] = append(of[key], item)
		}
	}
	for key, row := range rows {
		row = golden.Canonical(row)
		kept := k.Kept(row.Cells)
		if len(kept) == len(row.Cells) {
			continue
		}
		for _, item := range of[key] {
			db.table.Put(db.table.KeyOf(item), nil)
		}
		left, err := d.mapping.Items(layout.Row{Key: row.Key, Cells: kept})
		if err != nil {
			continue // the rows cannot be read either, which is reported
		}
		for _, item := range left {
			it := modelItem(item)
			db.table.Put(db.table.KeyOf(it), it)
		}
	}
}

// trialClock is the clock of an endpoint. It stops between ticks.
type trialClock struct{ at atomic.Int64 } // seconds since 1970

func (c *trialClock) now() time.Time { return time.Unix(c.at.Load(), 0).UTC() }

// clockOf returns the clock for exchanges with ticks, nil for others.
func clockOf(exchanges []fixtures.Exchange) (*trialClock, error) {
	i := slices.IndexFunc(exchanges, isTick)
	if i < 0 {
		return nil, nil
	}
	first, err := tickOf(exchanges[i])
	if err != nil {
		return nil, err
	}
	c := &trialClock{}
	c.at.Store(first.From.Unix())
	return c, nil
}

func tickOf(x fixtures.Exchange) (t tickRequest, err error) {
	if err := json.Unmarshal(x.Request, &t); err != nil {
		return t, source.Damaged(source.FixtureInvalid, source.Position{File: fixtures.RequestsFile}, err, "a %s has no request {\"From\": TIME, \"Seconds\": N}", tickOp)
	}
	return t, nil
}

// tick lets time pass for the endpoint: expired items are deleted, then garbage is collected.
func (d *trial) tick(ctx context.Context, server *facade.Server, clock *trialClock, x fixtures.Exchange) error {
	t, err := tickOf(x)
	if err != nil {
		return err
	}
	clock.at.Store(t.From.Unix() + t.Seconds)
	if _, err := server.ReapExpired(ctx); err != nil {
		return fmt.Errorf("letting items expire: %w", err)
	}
	if !d.time.collects {
		return nil
	}
	if err := d.time.runGC(ctx); err != nil {
		return fmt.Errorf("running garbage collection: %w", err)
	}
	return nil
}
