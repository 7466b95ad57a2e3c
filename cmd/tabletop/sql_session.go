package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tabletop-emu/tabletop/internal/sqlclient"
)

// maxStatementBytes bounds a statement, and a line.
const maxStatementBytes = 1 << 20

// sqlSession runs statements and commands on a target.
type sqlSession struct {
	*sqlCommand
	target *target
	out    io.Writer
	timing bool
	parsed statements
	ran    bool // a statement or a command
	quit   bool
}

// sqlCommands describes the commands of a session. The command \? prints it.
var sqlCommands = [][]string{
	{`\d`, "list the tables and views"},
	{`\d NAME`, "describe a table or a view"},
	{`\format`, "print how rows are printed: table, json or csv"},
	{`\format table|json|csv`, "change how rows are printed"},
	{`\timing`, "print the time of each statement, or stop that"},
	{`\?`, "print this list"},
	{`\q`, "quit, as Ctrl-D"},
}

// sqlWords are words that users type instead of commands. No statement begins with one.
var sqlWords = map[string]string{"exit": `\q`, "quit": `\q`, "help": `\?`}

// lines runs the lines of a text, and stops at the first error.
func (s *sqlSession) lines(ctx context.Context, in io.Reader) error {
	scanner := bufio.NewScanner(in)
	scanner.Buffer(nil, maxStatementBytes)
	scanner.Split(withBreaks)
	for !s.quit && scanner.Scan() {
		if err := s.line(ctx, scanner.Text(), nil); err != nil {
			return err
		}
	}
	switch err := scanner.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return badInput("a line is longer than %d bytes", maxStatementBytes)
	case err != nil:
		return fmt.Errorf("standard input: %w", err)
	}
	if last, ok := s.parsed.rest(); ok {
		return s.statement(ctx, last.text)
	}
	if !s.ran {
		return badInput("there is no query: pass one, or write it to standard input")
	}
	return nil
}

// withBreaks is bufio.ScanLines, but keeps the line breaks.
func withBreaks(data []byte, atEOF bool) (int, []byte, error) {
	n, line, err := bufio.ScanLines(data, atEOF)
	if line != nil {
		line = data[:n]
	}
	return n, line, err
}

