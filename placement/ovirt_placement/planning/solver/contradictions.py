"""Rules that cannot be satisfied together, wherever VMs run, as smallest sets."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ovirt_placement.model import Snapshot
from ovirt_placement.planning.solver.forms import At, Members, Term, cp_model
from ovirt_placement.planning.solver.forms import ask as ask_under
from ovirt_placement.rules.elements.rule import Allowed, Ask, Contradiction, Form, Judgement, Sum

_Asks = tuple[Ask, ...]

#: VMs times hosts that are looked at together; of more, memory does not count, and like ones count once.
_MOST_PLACES = 20_000
#: Beyond that nothing is said.
_MOST_OF_ALL = 200_000
#: Variables beyond which the solver is too slow with assumptions.
_MOST_ASSUMING = 5_000
#: Units of work for one question, and what the smallest counts at least.
_WORK = 2.0
_LEAST_WORK = 0.001


class OutOfWork(Exception):
    """The work allowed is done, or the question too large."""


class Work:
    """What may still be done, in the solver's units: the same question always gets the same answer."""

    def __init__(self, units: float) -> None:
        self.left = units


class Question:
    """About one part of a cluster."""

    def __init__(
        self,
        snapshot: Snapshot,
        asks: Sequence[Ask],
        hosts: Mapping[str, int],
        work: Work,
        most_places: int = _MOST_PLACES,
    ) -> None:
        self._snapshot = snapshot
        self._hosts = hosts
        self._work = work
        self._asks_of = _by_vm(asks)
        domains = {vm: self._open(vm) for vm in self._asks_of}
        #: A VM that is pinned to no host of the cluster cannot run by any rule.
        self._domains = {vm: hosts for vm, hosts in domains.items() if hosts}
        self._whole = len(self._domains) * len(hosts) <= most_places
        if not self._whole:
            self._domains = _fewer(self._domains, self._asks_of)
        self._counts_memory = False

    def count_memory(self) -> None:
        """If it is known that all VMs fit by it as long as there are no rules."""
        if self._whole:
            self._counts_memory = True
            try:
                self._counts_memory = self.contradictory(()) is None
            except OutOfWork:
                self._counts_memory = False

    def contradictory(self, asks: Sequence[Ask]) -> _Asks | None:
        """Those of the asks that cannot be satisfied together; None if all can. Raises `OutOfWork`.

        Asked first without assumptions: only then the solver makes the model simpler before it searches.
        """
        cp, literals = self._model(asks)
        cp.add_bool_and(literals)
        if self._solve(cp_model.CpSolver(), cp):
            return None
        if len(cp.proto.variables) > _MOST_ASSUMING:
            return tuple(asks)
        cp, literals = self._model(asks)
        cp.add_assumptions(literals)
        solver = cp_model.CpSolver()
        try:
            self._solve(solver, cp)
        except OutOfWork:
            return tuple(asks)
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return tuple(one for one, literal in zip(asks, literals, strict=True) if literal.index in named)

    def left_out(self, asks: Sequence[Ask], among: Sequence[Ask]) -> _Asks:
        """Of `among`, few without which the rest can be satisfied with all of `asks`. Raises `OutOfWork`."""
        cp, literals = self._model(among)
        kept = {id(one) for one in asks}
        cp.add_bool_and(literal for one, literal in zip(among, literals, strict=True) if id(one) in kept)
        cp.maximize(sum(literals))
        solver = cp_model.CpSolver()
        if not self._solve(solver, cp):
            raise OutOfWork
        return tuple(
            one for one, literal in zip(among, literals, strict=True) if not solver.boolean_value(literal)
        )

    def only_for_memory(self, asks: Sequence[Ask]) -> bool:
        """Whether contradictory asks are so for lack of memory alone; False where that is not found out."""
        if not self._counts_memory:
            return False
        self._counts_memory = False
        try:
            return self.contradictory(asks) is None
        except OutOfWork:
            return False
        finally:
            self._counts_memory = True

    def _open(self, vm: str) -> tuple[str, ...]:
        """The hosts that pinning leaves a VM."""
        bound = self._snapshot.vm_by_id[vm].bound_to
        return tuple(host for host in self._hosts if bound is None or host in bound)

    def _model(self, asks: Sequence[Ask]) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
        """Each VM on one host, and each ask under a literal of its own."""
        places = self._places(asks)
        cp = cp_model.CpModel()
        at = {(vm, host): cp.new_bool_var("") for vm, hosts in places.items() for host in hosts}
        for vm, hosts in places.items():
            cp.add_exactly_one(at[vm, host] for host in hosts)
        literals = []
        for ask in asks:
            literals.append(literal := cp.new_bool_var(""))
            domains = {vm: places[vm] for vm in ask.vms if vm in places}
            for form in ask.forms if domains else ():
                ask_under(Members(cp, at, domains), form, literal)
        if self._counts_memory:
            self._fit(cp, at)
        return cp, literals

    def _places(self, asks: Sequence[Ask]) -> Mapping[str, tuple[str, ...]]:
        """The hosts of all VMs that matter: for memory all do. Raises `OutOfWork`."""
        named = self._domains if self._counts_memory else {vm for one in asks for vm in one.vms}
        found = {vm: hosts for vm, hosts in self._domains.items() if vm in named}
        if sum(map(len, found.values())) > _MOST_OF_ALL:
            raise OutOfWork
        return found

    def _fit(self, cp: cp_model.CpModel, at: At) -> None:
        """Hosts have the memory that their VMs are guaranteed."""
        needs: defaultdict[str, list[Term]] = defaultdict(list)
        for (vm, host), var in at.items():
            needs[host].append(self._snapshot.vm_by_id[vm].guaranteed_mb * var)
        for host, need in needs.items():
            cp.add(sum(need) <= self._hosts[host])

    def _solve(self, solver: cp_model.CpSolver, cp: cp_model.CpModel) -> bool:
        """Whether there is a solution. Raises `OutOfWork`."""
        if self._work.left <= 0:
            raise OutOfWork
        solver.parameters.num_workers = 1
        # Counts as no work, and takes longer than all else.
        solver.parameters.symmetry_level = 0
        solver.parameters.max_deterministic_time = min(_WORK, self._work.left)
        status = solver.solve(cp)
        self._work.left -= max(solver.deterministic_time, _LEAST_WORK)
        if status == cp_model.UNKNOWN:
            raise OutOfWork
        return status != cp_model.INFEASIBLE


