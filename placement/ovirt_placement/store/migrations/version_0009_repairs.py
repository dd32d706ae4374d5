"""Version 9: two names of the field: a step `repairs` rules (was `mends`), an intent has a `fingerprint`."""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Column, Connection, MetaData, String, Table, select, text, update

_plans = Table(
    "plans",
    MetaData(),
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("document", JSON, nullable=False),
)


def migrate(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE intents RENAME COLUMN circumstances TO fingerprint"))
    for engine, plan, document in connection.execute(select(_plans)).all():
        row = (_plans.c.engine == engine) & (_plans.c.id == plan)
        connection.execute(update(_plans).where(row).values(document=_renamed(document)))


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    steps = [
        {("repairs" if field == "mends" else field): value for field, value in step.items()}
        for step in document.get("steps", ())
    ]
    return {**document, "steps": steps}
