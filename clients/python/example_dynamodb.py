"""Streams, recovery and an export in a test, with the official client, against a server that was started with

    tabletop serve --dynamodb 127.0.0.1:0 --console 127.0.0.1:0 --buckets DIR   # with a folder DIR/exports
"""

import boto3
from tabletop import Control

control = Control()                           # the addresses printed by serve
control.reset()
ddb = boto3.client("dynamodb")
ddb.create_table(
    TableName="orders", BillingMode="PAY_PER_REQUEST",
    KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
    AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
    StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"})
ddb.update_continuous_backups(TableName="orders", PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True})

def put(state):
    ddb.put_item(TableName="orders", Item={"id": {"S": "0001"}, "state": {"S": state}})

put("new")
control.advance("1m")                         # time passes on command
before = control.info()["clock"]["now"]
control.advance("1m")
put("lost")

# The stream. A consumer reads it with boto3.client("dynamodbstreams").
assert [r["eventName"] for r in control.records("orders")] == ["INSERT", "MODIFY"]

# The earlier state of the table.
ddb.restore_table_to_point_in_time(SourceTableName="orders", TargetTableName="restored", RestoreDateTime=before)
ddb.get_waiter("table_exists").wait(TableName="restored", WaiterConfig={"Delay": 1})
item = ddb.get_item(TableName="restored", Key={"id": {"S": "0001"}})["Item"]
assert item["state"]["S"] == "new"

# An export into the folder exports of --buckets DIR.
arn = ddb.describe_table(TableName="orders")["Table"]["TableArn"]
export = ddb.export_table_to_point_in_time(TableArn=arn, S3Bucket="exports")["ExportDescription"]["ExportArn"]
ddb.get_waiter("export_completed").wait(ExportArn=export, WaiterConfig={"Delay": 1})
assert ddb.describe_export(ExportArn=export)["ExportDescription"]["ItemCount"] == 1
print("ok")
