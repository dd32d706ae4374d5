"""Policy units for placement keys: the contract, and calls into the rules."""

from __future__ import annotations

import logging
import os
from functools import lru_cache

from ovirt_placement.rules.placement_keys import placing
from ovirt_placement.rules.placement_keys.parameters import read_settings
from ovirt_placement.rules.placement_keys.settings import DEFAULTS, Settings
from ovirt_placement.rules.verdict import Request
from ovirt_placement.units.plugin import Properties, answers, explains, log_ranks, log_refusals, snapshot_with

_SCORE = r"-?[0-9]{1,4}(\.[0-9]{1,4})?"
_RATIO = r"([1-9][0-9]{0,2}(\.[0-9]{1,4})?|0\.0{0,3}[1-9][0-9]{0,3})"

#: Both units know them: they must reckon alike, and a policy may hold but one of them.
_PARAMETERS = (
    f"placement_initial={_SCORE};"
    f"placement_final={_SCORE};"
    "placement_steps=(100|[1-9][0-9]?);"
    "placement_overhead=[0-9]{1,7};"
    f"placement_memory_ratio={_RATIO};"
    f"placement_cpu_ratio={_RATIO};"
    "placement_reserved_from_vms=(true|false);"
    "placement_load=(cpu|average)"
)

_log = logging.getLogger("ovirt_placement.plugins.placement_keys")


class PlacementKeyFilter:
    properties_validation = _PARAMETERS

    @answers
    def do_filter(self, hosts: list[str], vm: str, args: Properties) -> list[str]:
        """Refuse hosts without room for the VM, and those that the operator's placement keys refuse.

        Room is memory for the VM and placement_overhead MiB beside it (default 1024), both not handed out
        and physically free. A score must exceed placement_final (default -10). Use it with
        PlacementKeyWeight, with the same parameters.
        """
        snapshot = snapshot_with(vm)
        request = Request((vm,), tuple(hosts))
        verdicts = placing.filter_hosts(snapshot, request, _settings(args), explained=explains())
        log_refusals("PlacementKeyFilter", vm, verdicts, snapshot)
        return [verdict.host for verdict in verdicts if verdict.accepted]


class PlacementKeyWeight:
    properties_validation = f"{_PARAMETERS};placement_tie=(random|engine)"

    @answers
    def do_score(self, hosts: list[str], vm: str, args: Properties) -> list[tuple[str, int]]:
        """Prefer the hosts that the operator's placement keys find first; among these the customer's decide.

        Rounds go from placement_initial (default 80) to placement_final (-10) in placement_steps (10). It
        needs a factor above the sum of all others times the number of hosts, or their ranks outvote it.
        placement_tie says who decides between hosts that are equally good: the lot (random, default) or the
        other weights (engine).
        """
        snapshot = snapshot_with(vm)
        drawn = () if (args or {}).get("placement_tie") == "engine" else _drawn(hosts)
        request = Request((vm,), tuple(hosts))
        weights = placing.rank_hosts(
            snapshot, request, _settings(args), tie_order=drawn, explained=explains()
        )
        log_ranks("PlacementKeyWeight", vm, weights, snapshot)
        return [(weight.host, weight.rank) for weight in weights]


def _drawn(hosts: list[str]) -> list[str]:
    """The hosts in an order drawn by lot."""
    lots = memoryview(os.urandom(8 * len(hosts))).cast("Q")
    return [hosts[at] for at in sorted(range(len(hosts)), key=lots.__getitem__)]


def _settings(args: Properties) -> Settings:
    """Read the parameters; the engine has checked each by itself."""
    return _parsed(tuple(sorted((name, value) for name, value in (args or {}).items() if name in _NAMES)))


_NAMES = frozenset(part.partition("=")[0] for part in _PARAMETERS.split(";"))


@lru_cache(maxsize=64)
def _parsed(given: tuple[tuple[str, str], ...]) -> Settings:
    """Numbers that cannot be together are the defaults, and told: a placement must not fail by them."""
    try:
        settings = read_settings(dict(given))
    except ValueError as error:
        _log.warning("the policy's placement parameters are not used: %s", error)
        return DEFAULTS
    if settings.refuses_keyless_vms:
        _log.warning("placement_final is %g: VMs without placement keys find no host", float(settings.final))
    return settings
