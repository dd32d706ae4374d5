"""What `ovirt-placement doctor` finds, one file for each thing that can be wrong; each yields findings."""

from ovirt_placement.model.names import Identified, Named
from ovirt_placement.model.record import Record


class FoundProblem(Record, frozen=True, omit_defaults=False):
    """One thing that is not right, and what would repair it."""

    kind: str
    sentence: str
    remedy: str
    #: The cluster that it concerns.
    cluster: Named | None
    #: Whether a rule means nothing for it: `--event` reports such findings to the engine.
    rule: bool


def problem(
    kind: str, sentence: str, remedy: str, *, cluster: Identified | None = None, rule: bool = False
) -> FoundProblem:
    """Something that is not right, perhaps with one cluster."""
    return FoundProblem(
        kind, sentence, remedy, None if cluster is None else Named(cluster.id, cluster.name), rule
    )


class NotInUse(str):
    """A part of the product that is not at work, with what would put it to work; nothing is wrong with it."""

    __slots__ = ()
