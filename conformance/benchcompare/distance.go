package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// distanceCommand is the argument that makes the program measure only the DynamoDB endpoint,
// the loader and the verifier over links of various lengths.
const distanceCommand = "distance"

// links are the measured round trips. The first one is the floor.
var links = []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond}

// farTarget is the largest ratio of the times of a load, and of a verification, over the last
// link and over the first.
const farTarget = 1.5

// distance is one measurement.
type distance struct {
	*bench
	calls, exported int
}

// The lines around the output of make distance.
const (
	distanceBegin = "<!-- written by make distance -->\n"
	distanceEnd   = "<!-- end of what make distance writes -->\n"
)

// runDistance runs the program with the argument distance.
func runDistance(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	d := &distance{bench: &bench{stderr: stderr}}
	flags := flag.NewFlagSet(distanceCommand, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&d.cache, "cache", filepath.Join(os.TempDir(), "tabletop-bench"), "the folder, `DIR`, of built peers")
	flags.IntVar(&d.reps, "reps", 3, "loads and verifications over each link, for each median")
	flags.IntVar(&d.calls, "calls", 50, "calls of an operation over each link")
	flags.IntVar(&d.exported, "items", 100_000, "items that are loaded and verified")
	out := flags.String("out", "", "put the tables into this `FILE`, between its marked lines")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return exitHold
	} else if err != nil {
		return exitBadFlag
	}
	if d.reps < 1 || d.calls < 1 || d.exported < 1 {
		_, _ = fmt.Fprintf(stderr, "benchcompare %s: -reps, -calls and -items must be at least 1\n", distanceCommand)
		return exitBadFlag
	}
	text, missed, err := d.measure(ctx)
	if err == nil {
		_, err = io.WriteString(stdout, text)
	}
	if err == nil && *out != "" {
		err = replaceBetween(*out, distanceBegin, distanceEnd, text)
	}
	switch {
	case err != nil:
		_, _ = fmt.Fprintf(stderr, "benchcompare %s: %v\n", distanceCommand, err)
		return exitEnvironment
	case missed:
		return exitMissed
	}
	return exitHold
}

// replaceBetween replaces the text between two lines of a file.
func replaceBetween(file, begin, end, text string) error {
	src, err := os.ReadFile(filepath.Clean(file))
	if err != nil {
		return err
	}
	before, rest, begun := strings.Cut(string(src), begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return fmt.Errorf("%s lacks the lines %q and %q that enclose the tables", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+text+end+after), 0o666)
}

