package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/tabletop-emu/tabletop/control"
)

// ctlCommand speaks the control API.
type ctlCommand struct {
	PortFile     string   `help:"Find the API and its token in the port file of the server." placeholder:"FILE"`
	ConsoleURL   string   `name:"console-url" help:"The API, as serve --console prints it." placeholder:"URL"`
	ConsoleToken string   `name:"console-token" help:"Its token." placeholder:"TOKEN"`
	Verb         string   `arg:"" help:"What to do: help lists the verbs."`
	Args         []string `arg:"" optional:"" help:"What the verb takes."`
}

// ctlVerb is a verb of ctl: a request of the API.
type ctlVerb struct {
	name, takes, what string
	method, path      string // {} is the first argument in the path
	// body makes the body of the arguments. Default: there is none.
	body func(args []string) any
	// text is the member of the answer that is printed as it is. Default: all, as JSON.
	text string
	args [2]int // the least and the most
}

var ctlVerbs = []ctlVerb{
	{name: "info", what: "what is served, and where", method: "GET", path: "info"},
	{name: "tables", what: "the tables of both doors", method: "GET", path: "tables"},
	{name: "rows", takes: "INSTANCE/TABLE [PREFIX]", what: "rows of Bigtable, with all cells", method: "GET", path: "tables/{}/rows?prefix={}", args: [2]int{1, 2}},
	{name: "items", takes: "TABLE", what: "items of DynamoDB", method: "GET", path: "items/{}", args: [2]int{1, 1}},
	{name: "put", takes: "TABLE ITEM", what: "put an item, in DynamoDB's JSON", method: "POST", path: "items/{}", args: [2]int{2, 2}, body: func(args []string) any {
		return map[string]any{"items": []any{json.RawMessage(args[1])}}
	}},
	{name: "query", takes: "OPERATION REQUEST", what: "run an operation of DynamoDB, and see the calls of Bigtable that it became", method: "POST", path: "query", args: [2]int{2, 2}, body: func(args []string) any {
		return map[string]any{"operation": args[0], "request": json.RawMessage(args[1])}
	}},
	{name: "reset", what: "remove everything", method: "POST", path: "reset"},
	{name: "snapshots", what: "the snapshots that are kept", method: "GET", path: "snapshots"},
	{name: "snapshot", takes: "NAME", what: "keep what there is", method: "POST", path: "snapshots", args: [2]int{1, 1}, body: func(args []string) any {
		return map[string]string{"name": args[0]}
	}},
	{name: "restore", takes: "NAME", what: "come back to a snapshot", method: "POST", path: "snapshots/{}/restore", args: [2]int{1, 1}},
	{name: "forget", takes: "NAME", what: "give up a snapshot", method: "DELETE", path: "snapshots/{}", args: [2]int{1, 1}},
	{name: "clock", what: "the time of the server", method: "GET", path: "clock"},
	{name: "advance", takes: "DURATION", what: "let time pass, and do what is due meanwhile", method: "POST", path: "clock", args: [2]int{1, 1}, body: func(args []string) any {
		return map[string]string{"advance": args[0]}
	}},
	{name: "set", takes: "TIME", what: "go to a time, in RFC 3339", method: "POST", path: "clock", args: [2]int{1, 1}, body: func(args []string) any {
		return map[string]string{"set": args[0]}
	}},
	{name: "freeze", what: "stop the clock", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"freeze": true} }},
	{name: "run", what: "let it go on", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"run": true} }},
	{name: "gc", what: "collect garbage", method: "POST", path: "gc"},
	{name: "ttl", what: "delete items whose time to live is over", method: "POST", path: "ttl"},
	{name: "faults", what: "what goes wrong, and how often it did", method: "GET", path: "faults"},
	{name: "fault", takes: "FAULT", what: "let something go wrong, in JSON", method: "POST", path: "faults", args: [2]int{1, 1}, body: func(args []string) any {
		return json.RawMessage(args[0])
	}},
	{name: "mend", takes: "[DOOR/ID]", what: "end a fault, or all", method: "DELETE", path: "faults/{}", args: [2]int{0, 1}},
	{name: "dump", takes: "[TABLE]", what: "rows as text", method: "GET", path: "dump?table={}", args: [2]int{0, 1}, text: "text"},
	{name: "requests", what: "the last requests of both doors", method: "GET", path: "requests"},
	{name: "request", takes: "ID", what: "one of them, with the calls that it became", method: "GET", path: "requests/{}", args: [2]int{1, 1}},
	{name: "insights", takes: "TABLE [INDEX]", what: "the keys that are used most, while contributor insights are on", method: "GET", path: "insights/{}?index={}", args: [2]int{1, 2}},
	{name: "streams", what: "the streams of both doors", method: "GET", path: "streams"},
	{name: "records", takes: "TABLE [CURSOR]", what: "records of DynamoDB Streams", method: "GET", path: "streams/{}/records?cursor={}", args: [2]int{1, 2}},
	{name: "changes", takes: "INSTANCE/TABLE [CURSOR]", what: "records of a change stream of Bigtable", method: "GET", path: "tables/{}/changes?cursor={}", args: [2]int{1, 2}},
	{name: "plan", takes: "FIXTURE", what: "as tabletop migrate plan does", method: "POST", path: "migrate/plan", args: [2]int{1, 1}, body: ofFixture},
	{name: "verify", takes: "FIXTURE", what: "as tabletop migrate verify does", method: "POST", path: "migrate/verify", args: [2]int{1, 1}, body: ofFixture},
	{name: "lint", takes: "FIXTURE", what: "as tabletop migrate lint does", method: "POST", path: "migrate/lint", args: [2]int{1, 1}, body: ofFixture},
}

