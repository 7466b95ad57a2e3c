// Package replica simulates replication: it computes which writes each cluster
// of an instance can see.
//
// The store has one journal per table. Each record names its commit time and
// its origin, the cluster that took the write. Visibility is computed on demand
// from these and from the replication state. For a record r of the cluster O:
//
//	visible(r, C) = max(commit(r) + lag(O, C), visible(the record of O before r, C))
//
// The lag is the lag in force when r was committed. A pair of clusters delivers nothing while it is
// paused or one of them has failed. The state is therefore one [link] per ordered pair: its lags by
// record number, its pauses, and the number up to which all records were declared delivered. A
// cluster that is added to an instance begins with the data of another cluster, regardless of the
// links; see [fill].
//
// The state is in memory, because tests and flags set it. The records are on disk, so they are
// still delivered after a restart. No background work delivers records: a waiting caller asks when
// a record becomes visible, and waits on the clock. An instance that was never configured has no
// state, and [Control.View] returns nil for it.
//
// [Reader] reads a table's journal for change streams, in the order in which
// records become visible in a cluster. [Rows] computes the rows that a cluster
// sees.
package replica

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/instancedef"
	"github.com/tabletop-emu/tabletop/emu/internal/pending"
)

// MaxLag is the longest lag. It equals the longest retention of a change stream.
const MaxLag = 7 * 24 * time.Hour

const (
	// remembered is the time for which a link keeps past lags and pauses. It
	// exceeds the retention of any change stream.
	remembered = MaxLag + 24*time.Hour
	// spare is the time for which records are kept after their delivery.
	// keepShut is their retention while the time of delivery is unknown.
	spare    = time.Hour
	keepShut = 366 * 24 * time.Hour
)

// These are the errors that the methods of [Instance] return.
var (
	// ErrUnknownCluster is returned if the instance has no cluster with the given id.
	ErrUnknownCluster = errors.New("unknown cluster")
	// ErrLag is returned for a lag outside 0 to MaxLag.
	ErrLag = errors.New("lag out of range")
)

// Options configures NewControl. All fields except Lag are required.
type Options struct {
	// Now returns the current time.
	Now func() time.Time
	// Last returns the number and the commit time of the last record in the store.
	Last func() (number uint64, micros int64)
	// Clusters returns the stored clusters of an instance, sorted by name.
	Clusters func(instance string) ([]*instancedef.StoredCluster, error)
	// Keep makes the store record the changes of an instance's tables from now on, and keep them
	// for a given time. It is called before the records are needed, and before they are needed for
	// longer.
	Keep func(instance string, keep time.Duration) error
	// Lag is the lag of pairs of clusters for which no specific lag is set.
	Lag time.Duration
}

// Control holds the replication state of all instances. It is safe for
// concurrent use.
type Control struct {
	o Options

	mu      sync.Mutex            // serializes changes
	views   atomic.Pointer[views] // nil: no instance is configured
	changed pending.Broadcast
}

// views maps instances to their views, and "" to the view of all others.
type views map[string]*View

// NewControl returns a Control in its initial state. It returns ErrLag if o.Lag is out of range.
func NewControl(o Options) (*Control, error) {
	c := &Control{o: o}
	if err := checkLag(o.Lag); err != nil {
		return nil, err
	}
	if o.Lag > 0 {
		c.views.Store(&views{"": newView(o.Lag)})
	}
	return c, nil
}

func checkLag(d time.Duration) error {
	if d < 0 || d > MaxLag {
		return fmt.Errorf("%w: %v is not between 0 and %v", ErrLag, d, MaxLag)
	}
	return nil
}

// View returns the replication state of an instance's clusters. It returns nil for an instance that
// was never configured: its clusters are up and see every write at once.
func (c *Control) View(instance string) *View {
	all := c.views.Load()
	if all == nil {
		return nil
	}
	if v := (*all)[instance]; v != nil {
		return v
	}
	return (*all)[""]
}

// Changed returns a channel that is closed when the state of any instance changes next.
func (c *Control) Changed() <-chan struct{} { return c.changed.Next() }

// Forget removes the state of a deleted cluster, or the state of a whole instance if cluster is "".
func (c *Control) Forget(instance, cluster string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.views.Load()
	if all == nil || (*all)[instance] == nil {
		return
	}
	next := maps.Clone(*all)
	if cluster == "" {
		delete(next, instance)
	} else {
		v := next[instance].clone()
		delete(v.failed, cluster)
		maps.DeleteFunc(v.links, func(p pair, _ *link) bool { return p.from == cluster || p.to == cluster })
		next[instance] = v
	}
	c.store(next)
}

