package emu

import (
	"container/list"
	"encoding/binary"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/emu/internal/refusal"
)

// planKept is the time for which a prepared query can be executed, as in the service.
const planKept = 40 * time.Second

// maxPlans bounds the prepared queries that are kept. A client prepares an evicted query again.
const maxPlans = 1000

// queryPlans keeps prepared queries by their tokens. The zero value is empty.
type queryPlans struct {
	mu    sync.Mutex
	last  uint64
	plans map[uint64]*list.Element
	order list.List // of *keptPlan, the oldest first
}

type keptPlan struct {
	id   uint64
	plan *preparedQuery
}

// queryToken is the prefix of the tokens of prepared queries; it identifies their format and
// version.
const queryToken = "ttq1"

// add keeps a prepared query, and returns its token.
func (q *queryPlans) add(p *preparedQuery) []byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.plans == nil {
		q.plans = map[uint64]*list.Element{}
	}
	q.last++
	q.plans[q.last] = q.order.PushBack(&keptPlan{q.last, p})
	if q.order.Len() > maxPlans {
		q.drop(q.order.Front())
	}
	token := binary.BigEndian.AppendUint64([]byte(queryToken), q.last)
	return binary.BigEndian.AppendUint64(token, uint64(p.at.UnixMicro())) //nolint:gosec // a round trip
}

func (q *queryPlans) drop(e *list.Element) {
	delete(q.plans, q.order.Remove(e).(*keptPlan).id)
}

// find returns a prepared query. One that was dropped, or prepared by an earlier process, has expired.
func (q *queryPlans) find(token []byte, now time.Time) (*preparedQuery, error) {
	const idAt, timeAt = len(queryToken), len(queryToken) + 8
	if len(token) != timeAt+8 || string(token[:idAt]) != queryToken {
		return nil, refusal.InvalidPreparedQuery()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.plans[binary.BigEndian.Uint64(token[idAt:])]
	if e == nil {
		return nil, refusal.ExpiredQuery(1)
	}
	p := e.Value.(*keptPlan).plan
	switch {
	case uint64(p.at.UnixMicro()) != binary.BigEndian.Uint64(token[timeAt:]): //nolint:gosec // a round trip
		return nil, refusal.ExpiredQuery(1)
	case now.Sub(p.at) > planKept:
		q.drop(e)
		return nil, refusal.ExpiredQuery(1)
	}
	return p, nil
}
