"""Units of the engine that we have no copy of, as docs/rules.md and the references describe them.

What they do is written down here so that it is known to be true: our answers leave them out.
"""

from __future__ import annotations

from collections import Counter
from math import floor
from struct import pack, unpack
from typing import Any

from tools.engine_conformance.question import Question
from tools.engine_conformance.states import State

_GUEST_OVERHEAD_MB = 65
_BEST_WEIGHT, _BEST_SCORE = 1000, 3400
#: How much worse than its present host one may be for the engine's own VM.
_SCORE_MARGIN = 800


def _parameter(question: Question, name: str, default: int) -> int:
    vm = _vms(question)[0]
    cluster = next(one for one in question.state["clusters"] if one["id"] == vm["cluster"])
    return int(cluster.get("scheduling_properties", {}).get(name, default))


def _vms(question: Question) -> list[State]:
    by_id = {vm["id"]: vm for vm in question.state["vms"]}
    return [by_id[vm] for vm in question.vms]


def _hosts(question: Question) -> dict[str, State]:
    told = question.request.get("told", {})
    return {host["id"]: {**host, **told.get(host["id"], {})} for host in question.state["hosts"]}


def hosted_engine_hosts(question: Question) -> list[str]:
    """The engine's own VM goes to hosts that are set up for it, with a score not much below its host's."""
    hosts = _hosts(question)
    left = list(question.hosts)
    for vm in _vms(question):
        if vm["hosted_engine"]:
            own = hosts[vm["host"]] if vm["host"] else {}
            least = max(0, own.get("hosted_engine_score", 0) - _SCORE_MARGIN)
            if own.get("hosted_engine_global_maintenance"):
                least = 0
            left = [
                host
                for host in left
                if hosts[host].get("hosted_engine_configured")
                and hosts[host].get("hosted_engine_score", 0) > least
            ]
    return left


def hosted_engine_weight(question: Question) -> dict[str, int]:
    """The higher the score, the better, in a thousand steps; all alike for other VMs."""
    if not any(vm["hosted_engine"] for vm in _vms(question)):
        return dict.fromkeys(question.hosts, 1)
    hosts, ratio = _hosts(question), _single(_BEST_WEIGHT / _BEST_SCORE)
    return {
        host: _BEST_WEIGHT - floor(_single(hosts[host].get("hosted_engine_score", 0) * ratio) + 0.5)
        for host in question.hosts
    }


def _single(number: float) -> float:
    return float(unpack("f", pack("f", number))[0])


def hosted_engine_spares(question: Question) -> list[str]:
    """Room for the engine's own VM is kept on hosts, if no more have it than the policy asks for."""
    wanted = _parameter(question, "HeSparesCount", 0)
    engine = next((vm for vm in question.state["vms"] if vm["hosted_engine"]), None)
    vms, hosts = _vms(question), _hosts(question)
    if wanted == 0 or engine is None or engine["cluster"] != vms[0]["cluster"] or engine in vms:
        return list(question.hosts)
    need_mb = engine["memory_mb"] + _GUEST_OVERHEAD_MB
    spares, full = [], []
    for name in question.hosts:
        host = hosts[name]
        usable = host.get("hosted_engine_active") and host.get("hosted_engine_score", 0) != 0
        if usable and not host.get("hosted_engine_local_maintenance") and name != engine["host"]:
            coming = sum(vm["memory_mb"] + _GUEST_OVERHEAD_MB for vm in vms if vm["host"] != name)
            if host["free_mb"] > coming + need_mb:
                spares.append(name)
            elif host["free_mb"] > need_mb:
                spares.append(name)
                full.append(name)
    return [host for host in question.hosts if host not in full or len(spares) > wanted]


def least_weights(question: Question) -> list[str]:
    """The hosts with the least sum of weights times factors; those that nobody mentions are left out."""
    factors = dict(question.request["units"])
    sums: Counter[str] = Counter()
    for unit, host, weight in question.request["records"]:
        sums[host] += factors.get(unit, 1) * weight
    least = min(sums.values())
    return [host for host, total in sums.items() if total == least]


def one_of_these(question: Question, engine: Any, ours: list[str]) -> bool:
    return engine in ours
