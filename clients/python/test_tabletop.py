"""Runs against the servers of TABLETOP_CONSOLE_URL and, with its token, TABLETOP_SECOND_URL: python -m unittest test_tabletop"""

import base64
import concurrent.futures
import datetime
import os
import tempfile
import threading
import unittest
import urllib.error
import urllib.request

from tabletop import Control, ControlError

TABLE = {
    "TableName": "orders_py", "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "k", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "k", "AttributeType": "S"}],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
}


def second_of(control):
    """The server's time, in seconds."""
    now = control.info()["clock"]["now"]
    zone = now[now.index("Z") if "Z" in now else -6:].replace("Z", "+00:00")
    return int(datetime.datetime.fromisoformat(now[:19] + zone).timestamp())


class TestControl(unittest.TestCase):
    def test_acceptance(self):
        control = Control()
        control.reset()
        control.query("CreateTable", TABLE)
        ttl = {"AttributeName": "ttl", "Enabled": True}
        control.query("UpdateTimeToLive", {"TableName": "orders_py", "TimeToLiveSpecification": ttl})
        due = str(second_of(control) + 24 * 3600)
        control.put_items("orders_py", ({"k": {"S": f"k{i}"}, "ttl": {"N": due}} for i in range(300)))
        self.assertEqual(len(control.items("orders_py")), 300)
        first = control.call("GET", "items/orders_py")
        self.assertEqual(len(control.items("orders_py", cursor=first["cursor"], limit=70)), 200)
        self.assertEqual([s["table"] for s in control.streams()["dynamodb"]], ["orders_py"])
        records = control.records("orders_py")
        self.assertEqual(sorted(r["dynamodb"]["Keys"]["k"]["S"] for r in records), sorted(f"k{i}" for i in range(300)))
        rows = control.bigtable_table("orders_py")
        with self.assertRaises(ControlError) as caught:
            control.changes(rows)
        self.assertEqual(caught.exception.code, "no_stream")
        control.snapshot("all")
        for i in range(0, 300, 2):
            control.query("DeleteItem", {"TableName": "orders_py", "Key": {"k": {"S": f"k{i}"}}})
        self.assertEqual(len(control.items("orders_py")), 150)
        control.restore("all")
        self.assertEqual(len(control.items("orders_py")), 300)

        # Both endpoints: the DynamoDB endpoint answers over its own port, twice with an error.
        fault = dict(endpoint="dynamodb", method="GetItem", effect="fail", code="InternalServerError", times=2)
        control.fault(**fault)
        statuses = [self.get_item() for _ in range(3)]
        self.assertEqual(statuses, [500, 500, 200])
        self.assertEqual([f["hits"] for f in control.faults()], [2])
        control.remove_faults()
        control.fault(endpoint="dynamodb", method="*", effect="fail", code="TransactionCanceledException", reasons=["ConditionalCheckFailed"])
        with self.assertRaises(ControlError) as caught:
            control.query("TransactWriteItems", {"TransactItems": [{"Delete": {"TableName": "orders_py", "Key": {"k": {"S": "k0"}}}}]})
        self.assertEqual(caught.exception.code, "TransactionCanceledException")
        self.assertIn("[ConditionalCheckFailed]", caught.exception.text)
        control.remove_faults()

        self.assertIn("k0", control.dump())
        control.advance("25h")
        control.ttl()
        self.assertEqual(len(control.items("orders_py")), 0)
        self.assertNotIn("k0", control.dump())
        with self.assertRaises(ControlError) as caught:
            control.restore("none")
        self.assertEqual(caught.exception.code, "not_found")
        self.assertTrue(caught.exception.remedy)
        control.forget("all")

    def test_restored_later(self):
        """A restore does not turn the clock back: a time to live set by a later test is valid, one of the snapshot may have expired."""
        control = Control()
        control.reset()
        control.query("CreateTable", TABLE)
        ttl = {"AttributeName": "ttl", "Enabled": True}
        control.query("UpdateTimeToLive", {"TableName": "orders_py", "TimeToLiveSpecification": ttl})

        def put(key):
            control.put_items("orders_py", [{"k": {"S": key}, "ttl": {"N": str(second_of(control) + 10 * 24 * 3600)}}])

        put("before")
        control.snapshot("base")
        control.advance("20d")
        control.restore("base")
        put("after")
        control.advance("1s")
        self.assertEqual([i["k"]["S"] for i in control.items("orders_py")], ["after"])

    def test_all_of_ctl(self):
        """The features of tabletop ctl that test_acceptance does not use."""
        control = Control()
        control.reset()
        now = control.clock()["now"]
        self.assertTrue(control.freeze()["frozen"])
        later = datetime.datetime.fromtimestamp(second_of(control) + 3600, datetime.timezone.utc)
        self.assertEqual(control.set(later)["now"], later.isoformat().replace("+00:00", "Z"))
        self.assertGreater(control.clock()["now"], now)
        with self.assertRaises(ControlError) as caught:
            control.set(now)
        self.assertEqual(caught.exception.code, "bad_request")
        self.assertFalse(control.run()["frozen"])

        control.query("CreateTable", TABLE)
        control.query("UpdateContributorInsights", {"TableName": "orders_py", "ContributorInsightsAction": "ENABLE"})
        control.snapshot("first")
        control.put_items("orders_py", [{"k": {"S": "a"}}])
        control.snapshot("second/of two")
        self.assertEqual([s["name"] for s in control.snapshots() if s["name"] in ["first", "second/of two"]], ["first", "second/of two"])
        for to in [None, "second/of two"]:
            changes = control.changes_since("first", to, limit=1)
            items = [item for t in changes["tables"] for row in t["shown"] for item in row.get("items", [])]
            self.assertEqual((changes.get("to"), items), (to, [{"table": "orders_py", "change": "added", "after": {"k": {"S": "a"}}}]))
        control.forget("first")
        control.forget("second/of two")

        rows = control.bigtable_table("orders_py")
        self.assertEqual([r["key"]["text"] for r in control.rows(rows, prefix="a")], ["a"])
        self.assertIn("a", control.dump(rows))
        control.query("GetItem", {"TableName": "orders_py", "Key": {"k": {"S": "a"}}})
        self.assertEqual(control.insights("orders_py")["PKC"][0]["key"], {"k": {"S": "a"}})
        (last,) = control.requests(operation="GetItem", table="orders_py", limit=1)
        self.assertEqual([c["operation"] for c in control.request(last["id"])["calls"]], ["ReadRows"])

        ended = control.fault(endpoint="bigtable", method="ReadRows", effect="fail", code="UNAVAILABLE")
        left = control.fault(endpoint="dynamodb", method="GetItem", effect="fail", code="Throttling")
        control.remove_faults(ended)
        self.assertEqual(control.faults(), [left])
        control.remove_faults()
        self.assertEqual(control.faults(), [])
        self.assertEqual(control.gc(), 0)
        self.assertEqual(control.views(), [])
        control.refresh_views()
        with self.assertRaises(ControlError) as caught:
            control.resume()
        self.assertEqual(caught.exception.code, "not_paused")

        own = control.call("GET", "migrate/s7-blob")["mapping"]
        for mapping in [None, own]:
            self.assertEqual(control.plan("s7-blob", mapping)["tables"][0]["items"], 3)
            self.assertEqual(control.verify("s7-blob", mapping)["differences"], 0)
            self.assertIn("lint", control.lint("s7-blob", mapping))
        with self.assertRaises(ControlError):
            control.verify("s7-blob", "no mapping")

    def test_rows(self):
        """Rows, families and tables of Bigtable, and its heat."""
        control = Control()
        control.reset()
        control.query("CreateTable", TABLE)
        table = control.bigtable_table("orders_py")
        families = control.families(table, [{"id": "cf", "create": {"gcRule": {"maxNumVersions": 1}}}])["families"]
        self.assertIn({"name": "cf", "gc": "maxversions=1"}, [{"name": f["name"], "gc": f["gc"]} for f in families])
        cell = {"family": "cf", "qualifier": b"\xff", "value": "v", "timestamp": 1000}
        self.assertEqual(control.put_rows(table, [{"key": key, "cells": [cell]} for key in ["a1", b"a\xfe", {"text": "b"}, "c"]]), 4)
        control.put_rows(table, [{"key": "b", "delete": True}])

        def keys():
            return [base64.b64decode(r["key"]["base64"]) for r in control.rows(table)]

        self.assertEqual(keys(), [b"a1", b"a\xfe", b"c"])
        (got,) = control.rows(table)[0]["cells"]
        self.assertEqual((got["family"], got["qualifier"]["base64"], got["value"]["text"], got["timestamp"]), ("cf", "/w==", "v", 1000))
        with self.assertRaises(ControlError) as caught:
            control.put_rows(table, [{"key": "a", "cells": [{**cell, "family": "none"}]}])
        self.assertEqual((caught.exception.status, caught.exception.code), (404, "NotFound"))
        self.assertNotIn("rpc error", caught.exception.text)

        control.query("GetItem", {"TableName": "orders_py", "Key": {"k": {"S": "a1"}}})
        self.assertTrue(any(p["table"].endswith(f"/{table}") or p["table"] == table for p in control.heat()["places"]))
        self.assertEqual(sum(k["reads"] for k in control.heat(table, last="1h", step="1m")["keys"]), 1)

        control.drop(table, b"a\xfe")
        self.assertEqual(keys(), [b"a1", b"c"])
        control.drop(table, "c")
        self.assertEqual(keys(), [b"a1"])
        control.empty(table)
        self.assertEqual(keys(), [])
        control.delete_table(table)
        self.assertNotIn(table, [t["table"] for t in control.tables()["bigtable"]])
        control.reset()

    def test_parallel_workers(self):
        """Two concurrent workers with a server each: items, snapshots, clock and faults are separate."""
        servers = [Control(), Control(os.environ["TABLETOP_SECOND_URL"], os.environ["TABLETOP_SECOND_TOKEN"])]
        together = threading.Barrier(len(servers), timeout=600)

        def work(worker):
            control = servers[worker]
            control.reset()
            control.query("CreateTable", TABLE)
            control.snapshot("base")
            before = second_of(control)
            found = []
            for test in range(5):
                together.wait()
                control.restore("base")
                control.put_items("orders_py", [{"k": {"S": f"worker{worker}/{test}"}}])
                control.advance(f"{1 + worker}h")
                control.fault(endpoint="dynamodb", method="GetItem", effect="fail", code="Throttling", times=1 + worker)
                together.wait()
                found.append([[i["k"]["S"] for i in control.items("orders_py")], [f["times"] for f in control.faults()]])
                control.remove_faults()
            control.forget("base")
            return found, (second_of(control) - before) // 3600

        with concurrent.futures.ThreadPoolExecutor(len(servers)) as pool:
            for worker, (found, hours) in enumerate(pool.map(work, range(len(servers)))):
                self.assertEqual(found, [[[f"worker{worker}/{test}"], [1 + worker]] for test in range(5)])
                self.assertEqual(hours, 5 * (1 + worker))

    def test_no_console(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ports.json")
            with open(path, "w", encoding="utf-8") as f:
                f.write('{"bigtable":"127.0.0.1:1","dynamodb":null}')
            with self.assertRaisesRegex(ValueError, "without --console"):
                Control.from_port_file(path)

    def test_unreachable(self):
        for url in ["http://127.0.0.1:65535", os.environ["AWS_ENDPOINT_URL_DYNAMODB"], "http://" + os.environ["BIGTABLE_EMULATOR_HOST"]]:
            for ask in [lambda c: c.info(), lambda c: c.reset()]:
                with self.subTest(url), self.assertRaises(ControlError) as caught:
                    ask(Control(url, "token"))
                self.assertEqual((caught.exception.status, caught.exception.code), (0, "unreachable"))
                self.assertIn(f"no control API responds at {url}", caught.exception.text)
                self.assertIn("serve --console", caught.exception.remedy)
        with self.assertRaises(ControlError) as caught:
            Control.from_port_file("/none/ports.json", wait=0)
        self.assertEqual(caught.exception.code, "unreachable")
        self.assertIn("/none/ports.json", caught.exception.text)
        for url in ["127.0.0.1:8088", "localhost:8088"]:
            with self.assertRaisesRegex(ValueError, f"http://{url}"):
                Control(url, "token")

    def get_item(self):
        request = urllib.request.Request(
            os.environ["AWS_ENDPOINT_URL_DYNAMODB"], method="POST",
            data=b'{"TableName":"orders_py","Key":{"k":{"S":"k1"}}}',
            headers={
                "X-Amz-Target": "DynamoDB_20120810.GetItem", "Content-Type": "application/x-amz-json-1.0",
                "X-Amz-Date": "20261120T000000Z",
                "Authorization": "AWS4-HMAC-SHA256 Credential=tabletop/20261120/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00",
            })
        try:
            with urllib.request.urlopen(request) as answer:
                return answer.status
        except urllib.error.HTTPError as e:
            with e:
                return e.code


if __name__ == "__main__":
    unittest.main()
