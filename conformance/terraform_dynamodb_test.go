package conformance

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
)

// The tests below make the calls of the resources of Terraform's AWS provider, in their order. After
// each change a test reads the attributes that the provider reads: a difference from the
// configuration would be a plan that is never empty. The server delays states, so the waits meet
// those that a resource passes through.
//
// The order of the calls is that of hashicorp/terraform-provider-aws as of July 2025, for global
// secondary indexes of their own as of 2026.

// awsProvider is the provider's connection, and the table of a test.
type awsProvider struct {
	*testing.T
	db    *dynamodb.Client
	table *string
}

func newAWSProvider(t *testing.T) *awsProvider {
	t.Helper()
	buckets := t.TempDir()
	if err := writeBucket(buckets); err != nil {
		t.Fatal(err)
	}
	srv, err := serve("--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--buckets", buckets, "--table-delay", "20ms")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := srv.stop(); err != nil {
			t.Errorf("stopping the server: %v", err)
		}
	})
	return &awsProvider{T: t, db: dynamoDBClientOf(t, srv, new(recorder)), table: aws.String("tf-orders")}
}

func (p *awsProvider) no(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// same compares what a resource has with its configuration.
func (p *awsProvider) same(want, got any) {
	p.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		p.Errorf("(-configured +read):\n%s", diff)
	}
}

// await reads a status until it is the target. Like the provider, it fails at a status that is
// not expected on the way there.
func (p *awsProvider) await(what string, status func() string, target string, pending ...string) {
	p.Helper()
	for {
		switch got := status(); {
		case got == target:
			return
		case !slices.Contains(pending, got):
			p.Fatalf("%s has the status %q, want %q after any of %q", what, got, target, pending)
		}
	}
}

// described returns the table, or nil if it does not exist.
func (p *awsProvider) described() *types.TableDescription {
	p.Helper()
	out, err := p.db.DescribeTable(p.Context(), &dynamodb.DescribeTableInput{TableName: p.table})
	if code(err) == "ResourceNotFoundException" {
		return nil
	}
	p.no(err)
	return out.Table
}

func (p *awsProvider) tableStatus() string {
	p.Helper()
	if d := p.described(); d != nil {
		return string(d.TableStatus)
	}
	return ""
}

// index returns an index of the table, or nil if it does not exist.
func (p *awsProvider) index(name string) *types.GlobalSecondaryIndexDescription {
	p.Helper()
	d := p.described()
	for i := range d.GlobalSecondaryIndexes {
		if *d.GlobalSecondaryIndexes[i].IndexName == name {
			return &d.GlobalSecondaryIndexes[i]
		}
	}
	return nil
}

func (p *awsProvider) indexStatus(name string) string {
	p.Helper()
	if i := p.index(name); i != nil {
		return string(i.IndexStatus)
	}
	return ""
}

// awaitTable waits until two readings in a row are ACTIVE.
func (p *awsProvider) awaitTable() {
	p.Helper()
	for range 2 {
		p.await("the table", p.tableStatus, "ACTIVE", "CREATING", "UPDATING")
	}
	p.await("the table's warm throughput", func() string { return string(p.described().WarmThroughput.Status) }, "ACTIVE", "CREATING", "UPDATING")
}

func (p *awsProvider) awaitIndex(name string) {
	p.Helper()
	p.await("index "+name, func() string { return p.indexStatus(name) }, "ACTIVE", "CREATING", "UPDATING")
	p.await("the warm throughput of index "+name, func() string { return string(p.index(name).WarmThroughput.Status) }, "ACTIVE", "CREATING", "UPDATING")
}

// update changes the table, and waits for it.
func (p *awsProvider) update(in *dynamodb.UpdateTableInput) {
	p.Helper()
	in.TableName = p.table
	_, err := p.db.UpdateTable(p.Context(), in)
	p.no(err)
	p.awaitTable()
}

// dropIndex deletes an index, and waits only for that.
func (p *awsProvider) dropIndex(name string) {
	p.Helper()
	_, err := p.db.UpdateTable(p.Context(), &dynamodb.UpdateTableInput{
		TableName: p.table, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Delete: &types.DeleteGlobalSecondaryIndexAction{IndexName: &name}}},
	})
	p.no(err)
	p.await("index "+name, func() string { return p.indexStatus(name) }, "", "ACTIVE", "DELETING", "UPDATING")
}

func (p *awsProvider) expire(name string, enabled bool) {
	p.Helper()
	_, err := p.db.UpdateTimeToLive(p.Context(), &dynamodb.UpdateTimeToLiveInput{
		TableName: p.table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: &name, Enabled: &enabled},
	})
	p.no(err)
	target, pending := "DISABLED", []string{"ENABLED", "DISABLING"}
	if enabled {
		target, pending = "ENABLED", []string{"DISABLED", "ENABLING"}
	}
	p.await("the time to live", func() string { return string(p.timeToLive().TimeToLiveStatus) }, target, pending...)
}

