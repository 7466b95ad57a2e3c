package layout

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/layout/mapfile"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/layout/rowtext"
	"github.com/tabletop-emu/tabletop/internal/layout/secondary"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// Texts that attack mappings: delimiters, escapes, prefixes of one another, bytes at the ends
// of the alphabet. Each draw gets its own generator, since parallel tests cannot share one.
func hostileText() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		bits := rapid.SampledFrom([]string{"#", "$", "$23", "\x00", "\x01", "\x00\x01", "a", "b", "ab", "é", "~", "/", ":", ".", " ", "\"", "{", "}", "0", "9", "\uffff", "\U0010ffff", "C", "c/"})
		return strings.Join(rapid.SliceOfN(bits, 0, 5).Draw(t, "bits"), "")
	})
}

func hostileNumber() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		text := rapid.OneOf(
			rapid.SampledFrom([]string{"0", "-1", "1", "3", "20", "0.5", "-1.2", "-1.23", "1E-130", "9.99E+125", "99999999999999999999999999999999999999", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "1694372475000", "1425330757685", "42"}),
			rapid.Custom(func(t *rapid.T) string { return fmt.Sprint(rapid.Int64Range(-50, 2000).Draw(t, "int")) }),
			rapid.Custom(func(t *rapid.T) string {
				return fmt.Sprintf("%dE%d", rapid.Int64().Draw(t, "mantissa"), rapid.IntRange(-100, 90).Draw(t, "exponent"))
			}),
		).Draw(t, "number")
		canonical, err := attr.ParseNumber(text)
		if err != nil {
			t.Fatal(err)
		}
		return canonical
	})
}

func hostileBytes() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 0x23, 0x24, 'a', 0x7f, 0xfe, 0xff}), 0, 10).Draw(t, "bytes"))
	})
}

func drawValue(t *rapid.T, depth int) attr.Value {
	types := []attr.Type{attr.S, attr.N, attr.B, attr.BOOL, attr.NULL, attr.SS, attr.NS, attr.BS}
	if depth > 0 {
		types = append(types, attr.L, attr.M)
	}
	switch kind := rapid.SampledFrom(types).Draw(t, "type"); kind {
	case attr.S:
		return attr.String(hostileText().Draw(t, "s"))
	case attr.N:
		return attr.Value{Type: attr.N, Str: hostileNumber().Draw(t, "n")}
	case attr.B:
		return attr.Value{Type: attr.B, Str: hostileBytes().Draw(t, "b")}
	case attr.BOOL:
		return attr.Boolean(rapid.Bool().Draw(t, "bool"))
	case attr.SS:
		return attr.SetOf(kind, rapid.SliceOfN(hostileText(), 1, 4).Draw(t, "ss")...)
	case attr.NS:
		return attr.SetOf(kind, rapid.SliceOfN(hostileNumber(), 1, 4).Draw(t, "ns")...)
	case attr.BS:
		return attr.SetOf(kind, rapid.SliceOfN(hostileBytes(), 1, 4).Draw(t, "bs")...)
	case attr.L:
		v := attr.Value{Type: attr.L}
		for range rapid.IntRange(0, 3).Draw(t, "elements") {
			v.List = append(v.List, drawValue(t, depth-1))
		}
		return v
	case attr.M:
		m := map[string]attr.Value{}
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			m["k"+hostileText().Draw(t, "key")] = drawValue(t, depth-1)
		}
		return attr.MapOf(m)
	case attr.NULL, attr.Absent:
	}
	return attr.Null()
}

func drawKeyValue(t *rapid.T, kind attr.Type) attr.Value {
	switch {
	case kind == attr.N:
		return attr.Value{Type: attr.N, Str: hostileNumber().Draw(t, "key n")}
	case kind == attr.B:
		return attr.Value{Type: attr.B, Str: "\x01"[:rapid.IntRange(0, 1).Draw(t, "lead")] + hostileBytes().Filter(func(s string) bool { return s != "" }).Draw(t, "key b")}
	default:
		return attr.String(hostileText().Filter(func(s string) bool { return s != "" }).Draw(t, "key s"))
	}
}

// subject is a mapping under attack.
type subject struct {
	name string
	yaml string
	// keys draws a text that the rules sometimes accept, for each key attribute of type S; nil
	// draws hostile texts.
	keys  func(t *rapid.T) (pk, sk string)
	attrs []string
	// total means that every item with an accepted key is placed.
	total bool
	// derived draws the items from the mapping itself: items that its rules accept, and near
	// misses.
	derived bool
}

const (
	keysSN = "  key: {hash: {name: PK, type: S}, range: {name: SK, type: N}}\n"
	keysSS = "  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}\n"
	schema = "  schema: {a: BOOL, b: 'NULL', c: SS, d: NS, e: L, f: {M: {g: N, k: S}, else: BOOL}, j: B, k: BS, l: S, n: N, o: M}\n"
	types  = "  families: {a: {}, s.c: {}, s.d: {}, s.k: {}, m.f: {}, s.z.20z: {}, m.y: {}, _t: {}}\n"
	star   = "rules: [{name: item, row: ['{PK}', '{SK}'], put: [{attr: '*', cell: 'a:{attr}'}]}]\n"
)

func typed(joiner, keys, row string) string {
	return "apiVersion: migration/v1\nsource:\n" + keys + schema + "target:\n  table: t\n  joiner: " + joiner + "\n" + types +
		"on: {unknown-attribute: sidecar}\nrules: [{name: item, row: [" + row + "], put: [{attr: '*', cell: 'a:{attr}'}]}]\n"
}

