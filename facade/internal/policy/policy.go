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

// NoPolicy is the expected revision in a request that requires that no policy exists.
const NoPolicy = "NO_POLICY"

// Resource is the subject of a policy.
type Resource struct {
	ARN   string // as given in the request
	Table string // the name of the table
	Label string // of the stream; "": the table's own
	// Delay is how long a change stays invisible. The next change must wait for it, and after
	// it until changeInterval is over. 0: changes are immediate.
	Delay time.Duration
}

// Seen returns the policy as a request at a time sees it.
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

// Text returns the document of a policy as requests see it.
func Text(p tabledef.Policy) string {
	if strings.HasPrefix(p.Document, `{"Version":`) {
		return p.Document
	}
	return defaultVersion + strings.TrimPrefix(p.Document, "{")
}

// NotFound returns the error for a resource without a policy.
func NotFound(of Resource) error { return notFound(of, "") }

func notFound(of Resource, why string) error {
	return awserr.New(awserr.CodePolicyNotFound, awserr.MsgPolicyNotFound, cmp.Or(why, of.ARN))
}

// Put returns the policy that follows p with document, or p if it is equivalent. A request
// may expect a revision, or NoPolicy.
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

// Delete returns the policy that follows p without a document; p itself if it is already
// deleted.
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
