package facade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/grpc"

	"github.com/tabletop-emu/tabletop/facade/attr"
	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/internal/store"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/loadnote"
)

// follow writes the note that a migration from a live table fills a Bigtable table, as the follower
// of the migration does.
func follow(tb testing.TB, bt *btclient.Client, table string) {
	tb.Helper()
	if _, err := bt.EnsureTable(tb.Context(), layout.SchemaTable, []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}, nil); err != nil {
		tb.Fatal(err)
	}
	err := bt.MutateRow(tb.Context(), layout.SchemaTable, layout.SchemaRowPrefix(table), []*btpb.Mutation{
		btclient.SetCell(layout.SchemaFamily, []byte(loadnote.FollowedColumn), testTime.UnixMicro(), loadnote.MomentValue(testTime)),
	})
	if err != nil {
		tb.Fatal(err)
	}
}

// unfollow removes what follow wrote.
func unfollow(tb testing.TB, bt *btclient.Client, table string) {
	tb.Helper()
	err := bt.MutateRow(tb.Context(), layout.SchemaTable, layout.SchemaRowPrefix(table), []*btpb.Mutation{btclient.DeleteColumn(layout.SchemaFamily, []byte(loadnote.FollowedColumn), 0, 0)})
	if err != nil {
		tb.Fatal(err)
	}
}

// noteLoad writes the schema rows of a mapping, as a migration does when it loads its tables.
func noteLoad(tb testing.TB, bt *btclient.Client, m *layout.Mapping) {
	tb.Helper()
	rows, err := m.SchemaRows(testTime.UnixMicro())
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := bt.EnsureTable(tb.Context(), layout.SchemaTable, []layout.Family{{Name: layout.SchemaFamily, GC: layout.GC{Versions: 1}}}, nil); err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		if err := bt.MutateRow(tb.Context(), layout.SchemaTable, row.Key, btclient.AppendSets(nil, row.Cells)); err != nil {
			tb.Fatal(err)
		}
	}
}

// recordedCalls records the calls that pass, each as its method and table.
type recordedCalls struct {
	grpc.ClientConnInterface
	mu    sync.Mutex
	calls []string
}

func (c *recordedCalls) add(method string, req any) {
	table := ""
	if of, ok := req.(interface{ GetTableName() string }); ok {
		_, table, _ = strings.Cut(of.GetTableName(), "/tables/")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, method[strings.LastIndexByte(method, '/')+1:]+" "+table)
}

func (c *recordedCalls) Invoke(ctx context.Context, method string, req, resp any, opts ...grpc.CallOption) error {
	c.add(method, req)
	return c.ClientConnInterface.Invoke(ctx, method, req, resp, opts...)
}

func (c *recordedCalls) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := c.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	return &recordedStream{s, c, method}, err
}

type recordedStream struct {
	grpc.ClientStream
	of     *recordedCalls
	method string
}

func (s *recordedStream) SendMsg(m any) error {
	s.of.add(s.method, m)
	return s.ClientStream.SendMsg(m)
}

// take returns the calls since the last call of take.
func (c *recordedCalls) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return calls
}

const (
	productOne = `"PK":{"S":"hats"},"SK":{"S":"1"}`
	putOne     = `{"TableName":"Products","Item":{` + productOne + `,"Description":{"S":"wool"},"Price":{"N":"2"}}}`
	deleteOne  = `{"TableName":"Products","Key":{` + productOne + `}}`
)

// itemWrites are requests that write items of Products.
var itemWrites = [][2]string{
	{"PutItem", putOne},
	{"UpdateItem", `{"TableName":"Products","Key":{` + productOne + `},"UpdateExpression":"SET Price = :p","ExpressionAttributeValues":{":p":{"N":"3"}}}`},
	{"DeleteItem", deleteOne},
	{"DeleteItem", `{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"missing"}}}`},
	{"BatchWriteItem", `{"RequestItems":{"own":[{"PutRequest":{"Item":{"id":{"S":"batch"}}}}],"Products":[{"DeleteRequest":{"Key":{` + productOne + `}}}]}}`},
	{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"own","Item":{"id":{"S":"transaction"}}}},{"Delete":` + deleteOne + `}]}`},
	{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"own","Item":{"id":{"S":"check"}}}},{"ConditionCheck":{"TableName":"Products","Key":{` + productOne + `},"ConditionExpression":"attribute_exists(PK)"}}]}`},
	{"ExecuteStatement", `{"Statement":"INSERT INTO Products VALUE {'PK': 'hats', 'SK': '9', 'Price': 3}"}`},
	{"ExecuteStatement", `{"Statement":"UPDATE Products SET Price = 4 WHERE PK = 'hats' AND SK = '1'"}`},
	{"ExecuteStatement", `{"Statement":"DELETE FROM Products WHERE PK = 'hats' AND SK = '1'"}`},
	{"ExecuteTransaction", `{"TransactStatements":[{"Statement":"DELETE FROM Products WHERE PK = 'hats' AND SK = '1'"}]}`},
	{"BatchExecuteStatement", `{"Statements":[{"Statement":"DELETE FROM Products WHERE PK = 'hats' AND SK = '1'"}]}`},
}

