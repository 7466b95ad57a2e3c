package facade

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/faultdisk"
)

// onDisk is a facade over a Bigtable over a store with files.
type onDisk struct {
	*Server
	clock *clock.Clock
	db    *engine.DB
	bt    *emu.Server
}

func openOnDisk(ctx context.Context, fs vfs.FS, at time.Time) (*onDisk, error) {
	c := clock.NewFrozen(at)
	db, err := engine.Open(engine.Options{Dir: "data", FS: fs, Now: c.Now})
	if err != nil {
		return nil, err
	}
	bt, err := emu.New(emu.Options{DB: db, Now: c.Now})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s, err := New(ctx, Options{Conn: bt.Conn(), Now: c.Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true})
	if err != nil {
		return nil, errors.Join(err, bt.Close(), db.Close())
	}
	return &onDisk{Server: s, clock: c, db: db, bt: bt}, nil
}

func (o *onDisk) close() error { return errors.Join(o.Close(), o.bt.Close(), o.db.Close()) }

// tables returns the definitions of all tables, and their items.
func (o *onDisk) tables(t *testing.T) (defs []*tableDef, items []model) {
	t.Helper()
	names, _, err := o.store.listTables(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		def, err := o.store.table(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		m := model{}
		for item, err := range o.store.scan(t.Context(), def, nil, 0, 1, nil) {
			if err != nil {
				t.Fatal(err)
			}
			m[keyText(keyAttrs(def, item))] = item
		}
		defs, items = append(defs, def), append(items, m)
	}
	return defs, items
}

// text is what clients see when what goes on behind calls is done: tables, their
// indexes and their items.
func (o *onDisk) text(t *testing.T) string {
	t.Helper()
	o.store.background.Wait()
	var b strings.Builder
	defs, items := o.tables(t)
	for i, def := range defs {
		fmt.Fprintf(&b, "table %s %s", def.Name, def.Status)
		for _, ix := range def.Indexes {
			fmt.Fprintf(&b, ", index %s %s", ix.Name, ix.Status)
		}
		all := items[i].sorted(def.Key, func(attr.Item) bool { return true })
		fmt.Fprintf(&b, "\n%s\n", strings.Join(texts(all), "\n"))
	}
	return b.String()
}

// check checks that the indexes hold what the items say, and that nothing is
// under way any more when the time of transactions is over.
func (o *onDisk) check(t *testing.T) {
	t.Helper()
	o.clock.Advance(transactionTimeout)
	if err := o.store.recoverTransactions(t.Context(), false); err != nil {
		t.Error(err)
	}
	defs, items := o.tables(t)
	for i, def := range defs {
		if err := checkIndexes(t.Context(), o.store, def, items[i]); err != nil {
			t.Error(err)
		}
		checkNoIntents(t, o.store, def.BigtableTable)
	}
}

type bankCall struct{ operation, body string }

// TestCrash crashes the disk under a facade before every operation that changes
// it, during a script of writes, transactions and changes of tables: what was
// acknowledged is found, of what was under way all or nothing, in each index
// what the items say, and no more. With seed 0 nothing is kept that was not
// synced, else at times half of it.
func TestCrash(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, seed)
		})
	}
}

