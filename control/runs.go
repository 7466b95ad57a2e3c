package control

import (
	"slices"
	"sync"

	"github.com/tabletop-emu/tabletop/migrate/source"
)

// runs are the running migrate commands, each with its progress.
type runs struct {
	news *news

	mu  sync.Mutex
	now []*runState // oldest first; guarded by mu, like their states
}

// runState is the progress of a run in JSON.
type runState struct {
	Fixture string `json:"fixture"`
	Verb    string `json:"verb"`
	Table   string `json:"table,omitempty"` // of DynamoDB
	Phase   string `json:"phase,omitempty"` // "" at the beginning
	Items   int64  `json:"items"`           // processed in this phase
	Total   int64  `json:"total"`           // -1 if unknown
}

// begin adds a run until it is done, and returns its progress callback.
func (r *runs) begin(fixture, verb string) (progress func(source.Progress), done func()) {
	run := &runState{Fixture: fixture, Verb: verb, Total: -1}
	change := func(how func()) {
		r.mu.Lock()
		how()
		r.mu.Unlock()
		r.news.add(func(c *newsCount) { c.runs++ })
	}
	change(func() { r.now = append(r.now, run) })
	progress = func(p source.Progress) {
		change(func() { run.Table, run.Phase, run.Items, run.Total = p.Table, p.Phase, p.Items, p.Total })
	}
	return progress, func() {
		change(func() { r.now = slices.DeleteFunc(r.now, func(other *runState) bool { return other == run }) })
	}
}

// list returns the current runs, in the form of events.
func (r *runs) list() any {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := []runState{}
	for _, run := range r.now {
		now = append(now, *run)
	}
	return map[string]any{"runs": now}
}
