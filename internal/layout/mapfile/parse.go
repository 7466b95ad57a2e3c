package mapfile

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/cells"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/days"
	"github.com/tabletop-emu/tabletop/internal/layout/codec"
	"github.com/tabletop-emu/tabletop/internal/layout/rowkey"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// Parse strictly parses a mapping file; unknown keys are errors. Errors are *maperr.SpecError, or
// maperr.SpecErrors for several faults.
func Parse(file string, src []byte) (*Spec, error) {
	root, err := strictyaml.Parse(file, src)
	if err == nil && root.IsZero() {
		err = root.Fail("the file is empty", "apiVersion: "+APIVersion)
	}
	s := &Spec{file: file, pos: strictyaml.Positions{}}
	f := mappingFile{Spec: s}
	if err == nil {
		err = root.With(strictyaml.Options{Hooks: hooks, Positions: s.pos, All: true}).Decode(&f)
	}
	var faults []*maperr.SpecError
	for _, fault := range strictyaml.Faults(err) {
		faults = append(faults, &maperr.SpecError{Code: maperr.CodeSyntax, File: file, Line: fault.At.Line, Column: fault.At.Column, Path: fault.Path, What: fault.What, Expected: fault.Expected})
		if fault.Path == "apiVersion" { // in another version the other faults may be correct
			faults = faults[len(faults)-1:]
			break
		}
	}
	if err := maperr.Joined(faults); err != nil {
		return nil, err
	}
	s.lint = f.Lint
	return s, nil
}

// mappingFile is a Spec with the fields whose file form is a single word.
type mappingFile struct {
	APIVersion string `yaml:"apiVersion,required" words:"migration/v1"`
	Unmatched  string `yaml:"on.unmatched" words:"error"`
	Limit      string `yaml:"on.limit" words:"error"`
	*Spec      `yaml:",inline"`
	Lint       strictyaml.Value `yaml:"lint"`
}

// hooks read forms that tags cannot express.
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
	strictyaml.ReadKey("schema", readRuleSchema),
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
	// null is YAML's empty value, and also the name of a loss.
	if l.What = LossNull; !strings.EqualFold(v.Scalar(), LossNull) {
		return v.Fail("no loss", strings.Join(losses, ", "))
	}
	return nil
}

// readKeyAttr reads {name, type}, or only a name, whose type the schema has.
func readKeyAttr(v strictyaml.Value, k *attr.KeyAttr) error {
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
	case v.Kind() == strictyaml.Text, v.Kind() == strictyaml.Null && v.Scalar() == "NULL": // such names are null in YAML
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
				return v.Fail("L and M are both set", expectedSchema)
			}
			s.Type = attr.M
			if v.Kind() == strictyaml.Mapping {
				return v.Decode(&s.Keys)
			}
			return elem(v)
		},
		"else": func(v strictyaml.Value) error {
			if s.Type != attr.M || s.Elem != nil {
				return v.Fail("else is set without keys", expectedSchema)
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
	g.Lag, err = readDuration(v, 0, "a duration of at least 0s, such as 500ms")
	if err == nil && g.Lag%time.Millisecond != 0 {
		err = v.Unfit("a duration in whole milliseconds, such as 500ms")
	}
	return err
}

func readMaxAge(v strictyaml.Value, g *gcFile) (err error) {
	g.MaxAge, err = readDuration(v, time.Millisecond, "a duration of at least 1ms, such as 720h or 30d")
	return err
}

func readDuration(v strictyaml.Value, least time.Duration, expected string) (time.Duration, error) {
	text, err := v.Text(expected)
	if err != nil {
		return 0, err
	}
	d, err := days.Parse(text)
	if err != nil || d < least {
		return 0, v.Unfit(expected)
	}
	return d, nil
}

// familyFile is a family in a mapping file.
type familyFile struct {
	GC gcFile `yaml:"gc,null"`
}

type gcFile struct {
	Versions int           `yaml:"versions" range:"1,2147483647"`
	MaxAge   time.Duration `yaml:"maxAge"`
}

// readFamilies reads column families, in the order of the file.
func readFamilies(v strictyaml.Value, families *[]cells.Family) error {
	entries, err := v.Entries()
	for _, e := range entries {
		var f familyFile
		if e.Value.Kind() != strictyaml.Null {
			err = errors.Join(err, e.Value.Decode(&f))
		}
		*families = append(*families, cells.Family{Name: e.Name, GC: cells.GC{Versions: f.GC.Versions, MaxAge: f.GC.MaxAge}})
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
		// A list is the equality of key attributes; otherwise "same" is the template of a key
		// attribute of that name.
		if e.Name == "same" && e.Value.Kind() == strictyaml.List {
			err = errors.Join(err, e.Value.Decode(&r.Same))
			continue
		}
		text, fault := e.Value.Text("a template")
		if r.When == nil {
			r.When = map[string]string{}
		}
		r.When[e.Name], err = text, errors.Join(err, fault)
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
	if !ok || !ok2 || !rowkey.CaptureName.MatchString(name) {
		return v.Unfit(`"{capture}" or {attr: name, as: iso(s)}`)
	}
	t.Capture = name
	return nil
}

func readTimeFormat(v strictyaml.Value, t *PutTime) (err error) {
	t.As, err = v.Word(slices.Sorted(maps.Keys(codec.TimeFormats))...)
	return err
}
