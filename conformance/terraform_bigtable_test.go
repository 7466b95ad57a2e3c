package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/bigtable"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/oauth2"
	"google.golang.org/api/bigtableadmin/v2"
	"google.golang.org/api/iterator"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// The tests below make the calls of the resources of Terraform's Google provider, in their order,
// by the clients that it uses. Instances, tables, garbage collection and authorized views go
// through the Go client, which BIGTABLE_EMULATOR_HOST leads here; the others are JSON over HTTP at
// bigtable_custom_endpoint. After each change a test reads the attributes that the provider
// reads: a difference from the configuration would be a plan that is never empty.
//
// The order of the calls is that of commit e03b7622 of hashicorp/terraform-provider-google, of August 2026.

// googleProvider is the provider's connection to an instance.
type googleProvider struct {
	*testing.T
	endpoint          string // bigtable_custom_endpoint
	project, instance string
}

func newGoogleProvider(t *testing.T) *googleProvider {
	t.Helper()
	return &googleProvider{
		T: t, project: "terraform", instance: fmt.Sprintf("tf-%s-%d", strings.ToLower(strings.TrimPrefix(t.Name(), "TestTerraform_")), servers.runOf(t)),
		endpoint: os.Getenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_BIGTABLEADMIN") + "v2/",
	}
}

// options are those of each Go client. The custom endpoint is one of them, and has no effect.
func (p *googleProvider) options() []option.ClientOption {
	p.Helper()
	u, err := url.Parse(p.endpoint)
	if err != nil {
		p.Fatal(err)
	}
	return []option.ClientOption{
		option.WithEndpoint(u.Host), option.WithTokenSource(oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "unused"})), option.WithUserAgent("Terraform"),
	}
}

func (p *googleProvider) instances() *bigtable.InstanceAdminClient {
	p.Helper()
	c, err := bigtable.NewInstanceAdminClient(p.Context(), p.project, p.options()...)
	p.no(err)
	p.Cleanup(func() { _ = c.Close() })
	return c
}

func (p *googleProvider) tables() *bigtable.AdminClient {
	p.Helper()
	c, err := bigtable.NewAdminClient(p.Context(), p.project, p.instance, p.options()...)
	p.no(err)
	p.Cleanup(func() { _ = c.Close() })
	return c
}

// no ends the test at an error.
func (p *googleProvider) no(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// same compares what a resource has with its configuration.
func (p *googleProvider) same(want, got any) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("(-configured +read):\n%s", diff)
	}
}

