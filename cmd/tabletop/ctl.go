package main

import (
	"context"
	"encoding/json"
	"time"
)

// ctlCommand is a client of the control API.
type ctlCommand struct {
	PortFile     string        `help:"Read the address of the API and its token from the port file of the server." placeholder:"FILE" group:"Server:"`
	Wait         time.Duration `help:"How long to wait for the port file to appear. Default: ${default}." default:"10s" placeholder:"DURATION" group:"Server:"`
	ConsoleURL   string        `name:"console-url" help:"Address of the API, as serve --console prints it." placeholder:"URL" group:"Server:"`
	ConsoleToken string        `name:"console-token" help:"Token of the API." placeholder:"TOKEN" group:"Server:"`
	All          bool          `help:"Print all items, rows, requests, records or changes, instead of the first 100." group:"Output:"`
	Verb         string        `arg:"" optional:"" help:"One of the verbs below."`
	Args         []string      `arg:"" optional:"" help:"Arguments of the verb."`
}

// ctlVerb is a verb of ctl: a request of the API.
type ctlVerb struct {
	name, takes, what string
	method, path      string // {} is an argument: before the ?, one segment of the path
	// params are the parameters that NAME=VALUE may set, besides those set by arguments.
	params string
	// body builds the body from the arguments. Default: no body.
	body func(args []string) any
	json string // name of the last argument if it is JSON, or a file or stdin with JSON; otherwise ""
	text string // the member of the answer that is printed unchanged. Default: the whole answer, as JSON
	list string // the member of the answer that --all joins
	args [2]int // minimum and maximum
	// table means that the first argument is [INSTANCE/]TABLE; slash means that it is
	// ENDPOINT/ID, two segments of the path.
	table, slash bool
	more         string // further help
}

