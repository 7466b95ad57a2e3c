package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/facade"
)

// A server reports its own passes over all items of a table, and the indexes that it does not
// serve.
func TestProgress_ServeTellsOfItsWork(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"id":{"S":"a"},"g":{"S":"x"}}`+"\n"+`{"id":{"S":"b"},"g":{"S":"x"}}`+"\n")
	const text = `apiVersion: migration/v1
source:
  table: items
  key: {hash: {name: id, type: S}}
  schema: {g: S}
  gsis:
  - {name: shown, hash: g, projection: ALL}
  - {name: left, hash: g, projection: ALL, as: none}
target: {table: items, joiner: oc, families: {a: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`
	mapping := writeFile(t, dir, "m.yaml", text)
	data := filepath.Join(dir, "data")
	if out, code := tabletop(t, "migrate", "load", "--source", items, "--mapping", mapping, "--data", data); code != exitEqual {
		t.Fatal(out)
	}
	serveOnce := func(mapping string) string {
		t.Helper()
		// No port is opened: the Bigtable endpoint is off, and the DynamoDB endpoint fails to
		// listen, which ends the program.
		out, code := tabletop(t, "serve", "--data", data, "--mapping", mapping, "--bigtable", "off", "--dynamodb", "127.0.0.1:99999")
		if code == exitEqual {
			t.Fatalf("serve ended well:\n%s", out)
		}
		return out
	}
	out := serveOnce(mapping)
	for _, want := range []string{
		"tabletop: table items: filling index shown: 2 items, done\n",
		"tabletop: warning: table items has no index left here: its mapping says as: none\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	if out = serveOnce(mapping); strings.Contains(out, "filling") {
		t.Errorf("a second start fills again:\n%s", out)
	}
	other := writeFile(t, dir, "other.yaml", strings.Replace(text, "a:{attr}", "a:x{attr}", 1))
	if out = serveOnce(other); !strings.Contains(out, "--mapping: ") || !strings.Contains(out, "laid out with another mapping") {
		t.Errorf("another mapping is not refused:\n%s", out)
	}
}

func TestWorker(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	k := &worker{w: &b}
	for _, p := range []facade.Progress{
		{Table: "t", Phase: "filling index G"},
		{Table: "t", Phase: "filling index G", Items: 1000}, // at once: not reported
		{Table: "u", Phase: "filling index G"},
		{Table: "u", Phase: "filling index G", Done: true}, // no items
		{Table: "t", Phase: "filling index G", Items: 1500, Done: true},
		{Table: "u", Phase: dueTimes},
		{Table: "u", Phase: dueTimes, Items: 9, Done: true}, // at once
		{Table: "u", Phase: "filling index H"},
		{Table: "u", Phase: "filling index H", Items: 1, Done: true, Err: errors.New("a row cannot be read")},
	} {
		k.report(p)
	}
	if got, want := b.String(), "tabletop: table t: filling index G: 1500 items, done\ntabletop: table u: filling index H: not done, after 1 item\n"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
}
