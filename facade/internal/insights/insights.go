// Package insights implements contributor insights for tables and indexes: their
// settings, the names of their rules, and the most used keys since the process started.
package insights

import (
	"encoding/base64"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// Statuses, actions and modes, in DynamoDB's words.
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

// Update returns the insights after an action. A nil mode keeps the mode. The insights
// appear to be changing until delay has passed. Repeating the last action changes
// nothing.
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

// Status returns the status that the insights appear to have at a time.
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

// Listed reports whether ListContributorInsights includes i.
func Listed(i tabledef.Insights, now time.Time) bool { return Status(i, now) != disabled }

// Rules returns the names of the rules of a table, or of an index if index is not "".
// There are rules for partition keys and, with a sort key, for whole keys: by
// throttling and, unless the mode is ThrottledKeys, by consumption.
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

// Token returns the page token with which a list continues after a given table or index.
func Token(table, index string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(table + "/" + index))
}

// PlaceOf returns the table and index after which a page token continues. A nil token
// means the beginning of the list.
func PlaceOf(token *string) (table, index string, ok bool) {
	if token == nil {
		return "", "", true
	}
	text, err := base64.RawURLEncoding.DecodeString(*token)
	table, index, ok = strings.Cut(string(text), "/")
	return table, index, ok && err == nil
}
