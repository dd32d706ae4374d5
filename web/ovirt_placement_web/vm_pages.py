"""The view of a VM: why it is where it is in one sentence, what would help, and what decides host by host."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.requests import Request

from ovirt_enforcer.history import Subject, Wanted
from ovirt_placement.answers.decisions.record import NoRecord
from ovirt_placement.answers.document import Said
from ovirt_placement.answers.groups.listing import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.placement import (
    JudgedHost,
    RankedHost,
    WhereDocument,
    WhyDocument,
    after_text,
    not_asked_text,
    restart_text,
    where,
)
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import Host, Vm
from ovirt_placement.model.amounts import counted
from ovirt_placement.model.names import Named, NamedGroup
from ovirt_placement_web.keeper import View
from ovirt_placement_web.needs import ILL, refusals, refuser, status_text
from ovirt_placement_web.pages import Shown, found, past_plans, viewed
from ovirt_placement_web.past import DAY
from ovirt_placement_web.site import Site
from ovirt_service.errors import UserError

#: Of more hosts, alike ones are shown together.
_MOST_COLUMNS = 8
_MOST_BEST = 5


#: Why the proxy's decisions are not shown; how to have them is in docs/web.md.
NOT_RECORDED = (
    "this page cannot read a record of the scheduler proxy: it runs on another machine, records nothing, or"
    " does not let the page read it"
)


class Cell(NamedTuple):
    """What a row says of a host: whether it refuses it, None of a rank."""

    refuses: bool | None
    sentence: str = ""
    number: str = ""


class Row(NamedTuple):
    """A rule, or a policy unit, by hosts."""

    group: NamedGroup | None
    name: str
    by: str
    cells: tuple[Cell, ...]


class HostSet(NamedTuple):
    """Hosts of which the same is said."""

    accepted: bool
    sentences: tuple[str, ...]
    hosts: tuple[Named, ...]
    here: bool


class Remedy(NamedTuple):
    """What would help, and its price."""

    price: str
    text: str
    groups: tuple[NamedGroup, ...]
    more: str
    address: str
    action: str


class VmAnswer(NamedTuple):
    """Why a VM is where it is."""

    state: str
    tone: str
    sentence: str
    because: tuple[str, ...]
    ways: tuple[Remedy, ...]
    hosts: int
    accepted: int
    #: Of few hosts: each a column, with the points of those that accept it and why the others do not.
    columns: tuple[Named, ...]
    matrix: tuple[Row, ...]
    points: Mapping[str, int]
    why: tuple[tuple[Named, tuple[str, ...]], ...]
    #: Of many.
    sets: tuple[HostSet, ...]
    best: tuple[tuple[Named, int, tuple[str, ...]], ...]


@viewed()
def vm(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "VM", view.snapshot.vms)
    questions = site.questions
    reasons, ranks = questions.why(view, one), questions.about(view, where, one)
    keys = questions.about(view, compiled.keys_of_vm, one)
    snapshot = view.snapshot
    place, moving = snapshot.host_by_id.get(one.host or ""), one.id in snapshot.pending_hosts
    return "vm.html", {
        "part": "Virtual machines",
        "crumbs": (("Virtual machines", "/vms"), (one.name, "")),
        "vm": one,
        "cluster": reasons.cluster,
        "host": reasons.host,
        "ill": ILL,
        "answer": answer(one, reasons, ranks, moving=moving, host=place),
        "moves_with": reasons.moves_with,
        "notes": [
            *(note.sentence for note in reasons.notes),
            *(not_asked_text(each, reasons.cluster.name) for each in reasons.not_asked),
        ],
        "groups": questions.of_clusters(view, groups_list, vm=one.id).groups,
        "violations": questions.of_clusters(view, violations, vm=one.id).violations,
        "keys": compiled.vm_table(keys),
        "keys_ignored": list(compiled.ignored_lines(keys)),
        "coming_to": [snapshot.host_by_id.get(each) for each in snapshot.pending_hosts.get(one.id, ())],
        "restart": []
        if reasons.restart is None
        else [
            restart_text(one.name, reasons.restart),
            *(after_text(one.name, each) for each in reasons.restart.after),
        ],
        **_decided(site, view, one),
        **past_plans(site, view, Wanted(one.id, Subject.VM), DAY),
    }


def answer(
    vm: Vm, why: WhyDocument, where: WhereDocument, *, moving: bool = False, host: Host | None = None
) -> VmAnswer:
    """The verdict on a VM in one sentence, and what it is made of."""
    ranked = {one.host.id: one for one in where.hosts}
    judged = sorted(why.hosts, key=lambda one: (one.host.name, one.host.id))
    here = next((one for one in judged if vm.host == one.host.id), None)
    state, tone, sentence = _verdict(vm, why, here, len(ranked), moving=moving, host=host)
    urgent = tone == "danger"
    because: tuple[str, ...] = ()
    if vm.status in ILL and vm.host is not None:
        because = (_restarts(vm, len(ranked), len(judged)),)
    elif urgent and here is not None and not here.accepted:
        because = tuple(_vetoes(here))[:4]
    elif urgent:
        because = tuple(refusals(judged))
    elif vm.host is None:
        because = (
            "It crashed, or its host did, and was not started again."
            if vm.crashed
            else "No crash of it is known: it was shut down, or not started yet.",
        )
    few = len(judged) <= _MOST_COLUMNS
    return VmAnswer(
        state=state,
        tone=tone,
        sentence=sentence,
        because=because,
        ways=tuple(_ways(vm, judged)) if vm.host is None and not ranked and judged else (),
        hosts=len(judged),
        accepted=len(ranked),
        columns=tuple(one.host for one in judged) if few else (),
        matrix=tuple(_matrix(judged, ranked)) if few else (),
        points={name: one.points for name, one in ranked.items()},
        why=tuple((one.host, tuple(_vetoes(one))) for one in judged if not one.accepted) if few else (),
        sets=() if few else tuple(_sets(vm, judged, refusals_first=urgent)),
        best=() if few else tuple(_best(where.hosts)),
    )


def _verdict(
    vm: Vm, why: WhyDocument, here: JudgedHost | None, accepted: int, *, moving: bool, host: Host | None
) -> tuple[str, str, str]:
    """The state in a word, how it is coloured, and the sentence."""
    hosts, name = len(why.hosts), vm.name
    others = f"{accepted} of {counted(hosts, 'host')}"
    if vm.status == "migrating" or moving:
        return "Migrating", "info", f"{name} is on its way; {others} would accept it"
    if vm.host is not None and why.host is not None:
        if vm.status in ILL:
            place = why.host.name
            text = f"{name} does not respond on {place}, which is up"
            if host is None or not host.up:
                text = f"{name} is not known to run: host {place} {status_text(host) if host else 'is gone'}"
            return vm.status.replace("_", " ").capitalize(), "danger", text
        if here is not None and not here.accepted:
            text = f"{name} runs on {why.host.name}, which would refuse it now; {_open(accepted, hosts)}"
            return "Misplaced", "danger", text
        rest = f"; so would {accepted - 1} of {counted(hosts - 1, 'other host')}" if hosts > 1 else ""
        return "Running", "success", f"{name} runs on {why.host.name}, which accepts it{rest}"
    if not hosts:
        return "Down", "danger", f"{name} cannot start: its cluster has no host"
    if not accepted:
        return "Cannot start", "danger", f"None of {counted(hosts, 'host')} accepts {name}"
    return "Down", "info", f"{name} is down, and can start on {others}"


def _restarts(vm: Vm, accepted: int, hosts: int) -> str:
    """What becomes of a VM that is not known to run."""
    could = f"{accepted} of {counted(hosts, 'host')} would accept it"
    if vm.ha:
        return (
            "It is highly available: the engine restarts it once it knows that it does not run, as when its"
            f" host is fenced or confirmed to have been rebooted; {could}."
        )
    return f"It is not highly available: it can be started once the engine reports it down; {could}."


def _open(accepted: int, hosts: int) -> str:
    if not accepted:
        return "so would every other host" if hosts > 1 else "there is no other host"
    return f"{counted(accepted, 'other host')} would accept it"


def _vetoes(one: JudgedHost) -> Iterator[str]:
    for reason in one.reasons:
        if reason.veto:
            yield reason.sentence


def _ways(vm: Vm, judged: Sequence[JudgedHost]) -> Iterator[Remedy]:
    yield Remedy(
        "migrations",
        "Move other VMs away",
        (),
        "The fewest migrations after which a host accepts it are looked for, and shown first.",
        f"/vm/{vm.id}/room",
        "Make room",
    )
    groups: dict[str, NamedGroup] = {}
    for one in judged:
        for reason in one.reasons:
            if reason.veto and reason.group and not (reason.group.is_label or reason.group.is_rule):
                groups[reason.group.id] = reason.group
    if groups:
        first = next(iter(groups))
        yield Remedy(
            "no migration",
            "Make soft, or take it out of: ",
            tuple(groups.values())[:4],
            "Changes what the rules ask: the preview shows what would come of it.",
            f"/group/{first}/edit",
            "Edit…",
        )


def _matrix(judged: Sequence[JudgedHost], ranked: Mapping[str, RankedHost]) -> Iterator[Row]:
    """A row for all that refuses a host, and one for each rank that is not the same everywhere."""
    reasons: dict[tuple[str, str], Said] = {}
    for one in judged:
        for reason in one.reasons:
            if reason.veto:
                reasons.setdefault(refuser(reason), reason)
    for key, reason in reasons.items():
        cells = []
        for one in judged:
            own = next((each for each in one.reasons if each.veto and refuser(each) == key), None)
            number = "" if own is None or own.number is None else f"{own.number:g}"
            cells.append(Cell(own is not None, own.sentence if own else "", number))
        units = ", ".join(f"{'engine: ' if unit.internal else ''}{unit.name}" for unit in reason.by)
        group = reason.group if reason.group and not (reason.group.is_label or reason.group.is_rule) else None
        yield Row(group, refuser(reason)[1], units if reason.group else "policy unit", tuple(cells))
    units_ranked = {weight.unit for one in ranked.values() for weight in one.weights if weight.rank}
    for unit in sorted(units_ranked):
        ranks = {
            name: weight.rank for name, one in ranked.items() for weight in one.weights if weight.unit == unit
        }
        cells = [Cell(None, "", str(ranks.get(one.host.id, "-"))) for one in judged]
        yield Row(None, unit, "rank: 0 is best", tuple(cells))


def _sets(vm: Vm, judged: Sequence[JudgedHost], *, refusals_first: bool) -> Iterator[HostSet]:
    """Hosts by what refuses them; that of the VM by itself if it would be refused."""
    sets: dict[tuple[bool, tuple[tuple[str, str], ...]], list[JudgedHost]] = {}
    for one in judged:
        alone = one.host.id == vm.host and not one.accepted
        keys = tuple(sorted({refuser(each) for each in one.reasons if each.veto}))
        sets.setdefault((alone, keys), []).append(one)
    ordered = sorted(
        sets.items(), key=lambda item: (not item[0][0], item[1][0].accepted == refusals_first, -len(item[1]))
    )
    for (alone, _), hosts in ordered:
        first = hosts[0]
        yield HostSet(
            first.accepted,
            tuple(_vetoes(first)),
            tuple(one.host for one in hosts),
            alone or any(one.host.id == vm.host for one in hosts),
        )


def _best(ranked: Iterable[RankedHost]) -> Iterator[tuple[Named, int, tuple[str, ...]]]:
    for one in tuple(ranked)[:_MOST_BEST]:
        yield (
            one.host,
            one.points,
            tuple(f"{each.unit} rank {each.rank}" for each in one.weights if each.rank),
        )


def _decided(site: Site, view: View, one: Vm) -> dict[str, Any]:
    """What the proxy answered last about a VM, or why that is not known."""
    try:
        found = site.questions.last_decisions(view, one).decisions
    except NoRecord:
        return {"decisions": (), "decisions_error": NOT_RECORDED}
    except UserError as error:
        return {"decisions": (), "decisions_error": str(error)}
    return {"decisions": found, "decisions_error": ""}
