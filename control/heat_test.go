package control_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/control"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/test/labserver"
)

type heatCounts struct{ Reads, Writes, Rows, Bytes, Errors int }

func (c *heatCounts) add(o heatCounts) {
	c.Reads, c.Writes, c.Rows, c.Bytes, c.Errors = c.Reads+o.Reads, c.Writes+o.Writes, c.Rows+o.Rows, c.Bytes+o.Bytes, c.Errors+o.Errors
}

type heatKey struct {
	First, Last control.Bytes
	Parts       []struct{ Name string }
	heatCounts
}

type heatMap struct {
	Clusters []string
	Keys     []heatKey
	Columns  []struct {
		Start time.Time
		Cells []heatCounts
	}
}

func decoded(t *testing.T, b control.Bytes) []byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(b.Base64)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// The known load.
const (
	loadMinutes = 10
	loadASecond = 20
	loadAMinute = 60 * loadASecond
	loadAll     = loadMinutes * loadAMinute
)

// load creates a table, writes to it for ten minutes, and returns the map.
func (e *env) load(table string, step time.Duration, limit int, key func(i int) string) heatMap {
	e.t.Helper()
	e.createRows(table)
	client := btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{})
	set := []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))}
	for i := range loadAll {
		if err := client.MutateRow(e.t.Context(), table, []byte(key(i)), set); err != nil {
			e.t.Fatal(err)
		}
		if i%loadASecond == loadASecond-1 {
			e.lab.Clock().Advance(time.Second)
		}
	}
	var m heatMap
	e.must("GET", fmt.Sprintf("heat/i/%s?last=15m&step=%v&limit=%d", table, step, limit), "", &m)
	want := heatCounts{Writes: loadAll, Rows: loadAll}
	for i := range loadAll {
		want.Bytes += len(key(i)) + len("q") + len("v")
	}
	e.sums(m, want)
	for i, k := range m.Keys {
		first, last := decoded(e.t, k.First), decoded(e.t, k.Last)
		if bytes.Compare(first, last) > 0 || i > 0 && bytes.Compare(decoded(e.t, m.Keys[i-1].First), first) >= 0 {
			e.t.Errorf("the range %d goes from %q to %q", i, first, last)
		}
	}
	if len(m.Keys) > limit {
		e.t.Errorf("there are %d ranges, want at most %d", len(m.Keys), limit)
	}
	return m
}

// sums compares the sums of a map, along both axes, with the requests made.
func (e *env) sums(m heatMap, want heatCounts) {
	e.t.Helper()
	var ofKeys, ofCells heatCounts
	for _, k := range m.Keys {
		ofKeys.add(k.heatCounts)
	}
	for _, c := range m.Columns {
		for _, n := range c.Cells {
			ofCells.add(n)
		}
	}
	if ofKeys != want || ofCells != want {
		e.t.Errorf("the sums are %+v and %+v, want %+v", ofKeys, ofCells, want)
	}
}

