import pytest
from orders import ORDER, BigtableOrders, DynamoDBOrders, Order, Refused


@pytest.fixture
def stores(tabletop):
    """Both stores over the same rows."""
    return {"DynamoDB": DynamoDBOrders(), "Bigtable": BigtableOrders(tabletop.project, tabletop.instance)}


@pytest.mark.parametrize("name", ["DynamoDB", "Bigtable"])
def test_orders(stores, name):
    """Each store changes the orders, and both read the result."""
    orders = stores[name]
    orders.place("ada", "2024-03", 5)
    with pytest.raises(Refused):
        orders.place("ada", "2024-03", 6)
    orders.pay("ada", "2024-01")
    for id in ("2024-01", "2024-02", "none"):
        with pytest.raises(Refused):
            orders.pay("ada", id)
    want = [Order("ada", "2024-01", "paid", 42), Order("ada", "2024-02", "paid", 7), Order("ada", "2024-03", "open", 5)]
    for reader in stores.values():
        assert reader.of("ada") == want


def test_row(stores, tabletop):
    """The row of an order is what mapping.yaml says."""
    stores["DynamoDB"].place("cy", "1", 5)
    cells = stores["Bigtable"].table.read_row(b"cy#1", ORDER).to_dict()
    assert {column: values[0].value for column, values in cells.items()} == {b"o:status": b"open", b"o:total": b"5"}
