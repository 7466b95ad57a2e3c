package policy

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/facade/internal/wire"
)

const (
	msgNotFound = "Resource-based policy not found for the provided ResourceArn: %s"                                                  // 226
	msgOther    = "Requested update for policy with revision id %s, but the policy associated to target table %s has revision id %s." // part of 290
	msgNone     = "Requested update for policy with revision id %s, but table %s has no associated policy."                           // ours
	msgThere    = "Requested policy update expecting none to be present for table %s, but a policy exists with revision id %s."       // part of 291
)

// NoPolicy is the revision that a request expects where there is to be no policy.
const NoPolicy = "NO_POLICY"

// Resource is what a policy belongs to.
type Resource struct {
	ARN   string // as it was given
	Table string // the name of the table
}

// Text returns the document of a policy as it is read.
func Text(p tabledef.Policy) string {
	if strings.HasPrefix(p.Document, `{"Version":`) {
		return p.Document
	}
	return defaultVersion + strings.TrimPrefix(p.Document, "{")
}

// NotFound is the answer where a resource has no policy.
func NotFound(of Resource) error { return notFound(of, "") }

func notFound(of Resource, why string) error {
	text := fmt.Sprintf(msgNotFound, of.ARN)
	if why != "" {
		text = fmt.Sprintf(msgNotFound, why)
	}
	return &wire.Refusal{Code: wire.CodePolicyNotFound, HTTPStatus: http.StatusBadRequest, Message: text}
}

// Put returns the policy that follows p once document is put; p, if it says the
// same. A request may expect a revision, or NoPolicy.
func Put(p tabledef.Policy, of Resource, document string, expected *string, now time.Time) (tabledef.Policy, error) {
	text, err := canonical(document)
	if err != nil {
		return p, err
	}
	if expected != nil && *expected == NoPolicy {
		if p.Document != "" {
			return p, notFound(of, fmt.Sprintf(msgThere, of.Table, p.Revision()))
		}
	} else if err := expect(p, of, expected); err != nil {
		return p, err
	}
	if text == p.Document {
		return p, nil
	}
	return tabledef.Policy{Document: text, Changed: next(p, now)}, nil
}

// Delete returns what is left of a policy; p itself, if it is deleted already.
func Delete(p tabledef.Policy, of Resource, expected *string, now time.Time) (tabledef.Policy, error) {
	if err := expect(p, of, expected); err != nil || p.Document == "" {
		return p, err
	}
	return tabledef.Policy{Changed: next(p, now)}, nil
}

func expect(p tabledef.Policy, of Resource, revision *string) error {
	switch {
	case revision == nil:
		return nil
	case p.Document == "":
		return notFound(of, fmt.Sprintf(msgNone, *revision, of.Table))
	case *revision != p.Revision():
		return notFound(of, fmt.Sprintf(msgOther, *revision, of.Table, p.Revision()))
	}
	return nil
}

// next is the time of a change: one after the last, however slow the clock.
func next(p tabledef.Policy, now time.Time) int64 { return max(now.UnixMilli(), p.Changed+1) }
