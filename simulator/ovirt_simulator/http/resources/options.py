"""The engine's options, one at a time: those that concern scheduling, as they are shipped.

Source: the engine's packaging/dbscripts/upgrade/pre_upgrade/0000_config.sql.
"""

from __future__ import annotations

from ovirt_simulator.http.answers import fault
from ovirt_simulator.http.call import Call
from ovirt_simulator.http.markup import element, text

_OPTIONS = {
    "AffinityRulesEnforcementManagerEnabled": "true",
    "AffinityRulesEnforcementManagerRegularInterval": "1",
    "EnableVdsLoadBalancing": "true",
    "ExternalSchedulerConnectionTimeout": "100",
    "ExternalSchedulerEnabled": "false",
    "ExternalSchedulerResponseTimeout": "120000",
    "ExternalSchedulerServiceURL": "http://localhost:18781/",
    "MaxAuditLogMessageLength": "10000",
    "MaxSchedulerWeight": "1000",
    "MaxVmNameLength": "64",
    "OverUtilizationForHaReservation": "200",
    "SchedulerAllowOverBooking": "false",
    "SpeedOptimizationSchedulingThreshold": "10",
    # Of no version of clusters: VMs have whatever custom properties they are given here.
    "UserDefinedVMProperties": "",
    "UserSessionTimeOutInterval": "30",
    "VdsHaReservationIntervalInMinutes": "5",
    "VdsLoadBalancingIntervalInMinutes": "1",
}


def get_option(call: Call, name: str) -> str:
    """Give an option, all of which here are the same for all versions of clusters; others are refused."""
    call.need_admin()
    if name not in _OPTIONS:
        raise fault(501, f"The simulator does not know the option {name!r}.", "Not simulated")
    value = element("system_option_value", text("value", _OPTIONS[name]), text("version", "general"))
    return call.links("options", name).entity(
        "system_option", name, text("name", name), element("values", value)
    )