// call sends a request of a resource without a Go client, to a path below the instance. It
// returns the status and the body.
func (p *googleProvider) call(method, path string, body any) (int, map[string]any) {
	p.Helper()
	u, err := url.Parse(p.endpoint + "projects/" + p.project + "/instances/" + p.instance + "/" + path)
	p.no(err)
	query := u.Query()
	query.Set("alt", "json")
	u.RawQuery = query.Encode()
	var sent bytes.Buffer
	if body != nil {
		p.no(json.NewEncoder(&sent).Encode(body))
	}
	r, err := http.NewRequestWithContext(p.Context(), method, u.String(), &sent)
	p.no(err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer unused")
	resp, err := http.DefaultClient.Do(r)
	p.no(err)
	defer func() { _ = resp.Body.Close() }()
	var got map[string]any
	p.no(json.NewDecoder(resp.Body).Decode(&got))
	return resp.StatusCode, got
}

// must is call for a request that succeeds.
func (p *googleProvider) must(method, path string, body any) map[string]any {
	p.Helper()
	code, got := p.call(method, path, body)
	if code != http.StatusOK {
		p.Fatalf("%s %s: %d %v", method, path, code, got)
	}
	return got
}

// has compares the members of an object that the provider reads. A member is missing, or nil,
// if it has its default.
func (p *googleProvider) has(path string, want map[string]any) {
	p.Helper()
	got := p.must(http.MethodGet, path, nil)
	want["name"] = "projects/" + p.project + "/instances/" + p.instance + "/" + path
	for name, value := range want {
		if diff := cmp.Diff(value, got[name]); diff != "" {
			p.Errorf("%s of %s (-configured +read):\n%s", name, path, diff)
		}
	}
}

// gone checks that a resource is removed from the state after its deletion.
func (p *googleProvider) gone(path string) {
	p.Helper()
	if code, got := p.call(http.MethodGet, path, nil); code != http.StatusNotFound {
		p.Errorf("%s after its deletion: %d %v", path, code, got)
	}
}

// cluster is the configuration of a cluster.
func (p *googleProvider) cluster(id, zone string, nodes int32) bigtable.ClusterConfig {
	return bigtable.ClusterConfig{InstanceID: p.instance, ClusterID: id, Zone: zone, NumNodes: nodes, StorageType: bigtable.SSD, NodeScalingFactor: bigtable.NodeScalingFactor1X}
}

// create creates the instance, with clusters a and b, and a table.
func (p *googleProvider) create(families ...string) {
	p.Helper()
	p.no(p.instances().CreateInstanceWithClusters(p.Context(), &bigtable.InstanceWithClustersConfig{
		InstanceID: p.instance, DisplayName: p.instance, Edition: bigtable.Enterprise,
		Clusters: []bigtable.ClusterConfig{p.cluster("tf-cluster-a", "us-east1-b", 1), p.cluster("tf-cluster-b", "us-east1-c", 1)},
	}))
	conf := bigtable.TableConf{TableID: "orders", DeletionProtection: bigtable.Unprotected, ColumnFamilies: map[string]bigtable.Family{}}
	for _, f := range families {
		conf.ColumnFamilies[f] = bigtable.Family{GCPolicy: bigtable.NoGcPolicy()}
	}
	p.no(p.tables().CreateTableFromConf(p.Context(), &conf))
}

// google_bigtable_instance
func TestTerraform_Instance(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	ctx, admin := t.Context(), p.instances()
	scaled := func(id, zone string, most int) bigtable.ClusterConfig {
		c := p.cluster(id, zone, 0)
		c.AutoscalingConfig = &bigtable.AutoscalingConfig{MinNodes: 1, MaxNodes: most, CPUTargetPercent: 60, StorageUtilizationPerNode: 2560}
		return c
	}
	conf := &bigtable.InstanceWithClustersConfig{
		InstanceID: p.instance, DisplayName: p.instance, InstanceType: bigtable.PRODUCTION, Edition: bigtable.Enterprise,
		Labels:   map[string]string{"team": "shop", "goog-terraform-provisioned": "true"},
		Clusters: []bigtable.ClusterConfig{p.cluster("tf-one", "us-east1-b", 1), scaled("tf-two", "us-east1-c", 3)},
	}
	read := func() {
		t.Helper()
		list, err := admin.Instances(ctx)
		p.no(err)
		at := slices.IndexFunc(list, func(i *bigtable.InstanceInfo) bool { return i.Name == p.instance })
		if at < 0 {
			t.Fatalf("instance %s is not in %v", p.instance, list)
		}
		labels := map[string]string{} // also of an instance without labels
		maps.Copy(labels, list[at].Labels)
		p.same([]any{conf.DisplayName, conf.Labels, conf.Edition}, []any{list[at].DisplayName, labels, list[at].Edition})
		clusters, err := admin.Clusters(ctx, p.instance)
		p.no(err)
		slices.SortFunc(clusters, func(a, b *bigtable.ClusterInfo) int { return strings.Compare(a.Name, b.Name) })
		var want, got []any
		for _, c := range conf.Clusters {
			want = append(want, c.ClusterID, c.Zone, "READY", c.StorageType, c.KMSKeyName, c.NodeScalingFactor, c.AutoscalingConfig, c.NumNodes)
		}
		for _, c := range clusters {
			nodes, factor := int32(c.ServeNodes), c.NodeScalingFactor //nolint:gosec // a few nodes
			if c.AutoscalingConfig != nil {
				nodes = 0 // computed
			}
			if factor == bigtable.NodeScalingFactorUnspecified {
				factor = bigtable.NodeScalingFactor1X
			}
			got = append(got, c.Name, c.Zone, c.State, c.StorageType, c.KMSKeyName, factor, c.AutoscalingConfig, nodes)
		}
		p.same(want, got)
	}
	apply := func() {
		t.Helper()
		_, err := bigtable.UpdateInstanceAndSyncClusters(ctx, admin, conf)
		p.no(err)
		read()
	}
	p.no(admin.CreateInstanceWithClusters(ctx, conf))
	read()
	conf.DisplayName, conf.Labels = "Shop", map[string]string{"goog-terraform-provisioned": "true"}
	conf.Clusters = []bigtable.ClusterConfig{p.cluster("tf-one", "us-east1-b", 2), p.cluster("tf-two", "us-east1-c", 2)} // without scaling
	apply()
	conf.Edition = bigtable.EnterprisePlus
	conf.Clusters = []bigtable.ClusterConfig{scaled("tf-one", "us-east1-b", 5), scaled("tf-three", "us-east1-d", 4)} // another second one
	apply()
	conf.Labels = map[string]string{}
	apply()

	// Destroy, with force_destroy.
	tables := p.tables()
	p.no(tables.CreateTable(ctx, "orders"))
	p.no(tables.CreateBackup(ctx, "orders", "tf-one", "copy", tomorrow()))
	if err := admin.DeleteInstance(ctx, p.instance); err == nil {
		t.Error("an instance with a backup was deleted")
	}
	clusters, err := admin.Clusters(ctx, p.instance)
	p.no(err)
	deleted := 0
	for _, c := range clusters {
		for it := tables.Backups(ctx, c.Name); ; deleted++ {
			b, err := it.Next()
			if err == iterator.Done { //nolint:errorlint // as the provider does
				break
			}
			p.no(err)
			p.no(tables.DeleteBackup(ctx, c.Name, b.Name))
		}
	}
	p.same(1, deleted)
	p.no(admin.DeleteInstance(ctx, p.instance))
	if _, err := admin.Clusters(ctx, p.instance); status.Code(err) != codes.NotFound {
		t.Errorf("clusters of a deleted instance: %v", err)
	}
}

// tomorrow is the end of a backup, on a server that has the real time.
func tomorrow() time.Time { return time.Now().Add(24 * time.Hour) }

// google_bigtable_table
func TestTerraform_Table(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create()
	ctx, admin := t.Context(), p.tables()
	sum := bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.SumAggregator{}}
	schema := &bigtable.StructType{
		Fields: []bigtable.StructField{
			{FieldName: "customer", FieldType: bigtable.StringType{Encoding: bigtable.StringUtf8BytesEncoding{}}},
			{FieldName: "order", FieldType: bigtable.Int64Type{Encoding: bigtable.BigEndianBytesEncoding{}}},
		},
		Encoding: bigtable.StructDelimitedBytesEncoding{Delimiter: []byte("#")},
	}
	conf := &bigtable.TableConf{
		TableID: "sales", SplitKeys: []string{"g", "p"}, DeletionProtection: bigtable.Protected, ChangeStreamRetention: 24 * time.Hour,
		AutomatedBackupConfig: &bigtable.TableAutomatedBackupPolicy{RetentionPeriod: 72 * time.Hour, Frequency: 24 * time.Hour},
		ColumnFamilies:        map[string]bigtable.Family{"f": {GCPolicy: bigtable.NoGcPolicy()}, "sums": {GCPolicy: bigtable.NoGcPolicy(), ValueType: sum}},
		RowKeySchema:          schema,
	}
	read := func() {
		t.Helper()
		info, err := admin.TableInfo(ctx, "sales")
		p.no(err)
		var want, got []string
		for name, f := range conf.ColumnFamilies {
			want = append(want, name+" "+typeText(t, f.ValueType))
		}
		for _, f := range info.FamilyInfos {
			typ, _ := f.ValueType.(bigtable.AggregateType) // the provider stores only these
			if f.ValueType = nil; typ.Aggregator != nil {
				f.ValueType = typ
			}
			got = append(got, f.Name+" "+typeText(t, f.ValueType))
		}
		slices.Sort(want)
		slices.Sort(got)
		p.same(want, got)
		p.same([]any{conf.DeletionProtection, conf.ChangeStreamRetention}, []any{info.DeletionProtection, info.ChangeStreamRetention})
		p.same(conf.AutomatedBackupConfig, info.AutomatedBackupConfig)
		if (conf.RowKeySchema == nil) != (info.RowKeySchema == nil) || conf.RowKeySchema != nil && !bigtable.Equal(*conf.RowKeySchema, *info.RowKeySchema) {
			t.Errorf("row key schema %+v, want %+v", info.RowKeySchema, conf.RowKeySchema)
		}
	}
	p.no(admin.CreateTableFromConf(ctx, conf))
	read()
	if err := admin.DeleteTable(ctx, "sales"); err == nil {
		t.Fatal("a protected table was deleted")
	}

	// One update with all changes.
	p.no(admin.CreateColumnFamilyWithConfig(ctx, "sales", "g", bigtable.Family{}))
	p.no(admin.CreateColumnFamilyWithConfig(ctx, "sales", "most", bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.MaxAggregator{}}}))
	p.no(admin.UpdateTableWithDeletionProtection(ctx, "sales", bigtable.Unprotected))
	p.no(admin.UpdateTableWithChangeStream(ctx, "sales", 48*time.Hour))
	p.no(admin.UpdateTableWithAutomatedBackupPolicy(ctx, "sales", bigtable.TableAutomatedBackupPolicy{RetentionPeriod: 96 * time.Hour, Frequency: 24 * time.Hour}))
	p.no(admin.UpdateTableRemoveRowKeySchema(ctx, "sales"))
	conf.ColumnFamilies["g"] = bigtable.Family{}
	conf.ColumnFamilies["most"] = bigtable.Family{ValueType: bigtable.AggregateType{Input: bigtable.Int64Type{}, Aggregator: bigtable.MaxAggregator{}}}
	conf.DeletionProtection, conf.ChangeStreamRetention, conf.RowKeySchema = bigtable.Unprotected, 48*time.Hour, nil
	conf.AutomatedBackupConfig = &bigtable.TableAutomatedBackupPolicy{RetentionPeriod: 96 * time.Hour, Frequency: 24 * time.Hour}
	read()

	// Another one, which removes.
	p.no(admin.DeleteColumnFamily(ctx, "sales", "f"))
	p.no(admin.UpdateTableDisableChangeStream(ctx, "sales"))
	p.no(admin.UpdateTableDisableAutomatedBackupPolicy(ctx, "sales"))
	p.no(admin.UpdateTableWithRowKeySchema(ctx, "sales", *schema))
	delete(conf.ColumnFamilies, "f")
	conf.ChangeStreamRetention, conf.AutomatedBackupConfig, conf.RowKeySchema = nil, nil, schema
	read()

	p.no(admin.DeleteTable(ctx, "sales"))
	if _, err := admin.TableInfo(ctx, "sales"); status.Code(err) != codes.NotFound {
		t.Errorf("a deleted table: %v", err)
	}
}

