"""The product's answers: those of its own units, and of its copies of the engine's."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ovirt_placement.rules.verdict import Request
from tests.engine.question import Question

_RULES = "ovirt_placement.rules."


def request_of(question: Question) -> Request:
    snapshot = question.snapshot
    cluster = snapshot.vm_by_id[question.vms[0]].cluster
    return Request(
        vms=question.vms,
        candidate_hosts=question.hosts,
        ignore_hard_vm_affinity=question.request.get("ignore_hard_vm_affinity", False),
        parameters=snapshot.cluster_by_id[cluster].scheduling_properties,
    )


def accepted(module: str) -> Callable[[Question], Any]:
    """The hosts that a filter accepts."""

    def answer(question: Question) -> list[str]:
        verdicts = import_module(_RULES + module).filter_hosts(question.snapshot, request_of(question))
        return [verdict.host for verdict in verdicts if verdict.accepted]

    return answer


def scores(module: str) -> Callable[[Question], Any]:
    """What a copy of one of the engine's weights says of hosts."""

    def answer(question: Question) -> dict[str, int]:
        return dict(import_module(_RULES + module).scores(question.snapshot, request_of(question)))

    return answer


def ranks(module: str) -> Callable[[Question], Any]:
    """The ranks that a weight of ours gives to hosts."""

    def answer(question: Question) -> dict[str, int]:
        weights = import_module(_RULES + module).rank_hosts(question.snapshot, request_of(question))
        return {weight.host: weight.rank for weight in weights}

    return answer


def best_by_rank(question: Question) -> str | None:
    """The host that the rank selector chooses."""
    selector = import_module(_RULES + "rank_selector")
    weights: dict[str | None, dict[str, int]] = {}
    for unit, host, weight in question.request["records"]:
        of_unit = weights.setdefault(unit, {})
        of_unit[host] = of_unit.get(host, 0) + weight
    factors = dict(question.request["units"])
    return selector.order_hosts(question.request["hosts"], weights, factors)[0].host
