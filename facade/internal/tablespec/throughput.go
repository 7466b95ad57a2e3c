package tablespec

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Initial throughput of an on-demand table or index. Source: developer guide, "On-demand
// capacity mode".
const (
	OnDemandReadUnits  = 12_000
	OnDemandWriteUnits = 4_000
)

// WarmDescription describes the warm throughput of a table or an index.
type WarmDescription struct {
	ReadUnitsPerSecond  int64
	Status              string
	WriteUnitsPerSecond int64
}

// DescribeWarm describes the warm throughput of a table or an index. While the table or
// index is being created, only requested values appear. Source: recordings of the
// service.
func DescribeWarm(s tabledef.Throughput, p tabledef.Provisioned, billing string, creating bool) *WarmDescription {
	status := tabledef.StatusActive
	if creating {
		if s.Warm == nil {
			return nil
		}
		status = tabledef.StatusUpdating
	}
	w := warm(s, p, billing)
	return &WarmDescription{ReadUnitsPerSecond: *w.ReadUnitsPerSecond, WriteUnitsPerSecond: *w.WriteUnitsPerSecond, Status: status}
}

// warm returns the warm throughput of a table or an index: the recorded one, but at least the
// provisioned or initial one. Source: recordings of the service.
func warm(s tabledef.Throughput, p tabledef.Provisioned, billing string) tabledef.WarmThroughput {
	read, write := p.ReadUnits, p.WriteUnits
	if billing == BillingOnDemand {
		read, write = OnDemandReadUnits, OnDemandWriteUnits
	}
	if w := s.Warm; w != nil {
		read, write = max(read, unitsOf(w.ReadUnitsPerSecond)), max(write, unitsOf(w.WriteUnitsPerSecond))
	}
	return tabledef.WarmThroughput{ReadUnitsPerSecond: &read, WriteUnitsPerSecond: &write}
}

func unitsOf(given *int64) int64 {
	if given == nil {
		return 0
	}
	return *given
}

// KeepWarm records the warm throughput of a table and its indexes before a change,
// because warm throughput never decreases. It skips indexes that are being created.
func KeepWarm(t *tabledef.Table, now time.Time) {
	keep := func(s *tabledef.Throughput, p tabledef.Provisioned) {
		w := warm(*s, p, t.BillingMode)
		s.Warm = &w
	}
	keep(&t.Throughput, t.Provisioned)
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		creating := ix.Status == tabledef.StatusCreating || ix.Transition.Status == tabledef.StatusCreating && ix.Transition.Lasts(now)
		if ix.Global && !creating {
			keep(&ix.Throughput, ix.Provisioned)
		}
	}
}

// NoUnitsBound is the value in a request that removes a bound.
const NoUnitsBound = -1

// Target is the table or index whose throughput a request sets.
type Target struct {
	Index       string // name of the index, or "" for the table itself
	Billing     string
	Provisioned tabledef.Provisioned
	Changed     bool // whether the table or index existed before
}

// SetThroughput changes the throughput settings of a table or an index that the request
// contains.
func SetThroughput(s *tabledef.Throughput, given tabledef.Throughput, of Target) error {
	if o := given.OnDemand; o != nil {
		if err := of.checkBounds(o); err != nil {
			return err
		}
		var bounds tabledef.OnDemandThroughput
		if s.OnDemand != nil {
			bounds = *s.OnDemand
		}
		setUnits(&bounds.MaxReadRequestUnits, o.MaxReadRequestUnits)
		setUnits(&bounds.MaxWriteRequestUnits, o.MaxWriteRequestUnits)
		if s.OnDemand = &bounds; bounds == (tabledef.OnDemandThroughput{}) {
			s.OnDemand = nil
		}
	}
	if w := given.Warm; w != nil {
		least := warm(*s, of.Provisioned, of.Billing)
		if err := of.checkWarm(w, least); err != nil {
			return err
		}
		setUnits(&least.ReadUnitsPerSecond, w.ReadUnitsPerSecond)
		setUnits(&least.WriteUnitsPerSecond, w.WriteUnitsPerSecond)
		s.Warm = &least
	}
	return nil
}

