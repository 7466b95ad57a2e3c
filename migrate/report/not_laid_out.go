package report

import (
	"fmt"
	"strings"

	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// NotLaidOut is a part of a DynamoDB table that its mapping does not lay out, so the rows
// lack it.
type NotLaidOut struct {
	Table string `json:"table"` // name of the DynamoDB table
	What  string `json:"what"`  // the part: "index GSI1", "time to live by expires"
	Why   string `json:"why"`   // reason why the mapping does not lay it out
}

// String describes the part on one line, for a warning.
func (n NotLaidOut) String() string {
	return fmt.Sprintf("table %s: %s is not laid out: %s", n.Table, n.What, n.Why)
}

// NotLaidOutCheck is the name of the check that lists the NotLaidOut parts.
const NotLaidOutCheck = "not laid out"

// LeaveOut records the parts of a DynamoDB table that its mapping does not lay out. It adds a
// warning for each part, and one check with the state CheckNoted. They do not count as
// differences, since they are not compared.
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
		Detail: phrase.ClipTo(strings.Join(what, ", "), maxRulesText) + ": not compared",
	})
}
