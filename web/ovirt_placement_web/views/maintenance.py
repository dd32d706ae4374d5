"""A cluster without some of its hosts: maintenance, with its runs and their orders, and failures."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from ovirt_enforcer.orders import ORDERS, check_settings, run_meant
from ovirt_enforcer.orders import begin as begin_run
from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.configured import Domains, configured_domains
from ovirt_placement.answers.document import duration_text, find
from ovirt_placement.answers.orders import PHASES, runs_document
from ovirt_placement.answers.plans.maintenance import move_text, rest_text, summary_text
from ovirt_placement.inventory import client as inventory
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.infrastructure import Return
from ovirt_placement.model.names import counted
from ovirt_placement.store.enforcer.maintenance import (
    ACTIVE,
    MaintenanceRequest,
    MaintenanceStore,
    RunState,
    UnderWay,
    Work,
)
from ovirt_placement.store.sql.access import opened
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.log_in import to_log_in
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_placement_web.site import check_query, page_words, site_of
from ovirt_placement_web.views.endpoints import (
    MIGRATE,
    Act,
    Asked,
    Shown,
    Stale,
    acted,
    cluster_frame,
    planned_if,
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


@viewed("host", "stop", "return", repeated=("host",), kind=planned_if("host"))
def maintenance(asked: Asked) -> Shown:
    """How far runs are, and of hosts that are ticked in which rounds they could be taken out."""
    one = asked.cluster
    hosts = sorted(asked.snapshot.hosts_of_cluster.get(one.id, ()), key=lambda host: host.name)
    chosen = tuple(asked.words("host"))
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
        shown |= {
            "plan": plan,
            "summary": page_words(summary_text(plan)),
            "rounds": [
                (one, list(map(move_text, one.moves)), duration_text(one.migrating_seconds))
                for one in plan.rounds
            ],
            "rest": list(map(page_words, rest_text(plan))),
            "order": [host.id for one in plan.rounds for host in one.hosts],
        }
    return "maintenance.html", shown


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


# -- Failures.


async def fail(request: Request) -> Response:
    """On to the view of the failure of hosts, which the engine's portal knows without their cluster."""
    check_query(request, ["host"], repeated=["host"])
    site = site_of(request)
    if site.session(request) is None:
        return to_log_in(request, site)
    known = site.live.view.snapshot.host_by_id
    names = request.query_params.getlist("host")
    if unknown := [name for name in names if name not in known]:
        raise Refusal(404, f"There is no host {unknown[0]}.")
    clusters = {known[name].cluster for name in names}
    if len(clusters) != 1:
        raise Refusal(400, "Name hosts of one cluster, as host=ID.")
    query = urlencode([("host", name) for name in names])
    return RedirectResponse(f"{site.root}/ha/{quote(clusters.pop(), safe='')}?{query}", 303)


@viewed("host", "domain", repeated=("host", "domain"), kind=lambda bounds, request: bounds.checks)
def failures(asked: Asked) -> Shown:
    """What would come of the failure of hosts, or of whole failure domains, together."""
    one = asked.cluster
    hosts = asked.snapshot.hosts_of_cluster.get(one.id, ())
    domains = _domains(asked, one)
    failing = _failing(asked, one, domains)
    vms = asked.snapshot.vms_of_host
    shown: dict[str, Any] = {
        **cluster_frame(asked, one, "Failures"),
        "hosts": sorted(hosts, key=lambda host: host.name),
        "notes": {
            host.id: counted(len(vms.get(host.id, ())), "VM") if host.up else host.status.replace("_", " ")
            for host in hosts
        },
        "domains": domains,
        "failing": failing,
        "checked": asked.questions.ha_check(one).clusters[0] if hosts else None,
        "outcome": None,
    }
    if failing:
        answer = asked.questions.ha_check(one, [host for host in hosts if host.id in failing])
        if answer.clusters:
            outcome, starts = answer.clusters[0], asked.questions.starts(failing)
            shown |= {"outcome": outcome, "starts": starts.starts, "stopped": starts.stopped}
            shown["why"] = {vm.vm.id: vm for loss in outcome.losses for vm in loss.because}
    return "ha.html", shown


def _domains(asked: Asked, cluster: Cluster) -> Domains:
    """The failure domains that have hosts of this cluster; none where they are set wrongly."""
    own = {host.id for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ())}
    try:
        known = configured_domains(asked.snapshot, asked.config.ha)
    except UserError:
        return ()
    return tuple(one for one in known if one.hosts & own)


def _failing(asked: Asked, cluster: Cluster, domains: Domains) -> frozenset[str]:
    own = {host.id: host for host in asked.snapshot.hosts_of_cluster.get(cluster.id, ())}
    by_name = {one.name: one.hosts for one in domains}
    chosen = frozenset(host.id for host in _check_hosts(asked.words("host"), cluster, asked.snapshot))
    for name in asked.words("domain"):
        if name not in by_name:
            raise Refusal(404, f"Cluster {cluster.name} has no failure domain {name}.")
        chosen |= by_name[name] & own.keys()
    return chosen
