"""Turns what speaks against each host into ranks: 0 for the best, ties together, none left out.

The engine's selector looks at the order of weights only, and takes a host without one for the best
(docs/rules.md). So a weight is a small integer, and every host asked about gets one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from operator import itemgetter
from typing import Any

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.verdict import Reason, ReasonKind, Weight

#: A dedicated failover host: no weight prefers it.
FAILOVER_HOST = ReasonKind("failover_host", "kept free for a failover")

_KEPT_FREE = (Reason(FAILOVER_HOST),)


def ranked(
    snapshot: Snapshot,
    hosts: Iterable[str],
    burdens: Mapping[str, Any],
    reasons: Mapping[str, tuple[Reason, ...]],
    *,
    unburdened: Any,
) -> tuple[Weight, ...]:
    """Rank hosts by their burdens, the smallest first, in the order asked.

    A host without a burden of its own has the `unburdened` one. Dedicated failover hosts come after
    all others.
    """
    known = snapshot.host_by_id
    asked = [(host, host in known and known[host].failover, burdens.get(host, unburdened)) for host in hosts]
    order = {key: rank for rank, key in enumerate(sorted({(last, burden) for _, last, burden in asked}))}
    return tuple(
        Weight(host, order[last, burden], reasons.get(host, ()) + (_KEPT_FREE if last else ()))
        for host, last, burden in asked
    )


def competition_ranks(burdens: Mapping[str, Any]) -> dict[str, int]:
    """What the engine's own affinity weights say: 1, and how many hosts are better; the best host first.

    Source: ListUtils.forEachWithRanks.
    """
    counts = Counter(burdens.values())
    order = sorted(counts)
    rank_of = dict(zip(order, accumulate(map(counts.__getitem__, order), initial=1), strict=False))
    ranks = ((host, rank_of[burden]) for host, burden in burdens.items())
    return dict(sorted(ranks, key=itemgetter(1)))
