"""`ovirt-placement setup`: a scheduling policy with our units, and clusters that use it."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from ovirt_placement import config
from ovirt_placement.answers.document import find
from ovirt_placement.answers.setup import (
    ADMISSION_UNITS,
    BASE,
    Overview,
    SetupPlan,
    Target,
    previous,
    read_overview,
    read_policy,
)
from ovirt_placement.answers.setup import answer as answers
from ovirt_placement.answers.setup.answer import PolicyChange, SetupOutcome, policy_change, policy_state
from ovirt_placement.answers.setup.plan import plan
from ovirt_placement.cli import changes
from ovirt_placement.cli.questions import add_command
from ovirt_placement.engine import policies
from ovirt_placement.engine.connection.client import EngineConnection
from ovirt_placement.engine.connection.failures import EngineAway, EngineSetupError
from ovirt_placement.engine.policies import Policy, PolicyRequest
from ovirt_placement.model import PlacementKey, Snapshot
from ovirt_placement.store.keys import DefaultKeyChange, DefaultKeys, KeyStore
from ovirt_placement.store.user_actions import UserActionKind
from ovirt_service.errors import UserError
from ovirt_service.files import held_alone
from ovirt_service.text import say

if TYPE_CHECKING:
    from ovirt_placement.forecast import Change

_NO_KEYS = DefaultKeyChange()


class _Task(NamedTuple):
    """One policy, and the way to plan what is to be done about it, by what the engine has at that moment."""

    policy: str
    plan: Callable[[Overview], SetupPlan]

    def planned(self, overview: Overview) -> SetupPlan | UserError:
        """What is to be done about a policy, or what speaks against it: that may be so of one of several."""
        try:
            return self.plan(overview)
        except (EngineAway, EngineSetupError):
            raise
        except UserError as error:
            return error


class _Setup(NamedTuple):
    """What the administrator asks setup to do."""

    args: argparse.Namespace
    connection: EngineConnection

    # -- The policies that are meant.
    def tasks(self, overview: Overview) -> Iterator[_Task]:
        """Raises `UserError` where it is not clear what is asked for."""
        args, name = self.args, self.args.policy or previous.DEFAULT
        if args.undo:
            for one in self._all_undone(overview) if args.all_policies else (name,):
                yield _Task(one, partial(self._undo, one))
            return
        clusters = [find(word, "cluster", overview.users).id for word in args.cluster]
        asked = dict(args.factor), dict(args.property), args.placement_keys, args.ha_admission
        target = Target(name, clusters, BASE, *asked)
        for each in previous.targets(overview, target) if args.all_policies else (target,):
            yield _Task(each.policy, partial(plan, self.connection, target=each))

    def _all_undone(self, overview: Overview) -> Iterable[str]:
        heads = tuple(previous.changed(self.connection, overview))
        # A policy may have been renamed or removed since its clusters were given keys.
        given_for: set[str] = set()
        with suppress(UserError):  # the store does not answer
            given_for = {one.policy for one in self._default_keys().given}
        return dict.fromkeys((*(head.name for head in heads), *sorted(given_for)))

    def _undo(self, name: str, overview: Overview) -> SetupPlan:
        policy = read_policy(self.connection, overview, name)
        return SetupPlan() if policy is None else previous.undo(overview, policy)

    def left_alone(self, overview: Overview) -> Iterator[str]:
        """What is not done about clusters, although all policies are meant."""
        for name in previous.upgrading(overview) if self.args.all_policies and not self.args.undo else ():
            yield f"the cluster {name} is being upgraded and is left alone: run setup again when that is over"

    # -- The special keys that setup gives clusters, and that its undoing takes back.
    def _planned_keys(self, policy: str, plan: SetupPlan) -> tuple[DefaultKeyChange, DefaultKeys]:
        """What is to become of special keys, by what stands; and that.

        Raises `UserError` if keys are to be given, and the store does not answer. That does not prevent
        undoing the rest: a line on standard error says that they stay.
        """
        if not self.args.undo and not self.args.placement_keys:
            return _NO_KEYS, DefaultKeys()
        try:
            there = self._default_keys()
        except UserError as error:
            if not self.args.undo:
                raise
            say(
                f"warning: the placement keys that setup gave clusters stay until it is undone again: {error}"
            )
            return _NO_KEYS, DefaultKeys()
        return self._decided_keys(policy, plan, there), there

    def _default_keys(self) -> DefaultKeys:
        return changes.stored(KeyStore, self.args, KeyStore.default_keys, DefaultKeys())

    def _decided_keys(self, policy: str, plan: SetupPlan, there: DefaultKeys) -> DefaultKeyChange:
        if self.args.undo:
            return answers.keys_to_remove(policy, there)
        return answers.keys_to_give(policy, plan.clusters, there)

    def _write_keys(self, policy: str, plan: SetupPlan) -> None:
        with changes.opened(KeyStore, self.args) as store:
            store.change_default_keys(
                lambda there: self._decided_keys(policy, plan, there), set_by=changes.login_name()
            )

    # -- What is previewed, and what is done.
    def intended(self, overview: Overview, tasks: Iterable[_Task]) -> tuple[Snapshot, Change]:
        """Our units in force in their clusters; with what speaks against single policies, and their notes."""
        from ovirt_placement.forecast import changed_policies

        policies: dict[str, Policy] = {}
        keys: list[PlacementKey] = []
        conflicts: list[str] = []
        for task in tasks:
            plan = task.planned(overview)
            notes = (str(plan),) if isinstance(plan, UserError) else plan.notes
            conflicts += (f"policy {task.policy}: {note}" for note in notes)
            if not isinstance(plan, UserError) and plan.policy is not None:
                policies |= dict.fromkeys(plan.clusters, plan.policy)
                keys += (one.key for one in self._planned_keys(task.policy, plan)[0].give)
        before = changes.fresh_state(self.args)
        return before, changed_policies(before, policies, keys, conflicts)

    def carried_out(self, tasks: Iterable[_Task]) -> Iterator[SetupOutcome]:
        """Raises `UserError` for what goes wrong, but for what speaks against one policy of several."""
        overview = None
        for task in tasks:
            if overview is None or not self.args.dry_run:
                overview = read_overview(self.connection)
            plan = task.planned(overview)
            if not isinstance(plan, UserError):
                yield self._carry_out(task, plan, overview)
            elif self.args.all_policies:
                yield SetupOutcome(PolicyChange(task.policy, (), (), (), str(plan)))
            else:
                raise plan
            if self.args.undo and not isinstance(plan, UserError):
                overview = overview.undone(task.policy, plan)  # which is planned by where nothing is sent

    def _carry_out(self, task: _Task, plan: SetupPlan, overview: Overview) -> SetupOutcome:
        keys, there = self._planned_keys(task.policy, plan)
        of_clusters = tuple(answers.changes(keys, overview.users))
        notes = answers.notes(keys, there, overview.users)
        change = policy_change(task.policy, plan, of_clusters, notes)
        if not plan.requests and keys == _NO_KEYS:
            return SetupOutcome(change)
        before = policy_state(overview, read_policy(self.connection, overview, task.policy))
        if self.args.dry_run:
            return SetupOutcome(change, before, policy_state(overview, plan.after, plan.users))
        given = tuple(one.sentence for one in of_clusters)
        overview = self._send_and_write(task, plan, given, keys=keys != _NO_KEYS)
        after = policy_state(overview, read_policy(self.connection, overview, task.policy))
        return SetupOutcome(change, before, after)

    def _send_and_write(
        self, task: _Task, plan: SetupPlan, given: tuple[str, ...], *, keys: bool
    ) -> Overview:
        """Keys come last and go first: a cluster has them only while its policy places by them."""
        undoes = self.args.undo
        kind = UserActionKind.SETUP_UNDO if undoes else UserActionKind.SETUP
        asked = tuple(request.what for request in plan.requests)
        with changes.recorded(self.args, kind, task.policy, (*given, *asked) if undoes else (*asked, *given)):
            if undoes and keys:
                self._write_keys(task.policy, plan)
            self._send(plan.requests)
            overview = read_overview(self.connection)
            # The engine silently takes another policy for one that it does not find.
            if left := task.plan(overview).requests:
                what = "; ".join(request.what for request in left)
                raise UserError(
                    f"the engine accepted all requests, but not all took effect: {what}."
                    " Does another user change the policy? Run setup again"
                )
            if not undoes and keys:
                self._write_keys(task.policy, plan)
        return overview

    def _send(self, requests: tuple[PolicyRequest, ...]) -> None:
        policy_id: str | None = None

        def send(request: PolicyRequest) -> None:
            nonlocal policy_id
            policy_id = policies.send(self.connection, request, policy_id)

        done = "requests are done; this one failed"
        changes.one_by_one(requests, send, lambda one: f"{done}: {one.what}", "run setup again")


# -- The command.
DESCRIPTION = """\
Make or update a scheduling policy with our units, and let clusters use it; with --undo, give back what was
before. A second run changes nothing. The user needs to be a SuperUser. See docs/setup.md.
"""

EXAMPLES = """\
  ovirt-placement setup --cluster blue --dry-run
  ovirt-placement setup --all-policies --undo
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser], summary: str) -> None:
    parser = add_command(subparsers, "setup", summary, DESCRIPTION, run, EXAMPLES)
    add = parser.add_argument
    several = partial(add, action="append", default=[])
    add("--policy", metavar="NAME", help="the policy's name (default: ovirt-placement)")
    add(
        "--all-policies",
        action="store_true",
        help="all policies that clusters use, or copies of locked ones; with --undo, all that changed",
    )
    add(
        "--undo",
        action="store_true",
        help="take our units out, and give back the engine's units and each cluster's policy",
    )
    several("--cluster", metavar="CLUSTER", help="a cluster that is to use the policy; repeatable")
    several(
        "--factor",
        metavar="UNIT=N",
        type=_factor,
        help="the factor of a weight of ours and, unless named, of the engine's next to it; repeatable",
    )
    several(
        "--property",
        metavar="KEY=VALUE",
        type=_pair,
        help="a unit's parameter, for the policy and the clusters; repeatable",
    )
    add(
        "--placement-keys",
        action="store_true",
        help="also the units of placement keys, and weights for the special keys if none is set",
    )
    add(
        "--ha-admission",
        choices=tuple(ADMISSION_UNITS),
        help="also HA admission control: refuse (hard) or avoid (soft) starts that endanger restarts",
    )
    changes.add_writing(parser)


