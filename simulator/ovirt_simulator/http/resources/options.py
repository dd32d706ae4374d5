"""The engine's options, one at a time: those that concern scheduling, as they are shipped.

Source: the engine's packaging/dbscripts/upgrade/pre_upgrade/0000_config.sql; and for who is shown them, the
access levels of its ConfigValues.
"""

from __future__ import annotations

from ovirt_simulator.http.answers import absent, not_simulated
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, text

_OF_ADMINS = {
    "SchedulerAllowOverBooking": "false",
    "SpeedOptimizationSchedulingThreshold": "10",
}
_OF_ALL = {
    "MaxVmNameLength": "64",
    # Of no version of clusters: VMs have whatever custom properties they are given here.
    "UserDefinedVMProperties": "",
    "UserSessionTimeOutInterval": "30",
}
#: What `engine-config` shows, and the API nobody.
_OF_NOBODY = frozenset(
    {
        "AffinityRulesEnforcementManagerEnabled",
        "AffinityRulesEnforcementManagerRegularInterval",
        "EnableVdsLoadBalancing",
        "ExternalSchedulerConnectionTimeout",
        "ExternalSchedulerEnabled",
        "ExternalSchedulerResponseTimeout",
        "ExternalSchedulerServiceURL",
        "MaxAuditLogMessageLength",
        "MaxSchedulerWeight",
        "OverUtilizationForHaReservation",
        "VdsHaReservationIntervalInMinutes",
        "VdsLoadBalancingIntervalInMinutes",
    }
)
#: All that `engine-config` knows and the simulator does.
NAMES = _OF_NOBODY.union(_OF_ADMINS, _OF_ALL)


def get_option(call: Call, name: str) -> str:
    """Give an option, all of which here are the same for all versions of clusters; others are refused."""
    if name not in NAMES:
        raise not_simulated(f"the option {name!r}")
    if name in _OF_NOBODY or (name in _OF_ADMINS and not call.user.admin):
        raise absent()
    known = _OF_ADMINS | _OF_ALL
    value = element("system_option_value", text("value", known[name]), text("version", "general"))
    return call.links("options", name).entity(
        "system_option", name, text("name", name), element("values", value)
    )
