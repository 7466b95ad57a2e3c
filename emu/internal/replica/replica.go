// Package replica simulates replication: it computes which writes each cluster of an
// instance can see.
//
// The store has one journal a table, in which each record names its origin, the
// cluster that took the write, and the commit time. What is visible where follows
// from that and from how clusters replicate, and is computed when it is asked for:
// with r a record of O,
//
//	visible(r, C) = max(commit(r) + lag(O, C), visible(the record of O before r, C))
//
// where the lag is the one that held when r was committed, and a pair of clusters
// that is paused, or has a failed cluster, delivers nothing meanwhile. So the
// state here is only a [link] for each ordered pair: its lags by the numbers of
// records, the pauses, and the number up to which all was declared delivered. A cluster
// that is added to an instance sees from a time on what another one saw then, whatever
// the links say; see [fill]. The state is in memory, because a test or a flag sets it; the
// records are on disk, so that a restart delivers them as before. There is no background
// work: a waiting caller asks for the time and waits on the clock. An instance that was
// never configured has no state: [Control.View] returns nil.
//
// [Reader] reads a table's journal as a cluster sees it, in the order in which
// records become visible there: change streams are read with it. [Rows] is what a
// cluster sees of rows.
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

// MaxLag is the longest lag: that of the longest retention of a change stream.
const MaxLag = 7 * 24 * time.Hour

const (
	// remembered is how long a link knows lags and pauses that are over: longer than
	// any journal of a change stream is kept.
	remembered = MaxLag + 24*time.Hour
	// spare is how much longer records are kept than they are on their way, and
	// keepShut how long they are when nobody knows how long that will be.
	spare    = time.Hour
	keepShut = 366 * 24 * time.Hour
)

// The errors of controls.
var (
	// ErrUnknownCluster is the error of a control that names a cluster that the instance
	// does not have.
	ErrUnknownCluster = errors.New("unknown cluster")
	// ErrLag is the error of a lag outside 0 to MaxLag.
	ErrLag = errors.New("lag out of range")
)

// Options configure NewControl. All but Lag are required.
type Options struct {
	// Now returns the time.
	Now func() time.Time
	// Last returns the number and the commit time of the last record of the store.
	Last func() (number uint64, micros int64)
	// Clusters returns the clusters of an instance as they are stored, sorted by name.
	Clusters func(instance string) ([]*instancedef.StoredCluster, error)
	// Keep is called before records of an instance's tables begin to matter, or for
	// longer: from its return on they are to be recorded, and kept so long.
	Keep func(instance string, keep time.Duration) error
	// Lag is the lag of all pairs of clusters without a lag of their own.
	Lag time.Duration
}

// Control holds how the clusters of all instances replicate. It is safe for
// concurrent use.
type Control struct {
	o Options

	mu      sync.Mutex            // serializes changes
	views   atomic.Pointer[views] // nil: nothing was said of any instance
	changed pending.Broadcast
}

// views are those of instances, by name; "" is that of the others, if any.
type views map[string]*View

// NewControl returns a control. Errors: ErrLag.
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

// View returns how the clusters of an instance replicate, nil if nothing was said
// of it: then all see everything at once and are up.
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

// Changed returns a channel that is closed with the next change of any instance.
func (c *Control) Changed() <-chan struct{} { return c.changed.Next() }

// Forget removes the state of a deleted cluster, or of a whole instance if cluster is
// "", as if it was never configured.
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

// tidy forgets what was said of instances where all of it is over by now: requests
// to them cost again what they did before.
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

// Reset makes everything what it was at the beginning.
func (c *Control) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	var next views
	if c.o.Lag > 0 {
		next = views{"": newView(c.o.Lag)}
	}
	c.store(next)
}

// store replaces the views. mu is held.
func (c *Control) store(next views) {
	if len(next) == 0 {
		c.views.Store(nil)
	} else {
		c.views.Store(&next)
	}
	c.changed.Notify()
}

// Instance returns the controls of an instance, by its name.
func (c *Control) Instance(name string) *Instance { return &Instance{c, name} }

// Instance implements emu.Replication. Errors of all methods: ErrUnknownCluster, ErrLag, and
// those of the store.
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

