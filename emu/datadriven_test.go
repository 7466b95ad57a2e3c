package emu

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/tabletop-emu/tabletop/engine"
)

// TestDataDriven runs the cases of testdata, one folder per subject, on a server that shares
// messages in the process and on one that clones them. TestTrap141_ViewOfEverything runs the
// data cases through a view.
//
// Commands, t=ID naming a table (default t):
//
//	create-table [families=(a,b)] [splits=(k,...)]   input: a Table in prototext
//	modify-families      input: a ModifyColumnFamiliesRequest in prototext
//	get-table, delete-table, list-tables [page-size=N]
//	drop-rows            input: a DropRowRangeRequest in prototext
//	mutate row=KEY [token=TOKEN]   input: one mutation a line:
//	    set FAMILY QUALIFIER MICROS VALUE | delete-column FAMILY QUALIFIER [START END]
//	    delete-family FAMILY | delete-row
//	    add FAMILY QUALIFIER MICROS INT | merge FAMILY QUALIFIER MICROS STATE
//	mutate-rows          input: a MutateRowsRequest in prototext
//	read [keys=(a,b)] [limit=N] [reversed] [chunks]  input: a ReadRowsRequest in prototext
//	cas row=KEY          input: a CheckAndMutateRowRequest in prototext
//	rmw row=KEY          input: a ReadModifyWriteRowRequest in prototext
//	sample               input: a SampleRowKeysRequest in prototext
//	gc, advance DURATION
//	call SERVICE.METHOD  any unary RPC; input and output: its messages in prototext
//	rest                 input: METHOD PATH, and the body in the lines below; output: status and body
//
// A word in double quotes is a Go string. bttest=REASON explains a difference of Google's fake:
// see TestCompat_bttest_DataDriven.
func TestDataDriven(t *testing.T) {
	t.Parallel()
	subjects, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, clone := range []bool{false, true} {
		t.Run(fmt.Sprintf("clone=%v", clone), func(t *testing.T) {
			t.Parallel()
			run := func(t *testing.T, path string) {
				t.Helper()
				e := newEnvWith(t, Options{CloneInProcess: clone}, engine.Options{})
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					return outputOf(e.command(d))
				})
			}
			for _, subject := range subjects {
				if !subject.IsDir() || subject.Name() == "fuzz" { // traps.tsv, and inputs of the fuzz targets
					continue
				}
				t.Run(subject.Name(), func(t *testing.T) {
					t.Parallel()
					datadriven.Walk(t, filepath.Join("testdata", subject.Name()), run)
				})
			}
		})
	}
}

// outputOf returns the output of a command.
func outputOf(out string, err error) string {
	if err != nil {
		st := status.Convert(err)
		return out + fmt.Sprintf("%s: %s\n", st.Code(), st.Message())
	}
	if out == "" {
		return "ok\n"
	}
	return out
}

// TestTrap141_ViewOfEverything runs the data cases through a view of all rows and columns of
// the table's families. The responses match the table's, except for missing families and row
// deletions, which views cannot contain.
func TestTrap141_ViewOfEverything(t *testing.T) {
	t.Parallel()
	for _, subject := range []string{
		"aggregate", "check_and_mutate_row", "filter", "idempotency", "mutate_row", "read_modify_write_row", "read_rows", "sample_row_keys",
	} {
		t.Run(subject, func(t *testing.T) {
			t.Parallel()
			through := 0
			datadriven.Walk(t, filepath.Join("testdata", subject), func(t *testing.T, path string) {
				t.Helper()
				e := newEnv(t)
				datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
					t.Helper()
					if e.viewEverything(d) {
						got := outputOf(e.command(d))
						e.view = ""
						if !strings.Contains(got, "outside the Authorized View") {
							through++
							return got
						}
						got = outputOf(e.command(d))
						if !strings.Contains(got, "column family not found") && !strings.Contains(d.Input, "delete-row") && !strings.Contains(d.Input, "delete_from_row") {
							t.Errorf("%s: denied through the view, on the table: %s", d.Pos, got)
						}
						return got
					}
					return outputOf(e.command(d))
				})
			})
			if through == 0 {
				t.Error("no command went through the view")
			}
		})
	}
}