// bankCalls are the calls of the script.
func bankCalls() []bankCall {
	const key = `"TableName": "bank", "Key": {"id": {"S": "%s"}}`
	of := func(id string) string { return fmt.Sprintf(key, id) }
	account := func(id string, tier string, n int) string {
		return fmt.Sprintf(`"TableName": "bank", "Item": {"id": {"S": "%s"}, "tier": {"S": "%s"}, "n": {"N": "%d"}}`, id, tier, n)
	}
	add := func(id, by string) string {
		return `{"Update": {` + of(id) + `, "ConditionExpression": "attribute_exists(id)", "UpdateExpression": "SET tier = :t ADD n :n",
			"ExpressionAttributeValues": {":t": {"S": "moved"}, ":n": {"N": "` + by + `"}}}}`
	}
	const byTier = `"IndexName": "by-tier", "Projection": {"ProjectionType": "ALL"}, "KeySchema": [{"AttributeName": "tier", "KeyType": "HASH"}, {"AttributeName": "n", "KeyType": "RANGE"}]`
	return []bankCall{
		{"CreateTable", `{"TableName": "bank", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "tier", "AttributeType": "S"}, {"AttributeName": "n", "AttributeType": "N"}],
			"GlobalSecondaryIndexes": [{` + byTier + `}]}`},
		{"PutItem", "{" + account("a", "t1", 100) + "}"},
		{"PutItem", "{" + account("b", "t2", 5) + "}"},
		{"PutItem", "{" + account("gone", "t1", 1) + "}"},
		{"PutItem", "{" + account("b", "t1", 6) + "}"}, // to another place in the index
		{"TransactWriteItems", `{"ClientRequestToken": "1", "TransactItems": [` + add("a", "-30") + `, ` + add("b", "30") + `,
			{"Delete": {` + of("gone") + `}}, {"Put": {` + account("new", "t1", 7) + `}},
			{"ConditionCheck": {` + of("none") + `, "ConditionExpression": "attribute_not_exists(id)"}}]}`},
		{"UpdateItem", "{" + of("a") + `, "UpdateExpression": "REMOVE tier"}`}, // out of the index
		{"TransactWriteItems", `{"TransactItems": [` + add("a", "1") + `, ` + add("new", "-1") + `]}`},
		{"DeleteItem", "{" + of("b") + "}"},
		{"UpdateTable", `{"TableName": "bank", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-tier"}}]}`},
		{"UpdateTable", `{"TableName": "bank", "GlobalSecondaryIndexUpdates": [{"Create": {` + byTier + `}}],
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "tier", "AttributeType": "S"}, {"AttributeName": "n", "AttributeType": "N"}]}`},
		{"DeleteTable", `{"TableName": "bank"}`},
	}
}

func crashEverywhere(t *testing.T, seed uint64) {
	t.Helper()
	script := bankCalls()
	type crash struct {
		fs           *vfs.MemFS
		done, during int // calls answered before it, calls begun
	}
	mem := vfs.NewCrashableMem()
	rng := rand.New(rand.NewPCG(seed, 1))
	var mu sync.Mutex // guards what follows: the disk is used by several goroutines
	var crashes []crash
	done, during := 0, 0
	fs := faultdisk.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			mu.Lock()
			defer mu.Unlock()
			cfg := vfs.CrashCloneCfg{}
			if seed > 0 {
				cfg = vfs.CrashCloneCfg{UnsyncedDataPercent: 50 * rng.IntN(2), RNG: rng}
			}
			crashes = append(crashes, crash{mem.CrashClone(cfg), done, during})
		}
		return nil
	}))
	o, err := openOnDisk(t.Context(), fs, testTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	states := []string{o.text(t)} // after each number of calls
	for i, call := range script {
		mu.Lock()
		during = i + 1
		mu.Unlock()
		must(t, o.Server, call.operation, call.body)
		mu.Lock()
		done = i + 1
		mu.Unlock()
		states = append(states, o.text(t))
		if states[i] == states[i+1] {
			t.Errorf("%s %s changes nothing", call.operation, call.body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	found := map[int]bool{}
	for n, x := range crashes {
		again, err := openOnDisk(t.Context(), x.fs, testTime)
		if err != nil {
			t.Fatalf("crash %d: %v", n, err)
		}
		got := again.text(t)
		switch got {
		case states[x.done]:
			found[x.done] = true
		case states[x.during]:
			found[x.during] = true
		default:
			t.Errorf("crash %d, in call %d, leaves\n%swhich is neither what was before\n%snor what is after\n%s", n, x.during, got, states[x.done], states[x.during])
		}
		again.check(t)
		if after := again.text(t); after != got {
			t.Errorf("crash %d, in call %d, leaves\n%sand later\n%s", n, x.during, got, after)
		}
		if err := again.close(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d crashes, %d of %d states", len(crashes), len(found), len(states))
	if len(found) < len(states) {
		t.Errorf("only %d of %d states were met", len(found), len(states))
	}
}
