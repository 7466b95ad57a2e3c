"""The control API of a running Tabletop: snapshots, clock, faults, requests.

    from tabletop import Control

    control = Control.from_port_file("ports.json")
    control.snapshot("base")        # once
    control.restore("base")         # before each test
    control.advance("25h")
    control.fault(endpoint="bigtable", method="MutateRow", effect="fail", code="UNAVAILABLE", times=2)

It needs nothing but Python's own library. docs/control.md describes the API.
"""

import base64
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request


class ControlError(Exception):
    """The error answer of the API; with the code "unreachable" and the status 0 if it does not answer."""

    def __init__(self, status, code, text, remedy):
        super().__init__(f"{text}: {remedy}")
        self.status, self.code, self.text, self.remedy = status, code, text, remedy


def _unreachable(url, why):
    return ControlError(0, "unreachable", f"no control API answers at {url} ({why})", "start tabletop serve --console, or read its port file again")


class Control:
    """A server that runs with --console. By default the environment variables printed by serve locate it."""

    def __init__(self, url=None, token=None, timeout=60):
        url = url or os.environ.get("TABLETOP_CONSOLE_URL")
        self.token = token or os.environ.get("TABLETOP_CONSOLE_TOKEN")
        if not url or not self.token:
            raise ValueError("which server? Give url and token, or set TABLETOP_CONSOLE_URL and TABLETOP_CONSOLE_TOKEN")
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"{url} is not a URL; expected one such as http://{url}")
        self.url = url.rstrip("/")
        self.timeout = timeout

    @classmethod
    def from_port_file(cls, path, token=None, timeout=60):
        """The server that wrote a --port-file."""
        try:
            with open(path, encoding="utf-8") as f:
                ports = json.load(f)
        except FileNotFoundError:
            raise ControlError(0, "unreachable", f"no server runs that writes {path}", f"start tabletop serve --console --port-file {path}") from None
        if not ports.get("console"):
            raise ValueError(f"the server of {path} was started without --console")
        return cls(ports["console"], token or ports.get("token"), timeout)

    def call(self, method, path, body=None, **query):
        """Make any request of the API; path is the part after /api/v1/."""
        given = {name: value for name, value in query.items() if value is not None}
        url = f"{self.url}/api/v1/{path}" + ("?" + urllib.parse.urlencode(given) if given else "")
        request = urllib.request.Request(
            url, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}"})
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            try:
                with e:
                    said = json.load(e)["error"]
                error = ControlError(e.code, said["code"], said["text"], said["remedy"])
            except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
                error = _unreachable(self.url, f"something else does, with status {e.code}")
            raise error from None
        except urllib.error.URLError as e:
            raise _unreachable(self.url, e.reason) from e
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise _unreachable(self.url, repr(e)) from e

    def info(self):
        return self.call("GET", "info")

    def tables(self):
        return self.call("GET", "tables")

    def rows(self, table, instance="tabletop", **query):
        """All rows of a Bigtable table, page by page."""
        return self._pages("rows", f"tables/{_part(instance)}/{_part(table)}/rows", query)

    def items(self, table, **query):
        """All items of a DynamoDB table, page by page."""
        return self._pages("items", f"items/{_part(table)}", query)

    def _pages(self, member, path, query):
        while True:
            page = self.call("GET", path, **query)
            yield from page[member]
            query = {**query, "cursor": page.get("cursor")}
            if query["cursor"] is None:
                return

    def streams(self):
        """The streams of DynamoDB's tables, and the Bigtable tables that have a change stream."""
        return self.call("GET", "streams")

    def records(self, table, **query):
        """All records so far of the table's latest stream of DynamoDB Streams, page by page."""
        return self._pages("records", f"streams/{_part(table)}/records", query)

    def changes(self, table, instance="tabletop", **query):
        """All records so far of the change stream of a Bigtable table, page by page."""
        return self._pages("changes", f"tables/{_part(instance)}/{_part(table)}/changes", query)

    def put_items(self, table, items):
        """Put items, in DynamoDB's JSON."""
        return self.call("POST", f"items/{_part(table)}", {"items": list(items)})["items"]

    def put_rows(self, table, rows, instance="tabletop"):
        """Write rows of a Bigtable table: each with a key and cells, or "delete": True. Keys, qualifiers and values are str or bytes."""
        return self.call("POST", f"tables/{_part(instance)}/{_part(table)}/rows", {"rows": [_row(row) for row in rows]})["rows"]

    def families(self, table, modifications, instance="tabletop"):
        """Create, change and drop column families, such as [{"id": "f", "create": {}}]; return the table."""
        return self.call("POST", f"tables/{_part(instance)}/{_part(table)}/families", {"modifications": list(modifications)})

    def drop(self, table, prefix, instance="tabletop"):
        """Delete the rows of a Bigtable table whose key begins with prefix, str or bytes."""
        self.call("POST", f"tables/{_part(instance)}/{_part(table)}/drop", {"prefix": _bytes(prefix)})

    def empty(self, table, instance="tabletop"):
        """Delete all rows of a Bigtable table."""
        self.call("POST", f"tables/{_part(instance)}/{_part(table)}/drop", {"all": True})

    def delete_table(self, table, instance="tabletop"):
        """Delete a Bigtable table."""
        self.call("DELETE", f"tables/{_part(instance)}/{_part(table)}")

    def heat(self, table=None, instance="tabletop", **query):
        """The load on the keys of a Bigtable table over time; without a table, the tables with load counts."""
        return self.call("GET", f"heat/{_part(instance)}/{_part(table)}" if table else "heat", **query)

    def query(self, operation, request):
        """Run a DynamoDB operation; return its response, and its Bigtable calls."""
        return self.call("POST", "query", {"operation": operation, "request": request})

    def insights(self, table, index=None):
        """The most used keys of a DynamoDB table, or of an index, while contributor insights are on."""
        return self.call("GET", f"insights/{_part(table)}", index=index)

    def reset(self):
        self.call("POST", "reset")

    def resume(self):
        """Continue the paused Go test."""
        self.call("POST", "resume")

    def snapshots(self):
        return self.call("GET", "snapshots")["snapshots"]

    def snapshot(self, name):
        return self.call("POST", "snapshots", {"name": name})

    def restore(self, name):
        return self.call("POST", f"snapshots/{_part(name)}/restore")

    def forget(self, name):
        self.call("DELETE", f"snapshots/{_part(name)}")

    def changes_since(self, name, to=None, limit=None):
        """The rows and items that have changed since a snapshot: until now, or until the snapshot to."""
        return self.call("GET", f"snapshots/{_part(name)}/changes", to=to, limit=limit)

    def clock(self):
        return self.call("GET", "clock")

    def advance(self, duration):
        """Advance the clock, by "25h" for example, and run the work due on the way."""
        return self.call("POST", "clock", {"advance": duration})

    def set(self, time):
        """Advance the clock to a time, a datetime with its zone or RFC 3339, and run the work due on the way."""
        return self.call("POST", "clock", {"set": time.isoformat() if hasattr(time, "isoformat") else time})

    def freeze(self):
        return self.call("POST", "clock", {"freeze": True})

    def run(self):
        return self.call("POST", "clock", {"run": True})

    def gc(self):
        """Collect garbage; return the number of deleted cells."""
        return self.call("POST", "gc")["cells"]

    def ttl(self):
        """Delete expired items; return their number."""
        return self.call("POST", "ttl")["items"]

    def fault(self, **spec):
        """Arm a fault; docs/control.md lists the members."""
        return self.call("POST", "faults", spec)

    def faults(self):
        return self.call("GET", "faults")["faults"]

    def remove_faults(self, fault=None):
        """Remove a fault, as returned by fault() or faults(), or all."""
        self.call("DELETE", f"faults/{fault['endpoint']}/{fault['id']}" if fault else "faults")

    def dump(self, table=None):
        return self.call("GET", "dump", table=table)["text"]

    def requests(self, **query):
        """The last requests of both endpoints, the newest first: 100 of them, or limit."""
        return self.call("GET", "requests", **query)["requests"]

    def request(self, id):
        """One of the requests, with its bodies and its calls."""
        return self.call("GET", f"requests/{id}")

    def plan(self, fixture, mapping=None):
        """Run tabletop migrate plan on a folder of --fixtures; mapping replaces the text of the fixture's own."""
        return self._migrate("plan", fixture, mapping)

    def verify(self, fixture, mapping=None):
        """Run tabletop migrate verify."""
        return self._migrate("verify", fixture, mapping)

    def lint(self, fixture, mapping=None):
        """Run tabletop migrate lint."""
        return self._migrate("lint", fixture, mapping)

    def _migrate(self, verb, fixture, mapping):
        return self.call("POST", f"migrate/{verb}", {"fixture": fixture, **({} if mapping is None else {"mapping": mapping})})


def _bytes(value):
    """The API's form of bytes; bytes already in this form stay as they are."""
    if isinstance(value, str):
        return {"text": value}
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, (bytes, bytearray)) else value


def _row(row):
    cells = [{**cell, "qualifier": _bytes(cell["qualifier"]), "value": _bytes(cell["value"])} for cell in row.get("cells", [])]
    return {**row, "key": _bytes(row["key"]), "cells": cells}


def _part(name):
    return urllib.parse.quote(name, safe="")
