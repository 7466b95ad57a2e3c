package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// infer --mapping completes a mapping file: each rule with "*" gets the attributes of its
// items, and the result is a mapping for the same rows.
func TestMarkers_InferCompletesAMapping(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"PK":{"S":"p"},"SK":{"S":"A"},"x":{"S":"1"}}
{"PK":{"S":"p"},"SK":{"S":"B"},"y":{"N":"1"}}
`)
	mapping := writeFile(t, dir, "m.yaml", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {x: S, y: S, z: S}}
target: {table: t, families: {a: {}, _t: {gc: {maxAge: 1d}}}}
rules:
- {name: a, when: {SK: A}, row: [a, "{PK}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: b, when: {SK: B}, row: [b, "{PK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`)
	if out, code := tabletop(t, "migrate", "infer", items, "--mapping", mapping); code != exitBadInput || !strings.Contains(out, "garbage collection would remove types by age") {
		t.Errorf("a mapping with a fault: exit %d\n%s", code, out)
	}
	text, err := os.ReadFile(mapping)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mapping, []byte(strings.Replace(string(text), "gc: {maxAge: 1d}", "", 1)), 0o666); err != nil {
		t.Fatal(err)
	}
	done := filepath.Join(dir, "done.yaml")
	out, code := tabletop(t, "migrate", "infer", items, "--mapping", mapping, "-o", done)
	if code != exitEqual || !strings.Contains(out, "rule a: 1 of 3") || !strings.Contains(out, "rule b: 1 of 3") {
		t.Errorf("exit %d\n%s", code, out)
	}
	if text, err = os.ReadFile(done); err != nil || !strings.Contains(string(text), "    schema:\n      - x\n") || !strings.Contains(string(text), "    schema:\n      \"y\": \"N\"\n") {
		t.Errorf("%v\n%s", err, text)
	}
	if out, code := tabletop(t, "migrate", "verify", items, "--mapping", done); code != exitEqual {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, code := tabletop(t, "migrate", "infer", items, "--mapping", mapping, "-o", mapping); code != exitBadInput {
		t.Errorf("over the mapping that is read: exit %d\n%s", code, out)
	}
}

// infer --mapping completes a file with a fault that the inferred schemas repair, and reports
// it.
func TestMarkers_InferMendsAMapping(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	items := writeFile(t, dir, "items.jsonl", `{"PK":{"S":"p"},"SK":{"S":"A"},"x":{"S":"1"}}
{"PK":{"S":"p"},"SK":{"S":"v0"},"y":{"N":"1"}}
{"PK":{"S":"p"},"SK":{"S":"v1"},"y":{"N":"1"}}
`)
	given := writeFile(t, dir, "m.yaml", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {x: S, y: N}, gsis: [{name: G, hash: x, projection: ALL}]}
target: {table: t, families: {a: {}, v: {}, _t: {}}}
rules:
- {name: a, when: {SK: A}, row: [a, "{PK}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: doc, when: {SK: "v{n:ver}"}, latest: v0, row: [doc, "{PK}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}
`)
	const fault = "the index entries of copies would not follow the versions (rule doc)"
	if out, code := tabletop(t, "migrate", "plan", items, "--mapping", given); code != exitBadInput || !strings.Contains(out, fault) {
		t.Fatalf("plan of a mapping with a fault: exit %d\n%s", code, out)
	}
	done := filepath.Join(dir, "done.yaml")
	out, code := tabletop(t, "migrate", "infer", items, "--mapping", given, "-o", done)
	if code != exitEqual || !strings.Contains(out, "warning: "+given+" had faults that the inferred schemas repair") || !strings.Contains(out, fault) {
		t.Errorf("exit %d\n%s", code, out)
	}
	if out, code := tabletop(t, "migrate", "verify", items, "--mapping", done); code != exitEqual {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// Duration flags may be in days.
func TestMapping_FlagsInDays(t *testing.T) {
	t.Parallel()
	out, code := tabletop(t, "serve", "--ttl-interval", "1x")
	if code != exitBadInput || !strings.Contains(out, `"1x" is not a duration; expected a duration such as 400d, 720h or 1m30s`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	out, code = tabletop(t, "serve", "--ttl-interval", "1d12h", "--gc-interval", "2d", "--bigtable", "nowhere")
	if code != exitBadInput || strings.Contains(out, "duration") || !strings.Contains(out, "nowhere") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

// Items that a mapping refuses, and two items of one key, are findings of plan and verify: exit
// code 1, with all of them and with the rest.
func TestFindings_RefusedItemsAreFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const good = `{"id":{"S":"a"},"n":{"N":"1"}}` + "\n"
	mapping := writeFile(t, dir, "m.yaml", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}}, schema: {n: N}}
target: {table: t, joiner: oc, families: {a: {gc: {versions: 1}}}}
rules: [{name: item, row: ["{id}"], put: [{attr: n, cell: "a:n", codec: i64be}]}]
`)
	for name, c := range map[string]struct {
		items string
		code  int
		want  []string
	}{
		"none":    {good, exitEqual, nil},
		"refused": {good + `{"id":{"S":"b"},"n":{"N":"0.5"},"x":{"S":"y"}}` + "\n", exitDifferences, []string{"E-DOMAIN", "E-UNKNOWN-ATTRIBUTE"}},
		"one key": {good + good, exitDifferences, []string{"DuplicateItem"}},
		"both":    {good + good + `{"id":{"S":"b"},"x":{"S":"y"}}` + "\n", exitDifferences, []string{"E-UNKNOWN-ATTRIBUTE", "DuplicateItem"}},
	} {
		items := writeFile(t, dir, name+".jsonl", c.items)
		for _, verb := range []string{"plan", "verify"} {
			out, code := tabletop(t, "migrate", verb, items, "--mapping", mapping)
			if code != c.code {
				t.Errorf("%s, %s: exit %d, want %d\n%s", verb, name, code, c.code, out)
			}
			for _, want := range c.want {
				if !strings.Contains(out, want) {
					t.Errorf("%s, %s: no %s in\n%s", verb, name, want, out)
				}
			}
		}
	}
}
