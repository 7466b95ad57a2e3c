package lint

import (
	"slices"
	"sync"
	"testing"
)

// exceptions are what breaks a rule for the time being. Each is deleted with the
// change that its reason names: one that nothing needs fails the tests.
var exceptions = []exception{
	// What they will hold.
	{"file", "migrate/lint/keys.go", "the split of migrate"},
	{"file", "migrate/lint/pass.go", "the split of migrate"},
}

type exception struct{ rule, subject, why string }

var (
	usedMu sync.Mutex
	used   = map[exception]bool{}
)

// excepted reports whether a subject may break a rule.
func excepted(rule, subject string) bool {
	i := slices.IndexFunc(exceptions, func(e exception) bool { return e.rule == rule && e.subject == subject })
	if i < 0 {
		return false
	}
	usedMu.Lock()
	defer usedMu.Unlock()
	used[exceptions[i]] = true
	return true
}

// wantUsed fails for exceptions from the rules that nothing needed.
func wantUsed(t *testing.T, rules ...string) {
	t.Helper()
	usedMu.Lock()
	defer usedMu.Unlock()
	for _, e := range exceptions {
		if slices.Contains(rules, e.rule) && !used[e] {
			t.Errorf("the exception of %s from the rule %q is not needed: delete it", e.subject, e.rule)
		}
	}
}
