"""The engine's own verdicts and hand-checked arithmetic, to hold the rules against: `make conformance`.

`python -m tools.conformance DIR` shows how far our answers agree with a folder of vectors: states with a
question and the engine's answer to it. For each kind of vector: the rule that our plugins and commands call,
and how its answer is judged.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.affinity import filters, weights
from ovirt_placement.rules.catalogue import find_violations, order
from ovirt_placement.rules.elements.placement import SnapshotPlacement
from ovirt_placement.rules.elements.ranks import order_hosts
from ovirt_placement.rules.elements.verdict import Request, Verdict, Weight
from ovirt_placement.rules.engine_affinity import gains, tiers
from ovirt_placement.rules.ha import OVER_UTILIZATION, Measure, balance_ha_vms, rank_hosts
from tools import key_vectors
from tools.engine_conformance import answers
from tools.engine_conformance.questions import Question


@dataclass(frozen=True)
class Vector(Question):
    """A question with the engine's answer, as a file has them."""

    name: str
    content: dict[str, Any]

    @property
    def parameters(self) -> Mapping[str, str]:
        """Those of the unit that the request carries: the engine counts VMs."""
        scale_down = self.request.get("scale_down")
        scaled = {} if scale_down is None else {"ha_weight_scale_down": str(scale_down)}
        return {"ha_measure": "vms", **scaled}

    @property
    def right_answer(self) -> dict[str, Any]:
        """The recommended answer where the engine's own is a bug, else the engine's."""
        return dict(self.content.get("recommended") or self.content["expected"])


def load(folder: Path) -> Iterator[Vector]:
    """All vectors of a folder and those below it, by path."""
    for path in sorted(folder.rglob("*.json")):
        content = json.loads(path.read_text())
        kind, request = content.get("kind", path.parent.name), content.get("request", {})
        state = {key: value for key, value in content.items() if key in Snapshot.__struct_fields__}
        yield Vector(kind, state, request, path.stem, content)


#: What is wrong with our answer to a vector; None if it is right.
Judgement = Callable[[Vector], str | None]
Filter = Callable[[Snapshot, Request], tuple[Verdict, ...]]
Ranking = Callable[[Snapshot, Request], tuple[Weight, ...]]
Tiers = Sequence[Sequence[str]]


def _difference_of_sets(vector: Vector, key: str, answer: object) -> str | None:
    """What is wrong with one part of an answer, whatever the order of its lists; None if it is right."""
    wanted = vector.right_answer[key]
    return None if _unordered(answer) == _unordered(wanted) else f"{key} {answer!r} instead of {wanted!r}"


def _difference_of_tiers(vector: Vector, answer: Tiers) -> str | None:
    """What is wrong with an order of hosts, best first, ties together; None if it is right."""
    wanted = vector.right_answer["tiers"]
    equal = [sorted(tier) for tier in answer] == [sorted(tier) for tier in wanted]
    may_refine = "ties may be refined" in (vector.content.get("may_differ") or "").lower()
    right = _refines(answer, wanted) if may_refine else equal
    return None if right else f"tiers {answer!r} instead of {wanted!r}"