func (p *awsProvider) timeToLive() *types.TimeToLiveDescription {
	p.Helper()
	out, err := p.db.DescribeTimeToLive(p.Context(), &dynamodb.DescribeTimeToLiveInput{TableName: p.table})
	p.no(err)
	return out.TimeToLiveDescription
}

// recover sets point-in-time recovery; 0 days turn it off.
func (p *awsProvider) recover(days int32) {
	p.Helper()
	spec := &types.PointInTimeRecoverySpecification{PointInTimeRecoveryEnabled: aws.Bool(days > 0)}
	target, pending := "DISABLED", []string(nil)
	if days > 0 {
		spec.RecoveryPeriodInDays = &days
		target, pending = "ENABLED", []string{"DISABLED", "ENABLING"}
	}
	for {
		_, err := p.db.UpdateContinuousBackups(p.Context(), &dynamodb.UpdateContinuousBackupsInput{TableName: p.table, PointInTimeRecoverySpecification: spec})
		if code(err) == "ContinuousBackupsUnavailableException" && strings.Contains(err.Error(), "Backups are being enabled") {
			continue // as the provider does for a new table
		}
		p.no(err)
		break
	}
	p.await("the recovery", func() string { return string(p.recovery().PointInTimeRecoveryStatus) }, target, pending...)
}

func (p *awsProvider) recovery() *types.PointInTimeRecoveryDescription {
	p.Helper()
	out, err := p.db.DescribeContinuousBackups(p.Context(), &dynamodb.DescribeContinuousBackupsInput{TableName: p.table})
	p.no(err)
	return out.ContinuousBackupsDescription.PointInTimeRecoveryDescription
}

func (p *awsProvider) tags(arn *string) map[string]string {
	p.Helper()
	got := map[string]string{}
	for in := (&dynamodb.ListTagsOfResourceInput{ResourceArn: arn}); ; {
		page, err := p.db.ListTagsOfResource(p.Context(), in)
		p.no(err)
		for _, tag := range page.Tags {
			got[*tag.Key] = *tag.Value
		}
		if in.NextToken = page.NextToken; in.NextToken == nil {
			break
		}
	}
	return got
}

// tableResource is a table's attributes in Terraform's state.
type tableResource struct {
	Billing      types.BillingMode
	Read, Write  int64
	MaxReads     int64 // on demand; 0 without a limit
	Class        types.TableClass
	Protected    bool
	Hash, Range  string
	Attributes   map[string]types.ScalarAttributeType
	Local        map[string]indexResource
	Global       map[string]indexResource
	Stream       types.StreamViewType // "" without a stream
	Encrypted    bool
	Expiry       string // the attribute of the time to live
	RecoveryDays int32
	Tags         map[string]string
}

type indexResource struct {
	Hash, Range string
	Read, Write int64
	MaxReads    int64
	Projection  types.ProjectionType
	Include     string
}

