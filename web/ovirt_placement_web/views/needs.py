"""What needs an administrator in a cluster; `templates/needs.html` says it, and what happens next."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from ovirt_placement.answers.document import Said, listed
from ovirt_placement.answers.placement import JudgedHost
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.answers.status.clusters import ClusterStatus, vm_runs
from ovirt_placement.answers.status.ha_check import LostSet
from ovirt_placement.model import Cluster, Snapshot, Vm
from ovirt_placement.model.names import Named
from ovirt_placement.model.snapshot import grouped
from ovirt_placement.store.enforcer.maintenance import MaintenanceRun, MaintenanceStore
from ovirt_placement.store.orders import Pause
from ovirt_placement.store.user_actions import UserAction, UserActionKind
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import DAY, runs
from ovirt_placement_web.views.endpoints import Asked
from ovirt_service.errors import UserError

RESTS = ("maintenance", "preparing_for_maintenance", "installing", "reboot", "down")
#: What the engine calls VMs that it knows nothing of, while their host may be up.
_SILENT = ("unknown", "not_responding")
#: Of larger clusters the failure that is not survived is not named: to find it takes too long here.
_MOST_CHECKED = 100
#: Of more hosts or VMs that do not run, this many are named.
_MOST_NAMED = 3


class Need(NamedTuple):
    """What needs an administrator: the macro that says it, and what that is given, in a cluster."""

    tone: str
    kind: str
    about: Any
    here: str


class Standing(NamedTuple):
    numbers: ClusterStatus
    enforcer: EnforcementRecord | None
    plan: Life | None
    pause: Pause | None
    run: MaintenanceRun | None
    #: Who refused the last plan, where a hard rule is violated and none waits.
    refusal: UserAction | None = None
    #: Of an unsafe cluster, the failure that most VMs are lost by, where that is known.
    worst: LostSet | None = None

    @property
    def unsafe(self) -> bool:
        """Whether a failure would not be survived, though none has happened yet."""
        return self.numbers.ha_reservation and self.numbers.ha_safe is False and not self.numbers.lost


def standing_of(asked: Asked, numbers: ClusterStatus, enforcer: EnforcementRecord | None) -> Standing:
    """What the store says of a cluster; nothing while it does not answer."""
    cluster, past = asked.snapshot.cluster_by_id[numbers.cluster.id], asked.site.past
    plan = present_plan(asked, cluster, enforcer)
    hosts = asked.snapshot.hosts_of_cluster.get(cluster.id, ())
    run, refusal, pause = None, None, past.pause(cluster)
    with suppress(UserError):
        active = past.read(MaintenanceStore, MaintenanceStore.active)
        run = next((one for one in active if one.cluster == cluster.id), None)
        if numbers.hard_violations and plan is None:
            last = next((one for one in past.history(DAY, cluster) if one.steps), None)
            said = past.words_on(last.id)[-1:] if last else ()
            refusal = next((one for one in said if one.kind is UserActionKind.REFUSE), None)
    known = Standing(numbers, enforcer, plan, pause, run, refusal)
    small = len(hosts) <= _MOST_CHECKED
    checked = asked.questions.ha_check(cluster).clusters if small and known.unsafe else ()
    losses = [each for one in checked for each in one.losses]
    return known._replace(worst=max(losses, key=lambda each: len(each.unplaced), default=None))


def present_plan(asked: Asked, cluster: Cluster, enforcer: EnforcementRecord | None) -> Life | None:
    """The plan of a cluster that waits or runs; None where there is none, or the store does not answer."""
    if enforcer is not None and not enforcer.migrations_under_way and not enforcer.waiting:
        return None  # the store has said so a moment ago
    past = asked.site.past
    with suppress(UserError):
        waiting = past.waiting().get(cluster.id)
        under_way = () if waiting else filter(runs, past.history(DAY, cluster))
        record = past.plan_named(waiting.plan) if waiting else next(iter(under_way), None)
        if record is not None:
            return Life(record, waiting, past.words_on(record.id), enforcer, latest=True)
    return None


def needs(asked: Asked, known: Standing) -> list[Need]:
    """What needs an administrator in a cluster, the most urgent first; then what goes on by itself."""
    numbers, enforcer, plan = known.numbers, known.enforcer, known.plan
    here = numbers.cluster.id
    cluster = asked.snapshot.cluster_by_id[here]
    waits, runs = bool(plan and plan.steps and plan.waits), bool(plan and plan.steps and plan.runs)
    unplanned = numbers.hard_violations and plan is None and not numbers.doubt
    idle = enforcer is not None and (enforcer.error is not None or (enforcer.acts and not enforcer.leader))
    breakers = [one.reason for one in enforcer.breakers if one.cluster.id == here] if enforcer else []
    found: tuple[tuple[object, str, str, Any], ...] = (
        *_hosts(asked, numbers),
        *_lost(asked, numbers),
        (waits, "warning", "plan", plan),
        (known.unsafe, "danger", "unsafe", (cluster.ha_failures, known.worst)),
        (numbers.disabled_units, "danger", "units", numbers.disabled_units),
        (unplanned, "danger", "unplanned", known),
        (known.pause, "warning", "pause", known.pause),
        (idle, "warning", "enforcer", enforcer),
        *((True, "warning", "breaker", reason) for reason in breakers),
        (numbers.doubt, "warning", "doubt", numbers.doubt),
        (runs and not waits, "info", "plan", plan),
        (known.run, "info", "run", known.run),
        (numbers.upgrade and not known.run, "info", "upgrade", numbers.upgrade),
        (numbers.draining and not (known.run or numbers.upgrade), "info", "draining", numbers.draining),
    )
    return [Need(tone, kind, about, here) for holds, tone, kind, about in found if holds]


def is_ill(snapshot: Snapshot, vm: Vm) -> bool:
    """Whether it is not known to run, though it should: its host may not answer."""
    return vm.status in _SILENT or (vm.crashed if vm.host is None else not vm_runs(snapshot, vm))


def _hosts(asked: Asked, numbers: ClusterStatus) -> Iterator[tuple[bool, str, str, Any]]:
    """Hosts that do not answer, or rest though VMs should run there, each with what becomes of its VMs."""
    lost = grouped((one.host.id, one) for one in numbers.lost if one.host is not None)
    of_cluster = asked.snapshot.hosts_of_cluster.get(numbers.cluster.id, ())
    failed = [host for host in of_cluster if not host.up and (host.status not in RESTS or host.id in lost)]
    for host in failed[:_MOST_NAMED]:
        vms = len(asked.snapshot.vms_of_host.get(host.id, ()))
        yield True, "danger", "host", (host, vms, lost.get(host.id, ()))
    if len(failed) > _MOST_NAMED:
        yield True, "danger", "more_hosts", len(failed) - _MOST_NAMED


def _lost(asked: Asked, numbers: ClusterStatus) -> Iterator[tuple[bool, str, str, Any]]:
    """VMs that do not run though they should, and whose host is not to blame."""
    snapshot = asked.snapshot
    up = {host.id: host for host in snapshot.hosts_of_cluster.get(numbers.cluster.id, ()) if host.up}
    own = [one for one in numbers.lost if one.host is None or one.host.id in up]
    for one in own[:_MOST_NAMED]:
        vm = snapshot.vm_by_id.get(one.vm.id) if one.could_start is False else None
        yield (True, "danger", "lost", (one, next(refusals(asked.questions.why(vm).hosts), "") if vm else ""))
    if len(own) > _MOST_NAMED:
        yield True, "danger", "more_lost", len(own) - _MOST_NAMED
    known = {one.vm.id for one in numbers.lost}
    running = (vm for host in up for vm in snapshot.vms_of_host.get(host, ()))
    silent = [vm for vm in running if vm.status in _SILENT and vm.id not in known]
    places = sorted({up[vm.host or ""].name for vm in silent})
    yield bool(silent), "warning", "silent", (sorted(vm.name for vm in silent), places)


def refusals(judged: Sequence[JudgedHost]) -> Iterator[str]:
    """What refuses most hosts, each with how many, and one of its sentences."""
    by_name: dict[tuple[str, str], list[tuple[Named, Said]]] = {}
    for one in judged:
        for key, reason in {refuser(each): each for each in one.reasons if each.veto}.items():
            by_name.setdefault(key, []).append((one.host, reason))
    for (_, title), places in sorted(by_name.items(), key=lambda item: len(item[1]), reverse=True)[:4]:
        host, reason = places[0]
        hosts = listed([host.name for host, _ in places]) if len(places) <= 3 else f"{len(places)} hosts"
        first = f"on {host.name}, " if reason.group is None and len(places) > 1 else ""
        yield f"{title[:1].upper()}{title[1:]} refuses {hosts}: {first}{reason.sentence}"


def refuser(reason: Said) -> tuple[str, str]:
    """The id and the title of the group that gives a reason, else of the policy unit."""
    if reason.group is not None:
        return reason.group.id, reason.group.title
    return "", reason.by[0].name if reason.by else reason.kind