func expiring(mode, age string) string {
	text := strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "target:", "  ttl: {attribute: Expires, mode: "+mode+"}\ntarget:", 1)
	return strings.ReplaceAll(text, ": {}", ": {gc: {maxAge: "+age+"}}")
}

func wideKeys(t *rapid.T) (pk, sk string) {
	millis := rapid.SampledFrom([]string{"8305627524999", "8305636557999", "8305636557998", "9999999999999", "0000000000000", "x"}).Draw(t, "millis")
	sk = rapid.SampledFrom([]string{"Video", "VideoComment#" + millis, "VideoStats", "VideoStatsLikes", "VideoStatsViews", "tag#" + hostileText().Draw(t, "tag"), "two#" + hostileText().Draw(t, "x") + "/" + hostileText().Draw(t, "y"), "o", "P-1"}).Draw(t, "sk")
	return rapid.SampledFrom([]string{"1", "2", "P-1", "P-#", "P-"}).Draw(t, "pk"), sk
}

var wide = `apiVersion: migration/v1
source:
` + keysSS + `  schema: {UploadDate: S, Formats: {M: S}, Content: S, Count: N, ViewCount: N, l: S, a: BOOL, c: SS, f: {M: N}}
target: {table: videos, families: {a: {}, c: {}, g: {}, x: {}, y: {}, sets: {}, maps: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: video,   when: {SK: "Video"}, row: ["{PK:s}"], put: [{attr: Formats, cell: "a:Formats", codec: json, ts: {attr: UploadDate, as: iso(s)}}]}
- {name: comment, when: {SK: "VideoComment#{t:revms(13)}"}, row: ["{PK:s}"], put: [{attr: Content, cell: "c:UserComments", codec: s, ts: "{t}"}, {attr: l, cell: "c:l", ts: "{t}"}]}
- {name: likes,   when: {SK: "VideoStatsLikes"}, row: ["{PK:s}"], put: [{attr: Count, cell: "a:Likes", codec: i64be}]}
- {name: views,   when: {SK: "VideoStatsViews"}, row: ["{PK:s}"], put: [{attr: Count, cell: "a:Views", codec: i64be}]}
- {name: views2,  when: {SK: "VideoStats"}, row: ["{PK:s}"], put: [{attr: ViewCount, cell: "a:Views", codec: i64be}], tag: true}
- {name: tags,    when: {SK: "tag#{x}"}, row: ["{PK:s}"], put: [{attr: null, cell: "g:{x}"}, {attr: l, cell: "x:{x}"}]}
- {name: two,     when: {SK: "two#{x}/{y}"}, row: ["{PK:s}"], put: [{attr: c, cell: "sets:{x}/{y}/{member}"}, {attr: f, cell: "maps:{x}/{y}/{key}"}]}
- {name: self,    when: {PK: "P-{id}", same: [PK, SK]}, row: ["other", "{id}"], put: [{attr: "*", cell: "y:{attr}"}]}
`

