"""What did not reach its bound is decided anew, together with what is in its way."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.choosing.optimal.construction import Built, Construction
from ovirt_placement.planning.choosing.optimal.domains import reduced, roomiest
from ovirt_placement.planning.choosing.optimal.ends import Value, length_of_value, put, solve, value_at
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.problem.score import score

#: A cluster with no more places to choose from is decided as one.
_MOST_PLACES = 12_000
#: Bystanders of a neighbourhood, and the hosts that each of them is offered.
_MOST_BYSTANDERS = 150
_BYSTANDER_HOSTS = 6
_ROUNDS = 4
_NEIGHBOURHOOD_SHARE = 0.2


def improve(construction: Construction, deadline: Deadline) -> Value:
    """Make the end of a construction better; the bound that no end passes is what is returned."""
    bound = construction.bound
    if all(built.perfect for built in construction.built):
        return bound
    problem, reach = construction.problem, construction.reach
    places = {vm: hosts for vm in problem.memory_mb if len(hosts := reach.of(vm)) > 1}
    if sum(map(len, places.values())) <= _MOST_PLACES:
        return _whole(construction, places, bound, deadline)
    for number in range(1, _ROUNDS + 1):
        improved = [
            _neighbourhood(construction, built, number, deadline.within(_NEIGHBOURHOOD_SHARE))
            for built in construction.built
            if not built.perfect and not deadline.over and len(built.part.vms) <= _MOST_BYSTANDERS
        ]
        if not any(improved):
            break
    return bound


def _whole(
    construction: Construction, places: Mapping[str, tuple[str, ...]], bound: Value, deadline: Deadline
) -> Value:
    standing = construction.standing
    fixed = construction.untouched
    least = tuple(one - other for one, other in zip(bound, fixed, strict=True))
    solved = solve(standing, construction.reach, places, deadline, workers=2, least=least)
    if solved is None:
        return bound
    put(standing, solved.where)
    length = length_of_value(construction.problem)
    return max(bound, tuple(map(sum, zip(solved.bounds[:length], fixed, strict=True))))


def _neighbourhood(construction: Construction, built: Built, number: int, deadline: Deadline) -> bool:
    """Decide a part anew, with all that stands or is to stand on the hosts that it might use."""
    problem, reach, standing = construction.problem, construction.reach, construction.standing
    order = roomiest(standing)
    hosts = {problem.where[vm] for vm in built.part.vms} | {standing.where(vm) for vm in built.part.vms}
    hosts |= set(order[: 2 * number])
    vms = set(built.part.vms)
    for other in construction.built:
        if len(other.part.vms) <= _MOST_BYSTANDERS and any(
            standing.where(vm) in hosts and vm in standing.moved for vm in other.part.vms
        ):
            vms.update(other.part.vms)
    domains = dict(reduced(standing, reach, vms, order, more=number))
    offered = set(order[: _BYSTANDER_HOSTS * number])
    bystanders = sorted(
        (vm for host in sorted(hosts) for vm in problem.on.get(host, ()) if vm not in vms),
        key=lambda vm: (bool(problem.goals_of.get(vm)), problem.memory_mb.get(vm, 0), vm),
    )
    for vm in bystanders[: _MOST_BYSTANDERS * number]:
        if vm in problem.memory_mb and len(reach.of(vm)) > 1:
            own = {problem.where[vm], standing.where(vm)}
            domains[vm] = tuple(host for host in reach.of(vm) if host in offered or host in own)
    before = (value_at(standing, reach), score(standing))
    earlier = {vm: standing.where(vm) for vm in domains}
    solved = solve(standing, reach, domains, deadline, workers=2)
    if solved is None:
        return False
    put(standing, solved.where)
    reached = (value_at(standing, reach), score(standing))
    if reached > before:
        put(standing, earlier)
    return reached < before