// read returns the attributes, from the calls that the provider makes for each plan.
func (p *awsProvider) read() *tableResource {
	p.Helper()
	d := p.described()
	got := &tableResource{
		Billing: types.BillingModeProvisioned, Class: types.TableClassStandard, Protected: aws.ToBool(d.DeletionProtectionEnabled),
		Attributes: map[string]types.ScalarAttributeType{}, Local: map[string]indexResource{}, Global: map[string]indexResource{},
	}
	key := func(schema []types.KeySchemaElement) (hash, sort string) {
		for _, e := range schema {
			if e.KeyType == types.KeyTypeHash {
				hash = *e.AttributeName
			} else {
				sort = *e.AttributeName
			}
		}
		return hash, sort
	}
	names := func(projection *types.Projection) string {
		return strings.Join(slices.Sorted(slices.Values(projection.NonKeyAttributes)), " ")
	}
	if d.BillingModeSummary != nil {
		got.Billing = d.BillingModeSummary.BillingMode
	}
	if d.TableClassSummary != nil {
		got.Class = d.TableClassSummary.TableClass
	}
	if d.OnDemandThroughput != nil {
		got.MaxReads = aws.ToInt64(d.OnDemandThroughput.MaxReadRequestUnits)
	}
	got.Read, got.Write = aws.ToInt64(d.ProvisionedThroughput.ReadCapacityUnits), aws.ToInt64(d.ProvisionedThroughput.WriteCapacityUnits)
	got.Hash, got.Range = key(d.KeySchema)
	for _, a := range d.AttributeDefinitions {
		got.Attributes[*a.AttributeName] = a.AttributeType
	}
	for _, x := range d.LocalSecondaryIndexes {
		hash, sort := key(x.KeySchema)
		got.Local[*x.IndexName] = indexResource{Hash: hash, Range: sort, Projection: x.Projection.ProjectionType, Include: names(x.Projection)}
	}
	for _, x := range d.GlobalSecondaryIndexes {
		if x.ProvisionedThroughput == nil {
			p.Fatalf("index %s has no throughput: the provider then reads no name", *x.IndexName)
		}
		hash, sort := key(x.KeySchema)
		one := indexResource{Hash: hash, Range: sort, Projection: x.Projection.ProjectionType, Include: names(x.Projection)}
		one.Read, one.Write = aws.ToInt64(x.ProvisionedThroughput.ReadCapacityUnits), aws.ToInt64(x.ProvisionedThroughput.WriteCapacityUnits)
		if x.OnDemandThroughput != nil {
			one.MaxReads = aws.ToInt64(x.OnDemandThroughput.MaxReadRequestUnits)
		}
		got.Global[*x.IndexName] = one
	}
	if d.StreamSpecification != nil && aws.ToBool(d.StreamSpecification.StreamEnabled) {
		got.Stream = d.StreamSpecification.StreamViewType
		if aws.ToString(d.LatestStreamArn) == "" || aws.ToString(d.LatestStreamLabel) == "" {
			p.Error("the stream has no ARN or label")
		}
	}
	got.Encrypted = d.SSEDescription != nil && d.SSEDescription.Status == types.SSEStatusEnabled
	if r := p.recovery(); r.PointInTimeRecoveryStatus == types.PointInTimeRecoveryStatusEnabled {
		got.RecoveryDays = aws.ToInt32(r.RecoveryPeriodInDays)
	}
	if ttl := p.timeToLive(); ttl.TimeToLiveStatus == types.TimeToLiveStatusEnabled {
		got.Expiry = aws.ToString(ttl.AttributeName)
	}
	got.Tags = p.tags(d.TableArn)
	return got
}

// definitions is the set of attributes that each creation of an index sends.
func (r *tableResource) definitions() (all []types.AttributeDefinition) {
	for _, name := range slices.Sorted(maps.Keys(r.Attributes)) {
		all = append(all, attribute(name, r.Attributes[name]))
	}
	return all
}

func units(n int64) *types.ProvisionedThroughput {
	return &types.ProvisionedThroughput{ReadCapacityUnits: &n, WriteCapacityUnits: &n}
}

