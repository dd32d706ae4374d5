"""The question `why`: which hosts may take a VM now, or what became of it, by the proxy's record."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from ovirt_placement.answers.decisions.decision import LastDecisionsDocument, decision_text, last_decisions
from ovirt_placement.answers.document import Document
from ovirt_placement.answers.placement import ALSO, WhyDocument, why, why_text
from ovirt_placement.answers.proxy import NoRecord, record_of
from ovirt_placement.answers.question import (
    VMS,
    ConfiguredState,
    Names,
    Parameter,
    Reads,
    Route,
    Shown,
    Table,
    question,
)
from ovirt_placement.inventory import Measured
from ovirt_placement.model import Host, Vm
from ovirt_placement.rules.rule_list import NO_UNITS
from ovirt_service.errors import UserError

if TYPE_CHECKING:
    from ovirt_placement.engine.events import LatestEvents

_WEEK_SECONDS = 7 * 86400.0
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _record_file(state: ConfiguredState, file: Path | None) -> Path:
    """The proxy's record of decisions. Raises `NoRecord` where none is known."""
    return file or record_of(state.config().engine.name)


def _events(state: ConfiguredState) -> tuple[LatestEvents, str | None]:
    """What the engine says of refusals, or why it is not known."""
    # The SDK takes long to load: not for `--help`.
    from ovirt_placement.engine.connection.client import connect
    from ovirt_placement.engine.events import LatestEvents, find_refusals

    if not state.live:
        return LatestEvents((), None), "a state file has none"
    try:
        with connect(state.config().engine) as connection:
            return find_refusals(connection), None
    except UserError as error:
        return LatestEvents((), None), str(error)


def _moment(text: str) -> float:
    from ovirt_placement.answers.decisions.at_time import read_moment

    return read_moment(text, time.time())


def _since(text: str) -> float:
    """A moment, in seconds since the epoch: so long ago, or as that of `--at`."""
    number, unit = text[:-1], text[-1:]
    if unit in _UNIT_SECONDS and number.isdecimal():
        return time.time() - float(number) * _UNIT_SECONDS[unit]
    return _moment(text)


_ITS_HOSTS = Names(
    "host of its cluster",
    lambda snapshot, found: snapshot.hosts_of_cluster.get(found["vm"].cluster, ()) if found["vm"] else (),
)


