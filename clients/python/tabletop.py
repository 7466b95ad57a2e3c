"""Start and stop Tabletop in tests, and call its control API: snapshots, clock, faults, requests.

    from tabletop import Tabletop

    with Tabletop.start() as tabletop:              # on free ports, until the end of the block
        ddb = boto3.client("dynamodb", **tabletop.boto3_options())
        tabletop.snapshot("base")
        tabletop.restore("base")
        tabletop.advance(timedelta(hours=25))
        tabletop.fault(endpoint="bigtable", method="MutateRow", effect="fail", code="UNAVAILABLE", times=2)

A server that is already running has the same methods: Control.from_port_file("ports.json"). For pytest,
write pytest_plugins = ["tabletop"] into conftest.py: see the fixture tabletop at the end.

It needs only the standard library of Python 3.8 or later. docs/control.md describes the API.

PYTEST_DONT_REWRITE: conftest.py may import this module before pytest loads it as a plugin.
"""

# mypy: disable-error-code="no-any-return"
from __future__ import annotations

import base64
import datetime
import http.client
import importlib.metadata
import ipaddress
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Union

Json = Dict[str, Any]
"""An object of the API: docs/control.md and openapi.yaml have its members."""
Item = Dict[str, Dict[str, Any]]
"""An item in DynamoDB's JSON, as boto3.client returns it: {"id": {"S": "a"}, "raw": {"B": b"a"}}."""
Duration = Union[datetime.timedelta, str]
"""A duration: a timedelta, or a text such as "25h" or "3d"."""
Time = Union[datetime.datetime, str]
"""A time: a datetime with its zone, or RFC 3339."""
Bytes = Union[str, bytes, Mapping[str, str]]
"""Bytes to send: a str as UTF-8, or the API's own form."""


class ControlError(Exception):
    """An error response of the API, with its HTTP status.

    The status is 0 if no API responds, with the code "unreachable", and if a server does not start,
    with the code "not_started".
    """

    def __init__(self, status: int, code: str, text: str, remedy: str) -> None:
        super().__init__(f"{text}: {remedy}")
        self.status, self.code, self.text, self.remedy = status, code, text, remedy


def _bad_request(text: str, remedy: str) -> ControlError:
    return ControlError(400, "bad_request", text, remedy)


