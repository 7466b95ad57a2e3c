package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/tabletop-emu/tabletop/docs"
)

// helpFlag prints the help of a command and ends the program. With =all, it describes the rare
// flags too.
type helpFlag string

const helpAll helpFlag = "all"

// IsBool implements kong.BoolMapperValue: the flag may stand without a value.
func (*helpFlag) IsBool() bool { return true }

// Decode implements kong.MapperValue.
func (h *helpFlag) Decode(ctx *kong.DecodeContext) error {
	*h = "usual"
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		return nil
	}
	switch value := fmt.Sprint(ctx.Scan.Pop().Value); value {
	case "true":
	case string(helpAll):
		*h = helpAll
	default:
		return fmt.Errorf("%q must be all", value)
	}
	return nil
}

// printHelpOf prints the help of the command of a command line that has --help.
func (p *program) printHelpOf(parsed *kong.Context) {
	node := parsed.Model.Node
	all := false
	for _, part := range parsed.Path {
		if part.Command != nil {
			node = part.Command
		}
		if part.Flag != nil && part.Flag.Name == "help" {
			all = parsed.FlagValue(part.Flag) == helpAll
		}
	}
	p.printHelp(p.stdout, node, all)
}

// helpCommand prints the help of a command, or a document.
type helpCommand struct {
	All     bool     `help:"Also describe rarely used flags." group:"Flags:" env:"-"`
	Command []string `arg:"" optional:"" help:"The command, such as migrate verify, a document, such as mapping or docs/serve.md, or words to find in the documents."`
}

// Run prints the help or the document.
func (c *helpCommand) Run(ctx context.Context, p *program) error {
	if len(c.Command) == 1 && !isCommand(c.Command[0]) {
		if text, ok := docs.Text(c.Command[0]); ok {
			_, _ = io.WriteString(p.stdout, text)
			return nil
		}
	}
	if len(c.Command) > 0 && !isCommand(c.Command[0]) {
		if words := strings.Join(c.Command, " "); p.printFound(words, docs.Search(words)) {
			return nil
		}
	}
	flag := "--help"
	if c.All {
		flag += "=" + string(helpAll)
	}
	args := append(c.Command, flag)
	if len(c.Command) > 1 && c.Command[0] == "ctl" { // a verb, which is not a command of kong
		args = slices.Insert(c.Command, 1, "help")
	}
	return &exitError{code: p.command(ctx, args)}
}

// maxFound is the number of sections that help lists.
const maxFound = 12

// printFound prints the sections that contain words, and reports whether there are any.
func (p *program) printFound(words string, found []docs.Section) bool {
	if len(found) == 0 {
		return false
	}
	_, _ = fmt.Fprintf(p.stdout, "No command or document is named %q. These sections contain it:\n\n", words)
	w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	for _, s := range found[:min(len(found), maxFound)] {
		_, _ = fmt.Fprintf(w, "  tabletop help %s\t%s\n", topic(s.Document), s.Heading)
	}
	_ = w.Flush()
	if more := len(found) - maxFound; more > 0 {
		_, _ = fmt.Fprintf(p.stdout, "\n%d more sections contain it.\n", more)
	}
	return true
}

func (*helpCommand) examples() []example {
	return []example{
		{"", "tabletop help migrate verify"},
		{"Describe all flags of serve", "tabletop help --all serve"},
		{"Describe a verb of ctl", "tabletop help ctl rows"},
		{"Print the list of documents, with their subjects", "tabletop help index"},
		{"Find the documents about a subject", "tabletop help hot key"},
	}
}

// topics returns the names of all documents. A command of the same name is described instead of
// a document, unless its folder is given.
func topics() []string {
	names := docs.Names()
	for i, name := range names {
		names[i] = topic(name)
	}
	return names
}

// firstDocuments are the documents that the help of the program names, with their subjects.
var firstDocuments = [][2]string{
	{"guide", "From a DynamoDB export to a verified load in ten minutes."},
	{"tasks/go", "Tests in Go, with both endpoints in the test's process."},
	{"tasks/pytest", "Tests in Python (Node: tasks/javascript, Java: tasks/junit)."},
	{"docs/serve", "Addresses, data on disk, seeds, another Bigtable as store."},
	{"control", "Snapshots, clock, faults and requests of a running server."},
	{"mapping", "Mapping files, which convert items to rows and back."},
	{"support", "What both endpoints support, and what is missing."},
	{"troubleshooting", "Error messages, with their causes and remedies."},
}

