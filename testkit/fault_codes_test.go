package testkit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"
	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	lab "github.com/tabletop-emu/tabletop/control/lab/dynamodb"
	"github.com/tabletop-emu/tabletop/internal/test/faketb"
	"github.com/tabletop-emu/tabletop/testkit"
)

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// coded reports whether an error without a type in the API model has a code.
func coded(code string) func(error) bool {
	return func(err error) bool { return errorCode(err) == code }
}

// The client of every code gets its error, with a text.
func TestFailDynamoDB_Codes(t *testing.T) {
	t.Parallel()
	env := testkit.Start(t)
	ctx, db := t.Context(), oneShot(env)
	streams := dynamodbstreams.New(dynamodbstreams.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(env.DynamoDBURL()),
		Credentials: credentials.NewStaticCredentialsProvider("tabletop", "tabletop", ""), Retryer: aws.NopRetryer{},
	})
	const arn = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"
	key := item{"id": text("1")}
	calls := map[string]func() error{
		"CreateBackup": func() error {
			_, err := db.CreateBackup(ctx, &dynamodb.CreateBackupInput{TableName: aws.String("orders"), BackupName: aws.String("backup")})
			return err
		},
		"CreateGlobalTable": func() error {
			_, err := db.CreateGlobalTable(ctx, &dynamodb.CreateGlobalTableInput{GlobalTableName: aws.String("orders"), ReplicationGroup: []types.Replica{}})
			return err
		},
		"CreateTable": func() error { return createColors(ctx, db, "orders") },
		"DescribeBackup": func() error {
			_, err := db.DescribeBackup(ctx, &dynamodb.DescribeBackupInput{BackupArn: aws.String(arn + "/backup/1")})
			return err
		},
		"DescribeExport": func() error {
			_, err := db.DescribeExport(ctx, &dynamodb.DescribeExportInput{ExportArn: aws.String(arn + "/export/1")})
			return err
		},
		"DescribeGlobalTable": func() error {
			_, err := db.DescribeGlobalTable(ctx, &dynamodb.DescribeGlobalTableInput{GlobalTableName: aws.String("orders")})
			return err
		},
		"DescribeImport": func() error {
			_, err := db.DescribeImport(ctx, &dynamodb.DescribeImportInput{ImportArn: aws.String(arn + "/import/1")})
			return err
		},
		"ExecuteStatement": func() error {
			_, err := db.ExecuteStatement(ctx, &dynamodb.ExecuteStatementInput{Statement: aws.String("INSERT INTO orders VALUE {'id': '1'}")})
			return err
		},
		"ExportTableToPointInTime": func() error {
			_, err := db.ExportTableToPointInTime(ctx, &dynamodb.ExportTableToPointInTimeInput{TableArn: aws.String(arn), S3Bucket: aws.String("bucket")})
			return err
		},
		"GetRecords": func() error {
			_, err := streams.GetRecords(ctx, &dynamodbstreams.GetRecordsInput{ShardIterator: aws.String("iterator")})
			return err
		},
		"GetResourcePolicy": func() error {
			_, err := db.GetResourcePolicy(ctx, &dynamodb.GetResourcePolicyInput{ResourceArn: aws.String(arn)})
			return err
		},
		"ImportTable": func() error {
			_, err := db.ImportTable(ctx, &dynamodb.ImportTableInput{
				InputFormat: types.InputFormatCsv, S3BucketSource: &types.S3BucketSource{S3Bucket: aws.String("bucket")},
				TableCreationParameters: &types.TableCreationParameters{
					TableName: aws.String("orders"), AttributeDefinitions: []types.AttributeDefinition{}, KeySchema: []types.KeySchemaElement{},
				},
			})
			return err
		},
		"PutItem": func() error { return putColor(ctx, db, "orders", "1") },
		"RestoreTableToPointInTime": func() error {
			_, err := db.RestoreTableToPointInTime(ctx, &dynamodb.RestoreTableToPointInTimeInput{SourceTableName: aws.String("orders"), TargetTableName: aws.String("copy")})
			return err
		},
		"TransactWriteItems": func() error {
			_, err := db.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
				{Put: &types.Put{TableName: aws.String("orders"), Item: key}},
			}})
			return err
		},
		"UpdateGlobalTable": func() error {
			_, err := db.UpdateGlobalTable(ctx, &dynamodb.UpdateGlobalTableInput{GlobalTableName: aws.String("orders"), ReplicaUpdates: []types.ReplicaUpdate{}})
			return err
		},
		"UpdateGlobalTableSettings": func() error {
			_, err := db.UpdateGlobalTableSettings(ctx, &dynamodb.UpdateGlobalTableSettingsInput{GlobalTableName: aws.String("orders")})
			return err
		},
	}
	cases := map[testkit.DynamoDBFailure]struct {
		operation string
		is        func(error) bool
		text      string // a part of it
	}{
		testkit.AccessDenied:                    {"PutItem", coded("AccessDeniedException"), "dynamodb:PutItem on resource: " + arn},
		testkit.BackupInUse:                     {"CreateBackup", is[*types.BackupInUseException], "orders"},
		testkit.BackupNotFound:                  {"DescribeBackup", is[*types.BackupNotFoundException], arn + "/backup/1"},
		testkit.ConditionalCheckFailed:          {"PutItem", is[*types.ConditionalCheckFailedException], "The conditional request failed"},
		testkit.ContinuousBackupsUnavailable:    {"CreateBackup", is[*types.ContinuousBackupsUnavailableException], "orders"},
		testkit.DuplicateItem:                   {"ExecuteStatement", is[*types.DuplicateItemException], "Duplicate primary key"},
		testkit.ExpiredIterator:                 {"GetRecords", is[*streamtypes.ExpiredIteratorException], "expired"},
		testkit.ExpiredToken:                    {"PutItem", coded("ExpiredTokenException"), "The security token included in the request is expired"},
		testkit.ExportConflict:                  {"ExportTableToPointInTime", is[*types.ExportConflictException], "Export conflict"},
		testkit.ExportNotFound:                  {"DescribeExport", is[*types.ExportNotFoundException], arn + "/export/1"},
		testkit.GlobalTableAlreadyExists:        {"CreateGlobalTable", is[*types.GlobalTableAlreadyExistsException], "already exists"},
		testkit.GlobalTableNotFound:             {"DescribeGlobalTable", is[*types.GlobalTableNotFoundException], "'orders'"},
		testkit.IdempotentParameterMismatch:     {"TransactWriteItems", is[*types.IdempotentParameterMismatchException], "ClientRequestToken"},
		testkit.ImportConflict:                  {"ImportTable", is[*types.ImportConflictException], "Import conflict"},
		testkit.ImportNotFound:                  {"DescribeImport", is[*types.ImportNotFoundException], arn + "/import/1"},
		testkit.IncompleteSignature:             {"PutItem", coded("IncompleteSignatureException"), "requires 'Signature' parameter"},
		testkit.IndexNotFound:                   {"UpdateGlobalTableSettings", is[*types.IndexNotFoundException], "index"},
		testkit.InternalServerError:             {"PutItem", is[*types.InternalServerError], "request processing has failed"},
		testkit.InvalidEndpoint:                 {"PutItem", is[*types.InvalidEndpointException], "endpoint"},
		testkit.InvalidExportTime:               {"ExportTableToPointInTime", is[*types.InvalidExportTimeException], "Export Time is invalid"},
		testkit.InvalidRestoreTime:              {"RestoreTableToPointInTime", is[*types.InvalidRestoreTimeException], "must be within EarliestRestorableDateTime"},
		testkit.InvalidSignature:                {"PutItem", coded("InvalidSignatureException"), "signature we calculated"},
		testkit.ItemCollectionSizeLimitExceeded: {"PutItem", is[*types.ItemCollectionSizeLimitExceededException], "Collection size exceeded."},
		testkit.LimitExceeded:                   {"CreateTable", is[*types.LimitExceededException], "limit of 2500 tables"},
		testkit.MissingAuthenticationToken:      {"PutItem", coded("MissingAuthenticationTokenException"), "missing Authentication Token"},
		testkit.PointInTimeRecoveryUnavailable:  {"RestoreTableToPointInTime", is[*types.PointInTimeRecoveryUnavailableException], "'orders'"},
		testkit.PolicyNotFound:                  {"GetResourcePolicy", is[*types.PolicyNotFoundException], arn},
		testkit.ProvisionedThroughputExceeded:   {"PutItem", is[*types.ProvisionedThroughputExceededException], "provisioned throughput"},
		testkit.ReplicaAlreadyExists:            {"UpdateGlobalTable", is[*types.ReplicaAlreadyExistsException], "replica"},
		testkit.ReplicaNotFound:                 {"UpdateGlobalTable", is[*types.ReplicaNotFoundException], "replica"},
		testkit.ReplicatedWriteConflict:         {"PutItem", is[*types.ReplicatedWriteConflictException], "another Region"},
		testkit.RequestEntityTooLarge:           {"PutItem", coded("RequestEntityTooLargeException"), "bytes"},
		testkit.RequestLimitExceeded:            {"PutItem", is[*types.RequestLimitExceeded], "throughput limit for your account"},
		testkit.ResourceInUse:                   {"CreateTable", is[*types.ResourceInUseException], "Table already exists: orders"},
		testkit.ResourceNotFound:                {"PutItem", is[*types.ResourceNotFoundException], "Requested resource not found"},
		testkit.Serialization:                   {"PutItem", coded("SerializationException"), "Unexpected token"},
		testkit.ServiceUnavailable:              {"PutItem", coded("ServiceUnavailable"), "unavailable"},
		testkit.TableAlreadyExists:              {"RestoreTableToPointInTime", is[*types.TableAlreadyExistsException], "copy"},
		testkit.TableInUse:                      {"CreateBackup", is[*types.TableInUseException], "orders"},
		testkit.TableNotFound:                   {"CreateBackup", is[*types.TableNotFoundException], "Table not found: orders"},
		testkit.Throttling:                      {"PutItem", is[*types.ThrottlingException], "Throughput exceeds the current capacity of your table"},
		testkit.TransactionCanceled:             {"TransactWriteItems", is[*types.TransactionCanceledException], "[TransactionConflict]"},
		testkit.TransactionConflict:             {"PutItem", is[*types.TransactionConflictException], "Transaction is ongoing"},
		testkit.TransactionInProgress:           {"TransactWriteItems", is[*types.TransactionInProgressException], "in progress"},
		testkit.TrimmedDataAccess:               {"GetRecords", is[*streamtypes.TrimmedDataAccessException], "trimmed"},
		testkit.UnknownOperation:                {"PutItem", coded("UnknownOperationException"), ""},
		testkit.UnrecognizedClient:              {"PutItem", coded("UnrecognizedClientException"), "security token"},
		testkit.Validation:                      {"PutItem", coded("ValidationException"), "key element"},
	}
	for _, info := range lab.Failures() {
		c, ok := cases[testkit.DynamoDBFailure(info.Name)]
		if !ok {
			t.Errorf("no case shows %s", info.Name)
			continue
		}
		for _, code := range []string{info.Name, info.Name + "Exception"} {
			fault := env.FailDynamoDB(c.operation, testkit.DynamoDBFailure(code))
			err := calls[c.operation]()
			said := ""
			if api, ok := errors.AsType[smithy.APIError](err); ok {
				said = api.ErrorMessage()
			}
			if !c.is(err) || !strings.Contains(said, c.text) || strings.Contains(said, "%") {
				t.Errorf("%s of %s: %v", code, c.operation, err)
			}
			fault.Remove()
		}
	}
	if got := len(lab.Failures()); got != len(cases) {
		t.Errorf("there are %d failures and %d cases", got, len(cases))
	}
}