// viewEverything sends the next command through a view of its current table, if possible.
func (e *env) viewEverything(d *datadriven.TestData) bool {
	e.t.Helper()
	switch d.Cmd {
	case "mutate", "mutate-rows", "read", "cas", "rmw", "sample":
	default:
		return false
	}
	id := "t"
	d.MaybeScanArgs(e.t, "t", &id)
	table := testInstance + "/tables/" + id
	def, err := e.db.Table(table)
	if err != nil {
		return false
	}
	everything := subset([]string{""})
	for _, f := range def.Families {
		everything.FamilySubsets[f.Name] = columns(f.Name, "", "").subset
	}
	e.view = table + "/authorizedViews/everything"
	_, err = e.admin.CreateAuthorizedView(e.ctx(), &btapb.CreateAuthorizedViewRequest{Parent: table, AuthorizedViewId: "everything", AuthorizedView: viewOf(everything)})
	if status.Code(err) == codes.AlreadyExists {
		_, err = e.admin.UpdateAuthorizedView(e.ctx(), &btapb.UpdateAuthorizedViewRequest{
			AuthorizedView: &btapb.AuthorizedView{Name: e.view, AuthorizedView: viewOf(everything).GetAuthorizedView()},
		})
	}
	if err != nil {
		e.t.Fatal(err)
	}
	return true
}

func (e *env) command(d *datadriven.TestData) (string, error) {
	table := testTable
	if d.HasArg("t") {
		var id string
		d.ScanArgs(e.t, "t", &id)
		table = testInstance + "/tables/" + id
	}
	input := func(m proto.Message) {
		given := m.ProtoReflect().New().Interface()
		if err := prototext.Unmarshal([]byte(d.Input), given); err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		proto.Merge(m, given)
	}
	var view string
	if e.view != "" {
		table, view = "", e.view
	}
	row := func() []byte {
		var key string
		d.ScanArgs(e.t, "row", &key)
		return []byte(key)
	}
	switch d.Cmd {
	case "rest":
		return e.rest(d)
	case "create-table":
		req := &btapb.CreateTableRequest{Parent: testInstance, TableId: table[strings.LastIndex(table, "/")+1:], Table: &btapb.Table{}}
		input(req.Table)
		if arg, ok := d.Arg("families"); ok {
			req.Table.ColumnFamilies = map[string]*btapb.ColumnFamily{}
			for _, f := range arg.Vals {
				req.Table.ColumnFamilies[f] = &btapb.ColumnFamily{}
			}
		}
		if arg, ok := d.Arg("splits"); ok {
			for _, k := range arg.Vals {
				req.InitialSplits = append(req.InitialSplits, &btapb.CreateTableRequest_Split{Key: []byte(k)})
			}
		}
		if e.peer {
			// It does not keep the order of families that are created together (trap 10).
			families := slices.Sorted(maps.Keys(req.Table.ColumnFamilies))
			created := req.Table.ColumnFamilies
			req.Table.ColumnFamilies = nil
			if _, err := e.admin.CreateTable(e.ctx(), req); err != nil {
				return "", err
			}
			for _, f := range families {
				e.modifyFamilies(req.TableId, createFamily(f, created[f]))
			}
			return "", nil
		}
		_, err := e.admin.CreateTable(e.ctx(), req)
		return "", err

	case "modify-families":
		req := &btapb.ModifyColumnFamiliesRequest{Name: table}
		input(req)
		got, err := e.admin.ModifyColumnFamilies(e.ctx(), req)
		return tableText(got), err

	case "get-table":
		got, err := e.admin.GetTable(e.ctx(), &btapb.GetTableRequest{Name: table})
		return tableText(got), err

	case "delete-table":
		_, err := e.admin.DeleteTable(e.ctx(), &btapb.DeleteTableRequest{Name: table})
		return "", err

	case "list-tables":
		req := &btapb.ListTablesRequest{Parent: testInstance}
		d.MaybeScanArgs(e.t, "page-size", &req.PageSize)
		var b strings.Builder
		for {
			resp, err := e.admin.ListTables(e.ctx(), req)
			if err != nil {
				return "", err
			}
			for _, t := range resp.GetTables() {
				fmt.Fprintln(&b, strings.TrimPrefix(t.GetName(), testInstance+"/tables/"))
			}
			if req.PageToken = resp.GetNextPageToken(); req.PageToken == "" {
				return b.String(), nil
			}
			b.WriteString("--\n")
		}

	case "drop-rows":
		req := &btapb.DropRowRangeRequest{Name: table}
		input(req)
		_, err := e.admin.DropRowRange(e.ctx(), req)
		return "", err

	case "mutate":
		req := &btpb.MutateRowRequest{TableName: table, AuthorizedViewName: view, RowKey: row()}
		for _, line := range strings.Split(d.Input, "\n") {
			req.Mutations = append(req.Mutations, e.parseMutation(d, line))
		}
		if d.HasArg("token") {
			var token string
			d.ScanArgs(e.t, "token", &token)
			req.Idempotency = &btpb.Idempotency{Token: []byte(token)}
		}
		_, err := e.data.MutateRow(e.ctx(), req)
		return "", err

	case "mutate-rows":
		req := &btpb.MutateRowsRequest{TableName: table, AuthorizedViewName: view}
		input(req)
		stream, err := e.data.MutateRows(e.ctx(), req)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return b.String(), nil
			}
			if err != nil {
				return "", err
			}
			for _, en := range resp.GetEntries() {
				st := status.FromProto(en.GetStatus())
				fmt.Fprintf(&b, "%d %s\n", en.GetIndex(), strings.TrimSuffix(st.Code().String()+": "+st.Message(), ": "))
			}
		}

	case "read":
		req := &btpb.ReadRowsRequest{TableName: table, AuthorizedViewName: view, Reversed: d.HasArg("reversed")}
		input(req)
		d.MaybeScanArgs(e.t, "limit", &req.RowsLimit)
		if arg, ok := d.Arg("keys"); ok {
			req.Rows = &btpb.RowSet{}
			for _, k := range arg.Vals {
				req.Rows.RowKeys = append(req.Rows.RowKeys, []byte(k))
			}
		}
		ctx := withFeatures(e.ctx(), &btpb.FeatureFlags{ReverseScans: true}, base64.URLEncoding)
		merge := readRows
		if e.peer {
			merge = readLoosely
		}
		res, err := merge(ctx, e.data, req)
		out := res.text()
		if d.HasArg("chunks") {
			out = chunksText(res)
		}
		if s := res.stats.GetFullReadStatsView().GetReadIterationStats(); s != nil {
			out += fmt.Sprintf("rows %d of %d, cells %d of %d\n", s.GetRowsReturnedCount(), s.GetRowsSeenCount(), s.GetCellsReturnedCount(), s.GetCellsSeenCount())
		}
		if out == "" && err == nil {
			out = "(no rows)\n"
		}
		return out, err

	case "cas":
		req := &btpb.CheckAndMutateRowRequest{TableName: table, AuthorizedViewName: view, RowKey: row()}
		input(req)
		resp, err := e.data.CheckAndMutateRow(e.ctx(), req)
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("matched: %v\n", resp.GetPredicateMatched()), nil

	case "rmw":
		req := &btpb.ReadModifyWriteRowRequest{TableName: table, AuthorizedViewName: view, RowKey: row()}
		input(req)
		resp, err := e.data.ReadModifyWriteRow(e.ctx(), req)
		if err != nil {
			return "", err
		}
		return rowText(resp.GetRow()), nil

	case "sample":
		req := &btpb.SampleRowKeysRequest{TableName: table, AuthorizedViewName: view}
		input(req)
		stream, err := e.data.SampleRowKeys(e.ctx(), req)
		if err != nil {
			return "", err
		}
		var b strings.Builder
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return b.String(), nil
			}
			if err != nil {
				return "", err
			}
			fmt.Fprintln(&b, name(string(resp.GetRowKey())))
		}

	case "call":
		return e.call(d)

	case "gc":
		stats, err := e.srv.RunGC(e.ctx())
		return fmt.Sprintf("deleted %d cells\n", stats.CellsDeleted), err

	case "advance":
		by, err := time.ParseDuration(d.CmdArgs[0].Key)
		if err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		e.clock.Advance(by)
		return "", nil
	}
	d.Fatalf(e.t, "unknown command %s", d.Cmd)
	return "", nil
}

