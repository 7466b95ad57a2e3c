"""The orders of a shop, in DynamoDB or in Bigtable.

Both stores have the same methods. Customers must not contain "#".
"""

from __future__ import annotations

from typing import NamedTuple

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError
from google.cloud import bigtable
from google.cloud.bigtable.row_filters import CellsColumnLimitFilter, ColumnQualifierRegexFilter, FamilyNameRegexFilter, RowFilterChain, ValueRegexFilter
from google.cloud.bigtable.row_set import RowSet


class Order(NamedTuple):
    customer: str
    id: str
    status: str
    """open or paid"""
    total: int


class Refused(Exception):
    """An order that exists is placed, or one that is not open is paid."""


class DynamoDBOrders:
    def __init__(self) -> None:
        self.table = boto3.resource("dynamodb").Table("Orders")

    def place(self, customer: str, id: str, total: int) -> None:
        item = {"customer": customer, "id": id, "status": "open", "total": total}
        self._change(self.table.put_item, Item=item, ConditionExpression=Attr("customer").not_exists())

    def pay(self, customer: str, id: str) -> None:
        self._change(
            self.table.update_item, Key={"customer": customer, "id": id}, UpdateExpression="SET #status = :paid",
            ConditionExpression=Attr("status").eq("open"), ExpressionAttributeNames={"#status": "status"}, ExpressionAttributeValues={":paid": "paid"})

    def of(self, customer: str) -> list[Order]:
        pages = self.table.meta.client.get_paginator("query").paginate(
            TableName="Orders", KeyConditionExpression=Key("customer").eq(customer), ConsistentRead=True)
        return [Order(item["customer"], item["id"], item["status"], int(item["total"])) for page in pages for item in page["Items"]]

    def _change(self, call, **request) -> None:
        try:
            call(**request)
        except ClientError as e:
            if e.response["Error"]["Code"] == "ConditionalCheckFailedException":
                raise Refused from e
            raise


ORDER = FamilyNameRegexFilter("o")
"""The cells of an order; in _f the DynamoDB endpoint keeps its own."""


class BigtableOrders:
    """The rows are those that mapping.yaml describes: customer#id, with cells of the family o."""

    def __init__(self, project: str, instance: str) -> None:
        self.table = bigtable.Client(project=project).instance(instance).table("orders")

    def place(self, customer: str, id: str, total: int) -> None:
        row = self.table.conditional_row(f"{customer}#{id}", ORDER)
        row.set_cell("o", "status", "open", state=False)  # if no cell passes
        row.set_cell("o", "total", str(total), state=False)
        if row.commit():
            raise Refused

    def pay(self, customer: str, id: str) -> None:
        is_open = RowFilterChain([ORDER, ColumnQualifierRegexFilter("status"), CellsColumnLimitFilter(1), ValueRegexFilter("open")])
        row = self.table.conditional_row(f"{customer}#{id}", is_open)
        row.set_cell("o", "status", "paid", state=True)
        if not row.commit():
            raise Refused

    def of(self, customer: str) -> list[Order]:
        rows = RowSet()
        rows.add_row_range_with_prefix(f"{customer}#")
        return [
            Order(customer, row.row_key.decode().removeprefix(f"{customer}#"), row.cell_value("o", b"status").decode(), int(row.cell_value("o", b"total")))
            for row in self.table.read_rows(row_set=rows, filter_=RowFilterChain([ORDER, CellsColumnLimitFilter(1)]))]
