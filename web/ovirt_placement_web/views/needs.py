"""What needs an administrator in a cluster, with the address that helps; and what happens next by itself."""

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from markupsafe import Markup

from ovirt_placement.answers.document import Said, duration_text, listed, none_text
from ovirt_placement.answers.orders import PHASES
from ovirt_placement.answers.placement import JudgedHost
from ovirt_placement.answers.status import EnforcementRecord
from ovirt_placement.answers.status.clusters import ClusterStatus
from ovirt_placement.model import Cluster, Host
from ovirt_placement.model.names import Named, be, counted
from ovirt_placement.store.enforcer.maintenance import ENDED, HostPhase, MaintenanceRun
from ovirt_placement.store.orders import Pause
from ovirt_placement.store.user_actions import UserAction
from ovirt_placement_web.bounds import sentence
from ovirt_placement_web.site import when
from ovirt_placement_web.state.plans import Life
from ovirt_placement_web.state.sources import View
from ovirt_placement_web.views.endpoints import Asked
from ovirt_service.errors import UserError
from ovirt_service.text import escaped

RESTS = ("maintenance", "preparing_for_maintenance", "installing", "reboot", "down")
#: What the engine calls VMs that it knows nothing of.
ILL = ("unknown", "not_responding")
#: Of larger clusters the failure that is not survived is not named: to find it takes too long here.
_MOST_CHECKED = 100


class Need(NamedTuple):
    """What needs an administrator, and the address that helps."""

    tone: str
    title: str
    text: str
    address: str = ""
    action: str = ""
    #: Whether the address is that of an act, for a form.
    act: bool = False
    #: What such a form says besides.
    of_all: bool = False


class Move(NamedTuple):
    """The step of the present plan that moves a VM."""

    number: int
    to: Any


class Standing(NamedTuple):
    """What is known of a cluster."""

    numbers: ClusterStatus
    enforcer: EnforcementRecord | None
    plan: Life | None
    pause: Pause | None
    run: MaintenanceRun | None
    #: Who refused the last plan, where a hard rule is violated and none waits.
    refusal: UserAction | None


def standing_of(asked: Asked, numbers: ClusterStatus, enforcer: EnforcementRecord | None) -> Standing:
    """What the store says of a cluster; nothing while it does not answer."""
    cluster = asked.snapshot.cluster_by_id[numbers.cluster.id]
    plan = present_plan(asked, cluster, enforcer)
    hosts = asked.snapshot.hosts_of_cluster.get(cluster.id, ())
    run, refusal = None, None
    try:
        if numbers.upgrade or numbers.draining or any(host.status in RESTS for host in hosts):
            run = next((one for one in asked.site.past.maintenance(cluster) if one.active), None)
        if numbers.hard_violations and plan is None:
            refusal = asked.site.past.refusal(cluster)
    except UserError:
        pass
    return Standing(numbers, enforcer, plan, asked.site.past.pause(cluster), run, refusal)


def present_plan(asked: Asked, cluster: Cluster, enforcer: EnforcementRecord | None) -> Life | None:
    """The plan of a cluster that waits or runs; None where there is none, or the store does not answer."""
    if enforcer is not None and not enforcer.migrations_under_way and not enforcer.waiting:
        return None  # the store has said so a moment ago
    try:
        waiting = asked.site.past.waiting(cluster)
        record = asked.site.past.plan_named(waiting.plan) if waiting else asked.site.past.under_way(cluster)
        words = asked.site.past.words_on(record.id) if record else ()
    except UserError:
        return None
    return None if record is None else Life(record, waiting, words, enforcer, latest=True)


def repairs(plan: Life | None) -> dict[str, Move]:
    """By VM the step of a plan that moves it, where one does."""
    if plan is None:
        return {}
    return {vm["id"]: Move(number, step["to"]) for number, step, _ in plan.steps for vm in step["vms"]}


