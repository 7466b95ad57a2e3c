package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	btpb "cloud.google.com/go/bigtable/apiv2/bigtablepb"
	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	"google.golang.org/genproto/googleapis/cloud/location"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/tabletop-emu/tabletop/emu"
	"github.com/tabletop-emu/tabletop/facade"
)

// TestBigtableSupport compares the support table with the service descriptors and the oneofs
// of the linked protos. An upgrade that adds an RPC, a filter, a mutation or a rule fails here
// until the table has a row.
func TestBigtableSupport(t *testing.T) {
	t.Parallel()
	want := map[[2]string]bool{}
	for _, file := range []protoreflect.FileDescriptor{
		btpb.File_google_bigtable_v2_bigtable_proto,
		btapb.File_google_bigtable_admin_v2_bigtable_table_admin_proto,
		btapb.File_google_bigtable_admin_v2_bigtable_instance_admin_proto,
		longrunningpb.File_google_longrunning_operations_proto,
		location.File_google_cloud_location_locations_proto,
	} {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				want[[2]string{string(service.Name()), string(service.Methods().Get(j).Name())}] = true
			}
		}
	}
	for group, m := range map[string]proto.Message{"RowFilter": &btpb.RowFilter{}, "Mutation": &btpb.Mutation{}, "GcRule": &btapb.GcRule{}} {
		oneofs := m.ProtoReflect().Descriptor().Oneofs()
		for i := range oneofs.Len() {
			fields := oneofs.Get(i).Fields()
			for j := range fields.Len() {
				want[[2]string{group, string(fields.Get(j).Name())}] = true
			}
		}
	}
	got := map[[2]string]bool{}
	for _, f := range emu.Support() {
		name := [2]string{f.Group, f.Name}
		if got[name] {
			t.Errorf("%s.%s stands twice in the support table", f.Group, f.Name)
		}
		got[name] = true
		if !want[name] {
			t.Errorf("%s.%s is in the support table and not in the protos", f.Group, f.Name)
		}
		if f.Status == emu.Refused && f.Note == "" {
			t.Errorf("%s.%s is refused without a reason", f.Group, f.Name)
		}
	}
	for name := range want {
		if !got[name] {
			t.Errorf("%s.%s is in the protos and has no answer in the support table", name[0], name[1])
		}
	}
}

// TestServedRPCsAreFound checks that each served RPC has one method of its name: an RPC of
// the data API in package emu, in a file that is named after the RPC, an admin RPC in package
// admin.
func TestServedRPCsAreFound(t *testing.T) {
	t.Parallel()
	data, admin := methodsIn(t, "emu"), methodsIn(t, "emu/internal/admin")
	receivers := map[string]string{
		"Bigtable": "call", "BigtableTableAdmin": "tableAdminService", "BigtableInstanceAdmin": "instanceAdminService",
	}
	for _, f := range emu.Support() {
		receiver, ok := receivers[f.Group]
		if f.Status != emu.Served || !ok {
			continue
		}
		methods := admin
		if f.Group == "Bigtable" {
			methods = data
		}
		files := methods[receiver+"."+f.Name]
		if len(files) != 1 {
			t.Errorf("%s is served by %d methods, in %v; want one", f.Name, len(files), files)
			continue
		}
		stem := strings.TrimSuffix(files[0], ".go")
		if f.Group == "Bigtable" {
			// The RPC's own file, or that of its singular (MutateRows), or the files of
			// sessions and of change streams.
			if s := snake(f.Name); stem != s && stem+"s" != s && stem != "session" && stem != "change_stream" {
				t.Errorf("%s is in %s; want %s.go", f.Name, files[0], s)
			}
		}
	}
}

// TestDynamoDBOperations compares the operation table with the operations of
// the linked SDKs, as TestBigtableSupport does.
func TestDynamoDBOperations(t *testing.T) {
	t.Parallel()
	want := map[string]bool{}
	for _, client := range []reflect.Type{reflect.TypeFor[*dynamodb.Client](), reflect.TypeFor[*dynamodbstreams.Client]()} {
		for i := range client.NumMethod() {
			if name := client.Method(i).Name; name != "Options" {
				want[name] = true
			}
		}
	}
	got := map[string]bool{}
	for _, op := range facade.Operations() {
		if got[op.Name] {
			t.Errorf("%s stands twice in the operation table", op.Name)
		}
		got[op.Name] = true
		if !want[op.Name] {
			t.Errorf("%s is in the operation table and not in the API", op.Name)
		}
	}
	for name := range want {
		if !got[name] {
			t.Errorf("%s is in the API and has no row in the operation table", name)
		}
	}
}

