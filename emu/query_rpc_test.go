package emu_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/engine"
	"github.com/tabletop-emu/tabletop/internal/clock"
)

// execute runs a prepared query to its end.
func execute(t *testing.T, client btpb.BigtableClient, req *btpb.ExecuteQueryRequest) ([]*btpb.ExecuteQueryResponse, error) {
	t.Helper()
	req.InstanceName = sqlInstance
	stream, err := client.ExecuteQuery(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var all []*btpb.ExecuteQueryResponse
	for {
		answer, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, answer)
	}
}

// wantQueryError checks the code and the beginning of an error's text.
func wantQueryError(t *testing.T, err error, code codes.Code, text string) {
	t.Helper()
	if st := status.Convert(err); st.Code() != code || !strings.HasPrefix(st.Message(), text) {
		t.Errorf("the error is %v, want %v: %s", err, code, text)
	}
}

// expiredPlan reports whether an error asks the client to prepare the query again.
func expiredPlan(err error) bool {
	for _, d := range status.Convert(err).Details() {
		f, ok := d.(*errdetails.PreconditionFailure)
		if ok && slices.ContainsFunc(f.GetViolations(), func(v *errdetails.PreconditionFailure_Violation) bool { return v.GetType() == "PREPARED_QUERY_EXPIRED" }) {
			return true
		}
	}
	return false
}

const expiredText = "The prepared query has expired. Please re-issue the ExecuteQuery with a valid prepared query."

// A prepared query is valid for 10 s and works for 40 s. It fails once a family that it reads is gone, and does
// not see a family that is new.
func TestQuery_Plans(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(time.Unix(1_700_000_000, 0))
	conn := newSQLWith(t, emu.Options{Clock: now}).conn
	client, admin := btpb.NewBigtableClient(conn), btapb.NewBigtableTableAdminClient(conn)
	prepare := func(text string) *btpb.PrepareQueryResponse {
		t.Helper()
		p, err := client.PrepareQuery(t.Context(), &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: text})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	all, keys := prepare("SELECT * FROM g"), prepare("SELECT _key FROM g")
	if got := all.GetValidUntil().AsTime().Sub(now.Now()); got != 10*time.Second {
		t.Errorf("valid for %v", got)
	}
	now.Advance(40 * time.Second)
	if _, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: keys.GetPreparedQuery()}); err != nil {
		t.Error(err)
	}
	now.Advance(time.Second)
	_, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: keys.GetPreparedQuery()})
	wantQueryError(t, err, codes.FailedPrecondition, expiredText)
	if !expiredPlan(err) {
		t.Errorf("%v has no violation", err)
	}
	_, err = execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: []byte("what?")})
	wantQueryError(t, err, codes.InvalidArgument, "Invalid prepared query. Please retry request with a valid prepared query")

	modify := func(m *btapb.ModifyColumnFamiliesRequest_Modification) {
		t.Helper()
		if _, err := admin.ModifyColumnFamilies(t.Context(), &btapb.ModifyColumnFamiliesRequest{Name: sqlInstance + "/tables/g", Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{m}}); err != nil {
			t.Fatal(err)
		}
	}
	all, keys = prepare("SELECT * FROM g"), prepare("SELECT _key, info['city'] FROM g")
	modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: "new", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}})
	if _, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: all.GetPreparedQuery()}); err != nil {
		t.Errorf("after a family was added: %v", err)
	}
	modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: "tags", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Drop{Drop: true}})
	_, err = execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: all.GetPreparedQuery()})
	wantQueryError(t, err, codes.FailedPrecondition, expiredText+" : "+expiredText)
	if _, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: keys.GetPreparedQuery()}); err != nil {
		t.Errorf("of other families: %v", err)
	}
	modify(&btapb.ModifyColumnFamiliesRequest_Modification{Id: "tags", Mod: &btapb.ModifyColumnFamiliesRequest_Modification_Create{Create: &btapb.ColumnFamily{}}})
	if _, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: all.GetPreparedQuery()}); err != nil {
		t.Errorf("after the family came back: %v", err)
	}
}