// measure runs everything, and returns the tables; missed reports that a load or a verification
// misses its target.
func (d *distance) measure(ctx context.Context) (text string, missed bool, err error) {
	scratch, err := os.MkdirTemp("", "benchcompare-distance")
	if err != nil {
		return "", false, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	d.binaries = filepath.Join(scratch, "bin")
	if err := d.build(ctx, nil); err != nil {
		return "", false, err
	}
	var w strings.Builder
	fmt.Fprintf(&w, "\nMeasured on %s by `make distance`, over a proxy that delays each direction by half of the\n", today())
	fmt.Fprintf(&w, "round trip; p50 / p99 in milliseconds of %d calls, one after the other. Batches have 25 items,\n", d.calls)
	fmt.Fprintf(&w, "transactions 10 (writes have a token); items have 300 bytes. The column of 0 ms also uses the proxy.\n")
	for _, server := range []string{ours, cbtemulator} {
		table, err := d.operations(ctx, server)
		if err != nil {
			return "", false, fmt.Errorf("%s: %w", server, err)
		}
		fmt.Fprintf(&w, "\n### Over %s\n\n%s", map[string]string{ours: "`tabletop serve`", cbtemulator: "the official emulator"}[server], table)
	}
	table, missed, err := d.migrations(ctx, filepath.Join(scratch, "items.jsonl"))
	fmt.Fprintf(&w, "\n### Loads and verifications\n\n%s", table)
	return w.String(), missed, err
}

// overLink runs work on a server at the given distance.
func (d *distance) overLink(addr string, roundTrip time.Duration, work func(addr string) error) error {
	l, err := newLink(addr, roundTrip)
	if err != nil {
		return err
	}
	return errors.Join(work(l.addr()), l.close())
}

// operations measures the operations of an endpoint over a server, and returns their table.
func (d *distance) operations(ctx context.Context, server string) (string, error) {
	cells := map[string][]string{}
	for _, roundTrip := range links {
		_, _ = fmt.Fprintf(d.stderr, "operations over %s, %v\n", server, roundTrip)
		err := d.serve(ctx, server, false, func(addr string, _ int) error {
			return d.overLink(addr, roundTrip, func(addr string) error {
				return d.endpoint(ctx, addr, func(l *changeLoad) error {
					if err := fillDistance(ctx, l); err != nil {
						return err
					}
					for _, o := range distanceOperations {
						for _, table := range o.tables {
							r := l.run(ctx, 1, d.callOf(l, o, table))
							if r.Errors > 0 || r.Ops == 0 {
								return fmt.Errorf("%s: %s", o.name, r.Note)
							}
							name := distanceName(o.name, table)
							cells[name] = append(cells[name], fmt.Sprintf("%.1f / %.1f", r.P50us/1e3, r.P99us/1e3))
						}
					}
					return nil
				})
			})
		})
		if err != nil {
			return "", err
		}
	}
	var w strings.Builder
	w.WriteString("| operation |")
	for _, roundTrip := range links {
		fmt.Fprintf(&w, " %d ms |", roundTrip.Milliseconds())
	}
	w.WriteString("\n|---|" + strings.Repeat("---|", len(links)) + "\n")
	for _, o := range distanceOperations {
		for _, table := range o.tables {
			name := distanceName(o.name, table)
			fmt.Fprintf(&w, "| %s | %s |\n", name, strings.Join(cells[name], " | "))
		}
	}
	return w.String(), nil
}

// endpoint runs work on a DynamoDB endpoint over a Bigtable.
func (d *distance) endpoint(ctx context.Context, target string, work func(*changeLoad) error) error {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	argv := []string{filepath.Join(d.binaries, ourProgram), "serve", "--target", target, "--dynamodb", addr}
	return serving(ctx, addr, nil, argv, func(int) error {
		l := &changeLoad{load: load{ops: d.calls, maxTime: partTimeout}, endpoint: "http://" + addr, client: &http.Client{}}
		defer l.client.CloseIdleConnections()
		return work(l)
	})
}

// The tables, one of which has an index.
const (
	farPlain   = "plain"
	farIndexed = "indexed"
	farItems   = 200
)

// distanceOperation is a measured operation.
type distanceOperation struct {
	name, operation string
	tables          []string
	body            func(i int) string // without the table
}

func distanceName(operation, table string) string {
	if table == farIndexed {
		return operation + ", with an index"
	}
	return operation
}

// farTable is the place of the table's name in a body.
const farTable = "TABLE"

var distanceOperations = func() []distanceOperation {
	both := []string{farPlain, farIndexed}
	list := func(n int, element func(i int) string) string {
		var out []string
		for i := range n {
			out = append(out, element(i))
		}
		return strings.Join(out, ",")
	}
	named := `{"TableName":"` + farTable + `",`
	return []distanceOperation{
		{"GetItem", "GetItem", both[:1], func(i int) string { return named + `"Key":` + farKey(i%farItems) + `}` }},
		{"Query of 20 items", "Query", both[:1], func(i int) string {
			return named + `"KeyConditionExpression":"pk = :p","ExpressionAttributeValues":{":p":{"S":"p` + strconv.Itoa(i%(farItems/20)) + `"}}}`
		}},
		{"BatchGetItem", "BatchGetItem", both[:1], func(i int) string {
			return `{"RequestItems":{"` + farTable + `":{"Keys":[` + list(25, func(k int) string { return farKey((i + k) % farItems) }) + `]}}}`
		}},
		{"TransactGetItems", "TransactGetItems", both[:1], func(i int) string {
			return `{"TransactItems":[` + list(10, func(k int) string { return `{"Get":` + named + `"Key":` + farKey((i+k)%farItems) + `}}` }) + `]}`
		}},
		{"PutItem", "PutItem", both, func(i int) string { return named + `"Item":` + farItem(i%farItems, i) + `}` }},
		{"UpdateItem", "UpdateItem", both, func(i int) string {
			return named + `"Key":` + farKey(i%farItems) + `,"UpdateExpression":"ADD n :one","ExpressionAttributeValues":{":one":{"N":"1"}}}`
		}},
		{"BatchWriteItem", "BatchWriteItem", both, func(i int) string {
			return `{"RequestItems":{"` + farTable + `":[` + list(25, func(k int) string { return `{"PutRequest":{"Item":` + farItem((i*25+k)%farItems, i) + `}}` }) + `]}}`
		}},
		{"TransactWriteItems", "TransactWriteItems", both, func(i int) string {
			return `{"ClientRequestToken":"` + farTable + `-` + strconv.Itoa(i) + `","TransactItems":[` + list(10, func(k int) string {
				return `{"Put":` + named + `"Item":` + farItem((i*10+k)%farItems, i) + `}}`
			}) + `]}`
		}},
	}
}()

func farKey(i int) string {
	return `{"pk":{"S":"p` + strconv.Itoa(i/20) + `"},"sk":{"N":"` + strconv.Itoa(i%20) + `"}}`
}

// farItem returns an item after some writes.
func farItem(i, write int) string {
	return strings.TrimSuffix(farKey(i), "}") + `,"g":{"S":"g` + strconv.Itoa(i%7) + `"},"n":{"N":"` + strconv.Itoa(write) + `"},"text":{"S":"` + strings.Repeat("x", 240) + `"}}`
}

// callOf makes the next call of an operation.
func (d *distance) callOf(l *changeLoad, o distanceOperation, table string) func(context.Context, *rand.Rand) error {
	next := 0
	return func(ctx context.Context, _ *rand.Rand) error {
		next++
		return l.call(ctx, plainService, o.operation, strings.ReplaceAll(o.body(next), farTable, table), nil)
	}
}

// fillDistance creates the tables and their items.
func fillDistance(ctx context.Context, l *changeLoad) error {
	for table, index := range map[string]string{
		farPlain: "",
		farIndexed: `,{"AttributeName":"g","AttributeType":"S"}],"GlobalSecondaryIndexes":[{"IndexName":"byG",
			"KeySchema":[{"AttributeName":"g","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}`,
	} {
		if err := l.call(ctx, plainService, "CreateTable", `{"TableName":"`+table+`","BillingMode":"PAY_PER_REQUEST",
			"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
			"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"}`+index+`]}`, nil); err != nil {
			return err
		}
		for i := range farItems {
			if err := l.call(ctx, plainService, "PutItem", `{"TableName":"`+table+`","Item":`+farItem(i, 0)+`}`, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// migrations loads and verifies an export over the first and the last link, and returns a
// table and whether the target is missed.
func (d *distance) migrations(ctx context.Context, file string) (table string, missed bool, err error) {
	if err := writeExport(file, d.exported); err != nil {
		return "", false, err
	}
	near, far := links[0], links[len(links)-1]
	verbs := []struct{ name, flag string }{{"load", "--target"}, {"verify", "--against"}}
	seconds := map[string]map[time.Duration][]float64{"load": {}, "verify": {}}
	for rep := range d.reps {
		for _, roundTrip := range []time.Duration{near, far} {
			_, _ = fmt.Fprintf(d.stderr, "migration, repetition %d of %d: %v\n", rep+1, d.reps, roundTrip)
			err := d.serve(ctx, ours, false, func(addr string, _ int) error {
				return d.overLink(addr, roundTrip, func(addr string) error {
					for _, verb := range verbs {
						elapsed := stopwatch()
						if err := d.command(ctx, ".", nil, filepath.Join(d.binaries, ourProgram), "migrate", verb.name, "--source", file, "--key", "pk,sk", "--table", "orders", verb.flag, addr); err != nil {
							return err
						}
						seconds[verb.name][roundTrip] = append(seconds[verb.name][roundTrip], elapsed().Seconds())
					}
					return nil
				})
			})
			if err != nil {
				return "", false, err
			}
		}
	}
	var w strings.Builder
	fmt.Fprintf(&w, "%d items over `tabletop serve`, in seconds, medians of %d that took turns.\n\n", d.exported, d.reps)
	fmt.Fprintf(&w, "| command | %d ms | %d ms | ratio | target |  |\n|---|---|---|---|---|---|\n", near.Milliseconds(), far.Milliseconds())
	for _, verb := range verbs {
		a, b := middle(seconds[verb.name][near]), middle(seconds[verb.name][far])
		v := holds
		if b > farTarget*a {
			v, missed = misses, true
		}
		fmt.Fprintf(&w, "| `migrate %s` | %.1f | %.1f | %s | ≤ %v | %s |\n", verb.name, a, b, figure(b/a, true), farTarget, v)
	}
	return w.String(), missed, nil
}
