package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
)

// jsonSchemaDocument checks values against the mapping's JSON Schema; it fails on an unknown
// keyword.
type jsonSchemaDocument struct{ root map[string]any }

// jsonSchema returns the contract, which is in the public package.
func jsonSchema(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../facade/mapping/mapping.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func loadJSONSchema(t *testing.T) *jsonSchemaDocument {
	t.Helper()
	d := &jsonSchemaDocument{}
	if err := json.Unmarshal(jsonSchema(t), &d.root); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *jsonSchemaDocument) resolve(s map[string]any) map[string]any {
	ref, ok := s["$ref"].(string)
	if !ok {
		return s
	}
	return d.root["$defs"].(map[string]any)[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any)
}

// check returns the fault of a value, "" for a valid one.
func (d *jsonSchemaDocument) check(s map[string]any, v any, path string) string {
	s = d.resolve(s)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		if wrong := d.keyword(s, keyword, v, path); wrong != "" {
			return wrong
		}
	}
	return ""
}

func (d *jsonSchemaDocument) keyword(s map[string]any, keyword string, v any, path string) string {
	arg := s[keyword]
	object, _ := v.(map[string]any)
	array, _ := v.([]any)
	text, isText := v.(string)
	number, isNumber := v.(float64)
	wrong := false
	switch keyword {
	case "$schema", "$id", "$defs", "title", "description", "default", "examples":
	case "type":
		wrong = arg != map[bool]string{object != nil: "object", array != nil: "array", isText: "string", isNumber: "integer", v == nil: "null", v == true || v == false: "boolean"}[true]
	case "enum":
		wrong = !slices.Contains(arg.([]any), v)
	case "pattern":
		wrong = isText && !regexp.MustCompile(arg.(string)).MatchString(text)
	case "minLength":
		wrong = isText && float64(len(text)) < arg.(float64)
	case "minItems":
		wrong = array != nil && float64(len(array)) < arg.(float64)
	case "minimum":
		wrong = isNumber && number < arg.(float64)
	case "maximum":
		wrong = isNumber && number > arg.(float64)
	case "required":
		for _, key := range arg.([]any) {
			if _, ok := object[key.(string)]; object != nil && !ok {
				return fmt.Sprintf("%s lacks %s", path, key)
			}
		}
	case "properties":
		for key, sub := range arg.(map[string]any) {
			if e, ok := object[key]; ok {
				if bad := d.check(sub.(map[string]any), e, path+"."+key); bad != "" {
					return bad
				}
			}
		}
	case "additionalProperties":
		known, _ := s["properties"].(map[string]any)
		for key, e := range object {
			if _, ok := known[key]; ok {
				continue
			}
			sub, ok := arg.(map[string]any)
			if !ok {
				return path + " has the unknown key " + key
			}
			if bad := d.check(sub, e, path+"."+key); bad != "" {
				return bad
			}
		}
	case "items":
		for i, e := range array {
			if bad := d.check(arg.(map[string]any), e, fmt.Sprintf("%s[%d]", path, i)); bad != "" {
				return bad
			}
		}
	case "oneOf":
		var all []string
		fits := 0
		for _, sub := range arg.([]any) {
			if bad := d.check(sub.(map[string]any), v, path); bad != "" {
				all = append(all, bad)
			} else {
				fits++
			}
		}
		if fits != 1 {
			return fmt.Sprintf("%s fits %d of the alternatives: %s", path, fits, strings.Join(all, "; "))
		}
	default:
		return "the test knows no keyword " + keyword
	}
	if wrong {
		return fmt.Sprintf("%s is %v, against %s %v", path, v, keyword, arg)
	}
	return ""
}

