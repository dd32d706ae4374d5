"""What is not right with engine, proxy, policies and machine."""

from __future__ import annotations

from collections.abc import Iterator

from ovirt_placement.answers.doctor.examination import examine
from ovirt_placement.answers.document import Document
from ovirt_placement.config import Config
from ovirt_placement.model.names import Named
from ovirt_placement.model.record import Record


class FoundProblem(Record, frozen=True, omit_defaults=False):
    """One thing that is not right, and what would repair it."""

    kind: str
    sentence: str
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None
    #: Whether a rule means nothing for it: `--event` reports such findings to the engine.
    rule: bool


class DoctorDocument(Document, frozen=True, kw_only=True, tag="doctor"):
    """What is not right with engine, proxy, policies and machine."""

    findings: tuple[FoundProblem, ...]
    #: What could not be looked at, and why.
    not_examined: tuple[str, ...]
    #: Parts of the product that are not at work here, though nothing is wrong with them.
    not_in_use: tuple[str, ...]
    #: What is worth a look, though nothing is known to be wrong.
    hints: tuple[str, ...]


def doctor(configuration: Config, proxy: str | None = None, *, report: bool = False) -> DoctorDocument:
    """Examine all; the units of the `proxy` at this URL, too.

    With `report`, the engine gets an event for rules that mean nothing. Raises `UserError` if the
    configuration does not say where the engine is.
    """
    found = examine(configuration, proxy, report=report)
    return DoctorDocument(
        findings=tuple(
            FoundProblem(one.kind, one.what, one.remedy, one.cluster, one.rule) for one in found.findings
        ),
        not_examined=tuple(found.not_examined),
        not_in_use=tuple(found.not_in_use),
        hints=tuple(found.hints),
    )


# -- in words


def lines(answer: DoctorDocument) -> Iterator[str]:
    """Each finding with its remedy, what could not be looked at, and hints."""
    for finding in answer.findings:
        yield f"- {finding.sentence}"
        yield f"  -> {finding.remedy}"
    yield from (f"- not examined: {text}" for text in answer.not_examined)
    yield from (f"- not in use: {text}" for text in answer.not_in_use)
    if not answer.findings:
        yield _nothing_found(answer)
    yield from (f"Hint: {text}." for text in answer.hints)


def _nothing_found(answer: DoctorDocument) -> str:
    """What may be concluded where there is no finding: no more than was looked at."""
    if answer.not_examined:
        return "No problem was found in what was examined."
    looked_at = "engine, scheduling policies, proxy, inventory, store, configuration and this machine"
    return f"No problem was found: {looked_at} were examined."