class Control:
    """A server that runs with --console. By default it is found by the environment variables that serve prints."""

    instance = "tabletop"
    """The instance of Bigtable tables, unless a method gets another one."""

    def __init__(self, url: Optional[str] = None, token: Optional[str] = None, timeout: float = 60) -> None:
        url = url or os.environ.get("TABLETOP_CONSOLE_URL")
        token = token or os.environ.get("TABLETOP_CONSOLE_TOKEN")
        if not url or not token:
            raise ValueError("no server is given: in pytest use the fixture tabletop; else pass url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url} is not a URL; expected one such as http://{url}")
        self.url = url.rstrip("/")
        self.token = token
        self.timeout = timeout
        self._open: Callable[..., Any] = _DIRECT.open if _on_this_machine(self.url) else urllib.request.urlopen

    @classmethod
    def from_port_file(cls, path: str | os.PathLike[str], token: Optional[str] = None, timeout: float = 60, wait: float = 10) -> Control:
        """Return the server that wrote a --port-file. If the file is missing, wait up to the given seconds for it."""
        ports = _port_file(path, wait, lambda: time.sleep(_PAUSE))
        if not ports.get("console"):
            raise ValueError(f"the server that wrote {path} was started without --console")
        return Control(ports["console"], token or ports.get("token"), timeout)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Make any request to the API. path is the part after /api/v1/."""
        given = {name: _text(name, value) for name, value in query.items() if value is not None}
        url = f"{self.url}/api/v1/{path}" + ("?" + urllib.parse.urlencode(given) if given else "")
        request = urllib.request.Request(
            url, method=method, data=None if body is None else json.dumps(body, default=_sent).encode(),
            headers={"Authorization": f"Bearer {self.token}"})
        try:
            with self._open(request, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            try:
                with e:
                    said = json.load(e)["error"]
                error = ControlError(e.code, said["code"], said["text"], _PATH.sub(r"\1()", said["remedy"]))
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                error = self._unreachable(f"something else does, with status {e.code}")
            raise error from None
        except urllib.error.URLError as e:
            raise self._unreachable(e.reason) from None
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise self._unreachable(repr(e)) from None

    def _unreachable(self, why: object) -> ControlError:
        return ControlError(0, "unreachable", f"no control API responds at {self.url} ({why})", "start tabletop serve --console, or read its port file again")

    def info(self) -> Json:
        """Return information about the server and its endpoints."""
        return self.call("GET", "info")

    def tables(self) -> Json:
        """Return the tables of both endpoints: Bigtable tables with their families, and DynamoDB tables by name."""
        return self.call("GET", "tables")

    def bigtable_table(self, table: str) -> str:
        """Return the id of the Bigtable table that holds the items of a DynamoDB table. Pass it to rows or to a Bigtable client."""
        for found in self.call("GET", "tables", dynamodb=table)["bigtable"]:
            return found["table"]
        raise ControlError(409, "not_found", f"the server does not know where the items of the DynamoDB table {json.dumps(table)} are", "start it with the --mapping of the table")

    def rows(self, table: str, instance: Optional[str] = None, **query: Any) -> List[Json]:
        """Return all rows of a Bigtable table, reading page by page."""
        return self._pages("rows", f"tables/{_part(instance or self.instance)}/{_part(table)}/rows", query)

    def items(self, table: str, **query: Any) -> List[Item]:
        """Return all items of a DynamoDB table in the form of boto3.client, reading page by page."""
        return [_item(each) for each in self._pages("items", f"items/{_part(table)}", query)]

    def _pages(self, member: str, path: str, query: Dict[str, Any]) -> List[Json]:
        out: List[Json] = []
        while True:
            page = self.call("GET", path, **query)
            out += page[member]
            query = {**query, "cursor": page.get("cursor")}
            if query["cursor"] is None:
                return out

    def streams(self) -> Json:
        """Return the streams of DynamoDB tables, and the Bigtable tables that have a change stream."""
        return self.call("GET", "streams")

    def records(self, table: str, **query: Any) -> List[Json]:
        """Return all records so far of the table's latest DynamoDB stream, reading page by page. Keys and images are items."""
        return [_record(each) for each in self._pages("records", f"streams/{_part(table)}/records", query)]

    def changes(self, table: str, instance: Optional[str] = None, **query: Any) -> List[Json]:
        """Return all records so far of the change stream of a Bigtable table, reading page by page."""
        return self._pages("changes", f"tables/{_part(instance or self.instance)}/{_part(table)}/changes", query)

    def put_items(self, table: str, items: Iterable[Item]) -> int:
        """Put items in DynamoDB JSON, where a value of type B is bytes, and return their number."""
        return self.call("POST", f"items/{_part(table)}", {"items": list(items)})["items"]

    def put_rows(self, table: str, rows: Iterable[Json], instance: Optional[str] = None) -> int:
        """Write rows to a Bigtable table. Each row has a key and cells, or "delete": True. Keys, qualifiers and values are str or bytes. Return the number of rows."""
        return self.call("POST", f"tables/{_part(instance or self.instance)}/{_part(table)}/rows", {"rows": [_row(row) for row in rows]})["rows"]

    def families(self, table: str, modifications: Iterable[Json], instance: Optional[str] = None) -> Json:
        """Create, change and drop column families, such as [{"id": "f", "create": {}}]; return the table."""
        return self.call("POST", f"tables/{_part(instance or self.instance)}/{_part(table)}/families", {"modifications": list(modifications)})

    def drop(self, table: str, prefix: Bytes, instance: Optional[str] = None) -> None:
        """Delete the rows of a Bigtable table whose key begins with prefix, str or bytes."""
        self.call("POST", f"tables/{_part(instance or self.instance)}/{_part(table)}/drop", {"prefix": _bytes(prefix)})

    def empty(self, table: str, instance: Optional[str] = None) -> None:
        """Delete all rows of a Bigtable table."""
        self.call("POST", f"tables/{_part(instance or self.instance)}/{_part(table)}/drop", {"all": True})

    def delete_table(self, table: str, instance: Optional[str] = None) -> None:
        """Delete a Bigtable table."""
        self.call("DELETE", f"tables/{_part(instance or self.instance)}/{_part(table)}")

    def heat(self, table: Optional[str] = None, instance: Optional[str] = None, **query: Any) -> Json:
        """Return the load on the keys of a Bigtable table over time or, without a table, the tables with load counts."""
        return self.call("GET", f"heat/{_part(instance or self.instance)}/{_part(table)}" if table else "heat", **query)

    def query(self, operation: str, request: Json) -> Json:
        """Run a DynamoDB operation; return its response, and its Bigtable calls."""
        return self.call("POST", "query", {"operation": operation, "request": request})

    def insights(self, table: str, index: Optional[str] = None) -> Json:
        """Return the most used keys of a DynamoDB table, or of an index, while contributor insights are on."""
        return self.call("GET", f"insights/{_part(table)}", index=index)

    def reset(self) -> None:
        """Remove all tables and faults. The clock and the snapshots stay."""
        self.call("POST", "reset")

    def resume(self) -> None:
        """Continue the paused Go test."""
        self.call("POST", "resume")

    def snapshots(self) -> List[Json]:
        """Return the snapshots, sorted by time."""
        return self.call("GET", "snapshots")["snapshots"]

    def snapshot(self, name: str) -> Json:
        """Take a snapshot of the tables of both endpoints. It replaces a snapshot with the same name."""
        return self.call("POST", "snapshots", {"name": name})

    def restore(self, name: str) -> Json:
        """Restore the tables of a snapshot. The clock and the faults stay."""
        return self.call("POST", f"snapshots/{_part(name)}/restore")

    def forget(self, name: str) -> None:
        """Delete a snapshot."""
        self.call("DELETE", f"snapshots/{_part(name)}")

    def changes_since(self, name: str, to: Optional[str] = None, limit: Optional[int] = None) -> Json:
        """Return the rows and items that changed between a snapshot and now, or between it and the snapshot to."""
        return self.call("GET", f"snapshots/{_part(name)}/changes", to=to, limit=limit)

    def clock(self) -> Json:
        """Return the server's time, and whether its clock is stopped."""
        return self.call("GET", "clock")

    def now(self) -> datetime.datetime:
        """Return the server's time in UTC, from which a time to live is computed."""
        seconds, _, fraction = self.clock()["now"].rstrip("Z").partition(".")
        return datetime.datetime.fromisoformat(f"{seconds}.{fraction:0<6.6}+00:00")  # Python 3.8 takes no other form

    def advance(self, duration: Duration) -> Json:
        """Advance the clock, by timedelta(hours=25) or "25h" for example, and run the work that becomes due."""
        return self.call("POST", "clock", {"advance": _duration("advance", duration)})

    def set(self, time: Time) -> Json:
        """Advance the clock to a time, a datetime with its zone or RFC 3339, and run the work that becomes due."""
        return self.call("POST", "clock", {"set": _text("set", time)})

    def freeze(self) -> Json:
        """Stop the clock."""
        return self.call("POST", "clock", {"freeze": True})

    def run(self) -> Json:
        """Start the clock again."""
        return self.call("POST", "clock", {"run": True})

    def gc(self) -> int:
        """Collect garbage; return the number of deleted cells."""
        return self.call("POST", "gc")["cells"]

    def ttl(self) -> int:
        """Delete expired items; return their number."""
        return self.call("POST", "ttl")["items"]

    def views(self) -> List[Json]:
        """Return the logical and materialized views with their state."""
        return self.call("GET", "views")["views"]

    def refresh_views(self) -> None:
        """Make the materialized views reflect all changes, with serve --view-lag."""
        self.call("POST", "views/refresh")

    def fault(self, fault: Optional[Json] = None, **members: Any) -> Json:
        """Inject a fault, given as an object or by its members. docs/control.md lists them. delay is a timedelta or a text, item a key in DynamoDB's JSON."""
        spec = {**(fault or {}), **members}
        if "delay" in spec:
            spec["delay"] = _duration("delay", spec["delay"])
        return self.call("POST", "faults", spec)

    def faults(self) -> List[Json]:
        """Return the injected faults, with the number of hits of each."""
        return self.call("GET", "faults")["faults"]

    def remove_faults(self, fault: Optional[Json] = None) -> None:
        """Remove a fault that fault() or faults() returned, or all faults."""
        self.call("DELETE", f"faults/{fault['endpoint']}/{fault['id']}" if fault else "faults")

    def dump(self, table: Optional[str] = None) -> str:
        """Return all rows as text, or those of one table."""
        return self.call("GET", "dump", table=table)["text"]

    def requests(self, **query: Any) -> List[Json]:
        """Return the last requests of both endpoints, newest first: 100 of them, or limit."""
        return self.call("GET", "requests", **query)["requests"]

    def request(self, id: int) -> Json:
        """Return one request with its bodies and its Bigtable calls."""
        return self.call("GET", f"requests/{id}")

    def plan(self, fixture: str, mapping: Optional[str] = None) -> Json:
        """Run tabletop migrate plan on a folder of --fixtures; mapping is the text of a mapping file that replaces the one of the fixture."""
        return self._migrate("plan", fixture, mapping)

    def verify(self, fixture: str, mapping: Optional[str] = None) -> Json:
        """Run tabletop migrate verify."""
        return self._migrate("verify", fixture, mapping)

    def lint(self, fixture: str, mapping: Optional[str] = None) -> Json:
        """Run tabletop migrate lint."""
        return self._migrate("lint", fixture, mapping)

    def _migrate(self, verb: str, fixture: str, mapping: Optional[str]) -> Json:
        return self.call("POST", f"migrate/{verb}", {"fixture": fixture, **({} if mapping is None else {"mapping": mapping})})


