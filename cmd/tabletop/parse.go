package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"
)

// parseError is an error in a command line.
type parseError struct {
	error
	args *kong.Context // the recognized part of the command line
}

// Unwrap returns the error without the command line.
func (e *parseError) Unwrap() error { return e.error }

// The interfaces of commands.
type (
	// validator checks the flags of a command, and derives values from them.
	validator interface {
		validate(args *kong.Context) error
	}
	// connector is a command with connectFlags.
	connector interface {
		validateConnection() error
	}
	runner interface {
		Run(ctx context.Context, p *program) error
	}
	// argsRunner is a command that prints command lines with its own flags.
	argsRunner interface {
		Run(ctx context.Context, args *kong.Context, p *program) error
	}
)

// parse reads and checks a command line. After --help and --version, it returns an exitError with
// exitEqual.
//
// It takes the steps of [kong.Kong.Parse] and [kong.Context.Run], which look methods up by names. For
// such a lookup the linker keeps all exported methods of the program, which are a seventh of its size.
func (p *program) parse(parser *kong.Kong, args []string) (*kong.Context, error) {
	parsed, err := kong.Trace(parser, args)
	if err != nil {
		return nil, err
	}
	if parsed.Error != nil {
		return nil, &parseError{parsed.Error, parsed}
	}
	for _, part := range parsed.Path {
		if part.Flag == nil {
			continue
		}
		switch parsed.FlagValue(part.Flag).(type) {
		case helpFlag: // before kong checks the rest of the command line
			p.printHelpOf(parsed)
			return nil, &exitError{code: exitEqual}
		case kong.VersionFlag:
			_, _ = fmt.Fprintln(p.stdout, version())
			return nil, &exitError{code: exitEqual}
		}
	}
	if err := apply(parsed); err != nil {
		return nil, &parseError{err, parsed}
	}
	return parsed, nil
}

// apply sets the flags and arguments, with those of a configuration file, and checks them.
func apply(parsed *kong.Context) error {
	var config kong.Resolver
	for _, part := range parsed.Path {
		if part.Flag == nil {
			continue
		}
		if file, ok := parsed.FlagValue(part.Flag).(kong.ConfigFlag); ok {
			var err error
			if config, err = parsed.LoadConfig(string(file)); err != nil {
				return err
			}
		}
	}
	if err := parsed.Reset(); err != nil {
		return err
	}
	if config != nil {
		parsed.AddResolver(config)
	}
	if err := parsed.Resolve(); err != nil {
		return err
	}
	if _, err := parsed.Apply(); err != nil {
		return err
	}
	for _, part := range parsed.Path {
		if part.Command == nil {
			continue
		}
		if err := checkChoices(part.Command); err != nil {
			return err
		}
		command := part.Command.Target.Addr().Interface()
		if c, ok := command.(validator); ok {
			if err := c.validate(parsed); err != nil {
				return fmt.Errorf("%s: %w", part.Command.Path(), err)
			}
		}
		if c, ok := command.(connector); ok {
			if err := c.validateConnection(); err != nil {
				return err
			}
		}
	}
	if config != nil {
		if err := config.Validate(parsed.Model); err != nil {
			return err
		}
	}
	return checkComplete(parsed)
}

// checkChoices rejects a value that is not one of the choices of its flag or argument.
func checkChoices(n *kong.Node) error {
	for _, v := range n.Values() {
		text := fmt.Sprint(v.Target)
		if v.Enum == "" || v.Required && !v.Set || slices.Contains(v.EnumSlice(), text) {
			continue
		}
		var choices []string
		for _, choice := range v.EnumSlice() {
			choices = append(choices, strconv.Quote(choice))
		}
		return fmt.Errorf("%s must be one of %s but got %q", v.ShortSummary(), strings.Join(choices, ","), text)
	}
	return nil
}

// errNoCommand is the error of a command line without a command.
var errNoCommand = errors.New("name one of these commands")

// checkComplete rejects a command line without a command, a required flag or a required argument.
func checkComplete(parsed *kong.Context) error {
	var missing []string
	for _, f := range parsed.Flags() {
		if f.Required && !f.Set {
			missing = append(missing, f.Summary())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("missing flags: %s", strings.Join(missing, ", "))
	}
	n := parsed.Selected()
	if n == nil || len(n.Children) > 0 {
		return errNoCommand
	}
	for _, arg := range n.Positional {
		if arg.Required && !arg.Set {
			missing = append(missing, arg.Summary())
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("expected %q", strings.Join(missing, " "))
	}
	return nil
}

// runParsed runs the command of a command line.
func (p *program) runParsed(ctx context.Context, parsed *kong.Context) error {
	switch c := parsed.Selected().Target.Addr().Interface().(type) {
	case runner:
		return c.Run(ctx, p)
	case argsRunner:
		return c.Run(ctx, parsed, p)
	}
	return fmt.Errorf("%s has no method Run", parsed.Selected().Path())
}
