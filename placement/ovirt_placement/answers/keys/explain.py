"""One placement by keys, step by step and host by host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated

from msgspec.structs import asdict

from ovirt_placement.answers.document import Document, Unit, listed, unit_names
from ovirt_placement.answers.keys.key import (
    SCORE_HEADERS,
    HostKeys,
    figure,
    host_keys,
    score_cells,
    without_effect,
)
from ovirt_placement.answers.question import VMS, AuthoredState, Parameter, Reads, Table, question
from ovirt_placement.model import Snapshot, Vm
from ovirt_placement.model.names import Named, host_name, named_cluster, named_host, named_hosts
from ovirt_placement.rules.placement_keys.capacity import Shortage
from ovirt_placement.rules.placement_keys.judgement import KeyDecision, KeyFailure
from ovirt_placement.rules.placement_keys.placing import decide_vm
from ovirt_placement.rules.placement_keys.settings import settings_of
from ovirt_placement.rules.placement_keys.units import KEY_FILTER
from ovirt_placement.rules.scheduling import judge

_KEY_FILTER = KEY_FILTER.name


_SHORTAGES = {
    Shortage.NOT_UP: "is not up",
    Shortage.UNCONTENDED: "{there} MiB not handed out, {need} must fit with some to spare",
    Shortage.CONTENDED: "{there} MiB physically free, {need} must fit with some to spare",
}
_OTHERS = "Other filters refuse every host: keys have nothing to choose from."
_FAILURES = {
    KeyFailure.CONSTRAINT: "No host is capable of running it.",
    KeyFailure.THRESHOLD: "No host's score is above the last threshold, {final}.",
}


class HostPlace(HostKeys, frozen=True, omit_defaults=False, kw_only=True):
    """A host in one placement: how far it comes by keys, and which other filters refuse it."""

    host: Named
    refused_by: tuple[Unit, ...]


class KeysExplainDocument(Document, frozen=True, kw_only=True, tag="keys_explain"):
    """One placement by keys, among the hosts that all other filters accept."""

    vm: Named
    cluster: Named
    #: Where the VM runs now.
    host: Named | None
    #: What the scores have to exceed in each round.
    thresholds: tuple[float, ...]
    #: The first round that any host passed.
    round: int | None
    #: The hosts that passed it, and of these the best.
    candidates: tuple[Named, ...]
    choice: tuple[Named, ...]
    failed: KeyFailure | None
    #: Whether its storage binds the VM to a host, so that keys have no say.
    local_storage: bool
    sentence: str
    #: What the policy lacks for keys to count, in a sentence.
    notes: tuple[str, ...]
    hosts: tuple[HostPlace, ...]


@question(
    "keys explain",
    "how keys place a VM",
    """\
Show how keys place a VM, host by host: nearness, score, round, customer's score, and the chosen host.
""",
    examples="  ovirt-placement keys explain web1\n",
    text=lambda answer, _: _explain_text(answer),
    reads=Reads.KEYS,
)
def keys_explain(
    state: AuthoredState,
    vm: Annotated[Vm, Parameter(help="its name or id", metavar="VM", names=VMS, positional=True)],
    *,
    whole: Annotated[bool, Parameter(common="all")] = True,
) -> KeysExplainDocument:
    """How keys place a VM among the other hosts that all other filters accept.

    Unless `whole`, the sentence names no more hosts than a person reads.
    """
    snapshot = state.snapshot
    hosts = snapshot.hosts_of_cluster.get(vm.cluster, ())
    asked = tuple(host.id for host in hosts if host.id != vm.host)
    settings = settings_of(snapshot.cluster_by_id[vm.cluster].scheduling_properties)
    refused = _refused(snapshot, vm)
    left = [host for host in asked if host not in refused]
    every = decide_vm(snapshot, vm, asked, settings)
    decision = every if every.failed is not None else decide_vm(snapshot, vm, left, settings)
    others = every.failed is None and not left
    return KeysExplainDocument(
        vm=Named(vm.id, vm.name),
        cluster=named_cluster(vm.cluster, snapshot),
        host=None if vm.host is None else named_host(vm.host, snapshot),
        thresholds=tuple(map(float, decision.thresholds)),
        round=decision.round,
        candidates=named_hosts(decision.candidates, snapshot),
        choice=named_hosts(decision.choice, snapshot),
        failed=decision.failed,
        local_storage=decision.local_storage,
        sentence=_OTHERS if others else _outcome(decision, snapshot, whole=whole),
        notes=tuple(without_effect([snapshot.cluster_by_id[vm.cluster]])),
        hosts=tuple(_places(every, refused, snapshot)),
    )


def _refused(snapshot: Snapshot, vm: Vm) -> dict[str, tuple[Unit, ...]]:
    """The hosts of a VM's cluster that other filters than that of keys refuse, each with those filters."""
    found: dict[str, tuple[Unit, ...]] = {}
    for host in judge(snapshot, vm, snapshot.hosts_of_cluster.get(vm.cluster, ())).hosts:
        vetoes = (rule for reason, rules in host.reasons if reason.kind.veto for rule in rules)
        if others := dict.fromkeys(rule for rule in vetoes if not rule.ours or rule.name != _KEY_FILTER):
            found[host.host] = tuple(Unit(rule.name, not rule.ours) for rule in others)
    return found


def _places(
    every: KeyDecision, refused: Mapping[str, tuple[Unit, ...]], snapshot: Snapshot
) -> Iterator[HostPlace]:
    for one in every.hosts:
        yield HostPlace(
            **asdict(host_keys(one)),
            host=named_host(one.host, snapshot),
            refused_by=refused.get(one.host, ()),
        )


def _outcome(decision: KeyDecision, snapshot: Snapshot, *, whole: bool) -> str:
    """Which hosts are chosen from."""
    names = listed([host_name(host, snapshot) for host in decision.choice], " or ", whole=whole)
    if decision.local_storage:
        return f"Its storage is local, so that keys do not count: {names}."
    if decision.failed is not None or decision.round is None:
        return _FAILURES[decision.failed or KeyFailure.CONSTRAINT].format(
            final=figure(decision.thresholds[-1])
        )
    above = figure(decision.thresholds[decision.round - 1])
    drawn = ", by lot" if len(decision.choice) > 1 else ""
    return f"Round {decision.round} (above {above}): {names}{drawn}."


# -- in words
def _explain_text(answer: KeysExplainDocument) -> Iterator[str | Table]:
    """How far each host comes, and whether it is chosen."""
    choice = {host.id for host in answer.choice}
    if rows := [_explain_row(one, chosen=one.host.id in choice) for one in answer.hosts]:
        yield Table(rows, ("host", *SCORE_HEADERS, ""))
        yield ""
    yield from (answer.sentence, *answer.notes)


def _explain_row(one: HostPlace, *, chosen: bool) -> tuple[str, ...]:
    if one.system is None:
        return one.host.name, "\n".join(_lacking(one)), "", "", "", "", "no room"
    if one.refused_by:
        return one.host.name, *score_cells(one), f"refused by {unit_names(one.refused_by)}"
    return one.host.name, *score_cells(one), "chosen" if chosen else "" if one.round else "refused"


def _lacking(one: HostPlace) -> Iterator[str]:
    figures = {
        Shortage.NOT_UP: ("", 0),
        Shortage.UNCONTENDED: (figure(one.uncontended_mb), one.uncontended_need_mb),
        Shortage.CONTENDED: (str(one.contended_mb), one.contended_need_mb),
    }
    for shortage in one.shortages:
        there, need = figures[shortage]
        yield _SHORTAGES[shortage].format(there=there, need=need)
