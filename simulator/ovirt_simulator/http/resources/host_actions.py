"""What one can do with a host."""

from __future__ import annotations

from collections.abc import Callable

from werkzeug import Response

from ovirt_simulator.core.entities import Job
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render.host import outline
from ovirt_simulator.http.resources.actions import act
from ovirt_simulator.http.users import Permit


def activate(call: Call, host_id: str) -> Response:
    hosts = call.engine.hosts
    return _act(call, host_id, lambda _: hosts.activate(host_id, caller=call.caller))


def deactivate(call: Call, host_id: str) -> Response:
    def command(body: Body) -> Job:
        reason = body.text("reason") or ""
        return call.engine.hosts.deactivate(host_id, reason=reason, caller=call.caller)

    return _act(call, host_id, command)


def upgrade_check(call: Call, host_id: str) -> Response:
    upgrades = call.engine.host_upgrades
    return _act(call, host_id, lambda _: upgrades.check(host_id, caller=call.caller))


def upgrade(call: Call, host_id: str) -> Response:
    """Install the updates that were found; the host reboots unless it is not to."""

    def command(body: Body) -> Job:
        reboot = body.boolean("reboot") is not False
        return call.engine.host_upgrades.upgrade(host_id, reboot=reboot, caller=call.caller)

    return _act(call, host_id, command, Permit.EDIT_HOST_CONFIGURATION)


def _act(
    call: Call,
    host_id: str,
    command: Callable[[Body], Job],
    permit: Permit = Permit.MANIPULATE_HOST,
) -> Response:
    return act(call, permit, "host", outline(host_id, call.plain_links("hosts", host_id)), command)
