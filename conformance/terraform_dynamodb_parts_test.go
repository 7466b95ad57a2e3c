package conformance

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// newTable creates the table, on demand.
func (p *awsProvider) newTable() {
	p.Helper()
	_, err := p.db.CreateTable(p.Context(), &dynamodb.CreateTableInput{
		TableName: p.table, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema("pk", "sk"),
		AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "N")},
	})
	p.no(err)
	p.awaitTable()
}

// aws_dynamodb_table with restore_source_name, and with import_table
func TestTerraform_DynamoDBTableOfData(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	put(t, db, p.table, item{"pk": s("a"), "sk": n(1)})
	p.recover(35)
	_, err := db.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{
		SourceTableName: p.table, TargetTableName: aws.String("tf-restored"), UseLatestRestorableTime: aws.Bool(true), BillingModeOverride: types.BillingModePayPerRequest,
	})
	p.no(err)
	p.table = aws.String("tf-restored")
	p.awaitTable()
	want := &tableResource{
		Billing: types.BillingModePayPerRequest, Class: types.TableClassStandard, Hash: "pk", Range: "sk", Attributes: map[string]types.ScalarAttributeType{"pk": "S", "sk": "N"},
		Local: map[string]indexResource{}, Global: map[string]indexResource{}, Tags: map[string]string{},
	}
	p.same(want, p.read())

	out, err := db.ImportTable(ctx, &dynamodb.ImportTableInput{
		ClientToken: aws.String("terraform-20261129000000000000000001"), InputFormat: types.InputFormatCsv, InputCompressionType: types.InputCompressionTypeNone,
		S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("conformance"), S3KeyPrefix: aws.String("items.csv")},
		TableCreationParameters: &types.TableCreationParameters{
			TableName: aws.String("tf-imported"), BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema("pk", "sk"),
			AttributeDefinitions: []types.AttributeDefinition{attribute("pk", "S"), attribute("sk", "S")},
		},
	})
	p.no(err)
	p.await("the import", func() string {
		got, err := db.DescribeImport(ctx, &dynamodb.DescribeImportInput{ImportArn: out.ImportTableDescription.ImportArn})
		p.no(err)
		return string(got.ImportTableDescription.ImportStatus)
	}, "COMPLETED", "IN_PROGRESS")
	p.table, want.Attributes["sk"] = aws.String("tf-imported"), "S"
	p.awaitTable()
	p.same(want, p.read())
}

// aws_dynamodb_global_secondary_index
func TestTerraform_DynamoDBIndex(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	p.newTable()
	type warm struct{ reads, writes int64 }
	read := func() (maximum int64, w warm) {
		t.Helper()
		p.awaitTable()
		p.awaitIndex("by-color")
		i := p.index("by-color")
		if i.IndexArn == nil || i.Projection.ProjectionType != types.ProjectionTypeAll || len(i.KeySchema) != 2 {
			t.Errorf("index %+v", i)
		}
		maximum = -1
		if i.OnDemandThroughput != nil {
			maximum = aws.ToInt64(i.OnDemandThroughput.MaxReadRequestUnits)
		}
		return maximum, warm{aws.ToInt64(i.WarmThroughput.ReadUnitsPerSecond), aws.ToInt64(i.WarmThroughput.WriteUnitsPerSecond)}
	}
	limit := func(reads int64, writes *int64) *types.OnDemandThroughput {
		return &types.OnDemandThroughput{MaxReadRequestUnits: &reads, MaxWriteRequestUnits: writes}
	}
	change := func(change types.GlobalSecondaryIndexUpdate, definitions ...types.AttributeDefinition) {
		t.Helper()
		_, err := p.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{TableName: p.table, AttributeDefinitions: definitions, GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{change}})
		p.no(err)
	}
	change(types.GlobalSecondaryIndexUpdate{Create: &types.CreateGlobalSecondaryIndexAction{
		IndexName: aws.String("by-color"), KeySchema: keySchema("color", "sk"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll}, OnDemandThroughput: limit(20, nil),
		WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(13000), WriteUnitsPerSecond: aws.Int64(5000)},
	}}, append(p.described().AttributeDefinitions, attribute("color", "S"))...)
	reads, w := read()
	p.same([]any{int64(20), int64(13000), int64(5000)}, []any{reads, w.reads, w.writes})
	change(types.GlobalSecondaryIndexUpdate{Update: &types.UpdateGlobalSecondaryIndexAction{IndexName: aws.String("by-color"), OnDemandThroughput: limit(-1, aws.Int64(-1))}})
	p.awaitTable()
	p.awaitIndex("by-color")
	change(types.GlobalSecondaryIndexUpdate{Update: &types.UpdateGlobalSecondaryIndexAction{
		IndexName: aws.String("by-color"), WarmThroughput: &types.WarmThroughput{ReadUnitsPerSecond: aws.Int64(14000), WriteUnitsPerSecond: aws.Int64(6000)},
	}})
	reads, w = read()
	p.same([]any{int64(-1), int64(14000), int64(6000)}, []any{reads, w.reads, w.writes})
	p.dropIndex("by-color")
	p.awaitTable()
}