// Parameters must be those of the preparation, each with its type.
func TestQuery_Params(t *testing.T) {
	t.Parallel()
	client := btpb.NewBigtableClient(newSQL(t).conn)
	p, err := client.PrepareQuery(t.Context(), &btpb.PrepareQueryRequest{
		InstanceName: sqlInstance, Query: "SELECT _key FROM g WHERE _key = @k", ParamTypes: map[string]*btpb.Type{"k": paramOf("BYTES", "").GetType()},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		params map[string]*btpb.Value
		want   string
	}{
		"none":       {nil, "params does not contain key 'k'"},
		"no type":    {map[string]*btpb.Value{"k": {Kind: &btpb.Value_BytesValue{BytesValue: []byte("a")}}}, "params 'k' has no type"},
		"other type": {map[string]*btpb.Value{"k": paramOf("INT64", "1")}, "params 'k' has type int64_type but expected type bytes_type"},
		"further":    {map[string]*btpb.Value{"k": paramOf("BYTES", "a"), "z": paramOf("BYTES", "a")}, `Error in field 'params' : "z" is not a parameter`},
	} {
		_, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: p.GetPreparedQuery(), Params: c.params})
		if st := status.Convert(err); st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), c.want) {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	answers, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: p.GetPreparedQuery(), Params: map[string]*btpb.Value{"k": {Type: p.GetMetadata().GetProtoSchema().GetColumns()[0].GetType()}}})
	if err != nil || len(answers) != 2 || answers[0].GetResults().BatchChecksum != nil { // NULL equals nothing
		t.Errorf("with NULL: %v, %v", answers, err)
	}
	token := answers[1].GetResults().GetResumeToken()
	answers, err = execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: p.GetPreparedQuery(), ResumeToken: token, Params: map[string]*btpb.Value{"k": paramOf("BYTES", "u#001")}})
	if err != nil || len(answers) != 1 || string(answers[0].GetResults().GetResumeToken()) != string(token) {
		t.Errorf("with the last token: %v, %v", answers, err)
	}
}

