package orders;

import java.util.List;
import java.util.Map;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.ConditionalCheckFailedException;

/** Orders in the DynamoDB table Orders. */
public final class DynamoDbOrders implements Orders {
	private static final String TABLE = "Orders";
	private final DynamoDbClient client;

	public DynamoDbOrders(DynamoDbClient client) { this.client = client; }

	@Override public void place(String customer, String id, long total) {
		try {
			client.putItem(p -> p.tableName(TABLE).conditionExpression("attribute_not_exists(customer)").item(Map.of(
				"customer", AttributeValue.fromS(customer), "id", AttributeValue.fromS(id),
				"status", AttributeValue.fromS("open"), "total", AttributeValue.fromN("" + total))));
		} catch (ConditionalCheckFailedException e) {
			throw new RefusedException("the order exists already");
		}
	}

	@Override public void pay(String customer, String id) {
		try {
			client.updateItem(u -> u.tableName(TABLE).key(Map.of("customer", AttributeValue.fromS(customer), "id", AttributeValue.fromS(id)))
				.updateExpression("SET #status = :paid").conditionExpression("#status = :open").expressionAttributeNames(Map.of("#status", "status"))
				.expressionAttributeValues(Map.of(":open", AttributeValue.fromS("open"), ":paid", AttributeValue.fromS("paid"))));
		} catch (ConditionalCheckFailedException e) {
			throw new RefusedException("the order does not exist, or is not open");
		}
	}

	@Override public List<Order> of(String customer) {
		return client.queryPaginator(q -> q.tableName(TABLE).keyConditionExpression("customer = :c").consistentRead(true)
			.expressionAttributeValues(Map.of(":c", AttributeValue.fromS(customer)))).items().stream()
			.map(item -> new Order(customer, item.get("id").s(), item.get("status").s(), Long.parseLong(item.get("total").n()))).toList();
	}
}
