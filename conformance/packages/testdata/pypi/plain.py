"""Starts a server without pytest."""

from tabletop import Tabletop

with Tabletop.start() as server:
    assert server.info()["bigtable"] == server.bigtable
