package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

// manCommand prints a page of the manual as roff. It is hidden, since it is for packages.
type manCommand struct {
	Dir     string   `help:"Write the pages of all commands into this folder instead." placeholder:"DIR" group:"Flags:" env:"-"`
	Command []string `arg:"" optional:"" help:"The command, such as migrate verify."`
}

func (*manCommand) examples() []example {
	return []example{
		{"Write all pages for a package", "tabletop man --dir /usr/local/share/man/man1"},
		{"Read a manual page", "tabletop man serve | man -l -"},
	}
}

// Run prints or writes the pages.
func (c *manCommand) Run(_ context.Context, p *program) error {
	parser, err := newParser("")
	if err != nil {
		return err
	}
	found := false
	err = kong.Visit(parser.Model.Node, func(v kong.Visitable, next kong.Next) error {
		n, ok := v.(*kong.Node)
		switch {
		case !ok || n.Hidden:
			return nil
		case c.Dir != "":
			file := filepath.Join(c.Dir, manName(n)+".1")
			if err := os.WriteFile(file, manPage(n), 0o644); err != nil {
				return fmt.Errorf("--dir: %w", err)
			}
		case n.Path() == strings.Join(c.Command, " "):
			found = true
			_, _ = p.stdout.Write(manPage(n))
		}
		return next(nil)
	})
	if err == nil && c.Dir == "" && !found {
		err = badInput("man: %q is not a command", strings.Join(c.Command, " "))
	}
	return err
}

// manName returns the name of a command's page.
func manName(n *kong.Node) string { return strings.ReplaceAll(n.FullPath(), " ", "-") }

// roff is a page of the manual.
type roff struct{ bytes.Buffer }

// roffEscapes replaces characters that roff would interpret, or print as others.
var roffEscapes = strings.NewReplacer(`\`, `\(rs`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n", " ")

// text writes a line of text.
func (r *roff) text(text string) {
	if text = roffEscapes.Replace(text); strings.HasPrefix(text, ".") {
		text = `\&` + text
	}
	r.WriteString(text + "\n")
}

// macro writes a request with its argument.
func (r *roff) macro(name, argument string) {
	_, _ = fmt.Fprintf(r, ".%s %s\n", name, `"`+strings.ReplaceAll(roffEscapes.Replace(argument), `"`, `""`)+`"`)
}

// manPage returns the page of a command.
func manPage(n *kong.Node) []byte {
	r := &roff{}
	_, _ = fmt.Fprintf(r, ".TH %s 1 \"\" \"%s\" \"Tabletop\"\n", strings.ToUpper(roffEscapes.Replace(manName(n))), roffEscapes.Replace(strings.Join(strings.Fields(version())[:2], " ")))
	r.WriteString(".nh\n.ad l\n") // a broken name or a stretched command line cannot be copied
	r.macro("SH", "NAME")
	r.text(manName(n) + " - " + strings.TrimSuffix(n.Help, "."))
	r.macro("SH", "SYNOPSIS")
	r.text("tabletop " + strings.TrimSpace(n.Summary()))
	r.macro("SH", "DESCRIPTION")
	r.text(n.Help)
	for paragraph := range strings.SplitSeq(n.Detail, "\n\n") {
		if paragraph != "" {
			r.WriteString(".PP\n")
			r.text(paragraph)
		}
	}
	r.arguments(n)
	r.options(n)
	if list := examplesOf(n); len(list) > 0 {
		r.macro("SH", "EXAMPLES")
		for _, e := range list {
			if e.purpose != "" {
				r.WriteString(".PP\n")
				r.text(e.purpose + ":")
			}
			r.WriteString(".PP\n.nf\n.RS\n")
			r.text(e.line)
			r.WriteString(".RE\n.fi\n")
		}
	}
	r.macro("SH", "EXIT STATUS")
	for _, row := range [][2]string{
		{"0", "Success; compared data is equal."},
		{"1", "Compared data differs, or only a part of the work could be done."},
		{"2", "A bad input, mapping or flag."},
		{"3", "A fault of the environment, such as a port in use or a server that does not answer."},
	} {
		r.item(row[0], row[1])
	}
	return r.Bytes()
}

// item writes a term with its description.
func (r *roff) item(term, text string) {
	r.WriteString(".TP\n")
	r.macro("B", term)
	r.text(text)
}

// arguments writes the arguments, or the commands below a command.
func (r *roff) arguments(n *kong.Node) {
	if len(n.Positional) > 0 {
		r.macro("SH", "ARGUMENTS")
	}
	for _, arg := range n.Positional {
		r.item(arg.Summary(), arg.Help)
	}
	if _, ok := n.Target.Addr().Interface().(*ctlCommand); ok {
		r.macro("SH", "VERBS")
		for _, v := range ctlVerbs {
			r.item(strings.TrimSpace(v.name+" "+v.takes), v.what)
		}
	}
	if len(n.Children) == 0 {
		return
	}
	r.macro("SH", "COMMANDS")
	for _, g := range commandGroups(n) {
		r.macro("SS", g.title)
		for _, c := range g.commands {
			r.item(manName(c)+"(1)", c.Help)
		}
	}
}

// options writes the flags by group, with their environment variables.
func (r *roff) options(n *kong.Node) {
	r.macro("SH", "OPTIONS")
	for _, g := range flagGroups(n) {
		r.macro("SS", g.title)
		for _, f := range g.flags {
			text := f.Help
			for _, env := range f.Envs {
				text += " Variable: " + env + "."
			}
			r.item(flagSyntax(f), text)
		}
	}
}
