"""Tests in the style of users of pytest-dynamodb, for a running server."""

from pytest_dynamodb import factories

dynamodb_server = factories.dynamodb_noproc()
dynamodb = factories.dynamodb("dynamodb_server")


def orders(dynamodb):
    return dynamodb.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    )


def test_an_item(dynamodb):
    table = orders(dynamodb)
    table.put_item(Item={"id": "a", "tags": {"x", "y"}})
    assert table.get_item(Key={"id": "a"})["Item"] == {"id": "a", "tags": {"x", "y"}}


def test_each_begins_without_tables(dynamodb):
    assert list(dynamodb.tables.all()) == []
    orders(dynamodb)