// aws_dynamodb_table_item
func TestTerraform_DynamoDBItem(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	create := func(it item) error {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{TableName: p.table, Item: it, Expected: map[string]types.ExpectedAttributeValue{"pk": {Exists: aws.Bool(false)}}})
		return err
	}
	key := func(sk int) item { return item{"pk": s("a"), "sk": n(sk)} }
	read := func(sk int) item {
		t.Helper()
		got, err := db.GetItem(ctx, &dynamodb.GetItemInput{TableName: p.table, Key: key(sk), ConsistentRead: aws.Bool(true)})
		p.no(err)
		return got.Item
	}
	first := item{"pk": s("a"), "sk": n(1), "text": s("one"), "list": list(n(1), s("x")), "old": n("1.50")}
	p.no(create(first))
	if diff := diffItems(item{"pk": s("a"), "sk": n(1), "text": s("one"), "list": list(n(1), s("x")), "old": n("1.5")}, read(1)); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if err := create(first); code(err) != "ConditionalCheckFailedException" {
		t.Errorf("an item that exists: %v", err)
	}
	// Another sort key: the new item is written first, then the old one is deleted.
	_, err := db.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: p.table, Key: key(2), AttributeUpdates: map[string]types.AttributeValueUpdate{
		"text": {Action: types.AttributeActionPut, Value: s("two")}, "old": {Action: types.AttributeActionDelete},
	}})
	p.no(err)
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: p.table, Key: key(1)})
	p.no(err)
	if diff := diffItems(item{"pk": s("a"), "sk": n(2), "text": s("two")}, read(2)); diff != "" || read(1) != nil {
		t.Errorf("moved (-want +got):\n%s\nthe old one: %v", diff, read(1))
	}
	_, err = db.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: p.table, Key: key(2)})
	p.no(err)
	if got := read(2); got != nil {
		t.Errorf("a deleted item: %v", got)
	}
}

// aws_dynamodb_tag
func TestTerraform_DynamoDBTag(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	p.newTable()
	arn := p.described().TableArn
	for _, value := range []string{"one", "two"} {
		_, err := p.db.TagResource(t.Context(), &dynamodb.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{{Key: aws.String("team"), Value: &value}}})
		p.no(err)
		p.same(map[string]string{"team": value}, p.tags(arn))
	}
	_, err := p.db.UntagResource(t.Context(), &dynamodb.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"team"}})
	p.no(err)
	p.same(map[string]string{}, p.tags(arn))
}

// aws_dynamodb_contributor_insights, of the table and of an index
func TestTerraform_DynamoDBInsights(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	p.update(&dynamodb.UpdateTableInput{
		AttributeDefinitions: append(p.described().AttributeDefinitions, attribute("color", "S")),
		GlobalSecondaryIndexUpdates: []types.GlobalSecondaryIndexUpdate{{Create: &types.CreateGlobalSecondaryIndexAction{
			IndexName: aws.String("by-color"), KeySchema: keySchema("color", "sk"), Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
		}}},
	})
	p.awaitIndex("by-color")
	for _, index := range []*string{nil, aws.String("by-color")} {
		status := func() string {
			out, err := db.DescribeContributorInsights(ctx, &dynamodb.DescribeContributorInsightsInput{TableName: p.table, IndexName: index})
			p.no(err)
			p.same([]any{*p.table, aws.ToString(index)}, []any{aws.ToString(out.TableName), aws.ToString(out.IndexName)})
			return string(out.ContributorInsightsStatus)
		}
		for _, action := range []types.ContributorInsightsAction{types.ContributorInsightsActionEnable, types.ContributorInsightsActionDisable} {
			_, err := db.UpdateContributorInsights(ctx, &dynamodb.UpdateContributorInsightsInput{TableName: p.table, IndexName: index, ContributorInsightsAction: action})
			p.no(err)
			if action == types.ContributorInsightsActionEnable {
				p.await("the insights", status, "ENABLED", "ENABLING")
			} else {
				p.await("the insights", status, "DISABLED", "DISABLING")
			}
		}
	}
}

