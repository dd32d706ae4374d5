"""Maintenance runs are begun, paused, resumed and stopped by the forms of their view, as by the commands."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response

from ovirt_enforcer.orders import ORDERS, check_settings, run_meant
from ovirt_enforcer.orders import begin as begin_run
from ovirt_placement import inventory
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.maintenance import Return
from ovirt_placement.store.maintenance import MaintenanceRequest, MaintenanceStore, UnderWay, Work
from ovirt_placement.store.opening import opened
from ovirt_placement_web.acting import PERMIT as MIGRATE
from ovirt_placement_web.acting import Stale, asked_by, carried_out, cluster_of
from ovirt_placement_web.bounds import Refusal
from ovirt_placement_web.maintenance_pages import PERMIT, stop_vms
from ovirt_placement_web.settings import ENGINE_SECONDS
from ovirt_service.errors import UserError


async def begin(request: Request) -> Response:
    """Have the hosts taken out whose plan was looked at, in its order, if each can still become empty."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    wanted = _request(asked.form, asked.site.keeper.view.snapshot)
    ids = tuple(dict.fromkeys(asked.form.get("hosts", "").split()))
    if not ids:
        raise Refusal(400, "Tick some hosts first.")

    def carry_out(who: str) -> None:
        config = asked.site.config
        check_settings(config, wanted.work)
        snapshot = inventory.snapshot(config=config, max_age=0.0, deadline=ENGINE_SECONDS)
        hosts = _hosts(ids, cluster, snapshot)
        try:
            asked.site.made.check_rounds(snapshot, ids, wanted.stop_vms)
        except UserError as error:
            raise Stale(f"{error}.") from None
        with opened(MaintenanceStore, config) as store:
            try:
                begin_run(store, run_meant(config, snapshot, hosts, wanted, requested_by=who))
            except UnderWay as error:
                raise Stale(f"{error}.") from None

    names = asked.site.keeper.view.snapshot.host_by_id
    listed = ", ".join(names[one].name if one in names else one for one in ids)
    return await carried_out(
        asked,
        cluster,
        "maintenance",
        carry_out,
        permits=_permits(wanted),
        on=f"hosts {listed} of cluster {cluster.name} ({cluster.id})",
        back=f"/maintenance/{cluster.id}",
    )


async def order(request: Request) -> Response:
    """Have a run paused, resumed or stopped."""
    asked = await asked_by(request)
    cluster = cluster_of(request, asked)
    name, run_id = request.path_params["order"], asked.form.get("run", "")
    if name not in ORDERS:
        raise Refusal(404, "There is no such page.")

    def carry_out(who: str) -> None:
        with opened(MaintenanceStore, asked.site.config) as store:
            _obeyed(store, cluster, run_id, name, who)

    return await carried_out(
        asked,
        cluster,
        f"maintenance {name}",
        carry_out,
        permits=(PERMIT,),
        on=f"maintenance run {run_id[:64]} of cluster {cluster.name} ({cluster.id})",
        back=f"/maintenance/{cluster.id}",
    )


def _obeyed(store: MaintenanceStore, cluster: Cluster, run_id: str, name: str, who: str) -> None:
    """Raise `Stale` if the run is in no state for that any more."""
    run = next((one for one in store.runs() if (one.id, one.cluster) == (run_id, cluster.id)), None)
    if run is None:
        raise Stale(f"cluster {cluster.name} has no such maintenance run.")
    wanted = ORDERS[name]
    if not store.order(run_id, wanted.state, after=wanted.after, set_by=who):
        now = next(one for one in store.runs() if one.id == run_id)
        raise Stale(f"maintenance run {run_id} is {now.state}.")


def _request(form: Mapping[str, str], snapshot: Snapshot) -> MaintenanceRequest:
    try:
        work, back = Work(form.get("work", "")), Return(form.get("return", ""))
    except ValueError:
        raise Refusal(400, "This is no work, or no way back, that can be chosen.") from None
    stopped = stop_vms(form.get("stop", "").replace("\r\n", "\n"), snapshot)
    return MaintenanceRequest(work=work, stop_vms=stopped, reboot="reboot" in form, back=back)


def _permits(wanted: MaintenanceRequest) -> tuple[str, ...]:
    """What the engine would ask of who did by hand what the enforcer does for them."""
    upgrade = ("edit_host_configuration",) if wanted.work is Work.UPGRADE else ()
    return (PERMIT, MIGRATE, *upgrade, *(("stop_vm", "run_vm") if wanted.stop_vms else ()))


def _hosts(ids: tuple[str, ...], cluster: Cluster, snapshot: Snapshot) -> list[Host]:
    known = snapshot.host_by_id
    for one in ids:
        if one not in known or known[one].cluster != cluster.id:
            raise Stale(f"cluster {cluster.name} has no host {one} any more.")
    return [known[one] for one in ids]
