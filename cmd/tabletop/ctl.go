package main

import (
	"context"
	"encoding/json"
	"time"
)

// ctlCommand speaks the control API.
type ctlCommand struct {
	PortFile     string        `help:"Read the address of the API and its token from the port file of the server." placeholder:"FILE"`
	Wait         time.Duration `help:"How long to wait for the port file to appear. Default: ${default}." default:"10s" placeholder:"DURATION"`
	ConsoleURL   string        `name:"console-url" help:"Address of the API, as serve --console prints it." placeholder:"URL"`
	ConsoleToken string        `name:"console-token" help:"Token of the API." placeholder:"TOKEN"`
	All          bool          `help:"Print all items, rows, requests, records or changes, instead of the first 100."`
	Verb         string        `arg:"" optional:"" help:"The command; help lists them."`
	Args         []string      `arg:"" optional:"" help:"Arguments of the command."`
}

// ctlVerb is a verb of ctl: a request of the API.
type ctlVerb struct {
	name, takes, what string
	method, path      string // {} is an argument: before the ?, one part of the path
	// names of parameters that NAME=VALUE may set, besides those that arguments fill.
	params string
	// body makes the body of the arguments. Default: there is none.
	body func(args []string) any
	json string // what the last argument is called, which is JSON, or a file or stdin that has it; "": it is no JSON
	text string // the member of the answer that is printed as it is. Default: all, as JSON
	list string // the member of the answer that --all joins
	args [2]int // the least and the most
	// table says that the first argument is [INSTANCE/]TABLE, slash that it is ENDPOINT/ID: two parts of the path.
	table, slash bool
	more         string // of the help of the verb
}

