package replica

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// model is the simplest replication: each record waits in a queue for each
// cluster, checked as the clock advances.
type model struct {
	w       *world
	pairs   []pair
	lag     map[pair]time.Duration
	rest    time.Duration // the lag of added clusters
	paused  map[pair]bool
	failed  map[string]bool
	records []*modelRecord // in the order of commits
	serving []string       // clusters, by id

	filled string // the source of the joining cluster, which is filled at fillAt
	fillAt int64
	joined uint64 // the last record before the cluster was added
	// overtaken is set if a shorter lag made a record due at the fill before
	// one that precedes it. The visibility of such a record is not specified,
	// and differs between package replica and this model: tests end there.
	overtaken bool
}

// modelClusters exist from the start; modelJoins may be added.
var modelClusters = []string{"a", "b", "c"}

const modelJoins = "d"

// modelRecord is a record, with the times at which it is due in its pending
// clusters.
type modelRecord struct {
	number uint64
	micros int64
	origin string
	rest   time.Duration // the model's rest at the record's creation
	due    map[string]int64
}

// sentTo makes the record pending in a cluster.
func (r *modelRecord) sentTo(cluster string, lag time.Duration) {
	r.due[cluster] = 0
	if lag > 0 {
		r.due[cluster] = r.micros/1000*1000 + lag.Microseconds()
	}
}

func (r *modelRecord) pending(cluster string) bool {
	_, pending := r.due[cluster]
	return pending
}

func newModel(w *world) *model {
	m := &model{w: w, lag: map[pair]time.Duration{}, paused: map[pair]bool{}, failed: map[string]bool{}, serving: modelClusters}
	for _, from := range modelClusters {
		for _, to := range modelClusters {
			if from != to {
				m.pairs = append(m.pairs, pair{from, to})
			}
		}
	}
	return m
}

// join adds a cluster. After takes, it is filled with the records visible in
// the first cluster that is up.
func (m *model) join(takes int64) {
	m.filled = modelClusters[0]
	for _, id := range modelClusters {
		if !m.failed[id] {
			m.filled = id
			break
		}
	}
	m.fillAt = m.w.now + takes
	for _, id := range modelClusters {
		for _, p := range []pair{{id, modelJoins}, {modelJoins, id}} {
			m.pairs, m.lag[p] = append(m.pairs, p), m.rest
		}
	}
	for _, r := range m.records {
		r.sentTo(modelJoins, r.rest)
		m.joined = r.number
	}
}

// fill fills the joining cluster, including records that become visible at the
// same moment of a stopped clock.
func (m *model) fill() {
	if m.filled == "" || m.w.now < m.fillAt || m.w.now > m.fillAt && len(m.serving) > len(modelClusters) {
		return
	}
	last := map[pair]int64{}
	for _, r := range m.records {
		for _, to := range []string{m.filled, modelJoins} {
			p := pair{r.origin, to}
			if due, pending := r.due[to]; pending {
				m.overtaken = m.overtaken || due < last[p]
				last[p] = due
			}
		}
		if !r.pending(m.filled) && (r.number <= m.joined || r.micros < m.fillAt) {
			delete(r.due, modelJoins)
		}
	}
	m.serving = append(slices.Clone(modelClusters), modelJoins)
}

func (m *model) shut(p pair) bool { return m.paused[p] || m.failed[p.from] || m.failed[p.to] }

// deliver delivers records that are due, now or at the fill of the joining
// cluster.
func (m *model) deliver() {
	m.deliverDue()
	m.fill()
	m.deliverDue()
}

func (m *model) deliverDue() {
	for _, p := range m.pairs {
		if m.shut(p) {
			continue
		}
		for _, r := range m.records {
			if r.origin != p.from {
				continue
			}
			if r.pending(p.to) && r.due[p.to] > m.w.now {
				break // all later records wait too
			}
			delete(r.due, p.to)
		}
	}
}

// step performs a random action. commit writes a record of an origin.
func (m *model) step(t *rapid.T, commit func(origin string) (uint64, int64)) {
	cluster, some := rapid.SampledFrom(m.serving), rapid.SampledFrom(m.pairs)
	lags := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond})
	in := m.w.c.Instance("i")
	var err error
	switch rapid.IntRange(0, 13).Draw(t, "what") {
	case 0, 1, 2, 3:
		r := &modelRecord{origin: cluster.Draw(t, "origin"), rest: m.rest, due: map[string]int64{}}
		r.number, r.micros = commit(r.origin)
		for _, p := range m.pairs {
			if p.from != r.origin {
				continue
			}
			r.sentTo(p.to, m.lag[p])
		}
		m.records = append(m.records, r)
	case 4, 5, 6:
		for range rapid.IntRange(0, 120).Draw(t, "quarters of a millisecond") {
			m.w.advance(250)
			m.deliver()
		}
	case 7:
		d := lags.Draw(t, "lag")
		for _, p := range m.pairs {
			m.lag[p] = d
		}
		m.rest = d
		err = in.Lag(d)
	case 8:
		p, d := some.Draw(t, "pair"), lags.Draw(t, "lag")
		m.lag[p] = d
		err = in.LagBetween(p.from, p.to, d)
	case 9:
		p := some.Draw(t, "pair")
		if m.paused[p] = !m.paused[p]; m.paused[p] {
			err = in.Pause(p.from, p.to)
		} else {
			err = in.Resume(p.from, p.to)
		}
	case 10, 11:
		id := cluster.Draw(t, "cluster")
		if m.failed[id] = !m.failed[id]; m.failed[id] {
			err = in.Fail(id)
		} else {
			err = in.Recover(id)
		}
	case 12:
		for _, r := range m.records {
			for _, p := range m.pairs {
				if r.origin == p.from && !m.failed[p.from] && !m.failed[p.to] {
					delete(r.due, p.to)
				}
			}
		}
		err = in.DeliverAll()
	case 13:
		if m.filled != "" {
			break
		}
		m.join(250 * rapid.Int64Range(0, 40).Draw(t, "quarters of a millisecond until it is filled"))
		m.w.add(t, modelJoins, time.UnixMicro(m.fillAt))
	}
	if err != nil {
		t.Fatal(err)
	}
	m.deliver()
}

// consistent reports whether all clusters are up and see all commits up to a
// time.
func (m *model) consistent(micros int64) bool {
	for _, down := range m.failed {
		if down {
			return false
		}
	}
	if m.filled != "" && len(m.serving) == len(modelClusters) {
		return false
	}
	for _, r := range m.records {
		if r.micros <= micros && len(r.due) > 0 {
			return false
		}
	}
	return true
}
