#!/usr/bin/env python3
"""Tests the official Python clients, unchanged, against a running `tabletop serve`.

    run.py PATH-TO-TABLETOP

Starts the binary on free loopback ports, points boto3 and
google-cloud-bigtable at it by the very lines that it prints for export, and
runs each case. Exits 0 when all pass. The DynamoDB cases and the operations
that each calls are those of ../README.md.
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path

# The control API's own client.
sys.path.append(str(Path(__file__).parents[2] / "clients" / "python"))
from tabletop import Control

EXPORT = re.compile(r"^export (\w+)=(\S+)$")
WANTED = {
    "BIGTABLE_EMULATOR_HOST",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_ENDPOINT_URL_DYNAMODB_STREAMS",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "TABLETOP_CONSOLE_URL",
    "TABLETOP_CONSOLE_TOKEN",
}

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


# Of ../README.md: the operations of each DynamoDB case, and those with which
# every case creates its table.
ROW = re.compile(r"^\| ([a-z ]+) \| ([A-Z]\w+(?: [A-Z]\w+)*) \|")
LISTED = {
    m[1]: set(m[2].split())
    for line in (Path(__file__).parent.parent / "README.md").read_text().splitlines()
    if (m := ROW.match(line))
}
PRELUDE = {"CreateTable", "DescribeTable"}
CALLED = set()


def equal(got, want):
    if got != want:
        raise AssertionError(f"got {got!r}, want {want!r}")


def raises(kind, fn, check=lambda e: True):
    try:
        fn()
    except kind as e:
        if not check(e):
            raise AssertionError(f"wrong error: {e!r}") from e
        return e
    raise AssertionError(f"no {kind.__name__} was raised")


# ---- Bigtable ---------------------------------------------------------------


def bigtable_instance():
    from google.cloud import bigtable

    client = bigtable.Client(project="tabletop", admin=True)
    return client.instance("tabletop")


def new_bigtable_table(name, **families):
    table = bigtable_instance().table(name)
    table.create(column_families=families)
    return table


@case
def bigtable_admin_creates_lists_and_deletes_tables():
    from google.api_core.exceptions import AlreadyExists, NotFound
    from google.cloud.bigtable import column_family as cf

    table = new_bigtable_table("py-admin", a=cf.MaxVersionsGCRule(3), b=None)
    equal(sorted(table.list_column_families()), ["a", "b"])
    equal(table.list_column_families()["a"].gc_rule, cf.MaxVersionsGCRule(3))
    raises(AlreadyExists, table.create)
    table.column_family("c", gc_rule=cf.MaxVersionsGCRule(1)).create()
    table.column_family("b").delete()
    equal(sorted(table.list_column_families()), ["a", "c"])
    names = [t.table_id for t in bigtable_instance().list_tables()]
    assert "py-admin" in names, names
    table.delete()
    raises(NotFound, table.list_column_families)


@case
def bigtable_rows_are_written_and_read():
    table = new_bigtable_table("py-rows", f=None, g=None)
    row = table.direct_row(b"user#1")
    row.set_cell("f", b"name", b"Ada")
    row.set_cell("f", b"raw", bytes(range(256)))
    row.set_cell("g", b"n", 7)
    row.commit()
    got = table.read_row(b"user#1")
    equal(got.cell_value("f", b"name"), b"Ada")
    equal(got.cell_value("f", b"raw"), bytes(range(256)))
    equal(got.cell_value("g", b"n"), b"\0\0\0\0\0\0\0\7")
    equal(table.read_row(b"user#2"), None)


@case
def bigtable_scans_filters_and_limits():
    from google.cloud.bigtable import row_filters as rf
    from google.cloud.bigtable.row_set import RowSet

    table = new_bigtable_table("py-scan", f=None)
    rows = []
    for i in range(100):
        row = table.direct_row(f"k{i:03}")
        row.set_cell("f", "a", str(i))
        row.set_cell("f", "b", "x" * i)
        rows.append(row)
    for status in table.mutate_rows(rows):
        equal(status.code, 0)
    equal([r.row_key for r in table.read_rows(limit=2)], [b"k000", b"k001"])
    equal(len(list(table.read_rows(start_key=b"k010", end_key=b"k020"))), 10)
    keys = RowSet()
    keys.add_row_key(b"k007")
    keys.add_row_range_with_prefix("k05")
    equal(len(list(table.read_rows(row_set=keys))), 11)
    chain = rf.RowFilterChain([rf.ColumnQualifierRegexFilter(b"a"), rf.ValueRegexFilter(b"[0-4]2")])
    equal([r.row_key for r in table.read_rows(filter_=chain)],
          [b"k012", b"k022", b"k032", b"k042"])
    samples = list(table.sample_row_keys())
    equal(samples[-1].row_key, b"")


@case
def bigtable_large_values_cross_message_limits():
    table = new_bigtable_table("py-large", f=None)
    value = os.urandom(3 << 20) * 2
    row = table.direct_row(b"big")
    row.set_cell("f", b"q", value)
    row.commit()
    equal(table.read_row(b"big").cell_value("f", b"q"), value)


@case
def bigtable_wide_rows_among_small_ones():
    table = new_bigtable_table("py-wide", f=None)
    for key in ("a", "z"):
        row = table.direct_row(key)
        row.set_cell("f", b"q", b"1")
        row.commit()
    row = table.direct_row("m")
    for i in range(20_000):
        row.set_cell("f", f"{i:05}", b"1")
    row.commit()
    equal([r.row_key for r in table.read_rows()], [b"a", b"m", b"z"])
    equal(len(table.read_row("m").cells["f"]), 20_000)


@case
def bigtable_conditional_and_append_rows():
    from google.cloud.bigtable import row_filters as rf

    table = new_bigtable_table("py-cas", f=None)
    row = table.conditional_row(b"r", rf.ColumnQualifierRegexFilter(b"lock"))
    row.set_cell("f", b"lock", b"1", state=False)
    equal(row.commit(), False)
    row = table.conditional_row(b"r", rf.ColumnQualifierRegexFilter(b"lock"))
    row.set_cell("f", b"seen", b"1", state=True)
    equal(row.commit(), True)
    counter = table.append_row(b"r")
    counter.increment_cell_value("f", b"n", 5)
    counter.append_cell_value("f", b"s", b"ab")
    counter.commit()
    counter.increment_cell_value("f", b"n", -2)
    cells = counter.commit()
    equal(cells["f"][b"n"][0][0], b"\0\0\0\0\0\0\0\3")


@case
def bigtable_deletes():
    table = new_bigtable_table("py-delete", f=None, g=None)
    row = table.direct_row(b"r")
    for q in (b"a", b"b"):
        row.set_cell("f", q, b"1")
        row.set_cell("g", q, b"1")
    row.commit()
    row = table.direct_row(b"r")
    row.delete_cell("f", b"a")
    row.delete_cells("g", row.ALL_COLUMNS)
    row.commit()
    equal(table.read_row(b"r").to_dict().keys(), {b"f:b"})
    row = table.direct_row(b"r")
    row.delete()
    row.commit()
    equal(table.read_row(b"r"), None)
    for i in range(10):
        row = table.direct_row(f"p{i % 2}#{i}")
        row.set_cell("f", b"a", b"1")
        row.commit()
    table.drop_by_prefix(b"p1#")
    equal(len(list(table.read_rows())), 5)


@case
def bigtable_sql():
    """Parameters and results of each type, an error, and a logical view."""
    from google.api_core.exceptions import InvalidArgument, OutOfRange
    from google.cloud.bigtable import Client
    from google.cloud.bigtable.data import BigtableDataClient
    from google.cloud.bigtable.data.execute_query import SqlType
    from google.cloud.bigtable_admin_v2.types import LogicalView

    table = new_bigtable_table("py-sql", f=None)
    rows = [table.direct_row(key) for key in (b"a#1", b"a#2", b"b#1")]
    for n, row in enumerate(rows):
        row.set_cell("f", b"n", n, datetime(2024, 1, 1, tzinfo=timezone.utc))
        row.set_cell("f", b"q", row.row_key + b"!", datetime(2024, 1, 2, tzinfo=timezone.utc))
    equal([status.code for status in table.mutate_rows(rows)], [0, 0, 0])
    noon = datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=timezone.utc)
    parameters = {
        "b": b"\xff\x00", "s": "é", "i": -(2**63), "f": 0.5, "x": True, "t": noon, "d": date(2024, 2, 29),
        "ab": [b"a#2", None, b"b#1"], "ai": [1, 2], "none": None,
    }
    types = {
        "ab": SqlType.Array(SqlType.Bytes()), "ai": SqlType.Array(SqlType.Int64()), "none": SqlType.String(),
        "d": SqlType.Date(), "t": SqlType.Timestamp(), "f": SqlType.Float64(),
    }
    with BigtableDataClient(project="tabletop") as client:

        def ask(query, parameters={}, types={}):
            result = client.execute_query(query, "tabletop", parameters=parameters, parameter_types=types)
            return [dict(row.fields) for row in result]

        names = ", ".join(f"@{name} AS {name}" for name in parameters)
        got, = ask(f"SELECT {names}", parameters, types)
        day = got.pop("d")  # the client does not return the type that it takes
        equal(date(day.year, day.month, day.day), parameters["d"])
        equal(got, {name: value for name, value in parameters.items() if name != "d"})
        got = ask(
            "SELECT _key, f, TO_INT64(f['n']) AS n, STRUCT(f['q'] AS q, [1, NULL] AS a) AS s, f['none'] AS none "
            "FROM `py-sql` WHERE _key IN UNNEST(@ab) ORDER BY _key DESC",
            {"ab": parameters["ab"]}, {"ab": types["ab"]},
        )
        equal([row["_key"] for row in got], [b"b#1", b"a#2"])
        equal(got[1]["f"], {b"n": (1).to_bytes(8, "big"), b"q": b"a#2!"})
        equal((got[1]["n"], got[1]["none"]), (1, None))
        equal((got[1]["s"]["q"], got[1]["s"]["a"]), (b"a#2!", [1, None]))
        got, = ask("SELECT f['q'][0].timestamp AS written FROM `py-sql`(with_history => TRUE) WHERE _key = 'a#1'")
        equal(got["written"].isoformat(), "2024-01-02T00:00:00+00:00")
        raises(InvalidArgument, lambda: ask("SELECT nothing FROM `py-sql`"), lambda e: "Unrecognized name: nothing" in str(e))
        raises(OutOfRange, lambda: ask("SELECT DIV(1, TO_INT64(f['n'])) FROM `py-sql`"), lambda e: "division by zero" in str(e))

        admin = Client(project="tabletop", admin=True).instance_admin_client
        view = LogicalView(query="SELECT SPLIT(_key, '#')[0] AS user, COUNT(*) AS n FROM `py-sql` GROUP BY user")
        parent = "projects/tabletop/instances/tabletop"
        admin.create_logical_view(parent=parent, logical_view_id="py-users", logical_view=view).result()
        equal(ask("SELECT user, n FROM `py-users` ORDER BY user"), [{"user": b"a", "n": 2}, {"user": b"b", "n": 1}])
        admin.delete_logical_view(name=f"{parent}/logicalViews/py-users")
        raises(InvalidArgument, lambda: ask("SELECT * FROM `py-users`"))


@case
def bigtable_materialized_view():
    """A materialized view is created, listed, protected and deleted; reads by key and by SQL follow its table."""
    from google.api_core.exceptions import FailedPrecondition, InvalidArgument, NotFound
    from google.cloud.bigtable import Client
    from google.cloud.bigtable.data import BigtableDataClient, ReadRowsQuery
    from google.cloud.bigtable_admin_v2.types import MaterializedView

    table = new_bigtable_table("py-view", f=None)

    def write(key, city):
        row = table.direct_row(key)
        row.set_cell("f", b"city", city)
        row.commit()

    write(b"a#1", b"Rome")
    write(b"a#2", b"Oslo")
    admin = Client(project="tabletop", admin=True).instance_admin_client
    parent = "projects/tabletop/instances/tabletop"
    name = f"{parent}/materializedViews/py-cities"
    query = "SELECT f['city'] AS city, _key AS k FROM `py-view` ORDER BY city, k"

    def create(text):
        view = MaterializedView(query=text, deletion_protection=True)
        return admin.create_materialized_view(parent=parent, materialized_view_id="py-cities", materialized_view=view).result()

    raises(InvalidArgument, lambda: create(query + " LIMIT 1"))
    equal(create(query).name, name)
    equal(admin.get_materialized_view(name=name).query, query)
    equal([view.name for view in admin.list_materialized_views(parent=parent)], [name])
    with BigtableDataClient(project="tabletop") as client:
        view = client.get_materialized_view("tabletop", "py-cities")

        def keys():
            return [(row.row_key, row.get_cells("default", b"k")[0].value) for row in view.read_rows(ReadRowsQuery())]

        oslo, rome = (b"Oslo\x00\x01a#2", b"a#2"), (b"Rome\x00\x01a#1", b"a#1")
        equal(keys(), [oslo, rome])
        write(b"a#1", b"Bern")
        equal(keys(), [(b"Bern\x00\x01a#1", b"a#1"), oslo])
        equal(view.read_row(oslo[0]).row_key, oslo[0])
        equal(view.read_row(rome[0]), None)
        equal(view.sample_row_keys()[-1][0], b"")
        result = client.execute_query("SELECT city, k FROM `py-cities` WHERE city = 'Bern'", "tabletop")
        equal([dict(row.fields) for row in result], [{"city": b"Bern", "k": b"a#1"}])
        raises(FailedPrecondition, table.delete)
        raises(FailedPrecondition, lambda: admin.delete_materialized_view(name=name))
        view = MaterializedView(name=name, deletion_protection=False)
        admin.update_materialized_view(materialized_view=view, update_mask={"paths": ["deletion_protection"]}).result()
        admin.delete_materialized_view(name=name)
        raises(NotFound, lambda: admin.get_materialized_view(name=name))
    table.delete()


@case
def bigtable_sql_program_of_the_page():
    """The program of docs/sql.md prints what its comments say."""
    page = (Path(__file__).parents[2] / "docs" / "sql.md").read_text()
    program = page.split("```python\n")[1].split("```")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(program, "docs/sql.md", "exec"), {})
    want = re.findall(r"# (\[\[.*\]\])$", program, re.MULTILINE)
    assert len(want) == program.count("print("), want
    equal(printed.getvalue().splitlines(), want)


@case
def bigtable_errors_have_their_codes():
    from google.api_core.exceptions import NotFound

    table = bigtable_instance().table("py-none")
    raises(NotFound, lambda: list(table.read_rows(retry=None)))
    table = new_bigtable_table("py-errors", f=None)
    row = table.direct_row(b"r")
    row.set_cell("nope", b"q", b"v")
    status = table.mutate_rows([row])[0]
    equal(status.code, 5)  # NOT_FOUND


# ---- DynamoDB ---------------------------------------------------------------


def dynamodb():
    import boto3

    if boto3.DEFAULT_SESSION is None:
        boto3.setup_default_session()
        boto3.DEFAULT_SESSION.events.register(
            "before-call.dynamodb", lambda model, **_: CALLED.add(model.name)
        )
    return boto3.resource("dynamodb")


def client():
    """The operations of the API, with items as plain values."""
    return dynamodb().meta.client


def dynamodb_case(fn):
    """A case that must call exactly the operations of its row."""

    def run():
        CALLED.clear()
        fn()
        equal(CALLED - PRELUDE, LISTED[name] - PRELUDE)

    name = fn.__name__.removeprefix("dynamodb_").replace("_", " ")
    run.__name__, run.row = fn.__name__, name
    return case(run)


def new_dynamodb_table(name, **extra):
    attributes = [
        {"AttributeName": "pk", "AttributeType": "S"},
        {"AttributeName": "sk", "AttributeType": "N"},
    ]
    attributes += extra.pop("more", [])
    table = dynamodb().create_table(
        TableName=name,
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=attributes,
        BillingMode="PAY_PER_REQUEST",
        **extra,
    )
    table.wait_until_exists()
    return table


def refused(code):
    return lambda e: e.response["Error"]["Code"] == code


def global_index(name, hash_key, range_key):
    return {
        "IndexName": name,
        "KeySchema": [
            {"AttributeName": hash_key, "KeyType": "HASH"},
            {"AttributeName": range_key, "KeyType": "RANGE"},
        ],
        "Projection": {"ProjectionType": "ALL"},
    }


COLOR = {"AttributeName": "color", "AttributeType": "S"}
SIZE = {"AttributeName": "size", "AttributeType": "N"}


def sort_keys(answer):
    return [int(i["sk"]) for i in answer["Items"]]


@dynamodb_case
def dynamodb_tables():
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-tables")
    equal(table.table_status, "ACTIVE")
    assert "py-tables" in [t.name for t in dynamodb().tables.all()]
    raises(ClientError, lambda: new_dynamodb_table("py-tables"), refused("ResourceInUseException"))
    table.delete()
    table.wait_until_not_exists()
    raises(ClientError, table.load, refused("ResourceNotFoundException"))


@dynamodb_case
def dynamodb_items():
    table = new_dynamodb_table("py-items")
    item = {
        "pk": "a",
        "sk": Decimal("1"),
        "s": "text",
        "n": Decimal("12345678901234567890123456789012345678"),
        "small": Decimal("-0.00000000000000000001"),
        "b": b"\x00\xff",
        "t": True,
        "none": None,
        "ss": {"x", "y"},
        "ns": {Decimal("1.5"), Decimal("-2")},
        "bs": {b"1", b"2"},
        "l": ["a", Decimal(1), [None]],
        "m": {"k": {"deep": False}},
        "empty": "",
    }
    table.put_item(Item=item)
    got = table.get_item(Key={"pk": "a", "sk": 1}, ConsistentRead=True)["Item"]
    got["b"], got["bs"] = got["b"].value, {b.value for b in got["bs"]}
    equal(got, item)
    assert "Item" not in table.get_item(Key={"pk": "a", "sk": 2})


@dynamodb_case
def dynamodb_updates():
    from boto3.dynamodb.conditions import Attr
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-updates")
    key = {"pk": "a", "sk": 1}
    new = Attr("pk").not_exists()
    table.put_item(Item={**key, "n": 1, "gone": 1, "left": {"x", "y"}}, ConditionExpression=new)
    raises(
        ClientError,
        lambda: table.put_item(Item=key, ConditionExpression=new),
        refused("ConditionalCheckFailedException"),
    )
    out = table.update_item(
        Key=key,
        UpdateExpression="SET n = n + :one, #l = list_append(if_not_exists(#l, :none), :x)"
        " REMOVE gone ADD tags :t DELETE #left :x_set",
        ExpressionAttributeNames={"#l": "list", "#left": "left"},
        ExpressionAttributeValues={":one": 1, ":none": [], ":x": ["x"], ":t": {"t1"}, ":x_set": {"x"}},
        ReturnValues="ALL_NEW",
    )
    equal(out["Attributes"], {**key, "n": 2, "list": ["x"], "tags": {"t1"}, "left": {"y"}})
    old = table.delete_item(Key=key, ReturnValues="ALL_OLD")["Attributes"]
    equal(old["n"], 2)


@dynamodb_case
def dynamodb_reads():
    from boto3.dynamodb.conditions import Attr, Key

    table = new_dynamodb_table("py-reads")
    with table.batch_writer() as batch:
        for i in range(60):
            batch.put_item(Item={"pk": f"p{i % 2}", "sk": i, "even": i % 4 == 0, "pad": "x" * 100})
    p0 = Key("pk").eq("p0")
    got = table.query(KeyConditionExpression=p0 & Key("sk").between(10, 20))
    equal(sort_keys(got), [10, 12, 14, 16, 18, 20])
    got = table.query(KeyConditionExpression=p0, ScanIndexForward=False, Limit=2)
    equal(sort_keys(got), [58, 56])
    seen, start = [], {}
    while True:
        page = table.scan(Limit=7, FilterExpression=Attr("even").eq(True), **start)
        seen += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    equal(len(seen), 15)
    parts = [table.scan(Segment=s, TotalSegments=4)["Count"] for s in range(4)]
    equal(sum(parts), 60)


@dynamodb_case
def dynamodb_batches():
    from botocore.exceptions import ClientError

    name = new_dynamodb_table("py-batches").name
    put = [{"PutRequest": {"Item": {"pk": "a", "sk": i}}} for i in range(3)]
    out = client().batch_write_item(RequestItems={name: put})
    equal(out["UnprocessedItems"], {})
    change = [
        {"DeleteRequest": {"Key": {"pk": "a", "sk": 0}}},
        {"PutRequest": {"Item": {"pk": "a", "sk": 1, "v": "new"}}},
    ]
    client().batch_write_item(RequestItems={name: change})
    out = client().batch_get_item(RequestItems={name: {"Keys": [{"pk": "a", "sk": i} for i in range(4)]}})
    got = sorted(out["Responses"][name], key=lambda i: i["sk"])
    equal(got, [{"pk": "a", "sk": 1, "v": "new"}, {"pk": "a", "sk": 2}])
    equal(out["UnprocessedKeys"], {})
    twice = {name: [change[0], change[0]]}
    raises(ClientError, lambda: client().batch_write_item(RequestItems=twice), refused("ValidationException"))


@dynamodb_case
def dynamodb_indexes():
    from boto3.dynamodb.conditions import Key

    table = new_dynamodb_table(
        "py-indexes",
        more=[COLOR, SIZE],
        GlobalSecondaryIndexes=[global_index("by-color", "color", "size")],
        LocalSecondaryIndexes=[
            {**global_index("by-size", "pk", "size"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
        ],
    )
    for i in range(10):
        item = {"pk": "a", "sk": i, "size": 100 - i, "pad": "x"}
        if i % 2:
            item["color"] = "red"
        table.put_item(Item=item)
    red = {"IndexName": "by-color", "KeyConditionExpression": Key("color").eq("red")}
    equal(sort_keys(table.query(**red)), [9, 7, 5, 3, 1])
    got = table.query(
        IndexName="by-size", KeyConditionExpression=Key("pk").eq("a"), Limit=2, ConsistentRead=True
    )
    equal(got["Items"], [{"pk": "a", "sk": 9, "size": 91}, {"pk": "a", "sk": 8, "size": 92}])
    table.update_item(Key={"pk": "a", "sk": 9}, UpdateExpression="REMOVE color")
    equal(sort_keys(table.query(**red)), [7, 5, 3, 1])


@dynamodb_case
def dynamodb_transactions():
    name = new_dynamodb_table("py-transactions").name
    table, errors = dynamodb().Table(name), client().exceptions

    def key(i):
        return {"TableName": name, "Key": {"pk": "a", "sk": i}}

    def put(i, **more):
        return {"Put": {"TableName": name, "Item": {"pk": "a", "sk": i, **more}}}

    for i in range(3):
        table.put_item(Item={"pk": "a", "sk": i, "n": i})
    actions = [
        {"ConditionCheck": {**key(0), "ConditionExpression": "attribute_exists(n)"}},
        {
            "Update": {
                **key(1),
                "UpdateExpression": "ADD n :by",
                "ExpressionAttributeValues": {":by": 10},
            }
        },
        {"Delete": key(2)},
        put(3),
    ]
    for _ in range(2):  # the second time, its token is known
        client().transact_write_items(TransactItems=actions, ClientRequestToken="once")
    raises(
        errors.IdempotentParameterMismatchException,
        lambda: client().transact_write_items(TransactItems=actions[:1], ClientRequestToken="once"),
    )

    def get(*numbers):
        out = client().transact_get_items(TransactItems=[{"Get": key(i)} for i in numbers])
        return [answer.get("Item") for answer in out["Responses"]]

    equal(get(3, 2, 1), [{"pk": "a", "sk": 3}, None, {"pk": "a", "sk": 1, "n": 11}])

    failing = put(1)
    failing["Put"].update(
        ConditionExpression="attribute_not_exists(pk)",
        ReturnValuesOnConditionCheckFailure="ALL_OLD",
    )
    refusal = raises(
        errors.TransactionCanceledException,
        lambda: client().transact_write_items(TransactItems=[put(5), failing]),
    )
    reasons = refusal.response["CancellationReasons"]
    equal([r["Code"] for r in reasons], ["None", "ConditionalCheckFailed"])
    equal(reasons[1]["Item"], {"pk": {"S": "a"}, "sk": {"N": "1"}, "n": {"N": "11"}})
    equal(get(5), [None])


@dynamodb_case
def dynamodb_changes():
    from boto3.dynamodb.conditions import Key
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-changes")
    for i in range(3):
        table.put_item(Item={"pk": "a", "sk": i, "color": "red", "size": -i})
    red = {"IndexName": "by-color", "KeyConditionExpression": Key("color").eq("red")}
    raises(ClientError, lambda: table.query(**red), refused("ValidationException"))

    def update(**change):
        client().update_table(TableName=table.name, **change)
        while True:
            table.load()
            indexes = table.global_secondary_indexes or []
            if {table.table_status} | {i["IndexStatus"] for i in indexes} == {"ACTIVE"}:
                return [i["IndexName"] for i in indexes]
            time.sleep(0.05)

    index = {"Create": global_index("by-color", "color", "size")}
    equal(update(AttributeDefinitions=[COLOR, SIZE], GlobalSecondaryIndexUpdates=[index]), ["by-color"])
    equal(sort_keys(table.query(**red)), [2, 1, 0])
    equal(update(GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-color"}}]), [])
    raises(ClientError, lambda: table.query(**red), refused("ValidationException"))
    update(DeletionProtectionEnabled=True)
    raises(ClientError, table.delete, refused("ValidationException"))
    update(DeletionProtectionEnabled=False)
    table.delete()


@dynamodb_case
def dynamodb_time_to_live():
    from botocore.exceptions import ClientError

    name = new_dynamodb_table("py-ttl").name

    def described():
        return client().describe_time_to_live(TableName=name)["TimeToLiveDescription"]

    equal(described(), {"TimeToLiveStatus": "DISABLED"})
    on = {"Enabled": True, "AttributeName": "expires"}
    out = client().update_time_to_live(TableName=name, TimeToLiveSpecification=on)
    equal(out["TimeToLiveSpecification"], on)
    equal(described(), {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"})
    raises(
        ClientError,
        lambda: client().update_time_to_live(TableName=name, TimeToLiveSpecification=on),
        refused("ValidationException"),
    )


@dynamodb_case
def dynamodb_tags():
    arn = new_dynamodb_table("py-tags", Tags=[{"Key": "team", "Value": "red"}]).table_arn

    def tags():
        return {t["Key"]: t["Value"] for t in client().list_tags_of_resource(ResourceArn=arn)["Tags"]}

    more = [{"Key": "team", "Value": "blue"}, {"Key": "empty", "Value": ""}]
    client().tag_resource(ResourceArn=arn, Tags=more)
    equal(tags(), {"team": "blue", "empty": ""})
    client().untag_resource(ResourceArn=arn, TagKeys=["empty", "nowhere"])
    equal(tags(), {"team": "blue"})


@dynamodb_case
def dynamodb_statements():
    from botocore.exceptions import ClientError

    new_dynamodb_table("py-statements")
    insert = """INSERT INTO "py-statements" VALUE {'pk': ?, 'sk': ?, 'color': ?}"""
    for sk in range(3):
        client().execute_statement(Statement=insert, Parameters=["a", sk, "red"])
    select = """SELECT sk FROM "py-statements" WHERE pk = 'a' AND sk >= 1"""
    equal(sort_keys(client().execute_statement(Statement=select)), [1, 2])
    again = {"Statement": """INSERT INTO "py-statements" VALUE {'pk': 'a', 'sk': 1}"""}
    update = {"Statement": """UPDATE "py-statements" SET color = 'blue' WHERE pk = 'a' AND sk = 0"""}
    done, failed = client().batch_execute_statement(Statements=[update, again])["Responses"]
    assert "Error" not in done
    equal(failed["Error"]["Code"], "DuplicateItem")
    delete = {"Statement": """DELETE FROM "py-statements" WHERE pk = 'a' AND sk = 0"""}
    refusal = raises(
        ClientError,
        lambda: client().execute_transaction(TransactStatements=[delete, again]),
        refused("TransactionCanceledException"),
    )
    equal([r["Code"] for r in refusal.response["CancellationReasons"]], ["None", "DuplicateItem"])


@dynamodb_case
def dynamodb_streams():
    import boto3

    view = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    table = new_dynamodb_table("py-streams", StreamSpecification=view)
    for v in ["1", "2", "2"]:
        table.put_item(Item={"pk": "a", "sk": 1, "v": v})
    table.delete_item(Key={"pk": "a", "sk": 1})
    dynamodb()
    streams = boto3.client("dynamodbstreams")
    streams.meta.events.register("before-call", lambda model, **_: CALLED.add(model.name))
    (stream,) = streams.list_streams(TableName=table.name)["Streams"]
    arn = stream["StreamArn"]
    got = []
    for shard in streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        for r in streams.get_records(ShardIterator=iterator)["Records"]:
            old, new = (r["dynamodb"].get(i, {}).get("v", {}).get("S") for i in ("OldImage", "NewImage"))
            got.append((r["eventName"], old, new))
    equal(got, [("INSERT", None, "1"), ("MODIFY", "1", "2"), ("REMOVE", "2", None)])


@dynamodb_case
def dynamodb_policies():
    arn = new_dynamodb_table("py-policies").table_arn
    grant = {"Resource": ["*"], "Action": ["dynamodb:GetItem"], "Principal": {"AWS": "123456789012"}, "Effect": "Allow"}
    document = json.dumps({"Statement": [grant], "Version": "2012-10-17"})
    put = client().put_resource_policy(ResourceArn=arn, Policy=document)
    got = client().get_resource_policy(ResourceArn=arn)
    equal(got["RevisionId"], put["RevisionId"])
    equal(json.loads(got["Policy"])["Statement"][0]["Principal"], {"AWS": "arn:aws:iam::123456789012:root"})
    missing = client().exceptions.PolicyNotFoundException
    raises(missing, lambda: client().delete_resource_policy(ResourceArn=arn, ExpectedRevisionId="1"))
    client().delete_resource_policy(ResourceArn=arn)
    raises(missing, lambda: client().get_resource_policy(ResourceArn=arn))


@dynamodb_case
def dynamodb_recovery():
    table = new_dynamodb_table("py-recovery")
    db, name, key = client(), table.name, {"pk": "a", "sk": 1}
    db.put_item(TableName=name, Item=key)
    db.update_continuous_backups(TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})
    described = db.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
    equal(described["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"], "ENABLED")
    arn = db.create_backup(TableName=name, BackupName="first")["BackupDetails"]["BackupArn"]
    while db.describe_backup(BackupArn=arn)["BackupDescription"]["BackupDetails"]["BackupStatus"] == "CREATING":
        pass
    equal([b["BackupArn"] for b in db.list_backups(TableName=name)["BackupSummaries"]], [arn])
    db.restore_table_from_backup(BackupArn=arn, TargetTableName="py-from-backup")
    db.restore_table_to_point_in_time(SourceTableName=name, TargetTableName="py-to-time", UseLatestRestorableTime=True)
    for restored in ("py-from-backup", "py-to-time"):
        db.get_waiter("table_exists").wait(TableName=restored, WaiterConfig={"Delay": 1, "MaxAttempts": 60})
        equal(db.get_item(TableName=restored, Key=key)["Item"], key)
    db.delete_backup(BackupArn=arn)
    raises(db.exceptions.BackupNotFoundException, lambda: db.delete_backup(BackupArn=arn))


@dynamodb_case
def dynamodb_insights():
    name = new_dynamodb_table("py-insights").name

    def update(action):
        out = client().update_contributor_insights(TableName=name, ContributorInsightsAction=action)
        return out["ContributorInsightsStatus"]

    def listed():
        return len(client().list_contributor_insights(TableName=name)["ContributorInsightsSummaries"])

    equal(update("ENABLE"), "ENABLED")
    equal(len(client().describe_contributor_insights(TableName=name)["ContributorInsightsRuleList"]), 4)
    equal(listed(), 1)
    equal(update("DISABLE"), "DISABLED")
    equal(listed(), 0)


@dynamodb_case
def dynamodb_kinesis():
    from botocore.exceptions import ClientError

    name = new_dynamodb_table("py-kinesis").name
    arn = "arn:aws:kinesis:us-east-1:000000000000:stream/py-kinesis"

    def described():
        out = client().describe_kinesis_streaming_destination(TableName=name)
        (one,) = out["KinesisDataStreamDestinations"]
        return one["DestinationStatus"], one.get("ApproximateCreationDateTimePrecision")

    enabled = client().enable_kinesis_streaming_destination(TableName=name, StreamArn=arn)
    equal(enabled["DestinationStatus"], "ENABLING")
    equal(described(), ("ACTIVE", None))
    raises(
        ClientError,
        lambda: client().enable_kinesis_streaming_destination(TableName=name, StreamArn=arn + "-two"),
        refused("ValidationException"),
    )
    precision = {"ApproximateCreationDateTimePrecision": "MICROSECOND"}
    client().update_kinesis_streaming_destination(TableName=name, StreamArn=arn, UpdateKinesisStreamingConfiguration=precision)
    equal(described(), ("ACTIVE", "MICROSECOND"))
    client().disable_kinesis_streaming_destination(TableName=name, StreamArn=arn)
    equal(described(), ("DISABLED", "MICROSECOND"))


@dynamodb_case
def dynamodb_global_tables():
    from botocore.exceptions import ClientError

    name = "py-global"
    equal(client().list_global_tables()["GlobalTables"], [])
    group = [{"RegionName": "us-east-1"}]
    raises(
        ClientError,
        lambda: client().create_global_table(GlobalTableName=name, ReplicationGroup=group),
        refused("ValidationException"),
    )
    for call in (
        lambda: client().update_global_table(GlobalTableName=name, ReplicaUpdates=[]),
        lambda: client().describe_global_table(GlobalTableName=name),
        lambda: client().update_global_table_settings(GlobalTableName=name),
        lambda: client().describe_global_table_settings(GlobalTableName=name),
    ):
        raises(ClientError, call, refused("GlobalTableNotFoundException"))
    for call in (
        lambda: client().describe_table_replica_auto_scaling(TableName=name),
        lambda: client().update_table_replica_auto_scaling(TableName=name),
    ):
        raises(ClientError, call, refused("ResourceNotFoundException"))


@dynamodb_case
def dynamodb_account():
    table = new_dynamodb_table("py-account")
    equal(client().describe_limits()["TableMaxReadCapacityUnits"], 40000)
    equal(len(client().describe_endpoints()["Endpoints"]), 1)
    backups = client().describe_continuous_backups(TableName=table.name)["ContinuousBackupsDescription"]
    equal(backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"], "DISABLED")
    insights = client().describe_contributor_insights(TableName=table.name)
    equal(insights["ContributorInsightsStatus"], "DISABLED")
    streams = client().describe_kinesis_streaming_destination(TableName=table.name)
    equal(streams["KinesisDataStreamDestinations"], [])
    raises(
        client().exceptions.PolicyNotFoundException,
        lambda: client().get_resource_policy(ResourceArn=table.table_arn),
    )


def finished(describe, status):
    """The result of describe when its job is no longer in progress."""
    while (done := describe())[status] == "IN_PROGRESS":
        time.sleep(0.01)
    return done


def imported(table, **request):
    """Import a table like that of new_dynamodb_table, and return the result."""
    arn = client().import_table(
        TableCreationParameters={
            "TableName": table,
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "sk", "KeyType": "RANGE"},
            ],
            "AttributeDefinitions": [
                {"AttributeName": "pk", "AttributeType": "S"},
                {"AttributeName": "sk", "AttributeType": "N"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
        },
        **request,
    )["ImportTableDescription"]["ImportArn"]
    return finished(lambda: client().describe_import(ImportArn=arn)["ImportTableDescription"], "ImportStatus")


@dynamodb_case
def dynamodb_exports():
    table = new_dynamodb_table("py-exports")
    arn = table.table_arn

    def export(**request):
        begun = client().export_table_to_point_in_time(TableArn=arn, S3Bucket="conformance", **request)
        export_arn = begun["ExportDescription"]["ExportArn"]
        return finished(lambda: client().describe_export(ExportArn=export_arn)["ExportDescription"], "ExportStatus")

    raises(
        client().exceptions.PointInTimeRecoveryUnavailableException,
        lambda: client().export_table_to_point_in_time(TableArn=arn, S3Bucket="conformance"),
    )
    client().update_continuous_backups(
        TableName=table.name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    first = {"pk": "a", "sk": 1, "text": "one"}
    table.put_item(Item=first)
    full = export()
    equal((full["ExportStatus"], full["ItemCount"]), ("COMPLETED", 1))
    table.put_item(Item={"pk": "a", "sk": 1, "text": "changed"})
    table.put_item(Item={"pk": "a", "sk": 2})
    Control().advance("1h")
    increment = export(
        ExportType="INCREMENTAL_EXPORT", IncrementalExportSpecification={"ExportFromTime": full["ExportTime"]}
    )
    equal((increment["ExportStatus"], increment["ItemCount"]), ("COMPLETED", 2))
    listed = client().list_exports(TableArn=arn)["ExportSummaries"]
    equal([e["ExportArn"] for e in listed], [increment["ExportArn"], full["ExportArn"]])
    raises(
        client().exceptions.ExportNotFoundException,
        lambda: client().describe_export(ExportArn=arn + "/export/01716790307109-5f9d6aaa"),
    )
    done = imported(
        "py-exports-again",
        S3BucketSource={
            "S3Bucket": "conformance",
            "S3KeyPrefix": full["ExportManifest"].rpartition("/")[0] + "/data/",
        },
        InputFormat="DYNAMODB_JSON",
        InputCompressionType="GZIP",
    )
    equal(done["ImportStatus"], "COMPLETED")
    equal(client().scan(TableName="py-exports-again")["Items"], [first])


@dynamodb_case
def dynamodb_imports():
    def from_bucket(bucket, table):
        return imported(table, S3BucketSource={"S3Bucket": bucket, "S3KeyPrefix": "items"}, InputFormat="CSV")

    done = from_bucket("conformance", "py-imports")
    equal((done["ImportStatus"], done["ImportedItemCount"]), ("COMPLETED", 2))
    items = client().scan(TableName="py-imports")["Items"]
    equal(items, [{"pk": "a", "sk": 1, "text": "one"}, {"pk": "a", "sk": 2, "text": "two"}])
    equal(from_bucket("py-nowhere", "py-imports-failed")["FailureCode"], "S3NoSuchBucket")
    equal(len(client().list_imports(TableArn=done["TableArn"])["ImportSummaryList"]), 1)


@dynamodb_case
def dynamodb_vectors():
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-vectors")

    def update(*attributes, **change):
        client().update_table(TableName=table.name, AttributeDefinitions=list(attributes), VectorIndexUpdates=[change])

    def near(*vector):
        found = client().search_vectors(
            TableName=table.name,
            IndexName="near",
            SearchVector=list(vector),
            TopK=2,
            SearchConditionExpression="color = :c",
            ExpressionAttributeValues={":c": "red"},
        )
        return [int(r["Item"]["sk"]) for r in found["SearchResults"]]

    index = {
        "IndexName": "near",
        "VectorAttribute": {"AttributeName": "v"},
        "Dimensions": 2,
        "DistanceFunction": "EUCLIDEAN",
        "Projection": {"ProjectionType": "ALL"},
        "SearchSchema": [{"AttributeName": "color", "SearchSchemaElementType": "INLINE_FILTER"}],
    }
    update(COLOR, Create=index)
    table.put_item(Item={"pk": "a", "sk": 1, "color": "red", "v": [0, 3]})
    table.put_item(Item={"pk": "a", "sk": 2, "color": "red", "v": [0, 1]})
    table.put_item(Item={"pk": "a", "sk": 3, "color": "red", "v": [9, 9]})
    table.put_item(Item={"pk": "a", "sk": 4, "color": "blue", "v": [0, 0]})
    table.put_item(Item={"pk": "a", "sk": 5, "color": "red"})
    equal(near(0, 0), [2, 1])
    raises(ClientError, lambda: table.put_item(Item={"pk": "a", "sk": 6, "v": [1]}), refused("ValidationException"))
    update(Delete={"IndexName": "near"})
    raises(ClientError, lambda: near(0, 0))


@dynamodb_case
def dynamodb_bulk():
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-bulk")
    arn = client().start_bulk_put_items(
        TableName=table.name,
        InputS3Configuration={"S3Bucket": "conformance", "S3KeyPrefix": "bulk", "InputFormat": "DYNAMODB_JSON"},
        OutputS3Configuration={
            "S3Bucket": "conformance",
            "S3KeyPrefix": "reports",
            "OutputType": ["CONDITION_CHECK_FAILURE"],
        },
    )["BulkOperationDescription"]["BulkOperationArn"]
    while "EndTime" not in (
        done := client().describe_bulk_operation(BulkOperationArn=arn)["BulkOperationDescription"]
    ):
        time.sleep(0.01)
    equal(done["ProcessedItemCount"], 3)
    equal(table.scan()["Items"], [{"pk": "a", "sk": 1, "text": "one"}, {"pk": "a", "sk": 2}])
    equal(len(client().list_bulk_operations()["BulkOperationsSummaryList"]), 1)
    raises(
        ClientError, lambda: client().cancel_bulk_operation(BulkOperationArn=arn), refused("ValidationException")
    )


@dynamodb_case
def dynamodb_errors():
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-errors")
    raises(ClientError, lambda: table.put_item(Item={"pk": "a"}), refused("ValidationException"))
    raises(
        ClientError,
        lambda: dynamodb().Table("py-nowhere").get_item(Key={"pk": "a"}),
        refused("ResourceNotFoundException"),
    )


# ---- the control API ---------------------------------------------------------


@case
def control_both_endpoints_come_back_expire_and_outlive_faults():
    """Last: it resets the server and moves its clock."""
    control = Control()
    control.reset()
    spec = {
        "TableName": "py-control", "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    }
    client().create_table(**spec)
    client().update_time_to_live(
        TableName="py-control", TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
    due = int(time.time()) + 24 * 3600
    control.put_items("py-control", [
        {"pk": {"S": f"k{i:03d}"}, "ttl": {"N": str(due)}} if i else {"pk": {"S": "kept"}} for i in range(1000)])
    under = control.bigtable_table("py-control")

    def both():
        pages = client().get_paginator("scan").paginate(TableName="py-control")
        items = sum(len(page["Items"]) for page in pages)
        return items, sum(1 for _ in bigtable_instance().table(under).read_rows())

    equal(both(), (1000, 1000))
    control.snapshot("all")
    table = dynamodb().Table("py-control")
    with table.batch_writer() as batch:
        for i in range(2, 1000, 2):
            batch.delete_item(Key={"pk": f"k{i:03d}"})
        batch.delete_item(Key={"pk": "kept"})
    equal(both(), (500, 500))
    control.restore("all")
    equal(both(), (1000, 1000))

    control.advance("25h")
    control.ttl()
    equal(both(), (1, 1))
    dump = control.dump(under)
    assert "kept" in dump and "k001" not in dump, dump

    # The official client retries.
    rows = new_bigtable_table("py-faults", f=None)
    fault = control.fault(endpoint="bigtable", method="MutateRow", effect="fail", code="UNAVAILABLE", times=2)
    row = rows.direct_row(b"r")
    row.set_cell("f", b"q", b"v", timestamp=datetime.fromtimestamp(1, timezone.utc))  # otherwise it does not retry
    equal(row.commit().code, 0)
    equal(rows.read_row(b"r").cell_value("f", b"q"), b"v")
    equal([(f["id"], f["hits"]) for f in control.faults()], [(fault["id"], 2)])
    equal([r["status"] for r in control.requests(operation="MutateRow", internal="false", table="py-faults")],
          ["OK", "Unavailable", "Unavailable"])
    control.remove_faults()
    control.reset()


# ---- running ----------------------------------------------------------------


def start(binary, buckets):
    """Start the server; return it after it has printed all lines for export."""
    bucket = os.path.join(buckets, "conformance")
    os.mkdir(bucket)
    with open(os.path.join(bucket, "items.csv"), "w") as file:
        file.write("pk,sk,text\na,1,one\na,2,two\n")
    with open(os.path.join(bucket, "bulk.json"), "w") as file:
        file.write('{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}, "text": {"S": "one"}}}\n')
        file.write('{"Item": {"pk": {"S": "a"}, "sk": {"N": "1"}}, "ConditionExpression": "attribute_not_exists(pk)"}\n')
        file.write('{"Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}\n')
    endpoints = ["--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0"]
    server = subprocess.Popen(
        [binary, "serve", *endpoints, "--buckets", buckets],
        stdout=subprocess.PIPE,
        text=True,
    )
    found = {}
    for line in server.stdout:
        if m := EXPORT.match(line.strip()):
            found[m.group(1)] = m.group(2)
        if WANTED <= found.keys():
            break
    else:
        raise SystemExit(f"the server ended before it was ready; it printed only {sorted(found)}")
    os.environ.update(found)
    threading.Thread(target=lambda: [None for _ in server.stdout], daemon=True).start()
    return server


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    equal({fn.row for fn in CASES if hasattr(fn, "row")}, LISTED.keys())
    folder = tempfile.TemporaryDirectory(prefix="tabletop-buckets-")
    server = start(sys.argv[1], folder.name)
    failed = 0
    try:
        for fn in CASES:
            try:
                fn()
                print(f"ok    {fn.__name__}")
            except Exception:
                failed += 1
                print(f"FAIL  {fn.__name__}")
                traceback.print_exc()
    finally:
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=30)
    print(f"{len(CASES) - failed} passed, {failed} failed")
    if code != 0:
        print(f"the server ended with code {code} on SIGTERM, expected 0")
    sys.exit(1 if failed or code else 0)


if __name__ == "__main__":
    main()
