"""The question `ha-check`, and its answer as people read it: verdicts, and below them causes and remedies."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Annotated

from ovirt_placement.answers.configured import Domains, asked_domains
from ovirt_placement.answers.document import Folded, Table, listed, safe_word, typed
from ovirt_placement.answers.question import (
    CLUSTERS,
    SOME_HOSTS,
    ConfiguredState,
    Parameter,
    Reads,
    Route,
    question,
)
from ovirt_placement.answers.status.ha_check import (
    DEFAULT_STEPS,
    CheckedCluster,
    CheckVerdict,
    Failing,
    HaCheckDocument,
    LostSet,
    checked_cluster,
    spreading,
)
from ovirt_placement.model import Cluster, Host, Snapshot
from ovirt_placement.model.names import Named, be, counted
from ovirt_placement.rules.failover.check import by_engine, check
from ovirt_placement.rules.failover.outcomes import Domain, Size
from ovirt_service.errors import UserError

_NOT_WAITING = "the engine goes by priorities alone, and may restart too early: "
#: How many of the worst sets are reported where not all could be judged; JSON has them all.
_TIGHTEST = 3
#: Up to this number, each host is reported with its reasons; more hosts are counted by reason.
_FEW_HOSTS = 4


#: How much work a check does that a page waits for: a second or two for 500 hosts.
PAGE_STEPS = 20_000


@question(
    "ha-check",
    "whether highly available VMs survive failing hosts",
    """\
Show for each cluster with HA reservation, or the one named, whether every highly available VM would restart
if hosts or failure domains failed, and which failures would not be survived. See docs/ha.md.
The exit status is 1 unless all are safe.
""",
    examples="""\
  ovirt-placement ha-check --cluster blue --failures 2
  ovirt-placement ha-check --hosts north,south     # would these two be survived?