// A failed condition returns the item to a request that asks for it.
func TestFailDynamoDB_Condition(t *testing.T) {
	t.Parallel()
	env, seed := startItems(t)
	ctx, db := t.Context(), oneShot(env)
	want := item{"id": text("1"), "color": text("red")}
	if err := putColor(ctx, seed, "a-table", "1"); err != nil {
		t.Fatal(err)
	}
	env.FailDynamoDB("*", testkit.ConditionalCheckFailed, testkit.WithMessage("ours"))
	put := func(id string, asks types.ReturnValuesOnConditionCheckFailure) error {
		_, err := db.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: aws.String("a-table"), Item: item{"id": text(id), "color": text("blue")}, ReturnValuesOnConditionCheckFailure: asks,
		})
		return err
	}
	same := cmpopts.IgnoreUnexported(types.AttributeValueMemberS{})
	for name, c := range map[string]struct {
		err  error
		want item
	}{
		"asked":            {put("1", types.ReturnValuesOnConditionCheckFailureAllOld), want},
		"not asked":        {put("1", ""), nil},
		"no item":          {put("2", types.ReturnValuesOnConditionCheckFailureAllOld), nil},
		"an item of a key": {deleteColor(ctx, db, types.ReturnValuesOnConditionCheckFailureAllOld), want},
	} {
		failed, ok := errors.AsType[*types.ConditionalCheckFailedException](c.err)
		if !ok || failed.ErrorMessage() != "ours" {
			t.Errorf("%s: %v", name, c.err)
			continue
		}
		if diff := cmp.Diff(c.want, failed.Item, same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := getColor(ctx, t, seed, "1", true); got != "red" {
		t.Errorf("the item is %q", got)
	}
}

func deleteColor(ctx context.Context, db *dynamodb.Client, asks types.ReturnValuesOnConditionCheckFailure) error {
	_, err := db.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName: aws.String("a-table"), Key: item{"id": text("1")}, ReturnValuesOnConditionCheckFailure: asks,
	})
	return err
}

