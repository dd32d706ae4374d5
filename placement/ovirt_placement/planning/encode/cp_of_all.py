"""Forms that are about all VMs of a rule together, over the variables of a model for CP-SAT."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.encode.cp import At, Term
from ovirt_placement.rules.forms import AtLeast, Even, OfAll, OnePlace, Sum

_Domains = Mapping[str, Sequence[str]]
_Fixed = Sequence[tuple[str, str]]


def restrict(
    cp: cp_model.CpModel,
    form: OfAll,
    at: At,
    domains: _Domains,
    fixed: Iterable[tuple[str, str]],
    violated: Term,
) -> None:
    """The form is satisfied unless `violated` is 1; the model decides where the VMs of `domains` are."""
    others = list(fixed)
    if isinstance(form, Sum):
        _sum(cp, form, at, domains, others, violated)
    elif isinstance(form, OnePlace):
        _one_place(cp, form, at, domains, others, violated)
    elif isinstance(form, Even):
        _even(cp, form, at, domains, others, violated)
    else:
        _at_least(cp, form, at, domains, others, violated)


def _members(
    place_of: Mapping[str, str], at: At, domains: _Domains, fixed: _Fixed
) -> Mapping[str, list[Term]]:
    """By place, what sums up to the number of VMs there; hosts in no place have the empty one."""
    found: defaultdict[str, list[Term]] = defaultdict(list)
    for _, host in fixed:
        found[place_of.get(host, "")].append(1)
    for vm, hosts in domains.items():
        for host in hosts:
            found[place_of.get(host, "")].append(at[vm, host])
    return found


def _sum(cp: cp_model.CpModel, form: Sum, at: At, domains: _Domains, fixed: _Fixed, violated: Term) -> None:
    there: list[Term] = [form.amounts[vm] for vm, host in fixed if host in form.hosts]
    there += [
        form.amounts[vm] * at[vm, host]
        for vm, hosts in domains.items()
        for host in hosts
        if host in form.hosts
    ]
    most = sum(form.amounts[vm] for vm in (*domains, *(vm for vm, _ in fixed)))
    cp.add(sum(there) <= form.most + max(0, most - form.most) * violated)


def _one_place(
    cp: cp_model.CpModel, form: OnePlace, at: At, domains: _Domains, fixed: _Fixed, violated: Term
) -> None:
    taken = {form.place_of.get(host, "") for _, host in fixed}
    chosen: list[Term] = []
    for place in sorted(set(form.place_of.values())):
        if taken - {place}:
            continue
        gathers = cp.new_bool_var("")
        chosen.append(gathers)
        for vm, hosts in domains.items():
            cp.add(sum(at[vm, host] for host in hosts if form.place_of.get(host) == place) >= gathers)
    cp.add(sum(chosen) + violated >= 1)


def _even(cp: cp_model.CpModel, form: Even, at: At, domains: _Domains, fixed: _Fixed, violated: Term) -> None:
    members = _members(form.place_of, at, domains, fixed)
    every = len(domains) + len(fixed)
    cp.add(sum(members.get("", ())) <= every * violated)
    lowest: Term = 0
    if not form.from_nothing:
        lowest = cp.new_int_var(0, every, "")
        for place in form.eligible:
            cp.add(lowest <= sum(members.get(place, ())))
    for place in form.eligible:
        cp.add(sum(members.get(place, ())) - lowest <= form.max_skew + every * violated)


def _at_least(
    cp: cp_model.CpModel, form: AtLeast, at: At, domains: _Domains, fixed: _Fixed, violated: Term
) -> None:
    members = _members(form.place_of, at, domains, fixed)
    used: list[Term] = []
    for place in sorted(set(form.place_of.values())):
        present = cp.new_bool_var("")
        cp.add(sum(members.get(place, ())) >= present)
        used.append(present)
    needed = min(form.least, len(domains) + len(fixed))
    cp.add(sum(used) + needed * violated >= needed)
