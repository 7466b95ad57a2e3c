"""Tests in the style of users of the pytest fixtures of clients/python/tabletop.py, with the official clients:

    TABLETOP_BINARY=bin/tabletop PYTHONPATH=clients/python python -m pytest -p tabletop conformance/python/test_fixtures.py
"""

import os
from datetime import timedelta

import boto3
import pytest
from google.cloud import bigtable
from tabletop import Control, Tabletop

ITEM = {
    "id": {"S": "a"}, "n": {"N": "1.5"}, "b": {"B": b"\xff"}, "bs": {"BS": [b"\xff"]}, "t": {"BOOL": True}, "z": {"NULL": True},
    "l": {"L": [{"B": b"1"}, {"M": {"b": {"B": b"2"}}}]},
}


@pytest.fixture(scope="session")
def tabletop_args():
    return ["--instance", "orders"]


def create(ddb):
    ddb.create_table(
        TableName="orders", BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}], AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})


@pytest.fixture
def ddb(tabletop):
    ddb = boto3.client("dynamodb")  # it finds the server by the environment
    create(ddb)
    return ddb


def test_items_are_those_of_boto3(tabletop, ddb):
    tabletop.put_items("orders", [ITEM])
    assert ddb.get_item(TableName="orders", Key={"id": {"S": "a"}})["Item"] == ITEM
    ddb.put_item(TableName="orders", Item={**ITEM, "id": {"S": "b"}})
    assert sorted(tabletop.items("orders"), key=lambda item: item["id"]["S"]) == [ITEM, {**ITEM, "id": {"S": "b"}}]
    arn = ddb.describe_table(TableName="orders")["Table"]["LatestStreamArn"]
    streams = boto3.client("dynamodbstreams")
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    at = streams.get_shard_iterator(StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON")["ShardIterator"]
    records = [(r["eventName"], r["dynamodb"]["NewImage"]) for r in streams.get_records(ShardIterator=at)["Records"]]
    assert [(r["eventName"], r["dynamodb"]["NewImage"]) for r in tabletop.records("orders")] == records


def test_rows(tabletop, ddb):
    ddb.put_item(TableName="orders", Item={"id": {"S": "a"}})
    client = bigtable.Client(project=tabletop.project)
    table = client.instance(tabletop.instance).table(tabletop.bigtable_table("orders"))
    assert [row.row_key for row in table.read_rows()] == [b"a"]
    assert tabletop.instance == "orders"


@pytest.mark.parametrize("run", [1, 2])
def test_each_begins_without_tables_and_faults(tabletop, ddb, run):
    assert tabletop.items("orders") == [] and tabletop.faults() == []
    tabletop.put_items("orders", [ITEM])
    tabletop.fault(endpoint="bigtable", method="ReadRows", effect="delay", delay=timedelta(milliseconds=1))


def test_the_environment_is_that_of_a_test(tabletop_server):
    assert not tabletop_server.env().items() <= os.environ.items()


def test_the_environment(tabletop, tabletop_server):
    assert tabletop is tabletop_server
    assert tabletop.env().items() <= os.environ.items()
    assert Control().info()["dynamodb"] == tabletop.dynamodb


def test_a_server_of_its_own(tabletop, ddb):
    with Tabletop.start() as own:
        others = boto3.client("dynamodb", **own.boto3_options())
        assert (others.list_tables()["TableNames"], ddb.list_tables()["TableNames"]) == ([], ["orders"])
        create(others)
        others.update_time_to_live(TableName="orders", TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
        own.freeze()
        own.put_items("orders", [{"id": {"S": "a"}, "ttl": {"N": "1"}}])
        own.set("2030-01-01T00:00:00Z")
        own.put_items("orders", [{"id": {"S": "b"}, "ttl": {"N": "1893456000"}}, {"id": {"S": "c"}}])
        own.advance(timedelta(hours=25))
        own.ttl()
        # An item of the distant past never expires.
        assert sorted(item["id"]["S"] for item in own.items("orders")) == ["a", "c"]
