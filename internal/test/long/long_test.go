package long

import "testing"

type skipper struct{ skipped bool }

func (*skipper) Helper()       {}
func (s *skipper) Skip(...any) { s.skipped = true }

func TestTest(t *testing.T) {
	for value, want := range map[string]bool{"": false, "0": false, "1": true} {
		t.Setenv(Variable, value)
		var s skipper
		Test(&s)
		if Enabled() != want || s.skipped == want {
			t.Errorf("%s=%q: enabled %t, skipped %t", Variable, value, Enabled(), s.skipped)
		}
	}
}