func ofFixture(args []string) any { return map[string]string{"fixture": args[0]} }

// Help is the long help of the command.
func (*ctlCommand) Help() string {
	return `Asks the control API of a server that runs with --console, which it finds by --port-file, or by --console-url and --console-token ($TABLETOP_CONSOLE_URL and $TABLETOP_CONSOLE_TOKEN, which serve prints). It prints the answer and exits 0, or the error and what to do and exits 2. "tabletop ctl help" lists the verbs; docs/control.md describes the API.`
}

// Run makes the request.
func (c *ctlCommand) Run(ctx context.Context, p *program) error {
	if c.Verb == "help" {
		for _, v := range ctlVerbs {
			_, _ = fmt.Fprintf(p.stdout, "  %-32s %s\n", strings.TrimSpace(v.name+" "+v.takes), v.what)
		}
		return nil
	}
	for _, v := range ctlVerbs {
		if v.name != c.Verb {
			continue
		}
		if n := len(c.Args); n < v.args[0] || n > v.args[1] {
			return badInput("ctl %s takes %s", v.name, strings.TrimSpace(v.takes+" ("+strconv.Itoa(n)+" arguments were given)"))
		}
		return c.ask(ctx, p, v)
	}
	return badInput("ctl: %q is no verb; \"tabletop ctl help\" lists them", c.Verb)
}

// at finds the API and its token.
func (c *ctlCommand) at() (base, token string, err error) {
	base, token = c.ConsoleURL, c.ConsoleToken
	if c.PortFile != "" {
		text, err := os.ReadFile(c.PortFile)
		if err != nil {
			return "", "", badInput("--port-file: %w", err)
		}
		var found ports
		if err := json.Unmarshal(text, &found); err != nil {
			return "", "", badInput("--port-file: %s is not that of a server: %w", c.PortFile, err)
		}
		if found.Console == "" {
			return "", "", badInput("--port-file: the server of %s has no control API; start it with --console 127.0.0.1:8088", c.PortFile)
		}
		base = found.Console
		if found.Token != "" {
			token = found.Token
		}
	}
	if base == "" {
		return "", "", badInput("ctl: which server? Say --port-file, or --console-url and --console-token")
	}
	return base, token, nil
}

// address is the verb's path with its arguments.
func (v *ctlVerb) address(args []string) string {
	path, query, _ := strings.Cut(v.path, "?")
	fill := func(where string, escape func(string) string) string {
		for strings.Contains(where, "{}") {
			arg := ""
			if len(args) > 0 {
				arg, args = args[0], args[1:]
			}
			where = strings.Replace(where, "{}", escape(arg), 1)
		}
		return where
	}
	out := strings.TrimSuffix(fill(path, func(arg string) string {
		parts := strings.Split(arg, "/") // of an instance and a table, a door and a number
		for i := range parts {
			parts[i] = url.PathEscape(parts[i])
		}
		return strings.Join(parts, "/")
	}), "/")
	if query != "" {
		out += "?" + fill(query, url.QueryEscape)
	}
	return out
}

func (c *ctlCommand) ask(ctx context.Context, p *program, v ctlVerb) error {
	base, token, err := c.at()
	if err != nil {
		return err
	}
	var body []byte
	if v.body != nil {
		if body, err = json.Marshal(v.body(c.Args)); err != nil {
			return badInput("ctl %s: %w", v.name, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, v.method, strings.TrimSuffix(base, "/")+control.Prefix+v.address(c.Args), bytes.NewReader(body))
	if err != nil {
		return badInput("--console-url: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{}
	resp, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // it was read
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		return fmt.Errorf("ctl: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		var failed struct{ Error *control.Error }
		if json.Unmarshal(answer, &failed) != nil || failed.Error == nil {
			return fmt.Errorf("ctl: %s answered %s: is it the control API of a server?", base, resp.Status)
		}
		return badInput("ctl %s: %w", v.name, failed.Error)
	}
	return printAnswer(p, v.text, answer)
}

// printAnswer prints an answer, or the member of it that is a text.
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
		return fmt.Errorf("ctl: the answer cannot be read: %w", err)
	}
	_, _ = p.stdout.Write(out.Bytes())
	return nil
}