""",
    text=lambda answer, shown: _text(answer, shown.state.snapshot),
    status=lambda answer, _: int(not answer.safe),
    reads=Reads.CONFIGURED,
    routes=(Route("/ha-check", required=("cluster",), fixed={"steps": PAGE_STEPS}, dear=True),),
    ansible="say whether highly available VMs would restart",
)
def check_ha(
    state: ConfiguredState,
    *,
    cluster: Annotated[
        Cluster | None, Parameter("only this cluster, by name or id; else all", "CLUSTER", CLUSTERS)
    ] = None,
    failures: Annotated[
        int | None,
        Parameter("how many hosts or domains fail together; else as each cluster is set, else 1", "X"),
    ] = None,
    hosts: Annotated[
        Sequence[Host],
        Parameter("only the failure of these hosts together", "HOST,...", SOME_HOSTS, one_of="what"),
    ] = (),
    domain: Annotated[
        Sequence[str] | None,
        Parameter(
            "only this failure domain; repeatable", "DOMAIN", one_of="what", argument={"action": "append"}
        ),
    ] = None,
    domains: Annotated[bool, Parameter("all failure domains", one_of="what")] = False,
    steps: Annotated[
        int,
        Parameter(
            f"the limit of work: a step for each set of hosts and for each of its VMs; else {DEFAULT_STEPS}",
            "N",
        ),
    ] = DEFAULT_STEPS,
    processes: Annotated[
        int | None, Parameter("spread the work over this many processes", "N", one_of="where")
    ] = None,
    scheduler: Annotated[
        str | None,
        Parameter(
            "spread the work over the workers of this Dask scheduler, as in tcp://HOST:8786"
            " (needs the extra `distributed`)",
            "ADDRESS",
            one_of="where",
        ),
    ] = None,
) -> HaCheckDocument:
    """Check clusters with HA reservation, the one named, or those of the hosts named. Raises `UserError`."""
    snapshot = state.snapshot
    failing: Domains | None = None
    if hosts:
        if failures is not None:
            raise UserError("--hosts names all that fails: it takes no --failures")
        failing = (Domain(None, frozenset(host.id for host in hosts)),)
    elif domain is not None or domains:
        failing = asked_domains(snapshot, state.config().ha, domain)
    named = frozenset[str]().union(*(one.hosts for one in failing or ()))

    def asked(one: Cluster) -> bool:
        if hosts or domain is not None:
            return any(host.id in named for host in snapshot.hosts_of_cluster.get(one.id, ()))
        return one.ha_reservation or cluster is not None

    clusters = snapshot.clusters if cluster is None else (cluster,)
    left = [one for one in clusters if asked(one)]
    if not left:
        raise UserError("nothing was checked: no cluster has HA reservation; name one with --cluster")
    for one in left:
        _check_number(snapshot, one, failures or 0)
    checked = []
    with spreading(processes, scheduler) as spread:
        for one in left:
            found = check(snapshot, one.id, failures, steps, domains=failing, spread=spread)
            softer = by_engine(snapshot, one.id, found.failures, steps, domains=failing, spread=spread)
            checked.append(checked_cluster(found, softer, snapshot))
    return HaCheckDocument(
        clusters=tuple(checked),
        not_checked=tuple(Named(one.id, one.name) for one in clusters if one not in left),
    )


def _check_number(snapshot: Snapshot, cluster: Cluster, failures: int) -> None:
    """Raise `UserError` if more is to fail than there is."""
    count = sum(host.up for host in snapshot.hosts_of_cluster.get(cluster.id, ()))
    if failures > count:
        up = f"{counted(count, 'host')} that {be(count)} up"
        raise UserError(f"--failures {failures}: cluster {cluster.name} has {up}")


def _text(answer: HaCheckDocument, snapshot: Snapshot) -> Iterator[str | Table]:
    headers = ("cluster", "failures", "verdict", "engine's", "failing hosts", "VMs that cannot restart")
    yield Table([row for one in answer.clusters for row in _rows(one)], headers)
    if below := list(notes(answer, snapshot)):
        yield ""
        yield from map(Folded, below)


def _rows(found: CheckedCluster) -> list[tuple[str, ...]]:
    """What is lost, what only the engine's own check finds unsafe, and what was not judged."""
    head = (found.cluster.name, str(found.failures), safe_word(found.safe), safe_word(found.by_engine.safe))
    what = "domains" if any(unit.domain is not None for unit in found.units) else "hosts"
    lost, engine = {loss.hosts for loss in found.losses}, "by the engine's own check"
    rows = [
        *_lost_already(found),
        *(_loss(loss) for loss in found.losses),
        # There, idle CPU counts.
        *(_loss(loss, f" ({engine})") for loss in found.by_engine.losses if loss.hosts not in lost),
        *_open(found, what, ""),
        *_tightest(found),
        *_open(found.by_engine, what, f" {engine}"),
    ]
    return [(*head, *one) for one in rows] or [(*head, "", "")]


def _lost_already(found: CheckedCluster) -> Iterator[tuple[str, str]]:
    """By the host that does not answer, or as it is."""
    if found.lost:
        hosts = dict.fromkeys(one.host.name if one.host else "none" for one in found.lost)
        fates = ((one.vm.name, one.could_start) for one in found.lost if not one.could_start)
        vms = (name if could_start is False else f"{name} (not known)" for name, could_start in fates)
        yield f"already: {listed(list(hosts))}", "\n".join(vms)


def _loss(loss: LostSet, by: str = "") -> tuple[str, str]:
    return "\n".join(_names(loss)), "\n".join(f"{vm.name}{by}" for vm in loss.unplaced)


def _names(failing: Failing) -> tuple[str, ...]:
    """The domains that fail, or the hosts."""
    return tuple(f"domain {name}" for name in failing.domains) or tuple(host.name for host in failing.hosts)


def _open(found: CheckVerdict, what: str, by: str) -> Iterator[tuple[str, str]]:
    """What is not known, and what is proven nevertheless, for each size of sets."""
    sizes = found.sizes or (Size(1, found.survived, found.unjudged),)
    for size in sizes:
        # Hosts that were named are one set, however many they are.
        hard = (not found.sizes or len(one.domains or one.hosts) == size.size for one in found.unknown)
        if left := size.unjudged + sum(hard):
            sets = counted(left, "set") + (f" of {size.size} {what}" if len(sizes) > 1 else "")
            survived = f"{counted(size.survived, 'set')} of {what} {be(size.survived)}"
            yield f"{sets} {be(left)} not judged{by}", f"{survived} proven to be survived"


