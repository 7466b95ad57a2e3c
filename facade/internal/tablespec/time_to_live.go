package tablespec

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// ttlChangeInterval is the time in which AWS takes one change of a table.
const ttlChangeInterval = time.Hour

// CheckTimeToLive refuses a change that changes nothing, that goes from one attribute to
// another, or that follows too soon on the last.
func CheckTimeToLive(t *tabledef.Table, attribute string, enable bool, now time.Time) error {
	switch {
	case t.TTLAttribute == "" && !enable:
		return awserr.Validation(awserr.MsgTTLDisabled)
	case t.TTLAttribute != "" && t.TTLAttribute != attribute:
		return awserr.Validation(awserr.MsgTTLOtherAttribute, t.TTLAttribute)
	case t.TTLAttribute != "" && enable:
		return awserr.Validation(awserr.MsgTTLEnabled)
	case !t.TTLChanged.IsZero() && now.Sub(t.TTLChanged) < ttlChangeInterval:
		return awserr.Validation(awserr.MsgTTLTooSoon)
	}
	return nil
}