var subjects = []subject{
	{name: "escaped", yaml: typed("auto", keysSS, "'{PK}', '{SK}'"), total: true},
	{name: "plain", yaml: typed("plain('#')", keysSS, "'{PK}', '{SK}'"), total: true},
	{name: "swapped", yaml: typed("oc", keysSS, "'{SK}', x, '{PK}'"), total: true},
	{name: "oc numbers", yaml: typed("oc", "  key: {hash: {name: PK, type: N}, range: {name: SK, type: N}}\n", "'{PK}', '{SK}'"), total: true},
	{name: "escaped numbers", yaml: typed("escaped('!')", "  key: {hash: {name: PK, type: N}, range: {name: SK, type: N}}\n", "'{PK}', '{SK}', 'end'"), total: true},
	{name: "binary", yaml: typed("oc", "  key: {hash: {name: PK, type: B}, range: {name: SK, type: B}}\n", "'{PK:hex}', '{SK}'"), total: true},
	{name: "fixed", yaml: typed("fixed", "  key: {hash: {name: PK, type: N}, range: {name: SK, type: N}}\n", "'{PK:i64}', '{SK:revms(13)}', '{PK:pad(4)}'")},
	{name: "middle", yaml: typed("plain('#')", "  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}\n", "x, '{PK}', '{SK}', y"), total: true},
	{name: "hash only", yaml: typed("auto", "  key: {hash: {name: PK, type: S}}\n", "'pre{PK}'"), total: true},
	{
		name: "captures", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, joiner: auto, families: {a: {}, m.f: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: order, when: {SK: "C{rest}"}, row: ["{PK}", O, "{rest}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: dotted, when: {SK: "{x}.{y}"}, row: ["{PK}", D, "{x}", "{y}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: rest, row: ["{PK}", R, "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`, total: true,
	},
	{
		name: "same rows", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, joiner: plain('#'), families: {a: {}, b: {}, m.f: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- {name: c, when: {SK: "C{x}"}, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "b:{attr}"}]}
- {name: a, when: {SK: "a"}, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}", codec: json}]}
- {name: rest, row: ["{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}", codec: ddbjson}]}
`, total: true,
	},
	{name: "dated", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "cell: 'a:{attr}'", "cell: 'a:{attr}', ts: {attr: UploadDate, as: iso(s)}", 1), attrs: []string{"UploadDate", "UploadDate"}, total: true},
	{name: "dated by key", yaml: strings.Replace(typed("auto", keysSN, "'{PK}', '{SK}'"), "cell: 'a:{attr}'", "cell: 'a:{attr}', ts: {attr: SK, as: epoch(ms)}", 1)},
	{name: "one second", yaml: expiring("one-second", "1s"), attrs: []string{"Expires", "Expires", "Expires"}, total: true},
	{name: "shifted", yaml: expiring("shift(720h)", "720h"), attrs: []string{"Expires", "Expires", "Expires"}, total: true},
	{
		name: "shared expiry", yaml: strings.Replace(strings.Replace(expiring("one-second", "1s"), "'{PK}', '{SK}'", "'{PK}'", 1), "'a:{attr}'", "'a:{SK}/{attr}'", 1),
		attrs: []string{"Expires", "Expires", "Expires"}, total: true,
	},
	{
		name: "flattened", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "put: [{attr: '*', cell: 'a:{attr}'}]",
			`put: [{attr: f, cell: "a:k.x"}, {attr: '*', cell: 'a:{attr}', codec: flatten}]`, 1),
	},
	{
		name: "flattened wide", yaml: `apiVersion: migration/v1
source:
` + keysSN + schema + `target: {table: t, families: {a: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules: [{name: item, row: ['{PK}'], put: [{attr: f, cell: 'a:f/{SK:nord}/{key}', codec: flatten}, {attr: o, cell: 'a:o/{SK:nord}/{key}', codec: flatten}]}]
`,
	},
	{
		name: "codecs", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, families: {a: {}, _t: {}}}
on: {unknown-attribute: sidecar}
rules:
- name: item
  row: ['{PK}', '{SK}']
  put: [{attr: a, cell: "a:a", codec: text}, {attr: b, cell: "a:b", codec: text}, {attr: j, cell: "a:j", codec: text}, {attr: l, cell: "a:l", codec: text}, {attr: n, cell: "a:n", codec: f64be},
    {attr: y, cell: "a:y", codec: f64be}, {attr: f, cell: "a:f", codec: b64}, {attr: e, cell: "a:e", order: newest-first}, {attr: "~", cell: "a:~", codec: i64be}, {attr: '*', cell: 'a:+{attr}', order: newest-first}]
`, total: true,
	},
	{
		name: "shared family", yaml: strings.NewReplacer("s.c: {}, s.d: {}, s.k: {}, m.f: {}", "s.c: {}, m.f: {}, x: {}", "target:", "target:\n  shared: x").Replace(typed("auto", keysSS, "'{PK}', '{SK}'")),
		total: true,
	},
	{
		name: "determined by qualifier", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, families: {c: {}, d: {}, _t: {}}}
on: {unknown-attribute: sidecar, collision: qualifier}
rules:
- {name: comment, when: {SK: "C#{t:revms(13)}#{who}"}, row: ['{PK}'], put: [{attr: n, cell: "c:note", ts: "{t}"}, {attr: '*', cell: 'c:all', codec: ddbjson, ts: "{t}"}]}
- {name: rest, row: ['{PK}'], put: [{attr: '*', cell: 'd:{attr}'}]}
`, total: true,
		keys: func(t *rapid.T) (pk, sk string) {
			pk = rapid.SampledFrom([]string{"p", "q"}).Draw(t, "pk")
			if rapid.Bool().Draw(t, "comment") {
				return pk, "C#" + rapid.SampledFrom([]string{"8305627524999", "8305636557999"}).Draw(t, "t") + "#" + hostileText().Draw(t, "who")
			}
			return pk, "x" + hostileText().Draw(t, "sk")
		},
	},
	{
		name: "spelled members", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "put: [",
			"put: [{attr: c, cell: 's.c:{member:revdomain}'}, {attr: d, cell: 's.d:{member:nord}'}, {attr: k, cell: 's.k:x{member:hex}'}, {attr: f, cell: 'm.f:{key:revdomain}'}, ", 1),
		total: true,
	},
	{name: "spelled in part", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "put: [", "put: [{attr: d, cell: 's.d:{member:i64}'}, {attr: c, cell: 's.c:{member:revdigits}'}, {attr: f, cell: 'm.f:{key:strip(k)}'}, ", 1), total: true},
	{name: "lists of two", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "{a: {},", "{a: {gc: {versions: 2}},", 1), total: true},
	{
		name: "determined by time", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, families: {v: {gc: {versions: 10}}, _t: {gc: {versions: 10}}}}
on: {unknown-attribute: sidecar}
rules: [{name: doc, row: ["{PK}"], put: [{attr: l, cell: "v:=", codec: nord, ts: {attr: SK, as: iso(ms)}}, {attr: "*", cell: "v:+{attr}", ts: {attr: SK, as: iso(ms)}}]}]
`, total: true,
		keys: func(t *rapid.T) (pk, sk string) {
			return rapid.SampledFrom([]string{"p", "p#", "q"}).Draw(t, "pk"), fmt.Sprintf("2020-11-0%dT10:00:00.%03d", rapid.IntRange(0, 4).Draw(t, "day"), rapid.IntRange(0, 2).Draw(t, "ms"))
		},
	},
	{name: "a schema for each rule", yaml: entitiesMapping, derived: true},
	{name: "segments of two numbers", yaml: strings.Replace(orgsMapping, "JOINER", "auto", 1), derived: true},
	{name: "kept keys", yaml: ordersMapping, derived: true},
	{name: "one rule expires", yaml: strings.Replace(sessionsMapping, "TYPES", "", 1), derived: true},
	{name: "one rule expires with its types", yaml: strings.Replace(strings.Replace(sessionsMapping, "TYPES", "gc: {maxAge: 30d}", 1), "- {name: doc", "#", 1), derived: true},
	{name: "rules expire their own way", yaml: expiriesMapping, derived: true},
	{name: "derived", yaml: derivingMapping, derived: true},
	{name: "derived without a sidecar", yaml: strings.NewReplacer(", _t: {}", "", "on: {unknown-attribute: sidecar}", "accept_loss: [{what: absent, why: test}]").Replace(derivingMapping), derived: true},
	{name: "salted S", yaml: typed("plain('#')", keysSS, "'{SK:salt(fnv1a32,8,1)}', '{PK}', '{SK}'"), total: true},
	{name: "salted N", yaml: typed("oc", keysSN, "'s', '{PK}', '{SK:salt(sha256,3,2)}', '{SK}'"), total: true},
	{name: "salted newest first", yaml: typed("escaped", keysSN, "'{SK:salt(crc32,4,1)}', '{PK}', '{SK:revmax}'")},
	{name: "salted partition", yaml: typed("fixed", keysSS, "'{PK:salt(md5,10,1)}', '{PK:hash(md5)}', '{PK}/{SK}'")},
	{name: "hashed", yaml: typed("oc", keysSS, "'{PK:hash(fnv1a32)}', '{PK}', '{SK}'"), total: true},
	{
		name: "key in a cell", yaml: strings.Replace(typed("oc", keysSS, "'{PK:hash(sha256)}', '{SK}'"), "put: [", "put: [{attr: PK, cell: 'a:=', codec: ddbjson}, ", 1),
		total: true,
	},
	{
		name: "keys in cells", yaml: strings.Replace(typed("fixed", keysSN, "'{PK:salt(md5,8,1)}', '{PK:hash(md5)}', '{SK:hash(md5)}'"), "put: [", "put: [{attr: PK, cell: 'a:=p'}, {attr: SK, cell: 'a:=s', codec: nord}, ", 1),
		total: true,
	},
	{name: "ordered code", yaml: typed("oc", keysSN, "'{PK}', '{SK:ocint}'")},
	{name: "stripped", yaml: typed("auto", keysSS, "'{PK:strip(a)}', '{SK}'")},
	{name: "stripped sort key", yaml: typed("auto", keysSS, "'{PK}', '{SK:strip(a)}'")},
	{name: "wide", yaml: wide, keys: wideKeys, attrs: []string{"UploadDate", "Formats", "Content", "Count", "ViewCount", "l", "a", "c", "f"}, total: true},
	{
		name: "versions", yaml: `apiVersion: migration/v1
source:
` + keysSS + schema + `target: {table: t, families: {v: {gc: {versions: 10}}, _t: {gc: {versions: 10}}}}
on: {unknown-attribute: sidecar}
rules: [{name: doc, when: {SK: "v{n:ver}_{rest:s}"}, row: ["{PK:s}", "{rest}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}]
`, total: true,
		keys: func(t *rapid.T) (pk, sk string) {
			return rapid.SampledFrom([]string{"p", "p#", "q"}).Draw(t, "pk"), fmt.Sprintf("v%d_%s", rapid.IntRange(0, 12).Draw(t, "n"), rapid.SampledFrom([]string{"1", "_", "é"}).Draw(t, "rest"))
		},
	},
	{name: "blob", yaml: "apiVersion: migration/v1\nsource:\n" + keysSS + "target: {table: t, families: {d: {}}}\nfidelity: blob\nrules: [{name: item, row: ['{PK}', '{SK}'], put: [{attr: '*', cell: 'd:item'}]}]\n", total: true},
	{name: "wide blob", yaml: "apiVersion: migration/v1\nsource:\n" + keysSS + "target: {table: t, families: {d: {}}}\nfidelity: blob\nrules: [{name: item, row: ['{PK}'], put: [{attr: '*', cell: 'd:{SK}'}]}]\n", total: true},
	{name: "idiomatic", yaml: strings.Replace(typed("auto", keysSS, "'{PK}', '{SK}'"), "on: {unknown-attribute: sidecar}", "fidelity: idiomatic", 1)},
	{name: "default SS"},
	{name: "default SN"},
	{name: "default BB"},
	{name: "default S"},
}

func (s subject) mapping(t *testing.T) *Mapping {
	t.Helper()
	if s.yaml != "" {
		m, err := Load(s.name, []byte(s.yaml))
		if err != nil {
			t.Fatalf("%v\n%s", err, s.yaml)
		}
		return m
	}
	var key attr.KeySchema
	for i, tag := range strings.TrimPrefix(s.name, "default ") {
		kind, _ := attr.ParseType(string(tag))
		*[]*attr.KeyAttr{&key.Hash, &key.Range}[i] = attr.KeyAttr{Name: []string{"PK", "SK"}[i], Type: kind}
	}
	m, err := Default("source", "target", key)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (s subject) draw(t *rapid.T, key attr.KeySchema, partitions []attr.Value) attr.Item {
	item := attr.Item{}
	names := append([]string{"a", "b", "c", "d", "e", "f", "j", "k", "l", "n", "o", "y", "z z", "~", "q:r"}, s.attrs...)
	for range rapid.IntRange(0, 5).Draw(t, "attributes") {
		item[rapid.SampledFrom(names).Draw(t, "name")] = drawValue(t, 2)
	}
	if v, ok := item["UploadDate"]; ok && v.Type == attr.S {
		item["UploadDate"] = attr.String(rapid.SampledFrom([]string{"2023-09-10T15:21:48", "2023-09-10", "1969-12-31T23:59:59"}).Draw(t, "date"))
	}
	if v, ok := item["Expires"]; ok && v.Type == attr.N {
		item["Expires"] = attr.Int(rapid.SampledFrom([]int64{0, 1700000000, 1700000001, 1e9, 1e12, 253402300798, 253402300799, -1}).Draw(t, "expiry"))
	}
	if s.keys != nil {
		pk, sk := s.keys(t)
		item["PK"], item["SK"] = attr.String(pk), attr.String(sk)
		return item
	}
	item["PK"] = rapid.SampledFrom(partitions).Draw(t, "partition")
	if key.Range.Name != "" {
		item["SK"] = drawKeyValue(t, key.Range.Type)
	}
	return item
}

// TestRoundTrip attacks every profile and joiner with hostile items: placed items come back
// exactly, within their own extents, and no plan misses them.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, s := range subjects {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			m := s.mapping(t)
			rapid.Check(t, property.First(15, func(t *rapid.T) { checkSubject(t, s, m) }))
		})
	}
}

