// Package insights is the state of contributor insights, of tables and of indexes:
// whether the keys that are used most are to be watched, and which rules watch them.
// Nothing counts keys.
package insights

import (
	"strconv"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// The statuses, actions and modes, in DynamoDB's words.
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_UpdateContributorInsights.html
const (
	Enable  = "ENABLE"
	Disable = "DISABLE"

	enabled   = "ENABLED"
	disabled  = "DISABLED"
	enabling  = "ENABLING"
	disabling = "DISABLING"

	AllKeys       = "ACCESSED_AND_THROTTLED_KEYS"
	ThrottledKeys = "THROTTLED_KEYS"
)

// Update returns what follows on an action with a mode, nil for none, and shows as
// changing for delay. The same again changes nothing.
func Update(last tabledef.Insights, action string, mode *string, now time.Time, delay time.Duration) tabledef.Insights {
	next := tabledef.Insights{Enabled: action == Enable, Mode: last.Mode, Changed: now.UnixMilli()}
	if mode != nil {
		next.Mode = *mode
	}
	if next.Mode == "" {
		next.Mode = AllKeys
	}
	if next.Enabled == last.Enabled && (!next.Enabled || next.Mode == last.Mode) {
		return last
	}
	status := disabling
	if next.Enabled {
		status = enabling
	}
	next.Transition = tabledef.TransitionAfter(now, status, delay)
	return next
}

// Status returns what insights look like at a time.
func Status(i tabledef.Insights, now time.Time) string {
	switch {
	case i.Transition.Lasts(now):
		return i.Transition.Status
	case i.Enabled:
		return enabled
	default:
		return disabled
	}
}

// Listed reports whether a list has them.
func Listed(i tabledef.Insights, now time.Time) bool { return Status(i, now) != disabled }

// Rules returns the names of the rules of a table, or of its index if that is not
// "": of partition keys and of both, those that are consumed and those that are
// throttled.
func Rules(i tabledef.Insights, table, index string, hasSortKey bool) []string {
	of := table
	if index != "" {
		of += "-" + index
	}
	var rules []string
	for _, kind := range []struct {
		name            string
		sort, throttled bool
	}{{"PKC", false, false}, {"SKC", true, false}, {"PKT", false, true}, {"SKT", true, true}} {
		if (hasSortKey || !kind.sort) && (kind.throttled || i.Mode != ThrottledKeys) {
			rules = append(rules, "DynamoDBContributorInsights-"+kind.name+"-"+of+"-"+strconv.FormatInt(i.Changed, 10))
		}
	}
	return rules
}
