package conformance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/bigtable"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tabletop-emu/tabletop/internal/test/long"
)

var (
	killRounds = flag.Int("conformance.kills", 0, "how often the servers are killed; 0: as often as the tier of the tests asks for")
	killSeed   = flag.Uint64("conformance.seed", 1, "where the random choices of writers begin")
)

// The data of the writers.
const (
	killWriters  = 64
	killAccounts = 256
	killCounters = 64
	opening      = 100 // balance of each account at first
	// killAfter is the number of acknowledged writes between two kills, in the long tier.
	killAfter = 300
)

// TestKill_Writers runs many writers that increment counters under conditions and transfer
// between accounts by transactions, while the server is killed repeatedly. Sums are exact, a
// write without an answer took effect completely or not at all, no transaction stays open, and
// the indexes match the items.
func TestKill_Writers(t *testing.T) {
	t.Parallel()
	kills, after := killCount(long.Enabled()), int64(killAfter/2)
	if long.Enabled() {
		after = killAfter
	}
	t.Run("with its data", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		testKills(t, kills, after, func() (*process, error) {
			return serve("--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--data", dir)
		})
	})
	t.Run("the DynamoDB endpoint alone", func(t *testing.T) {
		t.Parallel()
		behind := serveBigtable(t)
		target := behind.exports["BIGTABLE_EMULATOR_HOST"]
		testKills(t, kills, after, func() (*process, error) {
			p, err := serve("--target", target, "--dynamodb", "127.0.0.1:0")
			if err == nil {
				p.exports["BIGTABLE_EMULATOR_HOST"] = target
			}
			return p, err
		})
	})
}

// killCount returns the number of kills.
func killCount(longTier bool) int {
	switch {
	case *killRounds > 0:
		return *killRounds
	case longTier:
		return 3
	default:
		return 1
	}
}

func testKills(t *testing.T, kills int, after int64, start func() (*process, error)) {
	t.Helper()
	p, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p != nil {
			if err := p.kill(); err != nil {
				t.Error(err)
			}
		}
	})
	b := &bank{t: t, db: oneShotClient(t, p), writers: make([]*bankWriter, killWriters)}
	for i := range b.writers {
		b.writers[i] = &bankWriter{
			bank: b, name: "w" + strconv.Itoa(i), rand: rand.New(rand.NewPCG(*killSeed, uint64(i))), made: map[string]int{}, unknown: map[string]int{},
		}
	}
	b.open()
	for range kills {
		b.work(p, after)
		if p, err = start(); err != nil {
			t.Fatal(err)
		}
		b.db = oneShotClient(t, p)
		b.check()
		checkBookkeeping(t, p)
	}
	if err = p.stop(); err != nil {
		p = nil
		t.Fatal(err)
	}
	if p, err = start(); err != nil {
		t.Fatal(err)
	}
	b.db = oneShotClient(t, p)
	b.check()
	checkBookkeeping(t, p)
}

// oneShotClient returns a client that does not retry, so the outcome of a call is known or
// unknown.
func oneShotClient(t *testing.T, p *process) *dynamodb.Client {
	t.Helper()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = killWriters
	t.Cleanup(transport.CloseIdleConnections)
	return dynamodb.New(dynamodb.Options{
		Region: p.exports["AWS_REGION"], BaseEndpoint: aws.String(p.exports["AWS_ENDPOINT_URL_DYNAMODB"]),
		Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""),
		HTTPClient:  &http.Client{Transport: ownBody{transport}}, Retryer: aws.NopRetryer{},
	})
}

// ownBody sends a copy of each request's body. The SDK closes its own when the answer arrives,
// possibly before the transport has read the body's end; reading the closed body then fails,
// and the transport closes the connection during the answer. Clients with retries do not
// notice.
type ownBody struct{ next http.RoundTripper }

func (o ownBody) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return o.next.RoundTrip(r)
}

// bank is a table of accounts, counters and ledgers. Items have the attribute n; the indexes
// use it, together with tier.
type bank struct {
	t       *testing.T
	db      *dynamodb.Client
	writers []*bankWriter
}