// sharedOperationFiles are the files with several operations of one resource.
var sharedOperationFiles = map[string]string{
	"DescribeLimits": "op_account.go", "DescribeEndpoints": "op_account.go",
	"DescribeTimeToLive": "op_time_to_live.go", "UpdateTimeToLive": "op_time_to_live.go",
	"DeleteResourcePolicy": "op_resource_policy.go", "GetResourcePolicy": "op_resource_policy.go", "PutResourcePolicy": "op_resource_policy.go",
	"DescribeKinesisStreamingDestination": "op_kinesis_streaming_destination.go", "DisableKinesisStreamingDestination": "op_kinesis_streaming_destination.go",
	"EnableKinesisStreamingDestination": "op_kinesis_streaming_destination.go", "UpdateKinesisStreamingDestination": "op_kinesis_streaming_destination.go",
	"DescribeContributorInsights": "op_contributor_insights.go", "ListContributorInsights": "op_contributor_insights.go", "UpdateContributorInsights": "op_contributor_insights.go",
	"CreateBackup": "op_backups.go", "DeleteBackup": "op_backups.go", "DescribeBackup": "op_backups.go", "DescribeContinuousBackups": "op_backups.go",
	"ListBackups": "op_backups.go", "RestoreTableFromBackup": "op_backups.go", "RestoreTableToPointInTime": "op_backups.go", "UpdateContinuousBackups": "op_backups.go",
	"CreateGlobalTable": "op_global_tables.go", "DescribeGlobalTable": "op_global_tables.go", "DescribeGlobalTableSettings": "op_global_tables.go",
	"DescribeTableReplicaAutoScaling": "op_global_tables.go", "ListGlobalTables": "op_global_tables.go", "UpdateGlobalTable": "op_global_tables.go",
	"UpdateGlobalTableSettings": "op_global_tables.go", "UpdateTableReplicaAutoScaling": "op_global_tables.go",
	"DescribeExport": "op_export_table.go", "ExportTableToPointInTime": "op_export_table.go", "ListExports": "op_export_table.go",
	"DescribeImport": "op_import_table.go", "ListImports": "op_import_table.go",
	"CancelBulkOperation": "op_bulk_operations.go", "DescribeBulkOperation": "op_bulk_operations.go",
	"ListBulkOperations": "op_bulk_operations.go", "StartBulkPutItems": "op_bulk_operations.go",
	"ListTagsOfResource": "op_tags.go", "TagResource": "op_tags.go", "UntagResource": "op_tags.go",
}

// TestServedOperationsAreFound checks that each served operation has one method, in a file
// named after it or its resource.
func TestServedOperationsAreFound(t *testing.T) {
	t.Parallel()
	methods := methodsIn(t, "facade")
	for _, op := range facade.Operations() {
		method := "Server." + strings.ToLower(op.Name[:1]) + op.Name[1:]
		var files []string
		for _, f := range methods[method] {
			if strings.HasPrefix(f, "op_") {
				files = append(files, f)
			}
		}
		want := "op_" + snake(op.Name) + ".go"
		if shared, ok := sharedOperationFiles[op.Name]; ok {
			want = shared
		}
		if len(files) != 1 || files[0] != want {
			t.Errorf("%s is handled by %s in %v; want it in %s", op.Name, method, files, want)
		}
	}
}

// methodsIn returns, by receiver and method name ("Server.Close"), the files of
// a package that declare it.
func methodsIn(t *testing.T, folder string) map[string][]string {
	t.Helper()
	methods := map[string][]string{}
	entries, err := os.ReadDir(filepath.Join("..", "..", folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", folder, e.Name()), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				name := receiverName(fn) + "." + fn.Name.Name
				methods[name] = append(methods[name], e.Name())
			}
		}
	}
	return methods
}

// receiverName returns the name of the receiver's type of a method.
func receiverName(fn *ast.FuncDecl) string {
	of := fn.Recv.List[0].Type
	if star, ok := of.(*ast.StarExpr); ok {
		of = star.X
	}
	if generic, ok := of.(*ast.IndexExpr); ok {
		of = generic.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}

var wordStart = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// snake converts ReadRows to read_rows.
func snake(name string) string {
	return strings.ToLower(wordStart.ReplaceAllString(name, "${1}_${2}"))
}