// typeText returns the JSON of a type; "" for nil.
func typeText(t *testing.T, typ bigtable.Type) string {
	t.Helper()
	if typ == nil {
		return ""
	}
	text, err := bigtable.MarshalJSON(typ)
	if err != nil {
		t.Fatal(err)
	}
	return compact(string(text)) // the spaces of this form vary
}

// google_bigtable_gc_policy
func TestTerraform_GCPolicy(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create("f", "g")
	ctx, admin := t.Context(), p.tables()
	p.no(p.instances().DeleteCluster(ctx, p.instance, "tf-cluster-b")) // replicated families accept fewer changes
	read := func() bigtable.FamilyInfo {
		t.Helper()
		info, err := admin.TableInfo(ctx, "orders")
		p.no(err)
		at := slices.IndexFunc(info.FamilyInfos, func(f bigtable.FamilyInfo) bool { return f.Name == "f" })
		if at < 0 {
			t.Fatalf("no family f: %+v", info.FamilyInfos)
		}
		return info.FamilyInfos[at]
	}
	for _, policy := range []bigtable.GCPolicy{
		bigtable.MaxVersionsPolicy(10),
		bigtable.MaxAgePolicy(36 * time.Hour),
		bigtable.UnionPolicy(bigtable.MaxAgePolicy(7*24*time.Hour), bigtable.MaxVersionsPolicy(1)),
		bigtable.IntersectionPolicy(bigtable.MaxAgePolicy(2*time.Hour), bigtable.UnionPolicy(bigtable.MaxVersionsPolicy(2), bigtable.MaxAgePolicy(time.Hour))),
	} {
		p.no(admin.SetGCPolicyWithOptions(ctx, "orders", "f", policy, bigtable.IgnoreWarnings()))
		got := read()
		p.same(policy.String(), got.FullGCPolicy.String())
		p.same(bigtable.GetPolicyType(policy), bigtable.GetPolicyType(got.FullGCPolicy))
		if got.GCPolicy == "" {
			t.Errorf("%s has no text, which is the id of the resource", policy)
		}
	}
	p.no(admin.SetGCPolicy(ctx, "orders", "f", bigtable.NoGcPolicy()))
	p.same("", read().FullGCPolicy.String())
}

