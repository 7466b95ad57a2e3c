package control_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tabletop-emu/tabletop/control"
)

type shownRow struct {
	Key           control.Bytes
	Change        string
	Before, After []struct {
		Qualifier, Value control.Bytes
	}
	Items []struct {
		Table, Change string
		Before, After map[string]any
	}
}

type tableChanges struct {
	Table, Change string
	Rows, Items   struct{ Added, Removed, Changed int }
	Shown         []shownRow
}

type snapshotChanges struct {
	From, To string
	Cut      bool
	Tables   []tableChanges
}

func (c snapshotChanges) table(name string) *tableChanges {
	for i, t := range c.Tables {
		if t.Table == name {
			return &c.Tables[i]
		}
	}
	return &tableChanges{}
}

// TestSnapshotChanges: between a snapshot and the present, and between two, exactly the added,
// removed and changed rows and items are reported, with the changed cells.
func TestSnapshotChanges(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	m, err := e.ddb.Mapping(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	put := func(key, total string) {
		e.query("PutItem", fmt.Sprintf(`{"TableName":"orders","Item":{"k":{"S":%q},"same":{"S":"s"},"total":{"N":%q}}}`, key, total))
	}
	put("kept", "1")
	put("altered", "1")
	put("deleted", "1")
	e.createRows("gone", "a")
	e.createRows("plain", "a", "b")
	e.must("POST", "snapshots", `{"name":"one"}`, nil)
	ask := func(path string) snapshotChanges {
		t.Helper()
		var got snapshotChanges
		e.must("GET", "snapshots/"+path, "", &got)
		return got
	}
	if got := ask("one/changes"); len(got.Tables) != 0 || got.Cut {
		t.Errorf("nothing has changed: %+v", got)
	}

	put("altered", "2")
	put("new", "1")
	e.query("DeleteItem", `{"TableName":"orders","Key":{"k":{"S":"deleted"}}}`)
	e.createRows("fresh", "x")
	e.must("POST", "tables/i/plain/rows", `{"rows":[{"key":{"text":"b"},"cells":[{"family":"f","qualifier":{"text":"other"},"timestamp":1000,"value":{"text":"v"}}]}]}`, nil)
	got := ask("one/changes")
	orders := got.table(m.TargetTable())
	if r := orders.Rows; r.Added != 1 || r.Removed != 1 || r.Changed != 1 {
		t.Errorf("the rows of orders: %+v", r)
	}
	if i := orders.Items; i.Added != 1 || i.Removed != 1 || i.Changed != 1 {
		t.Errorf("the items of orders: %+v", i)
	}
	for _, row := range orders.Shown {
		if len(row.Items) != 1 || row.Items[0].Table != "orders" || row.Items[0].Change != row.Change {
			t.Errorf("the items of a row that was %s: %+v", row.Change, row.Items)
			continue
		}
		item := row.Items[0]
		switch {
		case (item.Before == nil) != (row.Change == "added"), (item.After == nil) != (row.Change == "removed"):
			t.Errorf("an item that was %s: %+v", row.Change, item)
		case row.Change == "changed" && fmt.Sprint(item.Before["total"], item.After["total"]) != "map[N:1] map[N:2]":
			t.Errorf("the item that was changed: %+v", item)
		}
	}
	plain := got.table("plain")
	if plain.Rows.Changed != 1 || len(plain.Shown) != 1 || *plain.Shown[0].Key.Text != "b" || len(plain.Shown[0].Before) != 0 || len(plain.Shown[0].After) != 1 || *plain.Shown[0].After[0].Qualifier.Text != "other" {
		t.Errorf("a cell was added: %+v", plain)
	}
	if fresh := got.table("fresh"); fresh.Change != "added" || fresh.Rows.Added != 1 {
		t.Errorf("a table that is new: %+v", fresh)
	}
	if gone := got.table("gone"); gone.Change != "" {
		t.Errorf("a table that is as it was: %+v", gone)
	}

	e.must("POST", "snapshots", `{"name":"two"}`, nil)
	put("late", "1")
	if got := ask("one/changes?to=two"); got.To != "two" || got.table(m.TargetTable()).Rows.Added != 1 {
		t.Errorf("changes after the second one are included: %+v", got)
	}
	back := ask("two/changes?to=one")
	if fresh := back.table("fresh"); fresh.Change != "removed" || fresh.Rows.Removed != 1 {
		t.Errorf("the other way around: %+v", fresh)
	}
	few := ask("one/changes?limit=1")
	n := 0
	for _, table := range few.Tables {
		n += len(table.Shown)
	}
	if n != 1 || few.table(m.TargetTable()).Rows.Added != 2 {
		t.Errorf("%d rows are shown, want one; all are counted: %+v", n, few.Tables)
	}

	for _, path := range []string{"none/changes", "one/changes?to=none"} {
		var bad failed
		if code := e.ask("GET", "snapshots/"+path, "", &bad); code != http.StatusNotFound || !strings.Contains(bad.Error.Remedy, "snapshots lists them") {
			t.Errorf("%s: %d %+v", path, code, bad)
		}
	}
}