var bankTable = aws.String("bank")

func bankKey(kind string, id int) item { return item{"kind": s(kind), "id": n(id)} }

// tier returns the partition of the global index for a number: it changes with most writes.
func tier(number int) types.AttributeValue { return s("t" + strconv.Itoa(number%3)) }

// open creates the table and the items.
func (b *bank) open() {
	b.t.Helper()
	attribute := func(name string, kind types.ScalarAttributeType) types.AttributeDefinition {
		return types.AttributeDefinition{AttributeName: aws.String(name), AttributeType: kind}
	}
	_, err := b.db.CreateTable(b.t.Context(), &dynamodb.CreateTableInput{
		TableName: bankTable, KeySchema: keySchema("kind", "id"), BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{attribute("kind", "S"), attribute("id", "N"), attribute("tier", "S"), attribute("n", "N")},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-tier"), KeySchema: keySchema("tier", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}},
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-n"), KeySchema: keySchema("kind", "n"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	var putting sync.WaitGroup
	put := func(kind string, count, number int) {
		for i := range count {
			putting.Go(func() {
				it := bankKey(kind, i)
				it["n"], it["tier"] = n(number), tier(number)
				if _, err := b.db.PutItem(b.t.Context(), &dynamodb.PutItemInput{TableName: bankTable, Item: it}); err != nil {
					b.t.Error(err)
				}
			})
		}
		putting.Wait()
	}
	put("account", killAccounts, opening)
	put("counter", killCounters, 0)
	put("ledger", killWriters, 0)
	if b.t.Failed() {
		b.t.FailNow()
	}
}

// work runs the writers until enough writes are acknowledged, kills the server, and waits for
// them.
func (b *bank) work(p *process, after int64) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	defer cancel()
	var acknowledged atomic.Int64
	enough := make(chan struct{})
	var wg sync.WaitGroup
	for i, w := range b.writers {
		wg.Go(func() {
			for ctx.Err() == nil {
				done, err := w.write(ctx, i)
				if isBroken(err) {
					return
				}
				if err != nil {
					b.t.Errorf("writer %d: %v", i, err)
					cancel()
					return
				}
				if done && acknowledged.Add(1) == after {
					close(enough)
				}
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
	}
	if err := p.kill(); err != nil {
		b.t.Error(err)
	}
	cancel()
	wg.Wait()
	if b.t.Failed() {
		b.t.FailNow()
	}
}

// isBroken reports whether a call got no answer.
func isBroken(err error) bool {
	var network net.Error
	return errors.Is(err, context.Canceled) || errors.As(err, &network) || err != nil && strings.Contains(err.Error(), "EOF")
}

// bankWriter is one writer, with its knowledge about its writes.
type bankWriter struct {
	*bank
	name string
	rand *rand.Rand
	// made and unknown count writes, by the number that they change: acknowledged ones, and
	// those without an answer.
	made, unknown map[string]int
}

// count records the outcome of a write.
func (w *bankWriter) count(to string, err error) (done bool, _ error) {
	switch code := code(err); {
	case err == nil:
		w.made[to]++
		return true, nil
	case isBroken(err):
		w.unknown[to]++
		return false, err
	case slices.Contains([]string{
		"ConditionalCheckFailedException", "TransactionCanceledException", "TransactionConflictException",
		"InternalServerError", "ServiceUnavailable", // the Bigtable behind was killed
	}, code):
		if strings.HasPrefix(code, "Internal") || strings.HasPrefix(code, "Service") {
			w.unknown[to]++
			return false, fmt.Errorf("%w: %w", context.Canceled, err)
		}
		return false, nil
	}
	return false, err
}

func (w *bankWriter) number(ctx context.Context, key item) (int, error) {
	out, err := w.db.GetItem(ctx, &dynamodb.GetItemInput{TableName: bankTable, Key: key, ConsistentRead: aws.Bool(true)})
	if err != nil {
		return 0, err
	}
	return numberOf(out.Item, "n")
}

func numberOf(it item, name string) (int, error) {
	v, ok := it[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, fmt.Errorf("item %v has no number %s", it, name)
	}
	return strconv.Atoi(v.Value)
}

// write makes one write of writer i.
func (w *bankWriter) write(ctx context.Context, i int) (done bool, err error) {
	if w.rand.IntN(2) == 0 {
		return w.increment(ctx, w.rand.IntN(killCounters))
	}
	from := w.rand.IntN(killAccounts)
	to := (from + 1 + w.rand.IntN(killAccounts-1)) % killAccounts
	return w.transfer(ctx, i, from, to)
}

// increment adds one to a counter and to the writer's own part of it.
func (w *bankWriter) increment(ctx context.Context, counter int) (bool, error) {
	key := bankKey("counter", counter)
	seen, err := w.number(ctx, key)
	if err != nil {
		return false, err
	}
	_, err = w.db.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: bankTable, Key: key, ConditionExpression: aws.String("n = :seen"),
		UpdateExpression:          aws.String("SET n = n + :one, tier = :tier ADD " + w.name + " :one"),
		ExpressionAttributeValues: item{":seen": n(seen), ":one": n(1), ":tier": tier(seen + 1)},
	})
	return w.count("counter"+strconv.Itoa(counter), err)
}

// transfer moves one from an account to another, and records it in the writer's ledger.
func (w *bankWriter) transfer(ctx context.Context, i, from, to int) (bool, error) {
	var actions []types.TransactWriteItem
	add := func(key item, by int, more string) error {
		seen, err := w.number(ctx, key)
		if err != nil {
			return err
		}
		actions = append(actions, types.TransactWriteItem{Update: &types.Update{
			TableName: bankTable, Key: key, ConditionExpression: aws.String("n = :seen" + more),
			UpdateExpression:          aws.String("SET n = n + :by, tier = :tier"),
			ExpressionAttributeValues: item{":seen": n(seen), ":by": n(by), ":tier": tier(seen + by)},
		}})
		return nil
	}
	if err := cmp.Or(add(bankKey("account", from), -1, ""), add(bankKey("account", to), 1, ""), add(bankKey("ledger", i), 1, " AND attribute_exists(kind)")); err != nil {
		return false, err
	}
	_, err := w.db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: actions})
	return w.count("transfer", err)
}

