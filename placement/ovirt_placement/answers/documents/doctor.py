"""The answer of `ovirt-placement doctor` as data."""

from __future__ import annotations

from ovirt_placement.answers.document import Document
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


class Found(Record, frozen=True, omit_defaults=False):
    """One thing that is not right, and what would repair it."""

    kind: str
    sentence: str
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None
    #: Whether a rule means nothing for it: `--event` tells the engine of such findings.
    rule: bool


class DoctorDocument(Document, frozen=True, kw_only=True, tag="doctor"):
    """What is not right with engine, proxy, policies and machine."""

    findings: tuple[Found, ...]
    #: What could not be looked at, and why.
    not_examined: tuple[str, ...]
    #: What is worth a look, though nothing is known to be wrong.
    hints: tuple[str, ...]