// EchoBounds returns the bounds in the response to a request. Removed bounds appear as in
// the request.
func EchoBounds(bounds, asked *tabledef.OnDemandThroughput) *tabledef.OnDemandThroughput {
	if asked == nil {
		return bounds
	}
	var shown tabledef.OnDemandThroughput
	if bounds != nil {
		shown = *bounds
	}
	if n := asked.MaxReadRequestUnits; n != nil {
		shown.MaxReadRequestUnits = n
	}
	if n := asked.MaxWriteRequestUnits; n != nil {
		shown.MaxWriteRequestUnits = n
	}
	if shown == (tabledef.OnDemandThroughput{}) {
		return nil
	}
	return &shown
}

// checkBounds rejects bounds for a provisioned table, values out of range, and the removal of
// bounds from a new table or index.
func (t Target) checkBounds(given *tabledef.OnDemandThroughput) error {
	for _, bound := range []struct {
		member string
		units  *int64
	}{{"MaxReadRequestUnits", given.MaxReadRequestUnits}, {"MaxWriteRequestUnits", given.MaxWriteRequestUnits}} {
		whose, text := "table", awserr.MsgBoundsProvisioned
		if t.Changed {
			text = awserr.MsgBoundsProvisionedNow
		}
		of := ""
		if t.Index != "" {
			whose, of = "index : "+t.Index, " for index: "+t.Index
		}
		switch {
		case bound.units == nil:
		case t.Billing != BillingOnDemand:
			return awserr.Validation(text, bound.member, of)
		case *bound.units < 1 && (*bound.units != NoUnitsBound || !t.Changed):
			return awserr.Validation(awserr.MsgBoundsRange, bound.member, whose)
		}
	}
	return nil
}

// checkWarm rejects warm throughput below least.
func (t Target) checkWarm(given *tabledef.WarmThroughput, least tabledef.WarmThroughput) error {
	for _, w := range []struct {
		member, provisioned string
		units, least        *int64
	}{
		{"ReadUnitsPerSecond", "ReadCapacityUnits", given.ReadUnitsPerSecond, least.ReadUnitsPerSecond},
		{"WriteUnitsPerSecond", "WriteCapacityUnits", given.WriteUnitsPerSecond, least.WriteUnitsPerSecond},
	} {
		whose := "table"
		if t.Index != "" {
			whose = "index " + t.Index
		}
		switch {
		case w.units == nil || *w.units >= *w.least:
		case t.Changed:
			return awserr.Validation(awserr.MsgWarmLess, w.member, whose)
		case t.Billing != BillingOnDemand:
			return awserr.Validation(awserr.MsgWarmBelowUnits, w.member, whose, w.provisioned)
		case t.Index != "":
			return awserr.Validation(awserr.MsgWarmInitial, w.member, whose)
		default:
			return awserr.Validation(awserr.MsgWarmInitial+awserr.MsgWarmInitialPage, w.member, whose)
		}
	}
	return nil
}

func setUnits(units **int64, given *int64) {
	switch {
	case given == nil:
	case *given == NoUnitsBound:
		*units = nil
	default:
		*units = given
	}
}

// SetBilling changes the billing mode of a table. It resets the provisioned units or the
// on-demand bounds.
func SetBilling(t *tabledef.Table, mode string, now time.Time) {
	if t.BillingMode == mode {
		return
	}
	if t.OnDemandSince.IsZero() {
		t.OnDemandSince = t.Created // its initial mode, unless it becomes so now
	}
	if t.BillingMode = mode; mode == BillingOnDemand {
		t.OnDemandSince = now
		t.Change(0, 0, now, t.Transition)
	} else {
		t.Throughput.OnDemand = nil
	}
	for i := range t.Indexes {
		ix := &t.Indexes[i]
		if ix.Global {
			ix.Transition = t.Transition
		}
		if mode == BillingOnDemand {
			before := ix.UnitChanges
			ix.Change(0, 0, now, t.Transition)
			ix.Meanwhile.UnitChanges = before // unlike the table's
		} else {
			ix.Throughput.OnDemand = nil
		}
	}
}
