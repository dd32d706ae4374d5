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
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

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


Key = TypeVar("Key", bound=Hashable)


class Members(NamedTuple):
    """The VMs of a constraint in a model: those of which it decides where they are, and others."""

    cp: cp_model.CpModel
    at: At
    #: The hosts that each may be on; and where the others are.
    domains: Mapping[str, Sequence[str]]
    fixed: Sequence[tuple[str, str]] = ()

    @property
    def every(self) -> int:
        return len(self.domains) + len(self.fixed)

    def options(self) -> Iterator[tuple[str, str]]:
        """Each VM with each host that it may be on."""
        return ((vm, host) for vm, hosts in self.domains.items() for host in hosts)

    def grouped(self, key: Callable[[str, str], Key]) -> defaultdict[Key, list[Term]]:
        """By a key of VM and host, whether each VM is there: first 1 for each that certainly is."""
        found = defaultdict[Key, list[Term]](list)
        for vm, host in self.fixed:
            found[key(vm, host)].append(1)
        for vm, host in self.options():
            found[key(vm, host)].append(self.at[vm, host])
        return found

    def by_place(self, place_of: Mapping[str, str]) -> defaultdict[str, list[Term]]:
        """What sums up to the number of VMs in each place; hosts in no place have the empty one."""
        return self.grouped(lambda vm, host: place_of.get(host, ""))

    def sets(self, limit: AtMost) -> Mapping[str, list[list[Term]]]:
        """The same of each set in each place, in the order of the places."""
        found = self.grouped(lambda vm, host: (limit.place(host), limit.own_set(vm)))
        by_place = defaultdict[str, list[list[Term]]](list)
        for (place, _), there in sorted(found.items(), key=lambda one: one[0][0]):
            by_place[place].append(there)
        return by_place


def loads(members: Members, limit: AtMost) -> dict[str, list[Term]]:
    """By place, what sums up to the number of sets that are there; larger where nothing keeps it small."""

    def present(there: Sequence[Term]) -> Term:
        if isinstance(there[0], int) or not limit.set_of:
            return 1 if isinstance(there[0], int) else sum(there)
        any_of_it = members.cp.new_bool_var("")
        for one in there:
            members.cp.add(one <= any_of_it)
        return any_of_it

    return {place: list(map(present, sets)) for place, sets in members.sets(limit).items()}


def loads_above(members: Members, limit: AtMost, places: Iterable[str]) -> Iterator[Term]:
    """How many VMs each place has above the limit, those of the smallest sets; below 0 where none.

    It is no less than that, and may be larger where nothing keeps it small.
    """
    cp, found = members.cp, members.sets(limit)
    for place in places:
        sets = found[place]
        if not limit.set_of:
            yield sum(term for one in sets for term in one) - limit.most
            continue
        staying = [cp.new_bool_var("") for _ in sets]
        cp.add(sum(staying) <= limit.most)
        leaving = [cp.new_int_var(0, len(one), "") for one in sets]
        for one, stays, leaves in zip(sets, staying, leaving, strict=True):
            cp.add(leaves >= sum(one) - len(one) * stays)
        yield sum(leaving)


def limit_sum(members: Members, form: Sum, violated: Term, staying: int = 0) -> tuple[Term, int]:
    """What is above the limit, and the most it can be; what else stays on the hosts counts, too."""
    at, amounts, hosts = members.at, form.amounts, form.hosts
    least = staying - form.most + sum(amounts[vm] for vm, host in members.fixed if host in hosts)
    above = least + sum(amounts[vm] * at[vm, host] for vm, host in members.options() if host in hosts)
    most = least + sum(amounts[vm] for vm in members.domains)
    if most > 0:
        members.cp.add(above <= most * violated)
    return above, most


def restrict(members: Members, form: OfAll, violated: Term) -> None:
    """The form is satisfied unless `violated` is 1."""
    if isinstance(form, Sum):
        limit_sum(members, form, violated)
    elif isinstance(form, OnePlace):
        _one_place(members, form, violated)
    elif isinstance(form, Even):
        _even(members, form, violated)
    else:
        needed = min(form.least, members.every)
        members.cp.add(sum(_used(members, form)) + needed * violated >= needed)


def _one_place(members: Members, form: OnePlace, violated: Term) -> None:
    taken = {form.place_of.get(host, "") for _, host in members.fixed}
    chosen: list[Term] = []
    for place in sorted(set(form.place_of.values())):
        if taken - {place}:
            continue
        gathers = members.cp.new_bool_var("")
        chosen.append(gathers)
        for vm, hosts in members.domains.items():
            there = (members.at[vm, host] for host in hosts if form.place_of.get(host) == place)
            members.cp.add(sum(there) >= gathers)
    members.cp.add(sum(chosen) + violated >= 1)


def _even(members: Members, form: Even, violated: Term) -> None:
    cp, found, every = members.cp, members.by_place(form.place_of), members.every
    cp.add(sum(found[""]) <= every * violated)
    lowest: Term = 0
    if not form.from_nothing:
        lowest = cp.new_int_var(0, every, "")
        for place in form.eligible:
            cp.add(lowest <= sum(found[place]))
    for place in form.eligible:
        cp.add(sum(found[place]) - lowest <= form.max_skew + every * violated)


def _used(members: Members, form: AtLeast) -> list[Term]:
    """At most 1 of each place with a VM."""
    found = members.by_place(form.place_of)
    used: list[Term] = []
    for place in sorted(set(form.place_of.values())):
        present = members.cp.new_bool_var("")
        members.cp.add(sum(found[place]) >= present)
        used.append(present)
    return used


def excess(members: Members, form: OfAll) -> Term:
    """How far failure domains are from what is asked, in VMs; larger where nothing keeps it small."""
    cp, every = members.cp, members.every
    if isinstance(form, AtLeast):
        return min(form.least, every) - sum(_used(members, form))
    if not isinstance(form, Even):
        raise TypeError(form)
    found = members.by_place(form.place_of)
    level: Term = 0 if form.from_nothing else cp.new_int_var(0, every, "")
    leaving: list[Term] = list(found[""])
    coming: list[Term] = []
    for place in sorted(form.eligible):
        there = sum(found[place])
        for terms, lacking in ((leaving, there - level - form.max_skew), (coming, level - there)):
            terms.append(cp.new_int_var(0, every, ""))
            cp.add(terms[-1] >= lacking)
    most = cp.new_int_var(0, every * (len(form.eligible) + 1), "")
    cp.add(most >= sum(leaving))
    cp.add(most >= sum(coming))
    return most


def ask(members: Members, form: Form, literal: cp_model.IntVar) -> None:
    """Where the literal is true, these VMs satisfy the form."""
    cp, at = members.cp, members.at
    if isinstance(form, Allowed):
        for vm, host in members.options():
            if not form.allows(host):
                cp.add_implication(literal, at[vm, host].negated())
    elif isinstance(form, AtMost):
        for load in loads(members, form).values():
            cp.add(sum(load) <= form.most).only_enforce_if(literal)
    elif isinstance(form, OfAll):
        restrict(members, form, 1 - literal)
    else:
        for here in members.grouped(lambda vm, host: host).values():
            same = here[0] if len(here) == members.every else 0
            for one in here:
                cp.add(one == same).only_enforce_if(literal)