#: One configured by the environment alone keeps no other away.
_BUSY = "another ovirt-placement setup changes policies now: run setup again when it has ended"


def run(args: argparse.Namespace) -> int:
    _check_options(args)
    with ExitStack() as held:
        if not args.dry_run:
            # Two at once would attach units twice: the engine then refuses every change until it restarts.
            held.enter_context(held_alone(config.load(args.config).source, _BUSY))
        connection = held.enter_context(changes.connected(args))
        asked, overview = _Setup(args, connection), read_overview(connection)
        notes, tasks = tuple(asked.left_alone(overview)), tuple(asked.tasks(overview))
        if (status := changes.stops(args, lambda: asked.intended(overview, tasks))) is not None:
            return status
        outcomes = [*asked.carried_out(tasks)]
    answer = answers.setup(outcomes, notes, dry_run=args.dry_run)
    changes.show_change(args, answer, answers.setup_lines(answer, undo=args.undo, named=args.all_policies))
    if failed := [one for one in answer.policies if one.error is not None]:
        reported = "; ".join(f"{one.policy}: {one.error}" for one in failed)
        raise UserError(f"{len(failed)} of {len(answer.policies)} policies stay as they are: {reported}")
    return 0


_NOT_UNDOING = (
    *("--cluster", "--factor", "--property", "--placement-keys", "--ha-admission", "--what-if", "--fail-if"),
)


def _check_options(args: argparse.Namespace) -> None:
    """Refuse options that say nothing together."""

    def given(option: str) -> bool:
        return getattr(args, option[2:].replace("-", "_")) not in (None, False, [], ())

    for option, names, because in (
        ("--all-policies", ("--policy", "--cluster"), "all policies that clusters use are meant"),
        ("--undo", _NOT_UNDOING, "it gives everything back that setup took or gave"),
    ):
        for name in names:
            if given(option) and given(name):
                raise UserError(f"{option} goes without {name}: {because}")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f'"{text}": write NAME=VALUE')
    return name, value


def _factor(text: str) -> tuple[str, int]:
    name, value = _pair(text)
    if not value.isdecimal() or int(value) > 2**31 - 1:
        raise argparse.ArgumentTypeError(f'"{text}": a factor is a whole number, at least 0')
    return name, int(value)
