package report

import (
	"fmt"
	"time"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// Live is the comparison of a table that a follower writes with its live source, or with an export
// that is older.
type Live struct {
	// Each key was compared at a time from From to To, by the clock of the source. For a difference, all writes
	// before that time were applied, as Rule shows: "header" of Tabletop's endpoint, or "answers" for others.
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Rule     string    `json:"rule"`
	Compared int64     `json:"compared"` // keys, without Unsettled
	Suspects int64     `json:"suspects"` // keys that differed at the first look
	// Unsettled keys changed each time they were compared. UnsettledKeys are the first 100.
	Unsettled     int64    `json:"unsettled"`
	UnsettledKeys []string `json:"unsettledKeys,omitempty"`
	Expired       int64    `json:"expired"`   // keys on one side whose time to live is over
	Collected     int64    `json:"collected"` // keys that lack cells which garbage collection removes
	// Newer counts the keys that differ from an export and changed after it.
	Newer int64 `json:"newer,omitzero"`
}

// Outcomes describes the keys that were not simply equal: "; 3 keys differed at the first look …".
func (l *Live) Outcomes() string {
	text := ""
	for _, n := range []struct {
		n    int64
		what string
	}{
		{l.Suspects, "differed at the first look, and got another"},
		{l.Unsettled, "unsettled: changed at each look, so no result is known"},
		{l.Newer, "changed after the export, so may differ"},
		{l.Expired, "on one side only, since the time to live is over"},
		{l.Collected, "without cells that garbage collection removes"},
	} {
		if n.n > 0 {
			text += fmt.Sprintf("; %s %s", phrase.Counted(n.n, "key"), n.what)
		}
	}
	return text
}

// liveText returns the last line of a report on live tables, or "" for other reports.
func (r *Report) liveText() string {
	compared, unsettled, live := int64(0), int64(0), false
	for _, t := range r.Tables {
		if l := t.Live; l != nil {
			live, compared, unsettled = true, compared+l.Compared, unsettled+l.Unsettled
		}
	}
	if !live {
		return ""
	}
	return fmt.Sprintf("%s compared, %s, %d unsettled", phrase.Counted(compared, "key"), phrase.Counted(r.Differences, "difference"), unsettled)
}