def _by_vm(asks: Sequence[Ask]) -> Mapping[str, list[Ask]]:
    found: dict[str, list[Ask]] = {}
    for ask in asks:
        for vm in ask.vms:
            found.setdefault(vm, []).append(ask)
    return found


def _fewer(
    domains: Mapping[str, tuple[str, ...]], asks_of: Mapping[str, Sequence[Ask]]
) -> dict[str, tuple[str, ...]]:
    """The same question with less to look at.

    Of hosts that are alike by what is asked of a VM, one is enough, if only hosts or sums on hosts are asked.
    If no sums are asked either, one VM is enough of those of which the same is asked.
    """
    found: dict[str, tuple[str, ...]] = {}
    seen: set[tuple[object, ...]] = set()
    for vm, hosts in domains.items():
        forms = [form for one in asks_of[vm] for form in one.forms]
        if all(isinstance(form, Allowed) for form in forms):
            alike = hosts, *map(id, asks_of[vm])
            if alike in seen:
                continue
            seen.add(alike)
        found[vm] = tuple(_one_of_each(hosts, forms)) if all(map(_names_hosts, forms)) else hosts
    return found


def _names_hosts(form: Form) -> bool:
    return isinstance(form, Allowed | Sum)


def _one_of_each(hosts: Sequence[str], forms: Sequence[Form]) -> Iterator[str]:
    seen: set[tuple[bool, ...]] = set()
    for host in hosts:
        of = tuple(host in form.hosts for form in forms if isinstance(form, Allowed | Sum))
        if of not in seen:
            seen.add(of)
            yield host


def _smallest(question: Question, among: Sequence[Ask], found: _Asks) -> tuple[_Asks, bool]:
    """The smallest contradictory set among some, of which one is found; and whether that is proven."""
    best = _minimal(question, found)
    try:
        return _by_what_all_have_a_part_of(question, among, best), True
    except OutOfWork:
        return best, False


def _minimal(question: Question, found: _Asks) -> _Asks:
    """Without what is not needed for it, as far as that is found out; what is about most VMs goes first."""
    left = found
    for one in sorted(found, key=lambda ask: -len(ask.vms)):
        others = tuple(other for other in left if other is not one)
        try:
            fewer = question.contradictory(others) if len(others) < len(left) else None
        except OutOfWork:
            continue
        left = left if fewer is None else fewer
    return left


def _by_what_all_have_a_part_of(question: Question, among: Sequence[Ask], best: _Asks) -> _Asks:
    each: list[_Asks] = []
    while True:
        tried = _least_hitting(among, each)
        if len(tried) >= len(best):
            return best
        if question.contradictory(tried) is not None:
            return tried
        each.append(question.left_out(tried, among))


def _least_hitting(among: Sequence[Ask], each: Sequence[_Asks]) -> _Asks:
    """The fewest that have something of each set. Raises `OutOfWork`."""
    cp = cp_model.CpModel()
    chosen = {id(one): cp.new_bool_var("") for one in among}
    for some in each:
        cp.add_bool_or(chosen[id(one)] for one in some)
    cp.minimize(sum(chosen.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = 1.0
    if solver.solve(cp) != cp_model.OPTIMAL:
        raise OutOfWork
    return tuple(one for one in among if solver.boolean_value(chosen[id(one)]))


#: Units of work, not seconds, for all questions about a cluster.
_CONTRADICTIONS_WORK = 20.0


def judge(
    snapshot: Snapshot, cluster: str, parts: Iterable[Sequence[Ask]], work: float = _CONTRADICTIONS_WORK
) -> Judgement:
    """Judge parts of a cluster: contradictions have nothing in common; without them the rest is satisfied."""
    left = Work(work)
    found: list[Contradiction] = []
    unknown: list[_Asks] = []
    hosts = {host.id: host.memory_mb for host in snapshot.hosts_of_cluster.get(cluster, ())}
    for part in parts:
        question = Question(snapshot, part, hosts, left)
        rest = tuple(part)
        try:
            question.count_memory()
            while (among := question.contradictory(rest)) is not None:
                named, proven = _smallest(question, rest, among)
                found.append(Contradiction(named, proven, question.only_for_memory(named)))
                rest = tuple(ask for ask in rest if all(ask is not other for other in named))
        except OutOfWork:
            unknown.append(rest)
    return Judgement(tuple(found), tuple(unknown))