var ctlVerbs = []ctlVerb{
	{name: "info", what: "show the server and its endpoints", method: "GET", path: "info"},
	{name: "tables", what: "list the tables of both endpoints", method: "GET", path: "tables", params: "describe dynamodb", more: "tabletop ctl tables dynamodb=orders shows the Bigtable table with the items of a DynamoDB table."},
	{name: "rows", takes: "[INSTANCE/]TABLE [PREFIX]", what: "list rows of a Bigtable table or materialized view with all their cells", method: "GET", path: "tables/{}/rows?prefix={}", args: [2]int{1, 2}, params: "project prefix prefix64 start start64 end end64 match match64 filter reverse keys limit cursor", list: "rows", table: true, more: `"tabletop ctl tables" shows which Bigtable tables hold the items of a DynamoDB table.`},
	{name: "write", takes: "[INSTANCE/]TABLE ROW", what: "write a Bigtable row, given as JSON", method: "POST", path: "tables/{}/rows", args: [2]int{2, 2}, params: "project", json: "ROW", table: true, more: writeHelp, body: func(args []string) any {
		return map[string]any{"rows": []any{json.RawMessage(args[1])}}
	}},
	{name: "families", takes: "[INSTANCE/]TABLE LIST", what: "create, change and drop column families, given as JSON", method: "POST", path: "tables/{}/families", args: [2]int{2, 2}, params: "project", json: "LIST", table: true, more: `tabletop ctl families t '[{"id":"f","create":{"gcRule":{"maxNumVersions":1}}},{"id":"g","drop":true}]'`, body: func(args []string) any {
		return map[string]any{"modifications": json.RawMessage(args[1])}
	}},
	{name: "drop", takes: "[INSTANCE/]TABLE PREFIX", what: "delete the Bigtable rows with a key prefix", method: "POST", path: "tables/{}/drop", args: [2]int{2, 2}, params: "project", table: true, body: func(args []string) any {
		return map[string]any{"prefix": map[string]string{"text": args[1]}}
	}},
	{name: "empty", takes: "[INSTANCE/]TABLE", what: "delete all rows of a Bigtable table", method: "POST", path: "tables/{}/drop", args: [2]int{1, 1}, params: "project", table: true, body: func([]string) any { return map[string]bool{"all": true} }},
	{name: "delete", takes: "[INSTANCE/]TABLE", what: "delete a Bigtable table", method: "DELETE", path: "tables/{}", args: [2]int{1, 1}, params: "project", table: true},
	{name: "views", what: "list logical and materialized views with their state", method: "GET", path: "views"},
	{name: "refresh", what: "make the materialized views reflect all changes, with serve --view-lag", method: "POST", path: "views/refresh"},
	{name: "items", takes: "TABLE [CURSOR]", what: "list DynamoDB items", method: "GET", path: "items/{}?cursor={}", args: [2]int{1, 2}, params: "index limit cursor", list: "items"},
	{name: "put", takes: "TABLE ITEM", what: "put an item, given in DynamoDB JSON", method: "POST", path: "items/{}", args: [2]int{2, 2}, json: "ITEM", body: func(args []string) any { return map[string]any{"items": []any{json.RawMessage(args[1])}} }, more: `tabletop ctl put orders '{"id":{"S":"a"},"total":{"N":"42"}}'`},
	{name: "query", takes: "OPERATION REQUEST", what: "run a DynamoDB operation, and show its Bigtable calls", method: "POST", path: "query", args: [2]int{2, 2}, json: "REQUEST", more: `tabletop ctl query GetItem '{"TableName":"orders","Key":{"id":{"S":"a"}}}'`, body: func(args []string) any {
		return map[string]any{"operation": args[0], "request": json.RawMessage(args[1])}
	}},
	{name: "reset", what: "remove all tables and faults; snapshots and the clock stay", method: "POST", path: "reset"},
	{name: "snapshots", what: "list the snapshots", method: "GET", path: "snapshots"},
	{name: "snapshot", takes: "NAME", what: "take a snapshot", method: "POST", path: "snapshots", args: [2]int{1, 1}, body: func(args []string) any {
		return map[string]string{"name": args[0]}
	}},
	{name: "restore", takes: "NAME", what: "restore a snapshot", method: "POST", path: "snapshots/{}/restore", args: [2]int{1, 1}},
	{name: "forget", takes: "NAME", what: "delete a snapshot", method: "DELETE", path: "snapshots/{}", args: [2]int{1, 1}},
	{name: "diff", takes: "NAME [NAME]", what: "compare a snapshot with the current state, or with another snapshot", method: "GET", path: "snapshots/{}/changes?to={}", args: [2]int{1, 2}, params: "to limit"},
	{name: "clock", what: "show the time of the server", method: "GET", path: "clock"},
	{name: "advance", takes: "DURATION", what: "advance the clock, and run the work that becomes due", method: "POST", path: "clock", args: [2]int{1, 1}, body: func(args []string) any { return map[string]string{"advance": args[0]} }, more: "tabletop ctl advance 1d12h"},
	{name: "set", takes: "TIME", what: "set the clock to an RFC 3339 time", method: "POST", path: "clock", args: [2]int{1, 1}, more: "tabletop ctl set 2030-01-01T00:00:00Z", body: func(args []string) any {
		return map[string]string{"set": args[0]}
	}},
	{name: "freeze", what: "stop the clock", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"freeze": true} }},
	{name: "run", what: "start the clock again", method: "POST", path: "clock", body: func([]string) any { return map[string]bool{"run": true} }},
	{name: "gc", what: "collect garbage", method: "POST", path: "gc"},
	{name: "ttl", what: "delete expired items", method: "POST", path: "ttl"},
	{name: "faults", what: "list the injected faults with their counts", method: "GET", path: "faults"},
	{name: "fault", takes: "FAULT", what: "inject a fault, given as JSON", method: "POST", path: "faults", args: [2]int{1, 1}, json: "FAULT", body: func(args []string) any { return json.RawMessage(args[0]) }, more: faultHelp},
	{name: "unfault", takes: "[ENDPOINT/ID]", what: "remove one fault, or all of them", method: "DELETE", path: "faults/{}", args: [2]int{0, 1}, slash: true, more: "tabletop ctl unfault dynamodb/1"},
	{name: "dump", takes: "[TABLE]", what: "print rows as text", method: "GET", path: "dump?table={}", args: [2]int{0, 1}, params: "table", text: "text", more: `TABLE is a Bigtable table: "tabletop ctl tables" shows which ones hold the items of a DynamoDB table.`},
	{name: "requests", takes: "[NAME=VALUE...]", what: "list the last requests of both endpoints", method: "GET", path: "requests", params: "endpoint operation table status failed internal own test limit before", list: "requests", more: "tabletop ctl requests endpoint=dynamodb failed=true"},
	{name: "request", takes: "ID", what: "show one request with its Bigtable calls", method: "GET", path: "requests/{}", args: [2]int{1, 1}},
	{name: "heat", takes: "[[INSTANCE/]TABLE]", what: "show reads and writes of a table by key and time; without TABLE, list the tables with such data", method: "GET", path: "heat/{}", args: [2]int{0, 1}, params: "project cluster step last limit", table: true, more: "tabletop ctl heat t last=1h step=1m"},
	{name: "insights", takes: "TABLE [INDEX]", what: "list the most used keys, while contributor insights are on", method: "GET", path: "insights/{}?index={}", args: [2]int{1, 2}, params: "index"},
	{name: "streams", what: "list the streams of both endpoints", method: "GET", path: "streams"},
	{name: "records", takes: "TABLE [CURSOR]", what: "list records of DynamoDB Streams", method: "GET", path: "streams/{}/records?cursor={}", args: [2]int{1, 2}, params: "arn from limit cursor", list: "records"},
	{name: "changes", takes: "[INSTANCE/]TABLE [CURSOR]", what: "list records of a Bigtable change stream", method: "GET", path: "tables/{}/changes?cursor={}", args: [2]int{1, 2}, params: "project from bookkeeping limit cursor", list: "changes", table: true},
	{name: "resume", what: "continue the paused Go test", method: "POST", path: "resume"},
	{name: "plan", takes: "FIXTURE", what: "run tabletop migrate plan", method: "POST", path: "migrate/plan", args: [2]int{1, 1}, body: ofFixture},
	{name: "verify", takes: "FIXTURE", what: "run tabletop migrate verify", method: "POST", path: "migrate/verify", args: [2]int{1, 1}, body: ofFixture},
	{name: "lint", takes: "FIXTURE", what: "run tabletop migrate lint", method: "POST", path: "migrate/lint", args: [2]int{1, 1}, body: ofFixture},
}

