package policy

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
)

// changeInterval is the minimum time between two changes of a policy on AWS.
const changeInterval = 15 * time.Second

// NoPolicy is the expected revision in a request for a resource that must not have a
// policy.
const NoPolicy = "NO_POLICY"

// Resource is a table or stream that a policy applies to.
type Resource struct {
	ARN   string // ARN as given in the request
	Table string // name of the table
	Label string // label of the stream, or "" for the table itself
	// Delay is how long a change stays invisible. After that time, the next change must
	// still wait until changeInterval is over. If Delay is zero, changes are visible at
	// once and need not wait.
	Delay time.Duration
}

// Seen returns the policy that a request sees at a given time.
func Seen(p tabledef.Policy, of Resource, now time.Time) tabledef.Policy {
	if of.Delay > 0 && now.Before(time.UnixMilli(p.Changed).Add(of.Delay)) {
		return tabledef.Policy{Document: p.Last, Changed: p.LastChanged}
	}
	return p
}

// changed returns the policy that follows p, or the error if it cannot be changed now.
func changed(p tabledef.Policy, of Resource, document string, now time.Time) (tabledef.Policy, error) {
	next := tabledef.Policy{Document: document, Changed: max(now.UnixMilli(), p.Changed+1)} // unique even if the clock does not advance
	if of.Delay <= 0 {
		return next, nil
	}
	next.Last, next.LastChanged = p.Document, p.Changed
	last := time.UnixMilli(p.Changed)
	switch until := last.Add(changeInterval); {
	case now.Before(last.Add(of.Delay)):
		return p, awserr.New(awserr.CodeResourceInUse, awserr.MsgPolicyPending, of.Table)
	case now.Before(until):
		what := "table " + of.Table
		if of.Label != "" {
			what = "stream " + of.Label
		}
		return p, awserr.New(awserr.CodeThrottling, awserr.MsgPolicyTooSoon, what, changeInterval.Milliseconds(),
			until.UTC().Format("2006-01-02T15:04:05.000Z"))
	}
	return next, nil
}

// Text returns the document of a policy in the form that requests see.
func Text(p tabledef.Policy) string {
	if strings.HasPrefix(p.Document, `{"Version":`) {
		return p.Document
	}
	return defaultVersion + strings.TrimPrefix(p.Document, "{")
}

// NotFound returns the error for a resource that has no policy.
func NotFound(of Resource) error { return notFound(of, "") }

func notFound(of Resource, why string) error {
	return awserr.New(awserr.CodePolicyNotFound, awserr.MsgPolicyNotFound, cmp.Or(why, of.ARN))
}

// Put returns the policy that results from replacing the document of p, or p itself if the
// documents are equivalent. expected, if not nil, is the revision that the policy must have, or
// NoPolicy if there must not be a policy.
func Put(p tabledef.Policy, of Resource, document string, expected *string, now time.Time) (tabledef.Policy, error) {
	text, err := canonical(document)
	if err != nil {
		return p, err
	}
	if expected != nil && *expected == NoPolicy {
		if p.Document != "" {
			return p, notFound(of, fmt.Sprintf(awserr.MsgPolicyExists, of.Table, p.Revision()))
		}
	} else if err := expect(p, of, expected); err != nil {
		return p, err
	}
	if text == p.Document {
		return p, nil
	}
	return changed(p, of, text, now)
}

// Delete returns the policy that results from deleting p. It returns p itself if p is
// already deleted.
func Delete(p tabledef.Policy, of Resource, expected *string, now time.Time) (tabledef.Policy, error) {
	if err := expect(p, of, expected); err != nil || p.Document == "" {
		return p, err
	}
	return changed(p, of, "", now)
}

func expect(p tabledef.Policy, of Resource, revision *string) error {
	switch {
	case revision == nil:
		return nil
	case p.Document == "":
		return notFound(of, fmt.Sprintf(awserr.MsgPolicyNoRevision, *revision, of.Table))
	case *revision != p.Revision():
		return notFound(of, fmt.Sprintf(awserr.MsgPolicyOtherRevision, *revision, of.Table, p.Revision()))
	}
	return nil
}