// aws_dynamodb_table
func TestTerraform_DynamoDBTable(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	want := &tableResource{
		Billing: types.BillingModeProvisioned, Read: 2, Write: 2, Class: types.TableClassStandard, Protected: true, Hash: "pk", Range: "sk",
		Attributes: map[string]types.ScalarAttributeType{"pk": "S", "sk": "N", "color": "S", "size": "N"},
		Local:      map[string]indexResource{"by-size": {Hash: "pk", Range: "size", Projection: types.ProjectionTypeKeysOnly}},
		Global:     map[string]indexResource{"by-color": {Hash: "color", Range: "size", Read: 1, Write: 1, Projection: types.ProjectionTypeInclude, Include: "name text"}},
		Stream:     types.StreamViewTypeNewImage, Encrypted: true, Expiry: "ends", RecoveryDays: 7, Tags: map[string]string{"team": "shop", "empty": ""},
	}
	_, err := db.CreateTable(ctx, &dynamodb.CreateTableInput{
		TableName: p.table, BillingMode: want.Billing, ProvisionedThroughput: units(2), KeySchema: keySchema("pk", "sk"), AttributeDefinitions: want.definitions(),
		LocalSecondaryIndexes: []types.LocalSecondaryIndex{{
			IndexName: aws.String("by-size"), KeySchema: keySchema("pk", "size"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
		}},
		GlobalSecondaryIndexes: []types.GlobalSecondaryIndex{{
			IndexName: aws.String("by-color"), KeySchema: keySchema("color", "size"), ProvisionedThroughput: units(1),
			Projection: &types.Projection{ProjectionType: types.ProjectionTypeInclude, NonKeyAttributes: []string{"text", "name"}},
		}},
		DeletionProtectionEnabled: aws.Bool(true), TableClass: want.Class, SSESpecification: &types.SSESpecification{Enabled: aws.Bool(true)},
		StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: want.Stream},
		Tags:                []types.Tag{{Key: aws.String("team"), Value: aws.String("shop")}, {Key: aws.String("empty"), Value: aws.String("")}},
	})
	p.no(err)
	p.awaitTable()
	p.awaitIndex("by-color")
	p.expire("ends", true)
	p.recover(7)
	p.same(want, p.read())

	// Another index in place of the first one, with another attribute.
	delete(want.Attributes, "color")
	want.Attributes["shape"] = "B"
	want.Global = map[string]indexResource{
		"by-shape": {Hash: "shape", Read: 3, Write: 3, Projection: types.ProjectionTypeAll},
		"by-order": {Hash: "sk", Range: "pk", Read: 1, Write: 1, Projection: types.ProjectionTypeAll},
	}
	p.dropIndex("by-color")
	for name, schema := range map[string][]types.KeySchemaElement{"by-shape": keySchema("shape", "")[:1], "by-order": keySchema("sk", "pk")} {
		_, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{
			TableName: p.table, AttributeDefinitions: want.definitions(),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
				IndexName: &name, KeySchema: schema, ProvisionedThroughput: units(want.Global[name].Read), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
			}}},
		})
		p.no(err)
		p.awaitIndex(name)
	}
	p.same(want, p.read())

	// An attribute of the index alone is removed with it.
	delete(want.Attributes, "shape")
	delete(want.Global, "by-shape")
	p.dropIndex("by-shape")
	p.same(want, p.read())

	// The class changes alone, before all else.
	want.Class = types.TableClassStandardInfrequentAccess
	p.update(&dynamodb.UpdateTableInput{TableClass: want.Class})
	p.same(want, p.read())

	// Capacity of the table and of its index, in one request.
	index := want.Global["by-order"]
	capacity := func(billing types.BillingMode, table, of int64) *dynamodb.UpdateTableInput {
		want.Billing, want.Read, want.Write, index.Read, index.Write = billing, table, table, of, of
		want.Global["by-order"] = index
		return &dynamodb.UpdateTableInput{
			BillingMode: billing, ProvisionedThroughput: units(table),
			GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: aws.String("by-order"), ProvisionedThroughput: units(of)}}},
		}
	}
	p.update(capacity(types.BillingModeProvisioned, 5, 4))
	p.awaitIndex("by-order")
	p.same(want, p.read())

	// On demand, with a limit later, and provisioned again.
	capacity(types.BillingModePayPerRequest, 0, 0)
	p.update(&dynamodb.UpdateTableInput{BillingMode: want.Billing})
	p.same(want, p.read())
	index.MaxReads, want.MaxReads = 60, 50
	want.Global["by-order"] = index
	p.update(&dynamodb.UpdateTableInput{
		OnDemandThroughput: &types.OnDemandThroughput{MaxReadRequestUnits: &want.MaxReads},
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Update: &types.UpdateGlobalSecondaryIndexAction{
			IndexName: aws.String("by-order"), OnDemandThroughput: &types.OnDemandThroughput{MaxReadRequestUnits: &index.MaxReads},
		}}},
	})
	p.awaitIndex("by-order")
	p.same(want, p.read())
	index.MaxReads, want.MaxReads = 0, 0
	p.update(capacity(types.BillingModeProvisioned, 1, 1))
	p.awaitIndex("by-order")
	p.same(want, p.read())

	// Another view type: the stream is turned off and on again.
	for _, view := range []types.StreamViewType{"", types.StreamViewTypeNewAndOldImages, ""} {
		want.Stream = view
		p.update(&dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(view != ""), StreamViewType: view}})
		p.same(want, p.read())
	}

	for _, on := range []bool{false, true} {
		want.Encrypted = on
		_, err := db.UpdateTable(ctx, &dynamodb.UpdateTableInput{TableName: p.table, SSESpecification: &types.SSESpecification{Enabled: &on}})
		p.no(err)
		settled := types.SSEStatusDisabled
		if on {
			settled = types.SSEStatusEnabled
		}
		for range 2 {
			p.await("the encryption", func() string {
				if d := p.described().SSEDescription; d != nil {
					return string(d.Status)
				}
				return string(types.SSEStatusDisabled)
			}, string(settled), "ENABLING", "DISABLING", "UPDATING")
		}
		p.same(want, p.read())
	}

	want.Tags = map[string]string{"team": "stock", "cost": "7"}
	arn := p.described().TableArn
	_, err = db.UntagResource(ctx, &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"empty"}})
	p.no(err)
	_, err = db.TagResource(ctx, &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("stock")}, {Key: aws.String("cost"), Value: aws.String("7")}}})
	p.no(err)
	for _, days := range []int32{35, 0} {
		want.RecoveryDays = days
		p.recover(days)
		p.same(want, p.read())
	}

	remove := func() error {
		_, err := db.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: p.table})
		return err
	}
	if err := remove(); code(err) != "ValidationException" {
		t.Fatalf("the deletion of a protected table: %v", err)
	}
	want.Protected = false
	p.update(&dynamodb.UpdateTableInput{DeletionProtectionEnabled: aws.Bool(false)})
	p.same(want, p.read())
	p.no(remove())
	p.await("the table", p.tableStatus, "", "ACTIVE", "DELETING")
	if err := remove(); code(err) != "ResourceNotFoundException" || !strings.Contains(err.Error(), "Requested resource not found: Table: ") {
		t.Errorf("the provider does not take this for a deleted table: %v", err)
	}
}
