package facade

import (
	"encoding/json"
	"errors"
	goflag "flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/ddbmodel"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
	"github.com/tabletop-emu/tabletop/internal/test/peer"
	"github.com/tabletop-emu/tabletop/internal/test/property"
)

// The random tests of this package see the same requests in every run, unless -rapid.seed is
// given (0: different ones each time).
func init() {
	if _, set := os.LookupEnv("RAPID_SEED"); set {
		return
	}
	if err := goflag.Set("rapid.seed", "20261121"); err != nil {
		panic(err)
	}
}

// TestOperations_Model sends random requests to a facade and to a simple model of DynamoDB. Their
// answers and errors must be equal. After each request the test reads the rows from the Bigtable
// and converts them back through the mapping: they must be the items, the index rows must match
// them, and there must be no other cells.
//
// To run more requests, give it -rapid.checks=1000 -rapid.steps=100, and -rapid.seed=N.
func TestOperations_Model(t *testing.T) {
	t.Parallel()
	for name, draw := range map[string]func(*testing.T) func(*rapid.T) []modelTable{
		"default":        defaultTables,
		"s1-catalog":     subjectTables("s1-catalog", drawProduct),
		"s2-video":       subjectTables("s2-video", drawVideo),
		"s3-adjacency":   subjectTables("s3-adjacency", drawInvoice),
		"s5-order-entry": subjectTables("s5-order-entry", drawOrder),
		"s8-hot-keys":    subjectTables("s8-hot-keys", drawEvent),
		"derived":        mappedTables(ticketsYAML, drawTicket),
		"views":          mappedTables(shopYAML, drawShop),
		"derived, blind": mappedTables(withoutIndexes(ticketsYAML), drawTicket), // its writes need no read
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tables := draw(t)
			var remote *peer.Conn
			if peer.IsRemote() {
				remote = peer.Dial(t)
			}
			rapid.Check(t, property.First(5, func(r *rapid.T) {
				m := newMachine(t, r, remote, tables(r))
				defer m.close(r)
				r.Repeat(m.actions())
			}))
		})
	}
}

// modelTable is a table of the model, and its mapping, which is nil for the default layout.
type modelTable struct {
	drawnTable
	mapping *layout.Mapping
}

// machine is a facade, its Bigtable, and the model.
type machine struct {
	requestDrawer
	tb       *testing.T
	clock    *clock.Clock
	engine   *engine.DB  // nil if the Bigtable is remote
	bigtable *emu.Server // nil if the Bigtable is remote
	opts     Options
	server   *Server
}

func newMachine(t *testing.T, r *rapid.T, remote *peer.Conn, tables []modelTable) *machine {
	t.Helper()
	m := &machine{tb: t, clock: clock.NewFrozen(testTime)}
	m.db = &ddbmodel.DB{Now: m.clock.Now}
	if remote != nil {
		m.opts.Conn = remote.Another()
	} else {
		var err error
		if m.engine, err = engine.Open(engine.Options{Now: m.clock.Now}); err != nil {
			r.Fatal(err)
		}
		if m.bigtable, err = emu.New(emu.Options{DB: m.engine, Clock: m.clock}); err != nil {
			r.Fatal(err)
		}
		m.opts.Conn = m.bigtable.Conn()
	}
	m.opts.Now, m.opts.NoAuth, m.opts.Rand = m.clock.Now, true, rand.NewChaCha8([32]byte{1})
	m.opts.Logger = slog.New(slog.NewTextHandler(r.Output(), nil))
	for i := range tables {
		if tables[i].mapping != nil {
			m.opts.Mappings = append(m.opts.Mappings, (*mapping.Mapping)(tables[i].mapping))
		}
	}
	m.open(r)
	for i := range tables {
		table := &tables[i].drawnTable
		m.db.CreateTable(table.Table)
		m.tables = append(m.tables, table)
		if tables[i].mapping == nil {
			m.create(r, table.Table)
		}
	}
	return m
}

func (m *machine) open(r *rapid.T) {
	var err error
	if m.server, err = New(m.tb.Context(), m.opts); err != nil {
		r.Fatal(err)
	}
}

func (m *machine) close(r *rapid.T) {
	err := m.server.Close()
	if m.engine != nil {
		err = errors.Join(err, m.bigtable.Close(), m.engine.Close())
	}
	if err != nil {
		r.Error(err)
	}
}

