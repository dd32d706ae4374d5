"""Sends what is planned for a policy, and looks whether the engine kept it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ovirt_placement.answers.setup.answer import SetupOutcome, after_requests, policy_state
from ovirt_placement.answers.setup.plan import SetupPlan
from ovirt_placement.answers.setup.previous import Overview, read_overview
from ovirt_placement.cli.recorded import recorded
from ovirt_placement.cli.setup.default_keys import KeyPlan, planned_keys, write_keys
from ovirt_placement.cli.setup.tasks import SetupTask
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError
from ovirt_placement.engine.writing import policies
from ovirt_placement.engine.writing.policies import PolicyContent, PolicyRequest
from ovirt_placement.store.user_actions import UserActionKind
from ovirt_service.errors import UserError

_NOTHING = SetupPlan((), ())


def carry_out(connection: EngineConnection, task: SetupTask, args: argparse.Namespace) -> SetupOutcome:
    """Raises `UserError` for what goes wrong, but for what speaks against one policy of several."""
    try:
        plan = task.plan()
    except (EngineAway, EngineSetupError):
        raise
    except UserError as error:
        if not args.all_policies:
            raise
        return SetupOutcome(task.policy, _NOTHING, error=str(error))
    keys = planned_keys(args, task.policy, task.users, plan)
    if not plan.requests and keys.is_empty:
        return SetupOutcome(task.policy, plan, keys.clusters, keys.notes)
    overview, content = _read(connection, task.policy)
    before = policy_state(overview, content)
    if args.dry_run:
        after = after_requests(overview, content, plan.requests)
    else:
        _do(connection, task, args, plan, keys)
        after = policy_state(*_read(connection, task.policy))
    return SetupOutcome(task.policy, plan, keys.clusters, keys.notes, before=before, after=after)


def _read(connection: EngineConnection, policy: str) -> tuple[Overview, PolicyContent | None]:
    overview = read_overview(connection)
    head = overview.named(policy)
    return overview, None if head is None else policies.read_content(connection, head)


def _do(
    connection: EngineConnection, task: SetupTask, args: argparse.Namespace, plan: SetupPlan, keys: KeyPlan
) -> None:
    """Keys come last and go first: a cluster has them only while its policy places by them."""
    kind = UserActionKind.SETUP_UNDO if args.undo else UserActionKind.SETUP
    asked = tuple(request.what for request in plan.requests)
    given = tuple(one.sentence for one in keys.clusters)
    with recorded(args, kind, task.policy, (*given, *asked) if args.undo else (*asked, *given)):
        if args.undo and not keys.is_empty:
            write_keys(args, task.policy, plan)
        _send(connection, plan.requests)
        _check(task)
        if not args.undo and not keys.is_empty:
            write_keys(args, task.policy, plan)


def _send(connection: EngineConnection, requests: Sequence[PolicyRequest]) -> None:
    policy_id: str | None = None
    for done, request in enumerate(requests):
        try:
            policy_id = policies.send(connection, request, policy_id)
        except UserError as error:
            raise UserError(
                f"{done} of {len(requests)} requests are done; this one failed: {request.what}: {error}."
                " Repair that and run setup again: it goes on where it stopped"
            ) from None


def _check(task: SetupTask) -> None:
    """Look whether the engine kept all; for a policy that it does not find it silently takes another."""
    left = task.plan().requests
    if left:
        raise UserError(
            f"the engine accepted all requests, but not all took effect: {'; '.join(r.what for r in left)}."
            " Does somebody else change the policy? Run setup again"
        )
