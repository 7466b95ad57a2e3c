package mapping

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// Parse reads a mapping file strictly: unknown keys are errors. Errors are
// *SpecError.
func Parse(file string, src []byte) (*Spec, error) {
	root, err := strictyaml.Parse(file, src)
	if err == nil && root.IsZero() {
		err = root.Fail("the file is empty", "apiVersion: "+APIVersion)
	}
	s := &Spec{file: file, pos: strictyaml.Positions{}}
	f := mappingFile{Spec: s}
	if err == nil {
		err = root.With(strictyaml.Options{Hooks: hooks, Positions: s.pos}).Decode(&f)
	}
	if fault, ok := errors.AsType[*strictyaml.Error](err); ok {
		return nil, &SpecError{Code: CodeSyntax, File: file, Line: fault.At.Line, Column: fault.At.Column, Path: fault.Path, What: fault.What, Expected: fault.Expected}
	}
	s.lint = f.Lint
	return s, nil
}

// mappingFile is a Spec, with what a file says in one word alone.
type mappingFile struct {
	APIVersion string `yaml:"apiVersion,required" words:"migration/v1"`
	Unmatched  string `yaml:"on.unmatched" words:"error"`
	Limit      string `yaml:"on.limit" words:"error"`
	*Spec      `yaml:",inline"`
	Lint       strictyaml.Value `yaml:"lint"`
}

// hooks read what tags cannot say.
var hooks = []strictyaml.Hook{
	strictyaml.Read(readDefaultTime),
	strictyaml.ReadKey("what", readLoss),
	strictyaml.Read(readKeyAttr),
	strictyaml.Read(readKeyType),
	strictyaml.Read(readSchema),
	strictyaml.Read(readGSI),
	strictyaml.ReadKey("projection", readProjection),
	strictyaml.ReadKey("lag", readLag),
	strictyaml.Read(readFamilies),
	strictyaml.ReadKey("maxAge", readMaxAge),
	strictyaml.ReadKey("prefixes.set", func(v strictyaml.Value, t *Target) error { return readPrefix(v, &t.SetPrefix) }),
	strictyaml.ReadKey("prefixes.map", func(v strictyaml.Value, t *Target) error { return readPrefix(v, &t.MapPrefix) }),
	strictyaml.ReadKey("when", readWhen),
	strictyaml.ReadKey("attr", readAttr),
	strictyaml.Read(readPutTime),
	strictyaml.ReadKey("as", readTimeFormat),
}