def needs(asked: Asked, known: Standing) -> Iterator[Need]:
    """What needs an administrator in a cluster, the most urgent first."""
    numbers, enforcer, plan = known.numbers, known.enforcer, known.plan
    cluster = asked.snapshot.cluster_by_id[numbers.cluster.id]
    here = cluster.id
    yield from _hosts(asked, cluster, numbers)
    yield from _lost(asked, cluster, numbers)
    if plan is not None and plan.waits:
        yield from _of_plan(plan, here)
    if numbers.ha_reservation and numbers.ha_safe is False and not numbers.lost:
        title = f"Not every failure of {counted(cluster.ha_failures, 'host')} is survived"
        yield Need("danger", title, _unsafe(asked, cluster), f"/ha/{here}", "See which")
    if numbers.disabled_units:
        text = f"VMs are placed without {', '.join(numbers.disabled_units)}."
        yield Need("danger", "The engine has disabled policy units", text, "/health", "Examine")
    if numbers.hard_violations and plan is None and not numbers.doubt:
        what = "rule is violated" if numbers.hard_violations == 1 else "rules are violated"
        title = f"{numbers.hard_violations} hard {what}"
        yield Need("danger", title, _unplanned(known), f"/plan/{here}/now", "Plan the repair")
    if known.pause is not None:
        of_all = not known.pause.cluster
        title = "Migrations are paused" + (" in all clusters" if of_all else "")
        resume = f"/cluster/{here}/resume"
        yield Need("warning", title, _paused(known.pause), resume, "Resume", act=True, of_all=of_all)
    yield from _of_enforcer(enforcer, here)
    if numbers.doubt:
        yield Need("warning", "No verdict, and nothing is planned", sentence(numbers.doubt))
    yield from _under_way(known, here)


def _under_way(known: Standing, here: str) -> Iterator[Need]:
    """What goes on by itself, and needs no administrator."""
    if known.plan is not None and not known.plan.waits:
        yield from _of_plan(known.plan, here)
    if known.run is not None:
        title = f"Maintenance of {counted(len(known.run.hosts), 'host')} is {known.run.state}"
        yield Need("info", title, _progress(known.run), f"/maintenance/{here}", "Follow")
    elif known.numbers.upgrade:
        text = sentence(f"{known.numbers.upgrade}: nothing is migrated")
        yield Need("info", "The engine upgrades this cluster", text)
    elif known.numbers.draining:
        names = ", ".join(host.name for host in known.numbers.draining[:5])
        yield Need("info", "Hosts are being drained", f"{names}.", f"/maintenance/{here}", "Maintenance")


def what_next(view: View, known: Standing) -> str:
    """What happens in a cluster if no administrator does anything, in a sentence or two."""
    enforcer, plan = known.enforcer, known.plan
    if view.error is not None:
        return "Nothing, until the engine answers."
    if enforcer is None or enforcer.error is not None:
        return "Not known: nothing is known of the enforcer."
    if not enforcer.acts:
        return "Nothing by itself: the enforcer is in mode observe."
    if not enforcer.leader:
        return "Nothing: no enforcer runs."
    if known.run is not None:
        waiting = [one.name for one in known.run.hosts if one.phase is HostPhase.WAITING]
        return f"The maintenance goes on: {f'{waiting[0]} has its turn next' if waiting else 'then it ends'}."
    if plan is not None and plan.runs:
        ahead = sum(not one.begun for _, _, one in plan.steps)
        then = f"then {counted(ahead, 'more step')} {be(ahead)} to begin"
        then = then if ahead else "then the rules are checked again"
        then = "no other begins while they are paused" if known.pause else then
        return f"The migrations that have begun end; {then}."
    return _held(known) or _planned(enforcer, known)


