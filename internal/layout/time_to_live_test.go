package layout

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// sessionsMapping has one rule whose items garbage collection deletes.
const sessionsMapping = `apiVersion: migration/v1
source:
  table: T
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {Name: S, Tags: SS, State: S, Owner: S, Expires: N}
  ttl: {attribute: Expires, mode: shift(30d)}
  gsis: [{name: owners, hash: Owner, projection: KEYS_ONLY}]
target: {table: t, families: {a: {}, ses: {gc: {maxAge: 30d}}, v: {}, s.Tags: {}, _t: {TYPES}}}
on: {unknown-attribute: sidecar}
rules:
- {name: session, when: {SK: "SES#{s}"}, schema: [Name, Tags, Expires], row: [ses, "{PK}", "{s}"], put: [{attr: "*", cell: "ses:{attr}"}]}
- {name: doc, when: {SK: "v{n:ver}"}, schema: [State], row: [doc, "{PK}"], put: [{attr: "*", cell: "v:{attr}", ts: "{n}"}]}
- {name: other, row: [other, "{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`

// expiriesMapping has rules with a ttl of their own.
const expiriesMapping = `apiVersion: migration/v1
source: {table: T, key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}, schema: {Name: S, Tags: SS, Expires: N}, ttl: {attribute: Expires, mode: shift(30d)}}
target: {table: t, families: {a: {}, m: {gc: {maxAge: 30d}}, w: {gc: {maxAge: 7d}}, s.Tags: {gc: {maxAge: 7d}}, _t: {gc: {maxAge: 7d}}}}
on: {unknown-attribute: sidecar}
rules:
- {name: month, when: {SK: "MONTH#{s}"}, row: [m, "{PK}", "{s}"], put: [{attr: "*", cell: "m:{attr}"}]}
- {name: week, when: {SK: "WEEK#{s}"}, ttl: {attribute: Expires, mode: shift(7d)}, row: [w, "{PK}", "{s}"], put: [{attr: "*", cell: "w:{attr}"}]}
- {name: other, ttl: {attribute: Expires, mode: attribute}, row: [other, "{PK}", "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`

// The rules of a mapping tell by whom their items are deleted.
func TestMapping_Expiry(t *testing.T) {
	t.Parallel()
	attribute := "ttl: {attribute: Expires, mode: attribute}, "
	for name, c := range map[string]struct {
		text string
		want Expiry
	}{
		"both":    {expiriesMapping, Expiry{"Expires", true, true}},
		"no rule": {strings.Replace(expiriesMapping, attribute, "", 1), Expiry{"Expires", true, false}},
		"readers": {entitiesMapping, Expiry{}},
	} {
		if got := mustLoad(t, c.text).Expiry(); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	m := mustLoad(t, expiriesMapping)
	for rule, key := range map[string]string{"month": "MONTH#1", "week": "WEEK#1", "other": "x"} {
		item := attr.Item{"PK": attr.String("p"), "SK": attr.String(key)}
		if want := rule != "other"; m.Collects(rule) != want || m.CollectsItem(item) != want {
			t.Errorf("rule %s: %v, its item: %v, want %v", rule, m.Collects(rule), m.CollectsItem(item), want)
		}
	}
	text, err := m.Spec().YAML()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Spec().Rules[1].TTL, mustLoad(t, string(text)).Spec().Rules[1].TTL); diff != "" {
		t.Errorf("the ttl of a rule is read back otherwise (-want +got):\n%s", diff)
	}
}