// call sends a request that must succeed.
func (m *machine) call(r *rapid.T, operation string, req any) []byte {
	answer, err := m.server.Call(m.tb.Context(), operation, []byte(ddbmodel.Text(req)))
	if err != nil {
		r.Fatalf("%s %s: %v", operation, ddbmodel.Text(req), err)
	}
	return answer
}

// create creates a table of the model in the facade.
func (m *machine) create(r *rapid.T, t *ddbmodel.Table) {
	type members = map[string]any
	types := map[string]string{}
	schema := func(key []ddbmodel.KeyAttribute) []members {
		var out []members
		for i, a := range key {
			types[a.Name] = a.Type
			out = append(out, members{"AttributeName": a.Name, "KeyType": []string{"HASH", "RANGE"}[i]})
		}
		return out
	}
	req := members{"TableName": t.Name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": schema(t.Key)}
	for _, x := range t.Indexes {
		projection := members{"ProjectionType": x.Projection}
		if x.NonKey != nil {
			projection["NonKeyAttributes"] = x.NonKey
		}
		list := "LocalSecondaryIndexes"
		if x.Global {
			list = "GlobalSecondaryIndexes"
		}
		indexes, _ := req[list].([]members)
		req[list] = append(indexes, members{"IndexName": x.Name, "KeySchema": schema(x.Key), "Projection": projection})
	}
	var definitions []members
	for _, name := range slices.Sorted(maps.Keys(types)) {
		definitions = append(definitions, members{"AttributeName": name, "AttributeType": types[name]})
	}
	req["AttributeDefinitions"] = definitions
	m.call(r, "CreateTable", req)
	if t.TTL != "" {
		m.call(r, "UpdateTimeToLive", members{"TableName": t.Name, "TimeToLiveSpecification": members{"AttributeName": t.TTL, "Enabled": true}})
	}
}

// actions returns the actions by name. Each step of the test chooses one of them at random.
func (m *machine) actions() map[string]func(*rapid.T) {
	alone := func(kind string) func(*rapid.T) {
		return func(r *rapid.T) { m.run(r, m.write(r, true, kind)) }
	}
	return map[string]func(*rapid.T){
		"PutItem":            alone("Put"),
		"PutItem again":      alone("Put"),
		"UpdateItem":         alone("Update"),
		"UpdateItem again":   alone("Update"),
		"DeleteItem":         alone("Delete"),
		"GetItem":            func(r *rapid.T) { m.run(r, m.get(r)) },
		"BatchGetItem":       m.batchGet,
		"BatchWriteItem":     m.batchWrite,
		"TransactWriteItems": m.transactWrite,
		"TransactGetItems":   m.transactGet,
		"Query":              func(r *rapid.T) { m.read(r, true) },
		"Query again":        func(r *rapid.T) { m.read(r, true) },
		"Scan":               func(r *rapid.T) { m.read(r, false) },
		"time passes":        m.pass,
		"another process":    m.restart,
		"load":               m.load,
		"":                   m.check,
	}
}

func (m *machine) batchGet(r *rapid.T) {
	table := m.table(r)
	b := ddbmodel.BatchGet{Table: table.Name, Projection: table.paths(r, 2)}
	for range rapid.IntRange(1, 4).Draw(r, "keys") {
		b.Keys = append(b.Keys, table.key(r))
	}
	m.run(r, b)
}

func (m *machine) batchWrite(r *rapid.T) {
	var b ddbmodel.BatchWrite
	for range rapid.IntRange(1, 4).Draw(r, "writes") {
		w := m.write(r, false, "Put", "Delete")
		w.Condition, w.ReturnsOld = nil, false
		b.Writes = append(b.Writes, w)
	}
	if len(b.Writes) > 1 && m.collides(b) {
		return // which of its items is then unprocessed depends on the order of the writes
	}
	m.run(r, b)
}

// collides reports whether a put of a batch would store its item in cells of another item, in the
// table or in the batch.
func (m *machine) collides(b ddbmodel.BatchWrite) bool {
	return slices.ContainsFunc(b.Writes, func(w ddbmodel.Write) bool {
		at := slices.IndexFunc(m.tables, func(t *drawnTable) bool { return t.Name == w.Table })
		if w.Kind != "Put" || at < 0 || m.tables[at].Refuses == nil {
			return false
		}
		table := m.tables[at]
		others := slices.Clone(table.Items())
		for _, other := range b.Writes {
			if other.Kind == "Put" && other.Table == w.Table {
				others = append(others, other.Item)
			}
		}
		key := ddbmodel.Text(table.KeyOf(w.Item))
		others = slices.DeleteFunc(others, func(o ddbmodel.Item) bool { return ddbmodel.Text(table.KeyOf(o)) == key })
		return !table.Refuses(nil, w.Item) && table.Refuses(others, w.Item)
	})
}

func (m *machine) transactWrite(r *rapid.T) {
	x := ddbmodel.TransactWrite{Token: oneOf(r, "token", "", "", "1", "2")}
	for range rapid.IntRange(1, 4).Draw(r, "actions") {
		x.Actions = append(x.Actions, m.write(r, false, "Put", "Update", "Delete", "ConditionCheck"))
	}
	m.run(r, x)
	if x.Token != "" && rapid.Bool().Draw(r, "repeated") {
		m.run(r, x)
	}
}

func (m *machine) transactGet(r *rapid.T) {
	var x ddbmodel.TransactGet
	for range rapid.IntRange(1, 4).Draw(r, "gets") {
		table := m.table(r)
		x.Gets = append(x.Gets, ddbmodel.Get{Table: table.Name, Key: table.keys(r), Projection: table.paths(r, 2)})
	}
	m.run(r, x)
}

// pass advances time, collects garbage, and lets items expire.
func (m *machine) pass(r *rapid.T) {
	m.clock.Advance(oneOf(r, "time", 0, time.Millisecond, time.Second, 5*time.Second, 10*time.Minute, time.Hour))
	if m.bigtable != nil {
		if _, err := m.bigtable.RunGC(m.tb.Context()); err != nil {
			r.Fatal(err)
		}
	}
	if rapid.Bool().Draw(r, "expire") {
		m.db.Expire()
		if _, err := m.server.ReapExpired(m.tb.Context()); err != nil {
			r.Fatal(err)
		}
	}
}

// restart continues with another facade on the same Bigtable.
func (m *machine) restart(r *rapid.T) {
	if rapid.Bool().Draw(r, "closed") {
		if err := m.server.Close(); err != nil {
			r.Fatal(err)
		}
		m.open(r)
		return
	}
	old := m.server
	m.open(r)
	if err := old.Close(); err != nil {
		r.Fatal(err)
	}
}

// load writes an item natively, as a loader does: its cells without bookkeeping.
func (m *machine) load(r *rapid.T) {
	table := m.table(r)
	item := table.item(r)
	key := table.KeyOf(item)
	base := nativeTableOf(m.tb, m.server, table.Name).base
	if len(table.Indexes) > len(base.Views()) || table.TTL != "" || len(key) != len(table.Key) {
		return // a loader of such a table also loads its indexes
	}
	for _, a := range table.Key {
		if item[a.Name].Type != a.Type {
			return
		}
	}
	for _, x := range table.Indexes {
		for _, a := range x.Key {
			if v, ok := item[a.Name]; ok && (v.Type != a.Type || v.Text == "") {
				return // DynamoDB has no such item
			}
		}
	}
	others := slices.DeleteFunc(slices.Clone(table.Items()), func(o ddbmodel.Item) bool {
		return ddbmodel.Text(table.KeyOf(o)) == ddbmodel.Text(key)
	})
	if table.Refuses != nil && table.Refuses(others, item) {
		return
	}
	m.run(r, ddbmodel.Write{Kind: "Delete", Table: table.Name, Key: key})
	loaded, err := attr.UnmarshalItem([]byte(ddbmodel.Text(item)))
	if err != nil {
		r.Fatal(err)
	}
	placed, err := base.Place(loaded, importTimeMicros)
	if err != nil {
		r.Fatal(err)
	}
	r.Logf("load %s", ddbmodel.Text(item))
	var muts []*btpb.Mutation
	for _, c := range placed.Cells {
		muts = append(muts, btclient.SetCell(c.Family, c.Qualifier, c.Timestamp, c.Value))
	}
	if err := nativeClient(m.server).MutateRow(m.tb.Context(), base.TargetTable(), placed.Row, muts); err != nil {
		r.Fatal(err)
	}
	table.Put(key, item)
}

// run sends a request to the facade and to the model, and compares their answers.
func (m *machine) run(r *rapid.T, op ddbmodel.Operation) {
	req := ddbmodel.Text(op.Request())
	r.Logf("%s %s", op.Name(), req)
	want, wantErr := m.db.Run(op)
	answer, err := m.server.Call(m.tb.Context(), op.Name(), []byte(req))
	if err != nil || wantErr != nil {
		if fault := compareErrors(wantErr, err); fault != "" {
			r.Fatalf("%s %s\n%s\ngot  %v\nwant %v", op.Name(), req, fault, err, wantErr)
		}
		return
	}
	if _, ok := op.(ddbmodel.BatchGet); ok {
		answer = unorderedResponses(r, answer)
	}
	got, err := ddbmodel.Canonical(answer)
	if err != nil {
		r.Fatal(err)
	}
	if diff := gocmp.Diff(ddbmodel.Text(want), got); diff != "" {
		r.Fatalf("%s %s (-want +got):\n%s", op.Name(), req, diff)
	}
}

// unorderedResponses sorts the answer of a BatchGetItem in the model's order.
func unorderedResponses(r *rapid.T, answer []byte) []byte {
	text, err := ddbmodel.Canonical(answer)
	if err != nil {
		r.Fatal(err)
	}
	var content struct {
		Responses       map[string][]any
		UnprocessedKeys map[string]any
	}
	if err := json.Unmarshal([]byte(text), &content); err != nil {
		r.Fatal(err)
	}
	for _, items := range content.Responses {
		ddbmodel.Unordered(items)
	}
	return []byte(ddbmodel.Text(content))
}

// compareErrors returns how the error of the facade differs from that of the model, or "".
func compareErrors(want *ddbmodel.Error, err error) string {
	if want == nil {
		return "an error that is none"
	}
	e, ok := awserr.As(err)
	if !ok {
		return "no error of DynamoDB"
	}
	itemText := func(item attr.Item) string {
		if item == nil {
			return ""
		}
		return string(attr.AppendItemJSON(nil, item))
	}
	var faults []string
	same := func(what, want, got string) {
		if got != want {
			faults = append(faults, fmt.Sprintf("%s: got %s, want %s", what, got, want))
		}
	}
	modelText := func(item ddbmodel.Item) string {
		if item == nil {
			return ""
		}
		return canonicalItem(ddbmodel.Text(item))
	}
	same("code", want.Code, e.Code)
	if want.AnyInvalid {
		if !slices.ContainsFunc(e.Reasons, func(reason awserr.CancellationReason) bool { return reason.Code == awserr.ReasonValidation }) {
			faults = append(faults, "no reason is invalid")
		}
		return strings.Join(faults, "; ")
	}
	if want.Reasons == nil && !ddbmodel.Says(want.Messages, e.Message) {
		faults = append(faults, "the message")
	}
	same("item", modelText(want.Item), canonicalItem(itemText(e.Item)))
	same("number of reasons", fmt.Sprint(len(want.Reasons)), fmt.Sprint(len(e.Reasons)))
	if len(want.Reasons) == len(e.Reasons) && want.Reasons != nil {
		var codes []string
		for i, reason := range want.Reasons {
			codes = append(codes, reason.Code)
			same("code of a reason", reason.Code, e.Reasons[i].Code)
			if reason.Code != "None" && !ddbmodel.Says(reason.Messages, e.Reasons[i].Message) {
				faults = append(faults, "the message of a reason: "+e.Reasons[i].Message)
			}
			same("item of a reason", modelText(reason.Item), canonicalItem(itemText(e.Reasons[i].Item)))
		}
		same("message", "Transaction cancelled, please refer cancellation reasons for specific reasons ["+strings.Join(codes, ", ")+"]", e.Message)
	}
	if faults != nil && want.Or != nil {
		return compareErrors(want.Or, err)
	}
	return strings.Join(faults, "; ")
}

// canonicalItem returns the text of an item with the elements of sets in the model's order.
func canonicalItem(text string) string {
	if text == "" {
		return ""
	}
	canonical, err := ddbmodel.Canonical([]byte(text))
	if err != nil {
		return err.Error()
	}
	return canonical
}

// answerPage is a page of a Query or Scan.
type answerPage struct {
	Items               []json.RawMessage
	Count, ScannedCount int
	LastEvaluatedKey    json.RawMessage
}

// read sends a Query, or a Scan of each segment, for each page.
func (m *machine) read(r *rapid.T, query bool) {
	reading, table := m.reading(r, query)
	req := reading.Request(m.db)
	limit := oneOf(r, "limit", 0, 1, 2, 3)
	if limit > 0 {
		req["Limit"] = limit
	}
	x := table.Index(reading.Index)
	if (x == nil || !x.Global) && rapid.Bool().Draw(r, "consistent") {
		req["ConsistentRead"] = true
	}
	restartable := !query || reading.Index != "" || len(table.Key) > 1
	var after ddbmodel.Item
	if query && reading.Index == "" && len(table.Key) > 1 && rarely(r, "after", 4) {
		after = ddbmodel.Item{table.Key[0].Name: reading.Hash, table.Key[1].Name: drawLike(r, table, table.Key[1])}
		req["ExclusiveStartKey"] = after
	}
	r.Logf("%s %s", reading.Name(), ddbmodel.Text(req))
	if after != nil && reading.Range != nil && !reading.Range.Holds(after[table.Key[1].Name]) {
		_, err := m.server.Call(m.tb.Context(), "Query", []byte(ddbmodel.Text(req)))
		want := &ddbmodel.Error{Code: awserr.CodeValidation, Messages: []string{"The provided starting key does not match the range key predicate"}}
		if fault := compareErrors(want, err); fault != "" {
			r.Fatalf("%s: %v", fault, err)
		}
		return
	}
	want := m.db.Read(reading, after)
	counting := reading.Select == "" && reading.Projection == nil && rarely(r, "count", 6)
	if counting {
		req["Select"] = "COUNT"
	}
	var got []string
	if query {
		pages := m.pages(r, "Query", req)
		got = m.checkPages(r, pages, limit, restartable, want.Scanned, counting)
	} else {
		got = m.Scan(r, req, limit, want.Scanned, counting)
	}
	if counting {
		n := 0
		for _, group := range want.Groups {
			n += len(group)
		}
		if len(got) != n {
			r.Fatalf("%s %s: %d items, want %d", reading.Name(), ddbmodel.Text(req), len(got), n)
		}
		return
	}
	var wanted []string
	for _, group := range want.Groups {
		texts := make([]string, len(group))
		for i, item := range group {
			texts[i] = ddbmodel.Text(item)
		}
		slices.Sort(texts)
		if begin := len(wanted); begin+len(group) <= len(got) {
			slices.Sort(got[begin : begin+len(group)])
		}
		wanted = append(wanted, texts...)
	}
	if diff := gocmp.Diff(wanted, got); diff != "" {
		r.Fatalf("%s %s (-want +got):\n%s", reading.Name(), ddbmodel.Text(req), diff)
	}
}

// pages sends a request for each page, and returns the pages.
func (m *machine) pages(r *rapid.T, operation string, req map[string]any) []answerPage {
	var pages []answerPage
	for {
		var page answerPage
		if err := json.Unmarshal(m.call(r, operation, req), &page); err != nil {
			r.Fatal(err)
		}
		pages = append(pages, page)
		if page.LastEvaluatedKey == nil {
			return pages
		}
		if len(pages) > 200 {
			r.Fatalf("%s %s: no end of pages", operation, ddbmodel.Text(req))
		}
		req["ExclusiveStartKey"] = page.LastEvaluatedKey
	}
}

// Scan reads one segment after the other.
func (m *machine) Scan(r *rapid.T, req map[string]any, limit, scanned int, counting bool) []string {
	segments := rapid.IntRange(1, 3).Draw(r, "segments")
	var got []string
	total := 0
	for i := range segments {
		if segments > 1 {
			req["Segment"], req["TotalSegments"] = i, segments
		}
		delete(req, "ExclusiveStartKey")
		pages := m.pages(r, "Scan", req)
		inSegment := 0
		for _, p := range pages {
			inSegment += p.ScannedCount
		}
		total += inSegment
		got = append(got, m.checkPages(r, pages, limit, true, inSegment, counting)...)
	}
	if total != scanned {
		r.Fatalf("Scan %s: %d items scanned, want %d", ddbmodel.Text(req), total, scanned)
	}
	return got
}

// checkPages checks the counts of pages and returns the texts of their items.
func (m *machine) checkPages(r *rapid.T, pages []answerPage, limit int, restartable bool, scanned int, counting bool) []string {
	texts := []string{}
	for i, p := range pages {
		want := scanned
		if limit > 0 {
			want = min(limit, scanned)
		}
		scanned -= want
		if p.ScannedCount != want {
			r.Fatalf("page %d: scanned %d, want %d", i, p.ScannedCount, want)
		}
		if more := restartable && limit > 0 && want == limit; more != (p.LastEvaluatedKey != nil) {
			r.Fatalf("page %d of %d items, limit %d: last key %s", i, want, limit, p.LastEvaluatedKey)
		}
		if counting != (p.Items == nil) || !counting && p.Count != len(p.Items) {
			r.Fatalf("page %d: count %d, %d items", i, p.Count, len(p.Items))
		}
		for range p.Count {
			texts = append(texts, "counted")
		}
		for j, item := range p.Items {
			texts[len(texts)-p.Count+j] = canonicalItem(string(item))
		}
	}
	if len(texts) == 0 {
		return nil
	}
	return texts
}

// check reads the rows natively and compares them with the model.
func (m *machine) check(r *rapid.T) {
	for _, table := range m.tables {
		native := nativeTableOf(m.tb, m.server, table.Name)
		base := m.rowItems(r, btclient.Read{Table: native.base.TargetTable()}, native.base.Items)
		if diff := gocmp.Diff(modelTexts(table.Items()), base); diff != "" {
			r.Fatalf("items in the rows of table %s (-want +got):\n%s", table.Name, diff)
		}
		for _, x := range native.indexes {
			entries := due(table.Table)
			if x.Name() != dueTimes {
				entries = table.Entries(table.Index(x.Name()))
			}
			if diff := gocmp.Diff(modelTexts(entries), m.rowItems(r, btclient.Read{Table: x.TargetTable()}, x.Items)); diff != "" {
				r.Fatalf("entries in the rows of index %s of table %s (-want +got):\n%s", x.Name(), table.Name, diff)
			}
		}
		for _, v := range native.base.Views() {
			entries := table.Entries(table.Index(v.Name()))
			if diff := gocmp.Diff(modelTexts(entries), m.rowItems(r, btclient.Read{Table: v.ID(), View: true}, v.Items)); diff != "" {
				r.Fatalf("entries in the rows of view %s of table %s (-want +got):\n%s", v.ID(), table.Name, diff)
			}
		}
	}
}

// due returns the entries of the index of due times: items that will expire.
func due(t *ddbmodel.Table) []ddbmodel.Item {
	entries := t.Entries(&ddbmodel.Index{Key: []ddbmodel.KeyAttribute{{Name: t.TTL, Type: "N"}}, Projection: "KEYS_ONLY"})
	return slices.DeleteFunc(entries, func(entry ddbmodel.Item) bool { return entry[t.TTL].Type != "N" })
}

func modelTexts(items []ddbmodel.Item) []string {
	var texts []string
	for _, item := range items {
		texts = append(texts, ddbmodel.Text(item))
	}
	slices.Sort(texts)
	return texts
}

// rowItems reads all rows of a Bigtable table or view, and converts them back to items. It reports
// leftover bookkeeping.
func (m *machine) rowItems(r *rapid.T, read btclient.Read, inverse func(layout.Row) ([]attr.Item, error)) []string {
	var texts []string
	table := read.Table
	read.Spans = []layout.Span{{}}
	for row, err := range nativeClient(m.server).Read(m.tb.Context(), read) {
		if err != nil {
			r.Fatal(err)
		}
		states := 0
		row.Cells = slices.DeleteFunc(slices.Clone(row.Cells), func(c layout.Cell) bool {
			switch {
			case c.Family == lens.FamilyTombstone:
				return true
			case c.Family != lens.FamilyState:
				return false
			case isUnfinished(c):
				r.Errorf("table %s, row %q: the cell %q is left", table, row.Key, c.Qualifier)
			}
			states++
			return true
		})
		items, err := inverse(row)
		if err != nil {
			r.Fatalf("table %s, row %q: %v", table, row.Key, err)
		}
		if len(items) == 0 && states > 0 && len(row.Cells) == 0 && !strings.HasPrefix(table, "_tabletop.") {
			r.Errorf("table %s: row %q holds nothing but bookkeeping", table, row.Key)
		}
		for _, item := range items {
			texts = append(texts, canonicalItem(string(attr.AppendItemJSON(nil, item))))
		}
	}
	slices.Sort(texts)
	return texts
}

// importTimeMicros is the time of loaded cells.
const importTimeMicros = 1715685260608000

// defaultTables draws two tables in the default layout: keys of any type, indexes of every
// kind, and a time to live.
func defaultTables(*testing.T) func(*rapid.T) []modelTable {
	return func(r *rapid.T) []modelTable {
		var tables []modelTable
		for _, name := range []string{"one", "two"} {
			t := &ddbmodel.Table{Name: name, Key: []ddbmodel.KeyAttribute{{Name: "p", Type: oneOf(r, "hash", "S", "N", "B")}}}
			g := []ddbmodel.KeyAttribute{{Name: "g", Type: "S"}}
			h := ddbmodel.KeyAttribute{Name: "h", Type: "N"}
			if kind := oneOf(r, "range", "S", "N", "B", ""); kind != "" {
				t.Key = append(t.Key, ddbmodel.KeyAttribute{Name: "s", Type: kind})
				if rapid.Bool().Draw(r, "local index") {
					t.Indexes = append(t.Indexes, drawProjection(r, ddbmodel.Index{Name: "local", Key: []ddbmodel.KeyAttribute{t.Key[0], h}}))
				}
				if rapid.Bool().Draw(r, "inverted index") {
					t.Indexes = append(t.Indexes, drawProjection(r, ddbmodel.Index{Name: "inverted", Global: true, Key: []ddbmodel.KeyAttribute{t.Key[1], t.Key[0]}}))
				}
			}
			if rapid.Bool().Draw(r, "global index") {
				if rapid.Bool().Draw(r, "sorted") {
					g = append(g, h)
				}
				t.Indexes = append(t.Indexes, drawProjection(r, ddbmodel.Index{Name: "global", Global: true, Key: g}))
			}
			if rapid.Bool().Draw(r, "time to live") {
				t.TTL = "ttl"
			}
			tables = append(tables, modelTable{drawnTable: drawnTable{
				Table: t,
				keys: func(r *rapid.T) ddbmodel.Item {
					key := ddbmodel.Item{}
					for _, a := range t.Key {
						key[a.Name] = drawScalar(r, a.Type)
					}
					return key
				},
				attributes: func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item { return drawAttributes(r, t) },
				names:      []string{"v", "w", "l", "m", "n", "x.y", "é#", "g", "h", "ttl"},
			}})
		}
		return tables
	}
}

func drawProjection(r *rapid.T, x ddbmodel.Index) ddbmodel.Index {
	x.Projection = oneOf(r, "projection", "ALL", "KEYS_ONLY", "INCLUDE")
	if x.Projection == "INCLUDE" {
		x.NonKey = []string{"v", "l"}
	}
	return x
}

// drawAttributes draws attributes of a table in the default layout.
func drawAttributes(r *rapid.T, t *ddbmodel.Table) ddbmodel.Item {
	item := ddbmodel.Item{}
	for range rapid.IntRange(0, 3).Draw(r, "attributes") {
		item[oneOf(r, "attribute", "v", "w", "l", "m", "n", "x.y", "é#")] = drawAny(r, 2)
	}
	if rarely(r, "large", 6) { // of several units
		item["v"] = ddbmodel.String(strings.Repeat("x", rapid.IntRange(900, 9000).Draw(r, "pad")))
	}
	indexed := func(name, kind string) {
		if !rapid.Bool().Draw(r, name) {
			return
		}
		item[name] = drawScalar(r, kind)
		if rarely(r, "wrong", 12) {
			item[name] = drawAny(r, 0)
		}
	}
	indexed("g", "S")
	indexed("h", "N")
	if t.TTL != "" && rapid.Bool().Draw(r, "expires") {
		after := oneOf(r, "after", -6*365*24*time.Hour, -time.Second, 0, time.Second, 4*time.Second, time.Hour)
		item["ttl"] = ddbmodel.Number(fmt.Sprint(testTime.Add(after).Unix()))
		if rarely(r, "wrong", 8) {
			item["ttl"] = drawAny(r, 0)
		}
	}
	return item
}

// odd adds an attribute that the mapping may not express.
func odd(r *rapid.T, item ddbmodel.Item, names ...string) ddbmodel.Item {
	if rarely(r, "odd", 10) {
		item[oneOf(r, "odd attribute", append(names, "more")...)] = drawAny(r, 1)
	}
	return item
}

func drawProduct(d *drawnTable) {
	d.names = []string{"Description", "Price", "Thumbnail", "more"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		return ddbmodel.Item{
			"PK": ddbmodel.String(oneOf(r, "PK", "hats", "hats2", "shoes", "a\x00b", "ÿ", "a#b")),
			"SK": ddbmodel.String(oneOf(r, "SK", "a", "a#b", "fedoras#A", "fedoras#B", "#", "\x00", "é€")),
		}
	}
	d.attributes = func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item {
		item := ddbmodel.Item{}
		for _, name := range []string{"Description", "Thumbnail"} {
			if rapid.Bool().Draw(r, name) {
				item[name] = drawScalar(r, "S")
			}
		}
		if rapid.Bool().Draw(r, "Price") {
			item["Price"] = drawScalar(r, "N")
		}
		return odd(r, item, d.names...)
	}
}

func drawVideo(d *drawnTable) {
	d.names = []string{"UploadDate", "Formats", "Content", "Count", "ViewCount", "more"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		return ddbmodel.Item{
			"PK": ddbmodel.String(oneOf(r, "PK", "0123", "0124", "a#", "\x00")),
			"SK": ddbmodel.String(oneOf(r, "SK", "Video", "VideoComment#8305627524990", "VideoComment#8305627524991", "VideoComment#0000000000000",
				"VideoComment#9999999999999", "VideoStatsLikes", "VideoStatsViews", "VideoStats", "Other")),
		}
	}
	count := func(r *rapid.T) ddbmodel.Value {
		return ddbmodel.Number(oneOf(r, "count", "0", "1", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "0.5"))
	}
	d.attributes = func(r *rapid.T, key ddbmodel.Item) ddbmodel.Item {
		item := ddbmodel.Item{}
		switch sk := key["SK"].Text; {
		case sk == "Video":
			item["UploadDate"] = ddbmodel.String(oneOf(r, "date", "2023-09-10T15:21:48", "2023-09-10T15:21:49", "1970-01-01T00:00:00", "yesterday"))
			item["Formats"] = ddbmodel.MapOf(ddbmodel.Item{oneOf(r, "format", "480", "a.b", "é"): drawScalar(r, "S")})
		case sk == "VideoStats":
			item["ViewCount"] = count(r)
		case strings.HasPrefix(sk, "VideoComment"):
			item["Content"] = drawScalar(r, "S")
		default:
			item["Count"] = count(r)
		}
		return odd(r, item, d.names...)
	}
}

func drawInvoice(d *drawnTable) {
	d.names = []string{"DateCreated", "Details", "more"}
	d.keys = func(r *rapid.T) ddbmodel.Item {
		pk := oneOf(r, "PK", "Invoice-1", "Invoice-2", "Invoice-a#b", "Invoice-", "Bill-1")
		return ddbmodel.Item{
			"PK": ddbmodel.String(pk),
			"SK": ddbmodel.String(oneOf(r, "SK", pk, pk, "Payment-1", "Payment-2", "Payment-\x00", "Payment-", "Invoice-1")),
		}
	}
	d.attributes = func(r *rapid.T, _ ddbmodel.Item) ddbmodel.Item {
		details := ddbmodel.Item{}
		if rapid.Bool().Draw(r, "amount") {
			details["amount_usd"] = drawScalar(r, "N")
		}
		if rapid.Bool().Draw(r, "due") {
			details["due_date"] = drawScalar(r, "S")
		}
		item := ddbmodel.Item{
			"DateCreated": ddbmodel.String(oneOf(r, "date", "2023-09-10T15:21:48", "2023-09-10T15:21:49", "2023-09-10", "")),
			"Details":     ddbmodel.MapOf(details),
		}
		return odd(r, item, d.names...)
	}
}