_PATH = re.compile(r"GET /api/v1/(\w+)(?= )")
"""A path in a remedy that a method of the same name reads."""
_LOCAL = ("127.0.0.1", "localhost")
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
"""Opens addresses of this machine, which a proxy does not reach."""
_OVERRIDING = ("AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS")
"""Variables with which official clients would not use those of Tabletop.env."""


def _on_this_machine(url: str) -> bool:
    host = urllib.parse.urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _no_proxy() -> Dict[str, str]:
    """Return both variables that list the addresses without a proxy. Clients read one or the other."""
    given = {name: os.environ.get(name, "") for name in ("NO_PROXY", "no_proxy")}
    out = {}
    for name, value in given.items():
        hosts = [host.strip() for host in (value or "".join(given.values())).split(",") if host.strip()]
        out[name] = ",".join(hosts + [host for host in _LOCAL if host not in hosts and hosts != ["*"]])
    return out


def _inherited() -> Dict[str, str]:
    """Return the environment of a server: that of this process, without settings of another server."""
    return {name: value for name, value in os.environ.items() if not name.startswith("TABLETOP_") or name == "TABLETOP_BINARY"}


_PAUSE = 0.02
"""Seconds between two checks for a port file."""
_WHERE = "give Tabletop.start(binary=...) its path, set TABLETOP_BINARY, or put tabletop on PATH; go build -o bin/tabletop ./cmd/tabletop, in a clone of the project, makes it"