// wholeMapping uses every key of the language.
const wholeMapping = `{
  "apiVersion": "migration/v1",
  "source": {
    "table": "T",
    "key": {"hash": {"name": "PK", "type": "S"}, "range": {"name": "SK", "type": "S"}},
    "schema": {"a": "S", "l": {"L": "N"}, "m": {"M": {"k": "S"}, "else": "N"}, "g": "S", "x": "N"},
    "ttl": {"attribute": "x", "mode": "attribute"},
    "gsis": [{"name": "g", "hash": "g", "range": {"name": "a", "type": "S"}, "projection": "ALL", "as": "table", "shard": {"n": 2, "by": "md5(PK)"}, "row": ["g", "PK", "SK"], "joiner": "oc"}]
  },
  "target": {
    "table": "t", "joiner": "oc", "shared": "sh", "max_families": 5, "names": {"m": "map"}, "prefixes": {"set": "s.", "map": "m."},
    "families": {"a": {}, "v": {"gc": {"versions": 2, "maxAge": "1h"}}, "sh": {}, "_t": {"gc": {"versions": 3}}}
  },
  "fidelity": "typed",
  "timestamps": {"default": "export-time"},
  "on": {"collision": "error", "unmatched": "error", "unknown-attribute": "sidecar", "limit": "error"},
  "accept_loss": [{"rule": "rest", "what": "types", "why": "so"}],
  "rules": [
    {"name": "dated", "when": {"SK": "d", "same": ["PK", "SK"]}, "row": ["d", "{PK}"], "put": [{"attr": "a", "cell": "a:a", "codec": "s", "ts": {"attr": "at", "as": "iso(s)"}}], "tag": false},
    {"name": "rest", "row": ["r", "{PK}", "{SK}"], "put": [{"attr": "l", "cell": "a:l", "order": "append"}, {"attr": "*", "cell": "a:{attr}"}], "latest": ""}
  ],
  "patterns": ["access/"],
  "lint": {}
}`

func parseDocument(t *testing.T, doc any) *maperr.SpecError {
	t.Helper()
	text, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	var e *maperr.SpecError
	if _, err := mapfile.Parse("doc", text); err != nil && !errors.As(err, &e) {
		t.Fatal(err)
	}
	return e
}

// TestJSONSchema_AgreesWithParser covers the whole language: the schema and the parser have
// the same keys for every object, require the same, and accept the same words.
func TestJSONSchema_AgreesWithParser(t *testing.T) {
	t.Parallel()
	d := loadJSONSchema(t)
	var doc any
	if err := json.Unmarshal([]byte(wholeMapping), &doc); err != nil {
		t.Fatal(err)
	}
	if bad := d.check(d.root, doc, ""); bad != "" {
		t.Fatal(bad)
	}
	if err := parseDocument(t, doc); err != nil {
		t.Fatal(err)
	}
	objects, words := 0, 0
	var walk func(s map[string]any, v any, path string, set func(any))
	walk = func(s map[string]any, v any, path string, set func(any)) {
		s = d.resolve(s)
		if branches, ok := s["oneOf"].([]any); ok {
			for _, b := range branches {
				if d.check(b.(map[string]any), v, path) == "" {
					walk(b.(map[string]any), v, path, set)
				}
			}
			return
		}
		if enum, ok := s["enum"].([]any); ok {
			words++
			set("?")
			err := parseDocument(t, doc)
			set(v)
			texts := make([]string, len(enum))
			for i, e := range enum {
				texts[i] = e.(string)
			}
			// The types are listed with their forms.
			if err == nil || err.Expected != strings.Join(texts, ", ") && !strings.HasPrefix(err.Expected, strings.Join(texts, ", ")) {
				t.Errorf("%s takes %v by the schema; the parser says %v", path, texts, err)
			}
		}
		switch v := v.(type) {
		case map[string]any:
			properties, _ := s["properties"].(map[string]any)
			if s["additionalProperties"] == false {
				objects++
				v["?"] = 1
				err := parseDocument(t, doc)
				delete(v, "?")
				if want := strings.Join(slices.Sorted(maps.Keys(properties)), ", "); err == nil || err.What != "unknown key" || err.Expected != want {
					t.Errorf("%s has the keys %s by the schema; the parser says %v", path, want, err)
				}
				required, _ := s["required"].([]any)
				for key, e := range v {
					delete(v, key)
					err := parseDocument(t, doc)
					v[key] = e
					missing := err != nil && err.What == fmt.Sprintf("%q is missing", key)
					if slices.Contains(required, any(key)) != missing {
						t.Errorf("%s.%s is required by the schema: %v; without it the parser says %v", path, key, !missing, err)
					}
				}
			}
			for key, e := range v {
				sub, ok := properties[key].(map[string]any)
				if !ok {
					sub, ok = s["additionalProperties"].(map[string]any)
				}
				if ok {
					walk(sub, e, path+"."+key, func(x any) { v[key] = x })
				}
			}
		case []any:
			items, _ := s["items"].(map[string]any)
			for i, e := range v {
				walk(items, e, fmt.Sprintf("%s[%d]", path, i), func(x any) { v[i] = x })
			}
		}
	}
	walk(d.root, doc, "", func(any) {})
	if objects < 15 || words < 10 {
		t.Errorf("only %d objects and %d words were looked at", objects, words)
	}
}

