"""The view of a VM: why it is where it is in one sentence, what would help, and what decides host by host."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from ovirt_enforcer.history import Subject, Wanted, about
from ovirt_placement.answers.decisions.at_time import read_moment
from ovirt_placement.answers.document import Said
from ovirt_placement.answers.placement import JudgedHost, WhyDocument
from ovirt_placement.answers.proxy import NoRecord
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement_web.bounds import Refusal, sentence
from ovirt_placement_web.site import number
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import DAY
from ovirt_placement_web.views.endpoints import Asked, Shown, viewed
from ovirt_placement_web.views.needs import is_ill, refusals, refuser
from ovirt_service.errors import UserError

#: Of more hosts, alike ones are shown together.
_MOST_COLUMNS = 8

_Item = TypeVar("_Item")


@viewed("/vm/{name}")
def vm(asked: Asked) -> Shown:
    vm = asked.named("VM", asked.snapshot.vms)
    questions = asked.questions
    why, ranked = questions.why(vm), questions.ask("where", vm=vm.id).hosts
    judged = sorted(why.hosts, key=lambda each: (each.host.name, each.host.id))
    state = _state(vm, why, asked.snapshot, accepted=len(ranked))
    few = len(judged) <= _MOST_COLUMNS
    return "vm.html", {
        "vm": vm,
        "why": why,
        "state": state,
        "refusals": list(refusals(judged)) if state in ("alone", "unplaced") else (),
        "judged": judged,
        "ranked": {each.host.id: each for each in ranked},
        "few": few,
        "matrix": list(_matrix(judged)) if few else (),
        "sets": () if few else _sets(vm, judged, refusals_first=state not in ("moving", "running", "down")),
        "decisions": known(lambda: questions.last_decisions(vm).decisions),
        "past": known(lambda: past_plans(asked, Wanted(vm.id, Subject.VM), DAY)),
    }


def _state(vm: Vm, why: WhyDocument, snapshot: Snapshot, *, accepted: int) -> str:
    if vm.status == "migrating" or vm.id in snapshot.pending_hosts:
        return "moving"
    if vm.host is None or why.host is None:
        return "down" if accepted else "unplaced" if why.hosts else "alone"
    if is_ill(snapshot, vm):
        return "ill"
    return "misplaced" if any(one.host.id == vm.host and not one.accepted for one in why.hosts) else "running"


def _matrix(judged: Sequence[JudgedHost]) -> Iterator[tuple[str, list[Said | None]]]:
    """All that refuses a host, by its title, and what it says of each."""
    of_hosts = [{refuser(each): each for each in reversed(one.reasons) if each.veto} for one in judged]
    for key in dict.fromkeys(refuser(each) for one in judged for each in one.reasons if each.veto):
        yield key[1], [reasons.get(key) for reasons in of_hosts]


def _sets(vm: Vm, judged: Sequence[JudgedHost], *, refusals_first: bool) -> list[list[JudgedHost]]:
    """Hosts by what refuses them; that of the VM by itself if it would be refused."""
    sets: dict[tuple[bool, tuple[tuple[str, str], ...]], list[JudgedHost]] = defaultdict(list)
    for one in judged:
        keys = tuple(sorted({refuser(each) for each in one.reasons if each.veto}))
        sets[one.host.id == vm.host and not one.accepted, keys].append(one)
    order = sorted(
        sets, key=lambda key: (not key[0], sets[key][0].accepted == refusals_first, -len(sets[key]))
    )
    return [sets[key] for key in order]


#: Why the proxy's decisions are not shown; how to have them is in docs/web.md.
NOT_RECORDED = (
    "this page cannot read a record of the scheduler proxy: it runs on another machine, records nothing, or"
    " does not let the page read it"
)
_LONGEST = 64
_MOST_PLANS = 200
#: Later moments cannot be written in every zone.
_YEAR_9999 = 253_370_764_800.0


def known(ask: Callable[[], _Item]) -> tuple[_Item | None, str]:
    """What the store says, or the proxy's record; or None, and why that is not known."""
    try:
        return ask(), ""
    except NoRecord:
        return None, NOT_RECORDED
    except UserError as error:
        return None, str(error)


@viewed("/history", "/cluster/{name}/history", query=("q", "days"))
def history(asked: Asked) -> Shown:
    cluster, days = asked.cluster_if_any, number(asked.request, "days", 30)
    name = asked.word("q").strip()
    past = known(lambda: past_plans(asked, Wanted(name), days * DAY, cluster))
    return "history.html", {"cluster": cluster, "name": name, "days": days, "past": past}


def past_plans(asked: Asked, wanted: Wanted, seconds: float, cluster: Cluster | None = None) -> list[Life]:
    recorded = asked.site.past.history(seconds)
    wanted = wanted.known_by(recorded)
    waiting = asked.site.past.waiting()
    latest = {one.cluster: one.id for one in reversed(recorded)}
    plans = [
        Life(plan, waiting.get(plan.cluster), latest=latest[plan.cluster] == plan.id, wanted=wanted)
        for plan in recorded
        if (cluster is None or plan.cluster == cluster.id) and (not wanted.name or about(plan, wanted))
    ]
    return plans[:_MOST_PLANS]


@viewed("/vm/{name}/then", query=("at",), bound="plans", where="at")
def then(asked: Asked) -> Shown:
    vm = asked.named("VM", asked.snapshot.vms)
    text = asked.word("at").strip()
    if not text:
        return "then.html", {"vm": vm, "at": text, "moment": None}
    try:
        moment = read_moment(text[:_LONGEST], time.time())
    except (ValueError, OverflowError, OSError) as error:
        raise Refusal(400, sentence(error)) from None
    if not 0 <= moment < _YEAR_9999:
        raise Refusal(400, "Nothing is known of that year.")
    found = known(lambda: asked.questions.decisions_at(vm, moment))
    past = known(lambda: _plans_next_to(asked, vm, moment))
    return "then.html", {"vm": vm, "at": text, "moment": moment, "found": found, "past": past}


def _plans_next_to(asked: Asked, vm: Vm, moment: float) -> list[tuple[str, Life]]:
    """The enforcer's plans about a VM: the last one until a moment, and the next of the day after."""
    wanted = Wanted(vm.id, Subject.VM)
    recorded = asked.site.past.history(max(0.0, time.time() - moment) + 7 * DAY)
    concerned = sorted((plan for plan in recorded if about(plan, wanted)), key=lambda plan: plan.created)
    until = [("The last plan until then", plan) for plan in concerned if plan.created <= moment][-1:]
    later = [("The next plan", plan) for plan in concerned if 0 < plan.created - moment <= DAY][:1]
    return [(title, Life(plan, wanted=wanted)) for title, plan in until + later]
