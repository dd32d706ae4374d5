"""CP-SAT, loaded without the pandas that it imports, and forms of constraints over its variables.

OR-Tools' `cp_model` names two classes of pandas in signatures, and calls pandas only where a caller hands it
series, which we never do; but importing pandas takes longer than solving a small cluster, at each
`ovirt-enforcer plan`. Its inner layer, `cp_model_helper`, needs none either, but is another in each version.

So a copy of the module is executed with an `import` of its own, in which `pandas` is a stand-in. No other
module and no other thread sees either: `sys.modules` is left alone, and what imports pandas gets it.
"""

import builtins
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ovirt_placement.rules.elements.rule import Allowed, AtLeast, AtMost, Even, Form, OfAll, OnePlace, Sum

if TYPE_CHECKING:
    from ortools.sat.python import cp_model as cp_model

#: OpenBLAS, with which numpy comes, reads it.
_THREADS = "OPENBLAS_NUM_THREADS"
_NAME = "ortools.sat.python.cp_model"


class _Signatures(ModuleType):
    """What `cp_model` needs of pandas while it is loaded: a class for each name in its signatures."""

    def __getattr__(self, name: str) -> type:
        return type(name, (), {})


def _import(name: str, *arguments: Any, **options: Any) -> ModuleType:
    return _Signatures(name) if name == "pandas" else builtins.__import__(name, *arguments, **options)


@contextmanager
def _without_threads() -> Iterator[None]:
    """Numpy begins a thread for each core when it is loaded, for algebra that planning has none of."""
    before = os.environ.get(_THREADS)
    os.environ[_THREADS] = "1"
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if before is not None:
            os.environ[_THREADS] = before


@_without_threads()
def _load() -> ModuleType:
    if _NAME in sys.modules or "pandas" in sys.modules:
        return import_module(_NAME)  # nothing is left to be saved
    spec = find_spec(_NAME)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {_NAME!r}", name=_NAME)
    module = module_from_spec(spec)
    vars(module)["__builtins__"] = {**vars(builtins), "__import__": _import}
    spec.loader.exec_module(module)
    return module


if not TYPE_CHECKING:
    cp_model = _load()


#: A term of a sum: a variable, something made of variables, or a number.
Term = cp_model.LinearExpr | int
#: Whether each VM is on each host.
At = Mapping[tuple[str, str], cp_model.IntVar]


_Domains = Mapping[str, Sequence[str]]
_Fixed = Sequence[tuple[str, str]]


def loads(
    cp: cp_model.CpModel, limit: AtMost, at: At, domains: _Domains, fixed: _Fixed
) -> dict[str, list[Term]]:
    """By place, what sums up to the number of sets that are there, in the order of the places.

    Of the VMs of `domains` the model decides where they are; `fixed` are others, each with its host. The sum
    may be larger where nothing keeps it small.
    """

    def present(there: Sequence[cp_model.IntVar | int]) -> Term:
        if isinstance(there[0], int) or not limit.set_of:
            return 1 if isinstance(there[0], int) else sum(there)
        any_of_it = cp.new_bool_var("")
        for one in there:
            cp.add_implication(one, any_of_it)
        return any_of_it

    found = _sets(limit, at, domains, fixed)
    return {place: [present(one) for one in found[place].values()] for place in sorted(found)}


def loads_above(
    cp: cp_model.CpModel, limit: AtMost, at: At, domains: _Domains, fixed: _Fixed, places: Iterable[str]
) -> Iterator[Term]:
    """How many VMs each place has above the limit, those of the smallest sets; below 0 where none.

    It is no less than that, and may be larger where nothing keeps it small.
    """
    found = _sets(limit, at, domains, fixed)
    for place in places:
        sets = list(found[place].values())
        if not limit.set_of:
            yield sum(term for one in sets for term in one) - limit.most
            continue
        staying = [cp.new_bool_var("") for _ in sets]
        cp.add(sum(staying) <= limit.most)
        leaving = [cp.new_int_var(0, len(one), "") for one in sets]
        for one, stays, leaves in zip(sets, staying, leaving, strict=True):
            cp.add(leaves >= sum(one) - len(one) * stays)
        yield sum(leaving)


