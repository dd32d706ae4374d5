"""What one can do with a host."""

from __future__ import annotations

from werkzeug import Response

from ovirt_simulator.http.call import Call
from ovirt_simulator.http.render.host import outline
from ovirt_simulator.http.resources.actions import act
from ovirt_simulator.http.resources.host_bodies import installing
from ovirt_simulator.http.users import Permit


def activate(call: Call, host_id: str) -> Response:
    return act(
        call,
        Permit.MANIPULATE_HOST,
        "host",
        outline(host_id, call.plain_links("hosts", host_id)),
        lambda _: call.engine.hosts.activate(host_id, caller=call.caller),
    )


def deactivate(call: Call, host_id: str) -> Response:
    return act(
        call,
        Permit.MANIPULATE_HOST,
        "host",
        outline(host_id, call.plain_links("hosts", host_id)),
        lambda body: call.engine.hosts.deactivate(
            host_id, reason=body.text("reason") or "", caller=call.caller
        ),
    )


def upgrade_check(call: Call, host_id: str) -> Response:
    return act(
        call,
        Permit.MANIPULATE_HOST,
        "host",
        outline(host_id, call.plain_links("hosts", host_id)),
        lambda _: call.engine.host_upgrades.check(host_id, caller=call.caller),
    )


def install(call: Call, host_id: str) -> Response:
    """Install a host once more; it stays in maintenance unless it is to be activated."""
    return act(
        call,
        Permit.EDIT_HOST_CONFIGURATION,
        "host",
        outline(host_id, call.plain_links("hosts", host_id)),
        lambda body: call.engine.installation.install(
            host_id, installing(call, body, activate=False), caller=call.caller
        ),
    )


def upgrade(call: Call, host_id: str) -> Response:
    """Install the updates that were found; the host reboots unless it is not to."""
    return act(
        call,
        Permit.EDIT_HOST_CONFIGURATION,
        "host",
        outline(host_id, call.plain_links("hosts", host_id)),
        lambda body: call.engine.host_upgrades.upgrade(
            host_id, reboot=body.boolean("reboot") is not False, caller=call.caller
        ),
    )