// scan returns the items of the table, or of an index.
func (b *bank) scan(index *string) []item {
	b.t.Helper()
	return scanAll(b.t, b.db, bankTable, index)
}

// scanAll returns the items of a table, or of one of its indexes.
func scanAll(t *testing.T, db *dynamodb.Client, table, index *string) []item {
	t.Helper()
	var items []item
	for p := dynamodb.NewScanPaginator(db, &dynamodb.ScanInput{TableName: table, IndexName: index}); p.HasMorePages(); {
		out, err := p.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, out.Items...)
	}
	return items
}

// texts returns items as sorted texts, with some attributes or all.
func texts(items []item, attributes ...string) []string {
	var out []string
	for _, it := range items {
		var text []string
		for _, name := range slices.Sorted(maps.Keys(it)) {
			if len(attributes) == 0 || slices.Contains(attributes, name) {
				switch v := it[name].(type) {
				case *types.AttributeValueMemberS:
					text = append(text, name+"="+v.Value)
				case *types.AttributeValueMemberN:
					text = append(text, name+"="+v.Value)
				}
			}
		}
		out = append(out, strings.Join(text, " "))
	}
	slices.Sort(out)
	return out
}

// check compares the items with the writers' knowledge, and the indexes with the items.
func (b *bank) check() {
	b.t.Helper()
	items := b.scan(nil)
	total := 0
	if want := killAccounts + killCounters + killWriters; len(items) != want {
		b.t.Errorf("%d items, want %d", len(items), want)
	}
	for _, it := range items {
		kind := it["kind"].(*types.AttributeValueMemberS).Value
		id, err := numberOf(it, "id")
		if err != nil {
			b.t.Fatal(err)
		}
		number, err := numberOf(it, "n")
		if err != nil {
			b.t.Fatal(err)
		}
		switch kind {
		case "account":
			total += number
		case "ledger":
			b.checkCount(fmt.Sprintf("transfers of writer %d", id), number, b.writers[id], "transfer")
		case "counter":
			sum := 0
			for _, w := range b.writers {
				part := 0
				if it[w.name] != nil {
					if part, err = numberOf(it, w.name); err != nil {
						b.t.Fatal(err)
					}
				}
				sum += part
				to := "counter" + strconv.Itoa(id)
				b.checkCount(to+" by "+w.name, part, w, to)
			}
			if sum != number {
				b.t.Errorf("counter %d is %d, its parts are %d", id, number, sum)
			}
		}
	}
	if total != killAccounts*opening {
		b.t.Errorf("the accounts hold %d, want %d", total, killAccounts*opening)
	}
	for index, attributes := range map[string][]string{"by-tier": nil, "by-n": {"kind", "id", "n"}} {
		want, got := texts(items, attributes...), texts(b.scan(aws.String(index)))
		if !slices.Equal(want, got) {
			b.t.Errorf("index %s holds\n%s\nwant\n%s", index, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// checkCount checks a number that only one writer adds to.
func (b *bank) checkCount(what string, got int, w *bankWriter, to string) {
	b.t.Helper()
	if least := w.made[to]; got < least || got > least+w.unknown[to] {
		b.t.Errorf("%s: %d, want %d and up to %d more", what, got, least, w.unknown[to])
	}
}

// isDecided reports whether the record of a transaction is committed or aborted: such records
// stay until the time of the transaction is over, for other endpoints that may still process
// it.
func isDecided(row bigtable.Row) bool {
	for _, cells := range row {
		for _, cell := range cells { // the newest of a column first
			if strings.HasSuffix(cell.Column, ":state") {
				return strings.HasPrefix(string(cell.Value), "A") || strings.HasPrefix(string(cell.Value), "C")
			}
		}
	}
	return false
}

// checkBookkeeping reads all rows natively: no item is held by a transaction, no change waits
// for its index entries, and no transaction is open.
func checkBookkeeping(t *testing.T, p *process) {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.exports["BIGTABLE_EMULATOR_HOST"], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	admin, err := bigtable.NewAdminClient(ctx, "tabletop", "tabletop", option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close() }()
	client, err := bigtable.NewClientWithConfig(ctx, "tabletop", "tabletop",
		bigtable.ClientConfig{MetricsProvider: bigtable.NoopMetricsProvider{}}, option.WithGRPCConn(conn))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	tables, err := admin.Tables(ctx)
	if err != nil {
		t.Fatal(err)
	}
	states := 0
	for _, table := range tables {
		err := client.Open(table).ReadRows(ctx, bigtable.InfiniteRange(""), func(row bigtable.Row) bool {
			if table == "_tabletop.catalog" && strings.HasPrefix(row.Key(), "x/") && !isDecided(row) {
				t.Errorf("a transaction is left open: %q", row.Key())
			}
			for _, cell := range row["_f"] {
				_, qualifier, _ := strings.Cut(cell.Column, ":")
				switch {
				case strings.HasPrefix(qualifier, "s") && len(cell.Value) > 0 && strings.ContainsAny(string(cell.Value[:1]), "RE"):
					states++ // live, or live with index entries that follow from the item
				default:
					t.Errorf("table %s, row %q: bookkeeping is left: %q = %q", table, row.Key(), cell.Column, cell.Value)
				}
			}
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := killAccounts + killCounters + killWriters; states != want {
		t.Errorf("%d items have a state, want %d", states, want)
	}
}

// serveBigtable serves only a Bigtable, until the test ends.
func serveBigtable(t *testing.T) *process {
	t.Helper()
	behind, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "off")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := behind.stop(); err != nil {
			t.Error(err)
		}
	})
	return behind
}
