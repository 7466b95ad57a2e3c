package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/internal/nearest"
	"github.com/tabletop-emu/tabletop/internal/strictyaml"
)

// loadConfig reads a configuration file: JSON or YAML, one member per flag, by the flag's name.
// The YAML parser also reads JSON.
func loadConfig(r io.Reader) (kong.Resolver, error) {
	file := "configuration"
	if f, ok := r.(interface{ Name() string }); ok {
		file = f.Name()
	}
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	root, err := strictyaml.Parse(file, src)
	if err != nil {
		return nil, err
	}
	c := &configFile{values: map[string]strictyaml.Value{}}
	if root.IsZero() {
		return c, nil
	}
	if c.entries, err = root.Entries(); err != nil {
		return nil, err
	}
	for _, e := range c.entries {
		c.values[e.Name] = e.Value
	}
	return c, nil
}

type configFile struct {
	entries []strictyaml.Entry
	values  map[string]strictyaml.Value
}

// Validate returns an error for a member that names no flag of any command: a
// misspelled name would otherwise go unnoticed.
func (c *configFile) Validate(app *kong.Application) error {
	known, err := flagNames(app, func(f *kong.Flag) []string { return []string{f.Name} })
	if err != nil {
		return err
	}
	for _, e := range c.entries {
		if !slices.Contains(known, e.Name) {
			return fmt.Errorf("%s: %q is not a flag of any command%s; expected the name of a flag without its dashes", e.Key.Place(), e.Name, nearestText("", e.Name, known))
		}
	}
	return nil
}

// flagNames returns names of all flags of all commands.
func flagNames(app *kong.Application, names func(*kong.Flag) []string) (all []string, err error) {
	err = kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			all = append(all, names(flag)...)
		}
		return next(nil)
	})
	return all, err
}

// nearestText suggests the known name nearest to name, or returns "". prefix precedes all known
// names.
func nearestText(prefix, name string, known []string) string {
	if near := nearest.To(name, known); near != "" {
		return ", nearest to " + prefix + near
	}
	return ""
}

// environmentPrefix, with an underscore, begins the names of variables that set flags.
const environmentPrefix = "TABLETOP"

// warnOfEnvironment warns of variables that look like a flag's but set none. It is only a
// warning, since such a variable may be for other programs, such as the version of an image.
// Most variables are those of parser's command, so that the flags of all others need not be read.
func (p *program) warnOfEnvironment(parser *kong.Kong) error {
	const prefix = environmentPrefix + "_"
	var named []string // without the prefix, which would make all names similar
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if rest, ok := strings.CutPrefix(name, prefix); ok && name != configVariable && name != binaryVariable {
			named = append(named, rest)
		}
	}
	variables := func(parser *kong.Kong) ([]string, error) {
		return flagNames(parser.Model, func(f *kong.Flag) (names []string) {
			for _, name := range slices.Concat(f.Envs, []string{configVariable}) {
				if name, ok := strings.CutPrefix(name, prefix); ok {
					names = append(names, name)
				}
			}
			return names
		})
	}
	known, err := variables(parser)
	if err != nil {
		return err
	}
	isKnown := func(name string) bool { return slices.Contains(known, name) }
	if named = slices.DeleteFunc(named, isKnown); len(named) == 0 {
		return nil
	}
	all, err := newParser("")
	if err != nil {
		return err
	}
	if known, err = variables(all); err != nil {
		return err
	}
	slices.Sort(named)
	for _, name := range slices.DeleteFunc(named, isKnown) {
		_, _ = fmt.Fprintf(p.stderr, "tabletop: warning: %s%s in the environment does not set a flag of any command%s\n", prefix, name, nearestText(prefix, name, known))
	}
	return nil
}

const (
	// configVariable names the configuration file in the environment.
	configVariable = environmentPrefix + "_CONFIG"
	// binaryVariable names this program to the clients of the control API, which start it.
	binaryVariable = environmentPrefix + "_BINARY"
)

// Resolve returns the value of a flag that neither the command line nor the
// environment has set, or nil.
func (c *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	v := c.values[flag.Name]
	switch v.Kind() { //nolint:exhaustive // the others are scalars
	case strictyaml.Null:
		return nil, nil
	case strictyaml.Mapping:
		return nil, v.Other("a flag's value or a list of them")
	case strictyaml.List:
		if !flag.IsSlice() {
			return nil, v.Other("one value")
		}
		items, err := v.Items()
		all := make([]any, len(items))
		for i, item := range items {
			if all[i], err = flagText(item); err != nil {
				return nil, err
			}
		}
		return all, err
	}
	return flagText(v)
}

// flagText converts a scalar to its form on the command line.
func flagText(v strictyaml.Value) (any, error) {
	switch v.Kind() { //nolint:exhaustive // texts and numbers are as they are written
	case strictyaml.Null, strictyaml.Mapping, strictyaml.List:
		return nil, v.Other("a flag's value")
	case strictyaml.Bool:
		return strings.ToLower(v.Scalar()), nil
	}
	return v.Scalar(), nil
}
