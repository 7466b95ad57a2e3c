package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// negative matches an argument that kong would take for a flag.
var negative = regexp.MustCompile(`^-\.?[0-9]`)

// switches are the flags of ctl that take no value.
var switches = []string{"--all", "--help", "--version"}

// arranged rewrites the arguments of commands whose forms kong does not read.
func arranged(args []string) []string {
	at := slices.IndexFunc(args, func(word string) bool { return word == "ctl" || word == "dynamodb-local" })
	switch {
	case at < 0 || at > 0 && !strings.HasPrefix(args[0], "--config"): // a word of another command
		return args
	case args[at] == "ctl":
		return arrangedCtl(args, at)
	}
	return arrangedLocal(args, at)
}

// arrangedCtl moves flags of ctl, the word at a position, before its arguments, which must be
// contiguous. It escapes arguments that begin with a sign; unsigned undoes that.
func arrangedCtl(args []string, at int) []string {
	flags, rest := slices.Clone(args[:at+1]), []string(nil)
	for args = args[at+1:]; len(args) > 0; args = args[1:] {
		switch arg := args[0]; {
		case arg == "--":
			rest = append(rest, args...)
			args = args[len(args)-1:]
		case negative.MatchString(arg):
			rest = append(rest, " "+arg)
		case !strings.HasPrefix(arg, "--"):
			rest = append(rest, arg)
		default:
			flags = append(flags, arg)
			if !strings.Contains(arg, "=") && !slices.Contains(switches, arg) && len(args) > 1 {
				flags, args = append(flags, args[1]), args[1:]
			}
		}
	}
	return append(flags, rest...)
}

// unsigned returns an argument as it was given.
func unsigned(arg string) string {
	if rest, ok := strings.CutPrefix(arg, " "); ok && negative.MatchString(rest) {
		return rest
	}
	return arg
}

// asked is the request of a verb.
type asked struct {
	path  string // {} stands for the instance of the server
	query url.Values
	body  []byte
}

// parse reads the arguments of a verb.
func (v *ctlVerb) parse(p *program, given []string) (out asked, err error) {
	out.query = url.Values{}
	var args []string
	for i, arg := range given {
		name, value, ok := strings.Cut(arg, "=")
		if ok && slices.Contains(strings.Fields(v.params), name) && (i > 0 || v.args[0] == 0) {
			out.query.Add(name, value)
		} else {
			args = append(args, arg)
		}
	}
	if n := len(args); n < v.args[0] || n > v.args[1] {
		text := strings.TrimSpace(v.takes + " (" + phrase.Counted(int64(n), "argument") + " given)")
		if v.params != "" {
			text += "; NAME=VALUE sets " + strings.Join(strings.Fields(v.params), ", ")
		}
		return out, badInput("ctl %s takes %s", v.name, text)
	}
	if v.json != "" {
		last := len(args) - 1
		if args[last], err = v.jsonOf(p, args[last]); err != nil {
			return out, err
		}
	}
	if v.body != nil {
		if out.body, err = json.Marshal(v.body(args)); err != nil {
			return out, badInput("ctl %s: %w", v.name, err)
		}
	}
	out.path, err = v.fill(args, out.query)
	return out, err
}

// jsonOf returns the JSON of an argument, or of the file it names: @FILE, or - for the standard
// input.
func (v *ctlVerb) jsonOf(p *program, arg string) (string, error) {
	at := v.json
	text := []byte(arg)
	var err error
	if file, ok := strings.CutPrefix(arg, "@"); ok {
		at = file
		text, err = os.ReadFile(file)
	} else if arg == "-" {
		at = "the standard input"
		text, err = io.ReadAll(p.stdin)
	}
	if err != nil {
		return "", badInput("ctl %s: %w", v.name, err)
	}
	var into any
	err = json.Unmarshal(text, &into)
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		return "", badInput("ctl %s: %s is not JSON: byte %d: %w", v.name, at, wrong.Offset, wrong)
	}
	if err != nil {
		return "", badInput("ctl %s: %s is not JSON: %w", v.name, at, err)
	}
	return string(text), nil
}

// fill puts the arguments into the verb's path. Those after the ? become parameters.
func (v *ctlVerb) fill(args []string, query url.Values) (string, error) {
	path, params, _ := strings.Cut(v.path, "?")
	if strings.Contains(path, "{}") {
		first := ""
		if len(args) > 0 {
			if args[0] == "" {
				return "", badInput("ctl %s takes %s (got an empty argument)", v.name, v.takes)
			}
			first, args = url.PathEscape(args[0]), args[1:]
			before, after, two := strings.Cut(first, "%2F")
			switch {
			case !v.table && !v.slash:
			case two:
				first = before + "/" + after
			case v.table:
				first = "{}/" + first
			default:
				return "", badInput("ctl %s takes %s, such as dynamodb/1: \"tabletop ctl faults\" lists them", v.name, v.takes)
			}
		}
		path = strings.TrimSuffix(strings.Replace(path, "{}", first, 1), "/")
	}
	if name, _, ok := strings.Cut(params, "="); ok && len(args) > 0 && v.body == nil {
		query.Add(name, args[0])
	}
	for name, values := range query {
		if len(values) > 1 {
			return "", badInput("ctl %s: %s is given %d times", v.name, name, len(values))
		}
	}
	return path, nil
}

