"""Puts moves into a legal sequence: straight ones first, then the fewest migrations for what blocks itself.

A swap goes through a third host, a bystander makes room. The search is best-first (A*) over the hosts of the
VMs concerned: a way is judged by its migrations so far and the VMs that are not yet where they should be.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, takewhile
from math import inf

from ovirt_placement.planning.plan import ALWAYS_CHECKED, Deadline
from ovirt_placement.planning.problem.bound import BestFirst, closures
from ovirt_placement.planning.problem.ends import score, value
from ovirt_placement.planning.problem.placement import ProblemPlacement, are_legal, placement_after
from ovirt_placement.planning.problem.problem import Move, Problem
from ovirt_placement.rules.elements.assignment import Budget


def direct_moves(placement: ProblemPlacement, where: Mapping[str, str]) -> list[Move]:
    """Legal moves that bring as many VMs as may go straight to their hosts in `where`; changes `placement`.

    What repairs a hard rule goes first. Where more move than there may be time to check, rules are repaired
    one after another, those first that take few VMs.
    """
    waiting = {vm for vm, host in where.items() if placement.where(vm) != host}
    asked = _in_order(placement, waiting)
    moves: list[Move] = []
    while asked:
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


def _in_order(placement: ProblemPlacement, waiting: Collection[str]) -> list[str]:
    """VMs by the rule that they repair, if by names alone a part of them might repair next to nothing."""
    goals_of = placement.problem.goals_of
    violated = {vm: [one for one in goals_of.get(vm, ()) if placement.violated(one)] for vm in waiting}
    if len(waiting) <= ALWAYS_CHECKED:
        return sorted(waiting, key=lambda vm: (not any(one.hard for one in violated[vm]), vm))
    vms_of = Counter(one.number for goals in violated.values() for one in goals)
    ranks = {
        vm: min(((one.level, vms_of[one.number], one.number) for one in goals), default=(inf,))
        for vm, goals in violated.items()
    }
    return sorted(waiting, key=lambda vm: (ranks[vm], vm))


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


#: A cluster with no more VMs that may move, and no more hosts, is searched as a whole.
_FEW_VMS = 9
_FEW_HOSTS = 6
#: In larger ones: how many VMs of a full host may step aside, and how many hosts take VMs that do.
_BYSTANDERS = 3
_SPARE_HOSTS = 3
_NEARLY_SPARE_HOSTS = 2


@dataclass(frozen=True, slots=True)
class OrderingScope:
    """What may be moved where, straight moves aside."""

    vms: tuple[str, ...]
    hosts: Mapping[str, tuple[str, ...]]
    #: Hosts that VMs may have to leave for others to come; elsewhere they are in no VM's way at first.
    leave: frozenset[str]


def whole(placement: ProblemPlacement) -> OrderingScope | None:
    """All that may move, if that is little."""
    problem = placement.problem
    if len(problem.hosts) > _FEW_HOSTS or len(problem.memory_mb) > 3 * _FEW_VMS:
        return None
    vms = tuple(sorted(vm for vm in problem.memory_mb if problem.targets[vm]))
    if len(vms) > _FEW_VMS:
        return None
    leave = frozenset((*problem.hosts, *problem.where.values()))
    return OrderingScope(vms, dict.fromkeys(vms, problem.hosts), leave)


def around(placement: ProblemPlacement, where: Mapping[str, str], stuck: Collection[str]) -> OrderingScope:
    """VMs that do not get to their hosts, those that could make room for them, and hosts to step aside to."""
    problem = placement.problem
    bound_for = {where[vm] for vm in stuck}
    near = bound_for | {placement.where(vm) for vm in stuck}
    leave = bound_for | {host for vm in stuck for host in _nearly_spare_hosts(placement, vm, near)}
    members = [peer for vm in sorted(stuck) for peer in _gathered(placement, vm)]
    vms = dict.fromkeys((*sorted(stuck), *members))
    for host in sorted(leave):
        coming = [vm for vm in stuck if where[vm] == host] if host in bound_for else stuck
        vms.update(dict.fromkeys(_bystanders(placement, host, coming, vms)))
    hosts = {}
    for vm in vms:
        peers = {placement.where(peer) for peer in _gathered(placement, vm)}
        nearby = [host for host in problem.hosts if host in leave | near | peers | {problem.where[vm]}]
        hosts[vm] = (*nearby, *_spare_hosts(placement, vm, near | leave))
    leave |= {placement.where(vm) for vm in members}
    return OrderingScope(tuple(vms), hosts, frozenset(leave))


def _gathered(placement: ProblemPlacement, vm: str) -> tuple[str, ...]:
    """Those that a VM may have to move with, or to join."""
    goals = placement.problem.goals_of.get(vm, ())
    return tuple(peer for goal in goals if goal.hard and goal.gathers for peer in goal.vms if peer != vm)


def _bystanders(
    placement: ProblemPlacement, host: str, coming: Collection[str], known: Collection[str]
) -> list[str]:
    """VMs that may leave a full host: the smallest of those that make room alone, then the largest others."""
    problem = placement.problem
    needed_mb = min(problem.memory_mb[vm] for vm in coming) - placement.free_mb(host)
    able = (vm for vm in placement.on(host) if needed_mb > 0 and vm not in known and vm in problem.memory_mb)
    missing = {vm: needed_mb - problem.memory_mb[vm] for vm in able}
    ranked = sorted(missing, key=lambda vm: (missing[vm] > 0, abs(missing[vm]), vm))
    return list(islice((vm for vm in ranked if problem.targets[vm]), _BYSTANDERS))


def _spare_hosts(placement: ProblemPlacement, vm: str, near: Collection[str]) -> list[str]:
    """Hosts out of the way that would take a VM now, those with the most room first."""
    needed_mb = placement.problem.memory_mb[vm]
    roomy = sorted(placement.problem.hosts, key=lambda host: -placement.free_mb(host))
    fitting = takewhile(lambda host: placement.free_mb(host) >= needed_mb, roomy)
    return list(
        islice((one for one in fitting if one not in near and placement.legal(vm, one)), _SPARE_HOSTS)
    )


def _nearly_spare_hosts(placement: ProblemPlacement, vm: str, near: Collection[str]) -> list[str]:
    """Where no host out of the way would take a VM: those that lack the least room for that."""
    if _spare_hosts(placement, vm, near):
        return []
    targets = placement.problem.targets[vm].difference(near, (placement.where(vm),))
    full = (host for host in targets if placement.free_mb(host) < placement.problem.memory_mb[vm])
    return sorted(full, key=lambda host: (-placement.free_mb(host), host))[:_NEARLY_SPARE_HOSTS]


#: The hosts of the VMs in scope, in the same order.
State = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A legal way from the placement that the search began with."""

    moves: tuple[Move, ...]
    #: Whether it leads all VMs of the scope to their hosts; else it is the way to the fewest violated rules.
    arrives: bool
    #: Where it arrives: no way is shorter that keeps to the scope. Else: none arrives.
    exhausted: bool