func checkSubject(t *rapid.T, s subject, m *Mapping) {
	var partitions []attr.Value
	for range 2 {
		partitions = append(partitions, drawKeyValue(t, m.Key().Hash.Type))
	}
	var items []attr.Item
	var placed []lens.Placed
	taken := map[string]bool{}
	for range rapid.IntRange(1, 8).Draw(t, "items") {
		item := s.draw(t, m.Key(), partitions)
		if s.derived {
			item = drawItemOf(t, m)
		}
		p, err := m.Place(item, expTime)
		if err != nil {
			checkRefusal(t, s, err)
			continue
		}
		if p.Derived {
			continue // covered by TestLatest
		}
		cells := map[string]bool{}
		for _, c := range p.Cells {
			cells[fmt.Sprintf("%q %s:%q %d", p.Row, c.Family, c.Qualifier, c.Timestamp)] = true
		}
		collides := slices.ContainsFunc(items, func(o attr.Item) bool { return attr.EqualItems(m.key.KeyOf(o), m.key.KeyOf(item)) })
		for c := range cells {
			collides = collides || taken[c]
		}
		for j, o := range placed {
			meets := bytes.Equal(o.Row, p.Row) && (slices.ContainsFunc(o.Cells, func(c Cell) bool { return covered(p.Own, c) }) ||
				slices.ContainsFunc(p.Cells, func(c Cell) bool { return covered(o.Own, c) }))
			if meets && !m.tagged(o.Rule) && !m.tagged(p.Rule) && !attr.EqualItems(m.key.KeyOf(item), m.key.KeyOf(items[j])) {
				t.Fatalf("rules %s and %s collide without a tag on row %q", o.Rule, p.Rule, o.Row)
			}
			collides = collides || meets
		}
		if collides {
			continue // the same key, or rules that share a column by tags
		}
		for c := range cells {
			taken[c] = true
		}
		items, placed = append(items, item), append(placed, p)
	}
	rows := rowsOf(placed)
	got := readAll(t, m, rows)
	copies := slices.DeleteFunc(slices.Clone(got), func(item attr.Item) bool {
		at, err := m.Locate(item)
		return err != nil || !at.Derived
	})
	if len(got) != len(items)+len(copies) {
		t.Fatalf("%d items placed, %d read back\n%s", len(items), len(got), format(rows))
	}
	for i, item := range items {
		row := rows[slices.IndexFunc(rows, func(r Row) bool { return bytes.Equal(r.Key, placed[i].Row) })]
		back, err := m.Item(row, item)
		if err != nil || !attr.EqualItems(back, item) {
			t.Fatalf("%s comes back as %s, %v\n%s", attr.AppendItemJSON(nil, item), attr.AppendItemJSON(nil, back), err, format(rows))
		}
		at, err := m.Locate(m.key.KeyOf(item))
		if err != nil || !bytes.Equal(at.Row, placed[i].Row) {
			t.Fatalf("placed at %q, located at %v, %v", placed[i].Row, at, err)
		}
		for j, other := range placed {
			for _, c := range other.Cells {
				if in := covered(at.Own, c) && bytes.Equal(other.Row, placed[i].Row); in != (i == j) {
					t.Fatalf("item %d's own extents on cell %v of item %d: %v\n%s", i, c, j, in, format(rows))
				}
			}
		}
		if err := m.Collision(row, item); err != nil {
			t.Fatal(err)
		}
	}
	checkGroups(t, m, rows)
	checkPlans(t, s, m, append(items, copies...), rows, partitions)
}

