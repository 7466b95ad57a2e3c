package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/tabletop-emu/tabletop/facade"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// workNotice is the interval of progress lines for long work.
const workNotice = 2 * time.Second

// dueTimes is work that each restore of a snapshot may repeat: it is reported only if it takes
// long.
const dueTimes = "filling due times"

// worker reports background work on tables.
type worker struct {
	w io.Writer

	mu      sync.Mutex
	running map[[2]string]workTimes // by table and phase
}

// workTimes has the times of running work.
type workTimes struct{ begun, reported time.Time }

// report implements facade.Options.Progress. It does not report the end of work without items.
func (k *worker) report(p facade.Progress) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.running == nil {
		k.running = map[[2]string]workTimes{}
	}
	work, now := [2]string{p.Table, p.Phase}, time.Now()
	before, begun := k.running[work]
	switch {
	case p.Done:
		delete(k.running, work)
		switch {
		case p.Err != nil: // reported where the work was started
			_, _ = fmt.Fprintf(k.w, "tabletop: table %s: %s: not done, after %s\n", p.Table, p.Phase, phrase.Counted(p.Items, "item"))
		case p.Items > 0 && (p.Phase != dueTimes || begun && now.Sub(before.begun) >= workNotice):
			_, _ = fmt.Fprintf(k.w, "tabletop: table %s: %s: %s, done\n", p.Table, p.Phase, phrase.Counted(p.Items, "item"))
		}
	case !begun:
		k.running[work] = workTimes{now, now}
	case now.Sub(before.reported) >= workNotice:
		k.running[work] = workTimes{before.begun, now}
		_, _ = fmt.Fprintf(k.w, "tabletop: table %s: %s: %s so far\n", p.Table, p.Phase, phrase.Counted(p.Items, "item"))
	}
}

// warnOfLeftOut warns of indexes that the DynamoDB endpoint does not show, since the mapping
// lays out no rows for them.
func warnOfLeftOut(w io.Writer, mappings []*mapping.Mapping) {
	for _, m := range mappings {
		spec := (*layout.Mapping)(m).Spec()
		if spec == nil {
			continue
		}
		for _, x := range spec.LeftOut() {
			_, _ = fmt.Fprintf(w, "tabletop: warning: table %s has no index %s here: %s\n", m.SourceTable(), x.Index, x.Why)
		}
	}
}
