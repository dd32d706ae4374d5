"""Of whom a filter would like to know first where the engine has put them, in a burst of starts."""

from __future__ import annotations

from collections.abc import Sequence

from ovirt_placement.inventory.decision import Decision
from ovirt_placement.rules.rule import Rule
from ovirt_placement.rules.verdict import Request, Verdict


def doubtful_peers(rule: Rule, decision: Decision, request: Request, verdicts: Sequence[Verdict]) -> set[str]:
    """VMs for which it is worth to wait: hosts would be refused because of where they are expected.

    Not those whose host is sure by now, where it is enough that the weights prefer it; nor those by which the
    engine has judged itself.
    """
    others = decision.snapshot.unconfirmed - {*request.vms}
    if rule.peers is not None:
        others &= rule.peers(decision.snapshot, request)
    doubted = others - rule.judged_by_engine(decision.snapshot, request)
    if rule.filter is None or not decision.accepted.unsure(doubted):
        return set()
    accepted = {verdict.host for verdict in verdicts if verdict.accepted}
    against = (
        reason
        for verdict in rule.filter(decision.snapshot, request)
        if not verdict.accepted and verdict.host in accepted
        for reason in verdict.reasons
    )
    named = {reason.vm for reason in against if reason.vm is not None}
    return decision.accepted.unsure(named & doubted)
