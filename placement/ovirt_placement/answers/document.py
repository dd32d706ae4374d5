"""What all answers share: kind, version and age, and words that promise something."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec

from ovirt_placement.config import Config
from ovirt_placement.inventory import client as inventory
from ovirt_placement.inventory.connection import SOCKET_NAME
from ovirt_placement.inventory.decision import NoSnapshot
from ovirt_placement.inventory.publication import Measured
from ovirt_placement.model import Cluster, Snapshot
from ovirt_placement.model.names import Entity, GroupOrRule, Identified, NamedHost, NamedVm, choices
from ovirt_placement.model.record import Record, with_names
from ovirt_placement.rules.elements.rule import Rule
from ovirt_placement.rules.elements.verdict import Reason, sentence
from ovirt_service.decoding import nearest
from ovirt_service.errors import UserError

# -- What every answer as data says of itself: its kind, the version of all that stands in it, its age.
#: Grows when something that programs may rely on goes, or changes its meaning; not when something is added.
VERSION: Literal[1] = 1


class Document(Record, frozen=True, kw_only=True, omit_defaults=False, tag_field="kind"):
    """An answer as data; its `kind` says which one."""

    version: Literal[1] = VERSION
    #: When all of it was so (ISO 8601), if the engine is away and what was known of old answers; else null.
    as_of: str | None = None
    #: How long ago that was.
    age_seconds: float | None = None


#: Below the text of a change that was only tried.
DRY_RUN: Final = "Nothing was written: this was a dry run."


class ChangeDocument(Document, frozen=True, kw_only=True):
    """What every command says that changes something; kinds of it add `before` and `after`.

    These hold what the change concerns, and nothing else.
    """

    #: Whether something is another now than before; in a dry run, whether it would be.
    changed: bool
    #: Whether it was but tried: then nothing is written, and `after` is what would be.
    dry_run: bool


# -- What an answer is shown by: lines and tables.
class Table(NamedTuple):
    """Rows below headers; of many, a person sees some."""

    rows: Sequence[Sequence[object]]
    headers: Sequence[str]
    whole: bool = False


#: What stands below each header, of an item that has a row.
Columns = Mapping[str, Callable[[Any], object]]


def table(items: Iterable[object], columns: Columns, *, whole: bool = False) -> Table:
    return Table([[cell(one) for cell in columns.values()] for one in items], tuple(columns), whole)


class Shown(NamedTuple):
    """How an answer is shown: whole, or as much as a person reads; with which words, and about what."""

    whole: bool = True
    words: Mapping[str, Any] = {}
    state: Any = None

    def asks_for(self, *words: str) -> bool:
        """Whether any of these words was given: of the rest nothing is known."""
        return any(self.words.get(word) is not None for word in words)


class Folded(str):
    """A line that a terminal folds at words, below an indentation."""

    __slots__ = ()


#: Of a longer table, a person sees this many rows.
MOST_ROWS: Final = 20


def too_many(items: Sequence[object]) -> bool:
    """Whether it is more than a person reads."""
    return len(items) > MOST_ROWS


# -- What is typed in commands that an answer names.
#: A shell, and a list with commas, reads it as it stands.
_PLAIN = re.compile(r"[\w.][\w.-]*")


def typed(one: Identified, entities: Iterable[Identified]) -> str:
    """What is typed for it: its name, or its id where that means others too or a shell splits it."""
    shared = sum(one.name in (other.name, other.id) for other in entities) > 1
    return one.id if shared or _PLAIN.fullmatch(one.name) is None else one.name


# -- How long something is estimated to take, in words that are no more exact than the estimate.
_A_MINUTE = 60
_AN_HOUR = 60 * _A_MINUTE


def duration_text(seconds: float) -> str:
    if seconds < _A_MINUTE:
        return f"{max(1, round(seconds))} s"
    if seconds < _AN_HOUR:
        return f"{round(seconds / _A_MINUTE)} min"
    return f"{seconds / _AN_HOUR:.1f} h"


# -- The words that promise something, each said by one function.
# "Healthy" is `health.judge`'s, of all clusters and of each, and that an alert has ended is
# `ovirt_enforcer.watchers.ha_watch.due`'s.
def safe_word(safe: bool | None) -> str:
    """Of a check of highly available VMs.

    "safe" promises: no such VM is down, unknown or on a host that does not answer; and for each set of hosts
    that is to be able to fail there is an order of starts of which each passes every filter that is known
    (docs/rules.md), as things stand. "unsafe": of some set it is proven that there is none, or a VM is lost.
    "unknown" promises neither.
    """
    return "unknown" if safe is None else "safe" if safe else "unsafe"


def fewest_text(proven: bool, what: str = "", *, otherwise: str = "perhaps fewer would do") -> str:
    """Of migrations, with what they do: "the fewest that repair all".

    "the fewest" is said only of what is proven, and promises: no legal sequence under all rules repairs or
    empties more, and none that does as much has fewer migrations. What was not tried whole takes
    the word away, as a filter of others or a deadline that ended: then `otherwise` is said.
    """
    return f"the fewest{what}" if proven else otherwise


def fewest_rounds_text(proven: bool, migrations_at_least: int) -> str:
    """Of hosts that are taken out in rounds, after the count of migrations.

    "proven" promises: no plan under all rules takes the hosts out in fewer rounds, and none in as many
    rounds with fewer migrations.
    """
    if proven:
        return "(proven: no plan has fewer rounds, nor as many and fewer migrations)"
    return f"(at least {migrations_at_least} in that many rounds)"


def none_text(proven: bool, what: str, otherwise: str) -> str:
    """That nothing helps: "no migrations let VM a start".

    It promises, where it is proven: no legal sequence of migrations under all rules does it, as things
    stand. Where not all was tried, `otherwise` says that none was found.
    """
    return f"no {what}" if proven else otherwise


# -- Says a rule's reasons in sentences, and as data: with names next to ids.
#: How many names of a longer list a person reads.
MOST_NAMES = 8


class Unit(Record, frozen=True, omit_defaults=False):
    """Who says something: a policy unit of ours, or one of the engine's own, which it calls internal."""

    name: str
    internal: bool