var ctlVerbs = []ctlVerb{
	{name: "info", what: "what is served, and where", method: "GET", path: "info"},
	{name: "tables", what: "the tables of both endpoints", method: "GET", path: "tables"},
	{name: "rows", takes: "[INSTANCE/]TABLE [PREFIX]", what: "rows of Bigtable, with all cells", method: "GET", path: "tables/{}/rows?prefix={}", args: [2]int{1, 2}, params: "project prefix prefix64 start start64 end end64 match match64 filter reverse keys limit cursor", list: "rows", table: true, more: `"tabletop ctl tables" says in which of Bigtable's tables the items of a DynamoDB table lie.`},
	{name: "write", takes: "[INSTANCE/]TABLE ROW", what: "write a row of Bigtable: its cells, in JSON", method: "POST", path: "tables/{}/rows", args: [2]int{2, 2}, params: "project", json: "ROW", table: true, more: writeHelp, body: func(args []string) any {
		return map[string]any{"rows": []any{json.RawMessage(args[1])}}
	}},
	{name: "families", takes: "[INSTANCE/]TABLE LIST", what: "create, change and drop column families, in JSON", method: "POST", path: "tables/{}/families", args: [2]int{2, 2}, params: "project", json: "LIST", table: true, more: `tabletop ctl families t '[{"id":"f","create":{"gcRule":{"maxNumVersions":1}}},{"id":"g","drop":true}]'`, body: func(args []string) any {
		return map[string]any{"modifications": json.RawMessage(args[1])}
	}},
	{name: "drop", takes: "[INSTANCE/]TABLE PREFIX", what: "delete the rows of Bigtable that begin so", method: "POST", path: "tables/{}/drop", args: [2]int{2, 2}, params: "project", table: true, body: func(args []string) any {
		return map[string]any{"prefix": map[string]string{"text": args[1]}}
	}},
	{name: "empty", takes: "[INSTANCE/]TABLE", what: "delete all rows of a table of Bigtable", method: "POST", path: "tables/{}/drop", args: [2]int{1, 1}, params: "project", table: true, body: func([]string) any { return map[string]bool{"all": true} }},
	{name: "delete", takes: "[INSTANCE/]TABLE", what: "delete a table of Bigtable", method: "DELETE", path: "tables/{}", args: [2]int{1, 1}, params: "project", table: true},
	{name: "items", takes: "TABLE [CURSOR]", what: "items of DynamoDB", method: "GET", path: "items/{}?cursor={}", args: [2]int{1, 2}, params: "index limit cursor", list: "items"},
	{name: "put", takes: "TABLE ITEM", what: "put an item, in DynamoDB's JSON", method: "POST", path: "items/{}", args: [2]int{2, 2}, json: "ITEM", body: func(args []string) any { return map[string]any{"items": []any{json.RawMessage(args[1])}} }, more: `tabletop ctl put orders '{"id":{"S":"a"},"total":{"N":"42"}}'`},
	{name: "query", takes: "OPERATION REQUEST", what: "run an operation of DynamoDB, and see the calls of Bigtable that it became", method: "POST", path: "query", args: [2]int{2, 2}, json: "REQUEST", more: `tabletop ctl query GetItem '{"TableName":"orders","Key":{"id":{"S":"a"}}}'`, body: func(args []string) any {
		return map[string]any{"operation": args[0], "request": json.RawMessage(args[1])}
	}},
	{name: "reset", what: "remove all tables, and the faults; snapshots and the clock stay", method: "POST", path: "reset"},
	{name: "snapshots", what: "the snapshots that are kept", method: "GET", path: "snapshots"},
	{name: "snapshot", takes: "NAME", what: "keep what there is", method: "POST", path: "snapshots", args: [2]int{1, 1}, body: func(args []string) any {
		return map[string]string{"name": args[0]}
	}},
	{name: "restore", takes: "NAME", what: "come back to a snapshot", method: "POST", path: "snapshots/{}/restore", args: [2]int{1, 1}},
	{name: "forget", takes: "NAME", what: "give up a snapshot", method: "DELETE", path: "snapshots/{}", args: [2]int{1, 1}},
	{name: "diff", takes: "NAME [NAME]", what: "what is other than in a snapshot, now or in another one", method: "GET", path: "snapshots/{}/changes?to={}", args: [2]int{1, 2}, params: "to limit"},
	{name: "clock", what: "the time of the server", method: "GET", path: "clock"},
	{name: "advance", takes: "DURATION", what: "let time pass, and do what is due meanwhile", method: "POST", path: "clock", args: [2]int{1, 1}, body: func(args []string) any { return map[string]string{"advance": args[0]} }, more: "tabletop ctl advance 1d12h"},
	{name: "set", takes: "TIME", what: "go to a time, in RFC 3339", method: "POST", path: "clock", args: [2]int{1, 1}, more: "tabletop ctl set 2030-01-01T00:00:00Z", body: func(args []string) any {
		return map[string]string{"set": args[0]}
	}},
	{name: "freeze", what: "stop the clock", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"freeze": true} }},
	{name: "run", what: "let it go on", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"run": true} }},
	{name: "gc", what: "collect garbage", method: "POST", path: "gc"},
	{name: "ttl", what: "delete items whose time to live is over", method: "POST", path: "ttl"},
	{name: "faults", what: "what goes wrong, and how often it did", method: "GET", path: "faults"},
	{name: "fault", takes: "FAULT", what: "let something go wrong, in JSON", method: "POST", path: "faults", args: [2]int{1, 1}, json: "FAULT", body: func(args []string) any { return json.RawMessage(args[0]) }, more: faultHelp},
	{name: "mend", takes: "[ENDPOINT/ID]", what: "end a fault, or all", method: "DELETE", path: "faults/{}", args: [2]int{0, 1}, slash: true, more: "tabletop ctl mend dynamodb/1"},
	{name: "dump", takes: "[TABLE]", what: "rows as text", method: "GET", path: "dump?table={}", args: [2]int{0, 1}, params: "table", text: "text", more: `TABLE is one of Bigtable: "tabletop ctl tables" says in which of them the items of a DynamoDB table lie.`},
	{name: "requests", takes: "[NAME=VALUE...]", what: "the last requests of both endpoints", method: "GET", path: "requests", params: "endpoint operation table status failed internal test limit before", list: "requests", more: "tabletop ctl requests endpoint=dynamodb failed=true"},
	{name: "request", takes: "ID", what: "one of them, with the calls that it became", method: "GET", path: "requests/{}", args: [2]int{1, 1}},
	{name: "heat", takes: "[[INSTANCE/]TABLE]", what: "the keys of a table that were read and written, by time; without TABLE, the tables that have such data", method: "GET", path: "heat/{}", args: [2]int{0, 1}, params: "project cluster step last limit", table: true, more: "tabletop ctl heat t last=1h step=1m"},
	{name: "insights", takes: "TABLE [INDEX]", what: "the keys that are used most, while contributor insights are on", method: "GET", path: "insights/{}?index={}", args: [2]int{1, 2}, params: "index"},
	{name: "streams", what: "the streams of both endpoints", method: "GET", path: "streams"},
	{name: "records", takes: "TABLE [CURSOR]", what: "records of DynamoDB Streams", method: "GET", path: "streams/{}/records?cursor={}", args: [2]int{1, 2}, params: "arn from limit cursor", list: "records"},
	{name: "changes", takes: "[INSTANCE/]TABLE [CURSOR]", what: "records of a change stream of Bigtable", method: "GET", path: "tables/{}/changes?cursor={}", args: [2]int{1, 2}, params: "project from bookkeeping limit cursor", list: "changes", table: true},
	{name: "resume", what: "continue the paused Go test", method: "POST", path: "resume"},
	{name: "plan", takes: "FIXTURE", what: "as tabletop migrate plan does", method: "POST", path: "migrate/plan", args: [2]int{1, 1}, body: ofFixture},
	{name: "verify", takes: "FIXTURE", what: "as tabletop migrate verify does", method: "POST", path: "migrate/verify", args: [2]int{1, 1}, body: ofFixture},
	{name: "lint", takes: "FIXTURE", what: "as tabletop migrate lint does", method: "POST", path: "migrate/lint", args: [2]int{1, 1}, body: ofFixture},
}