// checkGroups fails if the groups of a row do not give the same items as the row.
func checkGroups(t *rapid.T, m *Mapping, rows []Row) {
	for _, row := range rows {
		groups := m.Groups(row.Key)
		if groups == nil {
			continue
		}
		parts := map[string]Row{}
		for _, c := range row.Cells {
			group := groups.Of(c)
			parts[group] = Row{Key: row.Key, Cells: append(parts[group].Cells, c)}
		}
		var texts [2][]string
		for i, of := range [2][]Row{{row}, slices.Collect(maps.Values(parts))} {
			for _, item := range readAll(t, m, of) {
				texts[i] = append(texts[i], string(attr.AppendItemJSON(nil, item)))
			}
			slices.Sort(texts[i])
		}
		if !slices.Equal(texts[0], texts[1]) {
			t.Fatalf("the row gives %q, its groups %q\n%s", texts[0], texts[1], format(rows))
		}
	}
}

// tagged reports whether the rule shares columns by a tag.
func (m *Mapping) tagged(name string) bool {
	l, ok := m.layout.(*rules)
	return ok && slices.ContainsFunc(l.rules, func(r *rule) bool { return r.name == name && (r.tag || r.byCell) })
}

// checkRefusal fails for an error without a reason in the mapping.
func checkRefusal(t *rapid.T, s subject, err error) {
	var e *maperr.Error
	if !errors.As(err, &e) {
		t.Fatalf("not an *Error: %v", err)
	}
	if s.total && e.Code != maperr.CodeDelim && e.Code != maperr.CodeUnmatched {
		t.Fatal(err)
	}
}