// TestJSONSchema_Mappings checks that the shipped mappings and the text cases that load are
// valid by the schema, and that files with an unknown key or word are not.
func TestJSONSchema_Mappings(t *testing.T) {
	t.Parallel()
	d := loadJSONSchema(t)
	check := func(name, text string) {
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err != nil {
			return // the parser's error has more detail
		}
		v = plainJSON(t, v)
		bad := d.check(d.root, v, "")
		_, err := Load(name, []byte(text))
		var e *maperr.SpecError
		switch {
		case err == nil && bad != "":
			t.Errorf("%s: %s\n%s", name, bad, text)
		case errors.As(err, &e) && bad == "" && (e.What == "unknown key" || strings.HasSuffix(e.What, "is missing") || strings.HasPrefix(e.What, "this is ")):
			t.Errorf("%s is valid by the schema; the parser says %v", name, err)
		}
	}
	files, err := filepath.Glob("../../fixtures/subjects/*/mapping.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no shipped mappings: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		check(file, string(text))
	}
	for _, s := range subjects {
		if s.yaml != "" {
			check(s.name, s.yaml)
		}
	}
	check("google", googleMapping)
	check("proto", protoMapping)
	check("versions", versionsMapping)
	datadriven.Walk(t, "testdata/mapping", func(t *testing.T, path string) {
		t.Helper()
		datadriven.RunTest(t, path, func(_ *testing.T, c *datadriven.TestData) string {
			if c.Cmd == "load" {
				check(c.Pos, c.Input)
			}
			return c.Expected
		})
	})
}

// plainJSON converts a YAML value to its JSON form.
func plainJSON(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			v[k] = plainJSON(t, e)
		}
		return v
	case map[any]any:
		m := map[string]any{}
		for k, e := range v {
			m[fmt.Sprint(k)] = plainJSON(t, e)
		}
		return m
	case []any:
		for i, e := range v {
			v[i] = plainJSON(t, e)
		}
		return v
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	}
	return v
}

// TestJSONSchema_Words checks the words in patterns.
func TestJSONSchema_Words(t *testing.T) {
	t.Parallel()
	d := loadJSONSchema(t)
	put := d.root["$defs"].(map[string]any)["put"].(map[string]any)["properties"].(map[string]any)
	pattern := put["codec"].(map[string]any)["pattern"].(string)
	listed := strings.Split(strings.TrimSuffix(strings.TrimPrefix(pattern, "^("), ")$"), "|")
	var want []string
	for _, c := range codec.All[1:] {
		if c.Args != "" {
			want = append(want, c.Name+`\(.+\)`)
		} else {
			want = append(want, c.Name)
		}
	}
	slices.Sort(listed)
	slices.Sort(want)
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("codecs (-parser +schema):\n%s", diff)
	}
}
