package facade

import (
	"strings"
	"testing"

	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"

	"github.com/tabletop-emu/tabletop/facade/awserr"
	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/internal/btclient"
	"github.com/tabletop-emu/tabletop/internal/layout"
	"github.com/tabletop-emu/tabletop/internal/layout/lens"
)

// positions writes position cells to rows of a Bigtable table. They stay in the rows of items
// after the end of a migration; in rows without items, they mark deleted items.
func positions(tb testing.TB, s *Server, table string, rows ...string) {
	tb.Helper()
	bt := nativeClient(s)
	if _, err := bt.EnsureTable(tb.Context(), table, []layout.Family{{Name: lens.FamilyPosition, GC: layout.GC{Versions: 1}}}, nil); err != nil {
		tb.Fatal(err)
	}
	for _, row := range rows {
		for _, qualifier := range []string{"", "0123456789abcdef"} {
			err := bt.MutateRow(tb.Context(), table, []byte(row), []*btpb.Mutation{btclient.SetCell(lens.FamilyPosition, []byte(qualifier), testTime.UnixMicro(), []byte("\x01position"))})
			if err != nil {
				tb.Fatal(err)
			}
		}
	}
}

// TestOperations_Positions: cells of positions change no answer, and a write of an item leaves
// them unchanged.
func TestOperations_Positions(t *testing.T) {
	t.Parallel()
	put := func(sk, rest string) [2]string {
		return [2]string{"PutItem", `{"TableName":"Products","Item":{"PK":{"S":"hats"},"SK":{"S":"` + sk + `"},"Description":{"S":"felt"},"Price":{"N":"` + sk + `"}}` + rest + `}`}
	}
	get := func(sk string) [2]string {
		return [2]string{"GetItem", `{"TableName":"Products","ConsistentRead":true,"Key":{"PK":{"S":"hats"},"SK":{"S":"` + sk + `"}}}`}
	}
	const felt = `"KeyConditionExpression":"Description = :d","ExpressionAttributeValues":{":d":{"S":"felt"}}`
	const video = `{"TableName":"Videos","Item":{"PK":{"S":"v1"},"SK":{"S":"VideoStatsLikes"},"Count":{"N":"1"}}}`
	calls := [][2]string{
		get("1"), get("7"),
		{"Query", `{"TableName":"Products","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"hats"}}}`},
		{"Query", `{"TableName":"Products","IndexName":"ByPrice",` + felt + `}`},
		{"Query", `{"TableName":"Products","IndexName":"ByPrice","ScanIndexForward":false,"Limit":1,` + felt + `}`},
		{"Scan", `{"TableName":"Products"}`},
		{"Scan", `{"TableName":"Products","IndexName":"ByPrice","Select":"COUNT"}`},
		{"Scan", `{"TableName":"Products","TotalSegments":2,"Segment":1}`},
		{"BatchGetItem", `{"RequestItems":{"Products":{"Keys":[{"PK":{"S":"hats"},"SK":{"S":"1"}},{"PK":{"S":"hats"},"SK":{"S":"7"}}]}}}`},
		{"TransactGetItems", `{"TransactItems":[{"Get":{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"7"}}}}]}`},
		{"DescribeTable", `{"TableName":"Products"}`},
		put("7", `,"ConditionExpression":"attribute_exists(PK)"`),
		put("7", `,"ConditionExpression":"attribute_not_exists(PK)","ReturnValues":"ALL_OLD"`),
		put("1", `,"ReturnValues":"ALL_OLD"`),
		get("7"),
		{"UpdateItem", `{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"8"}},"UpdateExpression":"SET Price = :n, Description = :d","ExpressionAttributeValues":{":n":{"N":"8"},":d":{"S":"felt"}},"ReturnValues":"ALL_NEW"}`},
		{"TransactWriteItems", `{"TransactItems":[{"Put":{"TableName":"Products","Item":{"PK":{"S":"hats"},"SK":{"S":"9"},"Description":{"S":"felt"},"Price":{"N":"9"}},"ConditionExpression":"attribute_not_exists(PK)"}},{"Delete":{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"2"}}}},{"Put":` + video + `}]}`},
		{"Query", `{"TableName":"Products","IndexName":"ByPrice",` + felt + `}`},
		{"DeleteItem", `{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"7"}},"ReturnValues":"ALL_OLD"}`},
		{"DeleteItem", `{"TableName":"Products","Key":{"PK":{"S":"hats"},"SK":{"S":"6"}},"ReturnValues":"ALL_OLD"}`},
		{"BatchWriteItem", `{"RequestItems":{"Products":[{"DeleteRequest":{"Key":{"PK":{"S":"hats"},"SK":{"S":"8"}}}}]}}`},
		{"Scan", `{"TableName":"Products"}`},
		{"Scan", `{"TableName":"Videos"}`},
		{"PutItem", video},
		{"Query", `{"TableName":"Videos","KeyConditionExpression":"PK = :p","ExpressionAttributeValues":{":p":{"S":"v1"}}}`},
		{"DeleteItem", `{"TableName":"Videos","Key":{"PK":{"S":"v1"},"SK":{"S":"VideoStatsLikes"}},"ReturnValues":"ALL_OLD"}`},
		{"Scan", `{"TableName":"Videos"}`},
		{"PutItem", `{"TableName":"own","Item":{"id":{"S":"b"},"n":{"N":"1"}},"ConditionExpression":"attribute_not_exists(id)"}`},
		{"DeleteItem", `{"TableName":"own","Key":{"id":{"S":"c"}},"ConditionExpression":"attribute_exists(id)"}`},
		{"Scan", `{"TableName":"own"}`},
	}
	answers := map[bool][]string{}
	for _, with := range []bool{false, true} {
		s := newTestServer(t, func(o *Options) {
			o.Mappings = []*mapping.Mapping{mappingOf(t, catalogYAML), mappingOf(t, videoYAML)}
		})
		for _, sk := range []string{"1", "2"} {
			c := put(sk, "")
			must(t, s, c[0], c[1])
		}
		must(t, s, "PutItem", strings.ReplaceAll(video, "v1", "v0"))
		must(t, s, "CreateTable", strings.ReplaceAll(createOrders, `"orders"`, `"own"`))
		must(t, s, "PutItem", `{"TableName":"own","Item":{"id":{"S":"a"}}}`)
		own := nativeTableOf(t, s, "own").base.TargetTable()
		beside, alone := map[string][]string{"products": {"hats#1", "hats#2"}, "videos": {"v0"}}, map[string][]string{
			"products": {"hats#6", "hats#7", "hats#8", "hats#9"}, "videos": {"v1"}, own: {"b", "c"},
		}
		if with {
			index := nativeTableOf(t, s, "Products").indexes[0].TargetTable()
			var entries []string
			for row, err := range nativeClient(s).Read(t.Context(), btclient.Read{Table: index, Spans: []layout.Span{{}}}) {
				if err != nil {
					t.Fatal(err)
				}
				entries = append(entries, string(row.Key))
			}
			positions(t, s, index, append(entries, strings.Replace(entries[0], "hats", "caps", 1), entries[0]+"2")...)
			for _, rows := range []map[string][]string{beside, alone} {
				for table, keys := range rows {
					positions(t, s, table, keys...)
				}
			}
		}
		for _, c := range calls {
			answer, err := s.Call(t.Context(), c[0], []byte(c[1]))
			if err != nil {
				answer = []byte(err.Error())
			}
			answers[with] = append(answers[with], string(answer))
		}
		if !with {
			continue
		}
		for _, rows := range []map[string][]string{beside, alone} {
			for table, keys := range rows {
				for _, key := range keys {
					row, err := nativeClient(s).ReadRow(t.Context(), table, []byte(key), btclient.OfFamily(lens.FamilyPosition))
					if err != nil || len(row.Cells) != 2 {
						t.Errorf("table %s, row %q: the position cells are %v, error %v", table, key, row.Cells, err)
					}
				}
			}
		}
	}
	for i, c := range calls {
		if got, want := answers[true][i], answers[false][i]; got != want {
			t.Errorf("%s %s:\ngot  %s\nwant %s", c[0], c[1], got, want)
		}
	}
}

