import java.net.URI;
import java.time.Instant;
import java.util.List;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.*;

/**
 * Streams, recovery and an export in a test, with the official client, against a server that was started with
 *
 *     tabletop serve --dynamodb 127.0.0.1:0 --console 127.0.0.1:0 --buckets DIR   # with a folder DIR/exports
 */
public final class ExampleDynamoDB {
	public static void main(String[] args) {
		Tabletop control = Tabletop.fromEnvironment(); // the addresses printed by serve
		control.reset();
		DynamoDbClient ddb = DynamoDbClient.builder().endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB"))).build();
		ddb.createTable(t -> t.tableName("orders").billingMode(BillingMode.PAY_PER_REQUEST)
			.keySchema(KeySchemaElement.builder().attributeName("id").keyType(KeyType.HASH).build())
			.attributeDefinitions(AttributeDefinition.builder().attributeName("id").attributeType(ScalarAttributeType.S).build())
			.streamSpecification(s -> s.streamEnabled(true).streamViewType(StreamViewType.NEW_AND_OLD_IMAGES)));
		ddb.updateContinuousBackups(b -> b.tableName("orders").pointInTimeRecoverySpecification(p -> p.pointInTimeRecoveryEnabled(true)));

		put(ddb, "new");
		control.advance("1m"); // time passes on command
		Instant now = Instant.parse(control.clock().get("now").text());
		control.advance("1m");
		put(ddb, "lost");

		// The stream. A consumer reads it with a DynamoDbStreamsClient and the endpoint AWS_ENDPOINT_URL_DYNAMODB_STREAMS.
		check(control.records("orders").map(r -> r.get("eventName").text()).toList().equals(List.of("INSERT", "MODIFY")));

		// The earlier state of the table.
		ddb.restoreTableToPointInTime(r -> r.sourceTableName("orders").targetTableName("restored").restoreDateTime(now));
		while (ddb.describeTable(t -> t.tableName("restored")).table().tableStatus() != TableStatus.ACTIVE) Thread.onSpinWait();
		var item = ddb.getItem(g -> g.tableName("restored").key(java.util.Map.of("id", AttributeValue.fromS("0001")))).item();
		check(item.get("state").s().equals("new"));

		// An export into the folder exports of --buckets DIR.
		String arn = ddb.describeTable(t -> t.tableName("orders")).table().tableArn();
		ExportDescription made = ddb.exportTableToPointInTime(e -> e.tableArn(arn).s3Bucket("exports")).exportDescription();
		while (made.exportStatus() == ExportStatus.IN_PROGRESS) {
			String export = made.exportArn();
			made = ddb.describeExport(e -> e.exportArn(export)).exportDescription();
		}
		check(made.itemCount() == 1);
		System.out.println("ok");
	}

	private static void put(DynamoDbClient ddb, String state) {
		ddb.putItem(p -> p.tableName("orders").item(java.util.Map.of("id", AttributeValue.fromS("0001"), "state", AttributeValue.fromS(state))));
	}

	private static void check(boolean is) { if (!is) throw new AssertionError(); }
}