// A logical view is a query that others read like a table.
func TestLogicalViews(t *testing.T) {
	t.Parallel()
	conn := newSQL(t).conn
	client, admin := btpb.NewBigtableClient(conn), btapb.NewBigtableInstanceAdminClient(conn)
	create := func(id, query string, protect bool) error {
		_, err := admin.CreateLogicalView(t.Context(), &btapb.CreateLogicalViewRequest{Parent: sqlInstance, LogicalViewId: id, LogicalView: &btapb.LogicalView{Query: query, DeletionProtection: protect}})
		return err
	}
	for id, query := range map[string]string{
		"cities": "SELECT _key AS k, info['city'] AS city FROM g WHERE info['city'] IS NOT NULL", "one": "SELECT 1 AS value",
		"mine": "SELECT _key FROM g WHERE _key = CAST(VIEW_PARAMETERS('user') AS BYTES)",
	} {
		if err := create(id, query, id == "one"); err != nil {
			t.Fatal(err)
		}
	}
	wantQueryError(t, create("cities", "SELECT 1 AS x", false), codes.AlreadyExists, "")
	wantQueryError(t, create("bad", "SELECT nosuch FROM g", false), codes.InvalidArgument, "Unrecognized name: nosuch [at 1:8]")
	wantQueryError(t, create("bad", "SELECT _key FROM g WHERE _key = @k", false), codes.InvalidArgument, "Query parameter 'k' not found")
	wantQueryError(t, create("g", "SELECT 1 AS x", false), codes.AlreadyExists, "")
	if err := create("of_view", "SELECT COUNT(*) AS n FROM cities", false); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"SELECT * FROM cities ORDER BY k": "k BYTES, city BYTES\n(b'u#001', b'Paris')\n(b'u#003', b'Rome')\n",
		"SELECT n + 1 AS m FROM of_view":  "m INT64\n(3)\n", "SELECT value FROM one": "value INT64\n(1)\n",
		"SELECT * FROM mine":                         "error INVALID_ARGUMENT: missing parameter",
		"SELECT * FROM cities(with_history => TRUE)": "error INVALID_ARGUMENT: An argument of a logical view is not supported [at 1:15]",
	} {
		if got := queryText(t.Context(), conn, query, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
	prepare := func(query string) []byte {
		p, err := client.PrepareQuery(t.Context(), &btpb.PrepareQueryRequest{InstanceName: sqlInstance, Query: query})
		if err != nil {
			t.Fatal(err)
		}
		return p.GetPreparedQuery()
	}
	answers, err := execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: prepare("SELECT * FROM mine"), ViewParameters: map[string]*btpb.Value{"user": paramOf("STRING", "u#002")}})
	if err != nil || !strings.Contains(string(answers[0].GetResults().GetProtoRowsBatch().GetBatchData()), "u#002") {
		t.Errorf("with a view parameter: %v, %v", answers, err)
	}

	name := sqlInstance + "/logicalViews/cities"
	v, err := admin.GetLogicalView(t.Context(), &btapb.GetLogicalViewRequest{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	token := prepare("SELECT * FROM of_view")
	update := &btapb.UpdateLogicalViewRequest{LogicalView: &btapb.LogicalView{Name: name, Query: "SELECT _key AS k FROM g", Etag: "other"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"query"}}}
	_, err = admin.UpdateLogicalView(t.Context(), update)
	wantQueryError(t, err, codes.Aborted, "")
	update.LogicalView.Etag = v.GetEtag()
	if _, err := admin.UpdateLogicalView(t.Context(), update); err != nil {
		t.Fatal(err)
	}
	_, err = execute(t, client, &btpb.ExecuteQueryRequest{PreparedQuery: token})
	wantQueryError(t, err, codes.FailedPrecondition, expiredText)
	if got := queryText(t.Context(), conn, "SELECT n FROM of_view", nil); got != "n INT64\n(5)\n" {
		t.Errorf("after the update: %s", got)
	}
	list, err := admin.ListLogicalViews(t.Context(), &btapb.ListLogicalViewsRequest{Parent: sqlInstance})
	if err != nil || len(list.GetLogicalViews()) != 4 || list.GetLogicalViews()[0].GetName() != name {
		t.Errorf("the list is %v, %v", list, err)
	}
	_, err = admin.DeleteLogicalView(t.Context(), &btapb.DeleteLogicalViewRequest{Name: sqlInstance + "/logicalViews/one"})
	wantQueryError(t, err, codes.FailedPrecondition, "Logical View "+sqlInstance+"/logicalViews/one has deletion protection enabled.")
	if _, err := admin.DeleteLogicalView(t.Context(), &btapb.DeleteLogicalViewRequest{Name: name}); err != nil {
		t.Error(err)
	}
	_, err = admin.GetLogicalView(t.Context(), &btapb.GetLogicalViewRequest{Name: name})
	wantQueryError(t, err, codes.NotFound, "")
	if err := create("of_of_view", "SELECT 1 AS a", false); err != nil {
		t.Fatal(err)
	}
	update.LogicalView = &btapb.LogicalView{Name: sqlInstance + "/logicalViews/of_of_view", Query: "SELECT n AS n FROM of_view"}
	_, err = admin.UpdateLogicalView(t.Context(), update)
	wantQueryError(t, err, codes.InvalidArgument, "Table not found: cities [at 1:27 of the view of_view] [at 1:20]")
	if got, want := queryText(t.Context(), conn, "SELECT n FROM of_view", nil), "error INVALID_ARGUMENT: Table not found: cities [at 1:27 of the view of_view] [at 1:15]\n"; got != want {
		t.Errorf("after the deletion: %q, want %q", got, want)
	}
}

// A query that sorts more than its memory fails, and names the setting. Others do not hold rows.
func TestQuery_Memory(t *testing.T) {
	t.Parallel()
	conn := newSQLWith(t, emu.Options{SQLMemory: 2000}).conn
	for query, want := range map[string]string{
		"SELECT x FROM UNNEST(GENERATE_ARRAY(1, 3)) AS x ORDER BY x DESC LIMIT 1": "x INT64\n(3)\n",
		"SELECT x FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x ORDER BY x DESC":      "error RESOURCE_EXHAUSTED: the query holds more than 2000 bytes",
		"SELECT COUNT(*) AS n FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS x":          "n INT64\n(1000)\n",
	} {
		if got := queryText(t.Context(), conn, query, nil); !strings.HasPrefix(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
	if _, err := emu.New(emu.Options{DB: &engine.DB{}, SQLMemory: -1}); err == nil || !strings.Contains(err.Error(), "SQLMemory is -1") {
		t.Errorf("the error is %v", err)
	}
}
