"""What is asked at the service's socket: a decision, the state as far as it has changed, to be woken by it.

In JSON, which a policy unit writes and reads by the standard library, with lines of host ids after it: as
JSON, thousands of these would take longer than the decision. The state, which is large, is MessagePack.
"""

from collections.abc import Callable
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
from msgspec.structs import replace

from ovirt_placement.inventory.connection import NoService, Services
from ovirt_placement.inventory.publication import Changes
from ovirt_placement.model import Pending


class Measured(IntEnum):
    """How much of what is measured a question needs; each holds the one before."""

    #: Whether rules are satisfied: nothing.
    NOTHING = 0
    #: What units of a cluster's policy say, ours and the engine's filters: what these read.
    FOR_UNITS = 1
    #: The check of HA reservation as well.
    FOR_RESERVATION = 2


#: What a policy unit does.
Method = Literal["filter", "score", "balance"]


class Refresh(msgspec.Struct, tag="refresh", frozen=True):
    """Answer with the state once it holds at this moment or later.

    Usually it is enough that engine and store report no change since. With `whole`, everything of the engine
    must have been read since: for who may not rely on events, which can be late. With `vm`, the engine must
    have been asked for that VM lately if it is not among those that are known. `known` is the version that
    the asker has: it gets what has changed since, or with None the moments alone.
    """

    not_before: float
    whole: bool = False
    vm: str | None = None
    known: int | None = 0


class Wake(msgspec.Struct, tag="wake", frozen=True):
    """Answer when there is another version than this."""

    version: int


class Decide(msgspec.Struct, tag="decide", frozen=True):
    """Answer as a policy unit: the hosts of a filter, the ranks of a weight, the move of a balance."""

    method: Method
    unit: str
    #: In the lines after the rest, as in the answer.
    hosts: list[str] = []
    vm: str = ""
    parameters: dict[str, str] = {}
    #: A person asks: nothing follows from the answer.
    by_hand: bool = False
    #: Whether reasons are recorded, and whether anybody reads in a log why each host fares as it does.
    records: bool = False
    explains: bool = False
    #: Whether the caller asks again by itself for a VM that the engine does not show yet.
    asks_again: bool = False


Question = Refresh | Wake | Decide


class State(msgspec.Struct, frozen=True):
    """The state of a version, as far as it differs from what the asker has; or why there is no newer one."""

    version: int = 0
    #: The version that the changes are to; 0 if they are all there is.
    since: int = 0
    moments: tuple[float, ...] = ()
    changes: Changes = Changes()
    #: What is on its way and no part of the version: open intents, and what was accepted a moment ago.
    pending: tuple[Pending, ...] = ()
    error: str | None = None


class Decided(msgspec.Struct, frozen=True):
    """What a unit answers."""

    #: The hosts that a filter accepts, that a weight ranks, or where a balance sends the VM.
    hosts: list[str] = []
    ranks: list[int] = []
    vm: str = ""
    #: Of the state that was decided on.
    age_seconds: float = 0.0
    #: Why hosts were refused, as JSON.
    reasons: str = ""
    #: Why there is no answer. It `refuses` the VM loudly, or is to be asked again: the VM is `awaited`.
    failure: str | None = None
    refuses: bool = False
    awaited: bool = False
    #: Lines for the caller's log: level and text.
    log: list[tuple[int, str]] = []


#: A list of 5,000 hosts takes 200 KiB.
LONGEST_QUESTION = 1 << 20

Answer = TypeVar("Answer", State, Decided, int)
Known = TypeVar("Known")

question_decoder: msgspec.json.Decoder[Question] = msgspec.json.Decoder(Question)


def encoded(content: Question | State | Decided | int) -> bytes:
    """What travels in a frame."""
    if isinstance(content, State):
        return msgspec.msgpack.encode(content)
    if not isinstance(content, Decide | Decided):
        return msgspec.json.encode(content)
    rest = msgspec.json.encode(replace(content, hosts=[]))
    return b"\n".join((rest, "\n".join(content.hosts).encode())) if content.hosts else rest


def decoded(content: bytes | bytearray, decode: Callable[[bytes | bytearray], Known]) -> Known:
    """What was asked or answered, with its lines of hosts. Raises `ValueError` if it is nothing such."""
    rest, _, hosts = content.partition(b"\n")
    found = decode(rest)
    if not hosts:
        return found
    if not isinstance(found, Decide | Decided):
        raise ValueError("no hosts belong to this")
    return replace(found, hosts=hosts.decode().split("\n"))


def ask(
    directory: Path, question: Question, timeout: float, kind: type[Answer], services: Services | None = None
) -> Answer:
    """Ask the service, by what is known of the `services`, if any, and wait at most this many seconds.

    Raises what `Services.ask` raises.
    """
    made = Services()
    put = made.put if services is None else services.ask
    try:
        answer = put(directory, encoded(question), timeout)
        if kind is State:
            return msgspec.msgpack.decode(answer, type=kind)
        found: Answer = decoded(answer, partial(msgspec.json.decode, type=kind))
        return found
    except ValueError:
        raise NoService from None
    finally:
        made.close()


def ask_moments(directory: Path, timeout: float) -> tuple[float, ...]:
    """The moments of what the service knows, as `Moments` has them; none of nothing. Raises as `ask` does."""
    return ask(directory, Refresh(0.0, known=None), timeout, State).moments
