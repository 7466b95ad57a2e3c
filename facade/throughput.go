package facade

import (
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Settings of throughput are checked, kept and described. Nothing is throttled
// by them.

type warmThroughputDescription struct {
	ReadUnitsPerSecond  *int64 `json:",omitzero"`
	Status              string
	WriteUnitsPerSecond *int64 `json:",omitzero"`
}

func (v *validator) throughputSettings(member string, given tabledef.Throughput) {
	if o := given.OnDemand; o != nil {
		v.unitsAtLeast(member+"OnDemandThroughput.MaxReadRequestUnits", o.MaxReadRequestUnits, noUnitsBound)
		v.unitsAtLeast(member+"OnDemandThroughput.MaxWriteRequestUnits", o.MaxWriteRequestUnits, noUnitsBound)
	}
	if w := given.Warm; w != nil {
		v.unitsAtLeast(member+"WarmThroughput.ReadUnitsPerSecond", w.ReadUnitsPerSecond, 1)
		v.unitsAtLeast(member+"WarmThroughput.WriteUnitsPerSecond", w.WriteUnitsPerSecond, 1)
	}
}

// noUnitsBound is -1 in a request: without a bound.
const noUnitsBound = -1

func (v *validator) unitsAtLeast(member string, units *int64, least int64) {
	if units != nil && *units < least {
		v.fail(member, fmt.Sprintf("'%d'", *units), fmt.Sprintf(msgMemberMinValue, least))
	}
}

// setThroughput changes the settings of a table or an index with a billing mode
// to what is given; what is not given stays.
func setThroughput(s *tabledef.Throughput, given tabledef.Throughput, billing string) error {
	if o := given.OnDemand; o != nil {
		if billing != billingOnDemand {
			return validationError(msgOnDemandProvisioned)
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
		var warm tabledef.WarmThroughput
		if s.Warm != nil {
			warm = *s.Warm
		}
		setUnits(&warm.ReadUnitsPerSecond, w.ReadUnitsPerSecond)
		setUnits(&warm.WriteUnitsPerSecond, w.WriteUnitsPerSecond)
		s.Warm = &warm
	}
	return nil
}

func setUnits(units **int64, given *int64) {
	switch {
	case given == nil:
	case *given == noUnitsBound:
		*units = nil
	default:
		*units = given
	}
}

// describeUnits describes provisioned throughput.
func describeUnits(p tabledef.Provisioned, now time.Time) throughputDescription {
	changes := p.UnitChanges
	d := throughputDescription{ReadCapacityUnits: p.ReadUnits, WriteCapacityUnits: p.WriteUnits, NumberOfDecreasesToday: changes.DecreasesOn(now)}
	if !changes.Increased.IsZero() {
		d.LastIncreaseDateTime = wire.EpochSeconds(changes.Increased.UnixMilli())
	}
	if !changes.Decreased.IsZero() {
		d.LastDecreaseDateTime = wire.EpochSeconds(changes.Decreased.UnixMilli())
	}
	return d
}

func describeWarm(s tabledef.Throughput) *warmThroughputDescription {
	if s.Warm == nil {
		return nil
	}
	return &warmThroughputDescription{
		ReadUnitsPerSecond: s.Warm.ReadUnitsPerSecond, WriteUnitsPerSecond: s.Warm.WriteUnitsPerSecond, Status: tabledef.StatusActive,
	}
}

// setBilling changes the billing mode of a table. On demand nothing is
// provisioned, and the other way around nothing is bounded.
func setBilling(t *tabledef.Table, mode string, now time.Time) {
	if t.BillingMode == mode {
		return
	}
	if t.OnDemandSince.IsZero() {
		t.OnDemandSince = t.Created // as which it began, if it does not begin now
	}
	if t.BillingMode = mode; mode == billingOnDemand {
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
		if mode == billingOnDemand {
			before := ix.UnitChanges
			ix.Change(0, 0, now, t.Transition)
			ix.Meanwhile.UnitChanges = before // unlike the table's
		} else {
			ix.Throughput.OnDemand = nil
		}
	}
}

// describeBilling describes the billing mode of a table that is or was on
// demand.
func describeBilling(t *tabledef.Table) *billingModeSummary {
	since := t.OnDemandSince
	if since.IsZero() {
		if t.BillingMode != billingOnDemand {
			return nil
		}
		since = t.Created
	}
	mode := t.BillingMode
	if mode == "" {
		mode = billingProvisioned
	}
	return &billingModeSummary{BillingMode: mode, LastUpdateToPayPerRequestDateTime: wire.EpochSeconds(since.UnixMilli())}
}
