package emu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/bigtable/bttest"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// TestCompat_bttest runs reads and writes on this server and on Google's in-memory fake, and
// compares the results. The fake is a peer, not an oracle. A case with a known difference must
// still differ, and names its trap: a row of testdata/traps.tsv whose TestTrapNN checks this
// server.
func TestCompat_bttest(t *testing.T) {
	t.Parallel()
	fake, err := bttest.NewServer("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.Close)
	fakeConn, err := grpc.NewClient(fake.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fakeConn.Close() })
	e := newEnv(t)
	conns := []grpc.ClientConnInterface{e.srv.Conn(), fakeConn}

	// The same rows on both, families created one by one.
	for _, conn := range conns {
		admin, data := btapb.NewBigtableTableAdminClient(conn), btpb.NewBigtableClient(conn)
		if _, err := admin.CreateTable(e.ctx(), &btapb.CreateTableRequest{Parent: testInstance, TableId: "t", Table: &btapb.Table{}}); err != nil {
			t.Fatal(err)
		}
		for _, f := range []string{"f", "g"} {
			_, err := admin.ModifyColumnFamilies(e.ctx(), &btapb.ModifyColumnFamiliesRequest{
				Name: testTable, Modifications: []*btapb.ModifyColumnFamiliesRequest_Modification{createFamily(f, &btapb.ColumnFamily{})},
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		for i := range 5 {
			var muts []*btpb.Mutation
			for j := range 4 {
				muts = append(muts, set("f", fmt.Sprintf("q%d", j), int64(1000*(i+1)), fmt.Sprint(i*j)))
				muts = append(muts, set("g", fmt.Sprintf("q%d", i), int64(1000*(j+1)), fmt.Sprint(i+j)))
			}
			req := &btpb.MutateRowRequest{TableName: testTable, RowKey: fmt.Appendf(nil, "row%d", i), Mutations: muts}
			if _, err := data.MutateRow(e.ctx(), req); err != nil {
				t.Fatal(err)
			}
		}
	}

	read := func(req *btpb.ReadRowsRequest) func(context.Context, grpc.ClientConnInterface) (string, error) {
		return func(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
			req.TableName = testTable
			stream, err := btpb.NewBigtableClient(conn).ReadRows(ctx, req)
			if err != nil {
				return "", err
			}
			var out, key, family, qualifier string
			for {
				resp, err := stream.Recv()
				if err != nil {
					if err.Error() == "EOF" {
						return out, nil
					}
					return out, err
				}
				for _, c := range resp.GetChunks() {
					if len(c.GetRowKey()) > 0 {
						key = string(c.GetRowKey())
					}
					if c.GetFamilyName() != nil {
						family = c.GetFamilyName().GetValue()
					}
					if c.GetQualifier() != nil {
						qualifier = string(c.GetQualifier().GetValue())
					}
					out += fmt.Sprintf("%s %s:%s@%d=%s %v\n", key, family, qualifier, c.GetTimestampMicros(), c.GetValue(), c.GetLabels())
				}
			}
		}
	}
	filtered := func(f *btpb.RowFilter) func(context.Context, grpc.ClientConnInterface) (string, error) {
		return read(&btpb.ReadRowsRequest{Filter: f})
	}
	mutate := func(muts ...*btpb.Mutation) func(context.Context, grpc.ClientConnInterface) (string, error) {
		return func(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
			_, err := btpb.NewBigtableClient(conn).MutateRow(ctx, &btpb.MutateRowRequest{TableName: testTable, RowKey: []byte("row9"), Mutations: muts})
			return "", err
		}
	}
	traps := readTraps(t)
	for _, c := range []struct {
		name   string
		do     func(context.Context, grpc.ClientConnInterface) (string, error)
		trap   string // the trap of a known difference; "" if both must agree
		differ string // the fake's behavior
	}{
		{"all", read(&btpb.ReadRowsRequest{}), "", ""},
		{"limit", read(&btpb.ReadRowsRequest{RowsLimit: 2}), "", ""},
		{"keys", read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row3"), []byte("row1"), []byte("row3")}}}), "", ""},
		{"ranges", read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowRanges: []*btpb.RowRange{closedOpen("row1", "row3"), openClosed("row2", "row4")}}}), "", ""},
		{"family", filtered(familyRegexOf("g")), "", ""},
		{"qualifier", filtered(qualifierRegexOf("q[12]")), "", ""},
		{"value", filtered(valueRegexOf("[2-4]")), "", ""},
		{"row key", filtered(rowKeyRegexOf("row[02].*")), "", ""},
		{"versions", filtered(columnLimitOf(2)), "", ""},
		{"time range", filtered(timeRangeOf(2000, 4000)), "", ""},
		{"micros in a time range", filtered(timeRangeOf(2001, 4001)), "", ""},
		{"chain", filtered(chainOf(familyRegexOf("f"), qualifierRegexOf("q1"), columnLimitOf(1))), "", ""},
		{"interleave", filtered(chainOf(qualifierRegexOf("q1"), interleaveOf(passAll(), labelOf("l")), passAll())), "", ""},
		{"condition", filtered(conditionOf(valueRegexOf("12"), passAll(), labelOf("no"))), "", ""},
		{"condition without a branch", filtered(conditionOf(valueRegexOf("12"), nil, labelOf("no"))), "", ""},
		{"bad regex", filtered(valueRegexOf("(")), "", ""},
		{"chain of one", filtered(chainOf(passAll())), "", ""},
		{"bad granularity", mutate(set("f", "q", 1, "")), "", ""},
		{"no mutations", mutate(), "", ""},
		{"set and delete", mutate(set("f", "q", 1000, "1"), deleteColumn("f", "q", 0, 0)), "", ""},

		{"unknown family", mutate(set("nope", "q", 1000, "")), "T02", "the fake answers Unknown"},
		{"half a mutation", func(ctx context.Context, conn grpc.ClientConnInterface) (string, error) {
			_, _ = mutate(set("f", "half", 1000, "1"), set("nope", "q", 1000, ""))(ctx, conn)
			return read(&btpb.ReadRowsRequest{Rows: &btpb.RowSet{RowKeys: [][]byte{[]byte("row9")}}})(ctx, conn)
		}, "T01", "the fake keeps what came before the failing mutation"},
		{"negative limit", read(&btpb.ReadRowsRequest{RowsLimit: -1}), "T43", "the fake returns nothing"},
		{"bitmask", filtered(&btpb.RowFilter{Filter: &btpb.RowFilter_ValueBitmaskFilter{ValueBitmaskFilter: &btpb.ValueBitmask{Mask: []byte("1")}}}), "T25", "the fake ignores the filter"},
		{"bad escape", filtered(qualifierRegexOf(`\q1`)), "", ""},
		{"label then strip", filtered(chainOf(rowLimitOf(100), labelOf("l"), stripFilter())), "T32", "the fake drops the label"},
		{"label of 16", filtered(labelOf("aaaaaaaaaaaaaaaa")), "T32", "the fake accepts it"},
	} {
		ours, oursErr := c.do(e.ctx(), conns[0])
		theirs, theirsErr := c.do(e.ctx(), conns[1])
		same := ours == theirs && status.Code(oursErr) == status.Code(theirsErr)
		row, known := traps[c.trap]
		switch {
		case (c.trap == "") != (c.differ == ""), c.trap != "" && (!known || row.noCase != ""):
			t.Errorf("%s: a difference names its trap: %q, %q", c.name, c.trap, c.differ)
		case c.trap == "" && !same:
			t.Errorf("%s: ours:\n%s%v\ntheirs:\n%s%v", c.name, ours, oursErr, theirs, theirsErr)
		case c.trap != "" && same:
			t.Errorf("%s: no difference any more (%s, %s):\n%s%v", c.name, c.trap, c.differ, ours, oursErr)
		case status.Code(oursErr) == codes.Unknown || status.Code(oursErr) == codes.Internal:
			t.Errorf("%s: %v", c.name, oursErr)
		}
	}
}

// readLoosely is like readRows but skips protocol checks, for a server that repeats the row key in
// each chunk.
func readLoosely(ctx context.Context, c btpb.BigtableClient, req *btpb.ReadRowsRequest) (result, error) {
	var res result
	stream, err := c.ReadRows(ctx, req)
	if err != nil {
		return res, err
	}
	var cur row
	var family, qualifier string
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return res, nil
		}
		if err != nil {
			return res, err
		}
		res.messages = append(res.messages, resp)
		if resp.GetRequestStats() != nil {
			res.stats = resp.GetRequestStats()
		}
		for _, ch := range resp.GetChunks() {
			if len(ch.GetRowKey()) > 0 {
				cur.key = string(ch.GetRowKey())
			}
			if ch.GetFamilyName() != nil {
				family = ch.GetFamilyName().GetValue()
			}
			if ch.GetQualifier() != nil {
				qualifier = string(ch.GetQualifier().GetValue())
			}
			cur.cells = append(cur.cells, cell{family, qualifier, ch.GetTimestampMicros(), string(ch.GetValue()), ch.GetLabels()})
			if ch.GetCommitRow() {
				res.rows = append(res.rows, cur)
				cur = row{}
			}
		}
	}
}