_BUILT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bin", "tabletop")
"""The program of the clone that contains this file."""


def _installed() -> Optional[str]:
    """Return the program that pip installed with this client, or None."""
    try:
        files = importlib.metadata.files("tabletop-emu") or []
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((str(file.locate()) for file in files if file.name in ("tabletop", "tabletop.exe")), None)


class Tabletop(Control):
    """A server that a program starts and stops, with the methods of its control API.

    It stops at the end of a with block, by stop(), and when this process ends, even by kill -9:
    the server reads a pipe from this process, and stops when it closes.
    """

    bigtable: Optional[str]
    """HOST:PORT of the Bigtable endpoint; None with --bigtable off."""
    dynamodb: Optional[str]
    """The URL of the DynamoDB endpoint; None with --dynamodb off."""
    project: str
    """The project of the DynamoDB tables; instance is theirs too."""
    _server: _Process

    @classmethod
    def start(cls, binary: str | os.PathLike[str] | None = None, args: Sequence[str] = (), timeout: float = 60, seed: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = ()) -> Tabletop:
        """Start tabletop serve on free ports of 127.0.0.1 with further args, and wait until it is ready.

        binary is the program, by default that of TABLETOP_BINARY, of pip, tabletop on PATH, or in a clone
        of the project the one that make build wrote. timeout is in seconds. seed is a file or folder, or several, of the tables that exist at the start and after reset(). Neither this process' environment nor any client is changed: see env() and boto3_options().

        The server does not inherit TABLETOP_* variables: one such as TABLETOP_DATA would open a folder with data, which reset() deletes.
        """
        if isinstance(args, str):
            raise _bad_request(f"args is {args!r}, want a list of flags", f"pass args={shlex.split(args)!r}")
        named = os.environ.get("TABLETOP_BINARY")
        program = os.fspath(binary or named or _installed() or shutil.which("tabletop") or shutil.which(_BUILT) or "tabletop")
        if shutil.which(program) is None:
            raise ControlError(0, "not_started", f"the program {program}{' of TABLETOP_BINARY' if program == named else ''} was not found, or is not executable", _WHERE)
        with tempfile.TemporaryDirectory(prefix="tabletop-") as folder:
            file = os.path.join(folder, "ports.json")
            command = [
                program, "serve", "--bigtable", "127.0.0.1:0", "--dynamodb", "127.0.0.1:0", "--console", "127.0.0.1:0",
                *(f"--seed={os.fspath(path)}" for path in ([seed] if isinstance(seed, (str, os.PathLike)) else seed)),
                *args, "--port-file", file, "--until-stdin-closes"]
            try:
                process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_inherited())
            except OSError as e:
                raise ControlError(0, "not_started", f"the program {program} cannot be run ({e})", _WHERE) from e
            server, until = _Process(process), time.monotonic() + timeout

            def pause() -> None:
                ended = server.end(_PAUSE)
                if ended is None and time.monotonic() < until:
                    return
                end = f"ended with {ended} before it was ready" if ended else f"was not ready within {timeout} s"
                server.stop()
                raise ControlError(0, "not_started", f"{shlex.join(command)} {end}, and printed: {server.log() or 'nothing'}", "correct the args" if ended else "pass a longer timeout, since the machine may be slow")

            try:
                ports = _port_file(file, math.inf, pause)
                if not ports.get("token"):
                    raise ControlError(0, "not_started", "Tabletop.start does not take --token-file", "start the server without it, or use Control.from_port_file(path, token)")
                self = cls(ports["console"], ports["token"])
                self.bigtable, self.dynamodb, self._server = ports["bigtable"], ports["dynamodb"], server
                info = self.info()
                self.project, self.instance = info["project"], info["instance"]
                return self
            except BaseException:  # KeyboardInterrupt too
                server.stop()
                raise

    def stop(self) -> None:
        """Stop the server as SIGTERM does, and wait until it has ended. Further calls have no effect."""
        self._server.stop()

    def __enter__(self) -> Tabletop:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stop()

    @property
    def log(self) -> str:
        """Return the last 64 KiB that the server printed on standard error."""
        return self._server.log()

    def _unreachable(self, why: object) -> ControlError:
        ended = self._server.end(1)  # a process that closed its connections may need a moment
        if ended is None:
            return super()._unreachable(why)
        end = "was stopped" if self._server.stopped else f"ended with {ended}, and printed: {self.log or 'nothing'}"
        return ControlError(0, "unreachable", f"the server at {self.url} {end}", "start another with Tabletop.start()")

    def env(self) -> Dict[str, str]:
        """Return the environment variables with which official clients, ctl and Control() find the server.

        NO_PROXY is that of this process, with the addresses of this machine.
        """
        out = {"TABLETOP_CONSOLE_URL": self.url, "TABLETOP_CONSOLE_TOKEN": self.token, **_no_proxy()}
        if self.bigtable:
            out["BIGTABLE_EMULATOR_HOST"] = self.bigtable
        if self.dynamodb:
            out.update(
                AWS_ENDPOINT_URL_DYNAMODB=self.dynamodb, AWS_ENDPOINT_URL_DYNAMODB_STREAMS=self.dynamodb, AWS_REGION="us-east-1",
                AWS_DEFAULT_REGION="us-east-1", AWS_ACCESS_KEY_ID="tabletop", AWS_SECRET_ACCESS_KEY="tabletop")
        return out

    def export_env(self) -> None:
        """Set env() in this process, for official clients that are created later, and remove variables that take precedence."""
        for name in _OVERRIDING:
            os.environ.pop(name, None)
        os.environ.update(self.env())

    def boto3_options(self) -> Dict[str, Any]:
        """Return the options of boto3.client and boto3.resource for "dynamodb" and "dynamodbstreams"."""
        return {"endpoint_url": self.dynamodb, "region_name": "us-east-1", "aws_access_key_id": "tabletop", "aws_secret_access_key": "tabletop"}


