package facade

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/internal/clock"
	"github.com/tabletop-emu/tabletop/internal/test/intercept"
)

// TestSDK_Transactions calls the operations on transactions and on time to live with the AWS SDK.
func TestSDK_Transactions(t *testing.T) {
	t.Parallel()
	now := clock.NewFrozen(testTime)
	var conn *intercept.Conn
	s := newTestServer(t, func(o *Options) {
		conn = &intercept.Conn{ClientConnInterface: o.Conn}
		o.Conn, o.NoAuth, o.Now = conn, false, now.Now
	})
	c := sdkClient("http://dynamodb.invalid", s.RoundTripper())
	ctx := t.Context()
	table := aws.String("accounts")
	must(t, s, "CreateTable", `{"TableName": "accounts", "BillingMode": "PAY_PER_REQUEST",
		"AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}], "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}]}`)
	put := func(id string, condition *string) types.TransactWriteItem {
		return types.TransactWriteItem{Put: &types.Put{
			TableName: table, ConditionExpression: condition,
			Item:                                map[string]types.AttributeValue{"id": str(id), "until": num(int(testTime.Unix()) + 60)},
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}
	}
	var items []types.TransactWriteItem
	for i := range 100 {
		items = append(items, put(strconv.Itoa(i), nil))
	}
	if _, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items}); err != nil {
		t.Fatal(err)
	}
	_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: append(items, put("100", nil))})
	if err == nil || !strings.Contains(err.Error(), "Value '[101 actions]' at 'transactItems' failed to satisfy constraint: Member must have length less than or equal to 100") {
		t.Errorf("101 actions: %v", err)
	}
	_, err = c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{
		put("new", nil), put("1", aws.String("attribute_not_exists(id)")),
	}})
	var canceled *types.TransactionCanceledException
	if !errors.As(err, &canceled) || len(canceled.CancellationReasons) != 2 || aws.ToString(canceled.CancellationReasons[0].Code) != "None" ||
		aws.ToString(canceled.CancellationReasons[1].Code) != "ConditionalCheckFailed" || len(canceled.CancellationReasons[1].Item) != 2 {
		t.Errorf("a condition that fails: %v, %+v", err, canceled)
	}
	var gets []types.TransactGetItem
	for _, id := range []string{"99", "new", "0"} {
		gets = append(gets, types.TransactGetItem{Get: &types.Get{TableName: table, Key: map[string]types.AttributeValue{"id": str(id)}}})
	}
	got, err := c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: gets})
	if err != nil {
		t.Fatal(err)
	}
	if n := fmt.Sprint(len(got.Responses[0].Item), len(got.Responses[1].Item), len(got.Responses[2].Item)); n != "2 0 2" {
		t.Errorf("TransactGetItems: %v", n)
	}
	if _, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
		TableName: table, TimeToLiveSpecification: &types.TimeToLiveSpecification{AttributeName: aws.String("until"), Enabled: aws.Bool(true)},
	}); err != nil {
		t.Fatal(err)
	}
	now.Advance(time.Minute)
	if n, err := s.ReapExpired(ctx); n != 100 || err != nil {
		t.Errorf("reaped %d, %v", n, err)
	}

	// Other operations meet the items of a transaction.
	met := false
	meanwhile(conn, func() {
		met = true
		w := post(s, "PutItem", `{"TableName": "accounts", "Item": {"id": {"S": "held"}}}`, func(r *http.Request) {
			r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=key/20261121/eu-west-1/dynamodb/aws4_request, SignedHeaders=host, Signature=0")
			r.Header.Set("X-Amz-Date", "20261121T000000Z")
		})
		if want := `{"__type":"com.amazonaws.dynamodb.v20120810#TransactionConflictException","message":"Transaction is ongoing for the item"}`; w.Code != http.StatusBadRequest || w.Body.String() != want {
			t.Errorf("a plain write: %d %s", w.Code, w.Body)
		}
		_, err = c.TransactGetItems(ctx, &dynamodb.TransactGetItemsInput{TransactItems: []types.TransactGetItem{
			{Get: &types.Get{TableName: table, Key: map[string]types.AttributeValue{"id": str("held")}}},
		}})
		if !errors.As(err, &canceled) || aws.ToString(canceled.CancellationReasons[0].Code) != "TransactionConflict" {
			t.Errorf("TransactGetItems of a held item: %v", err)
		}
	})
	if must(t, s, "TransactWriteItems", `{"TransactItems": [{"Put": {"TableName": "accounts", "Item": {"id": {"S": "held"}}}}]}`); !met {
		t.Error("nobody met the transaction")
	}
}