#: The hosts, and whether they were looked at before: straight moves are tried at first, and the others, that
#: cost one more, when their turn comes again.
_Node = tuple[State, bool]


class DetourSearch:
    """Leaves the placement as it was."""

    def __init__(self, placement: ProblemPlacement, where: Mapping[str, str], scope: OrderingScope) -> None:
        self._placement = placement
        self._where = where
        self._scope = scope
        self._vms = scope.vms
        self._index = {vm: at for at, vm in enumerate(scope.vms)}
        self._elsewhere = {vm: host for vm, host in where.items() if vm not in self._index}
        self._root: State = tuple(map(placement.where, scope.vms))
        away = self._away(self._root)
        self._search: BestFirst[_Node, Move | None] = BestFirst((self._root, False), (away, away, 0))
        homes = placement.problem.where
        self._intended = self._quality_at(tuple(where.get(vm, homes[vm]) for vm in scope.vms))
        self._place(self._root)

    def run(self, deadline: Deadline, budget: Budget) -> Found:
        """Each look at a placement takes one of `budget`."""
        search = self._search
        best = ((*score(self._placement)[:4], 0, self._away(self._root)), self._root)
        while budget.left > 0 and not deadline.over and (node := search.pop_next()) is not None:
            state, again = node
            estimate, away, memory_mb = search.rank
            (migrations,) = search.cost(node)
            budget.spend()
            self._place(state)
            if not again:
                if not away and self._acceptable(state):
                    return self._found(state, arrives=True, exhausted=True)
                if self._placement.violations()[0] <= best[0][0]:
                    best = min(best, ((*score(self._placement)[:4], migrations, away), state))
                search.add(node, None, (state, True), (migrations,), (estimate + 1, away, memory_mb))
            for move in self._others(state) if again else self._straight(state):
                reached, cost = self._after(state, move), migrations + len(move.vms)
                if search.cheaper((reached, False), (cost,)):
                    left = self._away(reached)
                    moved_mb = memory_mb + sum(self._placement.problem.memory_mb[vm] for vm in move.vms)
                    search.add(node, move, (reached, False), (cost,), (cost + left, left, moved_mb))
        return self._found(best[1], arrives=False, exhausted=search.exhausted)

    def _found(self, state: State, *, arrives: bool, exhausted: bool) -> Found:
        self._place(self._root)
        moves = (move for move in self._search.steps_to((state, False)) if move is not None)
        return Found(tuple(moves), arrives, exhausted)

    # -- moves

    def _straight(self, state: State) -> Iterator[Move]:
        for vm, host in zip(self._vms, state, strict=True):
            if self._where.get(vm, host) != host:
                move = straight(self._placement, vm, self._where)
                if move is not None and self._index.keys() >= set(move.vms):
                    yield move

    def _others(self, state: State) -> Iterator[Move]:
        groups = closures(self._placement, self._vms)
        for vm, present, first in zip(self._vms, state, self._root, strict=True):
            able = present != first or present in self._scope.leave
            for host in self._scope.hosts[vm] if able else ():
                if host != self._where.get(vm) and self._placement.legal(vm, host):
                    yield Move((vm,), host)
        for vms in groups:
            for host in self._scope.hosts[vms[0]] if self._index.keys() >= set(vms) else ():
                if self._placement.legal_closure(vms, host):
                    yield Move(vms, host)

    def _after(self, state: State, move: Move) -> State:
        moving = {self._index[vm] for vm in move.vms}
        return tuple(move.host if at in moving else host for at, host in enumerate(state))

    # -- placements

    def _place(self, state: State) -> None:
        self._placement.put(dict(zip(self._vms, state, strict=True)))

    def _away(self, state: State) -> int:
        return sum(self._where.get(vm, host) != host for vm, host in zip(self._vms, state, strict=True))

    def _acceptable(self, state: State) -> bool:
        """Whether VMs that stepped aside may stay there: the end is as good as that which was chosen."""
        strayed = {
            host
            for vm, host in zip(self._vms, state, strict=True)
            if vm not in self._where and host != self._placement.problem.where[vm]
        }
        return not strayed or self._quality_at(state, strayed) <= self._intended

    def _quality_at(self, state: State, strayed: Collection[str] = ()) -> tuple[object, ...]:
        """Of the end, once all other VMs are where they should be as well."""
        placement = self._placement
        self._place(state)
        before = {vm: placement.where(vm) for vm in self._elsewhere}
        placement.put(self._elsewhere)
        lacking = any(placement.free_mb(host) < 0 for host in strayed)
        quality = (lacking, *score(placement)[:4])
        placement.put(before)
        return quality


