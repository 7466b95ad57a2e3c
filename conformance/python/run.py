#!/usr/bin/env python3
"""The official Python clients, unchanged, against a running `tabletop serve`.

    run.py PATH-TO-TABLETOP

Starts the binary on free loopback ports, points boto3 and
google-cloud-bigtable at it by the very lines that it prints for export, and
runs each case. Exits 0 when all pass.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import traceback
from decimal import Decimal

EXPORT = re.compile(r"^export (\w+)=(\S+)$")
WANTED = {
    "BIGTABLE_EMULATOR_HOST",
    "AWS_ENDPOINT_URL_DYNAMODB",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
}

CASES = []


def case(fn):
    CASES.append(fn)
    return fn


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

    return boto3.resource("dynamodb")


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


@case
def dynamodb_tables():
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-tables")
    equal(table.table_status, "ACTIVE")
    assert "py-tables" in [t.name for t in dynamodb().tables.all()]
    raises(ClientError, lambda: new_dynamodb_table("py-tables"), refused("ResourceInUseException"))
    table.delete()
    table.wait_until_not_exists()
    raises(ClientError, table.load, refused("ResourceNotFoundException"))


@case
def dynamodb_items_of_all_types():
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
    got = table.get_item(Key={"pk": "a", "sk": 1})["Item"]
    got["b"], got["bs"] = got["b"].value, {b.value for b in got["bs"]}
    equal(got, item)
    assert "Item" not in table.get_item(Key={"pk": "a", "sk": 2})


@case
def dynamodb_conditions_and_updates():
    from boto3.dynamodb.conditions import Attr
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-updates")
    key = {"pk": "a", "sk": 1}
    table.put_item(Item={**key, "n": 1}, ConditionExpression=Attr("pk").not_exists())
    raises(
        ClientError,
        lambda: table.put_item(Item=key, ConditionExpression=Attr("pk").not_exists()),
        refused("ConditionalCheckFailedException"),
    )
    out = table.update_item(
        Key=key,
        UpdateExpression="SET n = n + :one, #l = list_append(if_not_exists(#l, :none), :x) ADD tags :t",
        ExpressionAttributeNames={"#l": "list"},
        ExpressionAttributeValues={":one": 1, ":none": [], ":x": ["x"], ":t": {"t1"}},
        ReturnValues="ALL_NEW",
    )
    equal(out["Attributes"], {**key, "n": 2, "list": ["x"], "tags": {"t1"}})
    old = table.delete_item(Key=key, ReturnValues="ALL_OLD")["Attributes"]
    equal(old["n"], 2)


@case
def dynamodb_query_scan_and_paging():
    from boto3.dynamodb.conditions import Attr, Key

    table = new_dynamodb_table("py-query")
    with table.batch_writer() as batch:
        for i in range(60):
            batch.put_item(Item={"pk": f"p{i % 2}", "sk": i, "even": i % 4 == 0, "pad": "x" * 100})
    got = table.query(KeyConditionExpression=Key("pk").eq("p0") & Key("sk").between(10, 20))
    equal([int(i["sk"]) for i in got["Items"]], [10, 12, 14, 16, 18, 20])
    got = table.query(KeyConditionExpression=Key("pk").eq("p0"), ScanIndexForward=False, Limit=2)
    equal([int(i["sk"]) for i in got["Items"]], [58, 56])
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
    got = dynamodb().batch_get_item(
        RequestItems={"py-query": {"Keys": [{"pk": "p0", "sk": 0}, {"pk": "p1", "sk": 1}, {"pk": "p1", "sk": 2}]}}
    )
    equal(len(got["Responses"]["py-query"]), 2)


@case
def dynamodb_secondary_indexes():
    from boto3.dynamodb.conditions import Key

    table = new_dynamodb_table(
        "py-index",
        more=[{"AttributeName": "color", "AttributeType": "S"}, {"AttributeName": "size", "AttributeType": "N"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": "by-color",
                "KeySchema": [
                    {"AttributeName": "color", "KeyType": "HASH"},
                    {"AttributeName": "size", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-size",
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "size", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
    )
    for i in range(10):
        item = {"pk": "a", "sk": i, "size": 100 - i}
        if i % 2:
            item["color"] = "red"
        table.put_item(Item=item)
    got = table.query(IndexName="by-color", KeyConditionExpression=Key("color").eq("red"))
    equal([int(i["sk"]) for i in got["Items"]], [9, 7, 5, 3, 1])
    got = table.query(IndexName="by-size", KeyConditionExpression=Key("pk").eq("a"), Limit=2, ConsistentRead=True)
    equal([int(i["sk"]) for i in got["Items"]], [9, 8])
    table.update_item(Key={"pk": "a", "sk": 9}, UpdateExpression="REMOVE color")
    got = table.query(IndexName="by-color", KeyConditionExpression=Key("color").eq("red"))
    equal([int(i["sk"]) for i in got["Items"]], [7, 5, 3, 1])


@case
def dynamodb_errors_have_their_types():
    import boto3
    from botocore.exceptions import ClientError

    table = new_dynamodb_table("py-refused")
    raises(ClientError, lambda: table.put_item(Item={"pk": "a"}), refused("ValidationException"))
    raises(
        ClientError,
        lambda: dynamodb().Table("py-nowhere").get_item(Key={"pk": "a"}),
        refused("ResourceNotFoundException"),
    )
    raises(
        ClientError,
        lambda: boto3.client("dynamodb").list_global_tables(),
        lambda e: "ListGlobalTables" in str(e),
    )


# ---- running ----------------------------------------------------------------


def start(binary):
    """Start the server; return it once it has printed every line to export."""
    server = subprocess.Popen(
        [binary, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0"],
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
    server = start(sys.argv[1])
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