// TestFollowed: an endpoint refuses all writes of items in a table that a migration from a live
// table fills, whether the migration began before the start of the endpoint or after, and accepts reads. When
// the migration has ended, it accepts writes at once.
func TestFollowed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ loaded, early bool }{
		"loaded, before the start": {true, true}, "loaded, after the start": {true, false}, "before the start": {false, true}, "after the start": {false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(testTime)
			var bt *btclient.Client
			m := (*layout.Mapping)(mappingOf(t, catalogYAML))
			s := newTestServer(t, func(o *Options) {
				o.Now, o.Mappings = now.Now, []*mapping.Mapping{(*mapping.Mapping)(m)}
				bt = btclient.New(o.Conn, defaultProject, defaultInstance, btclient.Options{})
				if c.loaded {
					noteLoad(t, bt, m)
				}
				if c.early {
					follow(t, bt, "products")
					placeItem(t, bt, m)
				}
			})
			must(t, s, "CreateTable", strings.ReplaceAll(createOrders, `"orders"`, `"own"`))
			if !c.early {
				now.Advance(2 * loadnote.MaxAge)
				follow(t, bt, "products")
			}
			placeItem(t, bt, m)
			there := allRows(t, bt, "products") + allRows(t, bt, m.Indexes()[0].TargetTable())
			const want = "table Products has followed another table since 2026-11-20T12:00:00Z, and the changes there would overwrite this write: end the migration first: tabletop migrate finish"
			for range 2 {
				for _, w := range append(slices.Clone(itemWrites), [2]string{"DeleteTable", `{"TableName":"Products"}`}) {
					answer, err := s.Call(t.Context(), w[0], []byte(w[1]))
					e, ok := awserr.As(err)
					refused := ok && e.Code == awserr.CodeValidation && e.Message == want
					if w[0] == "BatchExecuteStatement" {
						refused = err == nil && strings.Contains(string(answer), "and the changes there would overwrite this write") && strings.Contains(string(answer), `"Code":"ValidationError"`)
					}
					if !refused {
						t.Errorf("%s %s: %s, error %v", w[0], w[1], answer, err)
					}
				}
			}
			if got := allRows(t, bt, "products") + allRows(t, bt, m.Indexes()[0].TargetTable()); got != there {
				t.Errorf("the rows are\n%s\nwant\n%s", got, there)
			}
			for _, r := range []struct{ operation, request, want string }{
				{"GetItem", deleteOne, `"felt"`},
				{"Query", `{"TableName":"Products","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"hats"}}}`, `"Count":1`},
				{"Scan", `{"TableName":"Products","IndexName":"ByPrice"}`, `"Count":0`},
				{"BatchGetItem", `{"RequestItems":{"Products":{"Keys":[{` + productOne + `}]}}}`, `"felt"`},
				{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"Products","Key":{"PK":{"S":"a"},"SK":{"S":"1"}}}},{"Get":{"TableName":"Products","Key":{"PK":{"S":"b"},"SK":{"S":"1"}}}}]}`, `{"Responses":[{},{}]}`},
				{"ExecuteStatement", `{"Statement":"SELECT * FROM Products WHERE PK = 'hats'"}`, `"felt"`},
				{"Scan", `{"TableName":"own"}`, `"Count":0`},
			} {
				if got := must(t, s, r.operation, r.request); !strings.Contains(got, r.want) {
					t.Errorf("%s: %s, want %s", r.operation, got, r.want)
				}
			}
			unfollow(t, bt, "products")
			must(t, s, "PutItem", putOne)
			if got := must(t, s, "GetItem", deleteOne); !strings.Contains(got, `"wool"`) {
				t.Errorf("after the migration: %s", got)
			}
			noted := strings.Contains(allRows(t, bt, layout.SchemaTable), loadnote.WrittenColumn)
			if noted != c.loaded {
				t.Errorf("the write after the migration is noted: %t, want %t", noted, c.loaded)
			}
		})
	}
}

// placeItem writes an item of Products natively, as a migration does before the entry of its
// index.
func placeItem(tb testing.TB, bt *btclient.Client, m *layout.Mapping) {
	tb.Helper()
	placed, err := m.Place(attr.Item{"PK": attr.String("hats"), "SK": attr.String("1"), "Description": attr.String("felt"), "Price": attr.Int(1)}, 1000)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := bt.EnsureTable(tb.Context(), "products", m.Families(), nil); err != nil {
		tb.Fatal(err)
	}
	if err := bt.MutateRow(tb.Context(), "products", placed.Row, btclient.AppendSets(nil, placed.Cells)); err != nil {
		tb.Fatal(err)
	}
}

// TestFollowed_FirstWrite: the first write of an endpoint that does not know of the migration yet
// is refused too, and leaves nothing, whatever its operation is.
func TestFollowed_FirstWrite(t *testing.T) {
	t.Parallel()
	for i, w := range itemWrites {
		if strings.Contains(w[1], "missing") {
			continue // it writes nothing
		}
		t.Run(fmt.Sprint(i, w[0]), func(t *testing.T) {
			t.Parallel()
			now := clock.NewFrozen(testTime)
			m := (*layout.Mapping)(mappingOf(t, catalogYAML))
			s := newTestServer(t, func(o *Options) { o.Now, o.Mappings = now.Now, []*mapping.Mapping{(*mapping.Mapping)(m)} })
			bt := nativeClient(s)
			must(t, s, "CreateTable", strings.ReplaceAll(createOrders, `"orders"`, `"own"`))
			placeItem(t, bt, m)
			follow(t, bt, "products")
			now.Advance(2 * loadnote.MaxAge)
			there := allRows(t, bt, "products")
			answer, err := s.Call(t.Context(), w[0], []byte(w[1]))
			if text := fmt.Sprint(string(answer), err); !strings.Contains(text, "and the changes there would overwrite this write") {
				t.Errorf("%s is not refused: %s", w[1], text)
			}
			if got := allRows(t, bt, "products"); got != there {
				t.Errorf("the rows are\n%s\nwant\n%s", got, there)
			}
			if got := must(t, s, "Scan", `{"TableName":"own"}`); w[0] != "BatchWriteItem" && !strings.Contains(got, `"Count":0`) {
				t.Errorf("the other table has %s", got)
			}
			if catalog := allRows(t, bt, store.CatalogTable); strings.Contains(catalog, "\n\"x/") {
				t.Errorf("a transaction is left:\n%s", catalog)
			}
		})
	}
}

// allRows returns the rows of a table as text.
func allRows(tb testing.TB, bt *btclient.Client, table string) string {
	tb.Helper()
	var text strings.Builder
	for row, err := range bt.Read(tb.Context(), btclient.Read{Table: table, Spans: []layout.Span{{}}}) {
		if err != nil {
			tb.Fatal(err)
		}
		fmt.Fprintf(&text, "%q\n", row.Key)
		for _, c := range row.Cells {
			fmt.Fprintf(&text, "  %s:%q @%d = %q\n", c.Family, c.Qualifier, c.Timestamp, c.Value)
		}
	}
	return text.String()
}

// TestFollowed_TimeToLive: expired items of a table that a migration from a live table fills stay,
// since the source's own deletions arrive. After the migration they are deleted.
func TestFollowed_TimeToLive(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		now := clock.NewFrozen(testTime)
		s := newTestServer(t, func(o *Options) {
			o.Now, o.Mappings = now.Now, []*mapping.Mapping{mappingOf(t, strings.Replace(catalogYAML, "Thumbnail: S", "Until: N", 1))}
		})
		must(t, s, "UpdateTimeToLive", `{"TableName":"Products","TimeToLiveSpecification":{"Enabled":true,"AttributeName":"Until"}}`)
		must(t, s, "PutItem", fmt.Sprintf(`{"TableName":"Products","Item":{%s,"Until":{"N":"%d"}}}`, productOne, testTime.Unix()+60))
		now.Advance(2 * time.Minute)
		follow(t, nativeClient(s), "products")
		if known {
			if _, err := s.Call(t.Context(), "PutItem", []byte(putOne)); err == nil {
				t.Error("a put is accepted")
			}
		}
		there := allRows(t, nativeClient(s), "products")
		for range 2 {
			if deleted, err := s.ReapExpired(t.Context()); deleted != 0 || err != nil {
				t.Errorf("%d items are deleted, error %v", deleted, err)
			}
		}
		if next, found, err := s.NextDue(t.Context(), testTime, testTime.Add(time.Hour)); found || err != nil {
			t.Errorf("the next deletion is at %v, error %v", next, err)
		}
		if got := allRows(t, nativeClient(s), "products"); got != there {
			t.Errorf("the rows are\n%s\nwant\n%s", got, there)
		}
		unfollow(t, nativeClient(s), "products")
		if deleted, err := s.ReapExpired(t.Context()); deleted != 1 || err != nil {
			t.Errorf("after the migration %d items are deleted, error %v", deleted, err)
		}
	}
}

// TestFollowed_Calls counts the calls that migrations cost. A table without a mapping costs none.
// For one with a mapping, the endpoint looks once a second for a load until it finds one, and
// notes the first write after the load once.
func TestFollowed_Calls(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	conn := &recordedCalls{}
	m := (*layout.Mapping)(mappingOf(t, catalogYAML))
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		noteLoad(t, btclient.New(o.Conn, defaultProject, defaultInstance, btclient.Options{}), m)
		o.Now, o.Conn, o.Mappings = now.Now, conn, []*mapping.Mapping{(*mapping.Mapping)(m), mappingOf(t, videoYAML)}
	})
	must(t, s, "CreateTable", strings.ReplaceAll(createOrders, `"orders"`, `"own"`))
	looks := func(calls ...[2]string) (n []string) {
		t.Helper()
		conn.take()
		for _, c := range calls {
			if _, err := s.Call(t.Context(), c[0], []byte(c[1])); err != nil {
				if e, ok := awserr.As(err); !ok || e.Code != awserr.CodeValidation {
					t.Errorf("%s: %v", c[1], err)
				}
			}
		}
		for _, c := range conn.take() {
			if strings.HasSuffix(c, " "+layout.SchemaTable) || strings.HasSuffix(c, " _migration_state") {
				n = append(n, strings.Fields(c)[0])
			}
		}
		return n
	}
	put := [2]string{"PutItem", putOne}
	own := [2]string{"PutItem", `{"TableName":"own","Item":{"id":{"S":"a"}}}`}
	video := [2]string{"PutItem", `{"TableName":"Videos","Item":{"PK":{"S":"v1"},"SK":{"S":"VideoStatsLikes"},"Count":{"N":"1"}}}`}
	get := [2]string{"GetItem", deleteOne}
	for _, c := range []struct {
		name  string
		calls [][2]string
		want  []string
	}{
		{"without a mapping", [][2]string{own, own}, nil},
		{"a read after a load", [][2]string{get}, nil},
		{"writes after a load", [][2]string{put, put, {"DeleteItem", deleteOne}, put}, []string{"CheckAndMutateRow"}},
		{"without a load", [][2]string{video, video, video}, nil},
	} {
		if got := looks(c.calls...); !slices.Equal(got, c.want) {
			t.Errorf("%s: the calls are %q, want %q", c.name, got, c.want)
		}
		now.Advance(time.Millisecond)
	}
	now.Advance(2 * loadnote.MaxAge)
	for _, c := range []struct {
		name  string
		calls [][2]string
		want  []string
	}{
		{"without a mapping, later", [][2]string{own}, nil},
		{"writes after a load, later", [][2]string{put, put}, nil},
		{"without a load, later", [][2]string{video, video}, []string{"ReadRows"}},
	} {
		if got := looks(c.calls...); !slices.Equal(got, c.want) {
			t.Errorf("%s: the calls are %q, want %q", c.name, got, c.want)
		}
	}
	now.Advance(2 * loadnote.MaxAge)
	follow(t, nativeClient(s), "videos")
	if got := looks(video, video); !slices.Equal(got, []string{"ReadRows", "ReadRows"}) {
		t.Errorf("writes of a followed table make the calls %q, want one each", got)
	}
	if got := looks([2]string{"Scan", `{"TableName":"Videos"}`}); len(got) > 0 {
		t.Errorf("reads of a followed table make the calls %q", got)
	}
}