// topic returns the name by which help prints a document.
func topic(name string) string {
	if isCommand(name) {
		return "docs/" + name
	}
	return name
}

// versionCommand prints the version, as --version does.
type versionCommand struct{}

// Run prints the version.
func (*versionCommand) Run(_ context.Context, p *program) error { //nolint:unparam // a runner returns an error
	_, _ = fmt.Fprintln(p.stdout, version())
	return nil
}

// example is a command line with its purpose, for the help of a command.
type example struct{ purpose, line string }

// examplesOf returns the examples of a command.
func examplesOf(n *kong.Node) []example {
	if e, ok := n.Target.Addr().Interface().(interface{ examples() []example }); ok {
		return e.examples()
	}
	return nil
}

// flagGroup is a group of flags in the help.
type flagGroup struct {
	title string // without a colon
	flags []*kong.Flag
}

// commonGroup is the group of the flags of all commands, the last one.
const commonGroup = "Common flags"

// flagGroups returns the flags of a command in groups.
func flagGroups(n *kong.Node) (out []flagGroup) {
	for _, flags := range slices.Backward(n.AllFlags(true)) { // those of parents come first
		for _, f := range flags {
			title := "Flags"
			if f.Group != nil {
				title = strings.TrimSuffix(f.Group.Title, ":")
			}
			i := slices.IndexFunc(out, func(g flagGroup) bool { return g.title == title })
			if i < 0 {
				i, out = len(out), append(out, flagGroup{title: title})
			}
			out[i].flags = append(out[i].flags, f)
		}
	}
	return out
}

// rare reports whether only --help=all describes a flag.
func rare(f *kong.Flag) bool { return f.Tag.Has("rare") }

// commandGroup is a group of commands in the help.
type commandGroup struct {
	title    string // without a colon
	commands []*kong.Node
}

// commandGroups returns the commands below a command in groups.
func commandGroups(n *kong.Node) (out []commandGroup) {
	for _, leaf := range n.Leaves(true) {
		title := strings.TrimSuffix(leaf.ClosestGroup().Title, ":")
		if i := len(out) - 1; i < 0 || out[i].title != title {
			out = append(out, commandGroup{title: title})
		}
		out[len(out)-1].commands = append(out[len(out)-1].commands, leaf)
	}
	return out
}

// The width of the help, in columns.
const (
	defaultHelpWidth = 80 // of an output that is not a terminal
	leastHelpWidth   = 60
	mostHelpWidth    = 100
	nameWidth        = 25 // of the column with names
)

