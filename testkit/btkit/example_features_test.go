package btkit_test

import (
	"fmt"
	"time"

	"cloud.google.com/go/bigtable"
	btapb "cloud.google.com/go/bigtable/admin/apiv2/adminpb"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit/btkit"
)

// A tenant with a grant on a view can read the view, but not its table.
func ExampleEnv_BigtableAs() {
	t := faketb.New() // in a test: its *testing.T
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t, btkit.WithIAM())

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	for _, row := range []string{"customer7#1", "customer8#1"} {
		m := bigtable.NewMutation()
		m.Set("o", "total", 1000, []byte("42"))
		must(env.Bigtable(t).Open("orders").Apply(ctx, row, m))
	}
	must(admin.CreateAuthorizedView(ctx, &bigtable.AuthorizedViewConf{
		TableID: "orders", AuthorizedViewID: "customer7",
		AuthorizedView: &bigtable.SubsetViewConf{
			RowPrefixes:   [][]byte{[]byte("customer7#")},
			FamilySubsets: map[string]bigtable.FamilySubset{"o": {QualifierPrefixes: [][]byte{nil}}},
		},
	}))
	const tenant = "serviceAccount:tenant@p.iam.gserviceaccount.com"
	handle := admin.AuthorizedViewIAM("orders", "customer7")
	policy, err := handle.Policy(ctx)
	must(err)
	policy.Add(tenant, "roles/bigtable.reader")
	must(handle.SetPolicy(ctx, policy))

	show := func(row bigtable.Row) bool {
		fmt.Println(row.Key())
		return true
	}
	client := env.BigtableAs(t, tenant)
	must(client.OpenAuthorizedView("orders", "customer7").ReadRows(ctx, bigtable.InfiniteRange(""), show))
	err = client.OpenTable("orders").ReadRows(ctx, bigtable.InfiniteRange(""), show)
	fmt.Println(status.Code(err))
	// Output:
	// customer7#1
	// PermissionDenied
}

// A bundle accepts a descriptor set of the same messages with an additional field, and rejects
// one in which a field has another type.
func ExampleEnv_BigtableAdmin_schemaBundles() {
	t := faketb.New()
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t)

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	descriptors := func(total descriptorpb.FieldDescriptorProto_Type) *bigtable.ProtoSchemaInfo {
		file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
			Name: proto.String("order.proto"), Syntax: proto.String("proto3"), Package: proto.String("shop"),
			MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Order"), Field: []*descriptorpb.FieldDescriptorProto{
				{Name: proto.String("total"), Number: proto.Int32(1), Type: total.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()},
			}}},
		}, nil)
		must(err)
		raw, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{protodesc.ToFileDescriptorProto(file)}})
		must(err)
		return &bigtable.ProtoSchemaInfo{ProtoDescriptors: raw}
	}
	bundle := bigtable.SchemaBundleConf{TableID: "orders", SchemaBundleID: "shop", ProtoSchema: descriptors(descriptorpb.FieldDescriptorProto_TYPE_INT64)}
	must(admin.CreateSchemaBundle(ctx, &bundle))
	bundle.ProtoSchema = descriptors(descriptorpb.FieldDescriptorProto_TYPE_STRING)
	err := admin.UpdateSchemaBundle(ctx, bigtable.UpdateSchemaBundleConf{SchemaBundleConf: bundle})
	fmt.Println(status.Code(err))
	// Output:
	// FailedPrecondition
}

// The row with the most requests is the hottest range of keys.
func ExampleWithLoadCounts() {
	t := faketb.New()
	defer t.End()
	ctx := t.Context()
	env := btkit.Start(t, btkit.WithLoadCounts())

	admin := env.BigtableAdmin(t)
	must(admin.CreateTable(ctx, "orders"))
	must(admin.CreateColumnFamily(ctx, "orders", "o"))
	for i := range 500 {
		row := "customer7"
		if i%5 == 0 {
			row = fmt.Sprintf("customer%d", 1000+i)
		}
		m := bigtable.NewMutation()
		m.Set("o", "total", 1000, []byte("42"))
		must(env.Bigtable(t).Open("orders").Apply(ctx, row, m))
	}
	env.Advance(time.Minute)

	now := env.Now()
	hot, err := btapb.NewBigtableInstanceAdminClient(env.Conn()).ListHotTablets(ctx, &btapb.ListHotTabletsRequest{
		Parent:    "projects/" + env.Project() + "/instances/" + env.Instance() + "/clusters/c",
		StartTime: timestamppb.New(now.Add(-time.Hour)), EndTime: timestamppb.New(now),
	})
	must(err)
	first := hot.GetHotTablets()[0]
	fmt.Println(first.GetStartKey(), first.GetEndKey(), first.GetNodeCpuUsagePercent() > 50)
	// Output:
	// customer7 customer7 true
}
