package replica

import (
	"slices"
	"time"

	"pgregory.net/rapid"
)

// model replicates as simply as can be said: each record waits for each cluster in
// a queue, which is looked at as the clock goes on.
type model struct {
	w       *world
	pairs   []pair
	lag     map[pair]time.Duration
	rest    time.Duration // the lag of clusters to come
	paused  map[pair]bool
	failed  map[string]bool
	records []*modelRecord // in the order of commits
	serving []string       // clusters, by id

	filled string // the cluster that joins is filled from this one, at fillAt
	fillAt int64
	joined uint64 // the last record before it was added
	// overtaken says that it was filled while a record was due before one that precedes it,
	// by a shorter lag. What is seen of such a record then is not specified, and package
	// replica and this model differ: a test ends there.
	overtaken bool
}

// modelClusters are there from the beginning, and modelJoins may join them.
var modelClusters = []string{"a", "b", "c"}

const modelJoins = "d"

// modelRecord is a record, and when it is due in the clusters to which it is on its
// way.
type modelRecord struct {
	number uint64
	micros int64
	origin string
	rest   time.Duration // as the model's when it was made
	due    map[string]int64
}

// sentTo makes the record one that is on its way to a cluster.
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

// join adds a cluster, which is filled when some time has passed with what the first
// one sees that is up.
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

// fill fills the cluster that joins, also with what is seen at that moment of a clock
// that stands still.
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

// deliver delivers what is due, and what is due when the cluster that joins is filled.
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
				break // and all that follow
			}
			delete(r.due, p.to)
		}
	}
}

// step does something at random. commit writes a record of an origin.
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

// consistent tells whether all clusters are up and see what was committed up to a
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
