"""The view of a cluster's maintenance: its runs, and what a run of the hosts that are ticked would be."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from ovirt_enforcer.settings import EnforcerSettings
from ovirt_placement.answers.document import duration_text, find
from ovirt_placement.answers.orders import PHASES, runs_document
from ovirt_placement.answers.plans.maintenance import ClusterMaintenance, move_text, rest_text, summary_text
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.maintenance import Return
from ovirt_placement.store.maintenance import ACTIVE, MaintenanceStore, RunState, Work
from ovirt_placement_web.bounds import Bound, Bounds, Refusal
from ovirt_placement_web.keeper import View
from ovirt_placement_web.pages import Shown, cluster_frame, found, viewed
from ovirt_placement_web.site import Site, page_words
from ovirt_placement_web.stored import stored
from ovirt_service.errors import UserError

#: What the engine asks for of who takes hosts out of service.
PERMIT = "manipulate_host"
#: Of runs that have ended, this many are shown.
_MOST_ENDED = 5
#: The acts on a run that is under way.
_ACTS = {
    RunState.RUNNING: ("pause", "stop"),
    RunState.PAUSED: ("resume", "stop"),
    RunState.STOPPING: (),
}


def _kind(bounds: Bounds, request: Request) -> Bound:
    """Who ticks hosts waits for a plan; all others look at what is under way."""
    return bounds.plans if "host" in request.query_params else bounds.views


@viewed("host", "stop", "return", repeated=("host",), kind=_kind)
def maintenance(site: Site, request: Request, view: View) -> Shown:
    """How far runs are, and of hosts that are ticked in which rounds they could be taken out."""
    one = found(request, "cluster", view.snapshot.clusters)
    hosts = sorted(view.snapshot.hosts_of_cluster.get(one.id, ()), key=lambda host: host.name)
    chosen = _chosen(request, view, one)
    words = request.query_params.get("stop", "").replace("\r\n", "\n")
    back = _back(request.query_params.get("return", Return.NONE.value))
    shown: dict[str, Any] = {
        **cluster_frame(site, view, one, "Maintenance"),
        "hosts": hosts,
        "notes": {host.id: host.status.replace("_", " ") for host in hosts},
        "chosen": chosen,
        "stop": words,
        "back": back,
        "backs": [(each.value, each.value) for each in Return],
        "works": _works(site),
        "permit": PERMIT,
        "plan": None,
        **_runs(site, one),
    }
    if chosen:
        if view.error is not None:
            raise Refusal(503, f"The engine does not answer, so no plan can be made: {view.error}.")
        stopped = frozenset(stop_vms(words, view.snapshot))
        shown |= _planned(site.questions.maintenance(view, site.made, chosen, stopped, back))
    return "maintenance.html", shown


def stop_vms(words: str, snapshot: Snapshot) -> tuple[str, ...]:
    """The VMs that may be stopped, a name or id a line; raises `Refusal` for one that is not known."""
    try:
        named = dict.fromkeys(line.strip() for line in words.split("\n"))
        return tuple(dict.fromkeys(find(word, "VM", snapshot.vms, snapshot).id for word in named if word))
    except UserError as error:
        raise Refusal(400, f"There is {error}.") from None


def _planned(plan: ClusterMaintenance) -> dict[str, Any]:
    """The rounds with their moves in words; hosts in the order in which they are taken."""
    return {
        "plan": plan,
        "summary": page_words(summary_text(plan)),
        "rounds": [
            (one, [move_text(move) for move in one.moves], duration_text(one.migrating_seconds))
            for one in plan.rounds
        ],
        "rest": list(map(page_words, rest_text(plan))),
        "order": [host.id for one in plan.rounds for host in one.hosts],
    }


def _runs(site: Site, cluster: Cluster) -> dict[str, Any]:
    """The runs of a cluster, or why they are not known."""
    try:
        every = stored(MaintenanceStore, site.config, MaintenanceStore.runs)
    except UserError as error:
        return {"runs": (), "runs_error": str(error), "under_way": False}
    own = [run for run in every if run.cluster == cluster.id]
    shown = [run for run in own if run.active]
    shown += [run for run in own if not run.active][:_MOST_ENDED]
    return {
        "runs": [(run, _ACTS.get(run.state, ())) for run in runs_document(shown).runs],
        "runs_error": "",
        "under_way": any(run.state in ACTIVE for run in own),
        "phases": PHASES,
        "duration": duration_text,
    }


def _chosen(request: Request, view: View, cluster: Cluster) -> tuple[str, ...]:
    own = {host.id for host in view.snapshot.hosts_of_cluster.get(cluster.id, ())}
    chosen = tuple(dict.fromkeys(request.query_params.getlist("host")))
    if unknown := [host for host in chosen if host not in own]:
        raise Refusal(404, f"Cluster {cluster.name} has no host {unknown[0]}.")
    return chosen


def _back(word: str) -> Return:
    try:
        return Return(word)
    except ValueError:
        raise Refusal(400, f"return: {', '.join(Return)}") from None


def _works(site: Site) -> list[Work]:
    """What can be done with a host: the command only where one is configured."""
    settings = site.config.section("enforcer", EnforcerSettings)
    return [work for work in Work if work is not Work.COMMAND or settings.maintenance.command]