class _Process:
    """A server process, whose standard error is read in a thread."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin and process.stderr
        self.process, self.stdin, self.stderr, self.tail = process, process.stdin, process.stderr, b""
        self.stopped = False  # it ran until stop()
        self.reader = threading.Thread(target=self._read, args=(process.stderr.fileno(),), daemon=True)
        self.reader.start()

    def _read(self, pipe: int) -> None:
        while True:
            piece = os.read(pipe, 1 << 16)
            if not piece:
                return
            self.tail = (self.tail + piece)[-1 << 16:]

    def log(self) -> str:
        """Return the last 64 KiB that the process printed."""
        return self.tail.decode(errors="replace").strip()

    def end(self, timeout: float) -> Optional[str]:
        """Return the code or signal with which the process ended, or None if it runs after timeout seconds."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        self.reader.join(timeout)  # else its last words may be missing
        return f"code {code}" if code >= 0 else f"signal {-code}"

    def stop(self) -> None:
        """End the process, and read the rest of what it printed."""
        if self.process.poll() is None:
            self.stopped = True
            if os.name == "nt":  # which has no SIGTERM: terminate() would kill the process
                self.stdin.close()
            else:  # a forked process may have the pipe open, too
                self.process.terminate()
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()
        self.reader.join()
        self.stdin.close()
        self.stderr.close()