def _unordered(value: object) -> object:
    if isinstance(value, dict):
        return {key: _unordered(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return sorted((_unordered(inner) for inner in value), key=repr)
    return str(value) if isinstance(value, str) else value


def _refines(answer: Tiers, wanted: Tiers) -> bool:
    """Whether the order between the tiers wanted holds; a tier may be split."""
    position = {host: number for number, tier in enumerate(answer) for host in tier}
    if sorted(position) != sorted(host for tier in wanted for host in tier):
        return False
    return all(
        max(position[host] for host in better) < min(position[host] for host in worse)
        for better, worse in pairwise(wanted)
    )


def _filter(filter_hosts: Filter) -> Judgement:
    return lambda vector: _difference_of_sets(vector, "hosts", answers.accepted(filter_hosts)(vector))


def _weight(rank_hosts: Ranking) -> Judgement:
    def judge(vector: Vector) -> str | None:
        ranks = answers.ranks(rank_hosts)(vector)
        tiers = [[host for host in ranks if ranks[host] == rank] for rank in sorted(set(ranks.values()))]
        return _difference_of_tiers(vector, tiers)

    return judge


def _ha_balance(vector: Vector) -> str | None:
    """Whether the move chosen is one of those admissible."""
    cluster = vector.request["cluster"]
    up = tuple(host.id for host in vector.snapshot.hosts_of_cluster.get(cluster, ()) if host.up)
    move = balance_ha_vms(
        vector.snapshot,
        cluster,
        tuple(vector.request.get("candidate_hosts", up)),
        vector.request.get("over_utilization") or OVER_UTILIZATION,
        Measure.VMS,
    )
    admissible = vector.right_answer["admissible"]
    right = any(move and move.vm == one["vm"] and {*move.hosts} == {*one["hosts"]} for one in admissible)
    right = right or (move is None and not admissible)
    found = "no move" if move is None else repr(move)
    return None if right else f"{found} instead of one of {admissible!r}"


def _ha_check(vector: Vector) -> str | None:
    """The vectors ask about the failure of one host."""
    found = answers.ha_check(vector)
    return _difference_of_sets(vector, "safe", found["safe"]) or _difference_of_sets(
        vector, "failed_hosts", found["failed"]
    )


def _rank_selector(vector: Vector) -> str | None:
    weights: dict[str | None, dict[str, int]] = {}
    for record in vector.request["weights"]:
        weights.setdefault(record["unit"], {})[record["host"]] = record["weight"]
    factors = {unit["id"]: unit["factor"] for unit in vector.request["units"]}
    hosts = [host.id for host in vector.snapshot.hosts_of_cluster[vector.request["cluster"]]]
    best = order_hosts(hosts, weights, factors)[0].host
    allowed = vector.right_answer["best_any_of"]
    return None if best in allowed else f"best {best!r} instead of one of {allowed!r}"


def _conflicts(vector: Vector) -> str | None:
    found = answers.conflicts(vector)
    savable = all(conflict["savable"] for conflict in found)
    return _difference_of_sets(vector, "conflicts", found) or _difference_of_sets(vector, "savable", savable)


def _schedulable(vector: Vector, vm: str) -> set[str]:
    """Where a VM may go other than its own host: as the vector says, or by our two affinity filters."""
    snapshot, reported = vector.snapshot, vector.request.get("schedulable")
    known = snapshot.vm_by_id[vm]
    if reported is not None:
        return {*reported.get(vm, reported.get("*", ()))} - {known.host}
    up = tuple(one.id for one in snapshot.hosts_of_cluster[known.cluster] if one.up and one.id != known.host)
    for filter_hosts in (filters.filter_by_vms, filters.filter_by_hosts):
        verdicts = filter_hosts(snapshot, Request((vm,), up))
        up = tuple(verdict.host for verdict in verdicts if verdict.accepted)
    return {*up}


def _best_host(vector: Vector, vm: str) -> str | None:
    """The host that the scheduler would choose: as the vector says, or by our filters and weights."""
    reported: Mapping[str, str] | None = vector.request.get("best_host")
    if reported is not None:
        return reported.get(vm)
    hosts = order(vector.snapshot, vector.snapshot.vm_by_id[vm]).hosts
    return hosts[0].host if hosts else None


def _candidates(vector: Vector, cluster: str) -> Tiers:
    """The VMs of violated rules that the engine's enforcer may migrate, as it tries them, each once."""
    snapshot = vector.snapshot
    violated = [one.constraint for one in find_violations(snapshot, cluster)]
    movable = {vm.id for vm in snapshot.vms if vm.movable}
    seen: set[str] = set()
    found = []
    for hard, tier in tiers(violated, SnapshotPlacement(snapshot), movable):
        valid = tuple(
            vm
            for vm in tier
            if vm not in seen
            and vm in movable
            and _schedulable(vector, vm)
            and (hard or gains(snapshot, vm, _best_host(vector, vm)))
        )
        seen.update(valid)
        found += [valid] if valid else []
    return found


def _enforcer_candidates(vector: Vector) -> str | None:
    """The order as a whole; where the engine leaves it open, who may be first and who is in it.

    Vectors do not say in which order the engine comes upon equal crowds, which hangs on their hosts' ids.
    """
    found = _candidates(vector, vector.request["cluster"])
    if (wanted := vector.right_answer.get("tiers")) is not None:
        return None if _refines(found, wanted) else f"tiers {found!r} instead of {wanted!r}"
    first = found[0] if found else ()
    if not set(first) <= set(vector.right_answer["first_any_of"]):
        return f"first {first!r} instead of some of {vector.right_answer['first_any_of']!r}"
    return _difference_of_sets(vector, "members", [vm for tier in found for vm in tier])


def _enforcer_cycle(vector: Vector) -> str | None:
    """Who is migrated in each cluster: one of those that come first."""
    for wanted in vector.right_answer["migrations"]:
        vms = next(iter(_candidates(vector, wanted["cluster"])), ())
        if bool(vms) is not bool(wanted["count"]) or not set(vms) <= set(wanted["any_of"]):
            return f"{wanted['cluster']}: one of {vms!r} instead of {wanted['any_of']!r}"
    return None


JUDGEMENTS: Mapping[str, Judgement] = {
    "vm_affinity_filter": _filter(filters.filter_by_vms),
    "vm_to_host_filter": _filter(filters.filter_by_hosts),
    "vm_affinity_weight": _weight(weights.rank_by_vms),
    "vm_to_host_weight": _weight(weights.rank_by_hosts),
    "ha_weight": _weight(rank_hosts),
    "ha_balance": _ha_balance,
    "ha_check": _ha_check,
    "rank_selector": _rank_selector,
    "conflicts": _conflicts,
    # These vectors are about hard positive groups alone.
    "unified_groups": lambda vector: _difference_of_sets(vector, "groups", answers.unified(vector)),
    "enforcer_candidates": _enforcer_candidates,
    "enforcer_cycle": _enforcer_cycle,
    "keys": lambda vector: key_vectors.judge(vector.content),
}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="conformance", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="vectors, at any depth")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        parser.error(f"{folder}: no such folder")
    agree = not_yet = 0
    differing: dict[str, str] = {}
    for vector in load(folder):
        if vector.kind not in JUDGEMENTS:
            not_yet += 1
            continue
        try:
            why = JUDGEMENTS[vector.kind](vector)
        except Exception as error:  # one vector that cannot be answered must not hide the others
            why = f"{type(error).__name__}: {error}"
        agree += why is None
        differing |= {vector.name: why} if why else {}
    for name, why in differing.items():
        print(f"{name}: {why}")
    print(f"agree {agree}, differ {len(differing)}, not yet {not_yet}")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
