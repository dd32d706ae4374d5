"""Which affinity groups the running VMs violate."""

from collections.abc import Iterable, Iterator
from typing import Annotated

from msgspec.structs import replace

from ovirt_placement.answers.document import Columns, Document, Shown, Table, table
from ovirt_placement.answers.question import HOSTS, SOME_CLUSTERS, VMS, Names, Parameter, Route, question
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import GroupOrRule, Named, NamedHost, NamedVm, named_cluster
from ovirt_placement.model.record import From, Record, with_names
from ovirt_placement.rules.catalogue import Violation, find_unjudged, find_violations


class VmPlace(Record, frozen=True, omit_defaults=False):
    """A running VM and its host."""

    vm: NamedVm
    host: NamedHost
    host_up: bool


class ViolatedConstraint(Record, frozen=True, omit_defaults=False):
    """A rule that running VMs violate."""

    #: The half of an affinity group that asks for it: `vm_affinity` or `host_affinity`.
    kind: Annotated[str, From("constraint.family")]
    sentence: str
    cluster: Named
    #: What it asks of its VMs: "together", "apart", "on its hosts" or "off its hosts".
    asks: Annotated[str, From("constraint.asks")]
    positive: Annotated[bool, From("constraint.positive")]
    hard: bool
    priority: Annotated[float, From("constraint.priority")]
    #: The affinity groups, or the legacy label, that ask for it together.
    groups: tuple[GroupOrRule, ...]
    #: Of them, those that are violated taken alone.
    violated: tuple[GroupOrRule, ...]
    #: Every running member.
    locations: tuple[VmPlace, ...]
    #: Members that violate it.
    offenders: tuple[NamedVm, ...]


class ViolationsDocument(Document, frozen=True, kw_only=True, tag="violations"):
    """The rules that running VMs violate."""

    clusters: tuple[Named, ...]
    violations: tuple[ViolatedConstraint, ...]
    #: Why it is not known yet whether rules are violated, in a sentence for each or for all.
    unknown: tuple[str, ...]


_RULES_OF_GROUPS = Names(
    "affinity group", lambda snapshot, _: (*snapshot.affinity_groups, *snapshot.affinity_labels)
)


@question(
    "violations",
    "affinity groups that the running VMs violate",
    """\
List the affinity groups that running VMs violate, hard ones first; VMs that violate the rule are marked *.
The exit status is 1 if there is any.
""",
    examples="""\
  ovirt-placement violations --cluster blue
  ovirt-placement violations --host north --all    # all that VMs on a host violate
""",
    text=lambda answer, shown: _text(answer, shown),
    status=lambda answer, _: int(bool(answer.violations)),
    measured=Measured.NOTHING,
    routes=(Route("/violations", "the rules that running VMs violate"),),
    ansible="list violated rules",
)
def violations(
    snapshot: Snapshot,
    clusters: Annotated[Iterable[Cluster], SOME_CLUSTERS],
    *,
    vm: Annotated[str | None, Parameter("only of this VM", "VM", VMS)] = None,
    host: Annotated[str | None, Parameter("only of VMs on this host", "HOST", HOSTS)] = None,
    group: Annotated[str | None, Parameter("only of this affinity group", "GROUP", _RULES_OF_GROUPS)] = None,
) -> ViolationsDocument:
    """The violated rules of these clusters, or of them those with a VM, a host or a group of this id."""
    clusters = tuple(clusters)
    return ViolationsDocument(
        clusters=tuple(Named(cluster.id, cluster.name) for cluster in clusters),
        violations=tuple(
            _violated(violation, cluster.id, snapshot)
            for cluster in clusters
            for violation in find_violations(snapshot, cluster.id)
            if (vm is None or vm in violation.constraint.vms)
            and (host is None or any(at.host == host for at in violation.locations))
            and (group is None or group in violation.groups)
        ),
        unknown=tuple(
            dict.fromkeys(why for cluster in clusters for why in find_unjudged(snapshot, cluster.id))
        ),
    )


def _violated(violation: Violation, cluster: str, snapshot: Snapshot) -> ViolatedConstraint:
    of = named_cluster(cluster, snapshot)
    found = with_names(ViolatedConstraint, violation, snapshot, sentence="", cluster=of)
    return replace(found, sentence=_sentence(found))


# -- in words
def _text(answer: ViolationsDocument, shown: Shown) -> Iterator[str | Table]:
    if answer.violations:
        yield table(answer.violations, _COLUMNS)
    yield from (f"Not known yet: {why}." for why in answer.unknown)
    if not (answer.violations or answer.unknown):
        some = shown.asks_for("clusters", "vm", "host", "group")
        yield "No rule that was asked about is violated." if some else "No running VM violates a rule."


_COLUMNS: Columns = {
    "cluster": lambda one: one.cluster.name,
    "rule": lambda one: _asked(one),
    "violated": lambda one: "\n".join(_titles(one)),
    "members": lambda one: "\n".join(_places(one)),
}


def _sentence(found: ViolatedConstraint) -> str:
    """A violated rule in one line; VMs that violate it have a *."""
    return f"{', '.join(_titles(found))} asks for its VMs {_asked(found)}: {', '.join(_places(found))}"


def _asked(found: ViolatedConstraint) -> str:
    return f"{found.asks} ({'hard' if found.hard else f'soft, priority {found.priority:g}'})"


def _titles(found: ViolatedConstraint) -> Iterator[str]:
    return (group.title for group in found.groups)


def _places(found: ViolatedConstraint) -> Iterator[str]:
    """Those that violate it come first: of many members, a table shows only some."""
    offenders = {vm.id for vm in found.offenders}
    for at in sorted(found.locations, key=lambda at: at.vm.id not in offenders):
        mark = " *" if at.vm.id in offenders else ""
        yield f"{at.vm.name} on {at.host.name}{'' if at.host_up else ' (not up)'}{mark}"