// google_bigtable_authorized_view
func TestTerraform_AuthorizedView(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create("f", "g")
	ctx, admin := t.Context(), p.tables()
	subset := &bigtable.SubsetViewConf{}
	subset.AddRowPrefix([]byte("ann"))
	subset.AddRowPrefix([]byte{0, 255})
	subset.AddFamilySubsetQualifier("f", []byte("total"))
	subset.AddFamilySubsetQualifierPrefix("g", []byte(""))
	conf := bigtable.AuthorizedViewConf{TableID: "orders", AuthorizedViewID: "part", AuthorizedView: subset, DeletionProtection: bigtable.Protected}
	read := func(want *bigtable.SubsetViewConf, protection bigtable.DeletionProtection) {
		t.Helper()
		info, err := admin.AuthorizedViewInfo(ctx, "orders", "part")
		p.no(err)
		got, ok := info.AuthorizedView.(*bigtable.SubsetViewInfo)
		if !ok {
			t.Fatalf("no subset view: %+v", info)
		}
		p.same([]any{want.RowPrefixes, want.FamilySubsets, protection}, []any{got.RowPrefixes, got.FamilySubsets, info.DeletionProtection})
	}
	p.no(admin.CreateAuthorizedView(ctx, &conf))
	read(subset, bigtable.Protected)
	if err := admin.DeleteAuthorizedView(ctx, "orders", "part"); err == nil {
		t.Fatal("a protected view was deleted")
	}
	other := &bigtable.SubsetViewConf{}
	other.AddRowPrefix([]byte("bob"))
	other.AddFamilySubsetQualifierPrefix("f", []byte("t"))
	for _, update := range []bigtable.AuthorizedViewConf{
		{TableID: "orders", AuthorizedViewID: "part", DeletionProtection: bigtable.Unprotected},
		{TableID: "orders", AuthorizedViewID: "part", AuthorizedView: other},
	} {
		p.no(admin.UpdateAuthorizedView(ctx, bigtable.UpdateAuthorizedViewConf{AuthorizedViewConf: update, IgnoreWarnings: true}))
		if update.AuthorizedView == nil {
			read(subset, bigtable.Unprotected)
		}
	}
	read(other, bigtable.Unprotected)
	p.no(admin.DeleteAuthorizedView(ctx, "orders", "part"))
	if _, err := admin.AuthorizedViewInfo(ctx, "orders", "part"); status.Code(err) != codes.NotFound {
		t.Errorf("a deleted view: %v", err)
	}
}