// call runs any unary RPC of the registered services.
func (e *env) call(d *datadriven.TestData) (string, error) {
	service, method, _ := strings.Cut(d.CmdArgs[0].Key, ".")
	for _, file := range []protoreflect.FileDescriptor{
		btpb.File_google_bigtable_v2_bigtable_proto,
		btapb.File_google_bigtable_admin_v2_bigtable_table_admin_proto,
		btapb.File_google_bigtable_admin_v2_bigtable_instance_admin_proto,
		longrunningpb.File_google_longrunning_operations_proto,
		location.File_google_cloud_location_locations_proto,
	} {
		of := file.Services().ByName(protoreflect.Name(service))
		if of == nil || of.Methods().ByName(protoreflect.Name(method)) == nil {
			continue
		}
		rpc := of.Methods().ByName(protoreflect.Name(method))
		message := func(d2 protoreflect.MessageDescriptor) proto.Message {
			t, err := protoregistry.GlobalTypes.FindMessageByName(d2.FullName())
			if err != nil {
				d.Fatalf(e.t, "%v", err)
			}
			return t.New().Interface()
		}
		req, resp := message(rpc.Input()), message(rpc.Output())
		if err := prototext.Unmarshal([]byte(d.Input), req); err != nil {
			d.Fatalf(e.t, "%v", err)
		}
		if err := e.srv.Conn().Invoke(e.ctx(), fmt.Sprintf("/%s/%s", of.FullName(), method), req, resp); err != nil {
			return "", err
		}
		// The marshaller varies its spaces to prevent comparisons of its text.
		text := prototext.MarshalOptions{Multiline: true}.Format(resp)
		return strings.ReplaceAll(text, ":  ", ": "), nil
	}
	d.Fatalf(e.t, "no service has a method %s", d.CmdArgs[0].Key)
	return "", nil
}

