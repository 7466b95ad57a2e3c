package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/internal/phrase"
	"github.com/tabletop-emu/tabletop/migrate"
)

// condition is a condition of --wait.
type condition struct {
	text string
	// open returns why it does not hold; "" if it does.
	open func(migrate.FollowStatus) string
}

// The conditions of --wait. Dead is another name of letters.
const (
	waitPhase   = "phase"
	waitLag     = "lag"
	waitLetters = "letters"
	waitDead    = "dead"
	waitDirty   = "dirty"
)

var (
	waits     = []string{waitPhase, waitLag, waitLetters, waitDead, waitDirty}
	comparing = regexp.MustCompile(`^([^<>=\s]+)\s*([<>=]+)\s*(\S+)$`)
)

// parseConditions parses the value of --wait.
func parseConditions(text string) (all []condition, err error) {
	for part := range strings.SplitSeq(text, ",") {
		c := condition{text: strings.TrimSpace(part)}
		m := comparing.FindStringSubmatch(c.text)
		if m == nil {
			return nil, fmt.Errorf("--wait: %q must be phase=PHASE, lag<DURATION, letters=N or dirty<N", c.text)
		}
		if c.open, err = parseCondition(m[1], m[2], m[3]); err != nil {
			return nil, fmt.Errorf("--wait: %q: %w", c.text, err)
		}
		all = append(all, c)
	}
	return all, nil
}

func parseCondition(name, operator, value string) (func(migrate.FollowStatus) string, error) {
	if !slices.Contains(waits, name) {
		return nil, fmt.Errorf("unknown condition %q%s; expected %s", name, nearestText("", name, waits), strings.Join(waits, ", "))
	}
	operators := []string{"=", "<", "<="}
	if name == waitPhase {
		operators = operators[:1]
	}
	if !slices.Contains(operators, operator) {
		return nil, fmt.Errorf("operator %s: expected %s", operator, strings.Join(operators, " or "))
	}
	switch name {
	case waitPhase:
		if phases := migrate.Phases(); !slices.Contains(phases, value) {
			return nil, fmt.Errorf("unknown phase %q%s; expected %s", value, nearestText("", value, phases), strings.Join(phases, ", "))
		}
		return func(s migrate.FollowStatus) string {
			if s.Phase == value {
				return ""
			}
			return "the phase is " + s.Phase
		}, nil
	case waitLag:
		most, err := time.ParseDuration(value)
		if err != nil || most < 0 {
			return nil, fmt.Errorf("%q must be a duration such as 2s", value)
		}
		return func(s migrate.FollowStatus) string {
			switch {
			case s.Running == "":
				return "no process follows the table"
			case s.Lag < 0:
				return "the lag is unknown"
			case s.Lag < most, operator != "<" && s.Lag == most:
				return ""
			}
			return "the lag is " + lagText(s.Lag)
		}, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q must be a number such as 0", value)
	}
	holds := func(is int) bool {
		return operator == "=" && is == n || operator == "<" && is < n || operator == "<=" && is <= n
	}
	if name == waitDirty {
		return func(s migrate.FollowStatus) string {
			switch {
			case s.Proof == nil || !s.Proof.Valid:
				return "no verification found it equal (migrate verify --live --consistent)"
			case !s.MoreDirty && holds(s.Dirty):
				return ""
			}
			return changedKeys(s)
		}, nil
	}
	return func(s migrate.FollowStatus) string {
		if holds(s.LetterCount) {
			return ""
		}
		return phrase.Counted(int64(s.LetterCount), "dead letter")
	}, nil
}

// changedKeys describes the keys that changed since the last verification.
func changedKeys(s migrate.FollowStatus) string {
	text := phrase.Counted(int64(s.Dirty), "key") + " changed since"
	if s.MoreDirty {
		text = "more than " + text
	}
	return text
}