func readAll(t *rapid.T, m *Mapping, rows []Row) []attr.Item {
	var items []attr.Item
	for _, r := range rows {
		got, err := m.Items(r)
		if err != nil {
			t.Fatalf("%v\n%s", err, format(rows))
		}
		items = append(items, got...)
	}
	return items
}

func format(rows []Row) string {
	var b []byte
	for _, r := range rows {
		b = rowtext.FormatRow(b, r)
	}
	return string(b)
}

func checkPlans(t *rapid.T, s subject, m *Mapping, items []attr.Item, rows []Row, partitions []attr.Value) {
	for range 3 {
		c := drawCondition(t, m.Key(), items, partitions)
		plan, err := m.PlanQuery(c)
		if err != nil {
			t.Fatal(err)
		}
		key := func(i attr.Item) string { return string(attr.AppendItemJSON(nil, m.key.KeyOf(i))) }
		matches := func(i attr.Item) bool {
			return attr.Equal(i[m.key.Hash.Name], c.Hash) && (m.key.Range.Name == "" || c.Matches(i[m.key.Range.Name]))
		}
		var want, got []string
		for _, i := range items {
			if matches(i) {
				want = append(want, string(attr.AppendItemJSON(nil, i)))
			}
		}
		var sorted []attr.Item
		for _, i := range readAll(t, m, readPlan(plan, rows)) {
			if matches(i) {
				got = append(got, string(attr.AppendItemJSON(nil, i)))
				sorted = append(sorted, i)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if !slices.Equal(want, got) {
			t.Fatalf("condition %+v, plan %q %v\nwant %q\ngot  %q\n%s", c, plan.Spans, plan.Extents, want, got, format(rows))
		}
		inOrder := func(sorted []attr.Item, descending bool) {
			for i := 1; i < len(sorted); i++ {
				x, _ := attr.Compare(sorted[i-1][m.key.Range.Name], sorted[i][m.key.Range.Name])
				if m.Key().Range.Name != "" && (x < 0) == descending {
					t.Fatalf("order %s: %s before %s", orderNames[plan.Order], key(sorted[i-1]), key(sorted[i]))
				}
			}
		}
		switch plan.Order {
		case lens.SameOrder, lens.ReversedOrder:
			inOrder(sorted, plan.Order == lens.ReversedOrder)
		case lens.MergeOrder, lens.MergeReversedOrder:
			for _, span := range plan.Spans {
				part := lens.Plan{Spans: []Span{span}, Extents: plan.Extents}
				inOrder(slices.DeleteFunc(readAll(t, m, readPlan(part, rows)), func(i attr.Item) bool { return !matches(i) }), plan.Order == lens.MergeReversedOrder)
			}
		case lens.SortOrder:
		}
		for i := 1; i < len(plan.Spans); i++ {
			if bytes.Compare(plan.Spans[i-1].End, plan.Spans[i].Start) > 0 || len(plan.Spans[i-1].End) == 0 {
				t.Fatalf("spans %q are not sorted and disjoint", plan.Spans)
			}
		}
	}
}

func drawCondition(t *rapid.T, key attr.KeySchema, items []attr.Item, partitions []attr.Value) attr.KeyRange {
	c := attr.KeyRange{Hash: rapid.SampledFrom(partitions).Draw(t, "condition partition")}
	if len(items) > 0 {
		c.Hash = rapid.SampledFrom(items).Draw(t, "like")[key.Hash.Name]
	}
	if key.Range.Name == "" {
		return c
	}
	operand := func() attr.Value {
		if len(items) > 0 && rapid.Bool().Draw(t, "near") {
			v := rapid.SampledFrom(items).Draw(t, "operand like")[key.Range.Name]
			if v.Type == attr.S && len(v.Str) > 1 && rapid.Bool().Draw(t, "cut") {
				v.Str = strings.ToValidUTF8(v.Str[:rapid.IntRange(1, len(v.Str)-1).Draw(t, "to")], "x")
			}
			return v
		}
		return drawKeyValue(t, key.Range.Type)
	}
	c.Op = attr.RangeOp(rapid.IntRange(0, int(attr.RangeBeginsWith)).Draw(t, "op"))
	if c.Op == attr.RangeBeginsWith && key.Range.Type == attr.N {
		c.Op = attr.NoRange
	}
	if c.Op != attr.NoRange {
		c.A = operand()
	}
	if c.Op == attr.RangeBetween {
		c.B = operand()
	}
	return c
}

// TestIndexRoundTrip does the same for index rows, of both layouts.
func TestIndexRoundTrip(t *testing.T) {
	t.Parallel()
	spec := "apiVersion: migration/v1\nsource:\n" + keysSS +
		"  schema: {G: S, H: N, a: BOOL, c: SS}\n  gsis: [{name: x, hash: G, range: H}, {name: y, hash: G, projection: [a]}, {name: z, hash: PK, range: G, projection: KEYS_ONLY},\n" +
		"    {name: s1, hash: G, range: H, shard: {n: 3, by: fnv1a32(PK)}, joiner: oc}, {name: s2, hash: G, range: SK, shard: {n: 12, by: md5(SK)}, projection: [a]},\n" +
		"    {name: s3, hash: G, range: SK, shard: {n: 2, by: crc32(PK)}, joiner: \"escaped('!')\", row: [SK, G, PK]}, {name: s4, hash: G, row: [PK, SK]},\n" +
		"    {name: s5, hash: H, range: SK, shard: {n: 3, by: H}, joiner: oc}, {name: s6, hash: PK, range: SK, joiner: \"plain('#')\"}]\n" +
		"target: {table: t, families: {a: {}, _t: {}}}\non: {unknown-attribute: sidecar}\n" + star
	m, err := Load("index", []byte(spec))
	if err != nil {
		t.Fatal(err)
	}
	indexes := slices.Clone(m.Indexes())
	for _, x := range m.Indexes() {
		d, err := secondary.Default("d", m.Key(), x.Def())
		if err != nil {
			t.Fatal(err)
		}
		indexes = append(indexes, d)
	}
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SampledFrom(indexes).Draw(t, "index")
		long := rapid.SampledFrom([]string{"", strings.Repeat("\x00", 1500), strings.Repeat("a", 1500)}).Draw(t, "long")
		var rows []Row
		var items []attr.Item
		seen := map[string]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "items") {
			item := attr.Item{"PK": attr.String(rapid.SampledFrom([]string{"p", "p\x00", "q"}).Draw(t, "pk")), "SK": drawKeyValue(t, attr.S)}
			item["G"] = rapid.SampledFrom([]attr.Value{attr.String("g"), attr.String("g\x00"), attr.String("h"), attr.Null()}).Draw(t, "g")
			if item["G"].Type == attr.S {
				item["G"] = attr.String(item["G"].Str + long)
			}
			if rapid.Bool().Draw(t, "has h") {
				item["H"] = drawKeyValue(t, attr.N)
				if rapid.Bool().Draw(t, "small") {
					item["H"] = attr.Int(int64(rapid.IntRange(0, 3).Draw(t, "shard")))
				}
			}
			for range rapid.IntRange(0, 3).Draw(t, "attributes") {
				item[rapid.SampledFrom([]string{"a", "c", "~", "u"}).Draw(t, "name")] = drawValue(t, 2)
			}
			id := string(attr.AppendItemJSON(nil, m.key.KeyOf(item)))
			p, ok, err := x.Place(item, expTime)
			var e *maperr.Error
			if errors.As(err, &e) && (e.Code == maperr.CodeKeySize || e.Code == maperr.CodeDelim || e.Code == maperr.CodeDomain) && !x.OneCell() {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			if seen[id] || !ok {
				continue
			}
			seen[id] = true
			rows, items = append(rows, Row{Key: p.Row, Cells: p.Cells}), append(items, item)
			if len(p.Row) > lens.MaxRowKeyBytes {
				t.Fatalf("a row key of %d bytes", len(p.Row))
			}
			back, err := x.Items(Row{Key: p.Row, Cells: p.Cells})
			if err != nil || len(back) != 1 || !attr.EqualItems(back[0], x.Project(item)) {
				t.Fatalf("%v comes back as %v, %v", item, back, err)
			}
		}
		slices.SortFunc(rows, func(a, b Row) int { return bytes.Compare(a.Key, b.Key) })
		for i := 1; i < len(rows); i++ {
			if bytes.Equal(rows[i-1].Key, rows[i].Key) {
				t.Fatalf("two entries on row %q", rows[i].Key)
			}
		}
		key := x.Def().Key
		c := attr.KeyRange{Hash: attr.String(rapid.SampledFrom([]string{"g", "h", "p", "g\x00"}).Draw(t, "hash") + long)}
		switch key.Hash.Name {
		case "PK":
			c.Hash.Str = strings.TrimSuffix(c.Hash.Str, long)
		case "H":
			c.Hash = attr.Value{Type: attr.N, Str: rapid.SampledFrom([]string{"0", "1", "2", "3", "42"}).Draw(t, "hash number")}
		}
		if key.Range.Name != "" {
			c.Op = attr.RangeOp(rapid.IntRange(0, int(attr.RangeBetween)).Draw(t, "op"))
			if c.Op != attr.NoRange {
				c.A = drawKeyValue(t, key.Range.Type)
			}
			if c.Op == attr.RangeBetween {
				c.B = drawKeyValue(t, key.Range.Type)
			}
		}
		plan, err := x.PlanQuery(c)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, item := range items {
			if attr.Equal(item[key.Hash.Name], c.Hash) && (key.Range.Name == "" || c.Matches(item[key.Range.Name])) {
				want++
			}
		}
		found := func(plan lens.Plan) (got []attr.Value) {
			for _, r := range readPlan(plan, rows) {
				back, err := x.Items(r)
				if err != nil {
					t.Fatal(err)
				}
				if attr.Equal(back[0][key.Hash.Name], c.Hash) && (key.Range.Name == "" || c.Matches(back[0][key.Range.Name])) {
					got = append(got, back[0][key.Range.Name])
				}
			}
			return got
		}
		if got := found(plan); len(got) != want {
			t.Fatalf("index %s, condition %+v, plan %q: %d of %d entries found\n%s", x.Name(), c, plan.Spans, len(got), want, format(rows))
		}
		parts := []lens.Plan{plan}
		switch plan.Order {
		case lens.SameOrder:
		case lens.MergeOrder:
			parts = nil
			for _, span := range plan.Spans {
				parts = append(parts, lens.Plan{Spans: []Span{span}})
			}
		case lens.SortOrder, lens.ReversedOrder, lens.MergeReversedOrder:
			parts = nil
		}
		for _, part := range parts {
			got := found(part)
			for i := 1; i < len(got); i++ {
				if o, _ := attr.Compare(got[i-1], got[i]); key.Range.Name != "" && o > 0 {
					t.Fatalf("index %s: %v before %v", x.Name(), got[i-1], got[i])
				}
			}
		}
	})
}

