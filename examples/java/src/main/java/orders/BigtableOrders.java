package orders;

import static com.google.cloud.bigtable.data.v2.models.Filters.FILTERS;

import com.google.cloud.bigtable.data.v2.BigtableDataClient;
import com.google.cloud.bigtable.data.v2.models.ConditionalRowMutation;
import com.google.cloud.bigtable.data.v2.models.Filters.Filter;
import com.google.cloud.bigtable.data.v2.models.Mutation;
import com.google.cloud.bigtable.data.v2.models.Query;
import com.google.cloud.bigtable.data.v2.models.Row;
import com.google.cloud.bigtable.data.v2.models.TableId;
import java.util.List;
import java.util.stream.StreamSupport;

/** Orders in rows that mapping.yaml describes: customer#id, with cells of the family o. */
public final class BigtableOrders implements Orders {
	private static final TableId TABLE = TableId.of("orders");
	/** The cells of an order; in the family _f the DynamoDB endpoint keeps its own. */
	private static final Filter ORDER = FILTERS.chain().filter(FILTERS.family().exactMatch("o")).filter(FILTERS.limit().cellsPerColumn(1));
	private final BigtableDataClient client;

	public BigtableOrders(BigtableDataClient client) { this.client = client; }

	@Override public void place(String customer, String id, long total) {
		var create = Mutation.create().setCell("o", "status", "open").setCell("o", "total", "" + total);
		if (client.checkAndMutateRow(ConditionalRowMutation.create(TABLE, customer + "#" + id).condition(ORDER).otherwise(create))) {
			throw new RefusedException("the order exists already");
		}
	}

	@Override public void pay(String customer, String id) {
		var open = FILTERS.chain().filter(ORDER).filter(FILTERS.qualifier().exactMatch("status")).filter(FILTERS.value().exactMatch("open"));
		var pay = Mutation.create().setCell("o", "status", "paid");
		if (!client.checkAndMutateRow(ConditionalRowMutation.create(TABLE, customer + "#" + id).condition(open).then(pay))) {
			throw new RefusedException("the order does not exist, or is not open");
		}
	}

	@Override public List<Order> of(String customer) {
		String prefix = customer + "#";
		return StreamSupport.stream(client.readRows(Query.create(TABLE).prefix(prefix).filter(ORDER)).spliterator(), false)
			.map(row -> new Order(customer, row.getKey().toStringUtf8().substring(prefix.length()), value(row, "status"), Long.parseLong(value(row, "total")))).toList();
	}

	private static String value(Row row, String column) { return row.getCells("o", column).get(0).getValue().toStringUtf8(); }
}
