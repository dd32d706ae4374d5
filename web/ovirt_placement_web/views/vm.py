"""The view of a VM: why it is where it is in one sentence, what would help, and what decides host by host."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ovirt_enforcer.history import Subject, Wanted, about
from ovirt_placement.answers.decisions import cut_text
from ovirt_placement.answers.decisions.at_time import (
    DecisionsAtDocument,
    distance,
    earlier_text,
    not_asked_lines,
    read_moment,
)
from ovirt_placement.answers.document import Said
from ovirt_placement.answers.groups import groups_list
from ovirt_placement.answers.keys import compiled
from ovirt_placement.answers.placement import (
    JudgedHost,
    RankedHost,
    WhyDocument,
    after_text,
    not_asked_text,
    restart_text,
    where,
)
from ovirt_placement.answers.proxy import NoRecord
from ovirt_placement.answers.violations import violations
from ovirt_placement.model import Cluster, Host, Vm
from ovirt_placement.model.names import NamedGroup, counted
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.site import number
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import DAY
from ovirt_placement_web.views.endpoints import MOST_ROWS, Asked, Shown, list_frame, planned_if, viewed
from ovirt_placement_web.views.needs import ILL, refusals, refuser, status_text
from ovirt_service.errors import UserError

#: Of more hosts, alike ones are shown together.
_MOST_COLUMNS = 8
_MOST_BEST = 5


class Row(NamedTuple):
    """A rule, or a policy unit, and for each host what it says: why it refuses it, or a number."""

    group: NamedGroup | None
    name: str
    by: str
    reasons: tuple[Said | None, ...]
    #: Of a unit that ranks: nothing refuses a host.
    ranks: tuple[str, ...] = ()


class HostSet(NamedTuple):
    """Hosts of which the same is said."""

    hosts: tuple[JudgedHost, ...]
    sentences: tuple[str, ...]
    here: bool


@viewed()
def vm(asked: Asked) -> Shown:
    one = asked.named("VM", asked.snapshot.vms)
    questions, snapshot = asked.questions, asked.snapshot
    why, ranked = questions.why(one), questions.about(where, one).hosts
    keys = questions.about(compiled.keys_of_vm, one)
    judged = sorted(why.hosts, key=lambda each: (each.host.name, each.host.id))
    here = next((each for each in judged if one.host == each.host.id), None)
    coming_to = snapshot.pending_hosts.get(one.id, ())
    state, tone, sentence = _verdict(one, why, here, len(ranked), snapshot.host_by_id, moving=bool(coming_to))
    few, points = len(judged) <= _MOST_COLUMNS, {each.host.id: each for each in ranked}
    return "vm.html", {
        "crumbs": (("Virtual machines", "/vms"), (one.name, "")),
        "vm": one,
        "cluster": why.cluster,
        "host": why.host,
        "ill": ILL,
        "state": state,
        "tone": tone,
        "sentence": sentence,
        "because": list(_because(one, judged, here, len(ranked), urgent=tone == "danger")),
        "cannot_start": one.host is None and not ranked,
        # Those that could be changed to let it start.
        "refusing": list(_refusing(judged))[:4],
        "judged": judged,
        "ranked": points,
        "few": few,
        "matrix": list(_matrix(judged, points)) if few else (),
        "sets": () if few else list(_sets(one, judged, refusals_first=tone == "danger")),
        "best": () if few else ranked[:_MOST_BEST],
        "vetoes": vetoes,
        "moves_with": why.moves_with,
        "notes": [
            *(note.sentence for note in why.notes),
            *(not_asked_text(each, why.cluster.name) for each in why.not_asked),
        ],
        "groups": questions.of_clusters(groups_list, vm=one.id).groups,
        "violations": questions.of_clusters(violations, vm=one.id).violations,
        "keys": compiled.vm_table(keys),
        "keys_ignored": list(compiled.ignored_lines(keys)),
        "coming_to": [snapshot.host_by_id.get(each) for each in coming_to],
        "restart": []
        if why.restart is None
        else [
            restart_text(one.name, why.restart),
            *(after_text(one.name, each) for each in why.restart.after),
        ],
        **last_decisions(asked, one),
        **past_plans(asked, Wanted(one.id, Subject.VM), DAY),
    }


def _verdict(
    vm: Vm,
    why: WhyDocument,
    here: JudgedHost | None,
    accepted: int,
    known: Mapping[str, Host],
    *,
    moving: bool,
) -> tuple[str, str, str]:
    """The state in a word, how it is coloured, and the sentence."""
    hosts, name = len(why.hosts), vm.name
    others = f"{accepted} of {counted(hosts, 'host')}"
    if vm.status == "migrating" or moving:
        return "Migrating", "info", f"{name} is on its way; {others} would accept it"
    if vm.host is not None and why.host is not None:
        place = why.host.name
        if vm.status in ILL:
            host = known.get(vm.host)
            text = f"{name} does not respond on {place}, which is up"
            if host is None or not host.up:
                text = f"{name} is not known to run: host {place} {status_text(host) if host else 'is gone'}"
            return vm.status.replace("_", " ").capitalize(), "danger", text
        if here is not None and not here.accepted:
            elsewhere = f"{counted(accepted, 'other host')} would accept it"
            if not accepted:
                elsewhere = "so would every other host" if hosts > 1 else "there is no other host"
            return "Misplaced", "danger", f"{name} runs on {place}, which would refuse it now; {elsewhere}"
        rest = f"; so would {accepted - 1} of {counted(hosts - 1, 'other host')}" if hosts > 1 else ""
        return "Running", "success", f"{name} runs on {place}, which accepts it{rest}"
    if not hosts:
        return "Down", "danger", f"{name} cannot start: its cluster has no host"
    if not accepted:
        return "Cannot start", "danger", f"None of {counted(hosts, 'host')} accepts {name}"
    return "Down", "info", f"{name} is down, and can start on {others}"


def _because(
    vm: Vm, judged: Sequence[JudgedHost], here: JudgedHost | None, accepted: int, *, urgent: bool
) -> Iterator[str]:
    """What the sentence is made of."""
    if vm.status in ILL and vm.host is not None:
        could = f"{accepted} of {counted(len(judged), 'host')} would accept it"
        yield (
            "It is highly available: the engine restarts it once it knows that it does not run, as when its"
            f" host is fenced or confirmed to have been rebooted; {could}."
            if vm.ha
            else f"It is not highly available: it can be started once the engine reports it down; {could}."
        )
    elif urgent and here is not None and not here.accepted:
        yield from vetoes(here)[:4]
    elif urgent:
        yield from refusals(judged)
    elif vm.host is None and vm.crashed:
        yield "It crashed, or its host did, and was not started again."
    elif vm.host is None:
        yield "No crash of it is known: it was shut down, or not started yet."


def vetoes(one: JudgedHost) -> tuple[str, ...]:
    """Why a host refuses a VM."""
    return tuple(reason.sentence for reason in one.reasons if reason.veto)


def _own_group(reason: Said) -> NamedGroup | None:
    """The affinity group that gives a reason."""
    group = reason.group
    return None if group is None or group.is_label or group.is_rule else group


def _refusing(judged: Iterable[JudgedHost]) -> Iterable[NamedGroup]:
    """The affinity groups for which hosts refuse a VM."""
    reasons = (reason for one in judged for reason in one.reasons if reason.veto)
    return {group.id: group for reason in reasons if (group := _own_group(reason))}.values()


def _matrix(judged: Sequence[JudgedHost], ranked: Mapping[str, RankedHost]) -> Iterator[Row]:
    """A row for all that refuses a host, and one for each rank that is not the same everywhere."""
    of_hosts: list[dict[tuple[str, str], Said]] = []
    first: dict[tuple[str, str], Said] = {}
    for one in judged:
        of_hosts.append({})
        for reason in one.reasons:
            if reason.veto:
                of_hosts[-1].setdefault(refuser(reason), reason)
                first.setdefault(refuser(reason), reason)
    for key, reason in first.items():
        units = ", ".join(f"{'engine: ' if unit.internal else ''}{unit.name}" for unit in reason.by)
        by = units if reason.group else "policy unit"
        yield Row(_own_group(reason), key[1], by, tuple(reasons.get(key) for reasons in of_hosts))
    weights = [(name, weight) for name, one in ranked.items() for weight in one.weights]
    for unit in sorted({weight.unit for _, weight in weights if weight.rank}):
        ranks = {name: str(weight.rank) for name, weight in weights if weight.unit == unit}
        numbers = tuple(ranks.get(one.host.id, "-") for one in judged)
        yield Row(None, unit, "rank: 0 is best", (), numbers)


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
    for _, hosts in ordered:
        yield HostSet(tuple(hosts), vetoes(hosts[0]), any(one.host.id == vm.host for one in hosts))


#: Why the proxy's decisions are not shown; how to have them is in docs/web.md.
NOT_RECORDED = (
    "this page cannot read a record of the scheduler proxy: it runs on another machine, records nothing, or"
    " does not let the page read it"
)
_LONGEST = 64
#: Later moments cannot be written in every zone.
_YEAR_9999 = 253_370_764_800.0


@viewed("q", "days")
def history(asked: Asked) -> Shown:
    """What was decided, in all clusters or in one."""
    frame, days = list_frame(asked, "History"), number(asked.request, "days", 30)
    name = asked.word("q", "").strip()
    plans = past_plans(asked, Wanted(name), days * DAY, frame["cluster"])
    return "history.html", {**frame, "name": name, "days": days, **plans}


def past_plans(
    asked: Asked, wanted: Wanted, seconds: float, cluster: Cluster | None = None
) -> dict[str, Any]:
    """What was decided about something lately, or why that is not known."""
    try:
        recorded = asked.site.past.history(seconds)
        waiting = {one.id: asked.site.past.waiting(one) for one in asked.snapshot.clusters}
    except UserError as error:
        return {"plans": (), "past_error": str(error)}
    latest = {one.cluster: one.id for one in reversed(recorded)}
    plans = [
        Life(one, waiting.get(one.cluster), latest=latest[one.cluster] == one.id, wanted=wanted)
        for one in recorded
        if (cluster is None or one.cluster == cluster.id) and (not wanted.name or about(one, wanted))
    ]
    return {"plans": plans[:MOST_ROWS], "past_error": ""}


def last_decisions(asked: Asked, one: Vm) -> dict[str, Any]:
    """What the proxy answered last about a VM, or why that is not known."""
    try:
        return {"decisions": asked.questions.last_decisions(one).decisions, "decisions_error": ""}
    except UserError as error:
        return {"decisions": (), "decisions_error": _why_unknown(error)}


def _why_unknown(error: UserError) -> str:
    return NOT_RECORDED if isinstance(error, NoRecord) else str(error)


@viewed("at", kind=planned_if("at"))
def then(asked: Asked) -> Shown:
    """The decisions about a VM next to a moment; without one, the form that asks for it."""
    one = asked.named("VM", asked.snapshot.vms)
    text = asked.word("at", "").strip()
    frame = {
        "crumbs": (("Virtual machines", "/vms"), (one.name, f"/vm/{one.id}"), ("At another time", "")),
        "vm": one,
        "at": text,
    }
    if not text:
        return "then.html", {**frame, "moment": None}
    try:
        moment = read_moment(text[:_LONGEST], time.time())
    except (ValueError, OverflowError, OSError) as error:
        raise Refusal(400, f"{error}.") from None
    if not 0 <= moment < _YEAR_9999:
        raise Refusal(400, "Nothing is known of that year.")
    shown = {"moment": moment, **_decided(asked, one, moment), **_planned(asked, one, moment)}
    return "then.html", {**frame, **shown}


def _decided(asked: Asked, one: Vm, moment: float) -> dict[str, Any]:
    """What the proxy answered next to that moment, and what the engine's events say of it."""
    try:
        answer = asked.questions.decisions_at(one, moment)
    except UserError as error:
        return {"attempts": (), "said": (), "asides": (), "decisions_error": _why_unknown(error)}
    asides = [
        *([] if answer.earlier is None else [earlier_text(answer.earlier)]),
        *([f"The engine's events are not known: {answer.events_error}"] if answer.events_error else []),
        *([] if answer.events_since is None else [cut_text(answer.events_since)]),
    ]
    attempts = list(_attempts(answer))
    return {"attempts": attempts, "said": answer.events, "asides": asides, "decisions_error": ""}


