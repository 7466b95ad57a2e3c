package facade

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/tablespec"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

// Throughput settings are checked, stored and described. With Options.Throttle, package
// throttle applies them.

// describeUnits returns the description of provisioned throughput at the time now.
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

// describeBilling describes the billing mode of a table that is or was on demand, and returns
// nil for other tables. asked means that the response is to a request that sets the mode: it
// has no time yet.
func describeBilling(t *tabledef.Table, asked bool) *billingModeSummary {
	since := t.OnDemandSince
	if since.IsZero() {
		if t.BillingMode != tablespec.BillingOnDemand {
			return nil
		}
		since = t.Created
	}
	mode := t.BillingMode
	if mode == "" {
		mode = tablespec.BillingProvisioned
	}
	if asked {
		return &billingModeSummary{BillingMode: mode}
	}
	return &billingModeSummary{BillingMode: mode, LastUpdateToPayPerRequestDateTime: wire.EpochSeconds(since.UnixMilli())}
}