// tidy removes views that have no effect any more, so that requests to their
// instances take the fast path again.
func (c *Control) tidy() {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.views.Load()
	if all == nil || (*all)[""] != nil {
		return
	}
	next := maps.Clone(*all)
	maps.DeleteFunc(next, func(_ string, v *View) bool { return v.trivial(c.o.Now()) })
	if len(next) < len(*all) {
		c.store(next)
	}
}

// Reset restores the initial replication state of all instances.
func (c *Control) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next views
	if c.o.Lag > 0 {
		next = views{"": newView(c.o.Lag)}
	}
	c.store(next)
}

// store replaces the views. The caller holds mu.
func (c *Control) store(next views) {
	if len(next) == 0 {
		c.views.Store(nil)
	} else {
		c.views.Store(&next)
	}
	c.changed.Notify()
}

// Instance returns the replication controls of the instance called name.
func (c *Control) Instance(name string) *Instance { return &Instance{c, name} }

// Instance implements emu.Replication. All methods return ErrUnknownCluster,
// ErrLag, or errors of the store.
type Instance struct {
	c    *Control
	name string
}

// Lag implements emu.Replication.
func (i *Instance) Lag(d time.Duration) error {
	if err := checkLag(d); err != nil {
		return err
	}
	return i.change(nil, func(v *View, at moment) {
		v.rest.setLag(d, at)
		for _, l := range v.links {
			l.setLag(d, at)
		}
	})
}

// LagBetween implements emu.Replication.
func (i *Instance) LagBetween(from, to string, d time.Duration) error {
	if err := checkLag(d); err != nil {
		return err
	}
	return i.change([]string{from, to}, func(v *View, at moment) { v.link(pair{from, to}).setLag(d, at) })
}

// Pause implements emu.Replication.
func (i *Instance) Pause(from, to string) error {
	return i.change([]string{from, to}, func(v *View, at moment) {
		l := v.link(pair{from, to})
		l.paused = true
		l.settle(v.down(pair{from, to}), at)
	})
}

// Resume implements emu.Replication.
func (i *Instance) Resume(from, to string) error {
	return i.change([]string{from, to}, func(v *View, at moment) {
		l := v.link(pair{from, to})
		l.paused = false
		l.settle(v.down(pair{from, to}), at)
	})
}

// Fail implements emu.Replication.
func (i *Instance) Fail(cluster string) error {
	return i.change([]string{cluster}, func(v *View, at moment) {
		if !v.Failed(cluster) {
			v.failed[cluster] = at
		}
		v.settle(at)
	})
}

// Recover implements emu.Replication.
func (i *Instance) Recover(cluster string) error {
	return i.change([]string{cluster}, func(v *View, at moment) {
		delete(v.failed, cluster)
		v.settle(at)
	})
}

// DeliverAll implements emu.Replication.
func (i *Instance) DeliverAll() error {
	return i.change(nil, func(v *View, at moment) {
		for p, l := range v.links {
			if !v.down(p) {
				l.bases = append(l.bases, at)
			}
		}
	})
}

// DataBoostLag implements emu.Replication.
func (i *Instance) DataBoostLag(d time.Duration) error {
	if err := checkLag(d); err != nil {
		return err
	}
	return i.change(nil, func(v *View, _ moment) { v.boost = d })
}

// change checks that the clusters in named exist and differ, and applies fn to a copy of the
// instance's view. It calls fn twice, each time with a new copy, unless Options.Keep fails first.
// Commits before the call precede the change; writes that begin after its return follow it.
func (i *Instance) change(named []string, fn func(v *View, at moment)) error {
	stored, err := i.c.o.Clusters(i.name)
	if err != nil {
		return err
	}
	clusters := idsOf(stored)
	for _, id := range named {
		if !slices.Contains(clusters, id) {
			return fmt.Errorf("%w: instance %s has no cluster %q; it has %s", ErrUnknownCluster, i.name, id, strings.Join(clusters, ", "))
		}
	}
	if len(named) == 2 && named[0] == named[1] {
		return fmt.Errorf("%w: %q sees its own writes at once; expected two clusters", ErrUnknownCluster, named[0])
	}
	i.c.mu.Lock()
	defer i.c.mu.Unlock()
	var next *View
	build := func() {
		next = newView(0)
		if is := i.c.View(i.name); is != nil {
			next = is.clone()
		}
		for _, from := range clusters {
			for _, to := range clusters {
				if from != to {
					next.link(pair{from, to})
				}
			}
		}
		number, micros := i.c.o.Last()
		at := moment{number: number, micros: micros, now: i.c.o.Now().UnixMicro()}
		next.forget(at.now)
		fn(next, at)
	}
	// Keep first, then take the time: all pending records are then in the
	// journal.
	build()
	if len(clusters) > 1 {
		if keep := next.Keep(i.c.o.Now()); keep > 0 {
			if err := i.c.o.Keep(i.name, keep); err != nil {
				return err
			}
		}
	}
	build()
	all := views{}
	if is := i.c.views.Load(); is != nil {
		all = maps.Clone(*is)
	}
	all[i.name] = next
	if all[""] == nil && next.trivial(i.c.o.Now()) {
		delete(all, i.name)
	}
	i.c.store(all)
	return nil
}

