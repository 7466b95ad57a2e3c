package layout

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
)

var update = flag.Bool("update", false, "rewrite docs/mapping.md")

const referenceFile = "../../docs/mapping.md"

// TestReference checks that docs/mapping.md matches the schema and the code.
func TestReference(t *testing.T) {
	t.Parallel()
	want := reference(t)
	got, err := os.ReadFile(referenceFile)
	if err == nil && string(got) == want {
		return
	}
	if !*update {
		t.Fatal("docs/mapping.md is not current; run: go generate ./facade/mapping")
	}
	if err := os.MkdirAll("../../docs", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(referenceFile, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// letterLine matches a line of the table of letters: its letter, its value, and its cell as text or in
// hexadecimal digits.
var letterLine = regexp.MustCompile("(?m)^\\| [A-Z]+ \\| `(.)` \\| `([{].*[}])` \\| `([^`]+)`")

// TestReference_Letters checks the table of docs/dynamodb.md with the letter and the cell of each type.
func TestReference_Letters(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/dynamodb.md")
	if err != nil {
		t.Fatal(err)
	}
	seen := map[attr.Type]bool{}
	for _, line := range letterLine.FindAllStringSubmatch(string(text), -1) {
		v, err := attr.UnmarshalValue([]byte(line[2]))
		if err != nil {
			t.Errorf("%s: %v", line[0], err)
			continue
		}
		seen[v.Type] = true
		cell := codec.AppendTagged(nil, v)
		if string(cell[:1]) != line[1] || string(cell) != line[3] && fmt.Sprintf("% x", cell) != line[3] {
			t.Errorf("%s: the cell is %q", line[0], cell)
		}
	}
	if len(seen) != int(attr.M-attr.S)+1 {
		t.Errorf("the table has the types %v", seen)
	}
}

const referenceIntro = `<!-- Generated from facade/mapping/mapping.schema.json and the code by go generate; do not edit. -->

# Mapping files

A mapping file describes how the items of one DynamoDB table become rows of a Bigtable table. Each rule is a pair of inverse functions: its items come back exactly, or the file is rejected with the line that cannot be inverted. The only losses are those that the file accepts.

The file is YAML (JSON is YAML too) and strict: unknown and repeated keys are errors. Anchors, aliases and merge keys are resolved. For help in your editor, point it to the JSON Schema ` + "`facade/mapping/mapping.schema.json`" + `.

` + "```yaml" + `
apiVersion: migration/v1
source:
  table: Products
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {Description: S, Price: N, Tags: SS}
target:
  table: products
  joiner: plain('#')
  families: {a: {gc: {versions: 1}}, s.Tags: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}
rules:
- {name: product, row: ["{PK:s}", "{SK:s}"], put: [{attr: "*", cell: "a:{attr}"}]}
` + "```" + `

The item ` + "`{PK: hats, SK: fedoras#brandA, Price: 30, Tags: [new]}`" + ` becomes the row ` + "`hats#fedoras#brandA`" + ` with the cells ` + "`a:Price`" + ` and ` + "`s.Tags:new`" + `.

This mapping stores a video and its comments in one row, with the comments as cells ordered by time:

` + "```yaml" + `
apiVersion: migration/v1
source:
  table: Videos
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {UploadDate: S, Formats: {M: S}, Content: S}
target:
  table: videos
  families:
    a: {gc: {versions: 1}}
    c: {gc: {versions: 1000}} # the newest thousand comments are kept
    _t: {gc: {versions: 1}} # types that deviate from the schema
rules:
- name: video
  when: {SK: "Video"}
  row: ["{PK:s}"]
  put: [{attr: Formats, cell: "a:Formats", codec: json, ts: {attr: UploadDate, as: iso(s)}}]
- name: comment
  when: {SK: "VideoComment#{t:revms(13)}"} # reversed time in the key
  row: ["{PK:s}"]
  put: [{attr: Content, cell: "c:UserComments", codec: s, ts: "{t}"}]
` + "```" + `
`

func reference(t *testing.T) string {
	t.Helper()
	var root yaml.MapSlice
	if err := yaml.UnmarshalWithOptions(jsonSchema(t), &root, yaml.UseOrderedMap()); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(referenceIntro)
	prefixedKeys(t, &b)
	derivedAttributes(t, &b)
	viewIndexes(t, &b)
	b.WriteString("\n## Keys\n")
	section(&b, "The file", root)
	for _, d := range member(root, "$defs").(yaml.MapSlice) {
		if s := d.Value.(yaml.MapSlice); len(objectsOf(s)) > 0 {
			section(&b, "`"+d.Key.(string)+"`", s)
		}
	}
	encoderTable(t, &b)
	codecTable(t, &b)
	typeCells(t, &b)
	b.WriteString("\n## Errors\n\n| code | meaning |\n|---|---|\n")
	src, err := os.ReadFile("../../facade/maperr/error.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`Code = "(E-[A-Z-]+)"\s+// (.*)`).FindAllStringSubmatch(string(src), -1) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", m[1], m[2])
	}
	return b.String()
}

func member(s yaml.MapSlice, key string) any {
	for _, e := range s {
		if e.Key == key {
			return e.Value
		}
	}
	return nil
}

// objectsOf returns the alternatives of a schema that have properties.
func objectsOf(s yaml.MapSlice) []yaml.MapSlice {
	if _, ok := member(s, "properties").(yaml.MapSlice); ok {
		return []yaml.MapSlice{s}
	}
	var all []yaml.MapSlice
	branches, _ := member(s, "oneOf").([]any)
	for _, branch := range branches {
		all = append(all, objectsOf(branch.(yaml.MapSlice))...)
	}
	return all
}

func section(b *strings.Builder, title string, s yaml.MapSlice) {
	fmt.Fprintf(b, "\n### %s\n\n%s\n\n| key | value | meaning |\n|---|---|---|\n", title, member(s, "description"))
	for _, o := range objectsOf(s) {
		properties(b, "", o)
	}
}

func properties(b *strings.Builder, prefix string, s yaml.MapSlice) {
	required, _ := member(s, "required").([]any)
	for _, p := range member(s, "properties").(yaml.MapSlice) {
		sub := p.Value.(yaml.MapSlice)
		name, meaning := prefix+p.Key.(string), member(sub, "description")
		if meaning == nil {
			meaning = ""
		}
		key := "`" + name + "`"
		if slices.Contains(required, p.Key) {
			key += " (required)"
		}
		fmt.Fprintf(b, "| %s | %s | %s |\n", key, valueOf(sub), cellText(fmt.Sprint(meaning)))
		for _, o := range objectsOf(sub) {
			if name != "same" && member(sub, "$ref") == nil {
				properties(b, name+".", o)
			}
		}
		if items, ok := member(sub, "items").(yaml.MapSlice); ok {
			for _, o := range objectsOf(items) {
				properties(b, name+"[].", o)
			}
		}
	}
}

// valueOf describes in words the values that a schema accepts.
func valueOf(s yaml.MapSlice) string {
	if ref, ok := member(s, "$ref").(string); ok {
		return "[" + strings.TrimPrefix(ref, "#/$defs/") + "](#" + strings.ToLower(strings.TrimPrefix(ref, "#/$defs/")) + ")"
	}
	if enum, ok := member(s, "enum").([]any); ok {
		words := make([]string, len(enum))
		for i, e := range enum {
			words[i] = "`" + fmt.Sprint(e) + "`"
		}
		return strings.Join(words, ", ")
	}
	if branches, ok := member(s, "oneOf").([]any); ok {
		words := make([]string, len(branches))
		for i, e := range branches {
			words[i] = valueOf(e.(yaml.MapSlice))
		}
		return strings.Join(words, " or ")
	}
	switch kind := member(s, "type"); kind {
	case "array":
		return "list of " + valueOf(member(s, "items").(yaml.MapSlice))
	case "object":
		if values, ok := member(s, "additionalProperties").(yaml.MapSlice); ok {
			return "name: " + valueOf(values)
		}
		return "mapping"
	case "integer":
		return fmt.Sprintf("%v to %v", member(s, "minimum"), member(s, "maximum"))
	case nil:
		return "any"
	default:
		return fmt.Sprint(kind)
	}
}

func cellText(text string) string { return strings.ReplaceAll(text, "|", "\\|") }

// encoderTable writes the table of encoders, each with samples.
func encoderTable(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Encoders\n\nIn a template, `{name:encoder}` stands for a key attribute or for a capture, which is a part of one. An encoder accepts only values of its domain. Queries that compare the sort key need an encoder that keeps its order.\n\n" +
		"| encoder | writes | takes | domain | order | example |\n|---|---|---|---|---|---|\n")
	samples := map[string][]struct {
		text string
		v    attr.Value
	}{
		"s":         {{"s", attr.String("hats")}},
		"n":         {{"n", attr.Int(-7)}},
		"b":         {{"b", attr.Binary([]byte{0, 0xff})}},
		"hex":       {{"hex", attr.Binary([]byte{0, 0xff})}},
		"b64u":      {{"b64u", attr.Binary([]byte{0, 0xff})}},
		"pad":       {{"pad(4)", attr.Int(20)}},
		"nord":      {{"nord", attr.Int(20)}},
		"i64":       {{"i64", attr.Int(20)}},
		"ocint":     {{"ocint", attr.Int(20)}},
		"revmax":    {{"revmax", attr.Int(1425330757685)}},
		"revms":     {{"revms(13)", attr.Int(1694372475000)}},
		"iso":       {{"iso(s)", attr.String("2023-09-10T15:21:48")}, {"iso(ms)", attr.String("2023-09-10T15:21:48.123")}, {"iso(s,Z)", attr.String("2023-09-10T15:21:48Z")}, {"iso(ms,Z)", attr.String("2023-09-10T15:21:48.123Z")}},
		"epoch":     {{"epoch(s)", attr.Int(1694359308)}, {"epoch(ms)", attr.Int(1694359308000)}},
		"ver":       {{"ver", attr.Int(3)}},
		"revdigits": {{"revdigits", attr.String("12345")}},
		"revdomain": {{"revdomain", attr.String("maps.google.com")}},
		"strip":     {{"strip(Invoice-)", attr.String("Invoice-0123")}},
		"const":     {{"const(Video)", attr.String("Video")}},
		"salt":      {{"salt(fnv1a32,8,1)", attr.String("u1")}},
		"hash":      {{"hash(md5)", attr.String("u1")}},
	}
	for _, k := range rowkey.Encoders {
		if len(samples[k.Name]) == 0 {
			t.Errorf("encoder %s has no sample", k.Name)
		}
		for i, s := range samples[k.Name] {
			e, err := rowkey.ParseEncoder(s.text, s.v.Type)
			if err != nil {
				t.Fatal(err)
			}
			out, ok := e.EncodeKey(nil, s.v)
			if !ok {
				t.Fatalf("%s does not take %v", s.text, s.v)
			}
			sample, written := "`"+s.v.Str+"`", "`"+string(out)+"`"
			if s.v.Type == attr.B {
				sample = fmt.Sprintf("bytes `%x`", s.v.Str)
			}
			if e.Bytes {
				written = fmt.Sprintf("bytes `%x`", out)
			}
			order := map[rowkey.KeyOrder]string{rowkey.NoOrder: "none", rowkey.SameOrder: "kept", rowkey.ReversedOrder: "reversed"}[e.Order]
			takes, domain := s.v.Type.String(), e.Expected
			if e.Derived {
				takes, domain = "any", "any; the value itself must be stored elsewhere"
			}
			name, doc := "`"+k.Name+k.Args+"`", k.Doc
			if i > 0 {
				name, doc = "", ""
			}
			fmt.Fprintf(b, "| %s | %s | %s | %s | %s | `%s`: %s → %s |\n", cellText(name), doc, takes, domain, order, s.text, sample, written)
		}
	}
	b.WriteString("\n`nord` writes `P`, the exponent of ten plus 300 in three digits, and the digits of the number without zeros at the end: 12.5 is `P301125`. A negative number has `N`, each digit of that subtracted from 9, and `~`; zero is `O`.\n")
	fmt.Fprintf(b, "\nThe hashes of `salt` and `hash` are %s. A read without the salted value reads all shards and merges the results.\n", strings.Join(slices.Sorted(maps.Keys(rowkey.Digests)), ", "))
}

// codecTable writes the table of codecs, each with samples.
func codecTable(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Codecs\n\nA value outside a codec's domain is stored in its native form with its type in `_t`, or refused without `_t`.\n\n| codec | writes | domain | example |\n|---|---|---|---|\n")
	type sample struct {
		v      attr.Value
		schema codec.Schema
	}
	document := sample{attr.MapOf(map[string]attr.Value{"k": attr.Int(1)}), codec.Schema{Type: attr.M, Elem: &codec.Schema{Type: attr.N}}}
	samples := map[string][]sample{
		"":        {{attr.Int(30), codec.Schema{Type: attr.N}}, document},
		"s":       {{attr.String("x"), codec.Schema{}}},
		"n":       {{attr.Int(30), codec.Schema{}}},
		"b":       {{attr.Binary([]byte{0, 0xff}), codec.Schema{}}},
		"bool":    {{attr.Boolean(true), codec.Schema{}}},
		"text":    {{attr.Boolean(true), codec.Schema{Type: attr.BOOL}}},
		"b64":     {{attr.Binary([]byte{0, 0xff}), codec.Schema{}}},
		"i64be":   {{attr.Int(30), codec.Schema{}}},
		"f64be":   {{attr.Value{Type: attr.N, Str: "0.5"}, codec.Schema{}}},
		"nord":    {{attr.Int(30), codec.Schema{}}},
		"json":    {document},
		"ddbjson": {{document.v, codec.Schema{}}},
		"flatten": nil, "omit": nil, "proto": nil, // below the table
	}
	for _, c := range codec.All {
		name := "`" + c.Name + c.Args + "`"
		if c == codec.ByType {
			name = "by type"
		}
		of, ok := samples[c.Name]
		if !ok {
			t.Errorf("codec %s has no sample", c.Name)
		}
		if len(of) == 0 {
			fmt.Fprintf(b, "| %s | %s | | below |\n", name, c.Doc)
		}
		for i, s := range of {
			out, ok := c.Encode(s.v, s.schema)
			if !ok {
				t.Fatalf("codec %s does not take %v", c.Name, s.v)
			}
			doc := c.Doc
			if i > 0 {
				name, doc = "", ""
			}
			fmt.Fprintf(b, "| %s | %s | %s | `%s` → %s |\n", name, doc, cmp.Or(c.Expected(s.schema), "any value"), attr.AppendJSON(nil, s.v), cellText("`"+strings.Trim(rowtext.ValueText(out), `"`)+"`"))
		}
	}
	b.WriteString("\n`flatten` writes a map as one cell per leaf: `{key}` (or `{attr}` of `\"*\"`) is then a path, keys joined by dots, with `.`, `[` and `\\` escaped by a `\\`.\n\n" +
		"`omit` encodes by type, but writes no cell for a NULL. The attribute is then missing in the item that comes back, which `accept_loss: [{what: null}]` must accept. NULLs inside maps and lists are kept.\n\n" +
		"`proto(file, message)` writes a protobuf message. The file is a descriptor set next to the mapping (`protoc --descriptor_set_out=users.binpb --include_imports users.proto`); fields have their names in the `.proto` file, and a wrapper such as `google.protobuf.StringValue` is its scalar. Under `\"*\"`, with no `{attr}` in the qualifier, the item is one message whose fields are its attributes. Reports show the fields.\n\n" +
		"This is for mappings; without one, a set, map or list is [one cell](dynamodb.md#rows-of-a-table). By type, in a row that belongs to one item: a set has one cell per member in the family `s.<attribute>`, and a map one cell per key in `m.<attribute>`, if those families are declared. A list has one cell per element, in the order of timestamps, if its family has no garbage collection, or keeps two or more versions and has no maximum age; a list with more elements than versions is then one cell of JSON, whose type is in `_t`. A put of the attribute says how members are written: `cell: \"s.Scores:{member:nord}\"` sorts numbers by value.\n")
}

// prefixedKeys writes the row keys of an item by several rules, and the one that is refused.
func prefixedKeys(t *testing.T, b *strings.Builder) {
	t.Helper()
	item := attr.Item{"PK": attr.String("CUSTOMER#c1"), "SK": attr.String("ORDER#o1")}
	place := func(when, row, joiner string) (lens.Placed, error) {
		m, err := Load("m.yaml", []byte("apiVersion: migration/v1\nsource: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}}\n"+
			"target: {table: t, joiner: \""+joiner+"\", families: {a: {}, _t: {}}}\nrules:\n- {name: item, when: "+when+", row: "+row+", put: [{attr: '*', cell: 'a:{attr}'}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		return m.Place(item, 0)
	}
	b.WriteString("\n## Row keys of keys with a prefix\n\nThe template in `when` matches a whole key attribute and captures a part of it, and `row` writes captures or whole attributes. These are the row keys of the item `{PK: \"CUSTOMER#c1\", SK: \"ORDER#o1\"}`:\n\n" +
		"| `when` | `row` | `joiner` | row key |\n|---|---|---|---|\n")
	const both = `["{PK:s}", "{SK:s}"]`
	for _, s := range []struct{ when, row, joiner string }{
		{`{PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}`, `["{c:s}", "{o:s}"]`, "plain('#')"},
		{`{PK: "CUSTOMER#{c}"}`, `["{c:s}", "{SK:s}"]`, "plain('#')"},
		{"{}", both, "plain('!')"},
		{"{}", both, "escaped('#')"},
	} {
		placed, err := place(s.when, s.row, s.joiner)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(b, "| `%s` | `%s` | `%s` | `%s` |\n", s.when, s.row, s.joiner, placed.Row)
	}
	if _, err := place("{}", both, "plain('|')"); err == nil || !strings.Contains(err.Error(), "E-DELIM") {
		t.Errorf("plain('|') gives %v, want E-DELIM", err)
	}
	b.WriteString("\n`tabletop migrate infer` writes the last one if a key has a `#` before its last segment, and reports `plain('#') would confuse keys`. To get readable row keys, change the joiner or use captures. The delimiter of `plain` must sort before every byte of all segments but the last, since row order is key order. So `plain('!')` takes keys with `#`, and `plain('|')` refuses letters with `E-DELIM`.\n")
}

// derivedAttributes writes a mapping with derived attributes, and the cells of items under it.
func derivedAttributes(t *testing.T, b *strings.Builder) {
	t.Helper()
	const text = `apiVersion: migration/v1
source:
  table: Desk
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  ttl: {attribute: expiresAt}
  gsis: [{name: GSI1, hash: GSI1PK, range: GSI1SK}]
target:
  table: desk
  families: {a: {}, s: {gc: {maxAge: 30d}}, _t: {}}
rules:
- name: ticket
  when: {PK: "TICKET#{n}", same: [SK, PK]}
  row: [ticket, "{n}"]
  schema: {subject: S, status: S, openedAt: S}
  derive: {type: const(Ticket), GSI1PK: "STATUS#{status}", GSI1SK: "{openedAt}"}
  put: [{attr: "*", cell: "a:{attr}"}]
- name: session
  when: {PK: "USER#{u}", SK: "SESSION#{s}"}
  row: [session, "{u}", "{s}"]
  schema: {agent: S, expiresAt: N}
  ttl: {attribute: expiresAt, mode: shift(30d)} # garbage collection deletes them
  put: [{attr: "*", cell: "s:{attr}"}]
`
	m, err := Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## Rules with a schema, derived attributes and a time to live\n\nIn this table each rule has attributes of its own. `derive` omits the type and the index keys of a ticket, since templates give them:\n\n```yaml\n" + text + "```\n\n" +
		"| item | cells |\n|---|---|\n")
	for _, s := range []struct{ what, item string }{
		{"its attributes equal the templates", `{"PK":{"S":"TICKET#7"},"SK":{"S":"TICKET#7"},"status":{"S":"OPEN"},"openedAt":{"S":"2024-05-14"},"type":{"S":"Ticket"},"GSI1PK":{"S":"STATUS#OPEN"},"GSI1SK":{"S":"2024-05-14"}}`},
		{"after `SET status = SHUT` alone, as in DynamoDB", `{"PK":{"S":"TICKET#7"},"SK":{"S":"TICKET#7"},"status":{"S":"SHUT"},"openedAt":{"S":"2024-05-14"},"type":{"S":"Ticket"},"GSI1PK":{"S":"STATUS#OPEN"},"GSI1SK":{"S":"2024-05-14"}}`},
		{"without the index keys", `{"PK":{"S":"TICKET#7"},"SK":{"S":"TICKET#7"},"status":{"S":"SHUT"},"openedAt":{"S":"2024-05-14"},"type":{"S":"Ticket"}}`},
	} {
		item, err := attr.UnmarshalItem([]byte(s.item))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := m.Place(item, 0)
		if err != nil {
			t.Fatal(err)
		}
		var cells []string
		for _, c := range placed.Cells {
			cells = append(cells, fmt.Sprintf("`%s:%s = %s`", c.Family, c.Qualifier, c.Value))
		}
		fmt.Fprintf(b, "| %s | %s |\n", s.what, strings.Join(cells, "<br>"))
	}
	b.WriteString("\nReaders of the rows compute derived attributes in the same way, and look into `_t:i/<rule>/` for exceptions. A native write of `a:status` also changes the attributes that follow from it, unless they are exceptions. Indexes contain derived keys like others. A put of a key attribute or of a capture keeps it in a cell as well, for native readers, or so that the item can be in the row of another rule: `{attr: \"{n}\", cell: \"a:number\"}`.\n")
}

// viewIndexes writes a mapping with views, their queries, and a row of each.
func viewIndexes(t *testing.T, b *strings.Builder) {
	t.Helper()
	const text = `apiVersion: migration/v1
source:
  table: Orders
  key: {hash: {name: id, type: S}}
  schema: {city: S, rank: N, note: S}
  gsis:
  - {name: by-rank, hash: city, range: rank, projection: [note], as: view}
  - {name: by-city, hash: city, as: view}
target:
  table: orders
  families: {a: {}, _t: {}}
rules:
- name: order
  row: ["{id}"]
  put: [{attr: rank, cell: "a:rank", codec: nord}, {attr: "*", cell: "a:{attr}"}]
`
	m, err := Load("m.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n## Indexes as materialized views\n\nAn index with `as: view` is a continuous materialized view of the table. Bigtable updates it after each write of any client, with a delay, and no client writes it. `migrate load` creates the view; `migrate plan` prints the query of each:\n\n```yaml\n" + text + "```\n\n```sql\n" +
		m.Views()[0].SQL() + "\n" + m.Views()[1].SQL() + "```\n\n")
	at, err := m.Views()[0].Locate(attr.Item{"id": attr.String("o1"), "city": attr.String("Rome"), "rank": attr.Int(7)})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(b, "The row key of an entry is the ordered code of the cells of the index's key and of the row key in the table: `%s` for the item `{id: o1, city: Rome, rank: 7}`, where `00 01` separates. ", strings.ReplaceAll(string(at.Row), "\x00\x01", " 00 01 "))
	b.WriteString("A view of all attributes has the families of the table. Another view has a cell `default:NAME` for each attribute, and `default:_type_NAME` for a value whose type differs from the schema's.\n\n" +
		"The DynamoDB endpoint reads a view as the index. Native readers name the view instead of a table. In Python the entries of Rome, and those with a rank from 7 to 9 by [SQL](sql.md#from-a-program), whose rows also have the columns of the key:\n\n" +
		"```python\nview = client.get_materialized_view(\"my-instance\", \"orders__by-rank\")\n" +
		"rome = view.read_rows(ReadRowsQuery(row_ranges=RowRange(b\"Rome\\x00\\x01\", b\"Rome\\x00\\x02\")))\n" +
		"query = \"SELECT * FROM `orders__by-rank` WHERE city = @city AND rank BETWEEN @low AND @high ORDER BY rank\"\n" +
		"rows = client.execute_query(query, \"my-instance\", parameters={\"city\": b\"Rome\", \"low\": b\"P3007\", \"high\": b\"P3009\"})\n```\n\n" +
		"An [access pattern](access.md#sql) checks such a read, in either form, against the answer of DynamoDB.\n\n" +
		"An index can be a view if, in each rule whose items it can have:\n\n" +
		"* each key attribute of the index has one cell, in the same column under all rules, that sorts as the values do: no codec for S and B, `nord` for N. It has no `derive`, its type is in the schema, and a key attribute of the table has a put of its own;\n" +
		"* each other projected attribute has one cell of one column too. If the view has all attributes, sets, maps and derived attributes may have their usual cells;\n" +
		"* no projected attribute is kept in timestamps (`ts`, `ttl`) or versions (lists), since a view has the newest cell of each column, at time 0.\n\n" +
		fmt.Sprintf("`shard`, `row`, `joiner` and `lag` are for tables. A table can have %d views. The query of a view cannot change: if the mapping changes it, `load` asks to delete the view first. It asks for the same if the index becomes a table, or to delete the table if it becomes a view. Bigtable leaves a row of more than 1 MiB out of a view. An item whose row key in the view would exceed 4 KiB is refused.\n", maxViews))
}

// typeCells writes the table of types, each as it is laid out by type, in the row of its own
// item.
func typeCells(t *testing.T, b *strings.Builder) {
	t.Helper()
	b.WriteString("\n## Bytes and timestamps of each type\n\nThis table is for authors of loaders. It shows the cells of the attribute `x` of an item with a row of its own, under `{attr: \"*\", cell: \"a:{attr}\"}` without a codec and without `ts`. Timestamps are in microseconds; `default` is `timestamps.default`. Values are text in quotes, or bytes in hexadecimal digits.\n\n" +
		"| schema | families | value | cells |\n|---|---|---|---|\n")
	const micros = 1600000000000000
	for _, s := range []struct{ schema, families, value string }{
		{"S", "a", `{"S":"y"}`},
		{"N", "a", `{"N":"30"}`},
		{"B", "a", `{"B":"AP8="}`},
		{"BOOL", "a", `{"BOOL":true}`},
		{"BOOL", "a", `{"BOOL":false}`},
		{"'NULL'", "a", `{"NULL":true}`},
		{"SS", "a", `{"SS":["p","q"]}`},
		{"SS", "s.x", `{"SS":["p","q"]}`},
		{"NS", "s.x", `{"NS":["1","20"]}`},
		{"BS", "s.x", `{"BS":["AP8="]}`},
		{"{M: {k: N, l: L}}", "a", `{"M":{"k":{"N":"1"},"l":{"L":[{"S":"y"}]}}}`},
		{"{M: {k: N, l: L}}", "m.x", `{"M":{"k":{"N":"1"},"l":{"L":[{"S":"y"}]}}}`},
		{"M", "a", `{"M":{}}`},
		{"M", "m.x", `{"M":{}}`},
		{"L", "a", `{"L":[{"S":"y"},{"N":"1"},{"B":"AP8="},{"BOOL":true},{"NULL":true},{"L":[]},{"M":{"k":{"N":"1"}}},{"SS":["p"]},{"NS":["1"]},{"BS":["AP8="]}]}`},
		{"L", "a", `{"L":[]}`},
		{"N", "a", `{"S":"thirty"}`},
		{"S", "a", `{"M":{"k":{"N":"1"}}}`},
		{"S", "a", `{"L":[{"N":"1"}]}`},
	} {
		extra := ""
		if s.families != "a" {
			extra = s.families + ": {}, "
		}
		m, err := Load("m.yaml", []byte("apiVersion: migration/v1\nsource: {table: T, key: {hash: {name: pk, type: S}}, schema: {x: "+s.schema+"}}\n"+
			"target: {table: t, families: {a: {}, "+extra+"_t: {}}}\nrules:\n- {name: item, row: ['{pk:s}'], put: [{attr: '*', cell: 'a:{attr}'}]}\n"))
		if err != nil {
			t.Fatal(err)
		}
		v, err := attr.UnmarshalValue([]byte(s.value))
		if err != nil {
			t.Fatal(err)
		}
		placed, err := m.Place(attr.Item{"pk": attr.String("k"), "x": v}, micros)
		if err != nil {
			t.Fatal(err)
		}
		var cells []string
		for _, c := range placed.Cells {
			at := "default"
			if c.Timestamp != micros {
				at = fmt.Sprint(c.Timestamp)
			}
			cells = append(cells, fmt.Sprintf("`%s:%s @%s = %s`", c.Family, strings.Trim(rowtext.ValueText(c.Qualifier), `"`), at, rowtext.ValueText(c.Value)))
		}
		fmt.Fprintf(b, "| `%s` | `%s` | `%s` | %s |\n", s.schema, s.families, s.value, strings.Join(cells, "<br>"))
	}
	b.WriteString("\nUnder a mapping, the elements of a list are versions of one column, at 2010-01-01T00:00:00Z plus the element's index, from 0, in milliseconds, independent of the default timestamp (`order: newest-first`: minus the index). Each value begins with the letter of the element's type, followed by the scalar as above, or by the canonical DynamoDB JSON after its type. A document in one cell is canonical DynamoDB JSON: no blanks, keys of maps and members of sets in order. The members of a set in a family of its own are qualifiers, whose cells hold one zero byte.\n\n" +
		"The marks in `_t`, at `default`: `a/<attribute>` holds the letter of the value's type if it differs from the schema, then `j` if the value is one cell of JSON, or `e` if it is an empty map or list, which has no cell. In a family of maps, and in rows of several items, the mark is `c/<family>:<qualifier>`. Key attributes whose text is in the row key have no cell.\n")
}
