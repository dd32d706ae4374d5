"""The engine offers only hosts that are up."""

from __future__ import annotations

from ovirt_placement.model import Snapshot
from ovirt_placement.rules.reasons import Reason, ReasonKind
from ovirt_placement.rules.rule import Rule, UnitKind
from ovirt_placement.rules.verdict import Request, Verdict

HOST_NOT_UP = ReasonKind("host_not_up", "is not up", veto=True)


def filter_hosts(snapshot: Snapshot, request: Request) -> tuple[Verdict, ...]:
    """Refuse hosts that are not up; of one that is not known nothing is said here."""

    def reasons(host: str) -> tuple[Reason, ...]:
        known = snapshot.host_by_id.get(host)
        return () if known is None or known.up else (Reason(HOST_NOT_UP, host=host),)

    return tuple(Verdict.of(host, reasons(host)) for host in request.candidate_hosts)


RULE = Rule(
    name="Status",
    kind=UnitKind.FILTER,
    ours=False,
    fixed=True,
    alike=lambda snapshot, vm: None,
    filter=filter_hosts,
)