// View holds the replication state of an instance's clusters. It is immutable.
// A nil View belongs to an instance that was never configured.
type View struct {
	rest   *link // of pairs that are not in links
	links  map[pair]*link
	failed map[string]moment
	boost  time.Duration
}

// pair is an ordered pair of cluster ids: to sees the records of from.
type pair struct{ from, to string }

func newView(lag time.Duration) *View {
	return &View{rest: &link{terms: []term{{lag: lag}}}, links: map[pair]*link{}, failed: map[string]moment{}}
}

func (v *View) clone() *View {
	out := &View{rest: v.rest.clone(), links: make(map[pair]*link, len(v.links)), failed: maps.Clone(v.failed), boost: v.boost}
	for p, l := range v.links {
		out.links[p] = l.clone()
	}
	return out
}

// link returns the link of a pair, which it adds to v if missing.
func (v *View) link(p pair) *link {
	l := v.links[p]
	if l == nil {
		l = v.of(p)
		v.links[p] = l
	}
	return l
}

// of returns the link of a pair, or a new one if v has none. A new cluster gets
// nothing from a cluster that failed earlier.
func (v *View) of(p pair) *link {
	if l := v.links[p]; l != nil {
		return l
	}
	l := v.rest.clone()
	if v.Failed(p.from) {
		l.settle(true, moment{})
	} else if at, down := v.failed[p.to]; down {
		l.settle(true, at)
	}
	return l
}

// down reports whether a cluster of a pair has failed.
func (v *View) down(p pair) bool { return v.Failed(p.from) || v.Failed(p.to) }

// settle closes and opens links after a cluster failed or recovered.
func (v *View) settle(at moment) {
	for p, l := range v.links {
		l.settle(v.down(p), at)
	}
}

// forget drops lags and pauses that ended long before now.
func (v *View) forget(now int64) {
	v.rest.forget(now)
	for _, l := range v.links {
		l.forget(now)
	}
}

// Failed reports whether a cluster has failed.
func (v *View) Failed(cluster string) bool {
	if v == nil {
		return false
	}
	_, down := v.failed[cluster]
	return down
}

// Keep returns how long records must be retained. It returns 0 if all writes are visible everywhere
// at once.
func (v *View) Keep(now time.Time) time.Duration {
	if v == nil {
		return 0
	}
	keep := v.rest.keep(now.UnixMicro())
	for _, l := range v.links {
		keep = max(keep, l.keep(now.UnixMicro()))
	}
	return keep
}

// trivial reports whether v has the same effect as a nil View.
func (v *View) trivial(now time.Time) bool {
	return v.Keep(now) == 0 && len(v.failed) == 0 && v.boost == 0
}

// moment is the time of a change of the replication state.
type moment struct {
	number uint64 // number of the last record before it
	micros int64  // the last commit time before it: commit times run ahead of a stopped clock
	now    int64  // the clock; later records are not committed before it
}

// link is the delivery of records from one cluster to another.
type link struct {
	terms  []term // in order; the last one is in force
	gaps   []gap  // in order
	shut   *moment
	paused bool
	bases  []moment // in order: records up to the number of each had arrived at its time
	fill   *fill    // nil: the cluster began with no data of the other
}

// term is a lag and the last moment at which it was in force, zero for the
// current one.
type term struct {
	lag   time.Duration
	until moment
}

// gap is a period in which nothing arrived.
type gap struct {
	from moment
	to   int64
}

func (l *link) clone() *link {
	out := *l
	out.terms, out.gaps, out.bases = slices.Clone(l.terms), slices.Clone(l.gaps), slices.Clone(l.bases)
	return &out
}

