package main

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/phrase"
)

// faultHelp describes the members of a fault.
const faultHelp = `tabletop ctl fault '{"endpoint":"bigtable","method":"MutateRow","effect":"fail","code":"UNAVAILABLE","times":2}'
tabletop ctl fault '{"endpoint":"dynamodb","method":"PutItem","effect":"fail","code":"Throttling","times":1,"table":"orders"}'

  endpoint        bigtable or dynamodb
  method          the RPC or the operation; * for all
  effect          fail, delay; for bigtable also cut, duplicate; for dynamodb also unprocessed, stale
  code, message   for fail and cut: UNAVAILABLE, or for dynamodb any error, such as ConditionalCheckFailed
  reasons         for TransactionCanceled: the codes of the reasons, for each action
  applied         for fail: true if the request is served, but its answer is lost
  delay, rows, snapshot   for delay (a duration), cut (number of rows that arrive) and stale (a name)
  table, row, item        only requests for this table, row or item
  behindDynamoDB  true: the calls of the DynamoDB endpoint, instead of those of clients
  skip, times, probability   which of the matching requests. Default: all, including retries`

// writeHelp describes the members of a row.
const writeHelp = `tabletop ctl write t '{"key":{"text":"a"},"cells":[{"family":"f","qualifier":{"text":"q"},"value":{"text":"v"}}]}'

  key, qualifier, value   {"text":"..."}, or {"base64":"..."}
  timestamp               of a cell, in microseconds. Default: the time of the server
  delete                  true: first delete all cells of the row`

// helpOfCtl lists the verbs, or describes one.
func (p *program) helpOfCtl(args []string) error {
	switch len(args) {
	case 0:
		for _, v := range ctlVerbs {
			_, _ = fmt.Fprintf(p.stdout, "  %-34s %s\n", strings.TrimSpace(v.name+" "+v.takes), v.what)
		}
		_, _ = fmt.Fprintln(p.stdout, "\n\"tabletop ctl help VERB\" describes a verb.")
		return nil
	case 1:
	default:
		return badInput("ctl help takes [VERB] (got %s)", phrase.Counted(int64(len(args)), "argument"))
	}
	v, err := ctlVerbNamed(args[0])
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(p.stdout, "tabletop ctl %s\n  %s\n", strings.TrimSpace(v.name+" "+v.takes), v.what)
	if v.json != "" {
		_, _ = fmt.Fprintf(p.stdout, "  %s may also be @FILE, or - for the standard input\n", v.json)
	}
	if v.params != "" {
		_, _ = fmt.Fprintf(p.stdout, "  NAME=VALUE sets %s\n", strings.Join(strings.Fields(v.params), ", "))
	}
	if v.list != "" {
		_, _ = fmt.Fprintln(p.stdout, "  --all prints all of them")
	}
	if v.more != "" {
		_, _ = fmt.Fprintf(p.stdout, "\n%s\n", v.more)
	}
	return nil
}

// route matches HTTP requests in a remedy of the API.
var route = regexp.MustCompile(`(GET|POST|DELETE) ` + control.Prefix + `([^\s,;:]*)`)

// inShell returns the error of a verb's request, with the remedy as a shell command.
func (v *ctlVerb) inShell(e *control.Error) *control.Error {
	out := *e
	if e.Code == "token" {
		out.Remedy = "pass the token that the server printed, or that its --token-file holds, with --console-token, or pass its --port-file"
		return &out
	}
	out.Remedy = strings.NewReplacer(
		"GET / lists the paths", `"tabletop ctl help" lists the verbs`,
		"docs/control.md", `"tabletop ctl help `+v.name+`"`,
	).Replace(out.Remedy)
	out.Remedy = route.ReplaceAllStringFunc(out.Remedy, func(text string) string {
		m := route.FindStringSubmatch(text)
		for i := range ctlVerbs {
			if said, ok := ctlVerbs[i].says(m[1], m[2]); ok {
				return `"` + said + `"`
			}
		}
		return text
	})
	return &out
}

// says returns the shell command that sends a request with this method and path. It returns false if
// v sends other requests.
func (v *ctlVerb) says(method, path string) (string, bool) {
	pattern, _, _ := strings.Cut(v.path, "?")
	if method != v.method {
		return "", false
	}
	pattern = strings.Replace(regexp.QuoteMeta(pattern), `/\{\}`, "/(.+)", 1)
	if v.args[0] == 0 {
		pattern = strings.Replace(pattern, "/(.+)", "(?:/(.+))?", 1)
	}
	m := regexp.MustCompile("^" + pattern + "$").FindStringSubmatch(path)
	if m == nil {
		return "", false
	}
	out := "tabletop ctl " + v.name
	switch {
	case len(m) > 1 && m[1] != "" && !strings.Contains(m[1], "{"):
		out += " " + m[1]
	case v.args[0] > 0:
		out += " " + v.takes
	}
	return out, true
}
