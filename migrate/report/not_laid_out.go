package report

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// NotLaidOut is a part of a DynamoDB table that its mapping lays out nothing of: who
// goes over to the rows has to do without it.
type NotLaidOut struct {
	Table string `json:"table"` // the DynamoDB table
	What  string `json:"what"`  // "index GSI1", "time to live by expires"
	Why   string `json:"why"`   // what the mapping says, or does not
}

// String returns the part on one line, for a warning.
func (n NotLaidOut) String() string {
	return fmt.Sprintf("table %s: %s is not laid out: %s", n.Table, n.What, n.Why)
}

// NotLaidOutCheck is the name of the check that they are in a report.
const NotLaidOutCheck = "not laid out"

// LeaveOut records what the mapping of a DynamoDB table lays out nothing of: as a
// warning each, and as a check that is not ok. None of it is a difference: what is
// not there is not compared either.
func (r *Report) LeaveOut(table string, left ...NotLaidOut) {
	if len(left) == 0 {
		return
	}
	r.NotLaidOut = append(r.NotLaidOut, left...)
	var what []string
	for _, n := range left {
		r.Warnings = append(r.Warnings, n.String())
		what = append(what, n.What)
	}
	r.Checks = append(r.Checks, Check{
		Name: NotLaidOutCheck, Table: table, State: CheckNoted,
		Detail: phrase.ClipTo(strings.Join(what, ", "), maxRulesText) + ": nothing of it is compared",
	})
}
