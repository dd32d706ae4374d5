"""What every answer as data says of itself: its kind, the version of all that stands in it, its age."""

from __future__ import annotations

from typing import Literal

from ovirt_placement.model.record import Record

#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
VERSION: Literal[1] = 1


class Document(Record, frozen=True, kw_only=True, omit_defaults=False, tag_field="kind"):
    """An answer as data; its `kind` says which one."""

    version: Literal[1] = VERSION
    #: When all of it was so (ISO 8601), if the engine is away and what was known of old answers; else null.
    as_of: str | None = None
    #: How long ago that was.
    age_seconds: float | None = None


class ChangeDocument(Document, frozen=True, kw_only=True):
    """What every command says that changes something; kinds of it add `before` and `after`.

    These hold what the change concerns, and nothing else.
    """

    #: Whether something is another now than before; in a dry run, whether it would be.
    changed: bool
    #: Whether it was but tried: then nothing is written, and `after` is what would be.
    dry_run: bool
