"""The room on hosts as constraints: what fits, what is taken of headroom, how full targets get."""

from __future__ import annotations

from collections.abc import Mapping

from ovirt_placement.planning.assignment.optimal.model import Model
from ovirt_placement.planning.cp_sat import cp_model
from ovirt_placement.planning.encode.cp import Term

#: CPU is counted in hundredths of a percent of a core.
_HUNDREDTHS = 100


class RoomModel:
    """Adds room to a model and offers what it costs."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._problem = model.problem
        placement, domains = model.scope.placement, model.scope.domains
        #: What VMs of which nothing is decided have brought to each host and taken away from it.
        self._brought_mb: dict[str, int] = {}
        self._brought_cpu: dict[str, float] = {}
        for vm, target in placement.moved.items():
            if vm in domains:
                continue
            for host, sign in ((target, 1), (self._problem.where[vm], -1)):
                self._brought_mb[host] = self._brought_mb.get(host, 0) + sign * self._problem.memory_mb[vm]
                self._brought_cpu[host] = self._brought_cpu.get(host, 0.0) + sign * self._problem.cpu[vm]
        self._fixed_targets = {target for vm, target in placement.moved.items() if vm not in domains}
        self._arrivals: dict[str, list[str]] = {
            host: [vm for vm in vms if self._problem.where[vm] != host] for host, vms in model.on.items()
        }
        self._leaving: dict[str, list[str]] = {}
        for vm in sorted(domains):
            self._leaving.setdefault(self._problem.where[vm], []).append(vm)
        # Where others have come, what left for them may come back.
        returned_to = self._fixed_targets & self._leaving.keys()
        self.targets = [
            host for host in self._problem.hosts if self._arrivals.get(host) or host in returned_to
        ]

    def limit(self) -> None:
        """What arrives must fit, with what leaves reckoned off."""
        for host in self.targets:
            room = self._problem.free_mb[host] - self._brought_mb.get(host, 0)
            arriving = sum(self._problem.memory_mb[vm] for vm in self._arrivals.get(host, ()))
            if arriving <= room:
                continue
            limit = self._model.cp.add(self._taken(host, self._problem.memory_mb) <= room)
            if room < 0 and host not in self._fixed_targets:
                # Overfull already: nobody need leave as long as nobody comes.
                limit.only_enforce_if(self._arrives(host))

    def headroom_deficit(self) -> tuple[Term, int]:
        """What is taken of the headroom of targets, MiB and percent of a core, and the most it can be."""
        memory, cpu = self._problem.memory_mb, self._problem.cpu
        terms: list[Term] = []
        most = 0
        for host in self.targets:
            spare = max(0, self._problem.spare_mb[host])
            if spare < max(0, self._problem.free_mb[host]):
                most += self._crowd(terms, host, memory, spare - self._brought_mb.get(host, 0))
            if host in self._problem.spare_cpu:
                spare_cpu = max(0.0, self._problem.spare_cpu[host]) - self._brought_cpu.get(host, 0.0)
                most += self._crowd(terms, host, cpu, spare_cpu)
        return sum(terms), most

    def fullest(self) -> Term:
        """The share of the fullest target, in thousandths, of memory or CPU."""
        problem, cp = self._problem, self._model.cp
        fullest = cp.new_int_var(0, 1_000_000, "")
        for host in self.targets:
            arrives = cp.new_constant(1) if host in self._fixed_targets else self._arrives(host)
            size = max(1, problem.size_mb[host])
            taken = size - problem.free_mb[host] + self._brought_mb.get(host, 0)
            taken += size * (host in problem.failover)
            cp.add(fullest * size >= 1000 * (taken + self._taken(host, problem.memory_mb))).only_enforce_if(
                arrives
            )
            if host in problem.used_cpu:
                cores = max(1, round(problem.size_cpu[host]))
                used = round(problem.used_cpu[host] + self._brought_cpu.get(host, 0.0))
                cp.add(
                    fullest * cores * _HUNDREDTHS
                    >= 1000 * (used * _HUNDREDTHS + self._taken(host, problem.cpu, _HUNDREDTHS))
                ).only_enforce_if(arrives)
        return fullest

    def _crowd(self, terms: list[Term], host: str, need: Mapping[str, float], spare: float) -> int:
        arriving = sum(need[vm] for vm in self._arrivals.get(host, ()))
        most = max(0, round(arriving - spare))
        if not most:
            return 0
        crowd = self._model.cp.new_int_var(0, most, "")
        self._model.cp.add(
            crowd * _HUNDREDTHS + _HUNDREDTHS // 2
            >= self._taken(host, need, _HUNDREDTHS) - round(spare * _HUNDREDTHS)
        )
        terms.append(crowd)
        return most

    def _taken(self, host: str, need: Mapping[str, float], scale: int = 1) -> Term:
        """What a host has more than at the start by the VMs that the model decides."""
        at = self._model.at
        leaving = self._leaving.get(host, ())
        coming = sum(round(need[vm] * scale) * at[vm, host] for vm in self._arrivals.get(host, ()))
        return coming - sum(round(need[vm] * scale) * (1 - at[vm, host]) for vm in leaving)

    def _arrives(self, host: str) -> cp_model.IntVar:
        arrives = self._model.cp.new_bool_var("")
        for vm in self._arrivals[host]:
            self._model.cp.add_implication(self._model.at[vm, host], arrives)
        return arrives
