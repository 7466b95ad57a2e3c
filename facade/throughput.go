package facade

import (
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tableschema"
	"github.com/tabletop-emu/tabletop/facade/internal/validation"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Settings of throughput are checked, kept and described. With Options.Throttle,
// package throttle goes by them.

func (v *validator) throughputSettings(member string, given tabledef.Throughput) {
	if o := given.OnDemand; o != nil {
		v.unitsAtLeast(member+"OnDemandThroughput.MaxReadRequestUnits", o.MaxReadRequestUnits, tableschema.NoUnitsBound)
		v.unitsAtLeast(member+"OnDemandThroughput.MaxWriteRequestUnits", o.MaxWriteRequestUnits, tableschema.NoUnitsBound)
	}
	if w := given.Warm; w != nil {
		v.unitsAtLeast(member+"WarmThroughput.ReadUnitsPerSecond", w.ReadUnitsPerSecond, 1)
		v.unitsAtLeast(member+"WarmThroughput.WriteUnitsPerSecond", w.WriteUnitsPerSecond, 1)
	}
}

func (v *validator) unitsAtLeast(member string, units *int64, least int64) {
	if units != nil && *units < least {
		v.Fail(member, fmt.Sprintf("'%d'", *units), fmt.Sprintf(validation.MsgMemberMinValue, least))
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

// describeBilling describes the billing mode of a table that is or was on
// demand.
func describeBilling(t *tabledef.Table) *billingModeSummary {
	since := t.OnDemandSince
	if since.IsZero() {
		if t.BillingMode != tableschema.BillingOnDemand {
			return nil
		}
		since = t.Created
	}
	mode := t.BillingMode
	if mode == "" {
		mode = tableschema.BillingProvisioned
	}
	return &billingModeSummary{BillingMode: mode, LastUpdateToPayPerRequestDateTime: wire.EpochSeconds(since.UnixMilli())}
}