// google_bigtable_app_profile
func TestTerraform_AppProfile(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create()
	one := func(cluster string, transactions bool) map[string]any {
		routing := map[string]any{"clusterId": cluster}
		if transactions {
			routing["allowTransactionalWrites"] = true
		}
		return routing
	}
	high, low := map[string]any{"priority": "PRIORITY_HIGH"}, map[string]any{"priority": "PRIORITY_LOW"}
	p.must(http.MethodPost, "appProfiles?appProfileId=batch&ignoreWarnings=false", map[string]any{"description": "Batch", "singleClusterRouting": one("tf-cluster-a", true)})
	p.has("appProfiles/batch", map[string]any{"description": "Batch", "singleClusterRouting": one("tf-cluster-a", true), "multiClusterRoutingUseAny": nil, "standardIsolation": high})
	change := func(mask string, body map[string]any) {
		t.Helper()
		p.must(http.MethodPatch, "appProfiles/batch?ignoreWarnings=true&updateMask="+mask, body)
	}
	change("description,singleClusterRouting,standardIsolation", map[string]any{"description": "Other", "singleClusterRouting": one("tf-cluster-b", false), "standardIsolation": low})
	p.has("appProfiles/batch", map[string]any{"description": "Other", "singleClusterRouting": one("tf-cluster-b", false), "standardIsolation": low})
	// The mask names the description, which the configuration does not have any more.
	change("description,multiClusterRoutingUseAny", map[string]any{"multiClusterRoutingUseAny": map[string]any{"clusterIds": []string{"tf-cluster-a"}, "rowAffinity": map[string]any{}}, "standardIsolation": low})
	p.has("appProfiles/batch", map[string]any{
		"description": nil, "singleClusterRouting": nil, "standardIsolation": low,
		"multiClusterRoutingUseAny": map[string]any{"clusterIds": []any{"tf-cluster-a"}, "rowAffinity": map[string]any{}},
	})
	change("multiClusterRoutingUseAny", map[string]any{"multiClusterRoutingUseAny": map[string]any{}})
	p.has("appProfiles/batch", map[string]any{"multiClusterRoutingUseAny": map[string]any{}, "standardIsolation": low})
	boost := map[string]any{"computeBillingOwner": "HOST_PAYS"}
	change("singleClusterRouting,dataBoostIsolationReadOnly", map[string]any{"singleClusterRouting": one("tf-cluster-a", false), "dataBoostIsolationReadOnly": boost})
	p.has("appProfiles/batch", map[string]any{"singleClusterRouting": one("tf-cluster-a", false), "multiClusterRoutingUseAny": nil, "standardIsolation": nil, "dataBoostIsolationReadOnly": boost})
	p.must(http.MethodDelete, "appProfiles/batch?ignoreWarnings=true", nil)
	p.gone("appProfiles/batch")
}

