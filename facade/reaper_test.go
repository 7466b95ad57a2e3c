package facade

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
)

// expiring is an item that expires at a number of seconds after 1970, or has
// another attribute in that place.
func expiring(id string, until attr.Value) attr.Item {
	item := account(id, 1)
	if !until.IsAbsent() {
		item["until"] = until
	}
	return item
}

// Items expire by their due times, whether they were there before the table
// had a time to live or not; all others stay.
func TestReapExpired(t *testing.T) {
	t.Parallel()
	begin := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	at := func(d time.Duration) attr.Value { return attr.Int(begin.Add(d).Unix()) }
	for name, start := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			now := clock.NewFrozen(begin)
			o := testOptions(start(t))
			o.Now, o.NoAuth = now.Now, true
			srv, err := New(ctx, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := srv.Close(); err != nil {
					t.Error(err)
				}
			})
			s := srv.store
			def := newTable(t, s, indexedTable("sessions"))
			items := map[string]attr.Item{}
			add := func(id string, until attr.Value) {
				t.Helper()
				items[id] = expiring(id, until)
				if err := put(ctx, s, def, items[id]); err != nil {
					t.Fatal(err)
				}
			}
			reap := func(want ...string) {
				t.Helper()
				n, err := srv.ReapExpired(ctx)
				if err != nil || n != len(want) {
					t.Errorf("reaped %d items, %v; want %v", n, err, want)
				}
				for _, id := range want {
					delete(items, id)
				}
				m := model{}
				for _, item := range items {
					m[keyText(keyAttrs(def, item))] = item
				}
				got, err := collect(s.scan(ctx, def, nil, 0, 1, nil))
				if err != nil || len(got) != len(m) {
					t.Errorf("left are %v, %v; want %d items", texts(got), err, len(m))
				}
				if err := checkIndexes(ctx, s, def, m); err != nil {
					t.Error(err)
				}
			}
			add("before, due", at(time.Hour))
			add("before, none", attr.Value{})
			add("before, text", attr.String("1"))
			must(t, srv, "UpdateTimeToLive", `{"TableName": "sessions", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": true}}`)
			add("due", at(time.Hour))
			add("due later", at(2*time.Hour))
			add("fraction", attr.Value{Type: attr.N, Str: at(time.Hour).Str + ".5"})
			add("negative", attr.Int(-5))
			add("milliseconds", attr.Int(begin.UnixMilli()))
			add("five years ago", at(-maxOverdue-time.Second))
			add("nearly five years ago", at(-maxOverdue+2*time.Hour))
			add("put off", at(time.Hour))
			add("put off", at(3*time.Hour))
			reap("nearly five years ago")
			now.Advance(time.Hour - time.Second)
			reap()
			now.Advance(time.Second)
			reap("before, due", "due")
			now.Advance(time.Hour)
			reap("fraction", "due later")

			// A transaction that puts an item off, and one that makes it due.
			off := expiring("put off", at(9*time.Hour))
			early := expiring("early", at(time.Hour))
			if ok, _, err := s.transact(ctx, transactionRequest{}, []*itemChange{
				replaceBy(def, keyAttrs(def, off), off), replaceBy(def, keyAttrs(def, early), early),
			}); !ok || err != nil {
				t.Fatal(ok, err)
			}
			items["put off"], items["early"] = off, early
			now.Advance(time.Hour)
			reap("early")

			// A due time that is no longer true deletes nothing.
			c, err := s.lookup(ctx, def.Name)
			if err != nil {
				t.Fatal(err)
			}
			stale := expiring("put off", at(0))
			placed, ok, err := c.layout.due.place(stale, s.nowMicros())
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if _, err := s.putEntry(ctx, indexPut{index: c.layout.due, row: placed.Row, cells: placed.Cells, over: anyEntry}, s.nowMicros()); err != nil {
				t.Fatal(err)
			}
			reap()

			due := c.def.TTLTable
			must(t, srv, "UpdateTimeToLive", `{"TableName": "sessions", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": false}}`)
			if _, err := collectRows(t, s, due); err == nil {
				t.Errorf("the table %s of due times is still there", due)
			}
			now.Advance(24 * time.Hour)
			reap()
			must(t, srv, "UpdateTimeToLive", `{"TableName": "sessions", "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": true}}`)
			reap("put off")
			must(t, srv, "DeleteTable", `{"TableName": "sessions"}`)
			if n, err := srv.ReapExpired(ctx); n != 0 || err != nil {
				t.Errorf("reaped %d items of no table, %v", n, err)
			}
		})
	}
}

