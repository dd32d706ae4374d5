"""Compares an answer with the right one, each part as the vector format asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from tools.conformance.vector import Vector

Tiers = Sequence[Sequence[str]]


def difference_of_sets(vector: Vector, key: str, answer: object) -> str | None:
    """What is wrong with one part of an answer, whatever the order of its lists; None if it is right."""
    wanted = vector.right_answer[key]
    return None if _unordered(answer) == _unordered(wanted) else f"{key} {answer!r} instead of {wanted!r}"


def difference_of_tiers(vector: Vector, answer: Tiers) -> str | None:
    """What is wrong with an order of hosts, best first, ties together; None if it is right."""
    wanted = vector.right_answer["tiers"]
    right = _refines(answer, wanted) if vector.ties_may_be_refined else _sorted(answer) == _sorted(wanted)
    return None if right else f"tiers {answer!r} instead of {wanted!r}"


def tiers_of(ranks: Mapping[str, int]) -> Tiers:
    """Hosts by rank, best first, ties together."""
    return [[host for host in ranks if ranks[host] == rank] for rank in sorted(set(ranks.values()))]


def _unordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unordered(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((_unordered(inner) for inner in value), key=repr)
    return str(value) if isinstance(value, str) else value


def _sorted(tiers: Tiers) -> list[list[str]]:
    return [sorted(tier) for tier in tiers]


def _refines(answer: Tiers, wanted: Tiers) -> bool:
    """Whether the order between the tiers wanted holds; a tier may be split."""
    position = {host: number for number, tier in enumerate(answer) for host in tier}
    if sorted(position) != sorted(host for tier in wanted for host in tier):
        return False
    return all(
        max(position[host] for host in better) < min(position[host] for host in worse)
        for better, worse in pairwise(wanted)
    )
