"""Tests in the style of users of the pytest fixtures of clients/python/tabletop.py, with the official clients:

    TABLETOP_BINARY=bin/tabletop PYTHONPATH=clients/python python -m pytest -p tabletop conformance/python/test_fixtures.py
"""

import os
import pathlib
import re
import subprocess
import sys
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


@pytest.fixture
def shell(monkeypatch):
    """Variables of a shell with which boto3 would not use the server."""
    names = ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"]
    for name in names:
        monkeypatch.setenv(name, "true")
    return names


def test_the_environment(shell, tabletop, tabletop_server):
    assert tabletop is tabletop_server
    assert not set(shell) & set(os.environ)
    assert boto3.client("dynamodb").list_tables()["TableNames"] == []
    assert tabletop.env().items() <= os.environ.items()
    assert Control().info()["dynamodb"] == tabletop.dynamodb


@pytest.fixture(scope="module")
def filled(tabletop_server):
    tabletop_server.reset()
    create(boto3.client("dynamodb", **tabletop_server.boto3_options()))
    tabletop_server.put_items("orders", [ITEM])
    tabletop_server.snapshot("filled")


@pytest.fixture
def orders(filled, tabletop):
    tabletop.restore("filled")
    return boto3.resource("dynamodb").Table("orders")


@pytest.mark.parametrize("run", [1, 2])
def test_tables_of_a_module(orders, run):
    assert orders.scan()["Count"] == 1
    orders.delete_item(Key={"id": "a"})


def test_clients_of_an_imported_module(tmp_path):
    """The conftest.py of the page gives a server to a module that creates its client at import."""
    page = (pathlib.Path(__file__).parents[2] / "docs/tasks/pytest.md").read_text()
    (tmp_path / "conftest.py").write_text(re.search(r"```python\n(# conftest.py\n.*?)```", page, re.DOTALL).group(1))
    (tmp_path / "app.py").write_text('import boto3\n\nddb = boto3.client("dynamodb")\n')
    (tmp_path / "test_app.py").write_text("import app\n\n\ndef test(tabletop):\n    assert app.ddb.list_tables()['TableNames'] == tabletop.tables()['dynamodb'] == []\n    assert app.ddb.meta.endpoint_url == tabletop.dynamodb\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    for name in ["TABLETOP_BINARY", "PYTHONPATH"]:
        env[name] = os.path.abspath(env[name])
    run = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error::pytest.PytestWarning"],
        cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert run.returncode == 0 and "1 passed" in run.stdout, run.stdout


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
