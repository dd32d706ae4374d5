"""Maintenance of a cluster: its runs, what a run of the hosts that are ticked would be, and their orders."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from starlette.requests import Request

from ovirt_enforcer.orders import ORDERS, check_settings, run_meant
from ovirt_enforcer.orders import begin as begin_run
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.document import duration_text, find
from ovirt_placement.answers.orders import PHASES, runs_document
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance, move_text, rest_text, summary_text
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.store.enforcer.maintenance import (
    ACTIVE,
    MaintenanceRequest,
    MaintenanceStore,
    RunState,
    UnderWay,
    Work,
)
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Bound, Bounds, Refusal
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import page_words
from ovirt_placement_web.views.endpoints import (
    MIGRATE,
    Act,
    Asked,
    Shown,
    Stale,
    acted,
    cluster_frame,
    viewed,
    words_of,
)
from ovirt_service.errors import UserError

_Choice = TypeVar("_Choice", bound=StrEnum)

#: What the engine asks for of who takes hosts out of service.
PERMIT = "manipulate_host"
#: Of runs that have ended, this many are shown.
_MOST_ENDED = 5
#: The acts on a run that is under way.
_ACTS = {RunState.RUNNING: ("pause", "stop"), RunState.PAUSED: ("resume", "stop"), RunState.STOPPING: ()}


def _kind(bounds: Bounds, request: Request) -> Bound:
    """Who ticks hosts waits for a plan; all others look at what is under way."""
    return bounds.plans if "host" in request.query_params else bounds.views


@viewed("host", "stop", "return", repeated=("host",), kind=_kind)
def maintenance(asked: Asked) -> Shown:
    """How far runs are, and of hosts that are ticked in which rounds they could be taken out."""
    one = asked.cluster
    hosts = sorted(asked.snapshot.hosts_of_cluster.get(one.id, ()), key=lambda host: host.name)
    chosen = tuple(dict.fromkeys(asked.words("host")))
    _check_hosts(chosen, one, asked.snapshot)
    words = asked.word("stop", "").replace("\r\n", "\n")
    back = _choice(Return, "return", asked.word("return", Return.NONE.value))
    settings = asked.config.section("enforcer", EnforcerSettings)
    shown: dict[str, Any] = {
        **cluster_frame(asked, one, "Maintenance"),
        "hosts": hosts,
        "notes": {host.id: host.status.replace("_", " ") for host in hosts},
        "chosen": chosen,
        "stop": words,
        "back": back,
        "backs": [(each.value, each.value) for each in Return],
        "works": [work for work in Work if work is not Work.COMMAND or settings.maintenance.command],
        "permit": PERMIT,
        "plan": None,
        **_runs(asked, one),
    }
    if chosen:
        asked.check_engine()
        stopped = frozenset(_stop_vms(words, asked.snapshot))
        question = "maintenance", chosen, stopped, back
        plan = asked.questions.once(question, lambda: asked.site.made.maintenance(chosen, stopped, back))
        shown |= _planned(plan)
    return "maintenance.html", shown


def _planned(plan: ClusterMaintenance) -> dict[str, Any]:
    """The rounds with their moves in words; hosts in the order in which they are taken."""
    return {
        "plan": plan,
        "summary": page_words(summary_text(plan)),
        "rounds": [
            (one, list(map(move_text, one.moves)), duration_text(one.migrating_seconds))
            for one in plan.rounds
        ],
        "rest": list(map(page_words, rest_text(plan))),
        "order": [host.id for one in plan.rounds for host in one.hosts],
    }


def _runs(asked: Asked, cluster: Cluster) -> dict[str, Any]:
    """The runs of a cluster, or why they are not known."""
    try:
        own = asked.site.past.maintenance(cluster)
    except UserError as error:
        return {"runs": (), "runs_error": str(error), "under_way": False}
    active = [run for run in own if run.active]
    ended = [run for run in own if not run.active][:_MOST_ENDED]
    return {
        "runs": [(run, _ACTS.get(run.state, ())) for run in runs_document([*active, *ended]).runs],
        "runs_error": "",
        "under_way": any(run.state in ACTIVE for run in own),
        "phases": PHASES,
        "duration": duration_text,
    }


@acted
def begin(asked: Asked) -> Act:
    """Have the hosts taken out whose plan was looked at, in its order, if each can still become empty."""
    cluster, wanted = asked.cluster, _request(asked.form, asked.snapshot)
    ids = tuple(dict.fromkeys(asked.form.get("hosts", "").split()))
    if not ids:
        raise Refusal(400, "Tick some hosts first.")

    def carry_out(who: str) -> None:
        config = asked.config
        check_settings(config, wanted.work)
        snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=ENGINE_SECONDS)
        try:
            hosts = _check_hosts(ids, cluster, snapshot)
            asked.site.made.check_rounds(snapshot, ids, wanted.stop_vms)
        except Refusal as gone:
            raise Stale(gone.text) from None
        except UserError as error:
            raise Stale(f"{error}.") from None
        run = run_meant(config, snapshot, hosts, wanted, requested_by=who)
        try:
            with opened(MaintenanceStore, config) as store:
                begin_run(store, run)
        except UnderWay as error:
            raise Stale(f"{error}.") from None

    known = asked.snapshot.host_by_id
    names = ", ".join(known[one].name if one in known else one for one in ids)
    # What the engine would ask of who did by hand what the enforcer does for them.
    upgrade = ("edit_host_configuration",) if wanted.work is Work.UPGRADE else ()
    stopping = ("stop_vm", "run_vm") if wanted.stop_vms else ()
    return Act(
        "maintenance",
        (cluster,),
        carry_out,
        f"/maintenance/{cluster.id}",
        permits=(PERMIT, MIGRATE, *upgrade, *stopping),
        on=f"hosts {names} of cluster {cluster.name} ({cluster.id})",
        plans=True,
    )


@acted
def order(asked: Asked) -> Act:
    """Have a run paused, resumed or stopped."""
    cluster, name, run_id = asked.cluster, asked.request.path_params["order"], asked.form.get("run", "")
    if name not in ORDERS:
        raise Refusal(404, "There is no such page.")

    def carry_out(who: str) -> None:
        wanted = ORDERS[name]
        with opened(MaintenanceStore, asked.config) as store:
            if not any((one.id, one.cluster) == (run_id, cluster.id) for one in store.runs()):
                raise Stale(f"cluster {cluster.name} has no such maintenance run.")
            if not store.order(run_id, wanted.state, after=wanted.after, set_by=who):
                now = next(one for one in store.runs() if one.id == run_id)
                raise Stale(f"maintenance run {run_id} is {now.state}.")

    return Act(
        f"maintenance {name}",
        (cluster,),
        carry_out,
        f"/maintenance/{cluster.id}",
        permits=(PERMIT,),
        on=f"maintenance run {run_id[:64]} of cluster {cluster.name} ({cluster.id})",
    )


def _request(form: Mapping[str, str], snapshot: Snapshot) -> MaintenanceRequest:
    return MaintenanceRequest(
        work=_choice(Work, "work", form.get("work", "")),
        stop_vms=_stop_vms(form.get("stop", ""), snapshot),
        reboot="reboot" in form,
        back=_choice(Return, "return", form.get("return", "")),
    )


def _stop_vms(words: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The VMs that may be stopped, a name or id a line; raises `Refusal` for one that is not known."""
    try:
        named = (find(word, "VM", snapshot.vms, snapshot) for word in words_of(words))
        return tuple(dict.fromkeys(vm.id for vm in named))
    except UserError as error:
        raise Refusal(400, f"There is {error}.") from None


def _choice(kind: type[_Choice], key: str, word: str) -> _Choice:
    try:
        return kind(word)
    except ValueError:
        raise Refusal(400, f"{key}: {', '.join(kind)}") from None


def _check_hosts(ids: Sequence[str], cluster: Cluster, snapshot: Snapshot) -> list[Host]:
    """The hosts with these ids; raises `Refusal` for one that the cluster has not."""
    known = {host.id: host for host in snapshot.hosts_of_cluster.get(cluster.id, ())}
    if unknown := [one for one in ids if one not in known]:
        raise Refusal(404, f"Cluster {cluster.name} has no host {unknown[0]}.")
    return [known[one] for one in ids]
