"""The answer of `ovirt-placement setup` as data."""

from __future__ import annotations

from ovirt_placement.answers.document import Document
from ovirt_placement.model.record import Record


class SentRequest(Record, frozen=True, omit_defaults=False):
    """A request to the engine."""

    sentence: str
    method: str
    path: str
    body: str


class PolicyChange(Record, frozen=True, omit_defaults=False):
    """What was done about a scheduling policy; an error, where it stays as it is."""

    policy: str
    requests: tuple[SentRequest, ...]
    notes: tuple[str, ...]
    error: str | None


class SetupDocument(Document, frozen=True, kw_only=True, tag="setup"):
    """What was done about scheduling policies, or with `--dry-run` would be."""

    sent: bool
    policies: tuple[PolicyChange, ...]
    notes: tuple[str, ...]