#: Standings that searches look at, a millisecond each: of a small cluster as a whole; else in all.
_WHOLE = 20_000
_PARTS = 4_000
#: And in a search around a few VMs: at first, for those of a knot, and for all that are stuck.
_A_LITTLE, _MORE, _MOST = 100, 600, 3_000
#: VMs that are searched together: all that are stuck, or of one knot.
_MOST_TOGETHER, _OF_A_KNOT = 8, 5


def sequence(problem: Problem, where: Mapping[str, str], deadline: Deadline) -> tuple[Move, ...]:
    """Legal moves with few migrations; where every VM gets straight to its host there are no fewer."""
    placement = ProblemPlacement(problem)
    moves = direct_moves(placement, where)
    if not _stuck(placement, where):
        return tuple(moves)
    searched, scope = Found((), arrives=False, exhausted=False), whole(ProblemPlacement(problem))
    if scope is not None:
        search = DetourSearch(ProblemPlacement(problem), where, scope)
        searched = search.run(deadline.within(0.5), Budget(_WHOLE))
    found = searched.moves
    if not searched.exhausted:
        moves.extend(_disentangled(placement, where, deadline, Budget(_PARTS)))
        found = min((tuple(moves), found), key=lambda one: _merit(problem, one, where))
    # Of those that do not arrive, some moves were for these alone.
    return shortened(problem, found, deadline) if _stuck(placement_after(problem, found), where) else found


