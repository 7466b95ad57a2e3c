package tablespec

import (
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Quotas limits the throughput of an account in a region. The zero value sets no limits.
type Quotas struct {
	Region         string
	Table, Account int64 // maximum units of one table or index, and of all provisioned ones together
	// ReadUnits and WriteUnits are the provisioned units of the other tables.
	ReadUnits, WriteUnits int64
}

// Reserve adds the provisioned units of another table.
func (q *Quotas) Reserve(t *tabledef.Table) {
	read, write := reserved(t)
	q.ReadUnits, q.WriteUnits = q.ReadUnits+read, q.WriteUnits+write
}

// reserved returns the provisioned units of a table and its indexes.
func reserved(t *tabledef.Table) (read, write int64) {
	read, write = t.ReadUnits, t.WriteUnits
	for i := range t.Indexes {
		read, write = read+t.Indexes[i].ReadUnits, write+t.Indexes[i].WriteUnits
	}
	return read, write
}

// Check rejects an increase of a table's throughput beyond the quotas. before may be
// empty. Existing throughput stays valid.
func (q Quotas) Check(before, after *tabledef.Table) error {
	if q == (Quotas{}) {
		return nil
	}
	if err := q.checkPart("", before.Provisioned, after.Provisioned, before.Throughput, after.Throughput); err != nil {
		return err
	}
	for i := range after.Indexes {
		ix, was := &after.Indexes[i], &tabledef.Index{}
		if there := before.Index(ix.Name); there != nil {
			was = there
		}
		if err := q.checkPart(ix.Name, was.Provisioned, ix.Provisioned, was.Throughput, ix.Throughput); err != nil {
			return err
		}
	}
	readBefore, writeBefore := reserved(before)
	readAfter, writeAfter := reserved(after)
	for _, c := range []struct {
		member                string
		others, before, after int64
	}{{"ReadCapacityUnits", q.ReadUnits, readBefore, readAfter}, {"WriteCapacityUnits", q.WriteUnits, writeBefore, writeAfter}} {
		if c.after > c.before && c.others+c.after > q.Account {
			return awserr.New(awserr.CodeLimitExceeded, awserr.MsgAboveAccount, c.member, q.Region, c.member, c.others+c.before, q.Account, c.after-c.before)
		}
	}
	return nil
}

// checkPart acts like Check for one index or, if index is "", for the table without its indexes.
func (q Quotas) checkPart(index string, was, is tabledef.Provisioned, had, has tabledef.Throughput) error {
	for _, c := range []struct {
		member  string
		was, is int64
	}{{"ReadCapacityUnits", was.ReadUnits, is.ReadUnits}, {"WriteCapacityUnits", was.WriteUnits, is.WriteUnits}} {
		switch {
		case c.is <= q.Table || c.is <= c.was:
		case index == "":
			return awserr.New(awserr.CodeLimitExceeded, awserr.MsgAboveTable, c.member, c.is, q.Region, q.Table)
		default:
			return awserr.New(awserr.CodeLimitExceeded, awserr.MsgAboveIndex, c.member, index, c.is, q.Region, q.Table)
		}
	}
	var hadBounds, bounds tabledef.OnDemandThroughput
	if had.OnDemand != nil {
		hadBounds = *had.OnDemand
	}
	if has.OnDemand != nil {
		bounds = *has.OnDemand
	}
	var hadWarm, warm tabledef.WarmThroughput
	if had.Warm != nil {
		hadWarm = *had.Warm
	}
	if has.Warm != nil {
		warm = *has.Warm
	}
	ofBounds, ofWarm := "table", "table"
	if index != "" {
		ofBounds, ofWarm = "index : "+index, "index "+index
	}
	for _, c := range []struct {
		member, of, quota string
		was, is           *int64
	}{
		{"MaxReadRequestUnits for OnDemandThroughput", ofBounds, "TableMaxReadCapacityUnits", hadBounds.MaxReadRequestUnits, bounds.MaxReadRequestUnits},
		{"MaxWriteRequestUnits for OnDemandThroughput", ofBounds, "TableMaxWriteCapacityUnits", hadBounds.MaxWriteRequestUnits, bounds.MaxWriteRequestUnits},
		{"ReadUnitsPerSecond for WarmThroughput", ofWarm, "TableMaxReadCapacityUnits", hadWarm.ReadUnitsPerSecond, warm.ReadUnitsPerSecond},
		{"WriteUnitsPerSecond for WarmThroughput", ofWarm, "TableMaxWriteCapacityUnits", hadWarm.WriteUnitsPerSecond, warm.WriteUnitsPerSecond},
	} {
		if n := unitsOf(c.is); n > q.Table && n > unitsOf(c.was) {
			return awserr.New(awserr.CodeLimitExceeded, awserr.MsgAboveQuota, c.member, c.of, c.quota, q.Region)
		}
	}
	return nil
}
