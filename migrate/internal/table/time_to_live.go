package table

import (
	"fmt"
	"strconv"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// CollectsExpired reports whether garbage collection deletes expired items and the
// current time is known.
func (j *Job) CollectsExpired() bool {
	return j.Mapping.Expiry().Collected && !j.now.IsZero()
}

// live returns the row without the items that garbage collection may have deleted by now.
func (j *Job) live(row layout.Row) layout.Row { return j.Mapping.Live(row, j.now.UnixMicro()) }

// expiredItem reports whether the time to live of an item is over: the DynamoDB endpoint or
// garbage collection deletes it, although DynamoDB itself may have kept it for days.
func (j *Job) expiredItem(p Placed) bool {
	e := j.Mapping.Expiry()
	switch {
	case j.now.IsZero():
		return false
	case j.Mapping.Collects(p.Base.Rule):
		return len(p.Base.Cells) > 0 && len(j.live(layout.Row{Cells: p.Base.Cells}).Cells) == 0
	case !e.Kept:
		return false
	}
	v := p.Entry.Item[e.Attribute]
	at, err := strconv.ParseInt(v.Str, 10, 64)
	return err == nil && v.Type == attr.N && at <= j.now.Unix() && at >= j.now.AddDate(-5, 0, 0).Unix()
}

// leavesOut reports whether an item is excluded since garbage collection may have deleted it.
func (j *Job) leavesOut(p Placed) bool {
	return j.Options.Expires && j.Mapping.Collects(p.Base.Rule) && j.expiredItem(p)
}

// expiryWarning returns a warning of expired items, or "" if no item has expired.
func expiryWarning(j *Job) string {
	if j.Report.Expired == 0 {
		return ""
	}
	e, by, keeps := j.Mapping.Expiry(), "source.ttl", "source: {ttl: null} keeps them"
	if spec := j.Mapping.Spec(); spec.Source.TTL == nil {
		by, keeps = "the ttl of rules", "a mapping without ttl keeps them"
	}
	what := "`tabletop serve --mapping` deletes them, as DynamoDB does (" + keeps + ")"
	switch {
	case !j.CollectsExpired():
	case e.Kept && j.Options.Expires:
		what = "those that garbage collection deletes are not compared"
	case e.Kept:
		what = "garbage collection or `tabletop serve --mapping` deletes them (" + keeps + ")"
	case j.Options.Expires:
		what = "they are not compared, since garbage collection deletes them"
	default:
		what = "garbage collection deletes them (" + keeps + ")"
	}
	return fmt.Sprintf("table %s: %s expired by %s, %s: %s", j.Source.Name, phrase.Counted(j.Report.Expired, "item"), by, e.Attribute, what)
}