def _merit(problem: Problem, moves: Sequence[Move], where: Mapping[str, str]) -> tuple[object, ...]:
    """What is left violated, then how many VMs are stuck, then the migrations."""
    end = placement_after(problem, moves)
    return *score(end)[:4], len(_stuck(end, where)), sum(len(move.vms) for move in moves)


def _disentangled(
    placement: ProblemPlacement, where: Mapping[str, str], deadline: Deadline, budget: Budget
) -> Iterator[Move]:
    """Moves that bring one knot after another to its hosts, those that take little search first."""
    while stuck := _stuck(placement, where):
        knots = list(dict.fromkeys(_knot(placement, where, stuck, vm) for vm in sorted(stuck)))
        tries = [(knot, most) for most in (_A_LITTLE, _MORE) for knot in knots]
        if len(stuck) <= _MOST_TOGETHER:
            tries.append((tuple(sorted(stuck)), _MOST))
        for few, most in tries:
            if deadline.over or budget.left <= 0:
                return
            with budget.share(most) as share:
                search = DetourSearch(placement, where, around(placement, where, few))
                found = search.run(deadline, share)
            if found.arrives:
                for move in found.moves:
                    placement.move(move.vms, move.host)
                yield from found.moves
                yield from direct_moves(placement, where)
                break
        else:
            return


def _knot(
    placement: ProblemPlacement, where: Mapping[str, str], stuck: Collection[str], first: str
) -> tuple[str, ...]:
    """A VM with those that are still on the host that it is bound for, and so on."""
    knot = [first]
    for one in knot:
        for other in sorted(stuck):
            if other not in knot and placement.where(other) == where[one] and len(knot) < _OF_A_KNOT:
                knot.append(other)
    return tuple(sorted(knot))


def _stuck(placement: ProblemPlacement, where: Mapping[str, str]) -> frozenset[str]:
    return frozenset(vm for vm, host in where.items() if placement.where(vm) != host)


#: Sequences with more moves are left as they are.
_MOST_TO_SHORTEN = 150


def shortened(problem: Problem, moves: tuple[Move, ...], deadline: Deadline) -> tuple[Move, ...]:
    """Legal moves that leave no more violated, and no more of them: none can be left out or cut short."""
    if deadline.over or len(moves) > _MOST_TO_SHORTEN:
        return moves
    at_once = tuple(direct_moves(ProblemPlacement(problem), placement_after(problem, moves).moved))
    moves = min(moves, at_once, key=lambda one: value(problem, one))
    worth, place, unchanged = value(problem, moves), 0, 0
    while unchanged < len(moves) and not deadline.over:
        place %= len(moves)
        for fewer in _variants(moves, place):
            if (reached := value(problem, fewer)) < worth and are_legal(problem, fewer):
                moves, worth, unchanged = fewer, reached, 0
                break
        else:
            place, unchanged = place + 1, unchanged + 1
    return moves


def _variants(moves: tuple[Move, ...], place: int) -> Iterator[tuple[Move, ...]]:
    """Without all moves of a VM; without one of them; and with its last host for the one before."""
    its = moves[place].vms
    yield tuple(move for move in moves if move.vms != its)
    later = next((at for at in range(place + 1, len(moves)) if moves[at].vms == its), None)
    if later is not None:
        yield (*moves[:place], *moves[place + 1 :])
        yield (*moves[:place], moves[later], *moves[place + 1 : later], *moves[later + 1 :])
