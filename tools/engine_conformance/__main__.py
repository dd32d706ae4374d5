"""Compares our copies of the engine's units with the engine: `python -m tools.engine_conformance DIR`."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Thread
from typing import IO, Any

from ovirt_placement.rules import engine_affinity, engine_filters
from ovirt_placement.rules.affinity.filters import filter_by_hosts, filter_by_vms
from ovirt_placement.rules.affinity.weights import rank_by_hosts, rank_by_vms
from ovirt_placement.rules.engine_weights import (
    score_by_cpu,
    score_by_ha_vms,
    score_by_host_groups,
    score_by_memory,
    score_by_preference,
    score_by_vm_groups,
)
from ovirt_placement.rules.ha import rank_hosts
from ovirt_simulator.scheduler import filters, weights
from tools.engine_conformance import answers, comparing, questions, switches
from tools.engine_conformance.comparing import (
    Agreement,
    Ask,
    Comparison,
    Copy,
    Difference,
    Switch,
    Unit,
    compare,
    same,
)
from tools.engine_conformance.questions import Asking, Question, placing, placing_with
from tools.engine_conformance.switches import MEMBERS_ELSEWHERE

# All that is compared, by name: the engine's units with our copies of them, and with our own units.


_HOSTS, _TIERS, _AS_IS = same(comparing.as_hosts), same(comparing.as_tiers), same(comparing.as_is)


def _both(
    name: str, kind: str, engine_class: str, asking: Asking, ours: Copy, theirs: Copy, agree: Agreement
) -> Unit:
    copies = {"product": ours, "simulator": theirs}
    return Unit(name, kind, asking, copies, agree, request={"unit": engine_class})


def _copies_of_units() -> Iterator[Unit]:
    """The units of which both the product and the simulator have a copy."""
    busy = Copy(answers.accepted(engine_filters.filter_by_cpu_load), (switches.OVERLOADED_SINCE,))
    simulated = Copy(answers.not_overloaded)
    yield _both(
        "cpu-overloaded", "filter", "CpuOverloadPolicyUnit", questions.overloading, busy, simulated, _HOSTS
    )
    ours, theirs = Copy(answers.best_by_rank), Copy(answers.selected)
    selector = "RankSelectorPolicyUnit"
    yield _both("rank-selector", "selector", selector, questions.selecting, ours, theirs, _AS_IS)
    memory, crash = (switches.PHYSICAL_MEMORY_AS_TOLD,), (switches.CRASH_OF_A_HOST_ASIDE,)
    by_vms, by_hosts = engine_affinity.filter_by_vm_groups, engine_affinity.filter_by_host_groups
    none: tuple[Switch, ...] = ()
    for name, engine_class, refuse, theirs_refuse, differing, both_differ in (
        ("memory", "MemoryPolicyUnit", engine_filters.filter_by_memory, filters.memory, memory, none),
        ("cpu", "CPUPolicyUnit", engine_filters.filter_by_cpus, filters.cpu, none, none),
        ("pin-to-host", "PinToHostPolicyUnit", engine_filters.filter_by_pins, filters.pinned, none, none),
        ("vm-affinity", "VmAffinityFilterPolicyUnit", by_vms, filters.vm_affinity, none, crash),
        ("vm-to-host", "VmToHostAffinityFilterPolicyUnit", by_hosts, filters.vm_to_host, none, none),
    ):
        copy = Copy(answers.accepted(refuse), (*differing, *both_differ))
        simulated = Copy(answers.left_by(theirs_refuse), both_differ)
        yield _both(name, "filter", engine_class, placing, copy, simulated, _HOSTS)
    ratio = placing_with(VCpuToPhysicalCpuRatio=(None, None, None, "0.5", "1", "2"))
    scale = placing_with(ScaleDown=(None, None, "1", "3", "10", "100"))
    for name, engine_class, score, weigh, asking in (
        ("even-cpu", "EvenDistributionCPU", score_by_cpu, weights.even_cpu, ratio),
        ("even-memory", "EvenDistributionMemory", score_by_memory, weights.even_memory, placing),
        ("preferred-hosts", "PreferredHosts", score_by_preference, weights.preferred_hosts, placing),
        ("ha-weight", "HaReservation", score_by_ha_vms, weights.ha_reservation, scale),
        ("vm-affinity-weight", "VmAffinity", score_by_vm_groups, weights.vm_affinity, placing),
        ("vm-to-host-weight", "VmToHostAffinity", score_by_host_groups, weights.vm_to_host, placing),
    ):
        copy, simulated = Copy(answers.scores(score)), Copy(answers.weighed_by(weigh))
        yield _both(name, "weight", f"{engine_class}WeightPolicyUnit", asking, copy, simulated, _TIERS)


def _our_units() -> Iterator[Unit]:
    elsewhere = (MEMBERS_ELSEWHERE,)
    by_vms = (switches.UNIFIED_GROUPS, switches.LEFT_BEHIND, switches.CRASH_OF_A_HOST_ASIDE)
    by_hosts, at_rest = (switches.EMPTY_HOST_GROUP,), (switches.PENDING_AS_IT_IS,)
    reserved = (switches.NOT_ITSELF, switches.PENDING_HA)
    accepted, ranks = answers.accepted, answers.ranks
    for name, kind, engine_class, copy, agree in (
        ("AffinityFilter", "filter", "VmAffinityFilter",
         Copy(accepted(filter_by_vms), by_vms, elsewhere), _HOSTS),
        ("HostAffinityFilter", "filter", "VmToHostAffinityFilter",
         Copy(accepted(filter_by_hosts), by_hosts, elsewhere), _HOSTS),
        ("SoftAffinityWeight", "weight", "VmAffinityWeight",
         Copy(ranks(rank_by_vms), at_rest, elsewhere), comparing.refined),
        ("HostAffinityWeight", "weight", "VmToHostAffinityWeight",
         Copy(ranks(rank_by_hosts), (), elsewhere), _TIERS),
        ("HaReservationWeight", "weight", "HaReservationWeight", Copy(ranks(rank_hosts), reserved), _TIERS),
    ):  # fmt: skip
        request = {"unit": f"{engine_class}PolicyUnit"}
        yield Unit(name, kind, questions.placing_one, {"product": copy}, agree, request=request)


def _about_clusters() -> Iterator[Unit]:
    elsewhere, crash = (MEMBERS_ELSEWHERE,), (switches.CRASH_FOR_ALL,)
    once = (switches.PENDING_TWICE, switches.PERCENT_OF_CPUS, switches.NO_RULES)
    order = (switches.PHYSICAL_MEMORY_AS_TOLD, switches.ONLY_WHAT_IS_UP, *crash)
    unknown = (switches.UNKNOWN_USE_OF_A_HOST, switches.UNKNOWN_USE_OF_A_VM)
    moves = (*unknown, switches.ONLY_WHAT_IS_UP, switches.HOSTED_ENGINE_STAYS)
    of_cluster = questions.of_cluster
    for name, kind, asking, whose, copy, agree in (
        ("ha-check", "ha_check", of_cluster, "product",
         Copy(answers.ha_check, (switches.NOTHING_TO_PROTECT,), once), comparing.exact),
        ("conflicts", "conflicts", of_cluster, "simulator",
         Copy(answers.collisions), same(comparing.as_conflicts)),
        ("conflicts-alike", "conflicts", of_cluster, "product",
         Copy(answers.conflicts, (), elsewhere), comparing.conflicts_alike),
        ("unified", "unified", of_cluster, "product",
         Copy(answers.unified, elsewhere), same(comparing.as_sets)),
        ("closure", "closure", questions.closing, "simulator",
         Copy(answers.closure), same(comparing.as_closure)),
        ("broken", "broken", of_cluster, "simulator", Copy(answers.broken), _AS_IS),
        ("enforcement", "enforcement", questions.enforcing, "product",
         Copy(answers.enforcement, order, elsewhere), comparing.same_order),
        ("even-distribution", "balance", questions.balancing, "product",
         Copy(answers.even_distribution_move, moves), comparing.first_move),
        ("schedule", "schedule", questions.moving, "simulator",
         Copy(answers.schedule, crash), same(comparing.as_placed)),
        ("external-units", "external", questions.externally, "simulator",
         Copy(answers.schedule_externally, crash), _AS_IS),
    ):  # fmt: skip
        request = {"unit": "EvenDistributionBalancePolicyUnit"} if kind == "balance" else {}
        yield Unit(name, kind, asking, {whose: copy}, agree, comparing.FEWER, request)


UNITS = {unit.name: unit for unit in (*_copies_of_units(), *_about_clusters(), *_our_units())}


SOURCES = Path(__file__).parent / "java" / "conformance"


class EngineError(Exception):
    """The folder does not hold what is needed, or the JVM ended."""


@contextmanager
def engine(folder: Path) -> Iterator[Ask]:
    """Run the engine's classes in a JVM of their own; a dict with `raised` is the answer where they threw."""
    # Every jar at any depth, and the folder itself, for classes that are in no jar.
    classes = ":".join([str(folder), *sorted(str(path) for path in folder.rglob("*.jar"))])
    sources = sorted(str(path) for path in SOURCES.glob("*.java"))
    with tempfile.TemporaryDirectory() as compiled:
        compiling = ["javac", "-nowarn", "-Xlint:-deprecation", "-d", compiled, "-cp", classes, *sources]
        built = subprocess.run(compiling, capture_output=True, text=True)
        if built.returncode:
            raise EngineError(
                f"{folder} does not hold the engine's classes, or others than these:\n{built.stderr}"
            )
        java = ["java", "-Xmx1g", "-XX:-OmitStackTraceInFastThrow", "-cp", f"{compiled}:{classes}"]
        command = [*java, "conformance.Main"]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            yield partial(_answers, process.stdin, process.stdout)