// TestCompat_bttest_DataDriven runs the data-plane cases of testdata, with this server's
// output, on Google's in-memory fake too. A command with a known difference has bttest=TNN, the
// trap in testdata/traps.tsv that this command or an earlier one shows, and must still differ.
// Two values disable the comparison. With bttest=clock, the number of cells depends on times,
// and the fake's clock cannot be set. With bttest=TNN-random, the fake orders cells randomly
// because of that trap. Errors are compared by code, not text; all server times are equal.
func TestCompat_bttest_DataDriven(t *testing.T) {
	t.Parallel()
	code := regexp.MustCompile(`(?m)^((?:[0-9]+ )?(?:InvalidArgument|NotFound|AlreadyExists|FailedPrecondition|Unimplemented|Unknown|Internal)): .*$`)
	now := regexp.MustCompile(`@1[0-9]{15}\b`)
	traps := readTraps(t)
	comparable := func(s string) string { return now.ReplaceAllString(code.ReplaceAllString(s, "$1"), "@now") }
	for _, subject := range []string{
		"aggregate", "check_and_mutate_row", "filter", "idempotency", "mutate_row", "read_modify_write_row", "read_rows", "sample_row_keys",
	} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			datadriven.Walk(t, filepath.Join("testdata", subject), func(t *testing.T, path string) {
				t.Helper()
				fake, err := bttest.NewServer("127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(fake.Close)
				conn, err := grpc.NewClient(fake.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = conn.Close() })
				e := &env{t: t, peer: true, data: btpb.NewBigtableClient(conn), admin: btapb.NewBigtableTableAdminClient(conn)}
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					if d.Cmd == "gc" || d.Cmd == "advance" {
						return d.Expected // the fake lacks this command
					}
					out, err := e.command(d)
					switch {
					case err != nil:
						out += fmt.Sprintf("%s: %s\n", status.Code(err), status.Convert(err).Message())
					case out == "":
						out = "ok\n"
					}
					same := comparable(out) == comparable(d.Expected)
					if !d.HasArg("bttest") {
						if !same {
							t.Errorf("%s: the fake answers\n%swant\n%s", d.Pos, out, d.Expected)
						}
						return d.Expected
					}
					var why string
					d.ScanArgs(t, "bttest", &why)
					trap, random := strings.CutSuffix(why, "-random")
					if row, known := traps[trap]; why != "clock" && (!known || row.noCase != "") {
						t.Errorf("%s: bttest=%s names no trap that has a test", d.Pos, why)
					}
					if same && why != "clock" && !random {
						t.Errorf("%s: the fake differs no more (%s)", d.Pos, why)
					}
					return d.Expected
				})
			})
		})
	}
}
