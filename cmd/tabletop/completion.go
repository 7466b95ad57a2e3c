package main

import (
	"context"
	"embed"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/tabletop-emu/tabletop/docs"
)

// completionFiles has the scripts of the shells. They call the program for the completions of a
// command line, so that the grammar is its only source.
//
//go:embed completion
var completionFiles embed.FS

// completionCommand prints the script of a shell.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish." placeholder:"bash|zsh|fish"`
}

// Help returns the long help of the command.
func (*completionCommand) Help() string {
	return `Prints a script that completes commands, ctl verbs, flags and their values, files and folders. Start a new shell after you install it.`
}

func (*completionCommand) examples() []example {
	return []example{
		{"bash, with the package bash-completion", "tabletop completion bash > ~/.local/share/bash-completion/completions/tabletop"},
		{"zsh; the folder must be in fpath before compinit runs", "tabletop completion zsh > ~/.zfunc/_tabletop"},
		{"fish", "tabletop completion fish > ~/.config/fish/completions/tabletop.fish"},
	}
}

// Run prints the script.
func (c *completionCommand) Run(_ context.Context, p *program) error {
	script, err := completionFiles.ReadFile("completion/tabletop." + c.Shell)
	if err != nil {
		return err
	}
	_, _ = p.stdout.Write(script)
	return nil
}

// completeArgument, before the words of a command line, asks for completions of the last word.
const completeArgument = "__complete"

// The last line of the completions: which names of the file system complete the word too.
const (
	completeNone    = ":none"
	completeFiles   = ":files"
	completeFolders = ":folders"
)

// complete prints the completions of the last word, each with its description after a tab.
func (p *program) complete(words []string) error {
	last := len(words) - 1
	command := commandOf(words[:max(last, 0)])
	if command == "help" || command == "version" { // the names of all commands complete help and --version
		command = ""
	}
	parser, err := newParser(command)
	if err != nil {
		return err
	}
	c := completion{out: p.stdout, node: parser.Model.Node, names: completeNone}
	if last >= 0 {
		for _, word := range words[:last] {
			c.pass(word)
		}
		c.last(words[last])
	}
	_, _ = fmt.Fprintln(c.out, c.names)
	return nil
}

// completion is the state after the first words of a command line.
type completion struct {
	out       io.Writer
	node      *kong.Node
	flag      *kong.Flag // the next word is its value, or nil
	given     []string   // names of flags
	arguments []string
	onlyArgs  bool   // after --
	names     string // completeNone, completeFiles or completeFolders
}

// pass advances the state over a word that is not the last one.
func (c *completion) pass(word string) {
	switch {
	case c.flag != nil:
		c.flag = nil
	case c.onlyArgs:
		c.arguments = append(c.arguments, word)
	case word == "--":
		c.onlyArgs = true
	case strings.HasPrefix(word, "-"):
		name, _, valued := strings.Cut(word, "=")
		if f := c.flagNamed(name); f != nil {
			c.given = append(c.given, f.Name)
			if !valued && !f.IsBool() {
				c.flag = f
			}
		}
	default:
		for _, child := range c.node.Children {
			if child.Name == word {
				c.node = child
				return
			}
		}
		c.arguments = append(c.arguments, word)
	}
}

// last prints the completions of the last word.
func (c *completion) last(word string) {
	name, value, valued := strings.Cut(word, "=")
	switch {
	case c.flag != nil:
		c.values(word, c.flag.FormatPlaceHolder(), "")
	case !c.onlyArgs && strings.HasPrefix(word, "-") && valued:
		if f := c.flagNamed(name); f != nil {
			c.values(word, f.FormatPlaceHolder(), strings.TrimSuffix(word, value))
		}
	case !c.onlyArgs && strings.HasPrefix(word, "-"):
		for _, g := range flagGroups(c.node) {
			for _, f := range g.flags {
				if f.IsCumulative() || !slices.Contains(c.given, f.Name) {
					c.propose(word, "--"+f.Name, f.Help)
				}
			}
		}
	case len(c.node.Children) > 0:
		c.commands(word, c.node)
	default:
		c.argument(word)
	}
}

// flagNamed returns the flag of the command with the given name, including its dashes, or
// nil.
func (c *completion) flagNamed(name string) *kong.Flag {
	for _, group := range c.node.AllFlags(false) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// commands prints the commands below n.
func (c *completion) commands(word string, n *kong.Node) {
	for _, child := range n.Children {
		if !child.Hidden {
			c.propose(word, child.Name, child.Help)
		}
	}
}

// argument prints the completions of an argument.
func (c *completion) argument(word string) {
	switch c.node.Target.Addr().Interface().(type) {
	case *ctlCommand:
		if len(c.arguments) == 0 {
			c.propose(word, "help", "list the verbs, or describe one")
		}
		if len(c.arguments) == 0 || len(c.arguments) == 1 && c.arguments[0] == "help" {
			for _, v := range ctlVerbs {
				c.propose(word, v.name, v.what)
			}
		}
	case *helpCommand:
		c.commandsFor(word)
		if len(c.arguments) == 0 {
			for _, name := range topics() {
				c.propose(word, name, docs.Title(strings.TrimPrefix(name, "docs/")))
			}
		}
	default:
		if i := min(len(c.arguments), len(c.node.Positional)-1); i >= 0 && (i == len(c.arguments) || c.node.Positional[i].IsCumulative()) {
			c.values(word, c.node.Positional[i].Tag.PlaceHolder, "")
		}
	}
}

// commandsFor prints the commands below the one that the arguments name.
func (c *completion) commandsFor(word string) {
	n := c.node.Parent
	for _, name := range c.arguments {
		i := slices.IndexFunc(n.Children, func(child *kong.Node) bool { return child.Name == name })
		if i < 0 {
			return
		}
		n = n.Children[i]
	}
	c.commands(word, n)
}

// literal matches an alternative of a placeholder that stands for itself, such as strict, or
// json= before a name in capitals.
var literal = regexp.MustCompile(`^([a-z][a-z0-9-]*=?)+`)

// values prints the completions of a value by its placeholder, such as strict|production|off,
// FILE or json=FILE. prefix is the part of the word before the value.
func (c *completion) values(word, placeholder, prefix string) {
	placeholder, _, _ = strings.Cut(placeholder, ",...")
	for alternative := range strings.SplitSeq(placeholder, "|") {
		text := literal.FindString(alternative)
		kind := strings.TrimPrefix(alternative, text)
		switch {
		case kind != "" && !strings.HasPrefix(word, prefix+text):
			if strings.HasSuffix(text, "=") {
				c.propose(word, prefix+text, "")
			}
		case kind == "FILE" || kind == "PATH":
			c.names = completeFiles
		case kind == "DIR":
			if c.names == completeNone {
				c.names = completeFolders
			}
		case kind == "":
			c.propose(word, prefix+text, "")
		}
	}
}

// propose prints a completion if it continues the word.
func (c *completion) propose(word, name, help string) {
	if name == "" || !strings.HasPrefix(name, word) {
		return
	}
	if help, _, _ = strings.Cut(help, ". "); help != "" {
		help = "\t" + strings.TrimSuffix(help, ".")
	}
	_, _ = fmt.Fprintln(c.out, name+help)
}
