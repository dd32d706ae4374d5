"""What the body of a POST or PUT says of a host and of its installation, as the engine maps it."""

from __future__ import annotations

from ovirt_simulator.core.host_installation import HostEdit, Installing
from ovirt_simulator.http.bodies import Body
from ovirt_simulator.http.call import Call


def host_edit(body: Body) -> HostEdit:
    """Read a host. Whatever the body has not stays as it is."""
    power = body.child("power_management")
    return HostEdit(
        name=body.text("name"),
        address=body.text("address"),
        comment=body.text("comment"),
        power_management=None if power is None else power.boolean("enabled"),
        automatic_power_management=None if power is None else power.boolean("automatic_pm_enabled"),
        kdump_detection=None if power is None else power.boolean("kdump_detection"),
    )


def installing(call: Call, body: Body, *, activate: bool) -> Installing:
    """Read how to install a host, from a host or an action: with which credentials, and what comes then."""
    ssh = body.child("ssh")
    user = None if ssh is None else ssh.child("user")
    key = ssh is not None and (ssh.text("authentication_method") or "").lower() == "publickey"
    password = body.text("root_password") or (user and user.text("password"))
    return Installing(
        authenticated=key or bool(password),
        activate=_flag(call, body, "activate", default=activate),
        reboot=_flag(call, body, "reboot", default=True),
    )


def _flag(call: Call, body: Body, name: str, *, default: bool) -> bool:
    """Give a flag of an action, or else of the address."""
    said = body.boolean(name)
    asked = call.flag(name) if said is None else said
    return default if asked is None else asked
