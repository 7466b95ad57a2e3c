package btkit

import (
	"time"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/testkit/internal/server"
)

// ManualViews is the lag of materialized views that only [Env.RefreshViews] changes; see [WithViewLag].
const ManualViews = emu.ManualViews

// WithViewLag sets how long a change of a table takes to reach its materialized views, by the environment's
// time: up to 24 hours, or [ManualViews]. It exposes programs that expect to read their own writes from a view.
// Default: 0, a view reflects a write once it is acknowledged.
func WithViewLag(d time.Duration) Option {
	return func(c *server.Config) { c.Lab.Bigtable.ViewLag = d }
}

// RefreshViews makes all materialized views reflect all changes of their tables; see [WithViewLag].
func (e *Env) RefreshViews() {
	e.server.TB().Helper()
	e.server.Must("RefreshViews", e.server.Lab().Bigtable().RefreshViews(e.server.Context()))
}
