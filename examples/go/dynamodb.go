package orders

import (
	"context"
	"errors"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoDB is a Store in the table Orders.
type DynamoDB struct{ Client *dynamodb.Client }

var tableName = aws.String("Orders")

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

// Place implements Store.
func (d *DynamoDB) Place(ctx context.Context, customer, id string, total int64) error {
	_, err := d.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: tableName,
		Item: map[string]types.AttributeValue{
			"customer": text(customer), "id": text(id), "status": text("open"),
			"total": &types.AttributeValueMemberN{Value: strconv.FormatInt(total, 10)},
		},
		ConditionExpression: aws.String("attribute_not_exists(customer)"),
	})
	return refused(err, ErrExists)
}

// Pay implements Store.
func (d *DynamoDB) Pay(ctx context.Context, customer, id string) error {
	_, err := d.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 tableName,
		Key:                       map[string]types.AttributeValue{"customer": text(customer), "id": text(id)},
		UpdateExpression:          aws.String("SET #status = :paid"),
		ConditionExpression:       aws.String("#status = :open"),
		ExpressionAttributeNames:  map[string]string{"#status": "status"},
		ExpressionAttributeValues: map[string]types.AttributeValue{":open": text("open"), ":paid": text("paid")},
	})
	return refused(err, ErrNotOpen)
}

// Of implements Store.
func (d *DynamoDB) Of(ctx context.Context, customer string) (all []Order, err error) {
	pages := dynamodb.NewQueryPaginator(d.Client, &dynamodb.QueryInput{
		TableName:                 tableName,
		KeyConditionExpression:    aws.String("customer = :customer"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":customer": text(customer)},
		ConsistentRead:            aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			total, err := strconv.ParseInt(item["total"].(*types.AttributeValueMemberN).Value, 10, 64)
			if err != nil {
				return nil, err
			}
			of := func(name string) string { return item[name].(*types.AttributeValueMemberS).Value }
			all = append(all, Order{of("customer"), of("id"), of("status"), total})
		}
	}
	return all, nil
}

// refused returns the error for a condition that failed.
func refused(err, as error) error {
	var failed *types.ConditionalCheckFailedException
	if errors.As(err, &failed) {
		return as
	}
	return err
}