// parseMutation reads one line of mutate.
func (e *env) parseMutation(d *datadriven.TestData, line string) *btpb.Mutation {
	var words []string
	for rest := strings.TrimSpace(line); rest != ""; rest = strings.TrimSpace(rest) {
		if rest[0] == '"' {
			quoted, err := strconv.QuotedPrefix(rest)
			if err != nil {
				d.Fatalf(e.t, "%s: %v", line, err)
			}
			word, err := strconv.Unquote(quoted)
			if err != nil {
				d.Fatalf(e.t, "%s: %v", line, err)
			}
			words, rest = append(words, word), rest[len(quoted):]
			continue
		}
		word, after, _ := strings.Cut(rest, " ")
		words, rest = append(words, word), after
	}
	number := func(i int) int64 {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			d.Fatalf(e.t, "%s: %v", line, err)
		}
		return n
	}
	switch {
	case words[0] == "set" && len(words) == 5:
		return set(words[1], words[2], number(3), words[4])
	case words[0] == "add" && len(words) == 5:
		return addTo(words[1], words[2], number(3), intValueOf(number(4)))
	case words[0] == "merge" && len(words) == 5:
		return mergeTo(words[1], words[2], number(3), rawValue(words[4]))
	case words[0] == "delete-column" && len(words) == 3:
		return deleteColumn(words[1], words[2], 0, 0)
	case words[0] == "delete-column" && len(words) == 5:
		return deleteColumn(words[1], words[2], number(3), number(4))
	case words[0] == "delete-family" && len(words) == 2:
		return deleteFamily(words[1])
	case words[0] == "delete-row" && len(words) == 1:
		return deleteRow()
	}
	d.Fatalf(e.t, "%s: no mutation", line)
	return nil
}

func tableText(t *btapb.Table) string {
	if t == nil {
		return ""
	}
	names := make([]string, 0, len(t.GetColumnFamilies()))
	for n := range t.GetColumnFamilies() {
		names = append(names, n)
	}
	sort.Strings(names)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", t.GetName(), t.GetGranularity())
	for _, n := range names {
		fmt.Fprintf(&b, "  %s: %s\n", n, ruleText(t.GetColumnFamilies()[n].GetGcRule()))
	}
	return b.String()
}

func ruleText(r *btapb.GcRule) string {
	list := func(rules []*btapb.GcRule, word string) string {
		var texts []string
		for _, r := range rules {
			texts = append(texts, ruleText(r))
		}
		return "(" + strings.Join(texts, word) + ")"
	}
	switch k := r.GetRule().(type) {
	case *btapb.GcRule_MaxNumVersions:
		return fmt.Sprintf("versions > %d", k.MaxNumVersions)
	case *btapb.GcRule_MaxAge:
		return fmt.Sprintf("age > %v", k.MaxAge.AsDuration())
	case *btapb.GcRule_Union_:
		return list(k.Union.GetRules(), " or ")
	case *btapb.GcRule_Intersection_:
		return list(k.Intersection.GetRules(), " and ")
	}
	return "never"
}

func rowText(r *btpb.Row) string {
	out := row{key: string(r.GetKey())}
	for _, f := range r.GetFamilies() {
		for _, c := range f.GetColumns() {
			for _, v := range c.GetCells() {
				out.cells = append(out.cells, cell{f.GetName(), string(c.GetQualifier()), v.GetTimestampMicros(), string(v.GetValue()), v.GetLabels()})
			}
		}
	}
	return result{rows: []row{out}}.text()
}

// chunksText formats the chunks of a response in order.
func chunksText(r result) string {
	var b strings.Builder
	for i, m := range r.messages {
		if len(m.GetChunks()) == 0 {
			continue
		}
		fmt.Fprintf(&b, "message %d\n", i)
		for _, c := range m.GetChunks() {
			b.WriteString("  ")
			if c.RowKey != nil {
				fmt.Fprintf(&b, "row %s ", name(string(c.GetRowKey())))
			}
			if c.FamilyName != nil {
				fmt.Fprintf(&b, "family %s ", c.GetFamilyName().GetValue())
			}
			if c.Qualifier != nil {
				fmt.Fprintf(&b, "qualifier %s ", name(string(c.GetQualifier().GetValue())))
			}
			fmt.Fprintf(&b, "@%d value %q", c.GetTimestampMicros(), c.GetValue())
			if c.ValueSize != 0 {
				fmt.Fprintf(&b, " of %d", c.GetValueSize())
			}
			if len(c.Labels) > 0 {
				fmt.Fprintf(&b, " labels %v", c.GetLabels())
			}
			if c.GetCommitRow() {
				b.WriteString(" commit")
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