def _held(known: Standing) -> str:
    """What keeps migrations from beginning; empty if nothing does."""
    numbers = known.numbers
    if away := [one for one in numbers.lost if one.host_status not in (None, "up")]:
        whose = "its" if len(away) == 1 else "their"
        return (
            f"The engine restarts {counted(len(away), 'highly available VM')} once {whose} host is fenced, or"
            " confirmed to have been rebooted."
        )
    if known.pause is not None:
        return "Nothing, until the pause ends or migrations are resumed."
    if numbers.doubt:
        return "No migration, until there is a verdict."
    if numbers.upgrade:
        return "No migration, until the upgrade ends."
    breakers = known.enforcer.breakers if known.enforcer else ()
    if any(one.cluster.id == numbers.cluster.id for one in breakers):
        return "No migration for a while, as some failed; then it tries again."
    return ""


def _planned(enforcer: EnforcementRecord, known: Standing) -> str:
    numbers = known.numbers
    if known.plan is not None:
        time = duration_text(float(known.plan.record.document.get("seconds", 0)))
        return f"Nothing before approval; then {counted(len(known.plan.steps), 'step')} in about {time}."
    if known.refusal is not None:
        again = "It is offered again when that expires, or another one once the cluster needs it."
        return f"Nothing for now: the plan was refused. {again}"
    if numbers.hard_violations:
        ends = "which then waits for approval" if enforcer.mode == "approve" else "and carries it out"
        return f"The enforcer plans the repair, {ends}."
    if numbers.lost or (numbers.ha_reservation and numbers.ha_safe is False):
        return "Nothing by itself: no migration is planned. The rules are checked after each change."
    if numbers.soft_violations:
        return "Nothing: no plan repairs the violated soft rules. The rules are checked after each change."
    return "Nothing: there is nothing to repair. The rules are checked after each change."


def _hosts(asked: Asked, cluster: Cluster, numbers: ClusterStatus) -> Iterator[Need]:
    """Hosts that do not answer, each with what becomes of its VMs."""
    failed = [
        host
        for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ())
        if not host.up and host.status not in RESTS
    ]
    for host in failed[:3]:
        vms = asked.snapshot.vms_of_host.get(host.id, ())
        lost = [one for one in numbers.lost if one.host is not None and one.host.id == host.id]
        text = f"{counted(len(vms), 'VM')} {'was' if len(vms) == 1 else 'were'} running on it"
        if lost:
            fate = _fate([one.vm.name for one in lost if one.could_start is False], len(lost))
            text += f", {len(lost)} of them highly available. {fate}"
        title = f"Host {host.name} {status_text(host)}"
        yield Need("danger", title, text if lost else f"{text}.", f"/host/{host.id}", "Open the host")
    if len(failed) > 3:
        title = f"{counted(len(failed) - 3, 'more host')} {be(len(failed) - 3)} not up"
        yield Need("danger", title, "", f"/cluster/{cluster.id}/hosts?show=down", "See which")


def status_text(host: Host) -> str:
    """How a host is that is not up, as the end of a sentence."""
    return "does not respond" if host.status == "non_responsive" else f"is {host.status.replace('_', ' ')}"


def _fate(without_host: list[str], count: int) -> str:
    """What becomes of highly available VMs of a host that does not answer."""
    if without_host:
        return f"No host takes {_some(without_host)}."
    room = f"Other hosts have room for {'it' if count == 1 else 'them'}."
    return f"{room} An administrator can confirm in the portal that the host has been rebooted."


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