// A canceled transaction has a reason for each action, with the item of a failed condition.
func TestFailDynamoDB_Reasons(t *testing.T) {
	t.Parallel()
	env, seed := startItems(t)
	ctx, db := t.Context(), oneShot(env)
	if err := putColor(ctx, seed, "a-table", "2"); err != nil {
		t.Fatal(err)
	}
	write := func(id string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: aws.String("a-table"), Item: item{"id": text(id)},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	items := &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{write("1"), write("2"), write("3")}}
	statements := &dynamodb.ExecuteTransactionInput{TransactStatements: []types.ParameterizedStatement{
		{Statement: aws.String("INSERT INTO \"a-table\" VALUE {'id': '1'}")}, {Statement: aws.String("INSERT INTO \"a-table\" VALUE {'id': '4'}")},
	}}
	check := func(what string, err error, want ...string) []types.CancellationReason {
		t.Helper()
		canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
		if !ok {
			t.Fatalf("%s: %v", what, err)
		}
		var got []string
		for _, r := range canceled.CancellationReasons {
			got = append(got, aws.ToString(r.Code)+": "+aws.ToString(r.Message))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		return canceled.CancellationReasons
	}
	conditions := env.FailDynamoDB("TransactWriteItems", testkit.ConditionalCheckFailed, testkit.OnItem(item{"id": text("2")}))
	_, err := db.TransactWriteItems(ctx, items)
	reasons := check("an item's condition", err, "None: ", "ConditionalCheckFailed: The conditional request failed", "None: ")
	if v, ok := reasons[1].Item["color"].(*types.AttributeValueMemberS); !ok || v.Value != "red" {
		t.Errorf("the reason's item is %v", reasons[1].Item)
	}
	conditions.Remove()
	env.FailDynamoDB("*", testkit.TransactionCanceled, testkit.WithReasons("ThrottlingError", "None", "ValidationError"), testkit.WithMessage("ours"))
	_, err = db.TransactWriteItems(ctx, items)
	check("given reasons", err, "ThrottlingError: ours", "None: ", "ValidationError: ours")
	_, err = db.ExecuteTransaction(ctx, statements)
	check("statements", err, "ThrottlingError: ours", "None: ")
}

func TestFailDynamoDB_Misuse(t *testing.T) {
	t.Parallel()
	for want, misuse := range map[string]func(*testkit.Env){
		`unknown DynamoDB error "ThrotlingException", nearest to ThrottlingException`: func(e *testkit.Env) { e.FailDynamoDB("*", "ThrotlingException") },
		`unknown DynamoDB error "Slow", want one of AccessDenied, `:                   func(e *testkit.Env) { e.FailDynamoDB("*", "Slow") },
		"GetItem never returns ResourceInUseException; these operations do: CreateTable": func(e *testkit.Env) {
			e.FailDynamoDB("GetItem", testkit.ResourceInUse)
		},
		"ThrottlingException does not have cancellation reasons": func(e *testkit.Env) {
			e.FailDynamoDB("*", testkit.Throttling, testkit.WithReasons("TransactionConflict"))
		},
		`unknown cancellation reason "TransactionConflicts", nearest to TransactionConflict`: func(e *testkit.Env) {
			e.FailDynamoDB("*", testkit.TransactionCanceled, testkit.WithReasons("TransactionConflicts"))
		},
		"the cancellation reasons are all None": func(e *testkit.Env) {
			e.FailDynamoDB("*", testkit.TransactionCanceled, testkit.WithReasons("None"))
		},
		"a code, a message and reasons apply only to failures": func(e *testkit.Env) { e.Unprocessed("BatchGetItem", testkit.WithMessage("ours")) },
	} {
		got := faketb.Failure(t, func(tb testing.TB) {
			tb.Helper()
			misuse(testkit.Start(tb))
		})
		if !strings.Contains(got, want) {
			t.Errorf("failed with %q, want %q", got, want)
		}
	}
}
