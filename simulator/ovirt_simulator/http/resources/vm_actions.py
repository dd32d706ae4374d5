"""What one can do with a VM."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render.vm import outline
from ovirt_simulator.http.resources.actions import act
from ovirt_simulator.http.resources.find import host_id
from ovirt_simulator.http.users import Permit


def start(call: Call, vm_id: str) -> Response:
    """Start a VM, where its placement policy in the body says, if it says so."""

    def command(body: Body) -> Job:
        vm = body.child("vm")
        policy = vm and vm.child("placement_policy")
        hosts = policy and policy.child("hosts")
        wanted = hosts.children("host") if hosts else []
        host = host_id(call, wanted[0]) if wanted else None
        return call.engine.vms.start(vm_id, host_id=host, caller=call.caller)

    return _act(call, Permit.RUN_VM, vm_id, command)


def stop(call: Call, vm_id: str) -> Response:
    return _act(call, Permit.STOP_VM, vm_id, lambda _: call.engine.vms.stop(vm_id, caller=call.caller))


def shutdown(call: Call, vm_id: str) -> Response:
    return _act(call, Permit.STOP_VM, vm_id, lambda _: call.engine.vms.shutdown(vm_id, caller=call.caller))


def suspend(call: Call, vm_id: str) -> Response:
    return _act(call, Permit.STOP_VM, vm_id, lambda _: call.engine.vms.suspend(vm_id, caller=call.caller))


def reboot(call: Call, vm_id: str) -> Response:
    return _act(call, Permit.REBOOT_VM, vm_id, lambda _: call.engine.vms.reboot(vm_id, caller=call.caller))


def reset(call: Call, vm_id: str) -> Response:
    return _act(call, Permit.RESET_VM, vm_id, lambda _: call.engine.vms.reset(vm_id, caller=call.caller))


def migrate(call: Call, vm_id: str) -> Response:
    """Begin a migration. A host that is named but unknown is refused before there is an action: 404."""

    def command(body: Body) -> Job:
        host = body.child("host")
        return call.engine.vms.migrate(
            vm_id,
            host_id=None if host is None else host_id(call, host),
            cluster_id=body.child_id("cluster"),
            force=bool(body.boolean("force")),
            closure=bool(body.boolean("migrate_vms_in_affinity_closure")),
            caller=call.caller,
        )

    return _act(call, Permit.MIGRATE_VM, vm_id, command)


def cancel_migration(call: Call, vm_id: str) -> Response:
    return _act(
        call, Permit.MIGRATE_VM, vm_id, lambda _: call.engine.vms.cancel_migration(vm_id, caller=call.caller)
    )


def _act(call: Call, permit: Permit, vm_id: str, command: Callable[[Body], Job]) -> Response:
    return act(call, permit, "vm", outline(vm_id, call.plain_links("vms", vm_id)), command)
