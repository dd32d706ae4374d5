"""The order in which the engine comes upon hosts with the same points: that of a Java HashMap of their ids.

Source: RankSelectorPolicyUnit sorts the entries of a HashMap<Guid, Integer>, and the sort is stable;
java.util.HashMap, java.util.UUID.hashCode.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID


def in_hash_order(ids: Sequence[str]) -> list[str]:
    """Order ids by their place in the table; those that share one, as all that are no UUIDs do, stay put."""
    places = 16
    while len(ids) > places * 3 // 4:
        places *= 2
    return sorted(ids, key=lambda name: _hash(name) & (places - 1))


def _hash(name: str) -> int:
    try:
        bits = UUID(name).int
    except ValueError:
        return 0
    half = (bits >> 64) ^ bits & (1 << 64) - 1
    code = (half >> 32) ^ half & 0xFFFFFFFF
    return code ^ (code >> 16)