// TestEncoderLaws checks for each encoder the inverse, the declared order, and that text forms
// are text.
func TestEncoderLaws(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"s", "n", "b", "hex", "b64u", "nord", "i64", "pad(4)", "ocint", "revmax", "revms(13)", "ver", "revdigits", "revdomain", "strip(a)", "const(a)"} {
		e, err := rowkey.ParseEncoder(name, attr.Absent)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				var v [2]attr.Value
				var b [2][]byte
				for i := range v {
					v[i] = drawKeyValue(t, e.In)
					switch name {
					case "revdigits":
						v[i].Str = rapid.StringMatching(`[0-9]{1,5}`).Draw(t, "digits")
					case "strip(a)":
						v[i].Str = "a" + v[i].Str
					case "i64", "ocint":
						v[i] = attr.Int(rapid.Int64().Draw(t, "int"))
					}
					var ok bool
					if b[i], ok = e.EncodeKey(nil, v[i]); !ok {
						return
					}
					if back, ok := e.DecodeKey(b[i]); !ok || !attr.Equal(back, v[i]) {
						t.Fatalf("%s becomes %q and comes back as %s, %v", v[i].Str, b[i], back.Str, ok)
					}
					if e.Width > 0 && len(b[i]) != e.Width {
						t.Fatalf("%q is not %d wide", b[i], e.Width)
					}
				}
				want, _ := attr.Compare(v[0], v[1])
				want = cmp.Compare(want, 0)
				got := bytes.Compare(b[0], b[1])
				switch {
				case (want == 0) != (got == 0):
					t.Fatalf("%s and %s become %q and %q", v[0].Str, v[1].Str, b[0], b[1])
				case e.Order == rowkey.SameOrder && want != got, e.Order == rowkey.ReversedOrder && want != -got:
					t.Fatalf("%s, %s sort %d; %q, %q sort %d", v[0].Str, v[1].Str, want, b[0], b[1], got)
				}
			})
		})
	}
}

