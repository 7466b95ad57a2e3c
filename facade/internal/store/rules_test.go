package store

import (
	"errors"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/maperr"
	"github.com/tabletop-emu/tabletop/internal/btclient"
)

const accountsMapping = `apiVersion: migration/v1
source:
  table: Accounts
  key: {hash: {name: PK, type: S}, range: {name: SK, type: S}}
  schema: {v: S, n: N, expires: N}
  ttl: {attribute: expires, mode: one-second}
target: {table: accounts, families: {a: {gc: {versions: 1}}, s: {gc: {maxAge: 1s}}, _t: {gc: {versions: 1}}}}
rules:
- {name: session, when: {SK: "SES#{s}"}, row: ["{PK}", s, "{s}"], put: [{attr: "*", cell: "s:{attr}"}]}
- {name: order, when: {PK: "CUSTOMER#{c}", SK: "ORDER#{o}"}, row: [orders, "{o}"], put: [{attr: "{c}", cell: "a:customer"}, {attr: "*", cell: "a:{attr}"}]}
- {name: profile, row: ["{PK}", p, "{SK}"], put: [{attr: "*", cell: "a:{attr}"}]}
`

// Items of a rule whose families are garbage-collected expire, and other items stay. The DynamoDB
// endpoint hides expired items even before garbage collection runs.
func TestMapping_TimeToLiveOfARule(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	o := testOptions(backends["emu"](t), loadMapping(t, accountsMapping))
	now := time.Date(2024, 5, 14, 11, 14, 20, 0, time.UTC)
	o.Now = func() time.Time { return now }
	s := openStore(t, o)
	def, err := s.Table(ctx, "Accounts")
	if err != nil {
		t.Fatal(err)
	}
	item := func(sk string) attr.Item {
		return attr.Item{"PK": attr.String("ann"), "SK": attr.String(sk), "v": attr.String("x"), "expires": attr.Int(now.Add(time.Minute).Unix())}
	}
	session, profile := item("SES#1"), item("profile")
	for _, it := range []attr.Item{session, profile} {
		if err := put(ctx, s, def, it); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		pass time.Duration
		want []attr.Item
	}{{0, []attr.Item{profile, session}}, {time.Minute + 2*time.Second, []attr.Item{profile}}} {
		now = now.Add(c.pass)
		got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
		if d := diffItems(c.want, got); d != "" || err != nil {
			t.Errorf("scan: %v (-want +got):\n%s", err, d)
		}
	}
}

// If garbage collection deletes the items of one rule, and another rule has the mode attribute,
// the endpoint deletes expired items of the latter. It keeps due times only for those.
func TestReapExpired_RuleOfItsOwn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	text := strings.Replace(accountsMapping, "{name: profile,", "{name: profile, ttl: {attribute: expires, mode: attribute},", 1)
	o := testOptions(backends["emu"](t), loadMapping(t, text))
	now := time.Date(2024, 5, 14, 11, 14, 20, 0, time.UTC)
	o.Now = func() time.Time { return now }
	s := openStore(t, o)
	s.Wait()
	def, err := s.Table(ctx, "Accounts")
	if err != nil || def.TTLAttribute != "expires" {
		t.Fatalf("%+v, %v", def, err)
	}
	for _, sk := range []string{"SES#1", "profile"} {
		if err := put(ctx, s, def, attr.Item{"PK": attr.String("ann"), "SK": attr.String(sk), "v": attr.String("x"), "expires": attr.Int(now.Add(time.Minute).Unix())}); err != nil {
			t.Fatal(err)
		}
	}
	if rows := dump(t, s, def.TTLTable); len(rows) != 1 {
		t.Errorf("due times %v, want one", rows)
	}
	now = now.Add(time.Hour)
	if n, err := s.reapExpired(ctx); n != 1 || err != nil {
		t.Errorf("%d items deleted, %v", n, err)
	}
	if got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil)); len(got) > 0 || err != nil {
		t.Errorf("scan: %v, %v", got, err)
	}
}

// If only a cell identifies an item, the second of two items in one row is rejected, and
// neither is mistaken for the other.
func TestMapping_KeysInCells(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testOptions(backends["emu"](t), loadMapping(t, accountsMapping)))
	def, err := s.Table(ctx, "Accounts")
	if err != nil {
		t.Fatal(err)
	}
	order := func(c string) attr.Item {
		return attr.Item{"PK": attr.String("CUSTOMER#" + c), "SK": attr.String("ORDER#7"), "v": attr.String(c)}
	}
	if err := put(ctx, s, def, order("ann")); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, s, def, order("bob")); !errors.Is(err, ErrOutsideMapping) || !strings.Contains(err.Error(), string(maperr.CodeCollision)) {
		t.Errorf("the second order of a number: %v, want %s", err, maperr.CodeCollision)
	}
	if got, err := s.GetItem(ctx, def, keyAttrs(def, order("bob"))); err != nil || got != nil {
		t.Errorf("the second order is %v, %v", got, err)
	}
	changed := order("ann")
	changed["v"] = attr.String("changed")
	if err := put(ctx, s, def, changed); err != nil {
		t.Fatal(err)
	}
	got, err := collect(s.Scan(ctx, def, nil, 0, 1, nil))
	if d := diffItems([]attr.Item{changed}, got); d != "" || err != nil {
		t.Errorf("scan: %v (-want +got):\n%s", err, d)
	}
	if _, _, err := s.WriteItem(ctx, def, keyAttrs(def, changed), func(attr.Item) (attr.Item, error) { return nil, nil }, Hint{}); err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, s, def, order("bob")); err != nil {
		t.Errorf("once the row is free: %v", err)
	}
}

// An unreadable row fails a scan, which names the row and the attribute.
func TestUnreadableRows_ScanNamesUnreadableRow(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	s := openStore(t, testOptions(backends["emu"](t), loadMapping(t, accountsMapping)))
	def, err := s.Table(ctx, "Accounts")
	if err != nil {
		t.Fatal(err)
	}
	if err := put(ctx, s, def, attr.Item{"PK": attr.String("ann"), "SK": attr.String("profile"), "n": attr.Int(1)}); err != nil {
		t.Fatal(err)
	}
	if err := s.bt.MutateRow(ctx, "accounts", []byte("ann#p#profile"), []*btpb.Mutation{btclient.SetCell("a", []byte("n"), 4102444800000000, []byte("no number"))}); err != nil {
		t.Fatal(err)
	}
	_, err = collect(s.Scan(ctx, def, nil, 0, 1, nil))
	var e *maperr.Error
	if !errors.As(err, &e) || e.Code != maperr.CodeCorrupt || string(e.Row) != "ann#p#profile" || e.Attribute != "n" || e.Rule != "profile" {
		t.Errorf("scan: %v, want %s of row ann#p#profile, attribute n", err, maperr.CodeCorrupt)
	}
}