// change makes a change that names clusters. What is committed before it begins is
// before it, what begins to be written after it has returned is after it.
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
		return fmt.Errorf("%w: %q sees what it takes itself at once; expected two clusters", ErrUnknownCluster, named[0])
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
	// Recorded first, and then dated: what is on its way is in the journal.
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

// View holds the replication state of an instance's clusters. It is never changed. A nil
// View belongs to an instance that was never configured.
type View struct {
	rest   *link // of pairs that are not in links
	links  map[pair]*link
	failed map[string]moment
	boost  time.Duration
}

// pair is two clusters, by id: what to sees of from.
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

// link returns the link of a pair, which it makes in v.
func (v *View) link(p pair) *link {
	l := v.links[p]
	if l == nil {
		l = v.of(p)
		v.links[p] = l
	}
	return l
}

// of returns the link of a pair, one of its own if it was not in v: of a cluster that
// is new, which nothing has reached from one that had failed before.
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

// down tells whether a cluster of a pair has failed.
func (v *View) down(p pair) bool { return v.Failed(p.from) || v.Failed(p.to) }

// settle shuts and opens links as clusters fail and recover.
func (v *View) settle(at moment) {
	for p, l := range v.links {
		l.settle(v.down(p), at)
	}
}

// forget drops what was long before now.
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

// Keep returns how long records must be kept at least, 0 if everything is visible
// everywhere and will be at once.
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

// trivial tells whether v says nothing more than no View does.
func (v *View) trivial(now time.Time) bool {
	return v.Keep(now) == 0 && len(v.failed) == 0 && v.boost == 0
}

// moment is when something was said.
type moment struct {
	number uint64 // of the last record before it
	micros int64  // the last commit time before it: where a clock stands still, commit times run ahead
	now    int64  // the clock; no later record is committed before it
}

// link is what a cluster sees of another one.
type link struct {
	terms  []term // in order; the last one lasts
	gaps   []gap  // in order
	shut   *moment
	paused bool
	bases  []moment // in order: what was committed by then had arrived
	fill   *fill    // nil: the cluster began with nothing of the other
}

// term is a lag, and the last moment at which it held; the zero moment for the one
// that lasts.
type term struct {
	lag   time.Duration
	until moment
}

// gap is a time at which nothing arrived.
type gap struct {
	from moment
	to   int64
}

func (l *link) clone() *link {
	out := *l
	out.terms, out.gaps, out.bases = slices.Clone(l.terms), slices.Clone(l.gaps), slices.Clone(l.bases)
	return &out
}

// setLag ends a term and begins another.
func (l *link) setLag(d time.Duration, at moment) {
	last := &l.terms[len(l.terms)-1]
	if last.lag == d {
		return
	}
	last.until = at
	l.terms = append(l.terms, term{lag: d})
}

// settle shuts the link if it is paused or one of its clusters is down, else opens
// it.
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

// wholeMillis drops what is less than a millisecond of a commit time. Where a clock
// stands still each commit is a microsecond after the one before, and yet a record
// is to arrive when exactly its lag has passed.
func wholeMillis(micros int64) int64 { return micros - micros%1000 }

// due returns when a record arrives, by its own, in microseconds; 0 if that is with
// its commit. It returns false if nobody knows. What was committed before by its
// cluster arrives no later.
func (l *link) due(number uint64, micros int64) (at int64, known bool) {
	at, known = l.sent(number, micros)
	if l.fill != nil && (!known || at > l.fill.at) && l.fill.has(number, micros) {
		return l.fill.at, true
	}
	return at, known
}

// sent is due of what the cluster did not begin with.
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

// clear returns a time, as of now or earlier, so that all that was committed before it
// had arrived.
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

// clearSent is clear of what the cluster did not begin with.
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

// clearAt returns when clear will return more than a time, if nothing is said
// meanwhile; false if it will not.
func (l *link) clearAt(micros int64) (int64, bool) {
	var most time.Duration
	for _, t := range l.terms {
		most = max(most, t.lag)
	}
	return wholeMillis(micros) + 1000 + most.Microseconds(), l.shut == nil
}

// keep is as Keep of a View.
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
