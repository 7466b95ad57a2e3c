package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.TableId;
import io.github.tabletopemu.Tabletop;
import io.github.tabletopemu.TabletopExtension;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import orders.Orders.Order;
import orders.Orders.RefusedException;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;

class OrdersTest {
	/** Each test begins with the orders of this folder. */
	@RegisterExtension static final TabletopExtension TABLETOP = new TabletopExtension("--seed", "../orders");

	private static DynamoDbClient dynamodb;
	private static BigtableDataClient bigtable;
	private static Map<String, Orders> stores;

	@BeforeAll static void clients(Tabletop.Server tabletop) throws Exception {
		var keys = StaticCredentialsProvider.create(AwsBasicCredentials.create(tabletop.accessKeyId(), tabletop.secretAccessKey()));
		dynamodb = DynamoDbClient.builder().endpointOverride(tabletop.dynamodb()).region(Region.of(tabletop.region())).credentialsProvider(keys).build();
		bigtable = BigtableDataClient.create(BigtableDataSettings.newBuilderForEmulator(tabletop.bigtablePort())
			.setProjectId(tabletop.project()).setInstanceId(tabletop.instance()).build());
		stores = Map.of("DynamoDB", new DynamoDbOrders(dynamodb), "Bigtable", new BigtableOrders(bigtable));
	}

	@AfterAll static void close() {
		dynamodb.close();
		bigtable.close();
	}

	@ParameterizedTest
	@ValueSource(strings = {"DynamoDB", "Bigtable"})
	void changesOrdersThatBothStoresRead(String name) {
		Orders orders = stores.get(name);
		orders.place("ada", "2024-03", 5);
		assertThrows(RefusedException.class, () -> orders.place("ada", "2024-03", 6));
		orders.pay("ada", "2024-01");
		for (String id : List.of("2024-01", "2024-02", "none")) {
			assertThrows(RefusedException.class, () -> orders.pay("ada", id));
		}
		var want = List.of(new Order("ada", "2024-01", "paid", 42), new Order("ada", "2024-02", "paid", 7), new Order("ada", "2024-03", "open", 5));
		stores.forEach((reader, other) -> assertEquals(want, other.of("ada"), reader));
	}

	@Test void theRowOfAnOrderIsWhatTheMappingSays() {
		stores.get("DynamoDB").place("cy", "1", 5);
		var row = bigtable.readRow(TableId.of("orders"), "cy#1");
		assertEquals(List.of("status=open", "total=5"),
			row.getCells("o").stream().map(c -> c.getQualifier().toStringUtf8() + "=" + c.getValue().toStringUtf8()).toList());
	}
}
