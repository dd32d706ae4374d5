"""Reads from the engine what setup and its undoing begin with."""

from __future__ import annotations

from collections.abc import Iterable

from ovirt_placement.answers.setup.choice import Seen
from ovirt_placement.answers.setup.former import origin_of
from ovirt_placement.answers.setup.returning import BASE, Overview
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.parsing.policies import PolicyHead
from ovirt_placement.engine.writing import policies
from ovirt_placement.engine.writing.policies import PolicyUser
from ovirt_service.errors import UserError

_BASE_ID = "b4ed2332-a7ac-4d5f-9596-99a439cb2812"


def read_overview(connection: EngineConnection) -> Overview:
    """Read all policies and who uses them. Raises what `EngineConnection.get` raises, as all here do."""
    return Overview(
        units=policies.read_units(connection),
        heads=policies.read_heads(connection),
        users=policies.read_users(connection),
    )


def read_seen(
    connection: EngineConnection,
    overview: Overview,
    policy: str,
    clusters: Iterable[PolicyUser],
    origin: str = BASE,
) -> Seen:
    """Read a policy that is to have our units, and the one that it is like: `origin`, if it must be made."""
    head = overview.named(policy)
    base = _base(overview, origin if head is None else origin_of(head.description) or BASE)
    return Seen(
        units=overview.units,
        base=policies.read_content(connection, base),
        target=None if head is None else policies.read_content(connection, head),
        clusters=tuple(clusters),
    )


def _base(overview: Overview, name: str) -> PolicyHead:
    by_id = overview.head_by_id.get(_BASE_ID) if name == BASE else None
    found = by_id or overview.named(name)
    if found is None:
        raise UserError(
            f"the engine has no policy {name} to begin with: is it an oVirt engine of 4.0 or later?"
        )
    return found