def _port_file(path: str | os.PathLike[str], wait: float, pause: Callable[[], None]) -> Json:
    """Return the content of a port file, which is written atomically."""
    until = time.monotonic() + wait
    while True:
        try:
            with open(path, encoding="utf-8") as f:
                return json.load(f)
        except FileNotFoundError:
            if time.monotonic() >= until:
                raise ControlError(
                    0, "unreachable", f"{path} did not appear within {wait} s, so the server that writes it is not running",
                    f"start tabletop serve --console --port-file {path}") from None
        pause()


def _duration(name: str, value: Duration) -> str:
    """Return the API's form of a duration. name is the name of the argument."""
    if isinstance(value, datetime.timedelta):
        micros = value // datetime.timedelta(microseconds=1)
        seconds, part = divmod(abs(micros), 1_000_000)
        return ("-" if micros < 0 else "") + (f"{seconds}.{part:06}s" if part else f"{seconds}s")
    if isinstance(value, str):
        return value
    raise _bad_request(f"{name} is {value!r}, want a duration", 'pass a timedelta, or a text such as "25h"')


def _text(name: str, value: Any) -> str:
    """Return the text of a query parameter."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime.timedelta):
        return _duration(name, value)
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None:
            raise _bad_request(f"{name} is {value!r}, a time without a zone", "pass one such as datetime.now(timezone.utc)")
        return value.isoformat()
    return str(value)


def _sent(value: Any) -> str:
    """Return the JSON of a value that Python's JSON does not support: bytes, as in an attribute of type B."""
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    raise _bad_request(f"{value!r} has no form in JSON", 'DynamoDB\'s JSON has numbers as texts: {"N": "42"}')


def _attribute(value: Dict[str, Any]) -> Dict[str, Any]:
    ((kind, inner),) = value.items()
    if kind == "B":
        inner = base64.b64decode(inner)
    elif kind == "BS":
        inner = [base64.b64decode(each) for each in inner]
    elif kind == "L":
        inner = [_attribute(each) for each in inner]
    elif kind == "M":
        inner = _item(inner)
    return {kind: inner}


def _item(received: Json) -> Item:
    """Return an item of the API with bytes in place of base64."""
    return {name: _attribute(value) for name, value in received.items()}


def _record(received: Json) -> Json:
    images = {name: _item(received["dynamodb"][name]) for name in ("Keys", "NewImage", "OldImage") if name in received["dynamodb"]}
    return {**received, "dynamodb": {**received["dynamodb"], **images}}


def _bytes(value: Bytes) -> Mapping[str, str]:
    """Return the API's form of bytes. Bytes that already have this form are unchanged."""
    if isinstance(value, str):
        return {"text": value}
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, (bytes, bytearray)) else value


def _row(row: Json) -> Json:
    cells = [{**cell, "qualifier": _bytes(cell["qualifier"]), "value": _bytes(cell["value"])} for cell in row.get("cells", [])]
    return {**row, "key": _bytes(row["key"]), "cells": cells}


def _part(name: str) -> str:
    return urllib.parse.quote(name, safe="")


if "pytest" in sys.modules:
    import pytest

    @pytest.fixture(scope="session")
    def tabletop_args() -> Sequence[str]:
        """Further flags of tabletop serve. Override this fixture to set some."""
        return []

    @pytest.fixture(scope="session")
    def tabletop_server(tabletop_args: Sequence[str]) -> Iterator[Tabletop]:
        """A server for all tests of the session, or of a worker of pytest-xdist."""
        with Tabletop.start(args=tabletop_args) as server:
            yield server

    @pytest.fixture
    def tabletop(tabletop_server: Tabletop, monkeypatch: pytest.MonkeyPatch) -> Tabletop:
        """The server without tables and faults. Official clients that the test creates find it by their environment.

        The clock keeps its lead: a test that advances it may use a server of its own.
        """
        tabletop_server.reset()
        for name in _OVERRIDING:
            monkeypatch.delenv(name, raising=False)
        for name, value in tabletop_server.env().items():
            monkeypatch.setenv(name, value)
        return tabletop_server
