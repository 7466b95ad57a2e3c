package layout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/maperr"
)

// All faults of a mapping file are reported at once, in order, each with its position; faults
// that only follow from others are not.
func TestMapping_AllErrorsAtOnce(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"views", `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}}
  schema: {a: S, b: S, c: N, l: L}
  gsis:
  - {name: one, hash: a, as: view, projection: KEYS_ONLY}
  - {name: two, hash: b, as: view, projection: [l]}
  - {name: three, hash: c, as: view, projection: KEYS_ONLY}
  - {name: four, hash: x, as: view}
  - {name: five, hash: a, as: table, row: [zz]}
target: {table: t, families: {a: {}, _t: {}}}
rules:
- {name: item, row: ["{PK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`, `m.yaml:8:5: source.gsis[1]: E-INVERSE: attribute "l" is not in one cell of one column, which a view requires; expected such an attribute, or as: table
m.yaml:9:5: source.gsis[2]: E-INVERSE: the view would not sort "c" by its value, which is N; expected codec nord for numbers, no codec for other types, or as: table
m.yaml:10:5: source.gsis[3]: index attribute "x" has no key type; expected {name: …, type: S|N|B}, or a type in source.schema
m.yaml:11:44: source.gsis[4].row[0]: E-INVERSE: "zz" is neither a key attribute of the index nor of the table; expected one of them`},
		{"keys and values", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: id, type: S}}, shape: flat, schema: {n: Q, s: S, m: {N: S}}}
target: {tabel: t, families: {a: {gc: {version: 1}}, b: {gc: {maxAge: soon}}}}
rules:
- {name: one, when: {id: 1, x: 2}, row: ["{id}"], putt: [{attr: n, cell: "a:n"}]}
- {row: id, put: [{attr: s}]}
`, `m.yaml:2:54: source.shape: unknown key; expected gsis, key, schema, table, ttl
m.yaml:2:79: source.schema.n: "Q"; expected S, N, B, BOOL, NULL, SS, NS, BS, L, M, {L: type}, {M: type} or {M: {key: type}, else: type}
m.yaml:2:92: source.schema.m.N: unknown key; expected L, M, else
m.yaml:3:10: target.tabel: unknown key, nearest to table; expected families, joiner, max_families, names, prefixes, shared, table
m.yaml:3:40: target.families.a.gc.version: unknown key, nearest to versions; expected maxAge, versions
m.yaml:3:71: target.families.b.gc.maxAge: "soon"; expected a duration of at least 1ms, such as 720h or 30d
m.yaml:5:26: rules[0].when.id: this is "1"; expected a template
m.yaml:5:32: rules[0].when.x: this is "2"; expected a template
m.yaml:5:51: rules[0].putt: unknown key, nearest to put; expected derive, latest, name, put, row, schema, tag, ttl, when
m.yaml:6:3: rules[1]: "name" is missing
m.yaml:6:9: rules[1].row: this is "id"; expected a list ([…])
m.yaml:6:19: rules[1].put[0]: "cell" is missing`},
		{"rules", `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {a: S}
target: {table: t, joiner: both, families: {a: {}, "b!": {}, _t: {gc: {maxAge: 1h}}}}
rules:
- {name: one, when: {SK: "one"}, row: ["{PX}"], put: [{attr: a, cell: "z:a"}, {attr: a, cell: "a:a", codec: gif}]}
- {name: two, when: {SK: "{x:nosuch}"}, row: ["{PK}", "{x}"], put: [{attr: "*", cell: "a:{attr}"}]}
- {name: three, row: ["{PK}"], put: [{attr: "*", cell: "a:{attr}"}]}
accept_loss: [{rule: four, what: types, why: x}]
`, `m.yaml:6:20: target.joiner: unknown joiner "both"; expected plain('#'), escaped('#'), escaped-all('#'), oc, fixed or auto
m.yaml:6:58: target.families["b!"]: E-FAMILY: "b!" is not a family name; expected 1 to 64 of -_.a-zA-Z0-9
m.yaml:6:66: target.families._t: E-FAMILY: garbage collection would remove types by age; expected no maxAge
m.yaml:8:40: rules[0].row[0]: template "{PX}": {PX} is neither a capture nor a key attribute
m.yaml:8:65: rules[0].put[0].cell: E-FAMILY: "z:a" names no declared family; expected family:qualifier, the family declared in target.families
m.yaml:8:102: rules[0].put[1].codec: unknown codec "gif"; expected s, n, b, bool, text, b64, i64be, f64be, nord, json, ddbjson, flatten, omit or proto(file, message)
m.yaml:9:22: rules[1].when.SK: template "{x:nosuch}": unknown encoder "nosuch"; expected s, n, b, hex, b64u, pad(w), nord, i64, ocint, revmax, revms(w), iso(s|ms), epoch(s|ms), ver, revdigits, revdomain, strip(prefix), const(text), salt(hash,n,w) or hash(name)
m.yaml:10:50: rules[2].put[0].cell: E-INVERSE: key attribute "SK" cannot be restored from row, qualifier and timestamp; expected a reference to it, or to the captures of its template
m.yaml:11:16: accept_loss[0].rule: unknown rule "four"; expected a rule's name`},
		{"cells", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {a: S, b: S}}
target: {table: t, families: {a: {}, _t: {}}}
rules:
- {name: one, when: {SK: one}, row: ["{PK}"], put: [{attr: a, cell: "a:a"}, {attr: b, cell: "a:b"}]}
- {name: two, when: {SK: two}, row: ["{PK}"], put: [{attr: a, cell: "a:a"}, {attr: b, cell: "a:b"}]}
`, `m.yaml:6:63: rules[1].put[0].cell: E-COLLISION: rules one and two can write the same cell (a:a and a:a); expected distinct columns, or tag: true on all but one of the rules
m.yaml:6:87: rules[1].put[1].cell: E-COLLISION: rules one and two can write the same cell (a:b and a:b); expected distinct columns, or tag: true on all but one of the rules`},
		{"families", `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: B}}
  schema: {a: S, b: S, c: S, d: S}
  ttl: {attribute: c, mode: shift(2h)}
