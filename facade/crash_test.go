package facade

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/internal/tabledef"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/faultdisk"
	"github.com/tabletop-emu/tabletop/internal/test/long"
)

// onDisk is a facade over a Bigtable that stores its data in files.
type onDisk struct {
	*Server
	clock *clock.Clock
	db    *engine.DB
	bt    *emu.Server
}

func openOnDisk(ctx context.Context, fs vfs.FS, at time.Time) (*onDisk, error) {
	c := clock.NewFrozen(at)
	db, err := engine.Open(engine.Options{Dir: "data", FS: fs, Now: c.Now, MemTableBytes: faultdisk.MemTableBytes})
	if err != nil {
		return nil, err
	}
	bt, err := emu.New(emu.Options{DB: db, Clock: c})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s, err := New(ctx, Options{Conn: bt.Conn(), Now: c.Now, Rand: rand.NewChaCha8([32]byte{1}), NoAuth: true, Slot: "test"})
	if err != nil {
		return nil, errors.Join(err, bt.Close(), db.Close())
	}
	return &onDisk{Server: s, clock: c, db: db, bt: bt}, nil
}

func (o *onDisk) close() error { return errors.Join(o.Close(), o.bt.Close(), o.db.Close()) }

// tables returns the definitions of all tables, and their items.
func (o *onDisk) tables(t *testing.T) (defs []*tabledef.Table, items [][]attr.Item) {
	t.Helper()
	names, _, err := o.store.ListTables(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		def, err := o.store.Table(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defs, items = append(defs, def), append(items, o.Scan(t, def, nil))
	}
	return defs, items
}

// Scan returns all items of a table, or of an index, sorted by their texts.
func (o *onDisk) Scan(t *testing.T, def *tabledef.Table, ix *tabledef.Index) (items []attr.Item) {
	t.Helper()
	for stored, err := range o.store.Scan(t.Context(), def, ix, 0, 1, nil) {
		if err != nil {
			t.Fatal(err)
		}
		item, err := stored.Item()
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b attr.Item) int { return strings.Compare(itemText(a), itemText(b)) })
	return items
}

func itemText(item attr.Item) string { return string(attr.AppendItemJSON(nil, item)) }

// text returns the state that clients see after background work: tables, their indexes and
// their items.
func (o *onDisk) text(t *testing.T) string {
	t.Helper()
	o.store.Wait()
	var b strings.Builder
	defs, items := o.tables(t)
	for i, def := range defs {
		fmt.Fprintf(&b, "table %s %s", def.Name, def.Status)
		for _, ix := range def.Indexes {
			fmt.Fprintf(&b, ", index %s %s", ix.Name, ix.Status)
		}
		b.WriteByte('\n')
		for _, item := range items[i] {
			b.WriteString(itemText(item) + "\n")
		}
	}
	return b.String()
}

// check checks that the indexes match the items, and that nothing is pending after the
// timeout of transactions.
func (o *onDisk) check(t *testing.T) {
	t.Helper()
	o.clock.Advance(time.Minute)
	if _, err := o.ReapExpired(t.Context()); err != nil {
		t.Error(err)
	}
	transactions := btclient.Span{Start: []byte("x/"), End: []byte("x0")}
	for row, err := range nativeClient(o.Server).Read(t.Context(), btclient.Read{Table: store.CatalogTable, Spans: []btclient.Span{transactions}}) {
		if err != nil {
			t.Fatal(err)
		}
		t.Errorf("the catalog has the transaction %q", row.Key)
	}
	defs, items := o.tables(t)
	for i, def := range defs {
		if def.StreamEnabled {
			o.checkStream(t, def, items[i])
		}
		for _, x := range nativeTableOf(t, o.Server, def.Name).indexes {
			var want []attr.Item
			for _, item := range items[i] {
				if x.Contains(item) {
					want = append(want, x.Project(item))
				}
			}
			slices.SortFunc(want, func(a, b attr.Item) int { return strings.Compare(itemText(a), itemText(b)) })
			got := o.Scan(t, def, def.Index(x.Name()))
			if !slices.EqualFunc(got, want, attr.EqualItems) {
				t.Errorf("index %s of table %s holds %v, want %v", x.Name(), def.Name, got, want)
			}
		}
		for row, err := range nativeClient(o.Server).Read(t.Context(), btclient.Read{Table: def.BigtableTable, Spans: []btclient.Span{{}}}) {
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(row.Cells, isUnfinished) {
				t.Errorf("a write of row %q of table %s is unfinished", row.Key, def.BigtableTable)
			}
		}
	}
}

