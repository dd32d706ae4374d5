"""Orders what can go straight to its host: one legal move after another, no VM moved twice."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping

from ovirt_placement.planning.problem.placement import ProblemPlacement
from ovirt_placement.planning.problem.problem import Move


def direct_moves(
    placement: ProblemPlacement, where: Mapping[str, str], chance: random.Random | None = None
) -> list[Move]:
    """Legal moves that bring as many VMs as may go straight to their hosts in `where`; changes `placement`.

    What repairs a hard rule goes first; or, to see whether that fares better, all go as it happens.
    """
    waiting = {vm for vm, host in where.items() if placement.where(vm) != host}
    asked = sorted(waiting, key=lambda vm: (not _repairs(placement, vm), vm))
    moves: list[Move] = []
    while asked:
        if chance is not None:
            chance.shuffle(asked)
        next_round: dict[str, None] = {}
        for vm in asked:
            move = straight(placement, vm, where) if vm in waiting else None
            if move is not None:
                source = placement.where(vm)
                placement.move(move.vms, move.host)
                moves.append(move)
                waiting.difference_update(move.vms)
                next_round.update(dict.fromkeys(_woken(placement, move, source, waiting, where)))
        asked = [vm for vm in next_round if vm in waiting]
    return moves


def _repairs(placement: ProblemPlacement, vm: str) -> bool:
    return any(goal.hard and placement.violated(goal) for goal in placement.problem.goals_of.get(vm, ()))


def straight(placement: ProblemPlacement, vm: str, where: Mapping[str, str]) -> Move | None:
    host = where[vm]
    if placement.legal(vm, host):
        return Move((vm,), host)
    vms = placement.closure(vm)
    if (
        len(vms) > 1
        and all(where.get(member) == host for member in vms)
        and placement.legal_closure(vms, host)
    ):
        return Move(vms, host)
    return None


def closures(placement: ProblemPlacement, vms: Iterable[str]) -> list[tuple[str, ...]]:
    """What of these VMs can only move at once, or may, each closure once."""
    found = dict.fromkeys(placement.closure(vm) for vm in vms)
    return [closure for closure in found if len(closure) > 1]


def _woken(
    placement: ProblemPlacement, move: Move, source: str, waiting: set[str], where: Mapping[str, str]
) -> Iterator[str]:
    """VMs that a move may have freed the way for: those bound for the host it left, and its peers."""
    problem = placement.problem
    between = (goal for vm in move.vms for goal in problem.goals_between(vm, source, move.host))
    goals = {goal.number: goal for goal in between if goal.hard}.values()
    peers = {vm for goal in goals if goal.sum is None for vm in goal.vms}
    left = {source}.union(*(goal.sum.hosts for goal in goals if goal.sum is not None))
    yield from sorted(vm for vm in waiting if where[vm] in left or vm in peers)
