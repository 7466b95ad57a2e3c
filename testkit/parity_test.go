package testkit_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/testkit"
)

// TestControl_Parity: the table in docs/control.md has each method of Env once, with the
// equivalent route of the API and ctl command, or with the reason for their absence.
func TestControl_Parity(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	routes, verbs := read("../control/routes.go"), read("../cmd/tabletop/ctl.go")
	_, table, _ := strings.Cut(read("../docs/control.md"), "\n| `testkit.Env` |")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := map[string]int{}
	for i, line := range strings.Split(table, "\n") {
		cells := strings.Split(strings.TrimSuffix(strings.TrimPrefix(line, "|"), "|"), "|")
		if i < 2 { // the head
			continue
		}
		if len(cells) != 3 {
			t.Fatalf("%q has %d columns", line, len(cells))
		}
		for _, m := range quoted.FindAllStringSubmatch(cells[0], -1) {
			rows[m[1]]++
		}
		route, verb := quoted.FindStringSubmatch(cells[1]), quoted.FindAllStringSubmatch(cells[2], -1)
		if reason, none := strings.CutPrefix(strings.TrimSpace(cells[1]), "none: "); none {
			if reason == "" || strings.TrimSpace(cells[2]) != "" {
				t.Errorf("%q has no reason, or a verb without a route", line)
			}
			continue
		}
		if route == nil || !strings.Contains(routes, `"`+route[1]+`":`) {
			t.Errorf("%q names neither a route nor the reason for its absence", line)
		}
		for _, v := range verb {
			if !strings.Contains(verbs, `{name: "`+v[1]+`",`) {
				t.Errorf("%q: ctl has no verb %s", line, v[1])
			}
		}
		if len(verb) == 0 {
			t.Errorf("%q has no verb of ctl", line)
		}
	}
	for m := range reflect.TypeFor[*testkit.Env]().Methods() {
		if m.Name == "PauseTo" { // only in tests
			continue
		}
		if rows[m.Name] != 1 {
			t.Errorf("docs/control.md has %s %d times, want once", m.Name, rows[m.Name])
		}
		delete(rows, m.Name)
	}
	for name := range rows {
		t.Errorf("docs/control.md has %s, which Env does not", name)
	}
}