// collectRows reads all rows of a Bigtable table.
func collectRows(tb testing.TB, s *store, table string) (rows []layout.Row, err error) {
	tb.Helper()
	for row, err := range s.readRows(tb.Context(), rowRead{table: table, spans: []layout.Span{{}}}) {
		if err != nil {
			return rows, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// A start goes on with filling in due times.
func TestReapExpired_Restart(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := testOptions(backends["emu"](t))
	s := openStore(t, o)
	def := newTable(t, s, indexedTable("sessions"))
	if err := put(ctx, s, def, expiring("a", attr.Int(o.Now().Unix()))); err != nil {
		t.Fatal(err)
	}
	if _, err := s.updateTable(ctx, def.Name, func(d *tableDef) error {
		d.TTLAttribute = "until"
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	s = openStore(t, o)
	s.background.Wait()
	if n, err := s.reapExpired(ctx); n != 1 || err != nil {
		t.Errorf("reaped %d items, %v", n, err)
	}
	if got, err := s.table(ctx, def.Name); err != nil || got.TTLFilling {
		t.Errorf("definition %+v, %v", got, err)
	}
}

// TestSDK_Transactions drives transactions and expiry with the official
// client.
func TestSDK_Transactions(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	s := newTestServer(t, func(o *Options) { o.NoAuth, o.Now = false, now.Now })
	c := sdkClient("http://dynamodb.invalid", s.RoundTripper())
	ctx := t.Context()
	table := aws.String("accounts")
	must(t, s, "CreateTable", `{"TableName": "accounts", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)
	put := func(id string, condition *string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, ConditionExpression: condition,
			Item:                                map[string]types.AttributeValue{"id": str(id), "until": num(int(testTime.Unix()) + 60)},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	var items []types.TransactWriteItem
	for i := range 100 {
		items = append(items, put(strconv.Itoa(i), nil))
	}
	if _, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		t.Fatal(err)
	}
	_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(items, put("100", nil))})
	if err == nil || !strings.Contains(err.Error(), "Value '[101 actions]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100") {
		t.Errorf("101 actions: %v", err)
	}
	_, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		put("new", nil), put("1", aws.String("attribute_not_exists(id)")),
	}})
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2 || aws.ToString(canceled.CancellationReasons[0].Code) != "None" ||
		aws.ToString(canceled.CancellationReasons[1].Code) != "ConditionalCheckFailed" || len(canceled.CancellationReasons[1].Item) != 2 {
		t.Errorf("a condition that fails: %v, %+v", err, canceled)
	}
	var gets []types.TransactGetItem
	for _, id := range []string{"99", "new", "0"} {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: table, Key: map[string]types.AttributeValue{"id": str(id)}}})
	}
	got, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		t.Fatal(err)
	}
	if n := fmt.Sprint(len(got.Responses[0].Item), len(got.Responses[1].Item), len(got.Responses[2].Item)); n != "2 0 2" {
		t.Errorf("TransactGetItems: %v", n)
	}
	if _, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("until"), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Minute)
	if n, err := s.ReapExpired(ctx); n != 100 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}

	// A plain write that meets a transaction.
	def, err := s.store.table(ctx, "accounts")
	if err != nil {
		t.Fatal(err)
	}
	key := attr.Item{"id": attr.String("held")}
	change := replaceBy(def, key, key)
	calls := 0
	change.fn = func(attr.Item) (attr.Item, error) { calls++; return key, nil }
	if ok, _, err := s.store.transact(ctx, transactionRequest{}, []*itemChange{change}); !ok || err != nil || calls != 2 {
		t.Fatal(ok, err, calls)
	}
	r := transactionRecord{
		id: string(s.store.newToken()), state: transactionPending, deadline: s.store.nowMicros() + transactionTimeout.Microseconds(),
		items: []transactionItem{{table: def.Name, tableID: def.ID, key: appendKey(nil, def.Key, key)}},
	}
	if err := s.store.record(ctx, &r); err != nil {
		t.Fatal(err)
	}
	if ok, err := s.store.placeIntent(ctx, &r, change); !ok || err != nil {
		t.Fatal(ok, err)
	}
	w := post(s, "PutItem", `{"TableName": "accounts", "Item": {"id": {"S": "held"}}}`, func(r *http.Request) {
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/20261121/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
		r.Header.Set("X-Amz-Date", "20261121T000000Z")
	})
	if want := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"Transaction is ongoing for the item"}`; w.Code != http.StatusBadRequest || w.Body.String() != want {
		t.Errorf("a plain write: %d %s", w.Code, w.Body)
	}
	_, err = c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
		{Get: &types.Get{TableName: table, Key: map[string]types.AttributeValue{"id": str("held")}}},
	}})
	if !errors.As(err, &canceled) || aws.ToString(canceled.CancellationReasons[0].Code) != "TransactionConflict" {
		t.Errorf("TransactGetItems of a held item: %v", err)
	}
	now.Advance(transactionTimeout)
	if _, err := s.ReapExpired(ctx); err != nil {
		t.Fatal(err)
	}
	checkNoIntents(t, s.store, def.BigtableTable)
}