def _tightest(found: CheckVerdict) -> Iterator[tuple[str, str]]:
    """The worst sets that were looked for, but those that are lost and reported already."""
    left = [one for one in found.tightest if one.survived is not False]
    for tightest in left[:_TIGHTEST]:
        outcome = "survived" if tightest.survived else "not judged"
        room = f"room for {counted(max(0, tightest.room_for), 'more VM')} of {tightest.memory_mb} MiB at most"
        yield "\n".join(_names(tightest)), f"{outcome}, among the tightest: {room}"


def notes(answer: HaCheckDocument, snapshot: Snapshot) -> Iterator[str]:
    """In lines: why VMs cannot restart, what shows more, and which VMs the check is not about."""
    for found in answer.clusters:
        if found.lost:
            yield f"Lost in cluster {found.cluster.name} until they run again:"
            for one in found.lost:
                yield f"  {one.sentence} (ovirt-placement why {typed(one.vm, snapshot.vms)})"
        if found.doubt:
            yield f"Not known in cluster {found.cluster.name}: {found.doubt}."
        for loss in found.losses:
            yield from _causes(loss)
    unsafe = [found for found in answer.clusters if found.losses]
    if unsafe:
        hosts = ",".join(typed(host, snapshot.hosts) for host in unsafe[0].losses[0].hosts)
        yield "Each start, and the migrations that follow:"
        yield f"  ovirt-placement what-if --down {hosts}"
    if any(
        _is_reserved_for(loss, snapshot.cluster_by_id[one.cluster.id])
        for one in unsafe
        for loss in one.losses
    ):
        yield "Migrations that restore the reservation, with [enforcer.ha] repair = true (docs/ha.md):"
        yield "  ovirt-enforcer plan"
    for found in answer.clusters:
        yield from _remarks(found)


def _is_reserved_for(loss: LostSet, cluster: Cluster) -> bool:
    """Whether the enforcer restores what survives this: a failure domain, or no more hosts than are set."""
    return cluster.ha_reservation and (len(loss.domains) == 1 or len(loss.hosts) <= cluster.ha_failures)


def _remarks(found: CheckedCluster) -> Iterator[str]:
    """Failure domains, rules that the engine does not follow, and which VMs the check is not about."""
    domains = [
        f"{unit.domain} ({listed([host.name for host in unit.hosts])})"
        for unit in found.units
        if unit.domain is not None
    ]
    if domains:
        yield f"Failure domains of cluster {found.cluster.name}: {listed(domains, '; ')}"
    if domains and found.safe:
        some = "one of them fails" if found.failures == 1 else f"{found.failures} of them fail"
        yield f"Each highly available VM restarts if any {some}."
    for one in found.not_waiting:
        yield f"{one.rule.title}: {_NOT_WAITING}{listed([vm.name for vm in one.vms])}"
    if found.outside:
        outside = listed([one.sentence for one in found.outside])
        yield f"Not counted in cluster {found.cluster.name}: {outside}"


def _causes(loss: LostSet) -> Iterator[str]:
    """Why VMs cannot restart after one failure; of many hosts, how many say the same, the most first."""
    if loss.because:
        yield f"If {' and '.join(_names(loss))} failed:"
    for one in loss.because:
        counts = Counter(reason for host in one.refused for reason in host.because).most_common()
        why = [listed([f"{counted(number, 'host')}: {reason}" for reason, number in counts], "; ")]
        if len(one.refused) <= _FEW_HOSTS:
            why = [f"{host.host.name}: {'; '.join(host.because)}" for host in one.refused]
        yield from (f"  {one.vm.name}: {said}" for said in why or ("no host is left",))
    if loss.in_another_order:
        starts = listed([f"{one.vm.name} on {one.host.name}" for one in loss.in_another_order])
        yield f"  It is the restart order alone: all would restart as {starts}"
