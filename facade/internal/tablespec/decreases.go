package tablespec

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Limits of decreases of provisioned throughput. Source: developer guide, "Quotas in Amazon
// DynamoDB".
const (
	decreasesADay    = 4
	decreaseInterval = time.Hour
)

// CheckDecreases rejects an update that decreases the throughput of a table or an index
// too often. Four decreases are allowed per day, in UTC, and after that one per hour.
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
