"""Which plans the enforcer was given somebody's word for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.model.record import Record
from ovirt_placement.store.approvals import Approval, WaitingPlan


class ApprovedPlan(Record, frozen=True, omit_defaults=False):
    """The plan that was approved of last in a cluster, given by its id."""

    cluster: str
    plan: str


class ApprovalChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="approval_change"):
    """What was approved of in these clusters before and afterwards, which lasts from then."""

    before: tuple[ApprovedPlan, ...]
    after: tuple[ApprovedPlan, ...]
    #: The plans as an administrator reads them.
    text: str


def approval_change(
    before: Iterable[Approval], plans: Mapping[str, str], text: str, dry_run: bool
) -> ApprovalChangeDocument:
    """What approving of these plans changes, by their clusters."""
    return ApprovalChangeDocument(
        changed=bool(plans),
        dry_run=dry_run,
        before=tuple(ApprovedPlan(one.cluster, one.plan) for one in before if one.cluster in plans),
        after=tuple(ApprovedPlan(cluster, plan) for cluster, plan in plans.items()),
        text=text,
    )


class RefusalChangeDocument(ChangeDocument, frozen=True, kw_only=True, tag="refusal_change"):
    """The plan that waited in a cluster, and waits no more: null afterwards."""

    before: ApprovedPlan
    after: None
    #: The plan as an administrator reads it.
    text: str


def refusal_change(refused: WaitingPlan, dry_run: bool) -> RefusalChangeDocument:
    """What refusing a plan changes."""
    return RefusalChangeDocument(
        changed=True,
        dry_run=dry_run,
        before=ApprovedPlan(refused.cluster, refused.plan),
        after=None,
        text=refused.text,
    )