func readDefaultTime(v strictyaml.Value, t *time.Time) error {
	const expected = "export-time or an RFC 3339 time in whole milliseconds, from 1970 on"
	text, err := v.Text(expected)
	if err != nil || text == "export-time" {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || at.Nanosecond()%1e6 != 0 || at.UnixMilli() < 0 || at.IsZero() {
		return v.Unfit(expected)
	}
	*t = at.UTC()
	return nil
}

func readLoss(v strictyaml.Value, l *AcceptedLoss) (err error) {
	if v.Kind() != strictyaml.Null {
		l.What, err = v.Word(losses...)
		return err
	}
	// null is how YAML writes nothing, and the name of a loss.
	if l.What = LossNull; !strings.EqualFold(v.Scalar(), LossNull) {
		return v.Fail("no loss", strings.Join(losses, ", "))
	}
	return nil
}

// readKeyAttr reads {name, type}, or a name alone, whose type the schema gives.
func readKeyAttr(v strictyaml.Value, k *KeyAttr) error {
	switch {
	case v.Kind() != strictyaml.Text:
		return v.Struct(k)
	case v.Scalar() == "":
		return v.Unfit("an attribute name")
	}
	k.Name = v.Scalar()
	return nil
}

func readKeyType(v strictyaml.Value, t *attr.Type) error {
	text, err := v.Word("S", "N", "B")
	*t, _ = attr.ParseType(text)
	return err
}

const expectedSchema = "S, N, B, BOOL, NULL, SS, NS, BS, L, M, {L: type}, {M: type} or {M: {key: type}, else: type}"

func readSchema(v strictyaml.Value, s *Schema) error {
	switch {
	case v.Kind() == strictyaml.Text, v.Kind() == strictyaml.Null && v.Scalar() == "NULL": // which YAML takes for null
		var ok bool
		if s.Type, ok = attr.ParseType(v.Scalar()); !ok {
			return v.Unfit(expectedSchema)
		}
		return nil
	case v.Kind() != strictyaml.Mapping:
		return v.Other(expectedSchema)
	}
	elem := func(v strictyaml.Value) error {
		s.Elem = &Schema{}
		return v.Decode(s.Elem)
	}
	err := v.Fields(map[string]func(strictyaml.Value) error{
		"L": func(v strictyaml.Value) error {
			s.Type = attr.L
			return elem(v)
		},
		"M": func(v strictyaml.Value) error {
			if s.Type == attr.L {
				return v.Fail("both L and M", expectedSchema)
			}
			s.Type = attr.M
			if v.Kind() == strictyaml.Mapping {
				return v.Decode(&s.Keys)
			}
			return elem(v)
		},
		"else": func(v strictyaml.Value) error {
			if s.Type != attr.M || s.Elem != nil {
				return v.Fail("else without keys", expectedSchema)
			}
			return elem(v)
		},
	})
	if err == nil && s.Type == attr.Absent {
		err = v.Fail("no type", expectedSchema)
	}
	return err
}

func readGSI(v strictyaml.Value, g *GSI) error {
	g.Projection, g.As = ProjectAll, IndexAsTable
	return v.Struct(g)
}

func readProjection(v strictyaml.Value, g *GSI) (err error) {
	if v.Kind() != strictyaml.List {
		g.Projection, err = v.Word(ProjectAll, ProjectKeysOnly)
		return err
	}
	g.Projection = ""
	if err = v.Decode(&g.Include); err == nil && len(g.Include) == 0 {
		err = v.Fail("no attributes", ProjectKeysOnly)
	}
	return err
}

func readLag(v strictyaml.Value, g *GSI) (err error) {
	g.Lag, err = readDuration(v, 0, "a duration from 0s on, such as 500ms")
	if err == nil && g.Lag%time.Millisecond != 0 {
		err = v.Unfit("a duration in whole milliseconds, such as 500ms")
	}
	return err
}

func readMaxAge(v strictyaml.Value, g *GC) (err error) {
	g.MaxAge, err = readDuration(v, time.Millisecond, "a duration of at least 1ms, such as 720h")
	return err
}

func readDuration(v strictyaml.Value, least time.Duration, expected string) (time.Duration, error) {
	text, err := v.Text(expected)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < least {
		return 0, v.Unfit(expected)
	}
	return d, nil
}

// readFamilies keeps their order.
func readFamilies(v strictyaml.Value, families *[]Family) error {
	entries, err := v.Entries()
	for _, e := range entries {
		f := Family{Name: e.Name}
		if e.Value.Kind() != strictyaml.Null {
			err = e.Value.Decode(&f)
		}
		if err != nil {
			break
		}
		*families = append(*families, f)
	}
	return err
}

func readPrefix(v strictyaml.Value, prefix *string) (err error) {
	if *prefix, err = v.Text("the start of a family name"); *prefix == "" {
		*prefix = NoPrefix
	}
	return err
}

func readWhen(v strictyaml.Value, r *Rule) error {
	entries, err := v.Entries()
	for _, e := range entries {
		// A list tells the equality of key attributes from the template of a
		// key attribute that is called same.
		if e.Name == "same" && e.Value.Kind() == strictyaml.List {
			err = e.Value.Decode(&r.Same)
		} else {
			if r.When == nil {
				r.When = map[string]string{}
			}
			r.When[e.Name], err = e.Value.Text("a template")
		}
		if err != nil {
			break
		}
	}
	return err
}

func readAttr(v strictyaml.Value, p *Put) (err error) {
	const expected = `an attribute name, "*" or null`
	if v.Kind() == strictyaml.Null {
		return nil
	}
	if p.Attr, err = v.Text(expected); err == nil && p.Attr == "" {
		err = v.Unfit(expected)
	}
	return err
}

// readPutTime reads "{capture}", or {attr, as}.
func readPutTime(v strictyaml.Value, t *PutTime) error {
	if v.Kind() != strictyaml.Text {
		return v.Struct(t)
	}
	name, ok := strings.CutPrefix(v.Scalar(), "{")
	name, ok2 := strings.CutSuffix(name, "}")
	if !ok || !ok2 || !captureName.MatchString(name) {
		return v.Unfit(`"{capture}" or {attr: name, as: iso(s)}`)
	}
	t.Capture = name
	return nil
}

func readTimeFormat(v strictyaml.Value, t *PutTime) (err error) {
	t.As, err = v.Word(slices.Sorted(maps.Keys(timeFormats))...)
	return err
}

// YAML returns the mapping file of s; Parse reads it back to the same Spec.
func (s *Spec) YAML() ([]byte, error) {
	entry := func(k string, v any) yaml.MapItem { return yaml.MapItem{Key: k, Value: v} }
	key := func(k KeyAttr) any {
		if k.Type == attr.Absent {
			return k.Name
		}
		return yaml.MapSlice{entry("name", k.Name), entry("type", k.Type.String())}
	}
	keyed := func(k KeySchema) yaml.MapSlice {
		m := yaml.MapSlice{entry("hash", key(k.Hash))}
		if k.Range.Name != "" {
			m = append(m, entry("range", key(k.Range)))
		}
		return m
	}
	source := yaml.MapSlice{}
	if s.Source.Table != "" {
		source = append(source, entry("table", s.Source.Table))
	}
	source = append(source, entry("key", keyed(s.Source.Key)))
	if len(s.Source.Schema) > 0 {
		source = append(source, entry("schema", schemasYAML(s.Source.Schema)))
	}
	if s.Source.TTL != nil {
		ttl := yaml.MapSlice{entry("attribute", s.Source.TTL.Attribute)}
		if s.Source.TTL.Mode != "" {
			ttl = append(ttl, entry("mode", s.Source.TTL.Mode))
		}
		source = append(source, entry("ttl", ttl))
	}
	if len(s.Source.GSIs) > 0 {
		var gsis []yaml.MapSlice
		for _, g := range s.Source.GSIs {
			m := append(yaml.MapSlice{entry("name", g.Name)}, keyed(g.Key)...)
			if g.Projection == "" {
				m = append(m, entry("projection", g.Include))
			} else {
				m = append(m, entry("projection", g.Projection))
			}
			m = append(m, entry("as", g.As))
			if g.Shard != nil {
				m = append(m, entry("shard", yaml.MapSlice{entry("n", g.Shard.N), entry("by", g.Shard.By)}))
			}
			if len(g.Row) > 0 {
				m = append(m, entry("row", g.Row))
			}
			if g.Joiner != "" {
				m = append(m, entry("joiner", g.Joiner))
			}
			if g.Lag != 0 {
				m = append(m, entry("lag", g.Lag.String()))
			}
			gsis = append(gsis, m)
		}
		source = append(source, entry("gsis", gsis))
	}

	families := yaml.MapSlice{}
	for _, f := range s.Target.Families {
		gc := yaml.MapSlice{}
		if f.GC.Versions > 0 {
			gc = append(gc, entry("versions", f.GC.Versions))
		}
		if f.GC.MaxAge > 0 {
			gc = append(gc, entry("maxAge", f.GC.MaxAge.String()))
		}
		body := yaml.MapSlice{}
		if len(gc) > 0 {
			body = append(body, entry("gc", gc))
		}
		families = append(families, entry(f.Name, body))
	}
	target := yaml.MapSlice{entry("table", s.Target.Table), entry("families", families)}
	if s.Target.Joiner != "" {
		target = append(target, entry("joiner", s.Target.Joiner))
	}
	if s.Target.Shared != "" {
		target = append(target, entry("shared", s.Target.Shared))
	}
	if s.Target.MaxFamilies != 0 {
		target = append(target, entry("max_families", s.Target.MaxFamilies))
	}
	if len(s.Target.Names) > 0 {
		names := yaml.MapSlice{}
		for _, k := range slices.Sorted(maps.Keys(s.Target.Names)) {
			names = append(names, entry(k, s.Target.Names[k]))
		}
		target = append(target, entry("names", names))
	}
	prefixes := yaml.MapSlice{}
	for _, p := range []struct{ name, text string }{{"set", s.Target.SetPrefix}, {"map", s.Target.MapPrefix}} {
		switch p.text {
		case "":
		case NoPrefix:
			prefixes = append(prefixes, entry(p.name, ""))
		default:
			prefixes = append(prefixes, entry(p.name, p.text))
		}
	}
	if len(prefixes) > 0 {
		target = append(target, entry("prefixes", prefixes))
	}

	doc := yaml.MapSlice{entry("apiVersion", APIVersion)}
	if s.Compat != "" {
		doc = append(doc, entry("compat", s.Compat))
	}
	doc = append(doc, entry("source", source), entry("target", target))
	if s.Fidelity != "" {
		doc = append(doc, entry("fidelity", s.Fidelity))
	}
	if !s.DefaultTime.IsZero() {
		doc = append(doc, entry("timestamps", yaml.MapSlice{entry("default", s.DefaultTime.UTC().Format(time.RFC3339Nano))}))
	}
	on := yaml.MapSlice{}
	if s.Collision != "" {
		on = append(on, entry("collision", s.Collision))
	}
	if s.UnknownAttribute != "" {
		on = append(on, entry("unknown-attribute", s.UnknownAttribute))
	}
	if len(on) > 0 {
		doc = append(doc, entry("on", on))
	}
	if len(s.AcceptLoss) > 0 {
		var losses []yaml.MapSlice
		for _, l := range s.AcceptLoss {
			m := yaml.MapSlice{}
			if l.Rule != "" {
				m = append(m, entry("rule", l.Rule))
			}
			losses = append(losses, append(m, entry("what", l.What), entry("why", l.Why)))
		}
		doc = append(doc, entry("accept_loss", losses))
	}
	rules := []yaml.MapSlice{}
	for _, rule := range s.Rules {
		rules = append(rules, rule.yaml())
	}
	if len(rules) > 0 {
		doc = append(doc, entry("rules", rules))
	}
	if len(s.Patterns) > 0 {
		doc = append(doc, entry("patterns", s.Patterns))
	}
	return yaml.MarshalWithOptions(doc, yaml.IndentSequence(true))
}

func (rule *Rule) yaml() yaml.MapSlice {
	entry := func(k string, v any) yaml.MapItem { return yaml.MapItem{Key: k, Value: v} }
	m := yaml.MapSlice{entry("name", rule.Name)}
	when := yaml.MapSlice{}
	for _, k := range slices.Sorted(maps.Keys(rule.When)) {
		when = append(when, entry(k, rule.When[k]))
	}
	if len(rule.Same) > 0 {
		when = append(when, entry("same", rule.Same))
	}
	if len(when) > 0 {
		m = append(m, entry("when", when))
	}
	m = append(m, entry("row", rule.Row))
	puts := []yaml.MapSlice{}
	for _, p := range rule.Put {
		put := yaml.MapSlice{}
		if p.Attr == Presence {
			put = append(put, entry("attr", nil))
		} else {
			put = append(put, entry("attr", p.Attr))
		}
		put = append(put, entry("cell", p.Cell))
		if p.Codec != "" {
			put = append(put, entry("codec", p.Codec))
		}
		if p.Order != "" {
			put = append(put, entry("order", p.Order))
		}
		switch {
		case p.Time.Capture != "":
			put = append(put, entry("ts", "{"+p.Time.Capture+"}"))
		case p.Time.Attr != "":
			put = append(put, entry("ts", yaml.MapSlice{entry("attr", p.Time.Attr), entry("as", p.Time.As)}))
		}
		puts = append(puts, put)
	}
	m = append(m, entry("put", puts))
	if rule.Latest != "" {
		m = append(m, entry("latest", rule.Latest))
	}
	if rule.Tag {
		m = append(m, entry("tag", true))
	}
	return m
}

func schemasYAML(schemas map[string]Schema) yaml.MapSlice {
	m := yaml.MapSlice{}
	for _, k := range slices.Sorted(maps.Keys(schemas)) {
		m = append(m, yaml.MapItem{Key: k, Value: schemas[k].yaml()})
	}
	return m
}

func (s Schema) yaml() any {
	switch {
	case s.Type == attr.L && s.Elem != nil:
		return yaml.MapSlice{{Key: "L", Value: s.Elem.yaml()}}
	case s.Type == attr.M && s.Keys == nil && s.Elem != nil && s.Elem.Elem == nil && s.Elem.Keys == nil:
		return yaml.MapSlice{{Key: "M", Value: s.Elem.yaml()}}
	case s.Type == attr.M && (s.Keys != nil || s.Elem != nil):
		m := yaml.MapSlice{{Key: "M", Value: schemasYAML(s.Keys)}}
		if s.Elem != nil {
			m = append(m, yaml.MapItem{Key: "else", Value: s.Elem.yaml()})
		}
		return m
	}
	return s.Type.String()
}
