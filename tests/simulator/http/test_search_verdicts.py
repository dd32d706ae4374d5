"""Searches are taken, refused and found as by the engine's own code, whose verdicts are held as data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ovirt_simulator.core.engine import Engine
from ovirt_simulator.http.search.errors import SearchError, SearchFailure
from ovirt_simulator.http.search.fields import Kind
from ovirt_simulator.http.search.known import Known
from ovirt_simulator.http.search.malformed_sql import refuse_malformed_sql
from ovirt_simulator.http.search.objects import OBJECTS
from ovirt_simulator.http.search.parse import parse
from ovirt_simulator.http.search.scanner import Part, Scanner
from ovirt_simulator.http.search.select import Request, select
from tests.paths import DATA
from tests.simulator.http.searched_world import USERS, identity, searched_engine

_PARTS = {
    Part.OBJECT: "CROSS_REF_OBJ",
    Part.FIELD: "CONDITION_FIELD",
    Part.RELATION: "CONDITION_RELATION",
    Part.VALUE: "CONDITION_VALUE",
    Part.DIRECTION: "SORT_DIRECTION",
    Part.NUMBER: "PAGE_VALUE",
}
_KINDS = {
    "Integer": Kind.INTEGER,
    "Long": Kind.BIGINT,
    "BigDecimal": Kind.DECIMAL,
    "TimeSpan": Kind.SPAN,
    "UUID": Kind.UUID,
}
#: Of these the database holds a text, whatever the engine's Java says.
_TEXTS_IN_THE_DATABASE = {("HOST", "HW_ID"), ("JOB", "CORRELATION_ID")}


def rows(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / "search" / f"{name}.jsonl").open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_fields_are_the_engines() -> None:
    reported: dict[str, set[str]] = {}
    for row in rows("fields"):
        known = OBJECTS[row["object"]]
        if "references" in row:
            # Quotas and volumes are only referred to, and never asked what they refer to.
            assert known.name in ("QUOTA", "VOLUME") or known.references == set(row["references"]), known.name
            continue
        reported.setdefault(known.name, set()).add(row["field"])
        field = known.fields[row["field"]]
        expected = (row["free_text"], row["hidden"], set(row["relations"] or ()))
        assert (field.free, field.hidden, set(field.relations or ())) == expected, row
        if isinstance(row["words"], dict):
            assert dict(field.words) == row["words"], row
        elif row["words"] is not None:
            assert set(field.words) == set(row["words"]), row
        if row["type"] in _KINDS and (known.name, field.name) not in _TEXTS_IN_THE_DATABASE:
            assert field.kind is _KINDS[row["type"]], row
    assert reported == {name: set(known.fields) for name, known in OBJECTS.items()}


def understood(search: str, name: str) -> dict[str, Any]:
    try:
        parse(search, name)
    except SearchError:
        return {"error": "refused"}
    except SearchFailure as failure:
        if failure.status == 500:
            return {"error": "crash"}
    tokens = Scanner(search, OBJECTS[name]).scan()[1:]
    return {"parts": [text for one in tokens for text in (_PARTS.get(one.part, one.part.name), one.text)]}


def test_searches_are_understood_as_the_engine_does() -> None:
    wrong = []
    for row in rows("understood"):
        name, search, error = row.pop("object"), row.pop("search"), row.get("error")
        expected = row if error in (None, "crash") else {"error": "refused"}
        found = understood(search, name)
        if found != expected:
            wrong.append((name, search, error, expected, found))
    assert wrong == []


def test_what_the_engines_sql_fails_on_fails_with_the_same_words() -> None:
    wrong = []
    for row in rows("failing"):
        name, search, said = row["object"], row["search"], ""
        try:
            refuse_malformed_sql(search, name, parse(search, name))
        except SearchFailure as failure:
            said = str(failure).removeprefix("ERROR: ")
        if said != row["error"]:
            wrong.append((name, search, row["error"], said))
    assert wrong == []


@pytest.fixture(scope="module")
def searched() -> Engine:
    return searched_engine()


def test_searches_find_what_the_engines_database_finds(searched: Engine) -> None:
    queries = searched.queries
    known = Known(queries, "admin@internal")
    records: dict[str, list[Any]] = {
        "VM": list(queries.vms()),
        "HOST": list(queries.hosts()),
        "CLUSTER": list(queries.clusters()),
        "DATACENTER": list(queries.data_centers()),
        "TEMPLATE": list(queries.templates()),
        "NETWORK": list(queries.networks()),
        "EVENT": list(queries.events()),
        "USER": known.users,
    }
    names = {identity(user): user for user in USERS}
    wrong = []
    for row in rows("found"):
        always = ' and usrname != ""' if row["object"] == "USER" else ""
        asked = Request(text=row["search"] + always, case_sensitive=row.get("case_sensitive", False))
        found = select(records[row["object"]], row["object"], asked, queries, known)
        given = [names.get(one.id) or getattr(one, "name", None) or str(one.id) for one in found]
        if given != row["found"]:
            wrong.append((row, given))
    assert wrong == []
