package orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.tabletopemu.Tabletop;
import io.github.tabletopemu.TabletopExtension;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

@ExtendWith(TabletopExtension.class)
class OrdersTest {
	@Test
	void anOrder(Tabletop.Server tabletop) {
		tabletop.query("CreateTable", Map.of("TableName", "orders", "BillingMode", "PAY_PER_REQUEST",
			"KeySchema", List.of(Map.of("AttributeName", "id", "KeyType", "HASH")),
			"AttributeDefinitions", List.of(Map.of("AttributeName", "id", "AttributeType", "S"))));
		tabletop.putItems("orders", List.of(Map.of("id", Map.of("S", "a1"))));
		assertEquals(List.of("a1"), tabletop.items("orders").map(item -> item.get("id").get("S").text()).toList());
	}
}