func ofFixture(args []string) any { return map[string]string{"fixture": args[0]} }

// Help is the long help of the command.
func (*ctlCommand) Help() string {
	return `Asks the control API of a server that runs with --console, which it finds by --port-file, or by --console-url and --console-token ($TABLETOP_CONSOLE_URL and $TABLETOP_CONSOLE_TOKEN, which serve prints). It prints the answer and exits 0; or the error and what to do, and exits 2, or 3 where no server answers. "tabletop ctl help" lists the verbs, "tabletop ctl help VERB" says what one takes; docs/control.md describes the API.`
}

// Run makes the request.
func (c *ctlCommand) Run(ctx context.Context, p *program) error {
	for i := range c.Args {
		c.Args[i] = unsigned(c.Args[i])
	}
	switch c.Verb {
	case "":
		return badInput("ctl: no command given; \"tabletop ctl help\" lists them")
	case "help":
		return p.helpOfCtl(c.Args)
	}
	v, err := ctlVerbNamed(c.Verb)
	if err != nil {
		return err
	}
	if c.All && v.list == "" {
		return badInput("ctl %s: there is no more for --all", v.name)
	}
	asked, err := v.parse(p, c.Args)
	if err != nil {
		return err
	}
	return c.ask(ctx, p, v, asked)
}

func ctlVerbNamed(name string) (*ctlVerb, error) {
	names := make([]string, len(ctlVerbs))
	for i := range ctlVerbs {
		if names[i] = ctlVerbs[i].name; names[i] == name {
			return &ctlVerbs[i], nil
		}
	}
	return nil, badInput("ctl: %q is not a command of ctl%s; \"tabletop ctl help\" lists them", name, nearestText("", name, names))
}
