"""Version 9: names of the field, and causes as data.

A step `repairs` rules (was `mends`); an intent has a `fingerprint` (was `circumstances`) and a `cause`, which
was the beginning of its error.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import JSON, Column, Connection, MetaData, String, Table, func, select, text, update

_plans = Table(
    "plans",
    MetaData(),
    Column("engine", String, primary_key=True),
    Column("id", String, primary_key=True),
    Column("document", JSON, nullable=False),
)
_intents = Table("intents", MetaData(), Column("error", String), Column("cause", String))

#: How errors began, and the causes that this stood for; what begins another comes before it.
_CAUSES = {
    "never reached the engine": "never_asked",
    "refused: not now: ": "vm_refused",
    "refused: ": "target_refused",
    "no answer, and no trace of it in the engine: ": "no_trace",
    "no answer, and no trace of it in the engine": "no_trace",
}


def migrate(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE intents RENAME COLUMN circumstances TO fingerprint"))
    connection.execute(text("ALTER TABLE intents ADD COLUMN cause VARCHAR"))
    for began, cause in _CAUSES.items():
        _separate(connection, began, cause)
    for engine, plan, document in connection.execute(select(_plans)).all():
        row = (_plans.c.engine == engine) & (_plans.c.id == plan)
        connection.execute(update(_plans).where(row).values(document=_renamed(document)))


def _separate(connection: Connection, began: str, cause: str) -> None:
    """Take the beginning of errors for their cause, and leave the words of the engine."""
    begins = func.substr(_intents.c.error, 1, len(began)) == began
    words = func.nullif(func.substr(_intents.c.error, len(began) + 1), "")
    change = update(_intents).where(_intents.c.cause.is_(None), begins)
    connection.execute(change.values(cause=cause, error=words))


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    steps = [
        {("repairs" if field == "mends" else field): value for field, value in step.items()}
        for step in document.get("steps", ())
    ]
    return {**document, "steps": steps}