// TestHeat_Bulk: bulk writes, and a read of all their rows, count once each, at their first
// key. Rows and bytes count at each row that was written or read.
func TestHeat_Bulk(t *testing.T) {
	t.Parallel()
	const requests, entries = 9, 200
	e := newEnv(t)
	e.createRows("t")
	data := btpb.NewBigtableClient(e.lab.Bigtable().Conn())
	want := heatCounts{Writes: requests, Reads: 1, Rows: 2 * requests * (entries - 1), Errors: requests}
	for i := range requests {
		req := &btpb.MutateRowsRequest{TableName: "projects/p/instances/i/tables/t"}
		for j := range entries {
			family, key := "f", fmt.Appendf(nil, "%03d#%d", j, i)
			if j == entries/2 {
				family = "none"
			} else {
				want.Bytes += 2 * (len(key) + len("q") + len("v"))
			}
			req.Entries = append(req.Entries, &btpb.MutateRowsRequest_Entry{RowKey: key, Mutations: []*btpb.Mutation{btclient.SetCell(family, []byte("q"), 1000, []byte("v"))}})
		}
		stream, err := data.MutateRows(t.Context(), req)
		for err == nil {
			_, err = stream.Recv()
		}
		if !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
	for _, err := range btclient.New(e.lab.Bigtable().Conn(), "p", "i", btclient.Options{}).Read(t.Context(), btclient.Read{Table: "t", Spans: []btclient.Span{{}}}) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var m heatMap
	e.must("GET", "heat/i/t?limit=50", "", &m)
	e.sums(m, want)
	fair := want.Rows / len(m.Keys)
	for _, k := range m.Keys {
		first, last := string(decoded(t, k.First)), string(decoded(t, k.Last))
		if here := first <= "000#0" && "000#9" <= last; k.Writes > 0 && !here {
			t.Errorf("%d writes count at %q to %q, want all at the first keys", k.Writes, first, last)
		}
		if k.Rows > 3*fair {
			t.Errorf("%q has %d of %d rows", first, k.Rows, want.Rows)
		}
	}
}

// TestHeat_Batch: a BatchWriteItem shows where its items went.
func TestHeat_Batch(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	var puts []string
	for i := range 25 {
		puts = append(puts, fmt.Sprintf(`{"PutRequest":{"Item":{"k":{"S":"key-%02d"}}}}`, i))
	}
	e.query("BatchWriteItem", `{"RequestItems":{"orders":[`+strings.Join(puts, ",")+`]}}`)
	var m heatMap
	e.must("GET", "heat/i/"+e.rowsOf("orders"), "", &m)
	at := map[string]bool{}
	for _, k := range m.Keys {
		if k.Rows > 0 {
			at[string(decoded(t, k.First))] = true
		}
	}
	if len(at) != 25 {
		t.Errorf("rows count at %d keys, want 25: %+v", len(at), m.Keys)
	}
}

// TestHeat_Parts: the keys of a mapped table are cut into the parts of the mapping.
func TestHeat_Parts(t *testing.T) {
	t.Parallel()
	e := newEnvOf(t, labserver.Options{Fixture: "s2-video"})
	var m heatMap
	e.must("GET", "heat/i/videos", "", &m)
	if len(m.Keys) == 0 {
		t.Fatal("the load of the fixture is not counted")
	}
	for _, k := range m.Keys {
		if len(decoded(t, k.First)) > 0 && len(k.Parts) == 0 {
			t.Errorf("the key %q has no parts", decoded(t, k.First))
		}
	}
}

// hotTablets returns the results of ListHotTablets, by minute.
func (e *env) hotTablets(begin time.Time) [loadMinutes][]*btapb.HotTablet {
	e.t.Helper()
	var out [loadMinutes][]*btapb.HotTablet
	cluster := "projects/p/instances/i/clusters/" + e.cluster()
	resp, err := btapb.NewBigtableInstanceAdminClient(e.lab.Bigtable().Conn()).ListHotTablets(e.t.Context(), &btapb.ListHotTabletsRequest{Parent: cluster})
	if err != nil {
		e.t.Fatal(err)
	}
	for _, h := range resp.GetHotTablets() {
		minute := int(h.GetStartTime().AsTime().Sub(begin) / time.Minute)
		out[minute] = append(out[minute], h)
	}
	return out
}

func (e *env) cluster() string {
	e.t.Helper()
	var heat struct{ Places []struct{ Cluster string } }
	e.must("GET", "heat", "", &heat)
	if len(heat.Places) == 0 {
		e.t.Fatal("nothing was counted")
	}
	return heat.Places[0].Cluster
}

// TestHeat: ten minutes of known load give a diagonal, a line and an even field, with the sums
// of the requests, and ListHotTablets names the hot range of each minute.
func TestHeat(t *testing.T) {
	t.Parallel()
	const ranges = 50
	started := func(t *testing.T) (*env, time.Time) {
		t.Helper()
		e := newEnv(t)
		begin := e.lab.Clock().Now().Truncate(time.Minute).Add(time.Minute)
		e.must("POST", "clock", fmt.Sprintf(`{"set":%q}`, begin.Format(time.RFC3339)), nil)
		return e, begin
	}
	t.Run("sequential", func(t *testing.T) {
		t.Parallel()
		e, begin := started(t)
		key := func(i int) string { return fmt.Sprintf("row%06d", i) }
		m := e.load("t", time.Minute, ranges, key)
		if len(m.Columns) != loadMinutes {
			t.Fatalf("%d columns", len(m.Columns))
		}
		for i, c := range m.Columns {
			for at, n := range c.Cells {
				// A minute's rows are a tenth of the axis; they share the ranges at its ends.
				if on := at >= i*len(m.Keys)/loadMinutes-2 && at <= (i+1)*len(m.Keys)/loadMinutes+2; !on && n.Writes > 0 {
					t.Errorf("minute %d has %d writes at %d of %d, off the diagonal", i, n.Writes, at, len(m.Keys))
				}
			}
		}
		for i, hot := range e.hotTablets(begin) {
			var percent float32
			for _, h := range hot {
				percent += h.GetNodeCpuUsagePercent()
				if h.GetEndKey() < key(i*loadAMinute) || h.GetStartKey() >= key((i+1)*loadAMinute) {
					t.Errorf("minute %d: %q to %q is not written then", i, h.GetStartKey(), h.GetEndKey())
				}
			}
			if percent < 70 {
				t.Errorf("minute %d: the named range has %v %% of the load", i, percent)
			}
		}
	})
	t.Run("one hot row", func(t *testing.T) {
		t.Parallel()
		e, begin := started(t)
		m := e.load("t", time.Second, ranges, func(i int) string {
			if i%10 < 3 {
				return "k05#hot"
			}
			return fmt.Sprintf("k%02d#%d", i*37%100, i)
		})
		at := slices.IndexFunc(m.Keys, func(k heatKey) bool {
			return string(decoded(t, k.First)) == "k05#hot" && string(decoded(t, k.Last)) == "k05#hot"
		})
		if at < 0 || m.Keys[at].Writes != loadAll*3/10 {
			t.Fatalf("the hot row has no range of its own with 30 %%: %d", at)
		}
		if len(m.Columns) != loadMinutes*60 {
			t.Fatalf("%d columns", len(m.Columns))
		}
		for i, c := range m.Columns {
			if got := c.Cells[at].Writes; got != loadASecond*3/10 {
				t.Errorf("second %d: the line has %d of %d writes", i, got, loadASecond)
			}
		}
		for i, hot := range e.hotTablets(begin) {
			if len(hot) != 1 || hot[0].GetStartKey() != "k05#hot" || hot[0].GetEndKey() != "k05#hot" || hot[0].GetNodeCpuUsagePercent() < 29 || hot[0].GetNodeCpuUsagePercent() > 31 {
				t.Errorf("minute %d: %v", i, hot)
			}
		}
	})
	t.Run("salted", func(t *testing.T) {
		t.Parallel()
		e, begin := started(t)
		m := e.load("t", time.Minute, ranges, func(i int) string { return fmt.Sprintf("%02x#%06d", (i*167)&255, i) })
		fair := loadAll / len(m.Keys)
		for at, k := range m.Keys {
			if k.Writes > 3*fair {
				t.Errorf("range %d has %d writes, a fair share is %d", at, k.Writes, fair)
			}
		}
		for i, c := range m.Columns {
			for at, n := range c.Cells {
				if share := m.Keys[at].Writes / loadMinutes; n.Writes < share/2 || n.Writes > 2*share+1 {
					t.Errorf("minute %d has %d writes at %d, want about %d", i, n.Writes, at, share)
				}
			}
		}
		for i, hot := range e.hotTablets(begin) {
			if len(hot) != 0 {
				t.Errorf("minute %d: %v", i, hot)
			}
		}
	})
}

// TestHeat_Clusters: a table's map has the requests of all its clusters, or those of the named
// one.
func TestHeat_Clusters(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	admin := btapb.NewBigtableInstanceAdminClient(e.lab.Bigtable().Conn())
	cluster := func(zone string) *btapb.Cluster {
		return &btapb.Cluster{Location: "projects/p/locations/" + zone, ServeNodes: 1}
	}
	if _, err := admin.CreateInstance(t.Context(), &btapb.CreateInstanceRequest{
		Parent: "projects/p", InstanceId: "two", Instance: &btapb.Instance{DisplayName: "two clusters"},
		Clusters: map[string]*btapb.Cluster{"c1": cluster("z1"), "c2": cluster("z2")},
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := btapb.NewBigtableTableAdminClient(e.lab.Bigtable().Conn()).CreateTable(t.Context(), &btapb.CreateTableRequest{
		Parent: "projects/p/instances/two", TableId: "t", Table: &btapb.Table{ColumnFamilies: map[string]*btapb.ColumnFamily{"f": {}}},
	}); err != nil {
		t.Fatal(err)
	}
	for n, id := range []string{"c1", "c2"} {
		_, err := admin.CreateAppProfile(t.Context(), &btapb.CreateAppProfileRequest{
			Parent: "projects/p/instances/two", AppProfileId: id,
			AppProfile: &btapb.AppProfile{RoutingPolicy: &btapb.AppProfile_SingleClusterRouting_{SingleClusterRouting: &btapb.AppProfile_SingleClusterRouting{ClusterId: id}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range n + 1 {
			_, err := btpb.NewBigtableClient(e.lab.Bigtable().Conn()).MutateRow(t.Context(), &btpb.MutateRowRequest{
				TableName: "projects/p/instances/two/tables/t", AppProfileId: id, RowKey: []byte("k"),
				Mutations: []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for query, want := range map[string]int{"": 3, "?cluster=c1": 1, "?cluster=c2": 2, "?cluster=none": 0} {
		var m heatMap
		e.must("GET", "heat/two/t"+query, "", &m)
		got := 0
		for _, k := range m.Keys {
			got += k.Writes
		}
		if got != want {
			t.Errorf("%q: %d writes in %v, want %d", query, got, m.Clusters, want)
		}
	}
}

// TestHeat_Own: the API's own reads and writes are neither load nor recorded requests; those
// of clients of either endpoint, and of query in their name, are both.
func TestHeat_Own(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.query("CreateTable", createTable)
	over := "i/" + e.rowsOf("orders")
	counted := func(table string) (n heatCounts) {
		t.Helper()
		var m heatMap
		e.must("GET", "heat/"+table, "", &m)
		for _, k := range m.Keys {
			n.add(k.heatCounts)
		}
		return n
	}
	e.createRows("t", "a", "b") // the API itself writes rows
	for range 10 {
		for _, path := range []string{"tables/i/t/rows", "tables/i/t/row?key=a", "tables/" + over + "/rows", "items/orders", "dump"} {
			e.must("GET", path, "", nil)
		}
		e.must("POST", "items/orders", `{"items":[{"k":{"S":"a"}}]}`, nil)
	}
	for _, table := range []string{"i/t", over} {
		if got := counted(table); got != (heatCounts{}) {
			t.Errorf("%s: the API's own are counted: %+v", table, got)
		}
	}

	if _, err := btpb.NewBigtableClient(e.lab.Bigtable().Conn()).MutateRow(t.Context(), &btpb.MutateRowRequest{
		TableName: "projects/p/instances/i/tables/t", RowKey: []byte("k"),
		Mutations: []*btpb.Mutation{btclient.SetCell("f", []byte("q"), 1000, []byte("v"))},
	}); err != nil {
		t.Fatal(err)
	}
	if got := counted("i/t"); got.Writes != 1 || got.Reads != 0 {
		t.Errorf("a client's write: %+v", got)
	}
	e.query("GetItem", `{"TableName":"orders","Key":{"k":{"S":"a"}}}`)
	e.must("POST", "query", `{"operation":"GetItem","request":{"TableName":"orders","Key":{"k":{"S":"a"}}},"faults":false}`, nil)
	if status := e.endpoint("GetItem", []byte(`{"TableName":"orders","Key":{"k":{"S":"a"}}}`)); status != http.StatusOK {
		t.Fatal(status)
	}
	if got := counted(over); got.Reads != 3 || got.Writes != 0 {
		t.Errorf("three reads of an item: %+v", got)
	}
	e.must("POST", "query", `{"operation":"PutItem","request":{"TableName":"orders","Item":{"k":{"S":"a"}}},"own":true}`, nil)
	if got := counted(over); got.Reads != 3 || got.Writes != 0 {
		t.Errorf("after a write of a page: %+v", got)
	}
}

// TestHeat_NoTable: an unknown table has no map.
func TestHeat_NoTable(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.createRows("t", "a")
	e.must("GET", "heat/i/t", "", nil)
	for _, path := range []string{"heat/i/none", "heat/none/t", "heat/i/t?project=none"} {
		var got failed
		if code := e.ask("GET", path, "", &got); code != http.StatusNotFound || got.Error.Code != "not_found" || got.Error.Remedy == "" {
			t.Errorf("%s: %d %+v", path, code, got)
		}
	}
}