// aws_dynamodb_kinesis_streaming_destination
func TestTerraform_DynamoDBKinesis(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	arn := aws.String("arn:aws:kinesis:us-east-1:000000000000:stream/changes")
	status := func() string {
		out, err := db.DescribeKinesisStreamingDestination(ctx, &dynamodb.DescribeKinesisStreamingDestinationInput{TableName: p.table})
		p.no(err)
		for _, d := range out.KinesisDataStreamDestinations {
			if *d.StreamArn == *arn {
				return fmt.Sprint(d.DestinationStatus, " ", d.ApproximateCreationDateTimePrecision)
			}
		}
		return ""
	}
	out, err := db.EnableKinesisStreamingDestination(ctx, &dynamodb.EnableKinesisStreamingDestinationInput{
		TableName: p.table, StreamArn: arn,
		EnableKinesisStreamingConfiguration: &types.EnableKinesisStreamingConfiguration{ApproximateCreationDateTimePrecision: types.ApproximateCreationDateTimePrecisionMillisecond},
	})
	p.no(err)
	p.same([]string{*p.table, *arn}, []string{aws.ToString(out.TableName), aws.ToString(out.StreamArn)})
	p.await("the destination", status, "ACTIVE MILLISECOND", "ENABLING MILLISECOND")
	_, err = db.DisableKinesisStreamingDestination(ctx, &dynamodb.DisableKinesisStreamingDestinationInput{TableName: p.table, StreamArn: arn})
	p.no(err)
	p.await("the destination", status, "DISABLED MILLISECOND", "ACTIVE MILLISECOND", "DISABLING MILLISECOND")
}

// aws_dynamodb_resource_policy, of the table and of its stream
func TestTerraform_DynamoDBPolicy(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	p.update(&dynamodb.UpdateTableInput{StreamSpecification: &types.StreamSpecification{StreamEnabled: aws.Bool(true), StreamViewType: types.StreamViewTypeKeysOnly}})
	d := p.described()
	for _, of := range []struct{ arn, action string }{{*d.TableArn, "dynamodb:GetItem"}, {*d.LatestStreamArn, "dynamodb:GetRecords"}} {
		policy := func() (text, revision string) {
			out, err := db.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: &of.arn})
			if code(err) == "PolicyNotFoundException" {
				return "", ""
			}
			p.no(err)
			return compact(aws.ToString(out.Policy)), aws.ToString(out.RevisionId)
		}
		revision := func() string {
			_, revision := policy()
			return revision
		}
		want := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::000000000000:root"},"Action":%q,"Resource":%q}]}`, of.action, of.arn)
		out, err := db.PutResourcePolicy(ctx, &dynamodb.PutResourcePolicyInput{ResourceArn: &of.arn, Policy: &want, ConfirmRemoveSelfResourceAccess: false})
		p.no(err)
		p.await("the policy's revision", revision, *out.RevisionId, "")
		text, _ := policy()
		p.same(compact(want), text)
		// The service rejects another change within 15 seconds, and the provider's client retries until then.
		_, err = db.DeleteResourcePolicy(ctx, &dynamodb.DeleteResourcePolicyInput{ResourceArn: &of.arn}, func(o *dynamodb.Options) { o.RetryMaxAttempts = 1 })
		if c := code(err); c != "" && c != "ThrottlingException" {
			t.Errorf("a deletion: %v", err)
		}
	}
}

// aws_dynamodb_table_export
func TestTerraform_DynamoDBExport(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	ctx, db := t.Context(), p.db
	p.newTable()
	put(t, db, p.table, item{"pk": s("a"), "sk": n(1)})
	p.recover(35)
	out, err := db.ExportTableToPointInTime(ctx, &dynamodb.ExportTableToPointInTimeInput{
		S3Bucket: aws.String("conformance"), S3Prefix: aws.String("tf"), TableArn: p.described().TableArn, ExportFormat: types.ExportFormatDynamodbJson, S3SseAlgorithm: types.S3SseAlgorithmAes256,
	})
	p.no(err)
	var got *types.ExportDescription
	p.await("the export", func() string {
		out, err := db.DescribeExport(ctx, &dynamodb.DescribeExportInput{ExportArn: out.ExportDescription.ExportArn})
		p.no(err)
		got = out.ExportDescription
		return string(got.ExportStatus)
	}, "COMPLETED", "IN_PROGRESS")
	p.same([]any{"conformance", "tf", types.S3SseAlgorithmAes256, types.ExportFormatDynamodbJson, int64(1)},
		[]any{aws.ToString(got.S3Bucket), aws.ToString(got.S3Prefix), got.S3SseAlgorithm, got.ExportFormat, aws.ToInt64(got.ItemCount)})
	if got.StartTime == nil || got.EndTime == nil || got.ExportTime == nil || aws.ToString(got.ExportManifest) == "" || got.BilledSizeBytes == nil {
		t.Errorf("attributes of the export are missing: %+v", got)
	}
}

// aws_dynamodb_table with replica, aws_dynamodb_table_replica and aws_dynamodb_global_table are refused:
// there is one region.
func TestTerraform_DynamoDBReplicas(t *testing.T) {
	t.Parallel()
	p := newAWSProvider(t)
	p.newTable()
	_, err := p.db.UpdateTable(t.Context(), &dynamodb.UpdateTableInput{
		TableName: p.table, ReplicaUpdates: []types.ReplicationGroupUpdate{{Create: &types.CreateReplicationGroupMemberAction{RegionName: aws.String("eu-west-1")}}},
	})
	if code(err) != "ValidationException" {
		t.Errorf("a replica: %v", err)
	}
	if d := p.described(); len(d.Replicas) != 0 {
		t.Errorf("replicas %+v", d.Replicas)
	}
}