target: {table: t, families: {a: {gc: {maxAge: 2h}}, b: {}, c: {}}}
rules:
- {name: one, tag: true, when: {PK: one}, row: ["{PK}", "{SK}"], put: [{attr: a, cell: "a:a"}, {attr: b, cell: "b:b"}, {attr: d, cell: "c:d"}]}
- {name: two, when: {PK: "two{x:nosuch}", SK: two, ZZ: two}, row: ["{PK}", "{SK}"], put: [{attr: a, cell: "y:a", codec: gif}, {attr: b, cell: "z:b"}]}
- {name: three, when: {PK: three}, row: ["{P}", "{S}"], put: [{attr: a, cell: "y:{no", codec: gif}, {attr: "*", cell: "z:{attr}"}]}
`, `m.yaml:6:9: source.ttl.attribute: "c" is S; expected type N: seconds since 1970
m.yaml:9:15: rules[0].tag: E-FAMILY: the tag has no family; expected target.families._t, and a fidelity other than idiomatic
m.yaml:9:106: rules[0].put[1].cell: E-FAMILY: ttl shift(2h) deletes other cells of rule one, but not this one; expected gc: {maxAge: 2h0m0s} on the families of all of its puts, or of none
m.yaml:9:130: rules[0].put[2].cell: E-FAMILY: ttl shift(2h) deletes other cells of rule one, but not this one; expected gc: {maxAge: 2h0m0s} on the families of all of its puts, or of none
m.yaml:10:22: rules[1].when.PK: template "two{x:nosuch}": unknown encoder "nosuch"; expected s, n, b, hex, b64u, pad(w), nord, i64, ocint, revmax, revms(w), iso(s|ms), epoch(s|ms), ver, revdigits, revdomain, strip(prefix), const(text), salt(hash,n,w) or hash(name)
m.yaml:10:43: rules[1].when.SK: E-INVERSE: a template cannot match a binary; expected a key attribute of type S or N
m.yaml:10:52: rules[1].when.ZZ: E-INVERSE: "ZZ" is not a key attribute; expected conditions on the table's key only
m.yaml:10:101: rules[1].put[0].cell: E-FAMILY: "y:a" names no declared family; expected family:qualifier, the family declared in target.families
m.yaml:10:114: rules[1].put[0].codec: unknown codec "gif"; expected s, n, b, bool, text, b64, i64be, f64be, nord, json, ddbjson, flatten, omit or proto(file, message)
m.yaml:10:137: rules[1].put[1].cell: E-FAMILY: "z:b" names no declared family; expected family:qualifier, the family declared in target.families
m.yaml:11:42: rules[2].row[0]: template "{P}": {P} is neither a capture nor a key attribute
m.yaml:11:49: rules[2].row[1]: template "{S}": {S} is neither a capture nor a key attribute
m.yaml:11:73: rules[2].put[0].cell: E-FAMILY: "y:{no" names no declared family; expected family:qualifier, the family declared in target.families
m.yaml:11:73: rules[2].put[0].cell: template "{no": unpaired brace
m.yaml:11:88: rules[2].put[0].codec: unknown codec "gif"; expected s, n, b, bool, text, b64, i64be, f64be, nord, json, ddbjson, flatten, omit or proto(file, message)
m.yaml:11:113: rules[2].put[1].cell: E-FAMILY: "z:{attr}" names no declared family; expected family:qualifier, the family declared in target.families`},
		{"one rule's fault beside what two others share", `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {a: S}, ttl: {attribute: e, mode: soon}}
target: {table: t, families: {a: {}, _t: {gc: {maxAge: 1h}}}}
rules:
- {name: one, when: {SK: one}, row: ["{PK}"], put: [{attr: a, cell: "a:a"}]}
- {name: two, when: {SK: two}, row: ["{PK}"], put: [{attr: a, cell: "a:a"}]}
- {name: three, when: {SK: three}, row: ["{PK}"], put: [{attr: a, cell: "b:a"}]}
`, `m.yaml:2:118: source.ttl.mode: "soon"; expected attribute, one-second or shift(720h)
m.yaml:6:63: rules[1].put[0].cell: E-COLLISION: rules one and two can write the same cell (a:a and a:a); expected distinct columns, or tag: true on all but one of the rules
m.yaml:7:67: rules[2].put[0].cell: E-FAMILY: "b:a" names no declared family; expected family:qualifier, the family declared in target.families`},
		{"the layout of Google's utility", `apiVersion: migration/v1
compat: google-utility
source: {table: T, key: {hash: {name: PK, type: S}}}
target: {table: t, families: {a: {gc: {maxAge: 1h}}}}
rules:
- {name: one, row: ["{PK}"], put: [{attr: a, cell: "a:a"}]}
`, `m.yaml:4:34: target.families.a: E-FAMILY: garbage collection by age would remove every cell: all timestamps are in 1970; expected no maxAge
m.yaml:5:1: rules: rules together with compat google-utility; expected no rules, because the layout is fixed`},
	} {
		_, err := Load("m.yaml", []byte(c.text))
		if err == nil {
			t.Errorf("%s: no error", c.name)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		var first *maperr.SpecError
		if !errors.As(err, &first) || first.Error() != strings.Split(err.Error(), "\n")[0] {
			t.Errorf("%s: the first fault is %v", c.name, first)
		}
	}
}
