"""Counts the writings of an engine's placement keys and rules, so that readers know when there are others."""

from __future__ import annotations

import secrets

from sqlalchemy import text

from ovirt_placement.store.access import EngineRows
from ovirt_placement.store.schema import key_revision

#: The first of an engine is drawn, so that a store that is made again is not taken for the former.
_FIRST_REVISIONS = range(1, 2**30)
_REVISE = text(
    "INSERT INTO key_revision (engine, revision) VALUES (:engine, :first)"
    " ON CONFLICT (engine) DO UPDATE SET revision = key_revision.revision + 1"
)


def revision(rows: EngineRows) -> int:
    """Return the revision of an engine's keys and rules: 0 as long as none were written."""
    found = rows.execute(rows.select(key_revision, key_revision.c.revision)).scalar_one_or_none()
    return int(found or 0)


def revise(rows: EngineRows) -> None:
    """Take the next revision: first of all, since who does so makes every other writer wait."""
    rows.execute(_REVISE, {"engine": rows.engine, "first": secrets.choice(_FIRST_REVISIONS)})
