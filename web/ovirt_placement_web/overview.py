"""The first view of a cluster: what needs somebody, with the address that helps, and where VMs run."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, sqrt
from typing import Any, NamedTuple

from starlette.requests import Request

from ovirt_placement.answers.document import duration_text, none_text
from ovirt_placement.answers.status.clusters import ClusterStatus
from ovirt_placement.answers.status.enforcement import EnforcementRecord
from ovirt_placement.model import Cluster, Host
from ovirt_placement.model.amounts import be, counted
from ovirt_placement_web.cluster_map import MapDocument, MapVm
from ovirt_placement_web.keeper import View
from ovirt_placement_web.pages import Shown, cluster_frame, condition, found, viewed
from ovirt_placement_web.plan_drawing import used_percent
from ovirt_placement_web.plan_life import Life, life
from ovirt_placement_web.site import Site
from ovirt_service.errors import UserError

#: Of larger clusters a square is drawn for each host instead of each VM.
_MOST_CARDS, _MOST_SQUARES = 48, 1200
_STEP = 21
_RESTS = ("maintenance", "preparing_for_maintenance", "installing", "reboot", "down")


class Need(NamedTuple):
    """Something that needs somebody, and the address that helps."""

    tone: str
    title: str
    text: str
    address: str = ""
    action: str = ""


class VmSquare(NamedTuple):
    mark: str
    title: str


class HostCard(NamedTuple):
    """A host as the overview draws it; shares in percent."""

    id: str
    name: str
    status: str
    up: bool
    wrong: bool
    memory: int
    cpu: int | None
    vms: tuple[VmSquare, ...]


class HostSquare(NamedTuple):
    mark: str
    title: str
    x: int
    y: int


class Heat(NamedTuple):
    width: int
    height: int
    cells: tuple[HostSquare, ...]


class Picture(NamedTuple):
    """Where VMs run: cards of a small cluster, squares of a large one."""

    cells: tuple[HostCard, ...] = ()
    heat: Heat | None = None


class Move(NamedTuple):
    """The step of the present plan that moves a VM."""

    number: int
    to: Any


@viewed()
def clusters(site: Site, request: Request, view: View) -> Shown:
    answer = site.questions.status(view)
    others = [place for place in site.places if place.root != site.root]
    needs = []
    for one in answer.clusters:
        place = f"/cluster/{one.cluster.id}"
        found = tuple(_needs(site, view, view.snapshot.cluster_by_id[one.cluster.id], one, answer.enforcer))
        if urgent := [need for need in found if need.tone != "info"]:
            first = urgent[0]
            more = f" {counted(len(urgent) - 1, 'further matter')} there." if len(urgent) > 1 else ""
            needs.append(
                first._replace(
                    title=f"{one.cluster.name}: {first.title[:1].lower()}{first.title[1:]}",
                    text=first.text + more,
                    address=first.address or place,
                    action=first.action or "Open the cluster",
                )
            )
    return "clusters.html", {
        "part": "Clusters",
        "answer": answer,
        "needs": needs,
        "states": {one.cluster.id: condition(one) for one in answer.clusters},
        "others": others,
    }


@viewed()
def cluster(site: Site, request: Request, view: View) -> Shown:
    one = found(request, "cluster", view.snapshot.clusters)
    status = site.questions.status(view)
    numbers = next(each for each in status.clusters if each.cluster.id == one.id)
    violations = site.questions.violations(view, one).violations
    drawn = site.questions.map(view, one)
    plan = present_plan(site, one, status.enforcer)
    hosts = view.snapshot.hosts_of_cluster.get(one.id, ())
    down = [host for host in hosts if not host.up]
    failed = [host for host in down if host.status not in _RESTS]
    rules = len(site.questions.groups(view, one).groups) + len(view.snapshot.placement_rules)
    return "cluster.html", {
        **cluster_frame(site, view, one, "Overview"),
        "condition": condition(numbers),
        "needs": list(_needs(site, view, one, numbers, status.enforcer)),
        "numbers": numbers,
        "rules": rules,
        "enforcer": status.enforcer,
        "paused": site.past.paused(one),
        "violations": violations,
        "conflicts": site.questions.conflicts(view, one).clusters,
        "plan": plan,
        "repairs": repairs(plan),
        "drawn": _picture(drawn, {group.id for found in violations for group in found.groups}),
        "failed_hosts": failed,
        "away": _away(down),
    }


def present_plan(site: Site, cluster: Cluster, enforcer: EnforcementRecord | None) -> Life | None:
    """The plan of a cluster that waits or runs; None where there is none, or the store does not answer."""
    if enforcer is not None and not enforcer.migrations_under_way and not enforcer.waiting:
        return None  # the store has said so a moment ago
    try:
        waiting = site.past.waiting(cluster)
        record = site.past.plan_named(waiting.plan) if waiting else site.past.under_way(cluster)
        words = site.past.words_on(record.id) if record else ()
    except UserError:
        return None
    return None if record is None else life(record, waiting, words, enforcer, latest=True)


def repairs(plan: Life | None) -> dict[str, Move]:
    """By VM the step of a plan that moves it, where one does."""
    if plan is None:
        return {}
    return {vm["id"]: Move(number, step["to"]) for number, step, _ in plan.steps for vm in step["vms"]}


def _needs(
    site: Site, view: View, cluster: Cluster, numbers: ClusterStatus, enforcer: EnforcementRecord | None
) -> Iterator[Need]:
    """What needs somebody in a cluster, the most urgent first."""
    here = cluster.id
    yield from _lost(numbers, here)
    for host in view.snapshot.hosts_of_cluster.get(here, ()):
        if not host.up and host.status not in _RESTS:
            vms = len(view.snapshot.vms_of_host.get(host.id, ()))
            yield Need(
                "danger",
                f"Host {host.name} is {host.status.replace('_', ' ')}",
                f"{counted(vms, 'VM')} {be(vms)} on it.",
                f"/host/{host.id}",
                "Open the host",
            )
    plan = present_plan(site, cluster, enforcer)
    yield from _of_plan(plan, here)
    if numbers.ha_reservation and numbers.ha_safe is False and not numbers.lost:
        yield Need(
            "danger",
            f"Not every failure of {counted(cluster.ha_failures, 'host')} is survived",
            "Some highly available VMs would not restart.",
            f"/ha/{here}",
            "See which",
        )
    if numbers.disabled_units:
        text = f"VMs are placed without {', '.join(numbers.disabled_units)}."
        yield Need("danger", "The engine has disabled policy units", text, "/health", "Examine")
    if numbers.hard_violations and plan is None and not numbers.doubt:
        what = "rule is violated" if numbers.hard_violations == 1 else "rules are violated"
        yield Need(
            "danger",
            f"{numbers.hard_violations} hard {what}",
            "No plan waits." + _mode(enforcer),
            f"/plan/{here}/now",
            "Plan the repair",
        )
    if enforcer is not None and enforcer.paused and (paused := site.past.paused(cluster)):
        yield Need("warning", "Migrations are paused", paused, f"/cluster/{here}#enforcer", "Resume below")
    yield from _of_enforcer(enforcer, here)
    if numbers.doubt:
        yield Need("warning", "No verdict, and nothing is planned", f"{numbers.doubt}.")
    if numbers.upgrade:
        yield Need("info", "The engine upgrades this cluster", f"{numbers.upgrade}: nothing is migrated.")
    if numbers.draining:
        names = ", ".join(host.name for host in numbers.draining[:5])
        yield Need("info", "Hosts are being drained", f"{names}.", f"/maintenance/{here}", "Maintenance")


def _lost(numbers: ClusterStatus, here: str) -> Iterator[Need]:
    for lost in numbers.lost[:3]:
        fate = {
            True: f"It could start on {lost.home.name if lost.home else 'another host'}.",
            False: "No host takes it.",
            None: "It is not known whether a host takes it.",
        }[lost.could_start]
        where = f" on {lost.host.name}, which is {lost.host_status}" if lost.host else ""
        runs = "does not run" if lost.status == "down" else "is not known to run"
        title = f"Highly available VM {lost.vm.name} {runs}: {lost.status.replace('_', ' ')}{where}"
        yield Need("danger", title, fate, f"/vm/{lost.vm.id}", "Why")
    if len(numbers.lost) > 3:
        more = counted(len(numbers.lost) - 3, "more highly available VM")
        yield Need("danger", f"{more} down", "", f"/ha/{here}", "See which")


def _of_plan(plan: Life | None, here: str) -> Iterator[Need]:
    if plan is None or not plan.steps:
        return
    document = plan.record.document
    count = counted(int(document.get("migrations", len(plan.steps))), "migration")
    time = f"about {duration_text(float(document.get('seconds', 0)))}"
    if plan.waits:
        repaired = len({group["id"] for _, step, _ in plan.steps for group in step.get("repairs", ())})
        fewest = none_text(bool(document.get("proven")), "fewer will do", "")
        left = len(plan.left)
        does = "It repairs" if count.startswith("1 ") else "They repair"
        text = f"{does} {counted(repaired, 'violated rule')} in {time}{fewest and f'; {fewest}'}."
        text += f" {counted(left, 'rule')} {be(left)} not repaired by it." if left else ""
        wait = "waits" if count.startswith("1 ") else "wait"
        yield Need("warning", f"{count} {wait} for approval", text, f"/plan/{here}", "Review and approve")
    elif plan.runs:
        yield Need("info", plan.text, f"{count}, {time}.", f"/plan/{here}", "Follow")


def _of_enforcer(enforcer: EnforcementRecord | None, here: str) -> Iterator[Need]:
    if enforcer is None:
        return
    if enforcer.error is not None:
        yield Need("warning", "Nothing is known of the enforcer", f"{enforcer.error}.", "/health", "Examine")
    elif enforcer.acts and not enforcer.leader:
        yield Need("warning", "No enforcer runs", "Nothing is repaired meanwhile.", "/health", "Examine")
    for one in enforcer.breakers:
        if one.cluster.id == here:
            yield Need(
                "warning", "Nothing is migrated for a while", f"{one.reason}.", f"/plan/{here}", "Plan"
            )


def _mode(enforcer: EnforcementRecord | None) -> str:
    if enforcer is not None and not enforcer.acts:
        return " The enforcer is in mode observe and migrates nothing by itself."
    return ""


def _away(down: list[Host]) -> str:
    """How the hosts that are not up are, in a few words."""
    states = sorted({host.status for host in down})
    return ", ".join(
        f"{sum(host.status == state for host in down)} {state.replace('_', ' ')}" for state in states[:2]
    )


def _picture(drawn: MapDocument, violated: set[str]) -> Picture:
    groups = {at for at, group in enumerate(drawn.groups) if group.id in violated}
    vms: list[list[MapVm]] = [[] for _ in drawn.hosts]
    for vm in drawn.vms:
        if vm.host is not None:
            vms[vm.host].append(vm)
    if len(drawn.hosts) <= _MOST_CARDS and len(drawn.vms) <= _MOST_SQUARES:
        return Picture(cells=tuple(_card(drawn, at, own, groups) for at, own in enumerate(vms)))
    across = max(1, ceil(sqrt(len(vms) * 2.2)))
    cells = []
    for at, own in enumerate(vms):
        host, wrong = drawn.hosts[at], [vm for vm in own if vm.wrong]
        mark = "down" if host.status != "up" else "plain"
        if wrong:
            mark = "hard" if any(vm.wrong == "hard" for vm in wrong) else "soft"
        title = f"{host.name}, {host.status.replace('_', ' ')}: {counted(len(own), 'VM')}"
        title += f", {used_percent(host)} % of memory" if mark != "down" else ""
        title += f"; misplaced: {', '.join(vm.name for vm in wrong[:5])}" if wrong else ""
        cells.append(HostSquare(mark, title, at % across * _STEP, at // across * _STEP))
    rows = ceil(len(vms) / across)
    return Picture(heat=Heat(across * _STEP, rows * _STEP, tuple(cells)))


def _card(drawn: MapDocument, at: int, own: list[MapVm], violated: set[int]) -> HostCard:
    host = drawn.hosts[at]
    return HostCard(
        id=host.id,
        name=host.name,
        status=host.status.replace("_", " "),
        up=host.status == "up",
        wrong=any(vm.wrong for vm in own),
        memory=used_percent(host),
        cpu=None if host.cpu_percent is None else round(host.cpu_percent),
        vms=tuple(VmSquare(_mark(vm, violated), _title(vm, drawn)) for vm in own),
    )


def _mark(vm: MapVm, violated: set[int]) -> str:
    if vm.wrong:
        return vm.wrong
    if vm.to is not None:
        return "moving"
    return "peer" if violated.intersection(vm.groups) else "plain"


def _title(vm: MapVm, drawn: MapDocument) -> str:
    groups = ", ".join(drawn.groups[group].name for group in vm.groups)
    wrong = f", violates a {vm.wrong} rule" if vm.wrong else ""
    to = f", migrating to {drawn.hosts[vm.to].name}" if vm.to is not None else ""
    return f"{vm.name}{f' ({groups})' if groups else ''}{wrong}{to}"
