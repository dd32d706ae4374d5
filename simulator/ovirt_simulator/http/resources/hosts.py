"""Hosts and their sub-collections; hosts that come, change and go."""

from __future__ import annotations

from ovirt_simulator.core.entities import Host
from ovirt_simulator.http import markup
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render import host as render
from ovirt_simulator.http.resources.find import present
from ovirt_simulator.http.search import searched


def list_hosts(call: Call) -> list[str]:
    """Hosts that a search finds, or that VMs can migrate to; users whose queries are filtered see none."""
    if call.filtered:
        return []
    targets_of = call.parameter("migration_target_of")
    if targets_of is not None and not call.followed:
        vm_ids = [vm_id.strip() for vm_id in targets_of.split(",")]
        closure = bool(call.flag("check_vms_in_affinity_closure"))
        targets = call.queries.migration_targets(vm_ids, closure=closure)
        return [render_host(call, host) for host in targets]
    return [render_host(call, host) for host in searched(call, "hosts", call.queries.hosts())]


def get_host(call: Call, host_id: str) -> str:
    return render_host(call, visible_host(call, host_id))


def visible_host(call: Call, host_id: str) -> Host:
    return present(None if call.filtered else call.queries.host(host_id))


def render_host(call: Call, host: Host) -> str:
    """Render a host, following what this call asks to follow."""
    summary = call.queries.host_summary(host.id)

    def fresh() -> str:
        extra = _all_content(call, host) if call.all_content else ""
        return render.host(host, call.links("hosts", host.id), summary, extra=extra)

    if call.follow or call.all_content:
        return fresh()
    return call.cache.get(markup.path("hosts", host.id), (host, summary), fresh)


def _all_content(call: Call, host: Host) -> str:
    """Render what only `all_content` shows; where the hosted engine can run, hosts have an HA agent."""
    clusters = call.once(
        "hosted engine clusters",
        lambda: frozenset(vm.cluster for vm in call.queries.vms() if vm.hosted_engine),
    )
    return render.all_content(
        hosted_engine=host.cluster in clusters,
        maintenance=host.status == "maintenance",
    )
