package control

import (
	"slices"
	"sync"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// runs are the verbs of migrate that are under way, each with how far it is.
type runs struct {
	told *news

	mu  sync.Mutex
	now []*runState // the oldest first; guarded by mu, as are those
}

// runState is how far a run is, as it is written.
type runState struct {
	Fixture string `json:"fixture"`
	Verb    string `json:"verb"`
	Table   string `json:"table,omitempty"` // of DynamoDB
	Phase   string `json:"phase,omitempty"` // "" where it has only begun
	Items   int64  `json:"items"`           // dealt with in this phase
	Total   int64  `json:"total"`           // -1 where it is not known
}

// begin makes a run known until it is done, with the progress that it tells.
func (r *runs) begin(fixture, verb string) (progress func(source.Progress), done func()) {
	run := &runState{Fixture: fixture, Verb: verb, Total: -1}
	change := func(how func()) {
		r.mu.Lock()
		how()
		r.mu.Unlock()
		r.told.tell(func(c *newsCount) { c.runs++ })
	}
	change(func() { r.now = append(r.now, run) })
	progress = func(p source.Progress) {
		change(func() { run.Table, run.Phase, run.Items, run.Total = p.Table, p.Phase, p.Items, p.Total })
	}
	return progress, func() {
		change(func() { r.now = slices.DeleteFunc(r.now, func(other *runState) bool { return other == run }) })
	}
}

// list is what runs now, as events have it.
func (r *runs) list() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := []runState{}
	for _, run := range r.now {
		now = append(now, *run)
	}
	return map[string]any{"runs": now}
}