// google_bigtable_logical_view and google_bigtable_materialized_view. The provider reads a view as
// soon as its creation has begun.
func TestTerraform_Views(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create("f")
	for _, kind := range []struct{ path, id, query, other string }{
		{"logicalViews", "logicalViewId", "SELECT _key, f['total'] AS total\nFROM `orders`\n", "SELECT _key FROM `orders`"},
		{"materializedViews", "materializedViewId", "SELECT _key, count(f['total']) AS totals\nFROM `orders`\nGROUP BY _key\n", ""},
	} {
		view := kind.path + "/daily"
		p.must(http.MethodPost, kind.path+"?"+kind.id+"=daily", map[string]any{"query": kind.query, "deletionProtection": true})
		p.has(view, map[string]any{"query": kind.query, "deletionProtection": true})
		if code, got := p.call(http.MethodDelete, view, nil); code == http.StatusOK {
			t.Fatalf("a protected view was deleted: %v", got)
		}
		query, mask, body := kind.query, "deletionProtection", map[string]any{"deletionProtection": false}
		if kind.other != "" {
			query, mask = kind.other, "query,deletionProtection"
			body["query"] = query
		}
		p.must(http.MethodPatch, view+"?updateMask="+mask, body)
		p.has(view, map[string]any{"query": query, "deletionProtection": nil})
		p.must(http.MethodDelete, view, nil)
		p.gone(view)
	}
}

