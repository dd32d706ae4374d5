"""What commands that change something share: who asks, the store, what is recorded, and previews."""

from __future__ import annotations

import argparse
import os
import pwd
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from ovirt_placement import config
from ovirt_placement.answers.document import ChangeDocument
from ovirt_placement.answers.question import REPAIR, conditions_parameter
from ovirt_placement.cli import questions
from ovirt_placement.inventory import client as inventory
from ovirt_placement.store.sql import access
from ovirt_placement.store.sql.access import StoreAccess
from ovirt_placement.store.user_actions import Act, UserActionKind, UserActionStore
from ovirt_service import identity
from ovirt_service.errors import UserError
from ovirt_service.text import say, unbroken

if TYPE_CHECKING:
    from ovirt_placement.engine.connection.client import EngineConnection
    from ovirt_placement.forecast import Change
    from ovirt_placement.model import Snapshot


# -- Who runs a command: the person, not the user that sudo or su made of them.
#: What the kernel remembers of the login that a process comes from, through sudo and su; this if of none.
_LOGIN = Path("/proc/self/loginuid")
_NONE = 2**32 - 1


def login_name() -> str:
    """The login of the user who runs this; with sudo and su, of the user who called these."""
    with suppress(OSError, ValueError, KeyError):
        number = int(_LOGIN.read_text())
        if number != _NONE:
            return pwd.getpwuid(number).pw_name
    # Only root is believed: all others could write there what they like.
    user = os.environ.get("SUDO_USER") if identity.CALLER == 0 else None
    try:
        return unbroken(user) if user else pwd.getpwuid(identity.CALLER).pw_name
    except KeyError:
        return f"uid {identity.CALLER}"


# -- Opens and reads parts of the store for a command, and asks the engine.
_Part = TypeVar("_Part", bound=StoreAccess)
_Answer = TypeVar("_Answer")
_Nothing = TypeVar("_Nothing")
_Item = TypeVar("_Item")


def opened(
    part: type[_Part], args: argparse.Namespace, *, create: bool = True
) -> AbstractContextManager[_Part]:
    """Open it for the engine of the configuration named; without `create`, to read what is there."""
    return access.opened(part, config.load(args.config), create=create)


def stored(
    part: type[_Part], args: argparse.Namespace, ask: Callable[[_Part], _Answer], nothing: _Nothing
) -> _Answer | _Nothing:
    """What it answers of that engine; `nothing` where there is no store yet."""
    return access.stored(part, config.load(args.config), ask, nothing)


def connected(args: argparse.Namespace) -> EngineConnection:
    from ovirt_placement.engine.connection.client import EngineConnection  # the SDK takes long to load

    return EngineConnection(config.load(args.config).engine)


def fresh_state(args: argparse.Namespace) -> Snapshot:
    """The state that a change is judged by: read now, with all that rules need."""
    return inventory.snapshot(
        config=config.load(args.config), max_age=0.0, deadline=questions.PATIENCE_SECONDS
    )


# -- Records who asks the engine for a change, before it is asked and once it has answered.
@contextmanager
def recorded(
    args: argparse.Namespace,
    kind: UserActionKind,
    subject: str,
    details: tuple[str, ...] = (),
    *,
    cluster: str = "",
    cluster_name: str = "",
) -> Iterator[None]:
    """Record an act that the block is, as begun, and then as done or failed.

    A store that is away, or that this machine has none of, does not prevent the act: a line on standard
    error says that it is not recorded.
    """
    from ovirt_placement.engine.connection.log_ins import given_token  # it is not known whose a token is

    act = Act(
        kind=kind,
        login=login_name(),
        engine_user=None if given_token() else config.load(args.config).engine.username,
        cluster=cluster,
        cluster_name=cluster_name,
        subject=subject,
        details=details,
    )
    number = _kept(args, "who does this", lambda store: store.begin(act))

    def end(error: str | None) -> None:
        if number is not None:
            _kept(args, "how this ended", lambda store: store.end(number, error))

    try:
        yield
    except BaseException as error:  # Ctrl-C as well: what was asked by then stays asked
        end(str(error) or type(error).__name__)
        raise
    end(None)


def _kept(args: argparse.Namespace, what: str, keep: Callable[[UserActionStore], _Answer]) -> _Answer | None:
    """Keep it in the store; a warning in place of an error of the store."""
    try:
        with opened(UserActionStore, args) as store:
            return keep(store)
    except UserError as error:
        say(f"warning: it is not recorded {what}: {error}")
    return None


def one_by_one(
    items: Sequence[_Item], do: Callable[[_Item], None], failed: Callable[[_Item], str], again: str
) -> None:
    """Ask for one after another. Raises `UserError`: how many are done, which failed, and what to do."""
    for done, one in enumerate(items):
        try:
            do(one)
        except UserError as error:
            raise UserError(
                f"{done} of {len(items)} {failed(one)}: {error}."
                f" Repair that and {again}: it goes on where it stopped"
            ) from None


def show_change(
    args: argparse.Namespace, answer: ChangeDocument, lines: Iterable[str], warnings: Iterable[str] = ()
) -> None:
    """Print what was changed: as JSON, or in lines; warnings stand on standard error."""
    for warning in warnings:
        say(f"warning: {warning}")
    if args.json:
        questions.show_json(answer)
    else:
        questions.show_text(lines)


# -- `--what-if` and `--fail-if` of commands that change something: look before anything is written.
def add_writing(parser: argparse.ArgumentParser) -> None:
    """Add both, with the rules to repair, `--config`, `--dry-run` and `--json`: of what writes anywhere."""
    parser.add_argument(
        "--what-if",
        action="store_true",
        help="write nothing; show the effect: violations, migrations, survived failures (docs/what-if.md)",
    )
    refused = "write nothing, and exit with status 3, if any of these is true"
    questions.add_parameter(parser, "fail_if", conditions_parameter(refused))
    parser.set_defaults(known_age_seconds=None)  # a change is judged by what is fresh
    questions.add_parameter(parser, "repair", REPAIR)
    questions.add_config(parser)
    questions.add_change(parser)


def stops(args: argparse.Namespace, intended: Callable[[], tuple[Snapshot, Change]]) -> int | None:
    """Report the effect if asked; the status of a command that then writes nothing, None where it goes on."""
    if not (args.what_if or args.fail_if):
        return None
    # Planning takes long to load.
    from ovirt_placement.answers.plans.what_if import FAILS, PLANNING_SECONDS, lines, preview
    from ovirt_placement.planning.plan import Deadline

    state, change = intended()
    deadline = Deadline.after(PLANNING_SECONDS)
    found = preview(state, change, repair=args.repair, deadline=deadline, fail_if=args.fail_if)
    if args.what_if or found.fails:
        if args.json:
            questions.show_answer(args, found)
        else:
            print("\n".join(lines(found)))
    if found.fails:
        return FAILS
    return 0 if args.what_if else None