def _sets(
    limit: AtMost, at: At, domains: _Domains, fixed: _Fixed
) -> Mapping[str, Mapping[str, list[cp_model.IntVar | int]]]:
    """By place and set, what says of each VM whether it is there: first 1 for each that certainly is."""
    found: defaultdict[str, defaultdict[str, list[cp_model.IntVar | int]]]
    found = defaultdict(lambda: defaultdict(list))
    for vm, host in fixed:
        found[limit.place(host)][limit.own_set(vm)].append(1)
    for vm, hosts in domains.items():
        for host in hosts:
            found[limit.place(host)][limit.own_set(vm)].append(at[vm, host])
    return found


def restrict(
    cp: cp_model.CpModel, form: OfAll, at: At, domains: _Domains, fixed: _Fixed, violated: Term
) -> None:
    """The form is satisfied unless `violated` is 1; the model decides where the VMs of `domains` are."""
    if isinstance(form, Sum):
        _sum(cp, form, at, domains, fixed, violated)
    elif isinstance(form, OnePlace):
        _one_place(cp, form, at, domains, fixed, violated)
    elif isinstance(form, Even):
        _even(cp, form, at, domains, fixed, violated)
    else:
        needed = min(form.least, len(domains) + len(fixed))
        cp.add(sum(_used(cp, form, at, domains, fixed)) + needed * violated >= needed)


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


def _used(cp: cp_model.CpModel, form: AtLeast, at: At, domains: _Domains, fixed: _Fixed) -> list[Term]:
    """At most 1 of each place with a VM."""
    members = _members(form.place_of, at, domains, fixed)
    used: list[Term] = []
    for place in sorted(set(form.place_of.values())):
        present = cp.new_bool_var("")
        cp.add(sum(members.get(place, ())) >= present)
        used.append(present)
    return used


def excess(cp: cp_model.CpModel, form: OfAll, at: At, domains: _Domains, fixed: _Fixed) -> Term:
    """How far failure domains are from what is asked, in VMs; larger where nothing keeps it small."""
    every = len(domains) + len(fixed)
    if isinstance(form, AtLeast):
        return min(form.least, every) - sum(_used(cp, form, at, domains, fixed))
    if not isinstance(form, Even):
        raise TypeError(form)
    members = _members(form.place_of, at, domains, fixed)
    level: Term = 0 if form.from_nothing else cp.new_int_var(0, every, "")
    leaving: list[Term] = list(members.get("", ()))
    coming: list[Term] = []
    for place in sorted(form.eligible):
        there = sum(members.get(place, ()))
        for terms, lacking in ((leaving, there - level - form.max_skew), (coming, level - there)):
            terms.append(cp.new_int_var(0, every, ""))
            cp.add(terms[-1] >= lacking)
    most = cp.new_int_var(0, every * (len(form.eligible) + 1), "")
    cp.add(most >= sum(leaving))
    cp.add(most >= sum(coming))
    return most


def ask(cp: cp_model.CpModel, form: Form, at: At, domains: _Domains, literal: cp_model.IntVar) -> None:
    """Where the literal is true, these VMs satisfy the form; each may be on the hosts of its domain."""
    if isinstance(form, Allowed):
        for vm, hosts in domains.items():
            for host in hosts:
                if not form.right(host):
                    cp.add_implication(literal, at[vm, host].negated())
    elif isinstance(form, AtMost):
        for load in loads(cp, form, at, domains, ()).values():
            cp.add(sum(load) <= form.most).only_enforce_if(literal)
    elif isinstance(form, OfAll):
        restrict(cp, form, at, domains, (), 1 - literal)
    else:
        for host in dict.fromkeys(host for hosts in domains.values() for host in hosts):
            here = [at[vm, host] for vm in domains if (vm, host) in at]
            for one in here:
                same = here[0] if len(here) == len(domains) else 0
                cp.add(one == same).only_enforce_if(literal)