// Garbage collection deletes the items of a rule in families for expiry, and keeps the others,
// whose expiry is an attribute.
func TestMapping_TimeToLiveOfARule(t *testing.T) {
	t.Parallel()
	const expires = 1715690000
	noDoc := strings.Replace(sessionsMapping, `- {name: doc`, `#`, 1)
	for name, text := range map[string]string{
		"exceptions that stay":   strings.Replace(sessionsMapping, "TYPES", "", 1),
		"exceptions that expire": strings.Replace(noDoc, "TYPES", "gc: {maxAge: 30d}", 1),
	} {
		m := mustLoad(t, text)
		items := []string{
			`{"PK":{"S":"p"},"SK":{"S":"SES#1"},"Name":{"S":"x"},"Tags":{"SS":["a","b"]},"Expires":{"N":"1715690000"}}`,
			`{"PK":{"S":"p"},"SK":{"S":"SES#2"},"Name":{"S":"x"}}`,
			`{"PK":{"S":"p"},"SK":{"S":"x"},"Name":{"S":"x"},"Tags":{"SS":["a","b"]},"Expires":{"N":"1715690000"},"Owner":{"S":"o"}}`,
			`{"PK":{"S":"p"},"SK":{"S":"y"},"Name":{"N":"7"},"Expires":{"S":"never"},"more":{"M":{}}}`,
		}
		if strings.Contains(text, "{name: doc") {
			items = append(items, `{"PK":{"S":"p"},"SK":{"S":"v3"},"State":{"S":"x"}}`, `{"PK":{"S":"p"},"SK":{"S":"v4"}}`)
		}
		after := int64(expires+31*86400) * 1e6 // Bigtable has collected, or is about to
		var left []string
		for _, item := range items {
			p := comesBack(t, m, item)
			row := rowsOf([]lens.Placed{p})[0]
			live, err := m.Items(m.Live(row, after))
			if err != nil {
				t.Fatal(err)
			}
			for _, it := range live {
				left = append(left, it["SK"].Str)
			}
			// Live omits exactly the cells that Bigtable collects.
			for _, c := range row.Cells {
				for _, f := range m.Families() {
					old := f.Name == c.Family && f.GC.MaxAge > 0 && c.Timestamp <= after-f.GC.MaxAge.Microseconds()
					if p.Rule != "session" && old {
						t.Errorf("%s: item %s: cell %s:%q is collected", name, item, c.Family, c.Qualifier)
					}
				}
			}
		}
		want := []string{"SES#2", "x", "y"}
		if len(items) > 4 {
			want = append(want, "v3", "v4")
		}
		if diff := cmp.Diff(want, left); diff != "" {
			t.Errorf("%s: of items are left (-want +got):\n%s", name, diff)
		}
		if m.AcceptsLoss("other", "retention") || !m.AcceptsLoss("session", "retention") {
			t.Errorf("%s: retention is accepted of the wrong rule", name)
		}
		// A session would leave its entry in the index.
		_, err := m.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String("SES#3"), "Owner": attr.String("o")}, expTime)
		var e *maperr.Error
		if !errors.As(err, &e) || e.Code != maperr.CodeDomain || e.Attribute != "Owner" {
			t.Errorf("%s: a session in an index: %v", name, err)
		}
		// Exceptions of expiring items are stored in a family that expires too.
		_, err = m.Place(attr.Item{"PK": attr.String("p"), "SK": attr.String("SES#3"), "Name": attr.Int(1), "Expires": attr.Int(expires)}, expTime)
		if stays := name == "exceptions that stay"; stays != (err != nil) {
			t.Errorf("%s: an exception of a session: %v", name, err)
		}
	}
	if age := mustLoad(t, strings.Replace(noDoc, "TYPES", "gc: {maxAge: 30d}", 1)).Families()[1].GC.MaxAge; age != 30*24*time.Hour {
		t.Errorf("maxAge %s", age)
	}
}

func TestMapping_TimeToLiveRefused(t *testing.T) {
	t.Parallel()
	text := strings.Replace(sessionsMapping, "TYPES", "", 1)
	for name, c := range map[string]struct{ from, to, want string }{
		"half a rule": {
			`cell: "ses:{attr}"}]}`, `cell: "ses:{attr}"}, {attr: Name, cell: "a:name"}]}`,
			`m.yaml:11:152: rules[0].put[1].cell: E-FAMILY: ttl shift(30d) deletes other cells of rule session, but not this one; expected gc: {maxAge: 720h0m0s} on the families of all of its puts, or of none`,
		},
		"an index": {
			"schema: [Name, Tags, Expires], ", "",
			"m.yaml:7:10: source.gsis[0].as: E-FAMILY: the index entries would outlive the items that ttl shift(30d) deletes; expected as: view or none, ttl mode attribute, or a schema of rule session without the index's key",
		},
		"absences": {
			"_t: {}", "_t: {gc: {maxAge: 30d}}",
			"m.yaml:8:87: target.families._t: E-FAMILY: garbage collection by age would remove records of absent attributes in versions of rule doc; expected no maxAge: rules whose items expire then have no exceptions",
		},
		"no rule": {
			"ses: {gc: {maxAge: 30d}}", "ses: {}",
			"m.yaml:8:34: target.families.a: E-FAMILY: ttl shift(30d) does not delete the cells of the family; expected gc: {maxAge: 720h0m0s} on every family, _t too, or on all families of a rule",
		},
	} {
		_, err := Load("m.yaml", []byte(strings.Replace(text, c.from, c.to, 1)))
		if err == nil || strings.Split(err.Error(), "\n")[0] != c.want {
			t.Errorf("%s: %v\nwant\n%s", name, err, c.want)
		}
	}
}

// The note about items that nothing deletes names only rules that can have the attribute.
func TestMapping_NotesOfTimeToLive(t *testing.T) {
	t.Parallel()
	const note = "garbage collection deletes expired items only of rules session; items of rules other keep attribute Expires, and nothing deletes them"
	text := strings.Replace(sessionsMapping, "TYPES", "", 1)
	if notes := mustLoad(t, text).Notes(); !slices.Contains(notes, note) {
		t.Errorf("notes %q, want %q", notes, note)
	}
	text = strings.Replace(text, `{name: other, `, `{name: other, schema: [Name], `, 1)
	for _, n := range mustLoad(t, text).Notes() {
		if strings.Contains(n, "nothing deletes them") {
			t.Errorf("a note without a rule that has the attribute: %s", n)
		}
	}
}
