package main

import (
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
)

// loadConfig reads a configuration file: JSON or YAML, one member a flag, by
// the flag's name. YAML reads JSON too.
func loadConfig(r io.Reader) (kong.Resolver, error) {
	file := "configuration"
	if f, ok := r.(interface{ Name() string }); ok {
		file = f.Name()
	}
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	c := &configFile{file: file}
	if err := yaml.Unmarshal(src, &c.values); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

type configFile struct {
	file   string
	values map[string]any
}

// Validate refuses a member that is no flag of any command: a slip in a name
// would otherwise go unnoticed.
func (c *configFile) Validate(app *kong.Application) error {
	known := map[string]bool{}
	err := kong.Visit(app, func(node kong.Visitable, next kong.Next) error {
		if flag, ok := node.(*kong.Flag); ok {
			known[flag.Name] = true
		}
		return next(nil)
	})
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.values)) {
		if !known[name] {
			return fmt.Errorf("%s: %q is not a flag of any command; expected the name of a flag, without its dashes", c.file, name)
		}
	}
	return nil
}

// Resolve returns the value of a flag that neither the command line nor the
// environment has set, or nil.
func (c *configFile) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	for _, env := range flag.Envs {
		if _, set := os.LookupEnv(env); set {
			return nil, nil
		}
	}
	switch v := c.values[flag.Name].(type) {
	case nil:
		return nil, nil
	case map[string]any:
		return nil, fmt.Errorf("%s: %q is a map; a flag's value or a list of them is expected", c.file, flag.Name)
	case []any:
		if !flag.IsSlice() {
			return nil, fmt.Errorf("%s: %q is a list; one value is expected", c.file, flag.Name)
		}
		return v, nil
	default:
		return fmt.Sprint(v), nil
	}
}