// TestJoinerLaws checks that joined tuples are injective, can be split, and sort as tuples do.
func TestJoinerLaws(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain('#')", "escaped('#')", "escaped('!')", "oc"} {
		j, err := rowkey.ParseJoiner(text)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				var tuple [2][3]string
				var key [2][]byte
				for i := range tuple {
					for k := range tuple[i] {
						tuple[i][k] = hostileBytes().Draw(t, "segment")
						if j.Kind == rowkey.JoinPlain && k < 2 && j.DelimOffence([]byte(tuple[i][k])) >= 0 {
							return
						}
						if k > 0 {
							key[i] = append(key[i], j.Delimiter()...)
						}
						key[i] = j.AppendSegment(key[i], []byte(tuple[i][k]), k == 2)
					}
					segs, ok := j.Split(key[i], 3, nil)
					if !ok || string(segs[0]) != tuple[i][0] || string(segs[1]) != tuple[i][1] || string(segs[2]) != tuple[i][2] {
						t.Fatalf("%q is split as %q, %v", tuple[i], segs, ok)
					}
				}
				if want, got := slices.Compare(tuple[0][:], tuple[1][:]), bytes.Compare(key[0], key[1]); want != got {
					t.Fatalf("%q, %q sort %d; %q, %q sort %d", tuple[0], tuple[1], want, key[0], key[1], got)
				}
			})
		})
	}
}

// FuzzLoad checks that no mapping file causes a panic, and that an accepted file is written
// back the same.
func FuzzLoad(f *testing.F) {
	for _, s := range subjects {
		f.Add([]byte(s.yaml))
	}
	for _, text := range []string{googleMapping, protoMapping, versionsMapping, lockedMapping, wholeMapping} {
		f.Add([]byte(text))
	}
	f.Add([]byte("a: &x [*x]"))
	f.Add([]byte("? {a: b}\n: c"))
	f.Add([]byte("<<: {a: 1}\n---\nb: !!binary aGk="))
	f.Fuzz(func(t *testing.T, src []byte) {
		spec, err := mapfile.Parse("f", src)
		if err != nil {
			var e *maperr.SpecError
			if !errors.As(err, &e) || e.Code != maperr.CodeSyntax || e.What == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		if _, err := Compile(spec); err != nil {
			return
		}
		text, err := spec.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := mapfile.Parse("again", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if _, err := Compile(again); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if twice, err := again.YAML(); err != nil || !bytes.Equal(text, twice) {
			t.Fatalf("%s\nthen\n%s", text, twice)
		}
	})
}
