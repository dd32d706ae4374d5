"""Forms of constraints over the variables of a model for CP-SAT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.rules.forms import AtMost

#: A term of a sum: a variable, something made of variables, or a number.
Term = cp_model.LinearExpr | int
#: Whether each VM is on each host.
At = Mapping[tuple[str, str], cp_model.IntVar]


def loads(
    cp: cp_model.CpModel,
    limit: AtMost,
    at: At,
    domains: Mapping[str, Iterable[str]],
    fixed: Iterable[tuple[str, str]],
) -> dict[str, list[Term]]:
    """By place, what sums up to the number of sets that are there, in the order of the places.

    Of the VMs of `domains` the model decides where they are; `fixed` are others, each with its host. The sum
    may be larger where nothing keeps it small.
    """
    certain: defaultdict[str, set[str]] = defaultdict(set)
    for vm, host in fixed:
        certain[limit.place(host)].add(limit.own_set(vm))
    possible: defaultdict[tuple[str, str], list[cp_model.IntVar]] = defaultdict(list)
    members: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for vm, hosts in domains.items():
        for host in hosts:
            key = limit.place(host), limit.own_set(vm)
            possible[key].append(at[vm, host])
            members[key].add(vm)
    found: defaultdict[str, list[Term]] = defaultdict(list)
    for place, sets in certain.items():
        found[place] += [1] * len(sets)
    for (place, one), literals in possible.items():
        if one not in certain[place]:
            found[place].append(_any(cp, literals) if len(members[place, one]) > 1 else sum(literals))
    return {place: found[place] for place in sorted(found)}


def _any(cp: cp_model.CpModel, literals: Iterable[cp_model.IntVar]) -> cp_model.IntVar:
    """At least as much as each of them."""
    present = cp.new_bool_var("")
    for literal in literals:
        cp.add_implication(literal, present)
    return present