// google_bigtable_schema_bundle
func TestTerraform_SchemaBundle(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create("f")
	descriptors := func(name string) map[string]any {
		t.Helper()
		file := protodesc.ToFileDescriptorProto(timestamppb.File_google_protobuf_timestamp_proto)
		file.Name, file.Package = proto.String(name+".proto"), proto.String(name)
		set, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
		p.no(err)
		return map[string]any{"protoDescriptors": base64.StdEncoding.EncodeToString(set)}
	}
	bundle := "tables/orders/schemaBundles/types"
	p.must(http.MethodPost, "tables/orders/schemaBundles?schemaBundleId=types", map[string]any{"protoSchema": descriptors("one")})
	p.has(bundle, map[string]any{"protoSchema": descriptors("one")})
	p.must(http.MethodPatch, bundle+"?ignoreWarnings=true&updateMask=protoSchema", map[string]any{"protoSchema": descriptors("two")})
	p.has(bundle, map[string]any{"protoSchema": descriptors("two")})
	p.must(http.MethodDelete, bundle, nil)
	p.gone(bundle)
}

// google_bigtable_instance_iam_member and google_bigtable_table_iam_member, with the resources of
// bindings and policies: all read a policy, change it, and set it with its etag.
func TestTerraform_IAM(t *testing.T) {
	t.Parallel()
	p := newGoogleProvider(t)
	p.create("f")
	service, err := bigtableadmin.NewService(t.Context(), option.WithHTTPClient(http.DefaultClient))
	p.no(err)
	service.BasePath = strings.TrimSuffix(p.endpoint, "v2/")
	instance := "projects/" + p.project + "/instances/" + p.instance
	get := &bigtableadmin.GetIamPolicyRequest{Options: &bigtableadmin.GetPolicyOptions{RequestedPolicyVersion: 3}}
	for _, of := range []struct {
		read func() (*bigtableadmin.Policy, error)
		set  func(*bigtableadmin.Policy) error
	}{
		{
			func() (*bigtableadmin.Policy, error) {
				return bigtableadmin.NewProjectsInstancesService(service).GetIamPolicy(instance, get).Do()
			},
			func(policy *bigtableadmin.Policy) error {
				_, err := bigtableadmin.NewProjectsInstancesService(service).SetIamPolicy(instance, &bigtableadmin.SetIamPolicyRequest{Policy: policy}).Do()
				return err
			},
		},
		{
			func() (*bigtableadmin.Policy, error) {
				return bigtableadmin.NewProjectsInstancesTablesService(service).GetIamPolicy(instance+"/tables/orders", get).Do()
			},
			func(policy *bigtableadmin.Policy) error {
				_, err := bigtableadmin.NewProjectsInstancesTablesService(service).SetIamPolicy(instance+"/tables/orders", &bigtableadmin.SetIamPolicyRequest{Policy: policy}).Do()
				return err
			},
		},
	} {
		bindings := []*bigtableadmin.Binding{{
			Role: "roles/bigtable.reader", Members: []string{"user:ann@example.com"},
			Condition: &bigtableadmin.Expr{Title: "until", Expression: `request.time < timestamp("2030-01-01T00:00:00Z")`},
		}, {Role: "roles/bigtable.user", Members: []string{"user:ann@example.com", "user:bob@example.com"}}}
		for _, want := range [][]*bigtableadmin.Binding{bindings, bindings[1:], nil} {
			policy, err := of.read()
			p.no(err)
			if policy.Etag == "" {
				t.Error("a policy without etag")
			}
			stale := policy.Etag
			policy.Bindings, policy.Version = want, 3
			p.no(of.set(policy))
			policy, err = of.read()
			p.no(err)
			slices.SortFunc(policy.Bindings, func(a, b *bigtableadmin.Binding) int { return strings.Compare(a.Role, b.Role) })
			p.same(want, policy.Bindings)
			policy.Etag = stale
			if err := of.set(policy); err == nil || !strings.Contains(err.Error(), "409") {
				t.Errorf("a stale etag: %v", err)
			}
		}
	}
}