func ofFixture(args []string) any { return map[string]string{"fixture": args[0]} }

// Help returns the long help of the command.
func (*ctlCommand) Help() string {
	return `Calls the control API of a server that runs with --console. It finds the server by --port-file, or by --console-url and --console-token ($TABLETOP_CONSOLE_URL and $TABLETOP_CONSOLE_TOKEN, which serve prints). It prints the response and exits 0. After an error, it prints advice and exits 2, or 3 if no server responds. "tabletop ctl help VERB" describes a verb; docs/control.md describes the API.`
}

func (*ctlCommand) examples() []example {
	return []example{
		{"List what is stored", "tabletop ctl tables"},
		{"Print all rows of a table", "tabletop ctl rows orders --all"},
		{"Take a snapshot before a test, and restore it afterwards", "tabletop ctl snapshot before"},
		{"", "tabletop ctl restore before"},
		{"Advance the clock by a day, so that items expire", "tabletop ctl advance 25h"},
		{"List the failed requests of a server with a port file", "tabletop ctl --port-file ports.json requests failed=true"},
	}
}

// Run sends the request of the verb, and prints the response.
func (c *ctlCommand) Run(ctx context.Context, p *program) error {
	for i := range c.Args {
		c.Args[i] = unsigned(c.Args[i])
	}
	switch c.Verb {
	case "":
		return badInput("ctl: no verb given; \"tabletop ctl help\" lists the verbs")
	case "help":
		return p.helpOfCtl(c.Args)
	}
	v, err := ctlVerbNamed(c.Verb)
	if err != nil {
		return err
	}
	if c.All && v.list == "" {
		return badInput("ctl %s does not take --all", v.name)
	}
	asked, err := v.parse(p, c.Args)
	if err != nil {
		return err
	}
	return c.ask(ctx, p, v, asked)
}

func ctlVerbNamed(name string) (*ctlVerb, error) {
	for i := range ctlVerbs {
		if ctlVerbs[i].name == name {
			return &ctlVerbs[i], nil
		}
	}
	return nil, badInput("ctl: %q is not a verb of ctl%s; \"tabletop ctl help\" lists the verbs", name, nearestText("", name, ctlVerbNames()))
}

func ctlVerbNames() []string {
	names := make([]string, len(ctlVerbs))
	for i := range ctlVerbs {
		names[i] = ctlVerbs[i].name
	}
	return names
}