// TestPutItem_LoadedOverPosition: an item that a loader writes into a row with only a position,
// between the read and the write of a PutItem, is not overwritten.
func TestPutItem_LoadedOverPosition(t *testing.T) {
	t.Parallel()
	conn := &faultyConn{}
	s := newTestServer(t, func(o *Options) {
		conn.ClientConnInterface = o.Conn
		o.Conn, o.Mappings = conn, []*mapping.Mapping{mappingOf(t, catalogYAML)}
	})
	positions(t, s, "products", "hats#1")
	bt := btclient.New(conn.ClientConnInterface, s.opts.Project, s.opts.Instance, btclient.Options{})
	loaded := false
	conn.set(false, func(req any) bool {
		if write, ok := req.(*btpb.CheckAndMutateRowRequest); ok && string(write.GetRowKey()) == "hats#1" && !loaded {
			loaded = true
			if err := bt.MutateRow(t.Context(), "products", []byte("hats#1"), []*btpb.Mutation{btclient.SetCell("SKU", []byte("Description"), importTimeMicros, []byte("loaded"))}); err != nil {
				t.Error(err)
			}
		}
		return false
	})
	const item = `{"TableName":"Products","Item":{"PK":{"S":"hats"},"SK":{"S":"1"},"Description":{"S":"felt"}},"ConditionExpression":"attribute_not_exists(PK)"}`
	_, err := s.Call(t.Context(), "PutItem", []byte(item))
	if e, ok := awserr.As(err); !ok || e.Code != awserr.CodeConditionalCheckFailed || !loaded {
		t.Errorf("a put over an item that was loaded meanwhile: %v", err)
	}
}
