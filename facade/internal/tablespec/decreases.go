package tablespec

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Limits of decreases of provisioned throughput, and of two updates of the class of a table.
// Source: developer guide, "Quotas in Amazon DynamoDB".
const (
	decreasesADay    = 4
	decreaseInterval = time.Hour
	classInterval    = 30 * 24 * time.Hour
)

// CheckClass rejects a third update of the class of a table in 30 days.
func CheckClass(before *tabledef.Table, now time.Time) error {
	if second := before.ClassChangedBefore; !second.IsZero() && now.Sub(second) < classInterval {
		return awserr.New(awserr.CodeLimitExceeded, awserr.MsgClassChanges)
	}
	return nil
}

// CheckDecreases rejects an update that decreases the throughput of a table or an index too
// often. The limit is four decreases per UTC day, and after these one per hour.
func CheckDecreases(before, after *tabledef.Table, now time.Time) error {
	if err := checkDecrease(before.Provisioned, after.Provisioned, now); err != nil {
		return err
	}
	for i := range after.Indexes {
		if was := before.Index(after.Indexes[i].Name); was != nil {
			if err := checkDecrease(was.Provisioned, after.Indexes[i].Provisioned, now); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkDecrease(before, after tabledef.Provisioned, now time.Time) error {
	less := after.ReadUnits < before.ReadUnits || after.WriteUnits < before.WriteUnits
	changes := before.UnitChanges
	n := changes.DecreasesOn(now)
	next := changes.Decreased.Add(decreaseInterval)
	if onDemand := after.ReadUnits == 0; !less || onDemand || n < decreasesADay || !now.Before(next) {
		return nil
	}
	const form = "Monday, January 2, 2006 3:04:05 PM MST"
	return awserr.New(awserr.CodeLimitExceeded, awserr.MsgDecreases, n, changes.Decreased.UTC().Format(form), next.UTC().Format(form))
}