def _answers(stdin: IO[str], stdout: IO[str], questions: Sequence[Question]) -> list[Any]:
    writing = Thread(target=_write, args=(stdin, questions))
    writing.start()
    lines = [stdout.readline() for _ in questions]
    writing.join()
    if not all(lines):
        raise EngineError("the JVM ended before it had answered")
    found = map(json.loads, lines)
    return [answer.get("answer", answer) for answer in found]


def _write(stdin: IO[str], questions: Iterable[Question]) -> None:
    for question in questions:
        stdin.write(question.line() + "\n")
    stdin.flush()


#: How many differences of a copy are printed and written down.
_SHOWN = 3


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools.engine_conformance", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="DIR", help="the engine's compiled classes, as jars")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--questions", type=int, metavar="N", help="for each unit")
    parser.add_argument("--unit", action="append", choices=sorted(UNITS), help="only these")
    parser.add_argument("--copy", action="append", help="only these: product, simulator")
    parser.add_argument("--write", type=Path, metavar="DIR", help="where differences are written")
    options = parser.parse_args(arguments)
    if not options.folder.is_dir():
        parser.error(f"{options.folder}: no such folder")
    differing = 0
    with engine(options.folder) as ask:
        for name in options.unit or UNITS:
            unit, started = UNITS[name], time.monotonic()
            number = options.questions or unit.number
            found = compare(unit, ask, unit.questions(options.seed, number), options.copy)
            for copy, comparison in found.items():
                differing += len(comparison.differences)
                print(_told(name, copy, comparison), f"({time.monotonic() - started:.0f} s)", flush=True)
                for at, difference in enumerate(comparison.differences[:_SHOWN]):
                    print("  ", json.dumps({"engine": _once(difference.engine), "ours": difference.ours}))
                    if options.write:
                        write(options.write / f"{copy}-{name}-{at + 1}.json", difference)
    return 1 if differing else 0


def _told(unit: str, copy: str, comparison: Comparison) -> str:
    switched = "".join(f", {number} by {name}" for name, number in sorted(comparison.switched.items()))
    return f"{unit}, {copy}: {comparison.asked} asked, {len(comparison.differences)} differ{switched}"


def _once(answer: Any) -> Any:
    """Each of several runs once."""
    if not isinstance(answer, list):
        return answer
    return [one for at, one in enumerate(answer) if one not in answer[:at]]


def write(path: Path, difference: Difference) -> None:
    """In the form of a state file, with the request and both answers."""
    path.parent.mkdir(parents=True, exist_ok=True)
    question = difference.question
    content = {
        "name": path.stem,
        "unit": difference.unit,
        "copy": difference.copy,
        **question.state,
        "request": question.request,
        "engine": _once(difference.engine),
        difference.copy: difference.ours,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