// setLag ends the current term and begins another.
func (l *link) setLag(d time.Duration, at moment) {
	last := &l.terms[len(l.terms)-1]
	if last.lag == d {
		return
	}
	last.until = at
	l.terms = append(l.terms, term{lag: d})
}

// settle closes the link if it is paused or one of its clusters is down, and
// opens it otherwise.
func (l *link) settle(down bool, at moment) {
	switch shut := down || l.paused; {
	case shut && l.shut == nil:
		l.shut = &at
	case !shut && l.shut != nil:
		l.gaps = append(l.gaps, gap{*l.shut, at.now})
		l.shut = nil
	}
}

func (l *link) forget(now int64) {
	old := now - remembered.Microseconds()
	for len(l.terms) > 1 && l.terms[0].until.micros < old && l.terms[0].until.now < old && l.shut == nil {
		l.terms = l.terms[1:]
	}
	for len(l.gaps) > 0 && l.gaps[0].to < old {
		l.gaps = l.gaps[1:]
	}
	for len(l.bases) > 1 && l.bases[1].now < old {
		l.bases = l.bases[1:]
	}
}

// wholeMillis truncates a commit time to milliseconds. With a stopped clock,
// commits are a microsecond apart, yet each record must arrive exactly one lag
// later.
func wholeMillis(micros int64) int64 { return micros - micros%1000 }

// due returns when a record arrives, in microseconds, regardless of the records
// before it; 0 means with its commit. It returns false if the time is unknown.
// Earlier commits of the same cluster arrive no later.
func (l *link) due(number uint64, micros int64) (at int64, known bool) {
	at, known = l.sent(number, micros)
	if l.fill != nil && (!known || at > l.fill.at) && l.fill.has(number, micros) {
		return l.fill.at, true
	}
	return at, known
}

// sent is like due, but ignores the initial data of the cluster.
func (l *link) sent(number uint64, micros int64) (at int64, known bool) {
	i := 0
	for i < len(l.terms)-1 && number > l.terms[i].until.number {
		i++
	}
	if lag := l.terms[i].lag; lag > 0 {
		at = wholeMillis(micros) + lag.Microseconds()
	}
	held := func(since moment) bool { return number > since.number || at > since.now }
	for _, g := range l.gaps {
		if at < g.to && held(g.from) {
			at = g.to
		}
	}
	known = l.shut == nil || !held(*l.shut)
	for _, base := range l.bases {
		switch {
		case number <= base.number && known:
			return min(at, base.now), true
		case number <= base.number:
			return base.now, true
		}
	}
	return at, known
}

// clear returns a time, at most now: all records committed before it have arrived by now.
func (l *link) clear(now int64) int64 {
	out := l.clearSent(now)
	switch f := l.fill; {
	case f == nil || now < f.at:
	case f.seen == nil:
		out = max(out, f.at)
	default:
		out = max(out, f.seen.clear(f.at))
	}
	return out
}

// clearSent is like clear, but ignores the initial data of the cluster.
func (l *link) clearSent(now int64) int64 {
	var delivered int64
	for _, base := range l.bases {
		if base.now <= now {
			delivered = base.now
		}
	}
	for _, g := range l.gaps {
		if g.from.now <= now && now < g.to {
			now = g.from.now
		}
	}
	if l.shut != nil {
		now = min(now, l.shut.now)
	}
	out, since := now, int64(0) // no commit of the term is before since
	for i, t := range l.terms {
		over := i < len(l.terms)-1 && wholeMillis(t.until.micros)+t.lag.Microseconds() <= now
		if !over && t.lag > 0 {
			out = min(out, max(since, wholeMillis(now-t.lag.Microseconds())))
		}
		since = t.until.now
	}
	return max(out, delivered)
}

// clearAt returns when clear will exceed micros if the state does not change.
// It returns false if it will not.
func (l *link) clearAt(micros int64) (int64, bool) {
	var most time.Duration
	for _, t := range l.terms {
		most = max(most, t.lag)
	}
	return wholeMillis(micros) + 1000 + most.Microseconds(), l.shut == nil
}

// keep returns how long View.Keep must keep the records for this link.
func (l *link) keep(now int64) time.Duration {
	if l.shut != nil {
		return keepShut
	}
	var most time.Duration
	for i, t := range l.terms {
		if i == len(l.terms)-1 || wholeMillis(t.until.micros)+t.lag.Microseconds() > now {
			most = max(most, t.lag)
		}
	}
	if most == 0 {
		return 0
	}
	return most + spare
}
