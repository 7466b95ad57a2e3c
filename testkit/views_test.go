package testkit_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/tabletop-emu/tabletop/facade/mapping"
	"github.com/tabletop-emu/tabletop/testkit"
)

// TestWithViewLag_Index: an index that is a view follows its table at once, after a lag, or on request.
func TestWithViewLag_Index(t *testing.T) {
	t.Parallel()
	const text = `
apiVersion: migration/v1
source:
  table: items
  key: {hash: {name: pk, type: S}}
  schema: {city: S}
  gsis: [{name: by-city, hash: city, as: view}]
target:
  table: items
  families: {a: {gc: {versions: 1}}, _t: {gc: {versions: 1}}}
timestamps: {default: "2024-05-14T11:14:20.608Z"}
rules: [{name: item, when: {}, row: ["{pk:s}"], put: [{attr: "*", cell: "a:{attr}"}]}]
`
	m, err := mapping.Load("mapping.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lag    time.Duration
		follow func(env *testkit.Env)
	}{
		{0, func(*testkit.Env) {}},
		{time.Minute, func(env *testkit.Env) { env.Advance(time.Minute) }},
		{testkit.ManualViews, func(env *testkit.Env) { env.RefreshViews() }},
	} {
		env := testkit.Start(t, testkit.WithMapping(m), testkit.WithViewLag(c.lag), testkit.WithFrozenClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)))
		ddb := env.DynamoDB(t)
		inRome := func() int32 {
			out, err := ddb.Query(t.Context(), &dynamodb.QueryInput{
				TableName: aws.String("items"), IndexName: aws.String("by-city"), KeyConditionExpression: aws.String("city = :c"),
				ExpressionAttributeValues: map[string]types.AttributeValue{":c": &types.AttributeValueMemberS{Value: "Rome"}},
			})
			if err != nil {
				t.Fatal(err)
			}
			return out.Count
		}
		_, err := ddb.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("items"), Item: map[string]types.AttributeValue{
			"pk": &types.AttributeValueMemberS{Value: "1"}, "city": &types.AttributeValueMemberS{Value: "Rome"},
		}})
		if err != nil {
			t.Fatal(err)
		}
		if n := inRome(); (n == 1) != (c.lag == 0) {
			t.Errorf("with the lag %v, the index has %d items after a write", c.lag, n)
		}
		c.follow(env)
		if n := inRome(); n != 1 {
			t.Errorf("with the lag %v, the index has %d items in the end", c.lag, n)
		}
	}
}