// helpWidth returns the width of the help: $COLUMNS if the user exports it, else the width of the
// terminal, within leastHelpWidth and mostHelpWidth.
func helpWidth(terminal int) int {
	width, _, err := term.GetSize(terminal)
	if err != nil {
		width = defaultHelpWidth
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil {
		width = n
	}
	return min(max(width, leastHelpWidth), mostHelpWidth)
}

// helpPage writes the help of a command.
type helpPage struct {
	io.Writer
	width int // in columns
	bold  func(string) string
}

// printHelp prints the help of a command on stdout or stderr. all includes the rare flags.
func (p *program) printHelp(to io.Writer, n *kong.Node, all bool) {
	h := helpPage{to, cmp.Or(p.helpWidth, defaultHelpWidth), p.bold}
	if to == p.stderr { // which may not be the terminal of stdout
		h.bold = func(text string) string { return text }
	}
	h.wrapped("", n.Help)
	h.headed("Usage", "")
	h.line("  tabletop %s", strings.TrimSpace(n.Summary()))
	for text := range strings.SplitSeq(n.Detail, "\n\n") {
		if text != "" {
			h.line("")
			h.wrapped("", text)
		}
	}
	if list := examplesOf(n); len(list) > 0 {
		h.headed("Examples", "")
		for _, e := range list {
			if e.purpose != "" {
				h.line("  # %s", e.purpose)
			}
			h.line("  %s", e.line)
		}
	}
	if len(n.Positional) > 0 {
		h.headed("Arguments", "")
		rows := [][2]string{}
		for _, arg := range n.Positional {
			rows = append(rows, [2]string{arg.Summary(), arg.Help})
		}
		h.columns(rows)
	}
	if _, ok := n.Target.Addr().Interface().(*ctlCommand); ok {
		h.headed("Verbs", "")
		rows := [][2]string{}
		for _, v := range ctlVerbs {
			rows = append(rows, [2]string{strings.TrimSpace(v.name + " " + v.takes), v.what})
		}
		h.columns(rows)
	}
	for _, g := range commandGroups(n) {
		h.headed(g.title, "")
		rows := [][2]string{}
		for _, c := range g.commands {
			rows = append(rows, [2]string{c.Path(), c.Help})
		}
		h.columns(rows)
	}
	if n.Type == kong.ApplicationNode {
		h.headed("Documents", "")
		h.columns(firstDocuments)
		h.line("")
		h.wrapped("  ", fmt.Sprintf(`"tabletop help DOCUMENT" prints one, "tabletop help index" lists all %d, and "tabletop help WORDS" searches them.`, len(docs.Names())))
	}
	h.flags(n, all)
	h.footer(n)
}

// flags prints the flags in groups, and then the names of the rare ones.
func (h helpPage) flags(n *kong.Node, all bool) {
	var left []string
	for _, g := range flagGroups(n) {
		rows := [][2]string{}
		for _, f := range g.flags {
			if rare(f) && !all {
				left = append(left, "--"+f.Name)
				continue
			}
			rows = append(rows, [2]string{flagSyntax(f), f.Help})
		}
		if g.title == commonGroup && len(left) > 0 {
			h.headed("Rare flags", fmt.Sprintf(` ("tabletop help --all %s" describes them)`, n.Path()))
			h.wrapped("  ", strings.Join(left, " "))
		}
		if len(rows) > 0 {
			h.headed(g.title, "")
			h.columns(rows)
		}
	}
}

// flagSyntax returns a flag with its short name and its value.
func flagSyntax(f *kong.Flag) string {
	text := "--" + f.Name
	if f.Short != 0 {
		text = "-" + string(f.Short) + ", " + text
	}
	switch {
	case !f.IsBool():
		text += "=" + f.FormatPlaceHolder()
	case f.PlaceHolder != "": // may stand without its value
		text += "[=" + f.PlaceHolder + "]"
	}
	return text
}

// footer prints where to read more.
func (h helpPage) footer(n *kong.Node) {
	if len(n.Children) > 0 {
		h.line("")
		h.wrapped("", fmt.Sprintf(`"tabletop help %s" describes a command and its flags.`, strings.TrimSpace(n.Path()+" COMMAND")))
		return
	}
	var texts []string
	if f := settable(n); f != nil {
		texts = append(texts, fmt.Sprintf("Each flag can also be set by an environment variable ($%s for --%s) or in a file (--config).", f.Envs[0], f.Name))
	}
	if _, ok := docs.Text(n.Name); ok {
		texts = append(texts, fmt.Sprintf(`"tabletop help docs/%s" prints its document.`, n.Name))
	}
	if texts != nil {
		h.line("")
		h.wrapped("", strings.Join(texts, " "))
	}
}

// settable returns the first flag of a command that a variable sets too, or nil.
func settable(n *kong.Node) *kong.Flag {
	for _, g := range flagGroups(n) {
		for _, f := range g.flags {
			if g.title != commonGroup && len(f.Envs) > 0 {
				return f
			}
		}
	}
	return nil
}

func (h helpPage) line(format string, args ...any) {
	_, _ = fmt.Fprintf(h, format+"\n", args...)
}

// headed prints an empty line and a heading.
func (h helpPage) headed(title, more string) { h.line("\n%s%s:", h.bold(title), more) }

// wrapped prints a paragraph.
func (h helpPage) wrapped(indent, text string) {
	for _, line := range wrap(text, h.width-len(indent)) {
		h.line("%s%s", indent, line)
	}
}

// columns prints names with their descriptions. A name that is too long for its column has a
// line of its own.
func (h helpPage) columns(rows [][2]string) {
	for _, row := range rows {
		name := row[0]
		if len(name) > nameWidth {
			h.line("  %s", name)
			name = ""
		}
		for _, line := range wrap(row[1], h.width-nameWidth-4) {
			h.line("  %-*s  %s", nameWidth, name, line)
			name = ""
		}
	}
}

// wrap breaks a text between words, into lines of at most width bytes.
func wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