// checkStream checks that the records of a stream form a chain of writes for each item, from
// nothing to its state in the table.
func (o *onDisk) checkStream(t *testing.T, def *tabledef.Table, items []attr.Item) {
	t.Helper()
	state := map[string]string{}
	of := func(image map[string]map[string]any) string {
		if image == nil {
			return ""
		}
		text, err := json.Marshal(image)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, r := range newStreamReader(o.streamARN(def, def.StreamLabel)).read(t, o.Server) {
		key := of(r.Dynamodb.Keys)
		if state[key] != of(r.Dynamodb.OldImage) {
			t.Errorf("record %s follows %q", r.text(), state[key])
		}
		if state[key] = of(r.Dynamodb.NewImage); state[key] == "" {
			delete(state, key)
		}
	}
	for _, item := range items {
		var image map[string]map[string]any
		if err := json.Unmarshal([]byte(itemText(item)), &image); err != nil {
			t.Fatal(err)
		}
		key := of(map[string]map[string]any{def.Key.Hash.Name: image[def.Key.Hash.Name]})
		if state[key] != of(image) {
			t.Errorf("item %s is %q by the stream", itemText(item), state[key])
		}
		delete(state, key)
	}
	for key, image := range state {
		t.Errorf("there is no item %s, by the stream it is %s", key, image)
	}
}

type bankCall struct{ operation, body string }

// TestCrash crashes the disk under a facade before every operation that changes it, during a
// script of writes, transactions and changes of tables. Acknowledged changes must be there,
// pending ones completely or not at all, and the indexes must match the items. With seed 0, a
// crash loses all unsynced data; with other seeds, sometimes only half of it.
func TestCrash(t *testing.T) {
	t.Parallel()
	seeds := uint64(1)
	if long.Enabled() {
		seeds = 3
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, seed, "")
		})
	}
}

// bankCalls returns the calls of the script; more are members of CreateTable.
func bankCalls(more string) []bankCall {
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
			"GlobalSecondaryIndexes": [{` + byTier + `}]` + more + `}`},
		{"PutItem", "{" + account("a", "t1", 100) + "}"},
		{"PutItem", "{" + account("b", "t2", 5) + "}"},
		{"PutItem", "{" + account("gone", "t1", 1) + "}"},
		{"PutItem", "{" + account("b", "t1", 6) + "}"}, // moves in the index
		{"TransactWriteItems", `{"ClientRequestToken": "1", "TransactItems": [` + add("a", "-30") + `, ` + add("b", "30") + `,
			{"Delete": {` + of("gone") + `}}, {"Put": {` + account("new", "t1", 7) + `}},
			{"ConditionCheck": {` + of("none") + `, "ConditionExpression": "attribute_not_exists(id)"}}]}`},
		{"UpdateItem", "{" + of("a") + `, "UpdateExpression": "REMOVE tier"}`}, // leaves the index
		{"TransactWriteItems", `{"TransactItems": [` + add("a", "1") + `, ` + add("new", "-1") + `]}`},
		{"DeleteItem", "{" + of("b") + "}"},
		{"UpdateTable", `{"TableName": "bank", "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-tier"}}]}`},
		{"UpdateTable", `{"TableName": "bank", "GlobalSecondaryIndexUpdates": [{"Create": {` + byTier + `}}],
			"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}, {"AttributeName": "tier", "AttributeType": "S"}, {"AttributeName": "n", "AttributeType": "N"}]}`},
		{"DeleteTable", `{"TableName": "bank"}`},
	}
}

// TestCrash_Stream acts like TestCrash for a table with a stream: after any crash, its records are
// exactly the writes that happened.
func TestCrash_Stream(t *testing.T) {
	t.Parallel()
	seeds := []uint64{1}
	if long.Enabled() {
		seeds = []uint64{0, 1}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			crashEverywhere(t, seed, `, "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"}`)
		})
	}
}

func crashEverywhere(t *testing.T, seed uint64, more string) {
	t.Helper()
	disk := faultdisk.NewCrashing(seed)
	o, err := openOnDisk(t.Context(), disk.FS(), testTime)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := o.close(); err != nil {
			t.Error(err)
		}
	})
	run := faultdisk.Script{Disk: disk, Text: func() string { return o.text(t) }}
	for _, call := range bankCalls(more) {
		run.Steps = append(run.Steps, faultdisk.Step{Name: call.operation + " " + call.body, Do: func() error {
			_, err := o.Call(t.Context(), call.operation, []byte(call.body))
			return err
		}})
	}
	run.Reopen = func(x faultdisk.Crash) (string, error) {
		again, err := openOnDisk(t.Context(), x.FS, testTime)
		if err != nil {
			return "", err
		}
		found := again.text(t)
		again.check(t)
		after := again.text(t)
		err = again.close()
		switch {
		case after != found:
			err = errors.Join(err, fmt.Errorf("it holds\n%sand later\n%s", found, after))
		case t.Failed():
			err = errors.Join(err, errors.New("it holds what is said above"))
		}
		return found, err
	}
	crashes, err := run.Run()
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d crashes", crashes)
}
