package lint

import (
	"slices"
	"sync"
	"testing"
)

// exceptions are what breaks a rule for the time being. Each is deleted with the
// change that its reason names: one that nothing needs fails the tests.
var exceptions = []exception{
	// The layers that are being built.
	{"layer", "migrate/source", "the split of fixtures"},
	{"layer", "migrate/infer", "the split of fixtures"},
	{"layer", "migrate/report", "the split of fixtures"},
	{"layer", "migrate/lint", "the split of fixtures"},
	{"layer", "migrate", "the split of fixtures"},

	// What they will hold.
	{"import", "fixtures -> facade", "the split of fixtures"},
	{"import", "fixtures -> google.golang.org/grpc", "the split of fixtures"},
	{"import", "fixtures -> google.golang.org/grpc/codes", "the split of fixtures"},
	{"import", "fixtures -> google.golang.org/grpc/metadata", "the client of Bigtable"},
	{"import", "fixtures -> google.golang.org/grpc/status", "the split of fixtures"},
	{"package", "fixtures", "the split of fixtures"},
	{"package", "internal/layout", "the split of internal/layout"},
	{"file", "fixtures/differential.go", "the split of fixtures"},
	{"file", "fixtures/infer.go", "the split of fixtures"},
	{"file", "fixtures/lint/keys.go", "the split of fixtures"},
	{"file", "fixtures/lint/pass.go", "the split of fixtures"},
	{"file", "fixtures/pattern.go", "the split of fixtures"},
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