def _lost(asked: Asked, cluster: Cluster, numbers: ClusterStatus) -> Iterator[Need]:
    """VMs that do not run though they should, and whose host is not to blame."""
    up = {host.id: host for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ()) if host.up}
    own = [one for one in numbers.lost if one.host is None or one.host.id in up]
    for lost in own[:3]:
        fate = {
            True: f"It could start on {lost.home.name if lost.home else 'another host'}.",
            False: "No host takes it.",
            None: "It is not known whether a host takes it.",
        }[lost.could_start]
        where = f" on {lost.host.name}" if lost.host else ""
        if lost.could_start is False and (vm := asked.snapshot.vm_by_id.get(lost.vm.id)):
            fate += "".join(f" {why}." for why in islice(refusals(asked.questions.why(vm).hosts), 1))
        runs = "does not run" if lost.status == "down" else "is not known to run"
        title = f"Highly available VM {lost.vm.name} {runs}: {lost.status.replace('_', ' ')}{where}"
        yield Need("danger", title, fate, f"/vm/{lost.vm.id}", "Why")
    if len(own) > 3:
        more = counted(len(own) - 3, "more highly available VM")
        yield Need("danger", f"{more} {be(len(own) - 3)} down", "", "/vms?show=lost", "See which")
    known = {one.vm.id for one in numbers.lost}
    running = (vm for host in up for vm in asked.snapshot.vms_of_host.get(host, ()))
    ill = sorted((vm for vm in running if vm.status in ILL and vm.id not in known), key=lambda vm: vm.name)
    if ill:
        places = listed(sorted({up[vm.host or ""].name for vm in ill})[:3])
        title = f"{counted(len(ill), 'VM')} {'does' if len(ill) == 1 else 'do'} not respond on {places}"
        names = _some([vm.name for vm in ill])
        they = "it runs" if len(ill) == 1 else "they run"
        text = f"{names}: the engine does not know whether {they}. Check {places} in the portal."
        yield Need("warning", title, text, "/vms?show=lost", "See which")


def _some(names: list[str]) -> str:
    return listed(names[:4]) if len(names) <= 4 else f"{', '.join(names[:4])} and {len(names) - 4} more"


def _unsafe(asked: Asked, cluster: Cluster) -> str:
    """Which failure is not survived, and what stands against a restart."""
    small = len(asked.snapshot.hosts_of_cluster.get(cluster.id, ())) <= _MOST_CHECKED
    checked = asked.questions.ha_check(cluster).clusters if small else ()
    losses = [each for one in checked for each in one.losses]
    if not losses:
        return "Some highly available VMs would not restart."
    worst = max(losses, key=lambda each: len(each.unplaced))
    names = [vm.name for vm in worst.unplaced]
    text = f"If {listed([*worst.domains] or [host.name for host in worst.hosts])} failed, no host would take "
    text += _some(names)
    refused = [one for vm in worst.because[:1] for one in vm.refused[:1]]
    reasons = [f"{one.host.name}: {why}" for one in refused for why in one.because[:1]]
    helps = "Free room on other hosts, add a host, or relax the rules that refuse them."
    return f"{text}{''.join(f' ({why})' for why in reasons)}. {helps}"


def _unplanned(known: Standing) -> str:
    """Why no plan waits though a hard rule is violated."""
    if known.refusal is not None:
        why = ", ".join(known.refusal.details)
        return Markup("{} refused the repair {}{}.").format(
            escaped(known.refusal.login), when(known.refusal.created), escaped(f": {why}" if why else "")
        )
    if known.enforcer is not None and not known.enforcer.acts:
        return "No plan waits: the enforcer is in mode observe, and migrates nothing by itself."
    return "No plan waits."


def _paused(pause: Pause) -> str:
    why = f": {pause.reason}" if pause.reason else ""
    until = when(pause.until) if pause.until is not None else "an administrator resumes them"
    return Markup("{} paused them {}{}. No migration begins until {}.").format(
        escaped(pause.set_by), when(pause.set_at), escaped(why), until
    )


def _progress(run: MaintenanceRun) -> str:
    """How far a maintenance run is."""
    done = sum(one.phase in ENDED for one in run.hosts)
    text = f"{done} of {counted(len(run.hosts), 'host')} {'is' if done == 1 else 'are'} done"
    at_work = [one for one in run.hosts if one.phase not in (*ENDED, HostPhase.WAITING)]
    return "; ".join([text, *(f"{one.name} {PHASES[one.phase]}" for one in at_work[:2])]) + "."


def _of_plan(plan: Life, here: str) -> Iterator[Need]:
    if not plan.steps:
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
            title = "Nothing is migrated for a while"
            yield Need("warning", title, f"{one.reason}.", f"/plan/{here}", "Plan")