class Said(Record, frozen=True, omit_defaults=False):
    """A reason as people and programs get it."""

    kind: str
    #: Whether it keeps the VM off the host; else it is a note.
    veto: bool
    group: GroupOrRule | None
    vm: NamedVm | None
    host: NamedHost | None
    number: float | None
    unit: str | None
    sentence: str
    #: Whose verdict or remark it is.
    by: tuple[Unit, ...]


def said(given: tuple[Reason, Iterable[Rule]], snapshot: Snapshot) -> Said:
    """A reason with its sentence, and the units of the rules that give it."""
    reason, rules = given
    kind, by = reason.kind, tuple(map(_unit, rules))
    text = sentence(reason, snapshot)
    return with_names(Said, reason, snapshot, kind=kind.name, veto=kind.veto, sentence=text, by=by)


def unit_name(rule: Rule) -> str:
    """Whose it is, by one rule."""
    return unit_names([_unit(rule)])


def unit_names(units: Iterable[Unit]) -> str:
    """Whose it is: a unit of ours by its name alone, one of the engine's own as such."""
    return ", ".join(f"the engine's {unit.name}" if unit.internal else unit.name for unit in units)


def listed(names: Sequence[str], joint: str = ", ", *, whole: bool = False) -> str:
    """Names on a line; unless all are wanted, no more than a person reads."""
    if whole or len(names) <= MOST_NAMES:
        return joint.join(names)
    return f"{joint.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES} more"


def failing_text(domains: Sequence[str], hosts: Sequence[str]) -> str:
    """What fails together: these domains, or hosts where none are."""
    kind = "failure domain" if domains else "host" + "s" * (len(hosts) > 1)
    return f"{kind} {' and '.join(domains or hosts)}"


def _unit(rule: Rule) -> Unit:
    return Unit(rule.name, not rule.ours)


def utc_text(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def upgrade_text(cluster: Cluster) -> str:
    """Say that the engine marks a cluster as being upgraded, and who began that, where it is known."""
    who = f" ({cluster.upgrade_correlation_id})" if cluster.upgrade_correlation_id else ""
    return f"the cluster is being upgraded{who}"


# -- Finds what a word means: a VM, host, cluster or group by its id or name.
def find(word: str, wanted: str, items: Iterable[Entity], snapshot: Snapshot | None = None) -> Entity:
    """The VM, host, cluster or group that a word means: its id, or its name if no other has it too.

    Raises `UserError` with the nearest right name, or with the ids to choose from; the snapshot says where
    each of these is.
    """
    known = tuple(items)
    by_id = {item.id: item for item in known}
    if word in by_id:
        return by_id[word]
    found = [item for item in known if item.name == word]
    if len(found) > 1:
        raise UserError(f'{wanted} "{word}" is ambiguous: say {choices(found, snapshot)}')
    if not found:
        raise UserError(f'no {wanted} "{word}"{nearest(word, [item.name for item in known])}')
    return found[0]


# -- How old an answer may be: what is known of the engine, of old if need be, and the date of an answer.
#: Long enough for an inventory of this machine to hand over the state of a large engine, in seconds.
_A_MOMENT = 2.0
#: So long is waited for an engine that hangs, where something older is known.
_FRESH_SECONDS = 5.0

_Answer = TypeVar("_Answer", bound=Document)


class KnownState(NamedTuple):
    """What is known of the engine, and if the engine is away, since when it may have changed."""

    known: inventory.Known
    #: How old it is; None if it is no older than was asked for.
    age_seconds: float | None = None
    #: Why nothing newer is known.
    error: str | None = None


def known_state(
    config: Config,
    *,
    deadline: float,
    max_age: float | None = None,
    measured: Measured = Measured.FOR_RESERVATION,
    stale: bool = False,
) -> KnownState:
    """What is known no older than `max_age` seconds, or than the configuration allows.

    With `stale`, what the inventory published last, however old, where nothing newer is to be had within a
    few seconds. Raises `NoSnapshot` if there is nothing until the `deadline` (seconds).
    """

    def read(seconds: float) -> KnownState:
        return KnownState(
            inventory.known(config=config, max_age=max_age, deadline=seconds, measured=measured)
        )

    served = False
    if stale:
        with suppress(OSError):  # whether an inventory service has been here; not that it answers
            served = (config.inventory.directory / SOCKET_NAME).exists()
    if not served:
        return read(deadline)
    try:
        return read(min(deadline, _FRESH_SECONDS))
    except NoSnapshot as error:
        with suppress(NoSnapshot):
            last = inventory.known(config=config, max_age=math.inf, deadline=_A_MOMENT)
            # Where no service answers, it is what this process itself once read, perhaps days ago.
            if last.publication is not None:
                return KnownState(last, last.publication.age_seconds, str(error))
        if deadline <= _FRESH_SECONDS:
            raise
    return read(deadline - _FRESH_SECONDS)


def dated(answer: _Answer, age_seconds: float | None) -> _Answer:
    """The answer with its age; as it is, if it is of now."""
    if age_seconds is None:
        return answer
    as_of = datetime.now(UTC) - timedelta(seconds=age_seconds)
    return msgspec.structs.replace(
        answer, as_of=as_of.isoformat(timespec="seconds"), age_seconds=round(age_seconds, 1)
    )
