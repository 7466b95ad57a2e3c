package main

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/internal/nearest"
)

// usage is an error in a command line.
type usage struct {
	text    string
	node    *kong.Node // the last command that kong recognized
	args    []string
	program *kong.Application
}

// usageOf returns the usage error of a parse error.
func usageOf(e *parseError) *usage {
	u := &usage{text: e.Error(), node: e.args.Model.Node, args: e.args.Args, program: e.args.Model}
	for _, part := range e.args.Path {
		if part.Command != nil {
			u.node = part.Command
		}
	}
	return u
}

// noCommand reports whether the command line names no command.
func (u *usage) noCommand() bool {
	return u.text == errNoCommand.Error()
}

// String formats the error: the command, the fault, and where to find its flags.
func (u *usage) String() string {
	hint := u.hint()
	text, what := u.text+hint, "flags"
	if len(u.node.Children) > 0 {
		what = "commands"
		if rest, ok := strings.CutPrefix(text, "unexpected argument "); ok {
			text = "unknown command " + rest
		}
	}
	if name := u.command(); name != "" && !strings.HasPrefix(text, name+":") {
		text = name + ": " + text
	}
	if u.noCommand() {
		return text
	}
	return fmt.Sprintf("%s\nRun \"tabletop %s\" for the %s.", text, strings.TrimSpace(u.command()+" --help"), what)
}

// command returns the name of the command, such as "migrate load"; "" if there was none.
func (u *usage) command() string { return commandName(u.node) }

func commandName(n *kong.Node) string {
	if n.Parent == nil {
		return ""
	}
	return strings.TrimSpace(commandName(n.Parent) + " " + n.Name)
}

var (
	unexpectedArgument = regexp.MustCompile(`^unexpected argument (\S+)$`)
	unknownFlag        = regexp.MustCompile(`^unknown flag --(\S+)$`)
	missingValue       = regexp.MustCompile(`^--([\w-]+): expected .* but got "EOL"`)
)

// hint suggests what may have been meant, or returns "". For a flag without its value it changes
// u.text instead.
func (u *usage) hint() string {
	if m := unexpectedArgument.FindStringSubmatch(u.text); m != nil {
		return u.hintOfArgument(m[1])
	}
	if m := unknownFlag.FindStringSubmatch(u.text); m != nil {
		return u.hintOfFlag(m[1])
	}
	if m := missingValue.FindStringSubmatch(u.text); m != nil {
		if f := u.flag(m[1]); f != nil {
			u.text = fmt.Sprintf("--%s needs a value: --%s %s", f.Name, f.Name, f.FormatPlaceHolder())
		}
	}
	return ""
}

func (u *usage) hintOfArgument(word string) string {
	if i := slices.Index(u.args, word); i > 0 {
		// A flag that may stand without a value takes its value after "=".
		if f := u.flag(strings.TrimPrefix(u.args[i-1], "--")); f != nil && f.IsBool() && f.Target.Kind() != reflect.Bool {
			return fmt.Sprintf("; its value follows =, as in --%s=%s", f.Name, word)
		}
	}
	var near []string
	for _, leaf := range u.program.Leaves(true) {
		if leaf.Name == word || nearest.To(word, []string{leaf.Name}) != "" {
			near = append(near, fmt.Sprintf(`"tabletop %s"`, commandName(leaf)))
		}
	}
	if len(near) == 0 && u.node.Parent == nil {
		if verb := nearest.To(word, ctlVerbNames()); verb != "" {
			near = append(near, fmt.Sprintf(`"tabletop ctl %s"`, verb))
		}
	}
	return didYouMean(near)
}

// otherName has the flags that name a Bigtable: load writes to a target, verify compares against
// it.
var otherName = map[string]string{"target": "against", "against": "target"}

func (u *usage) hintOfFlag(name string) string {
	var near []string
	for _, f := range u.flags() {
		if nearest.To(name, []string{f.Name}) != "" || haveWordInCommon(name, f.Name) || f.Name == otherName[name] {
			near = append(near, "--"+f.Name)
		}
	}
	return didYouMean(near)
}

// haveWordInCommon reports whether two flag names share a word of significant length.
func haveWordInCommon(a, b string) bool {
	words := strings.Split(b, "-")
	return slices.ContainsFunc(strings.Split(a, "-"), func(w string) bool { return len(w) > 3 && slices.Contains(words, w) })
}

func didYouMean(near []string) string {
	switch len(near) {
	case 0:
		return ""
	case 1:
		return ", did you mean " + near[0] + "?"
	}
	return ", did you mean one of " + strings.Join(near, ", ") + "?"
}

// flags returns the flags of the command.
func (u *usage) flags() (out []*kong.Flag) {
	for _, group := range u.node.AllFlags(true) {
		out = append(out, group...)
	}
	return out
}

// flag returns the flag of the command with the given name, or nil.
func (u *usage) flag(name string) *kong.Flag {
	for _, f := range u.flags() {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// wsaEADDRINUSE is the error of Windows for a port in use.
const wsaEADDRINUSE syscall.Errno = 10048

// inUse reports whether a port cannot be opened since a process uses it.
func inUse(err error) bool {
	return errors.Is(err, syscall.EADDRINUSE) || errors.Is(err, wsaEADDRINUSE)
}

// freePort advises how to free a port in use. It names the process that holds the port, if that is
// known.
func freePort(addr listenAddress) string {
	holder := cmp.Or(portHolder(os.DirFS("/proc"), addr), "the program")
	return fmt.Sprintf("stop %s, which uses the port, or choose another", holder)
}

// listenError returns the error of a port that cannot be opened, with advice.
func listenError(flag string, addr listenAddress, err error) error {
	if !inUse(err) {
		return fmt.Errorf("%s: %w", flag, err)
	}
	host, _, _ := net.SplitHostPort(string(addr)) // already parsed
	return fmt.Errorf("%s: %w: %s; %s=%s selects a free one", flag, err, freePort(addr), flag, net.JoinHostPort(host, "0"))
}