// line runs the statements that end in a line, or its command. kept receives each statement in one line, and the
// command; it may be nil.
func (s *sqlSession) line(ctx context.Context, line string, kept func(string)) error {
	if !s.parsed.open() {
		command := strings.TrimSpace(line)
		if of, ok := sqlWords[strings.ToLower(strings.TrimSuffix(command, ";"))]; ok {
			command = of
		}
		if strings.HasPrefix(command, `\`) {
			if kept != nil {
				kept(command)
			}
			return s.command(ctx, command)
		}
	}
	ended := s.parsed.add(line)
	if s.parsed.text.Len() > maxStatementBytes {
		s.parsed.reset()
		return badInput("a statement is longer than %d bytes", maxStatementBytes)
	}
	for _, statement := range ended {
		if kept != nil {
			kept(statement.line)
		}
		if err := s.statement(ctx, statement.text); err != nil {
			return err
		}
	}
	return nil
}

// statement runs a statement.
func (s *sqlSession) statement(ctx context.Context, text string) error {
	s.ran = true
	began := time.Now()
	rows, err := sqlclient.Run(ctx, s.target.conn, sqlclient.Query{Instance: s.instanceName(), AppProfile: s.AppProfile, Text: text, Params: s.params})
	if err == nil {
		defer rows.Close()
		err = s.print(s.out, rows)
	}
	if code := status.Code(err); code == codes.InvalidArgument || code == codes.Unimplemented {
		said := status.Convert(err).Message()
		if mark := sqlclient.Mark(text, err); mark != "" {
			said += "\n" + mark
		}
		return badInput("%s%s", said, s.hint(ctx, said))
	}
	if err == nil && s.timing {
		_, err = fmt.Fprintf(s.out, "Time: %.1f ms\n", float64(time.Since(began).Microseconds())/1000)
	}
	return err
}

func (s *sqlSession) instanceName() string {
	return "projects/" + s.target.project + "/instances/" + s.target.instance
}

// command runs a command, which begins with a backslash.
func (s *sqlSession) command(ctx context.Context, text string) error {
	s.ran = true
	words := strings.Fields(strings.TrimSuffix(text, ";"))
	switch name := words[0]; {
	case name == `\q` && len(words) == 1:
		s.quit = true
		return nil
	case name == `\?` && len(words) == 1:
		return printAligned(s.out, sqlCommands)
	case name == `\timing` && len(words) == 1:
		s.timing = !s.timing
		_, err := fmt.Fprintf(s.out, "Timing is %s.\n", map[bool]string{true: "on", false: "off"}[s.timing])
		return err
	case name == `\format` && len(words) == 1:
		_, err := fmt.Fprintln(s.out, s.Format)
		return err
	case name == `\format` && len(words) == 2:
		if !slices.Contains([]string{"table", "json", "csv"}, words[1]) {
			return badInput(`\format: %q must be table, json or csv`, words[1])
		}
		s.Format = words[1]
		return nil
	case name == `\d` && len(words) == 1:
		return s.list(ctx)
	case name == `\d` && len(words) == 2:
		return s.describe(ctx, strings.Trim(words[1], "`"))
	}
	return badInput(`%s is not a command; \? lists the commands`, text)
}

// prompt reads lines from a terminal until its end.
func (s *sqlSession) prompt(ctx context.Context, p *program) error {
	h := openHistory(p.configDir)
	lines := newPrompt(ctx, p.stdin, p.stdout, h)
	if f, ok := p.stdin.(*os.File); ok {
		cooked, err := term.MakeRaw(int(f.Fd()))
		if err != nil {
			return fmt.Errorf("the terminal: %w", err)
		}
		defer func() { _ = term.Restore(int(f.Fd()), cooked) }() // the terminal may be gone
		lines.size = func() (int, int, error) { return term.GetSize(int(f.Fd())) }
	}
	lines.terminal.SetBracketedPasteMode(true)
	defer lines.terminal.SetBracketedPasteMode(false)
	// Lines end with CR and LF in raw mode.
	s.out = writerFunc(func(b []byte) (int, error) { return lines.terminal.Write(b) })
	if _, err := fmt.Fprintf(s.out, "%s of %s. Statements end with a semicolon; \\? lists commands.\n", s.instanceName(), s.Target); err != nil {
		return err
	}
	for !s.quit {
		text := "sql> "
		if s.parsed.open() {
			text = "  -> "
		}
		line, err := lines.line(text)
		switch {
		case errors.Is(err, errInterrupted):
			s.parsed.reset()
			continue
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		err = lines.query(ctx, func(ctx context.Context) error { return s.line(ctx, line+"\n", h.keep) })
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && (errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled):
			_, err = fmt.Fprintln(s.out, "canceled")
		case err != nil:
			_, err = fmt.Fprintf(s.out, "error: %s\n", sqlErrorText(err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sqlErrorText returns the text of an error, without gRPC's words around it.
func sqlErrorText(err error) string {
	if st, ok := status.FromError(err); ok {
		return fmt.Sprintf("%v: %s", st.Code(), st.Message())
	}
	return err.Error()
}

// plainError is the error of an RPC with the text of a prompt.
type plainError struct{ err error }

func (e *plainError) Error() string { return sqlErrorText(e.err) }
func (e *plainError) Unwrap() error { return e.err }

// plainly returns an error whose text is without gRPC's words around it.
func plainly(err error) error {
	if _, ok := status.FromError(err); !ok || err == nil {
		return err
	}
	return &plainError{err}
}

// writerFunc is a function as a writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
