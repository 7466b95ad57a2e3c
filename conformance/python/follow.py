"""A consumer of a stream with boto3: a line for each change, the item and its number.

    follow.py ENDPOINT STREAM-ARN

It goes on behind what it has when the server was away, and ends, having read what there
is, when its input does. TestKill_Streams of ../kill_stream_test.go starts it.
"""

import sys
import threading
import time

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

endpoint, arn = sys.argv[1:]
api = boto3.client(
    "dynamodbstreams", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="tabletop",
    aws_secret_access_key="tabletop", config=Config(retries={"total_max_attempts": 1}))
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
behind, closed = {}, set()
records = 0


def shard(name):
    """Reads the new records of a shard."""
    global records
    at = {"ShardIteratorType": "TRIM_HORIZON"}
    if name in behind:
        at = {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": behind[name]}
    following = api.get_shard_iterator(StreamArn=arn, ShardId=name, **at)["ShardIterator"]
    while following:
        got = api.get_records(ShardIterator=following)
        for r in got["Records"]:
            print(r["dynamodb"]["Keys"]["id"]["S"], r["dynamodb"]["NewImage"]["n"]["N"], flush=False)
            behind[name] = r["dynamodb"]["SequenceNumber"]
            records += 1
        following = got.get("NextShardIterator")
        if not following:
            closed.add(name)
        elif not got["Records"]:
            return


def visit():
    """Reads the new records, of parents before their children."""
    page = {"StreamArn": arn}
    while True:
        described = api.describe_stream(**page)["StreamDescription"]
        for each in described["Shards"]:
            if each["ShardId"] not in closed:
                shard(each["ShardId"])
        if "LastEvaluatedShardId" not in described:
            return
        page["ExclusiveStartShardId"] = described["LastEvaluatedShardId"]


while True:
    last, before = ended.is_set(), records
    try:
        visit()
    except BotoCoreError:  # the server is away
        if last:
            raise
    if last and records == before:
        sys.exit()
    if not last:
        time.sleep(0.1)