@question(
    "why",
    "which hosts may take a VM, and why not the others",
    """\
Show for each host of the VM's cluster whether it may take the VM now, and why not, by the engine's filters
and by ours (docs/rules.md). With --last, --at or --refused, show what the scheduler proxy decided in the
past, from its record and the engine's events (docs/proxy.md).
""",
    examples="""\
  ovirt-placement why web1                  # every host of its cluster
  ovirt-placement why web1 --fail-if-refused   # for a script
  ovirt-placement why web1 --at 02:13       # why it did not start last night
  ovirt-placement why --refused --since 1d  # all that was refused since yesterday
""",
    text=lambda answer, shown: _text(answer, shown),
    status=lambda answer, shown: int(bool(shown.words.get("fail_if_refused")) and _is_refused(answer)),
    reads=Reads.CONFIGURED,
    # Filters ask for what their units read; placement keys, where no policy says so, for all.
    measured=lambda words: Measured.FOR_RESERVATION if words.get("also") else Measured.FOR_UNITS,
    routes=(Route("/vms/{name}/why", answer=WhyDocument),),
)
def why_now_or_then(
    state: ConfiguredState,
    vm: Annotated[
        Vm | None,
        Parameter(
            help="by name or id; with --refused, else all",
            metavar="VM",
            names=VMS,
            positional=True,
            argument={"nargs": "?"},
        ),
    ] = None,
    hosts: Annotated[
        Sequence[Host],
        Parameter(
            help="only this host, by name or id",
            metavar="HOST",
            names=_ITS_HOSTS,
            every=True,
            positional=True,
        ),
    ] = (),
    also: ALSO = NO_UNITS,
    *,
    fail_if_refused: Annotated[bool, Parameter(help="exit with status 1 if no host accepts the VM")] = False,
    last: Annotated[
        int | None,
        Parameter(
            help="the last N decisions about the VM (default: 1)",
            metavar="N",
            one_of="past",
            argument={"nargs": "?", "const": 1},
        ),
    ] = None,
    at: Annotated[
        float | None,
        Parameter(
            help='the decisions around that time: 02:13, "yesterday 02:13", 2026-01-31T02:13+01:00',
            metavar="TIME",
            one_of="past",
            argument={"type": _moment},
        ),
    ] = None,
    refused: Annotated[
        bool, Parameter(help="starts and migrations that were refused", one_of="past")
    ] = False,
    since: Annotated[
        float | None,
        Parameter(
            help="with --refused: 12h, 3d, or a time as of --at (default: 7d)",
            metavar="TIME",
            argument={"type": _since},
        ),
    ] = None,
    decisions: Annotated[
        Path | None,
        Parameter(
            help="the proxy's record, if not where its configuration says",
            metavar="FILE",
            argument={"type": Path},
        ),
    ] = None,
) -> Document:
    """What filters say of each host now, or what the record says of the past. Raises `UserError`."""
    if since is not None and not refused:
        raise UserError("--since goes with --refused")
    if fail_if_refused and (refused or last is not None or at is not None):
        raise UserError("--fail-if-refused is about now: it goes without --last, --at and --refused")
    if refused:
        return _refused(state, time.time() - _WEEK_SECONDS if since is None else since, decisions, vm)
    if vm is None:
        raise UserError("which VM? why VM, or why --refused for all that were refused")
    snapshot = state.snapshot
    every = snapshot.hosts_of_cluster.get(vm.cluster, ())
    only = hosts[0] if len(hosts) == 1 and hosts != every else None
    if last is not None:
        return last_decisions(snapshot, vm, _record_file(state, decisions), only, last)
    if at is not None:
        from ovirt_placement.answers.decisions.at_time import decisions_at

        record, (events, error) = _record_file(state, decisions), _events(state)
        return decisions_at(snapshot, vm, record, at, events, error, only)
    if not hosts:
        raise UserError(f"cluster {snapshot.cluster_by_id[vm.cluster].name} of VM {vm.name} has no hosts")
    return why(snapshot, vm, hosts, also)


def _refused(state: ConfiguredState, since: float, file: Path | None, vm: Vm | None) -> Document:
    """What was refused; without a record, by the engine's events alone."""
    from ovirt_placement.answers.decisions.refused import refused_placements

    events, events_error = _events(state)
    try:
        record = _record_file(state, file)
        return refused_placements(state.snapshot, record, since, events, (None, events_error), vm)
    except NoRecord as error:
        return refused_placements(state.snapshot, None, since, events, (str(error), events_error), vm)


def _text(answer: Document, shown: Shown) -> Iterator[str | Table]:
    if isinstance(answer, WhyDocument):
        yield from why_text(answer, shown)
    elif isinstance(answer, LastDecisionsDocument):
        for decision in answer.decisions:
            yield from decision_text(decision)
        if not answer.decisions:
            yield f"{_record(shown)} has no decision about VM {answer.vm.name}"
    else:
        yield from _text_with_events(answer, shown)


def _text_with_events(answer: Document, shown: Shown) -> Iterator[str | Table]:
    from ovirt_placement.answers.decisions import at_time, refused

    if isinstance(answer, at_time.DecisionsAtDocument):
        yield from at_time.text(answer, str(_record(shown)), whole=shown.whole)
    elif isinstance(answer, refused.RefusedPlacementsDocument):
        yield "\n".join(refused.lines(answer, whole=shown.whole)).rstrip()


def _is_refused(answer: Document) -> bool:
    """Whether no host accepts the VM now."""
    return isinstance(answer, WhyDocument) and not any(one.accepted for one in answer.hosts)


def _record(shown: Shown) -> Path:
    return _record_file(shown.state, shown.words["decisions"])