def _attempts(answer: DecisionsAtDocument) -> Iterator[dict[str, Any]]:
    for title, one in (("The last decision until then", answer.before), ("The next one", answer.after)):
        if one is not None:
            ways = (f"It could have started {way.sentence}" for way in one.ways)
            yield {
                "title": f"{title}, {distance(one.after_seconds)}",
                "answers": [one.filters] if one.weights is None else [one.filters, one.weights],
                "notes": [*not_asked_lines(one.not_asked, whole=True), *ways],
            }


def _planned(asked: Asked, one: Vm, moment: float) -> dict[str, Any]:
    """The enforcer's plans about a VM: the last one until a moment, and the next of the day after."""
    wanted = Wanted(one.id, Subject.VM)
    try:
        recorded = asked.site.past.history(max(0.0, time.time() - moment) + 7 * DAY)
    except UserError as error:
        return {"plans_then": (), "past_error": str(error)}
    concerned = sorted((plan for plan in recorded if about(plan, wanted)), key=lambda plan: plan.created)
    until = [plan for plan in concerned if plan.created <= moment][-1:]
    later = [plan for plan in concerned if 0 < plan.created - moment <= DAY][:1]
    titled = [("The last plan until then", plan) for plan in until]
    titled += [("The next plan", plan) for plan in later]
    plans = [(title, Life(plan, wanted=wanted)) for title, plan in titled]
    return {"plans_then": plans, "past_error": ""}
