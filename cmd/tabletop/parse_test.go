package main

import (
	"reflect"
	"strings"
	"testing"
)

// TestParse_Rules: the tags of the grammar have only the rules that parse checks. kong's own Validate
// knows more of them.
func TestParse_Rules(t *testing.T) {
	t.Parallel()
	choices := 0
	for _, n := range nodes(t) {
		for _, f := range n.Flags {
			if len(f.Xor) > 0 || len(f.And) > 0 || len(f.LastWins) > 0 {
				t.Errorf("%s: parse does not know the groups of --%s", n.Path(), f.Name)
			}
		}
		for _, v := range n.Values() {
			if v.Enum == "" {
				continue
			}
			choices++
			if v.Target.Kind() != reflect.String {
				t.Errorf("%s: %s has choices, and must be a text", n.Path(), v.ShortSummary())
			}
		}
		_, runs := n.Target.Addr().Interface().(runner)
		_, runsWithArgs := n.Target.Addr().Interface().(argsRunner)
		if leaf := len(n.Children) == 0; (runs || runsWithArgs) != leaf {
			t.Errorf("%q has a method Run: %t", n.Path(), !leaf)
		}
	}
	if choices == 0 {
		t.Error("no flag has choices")
	}
}

// TestParse_Missing: the error of a missing or wrong value names its flag or argument.
func TestParse_Missing(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"migrate reverse --target 127.0.0.1:1":         "tabletop: migrate reverse: missing flags: --output=DIR\n",
		"completion":                                   "tabletop: completion: expected \"<shell>\"\n",
		"sql --format=xml q":                           "tabletop: sql: --format must be one of \"table\",\"json\",\"csv\" but got \"xml\"\n",
		"sql q --target 127.0.0.1:1 --call-timeout 0s": "tabletop: sql: --call-timeout: 0s must be greater than 0s\n",
	} {
		out, code := tabletop(t, strings.Fields(args)...)
		if code != exitBadInput || !strings.HasPrefix(out, want) {
			t.Errorf("tabletop %s exits %d:\n%swant\n%s", args, code, out, want)
		}
	}
}
