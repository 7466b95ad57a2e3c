TABLE = {
    "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
}


def test_an_order(tabletop):
    tabletop.query("CreateTable", TABLE)
    tabletop.put_items("orders", [{"id": {"S": "a1"}}])
    assert [item["id"]["S"] for item in tabletop.items("orders")] == ["a1"]
