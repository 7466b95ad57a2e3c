package tablespec

import (
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// ttlChangeInterval is the minimum time between two changes of a table on AWS.
const ttlChangeInterval = time.Hour

// CheckTimeToLive rejects a change that has no effect, replaces the attribute, or follows
// the last change too soon.
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
