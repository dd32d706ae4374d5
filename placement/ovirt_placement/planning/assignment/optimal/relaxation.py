"""A bound that knows of room: what parts that found too little of it cost at least, with all who make way.

Relaxed is where VMs go that make way: they need no room anywhere. So no end is better than the bound, but
none need be as good.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ovirt_placement.planning.assignment.optimal.construction import Construction
from ovirt_placement.planning.assignment.optimal.domains import kinds, movable
from ovirt_placement.planning.assignment.optimal.ends import Value, length_of_value, total
from ovirt_placement.planning.assignment.optimal.model import Model, ModelScope
from ovirt_placement.planning.assignment.optimal.parts import Part
from ovirt_placement.planning.assignment.optimal.stages import Stages
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.deadline import Deadline
from ovirt_placement.planning.encode.cp import Term
from ovirt_placement.planning.problem.placement import ProblemPlacement

#: Hosts of a kind up to which room is counted beyond those that a part can need; of more, some have room.
_COUNTED_HOSTS = 24
#: The work that each stage may take, in the solver's own units.
_WORK = 4.0


@dataclass(frozen=True)
class Relaxed:
    """What the parts that found too little room come to."""

    #: No end of the whole is better; parts that have reached their bounds count with these.
    bound: Value
    #: Where their VMs end then. That is no end: those that make way are nowhere.
    where: Mapping[str, str]


def relaxed(construction: Construction, deadline: Deadline) -> Relaxed:
    """The best end of parts that did not reach their bounds, all of them together."""
    hard = [built for built in construction.built if not built.perfect]
    easy = [built.bound for built in construction.built if built.perfect]
    together = [construction.untouched, *easy]
    bound = total([*together, *(built.bound for built in hard)], construction.problem)
    offer = _Offer(construction, [built.part for built in hard])
    if not offer.domains or deadline.over:
        return Relaxed(bound, {})
    model = Model(
        ModelScope(ProblemPlacement(construction.problem), construction.candidates, offer.domains, room=False)
    )
    busy = {vm for built in construction.built for vm in built.part.vms}
    for host in sorted(offer.counted):
        _limit(model, host, offer, busy)
    solved = Stages(model, workers=1, evenly=False, work=_WORK).solve(deadline)
    if solved is None:
        return Relaxed(bound, {})
    at_least = solved.bounds[: length_of_value(construction.problem)]
    return Relaxed(max(bound, total([*together, at_least], construction.problem)), solved.where)


class _Offer:
    """Hosts for the VMs of some parts: of those that are alike to a part, as many as it can need."""

    def __init__(self, construction: Construction, parts: Collection[Part]) -> None:
        problem, self.candidates = construction.problem, construction.candidates
        self.domains: dict[str, tuple[str, ...]] = {}
        #: By host, VMs that may come to it, as far as it stands for no other host.
        self.counted: defaultdict[str, list[str]] = defaultdict(list)
        start = ProblemPlacement(problem)
        order = sorted(problem.hosts, key=lambda host: (-problem.free_mb[host], host))
        for part in parts:
            moving = movable(self.candidates, part.vms)
            found = dict(kinds(start, self.candidates, moving, order, _COUNTED_HOSTS))
            for vm in moving:
                home = problem.where[vm]
                self.domains[vm] = tuple(
                    host for host in self.candidates.of(vm) if host in found or host == home
                )
                for host in self.domains[vm]:
                    if host != home and not found[host]:
                        self.counted[host].append(vm)


def _limit(model: Model, host: str, offer: _Offer, busy: Collection[str]) -> None:
    """What comes to a host fits once enough has left; those of other parts leave for nothing."""
    problem, memory_mb = model.problem, model.problem.memory_mb
    coming = offer.counted[host]
    able = [vm for vm in problem.on.get(host, ()) if vm in memory_mb and len(offer.candidates.of(vm)) > 1]
    others = [vm for vm in able if vm not in offer.domains]
    room = problem.free_mb[host] + sum(memory_mb[vm] for vm in others if vm in busy)
    if sum(memory_mb[vm] for vm in coming) <= room:
        return
    taken: list[Term] = [memory_mb[vm] * model.at[vm, host] for vm in coming]
    taken += [-memory_mb[vm] * (1 - model.at[vm, host]) for vm in able if vm in offer.domains]
    # Of bystanders the largest leave first: none frees more with as few migrations.
    leaves: list[cp_model.IntVar] = []
    for size in sorted((memory_mb[vm] for vm in others if vm not in busy), reverse=True):
        leaves.append(model.cp.new_bool_var(""))
        taken.append(-size * leaves[-1])
        if len(leaves) > 1:
            model.cp.add_implication(leaves[-1], leaves[-2])
    model.detours.extend(leaves)
    model.most_detours += len(leaves)
    limit = model.cp.add(sum(taken) <= room)
    if room < 0:  # overfull already: nobody need leave as long as nobody comes
        comes = model.cp.new_bool_var("")
        for vm in coming:
            model.cp.add_implication(model.at[vm, host], comes)
        limit.only_enforce_if(comes)