// at finds the API and its token.
func (c *ctlCommand) at(ctx context.Context, p *program) (base, token string, err error) {
	base, token = c.ConsoleURL, c.ConsoleToken
	if c.PortFile != "" {
		text, err := c.readPortFile(ctx, p)
		if err != nil {
			return "", "", err
		}
		var found ports
		if err := json.Unmarshal(text, &found); err != nil {
			return "", "", badInput("--port-file: %s is not the port file of a server: %w", c.PortFile, err)
		}
		if found.Console == "" {
			return "", "", badInput("--port-file: the server that wrote %s has no control API; start it with --console 127.0.0.1:8088", c.PortFile)
		}
		base = found.Console
		if found.Token != "" {
			token = found.Token
		}
	}
	if base == "" {
		return "", "", badInput("ctl: no server given; use --port-file, or --console-url and --console-token")
	}
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", "", badInput("--console-url: %q is not the address of a server; expected one such as http://127.0.0.1:8088", base)
	}
	return strings.TrimSuffix(base, "/"), token, nil
}

const (
	// portFilePause is the interval of checks for a port file.
	portFilePause = 20 * time.Millisecond
	// portFileNotice is the waiting time after which a notice is printed.
	portFileNotice = time.Second
)

// readPortFile reads the port file, and waits for it if the server is still starting.
func (c *ctlCommand) readPortFile(ctx context.Context, p *program) ([]byte, error) {
	began, reported := time.Now(), false
	for {
		text, err := os.ReadFile(c.PortFile)
		waited := time.Since(began)
		switch {
		case err == nil:
			return text, nil
		case !errors.Is(err, fs.ErrNotExist):
			return nil, badInput("--port-file: %w", err)
		case waited >= c.Wait:
			return nil, fmt.Errorf("--port-file: %s did not appear within %v: is the server running, and was it started with this file?", c.PortFile, c.Wait)
		case waited >= portFileNotice && !reported:
			reported = true
			_, _ = fmt.Fprintf(p.stderr, "tabletop: waiting for %s, at most %v\n", c.PortFile, c.Wait)
		}
		select {
		case <-time.After(portFilePause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// ctlServer is the server of the API.
type ctlServer struct {
	base, token string
	verb        *ctlVerb
}

// answer returns the answer of a request.
func (s ctlServer) answer(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
	address := s.base + control.Prefix + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, badInput("--console-url: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	resp, err := http.DefaultClient.Do(r)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return nil, fmt.Errorf("ctl: no server responds at %s: start tabletop serve --console or, if it is running, pass its --port-file or the address that it printed: %w", s.base, op.Err)
	}
	if err != nil {
		return nil, fmt.Errorf("ctl: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read completely
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("ctl: %w", err)
	}
	if resp.StatusCode == http.StatusOK && json.Valid(answer) {
		return answer, nil
	}
	var failed struct{ Error *control.Error }
	if json.Unmarshal(answer, &failed) != nil || failed.Error == nil {
		return nil, fmt.Errorf("ctl: %s answered %s, so it is not a control API: set TABLETOP_CONSOLE_URL to the address that tabletop serve --console printed", s.base, resp.Status)
	}
	return nil, badInput("ctl %s: %w", s.verb.name, s.verb.inShell(failed.Error))
}

func (c *ctlCommand) ask(ctx context.Context, p *program, v *ctlVerb, what asked) error {
	base, token, err := c.at(ctx, p)
	if err != nil {
		return err
	}
	s := ctlServer{base, token, v}
	if strings.Contains(what.path, "{}") {
		var info struct{ Instance string }
		text, err := s.answer(ctx, http.MethodGet, "info", nil, nil)
		if err == nil {
			err = json.Unmarshal(text, &info)
		}
		if err != nil {
			return err
		}
		what.path = strings.Replace(what.path, "{}", url.PathEscape(info.Instance), 1)
	}
	if c.All {
		return s.all(ctx, p, what)
	}
	text, err := s.answer(ctx, v.method, what.path, what.query, what.body)
	if err != nil {
		return err
	}
	var page map[string]json.RawMessage
	if err := json.Unmarshal(text, &page); err != nil {
		return unreadable(err)
	}
	if err := printAnswer(p, v.text, text); err != nil || v.list == "" {
		return err
	}
	if name, value := next(page); name != "" {
		_, _ = fmt.Fprintf(p.stderr, "tabletop: there are more results: add %s=%s to continue, or --all\n", name, value)
	}
	return nil
}

// next returns the parameter for the next page; name is "" after the last one.
func next(page map[string]json.RawMessage) (name, value string) {
	for _, name := range []string{"cursor", "before"} {
		if text := strings.Trim(string(page[name]), `"`); text != "" {
			return name, text
		}
	}
	return "", ""
}

// printAnswer prints an answer, or one text member of it.
func printAnswer(p *program, member string, answer []byte) error {
	var members map[string]json.RawMessage
	var out bytes.Buffer
	var text string
	err := json.Unmarshal(answer, &members)
	switch {
	case err != nil:
	case member != "":
		if err = json.Unmarshal(members[member], &text); err == nil {
			out.WriteString(text)
		}
	default:
		err = errors.Join(json.Indent(&out, bytes.TrimSpace(answer), "", "  "))
		out.WriteByte('\n')
	}
	if err != nil {
		return unreadable(err)
	}
	_, _ = p.stdout.Write(out.Bytes())
	return nil
}
