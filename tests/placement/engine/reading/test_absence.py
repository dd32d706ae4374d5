"""What is absent: the engine itself must say so, twice; a web server's page says nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from ovirt_placement.engine.connection.client import EngineAway, EngineConnection
from ovirt_placement.engine.reading.events import read_events
from ovirt_placement.engine.reading.policies import PolicyReader
from ovirt_placement.engine.reading.topology import read_snapshot, reread_cluster, reread_hosts, reread_vms
from ovirt_service.errors import UserError
from tests.placement import engine_server

PAGE = b"<html><head><title>404 - Not Found</title></head></html>"
COLLECTIONS = ["/clusters", "/hosts", "/vms", "/affinitylabels", "/datacenters"]
FAULT = b"<fault><detail>Not found</detail><reason>Operation Failed</reason></fault>"


@contextmanager
def answering(answers: dict[str, tuple[int, bytes]]) -> Iterator[EngineConnection]:
    """The recorded engine, but for these paths."""
    with engine_server.answering(lambda path: answers.get(urlsplit(path).path)) as (_, connection):
        yield connection


@pytest.mark.parametrize("path", COLLECTIONS)
@pytest.mark.parametrize("answer", [(404, PAGE), (404, b""), (200, b"<html/>"), (200, b"<fault/>")])
def test_a_collection_is_not_empty_because_it_cannot_be_read(path: str, answer: tuple[int, bytes]) -> None:
    with answering({path: answer}) as connection, pytest.raises(UserError):
        read_snapshot(connection)


def test_a_page_of_a_web_server_is_reported_as_that() -> None:
    with (
        answering({"/affinitylabels": (404, PAGE)}) as connection,
        pytest.raises(EngineAway, match="/affinitylabels: a web server answers 404 in place of the engine"),
    ):
        read_snapshot(connection)


def test_a_collection_that_the_engine_says_it_has_not_is_empty() -> None:
    with answering({"/affinitylabels": (404, FAULT)}) as connection:
        assert read_snapshot(connection).affinity_labels == ()


@pytest.mark.parametrize("page", [(404, PAGE), (404, b"")])
def test_an_engine_without_events_says_so_itself(page: tuple[int, bytes]) -> None:
    with answering({"/events": (404, FAULT)}) as connection:
        assert read_events(connection, at_most=10) == ()
    with answering({"/events": page}) as connection, pytest.raises(UserError):
        read_events(connection, at_most=10)


def test_what_is_gone_is_neither_there_by_its_id_nor_listed() -> None:
    gone = {"/vms/v": (404, b""), "/hosts/h": (404, b""), "/clusters/c": (404, b"")}
    with answering(gone) as connection:
        assert reread_vms(connection, ["v"]) == {}
        assert reread_hosts(connection, ["h"]) == {}
        assert reread_cluster(connection, "c", PolicyReader()) is None


def test_what_a_web_server_does_not_have_may_be_there() -> None:
    pages = {"/vms/v": (404, PAGE), "/hosts/h": (404, PAGE), "/clusters/c": (404, PAGE)}
    with answering(pages) as connection:
        with pytest.raises(EngineAway):
            reread_vms(connection, ["v"])
        with pytest.raises(EngineAway):
            reread_hosts(connection, ["h"])
        with pytest.raises(EngineAway):
            reread_cluster(connection, "c", PolicyReader())


def test_what_its_collection_lists_is_there() -> None:
    with answering({}) as connection:
        known = read_snapshot(connection)
    vm, host = known.vms[0].id, known.hosts[0].id
    with answering({f"/vms/{vm}": (404, b""), f"/hosts/{host}": (404, b"")}) as connection:
        assert reread_vms(connection, [vm])[vm].name == known.vms[0].name
        assert reread_hosts(connection, [host])[host].name == known.hosts[0].name
