"""Starts servers from TABLETOP_BINARY: python -m unittest test_start"""

import datetime
import json
import os
import pathlib
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import typing
import unittest
import unittest.mock
import urllib.parse
import urllib.request

import tabletop as client
from tabletop import Control, ControlError, Tabletop

TABLE = {
    "TableName": "orders", "BillingMode": "PAY_PER_REQUEST",
    "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
    "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
}


def executable(folder, text):
    path = os.path.join(folder, "script")
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, stat.S_IRWXU)
    return path


class TestStart(unittest.TestCase):
    def fails(self, code, call, *parts):
        with self.assertRaises(ControlError) as caught:
            call()
        self.assertEqual(caught.exception.code, code, caught.exception)
        for part in parts:
            self.assertIn(part, str(caught.exception))

    def test_handle(self):
        """Two servers at once, each with its own addresses; nothing global is set."""
        before = dict(os.environ)
        with Tabletop.start() as first, Tabletop.start(args=["--project", "p", "--instance", "i", "--bigtable", "off"]) as second:
            self.assertEqual((first.project, first.instance, second.project, second.instance), ("tabletop", "tabletop", "p", "i"))
            info = first.info()
            self.assertEqual((info["bigtable"], info["dynamodb"]), (first.bigtable, first.dynamodb))
            self.assertEqual(first.env(), {
                "BIGTABLE_EMULATOR_HOST": first.bigtable, "AWS_ENDPOINT_URL_DYNAMODB": first.dynamodb, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS": first.dynamodb,
                "AWS_REGION": "us-east-1", "AWS_DEFAULT_REGION": "us-east-1", "AWS_ACCESS_KEY_ID": "tabletop", "AWS_SECRET_ACCESS_KEY": "tabletop",
                "TABLETOP_CONSOLE_URL": first.url, "TABLETOP_CONSOLE_TOKEN": first.token,
                **{name: first.env()[name] for name in ["NO_PROXY", "no_proxy"]}})
            self.assertEqual(first.boto3_options()["endpoint_url"], first.dynamodb)
            self.assertIsNone(second.bigtable)
            self.assertNotIn("BIGTABLE_EMULATOR_HOST", second.env())
            self.assertEqual(os.environ, before)
            with unittest.mock.patch.dict(os.environ, first.env()):
                self.assertEqual(Control().info()["dynamodb"], first.dynamodb)
        first.stop()  # again
        self.fails("unreachable", first.info, f"{first.url} was stopped")

    def test_seed(self):
        """The tables of files exist at the start, and after a reset."""
        with tempfile.TemporaryDirectory() as folder:
            table, items = pathlib.Path(folder, "table.json"), pathlib.Path(folder, "orders.jsonl")
            table.write_text(json.dumps({
                "TableName": "orders", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
                "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}]}))
            items.write_text('{"id": {"S": "a"}}')
            for seed in (folder, [table, str(items)]):
                with Tabletop.start(seed=seed) as server:
                    server.put_items("orders", [{"id": {"S": "b"}}])
                    server.reset()
                    self.assertEqual(list(server.items("orders")), [{"id": {"S": "a"}}])
            self.fails("not_started", lambda: Tabletop.start(seed=items), "orders.jsonl: the key of table orders is unknown")

    def test_files(self):
        """A running server has no file in the folder of temporary files, except its own."""
        with tempfile.TemporaryDirectory() as folder, unittest.mock.patch("tempfile.tempdir", folder):
            with Tabletop.start():
                self.assertEqual(os.listdir(folder), [])

    def test_log(self):
        with tempfile.TemporaryDirectory() as folder:
            server = Tabletop.start(executable(folder, '#!/bin/sh\nTABLETOP_NONE=1 exec "$TABLETOP_BINARY" "$@"'))
            server.stop()
        self.assertIn("TABLETOP_NONE in the environment does not set a flag", server.log)

    def test_inherited_settings(self):
        """A server opens no folder of data that the environment names: a reset would delete the data."""
        with tempfile.TemporaryDirectory() as folder:
            data, config = os.path.join(folder, "data"), os.path.join(folder, "tabletop.yaml")
            pathlib.Path(config).write_text(f"data: {data}\n")
            for settings in [{"TABLETOP_DATA": data}, {"TABLETOP_CONFIG": config}, {"TABLETOP_INSTANCE": "other"}]:
                with self.subTest(settings), unittest.mock.patch.dict(os.environ, settings), Tabletop.start() as server:
                    self.assertEqual((os.path.exists(data), server.instance), (False, "tabletop"))
            with Tabletop.start(args=["--config", config]):
                self.assertTrue(os.path.exists(data))

    def test_proxy(self):
        """Neither the calls of this client nor, with env(), official clients use a proxy."""
        proxy = "http://127.0.0.1:1"
        proxies = {name: proxy for name in ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]}
        new = unittest.mock.patch.object(urllib.request, "_opener", None)  # the one of an earlier call has the proxies of its time
        with new, unittest.mock.patch.dict(os.environ, proxies), Tabletop.start() as server:
            for name in ["NO_PROXY", "no_proxy"]:
                os.environ.pop(name, None)
            self.assertEqual(Control(server.url, server.token).info()["dynamodb"], server.dynamodb)
            for given, want in [
                    ({}, ["127.0.0.1,localhost"] * 2),
                    ({"NO_PROXY": "a.test, localhost"}, ["a.test,localhost,127.0.0.1"] * 2),
                    ({"NO_PROXY": "a.test", "no_proxy": "b.test"}, ["a.test,127.0.0.1,localhost", "b.test,127.0.0.1,localhost"]),
                    ({"no_proxy": "*"}, ["*"] * 2)]:
                with self.subTest(given), unittest.mock.patch.dict(os.environ, given):
                    self.assertEqual([server.env()[name] for name in ["NO_PROXY", "no_proxy"]], want)
                    os.environ.update(server.env())
                    self.assertEqual([server.env()[name] for name in ["NO_PROXY", "no_proxy"]], want)
                    self.assertTrue(urllib.request.proxy_bypass(urllib.parse.urlsplit(server.dynamodb).netloc))
            # Another machine is asked through the proxy, which does not respond.
            self.fails("unreachable", Control("http://tabletop.test:1", "token").info, "Connection refused")

    def test_killed_server(self):
        """The error has the end of the server and its last words, without a chain of errors."""
        with tempfile.TemporaryDirectory() as folder:
            server = Tabletop.start(executable(folder, '#!/bin/sh\necho a last word >&2\nexec "$TABLETOP_BINARY" "$@"'))
            server._server.process.kill()
            server._server.process.wait()
            server.stop()  # waits for the end of its log
            self.fails("unreachable", server.reset, f"the server at {server.url} ended with signal 9, and printed: a last word", "Tabletop.start()")
            with self.assertRaises(ControlError) as caught:
                server.info()
            self.assertTrue(caught.exception.__suppress_context__)
            script = executable(folder, "#!/bin/sh\nkill -9 $$")
            self.fails("not_started", lambda: Tabletop.start(script), "ended with signal 9 before it was ready")

    def test_export_env(self):
        """Clients that are created later use the server, and the credentials in the environment."""
        shell = {"AWS_PROFILE": "prod", "AWS_SESSION_TOKEN": "t", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true", "AWS_REGION": "eu-west-1"}
        with unittest.mock.patch.dict(os.environ, shell), Tabletop.start() as server:
            server.export_env()
            self.assertLessEqual(server.env().items(), os.environ.items())
            self.assertEqual({name for name in shell if name in os.environ}, {"AWS_REGION"})

    def test_program(self):
        where = ["Tabletop.start(binary=...)", "TABLETOP_BINARY", "tabletop on PATH", "go build -o bin/tabletop ./cmd/tabletop"]
        self.fails("not_started", lambda: Tabletop.start("/none/tabletop"), "/none/tabletop", *where)
        with unittest.mock.patch.dict(os.environ, {"TABLETOP_BINARY": "/none/other"}):
            self.fails("not_started", Tabletop.start, "the program /none/other of TABLETOP_BINARY", *where)
        with tempfile.TemporaryDirectory() as folder:
            built = os.path.join(folder, "built")
            with unittest.mock.patch.dict(os.environ, {"PATH": folder}), unittest.mock.patch.object(client, "_BUILT", built):
                binary = os.environ.pop("TABLETOP_BINARY")
                self.fails("not_started", Tabletop.start, "the program tabletop was not found", *where)
                os.symlink(os.path.abspath(binary), os.path.join(folder, "tabletop"))
                os.rename(os.path.join(folder, "tabletop"), built)
                with Tabletop.start() as server:
                    self.assertEqual(server.info()["paused"], "")
                executable(folder, "#!/bin/sh\nexit 9")
                os.rename(os.path.join(folder, "script"), os.path.join(folder, "tabletop"))
                self.fails("not_started", Tabletop.start, "ended with code 9")
            script = executable(folder, "neither a script nor a program")
            self.fails("not_started", lambda: Tabletop.start(script), script, "cannot be run", *where)

    def test_early_end(self):
        """The error has the server's own words."""
        self.fails("bad_request", lambda: Tabletop.start(args="--gc never"), "args is '--gc never', want a list", "args=['--gc', 'never']")
        self.fails("not_started", lambda: Tabletop.start(args=["--gc", "never"]), "--gc never", "ended with code 2", '"never" must be background')
        with tempfile.TemporaryDirectory() as folder:
            script = executable(folder, "#!/bin/sh\nexec cat >/dev/null")  # never ready
            self.fails("not_started", lambda: Tabletop.start(script, timeout=0), script, "was not ready within 0 s, and printed: nothing: pass a longer timeout")
        with tempfile.NamedTemporaryFile("w") as token:
            token.write("a token of a file")
            token.flush()
            self.fails("not_started", lambda: Tabletop.start(args=["--token-file", token.name]), "--token-file")

    def test_killed_parent(self):
        """The server ends with a process that is killed."""
        code = "import tabletop; server = tabletop.Tabletop.start(); print(server.url, flush=True); input()"
        parent = subprocess.Popen([sys.executable, "-B", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        with parent:
            at = urllib.parse.urlsplit(parent.stdout.readline().strip())
            with socket.create_connection((at.hostname, at.port)) as connection:
                parent.send_signal(signal.SIGKILL)
                try:
                    self.assertEqual(connection.recv(1), b"")
                except ConnectionResetError:
                    pass

    def test_durations(self):
        with Tabletop.start() as server:
            server.freeze()
            before = server.clock()["now"]
            server.set("2030-01-01T00:00:00Z")
            self.assertLess(before, "2030")
            self.assertEqual(server.advance(datetime.timedelta(hours=25, microseconds=1500))["now"], "2030-01-02T01:00:00.0015Z")
            self.assertEqual(server.advance("1d")["now"], "2030-01-03T01:00:00.0015Z")
            self.assertEqual(server.now(), datetime.datetime(2030, 1, 3, 1, 0, 0, 1500, datetime.timezone.utc))
            server.advance("0.000000001s")
            self.assertEqual(server.now(), datetime.datetime(2030, 1, 3, 1, 0, 0, 1500, datetime.timezone.utc))
            server.set("2030-01-04T00:00:00Z")
            self.assertEqual(server.now(), datetime.datetime(2030, 1, 4, tzinfo=datetime.timezone.utc))
            zone = datetime.timezone(datetime.timedelta(hours=1))
            self.assertEqual(server.set(datetime.datetime(2030, 2, 1, 1, tzinfo=zone))["now"], "2030-02-01T00:00:00Z")
            for delay in [datetime.timedelta(milliseconds=200), "200ms"]:
                self.assertEqual(server.fault(endpoint="bigtable", method="ReadRows", effect="delay", delay=delay)["delay"], "200ms")
            self.assertEqual(server.requests(failed=True), [])
            self.fails("bad_request", lambda: server.advance(datetime.timedelta(hours=-1)), '"-3600s"', "time moves only forward")
            self.fails("bad_request", lambda: server.advance(3600), "advance is 3600", "timedelta", '"25h"')
            self.fails("bad_request", lambda: server.advance("soon"), '"soon"')
            self.fails("bad_request", lambda: server.fault(endpoint="bigtable", method="ReadRows", effect="delay", delay=5), "delay is 5")
            self.fails("bad_request", lambda: server.set(datetime.datetime(2031, 1, 1)), "without a zone")

    def test_items(self):
        with Tabletop.start() as server:
            server.query("CreateTable", TABLE)
            item = {
                "id": {"S": "a"}, "n": {"N": "1.5"}, "b": {"B": b"\xff"}, "bs": {"BS": [b"\x00", b"\xff"]}, "ns": {"NS": ["1", "2"]}, "ss": {"SS": ["x"]},
                "t": {"BOOL": True}, "z": {"NULL": True}, "l": {"L": [{"B": b"1"}, {"M": {"b": {"B": b"2"}}}]}, "m": {"M": {}},
            }
            self.assertEqual(server.put_items("orders", [item]), 1)
            self.assertEqual(server.items("orders"), [item])
            self.assertEqual(server.items("orders")[0]["id"], {"S": "a"})
            (record,) = server.records("orders")
            self.assertEqual((record["dynamodb"]["NewImage"], record["dynamodb"]["Keys"]), (item, {"id": {"S": "a"}}))
            self.fails("bad_request", lambda: server.put_items("orders", [item, {"id": "a"}]), 'item 1 is {"id": "a"}', '{"id":{"S":"a"}}')
            self.fails("bad_request", lambda: server.put_items("orders", [{"id": {"S": object}}]), "object", '{"N": "42"}')
            fault = dict(endpoint="dynamodb", method="PutItem", effect="fail", code="Throttling", table="orders")
            self.assertEqual(server.fault(**fault, item={"id": {"B": b"\xff"}})["item"], {"id": {"B": "/w=="}})
            self.assertEqual(server.fault(fault, times=2)["times"], 2)
            self.fails("bad_request", lambda: server.fault(**fault, item={"id": "a"}), 'item is {"id":"a"}', '{"id":{"S":"a"}}')

    def test_tables(self):
        with Tabletop.start(args=["--instance", "i"]) as server:
            for name in ["orders", "customers"]:
                server.query("CreateTable", {**TABLE, "TableName": name})
            server.put_items("orders", [{"id": {"S": "a"}}])
            self.assertEqual([row["key"]["text"] for row in server.rows(server.bigtable_table("orders"))], ["a"])
            self.assertNotEqual(server.bigtable_table("customers"), server.bigtable_table("orders"))
            for ask in [server.bigtable_table, server.items, lambda name: server.put_items(name, [{"id": {"S": "a"}}]), server.dump]:
                with self.assertRaisesRegex(ControlError, r'order.*nearest name is "orders"; tables\(\) lists the tables'):
                    ask("order")
            self.fails("not_found", lambda: server.bigtable_table(""), 'no DynamoDB table ""')

    def test_port_file(self):
        """A client waits for the port file of a server that is still starting."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ports.json")
            self.fails("unreachable", lambda: Control.from_port_file(path, wait=0), path, "within 0 s")
            found = []
            asked = threading.Thread(target=lambda: found.append(Control.from_port_file(path, wait=600)))
            with Tabletop.start() as server:
                asked.start()
                with open(path + ".new", "w", encoding="utf-8") as f:
                    json.dump({"console": server.url, "token": server.token}, f)
                os.rename(path + ".new", path)
                asked.join()
                self.assertEqual(found[0].info()["dynamodb"], server.dynamodb)

    def test_hints(self):
        """All methods have types."""
        for kind in [Control, Tabletop]:
            for name, method in vars(kind).items():
                method = getattr(method, "__func__", getattr(method, "fget", method))
                if callable(method) and (not name.startswith("_") or name == "__init__"):
                    code = method.__code__
                    names = code.co_varnames[:code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & 0x08)]
                    self.assertEqual(set(method.__annotations__), {*names, "return"} - {"self", "cls"}, name)
        if sys.version_info >= (3, 10):  # X | Y
            self.assertEqual(typing.get_type_hints(Control.advance)["duration"], client.Duration)


if __name__ == "__main__":
    unittest.main()
