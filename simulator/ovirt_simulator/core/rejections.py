"""A command that the engine refuses: the messages, and the HTTP status that the REST face answers with.

Source: the engine's EngineMessage and AppErrors; some texts are shortened.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


class Message(msgspec.Struct, frozen=True):
    """One reason of a refusal, as the engine words it; a conflict is with the state that something is in."""

    text: str
    conflict: bool = False


class Rejected(Exception):
    """The engine refuses a command.

    Without messages it came after validation (an external filter refused): HTTP 400, and the detail `[]`.
    """

    def __init__(self, *messages: Message) -> None:
        super().__init__(", ".join(message.text for message in messages))
        self.messages = messages

    @property
    def http_status(self) -> int:
        return 409 if any(message.conflict for message in self.messages) else 400

    @property
    def detail(self) -> str:
        """The fault's detail: a list as Java renders it."""
        return f"[{self}]"


class NotFound(LookupError):
    """An entity that is not there, where the engine answers 404."""

    def __init__(self, name: str) -> None:
        super().__init__(f"Entity not found: {name}")
        self.name = name


def existing(table: Mapping[str, Value], identity: str) -> Value:
    """Give what has this id; raise `NotFound` if nothing has."""
    if identity not in table:
        raise NotFound(identity)
    return table[identity]


def conflict(text: str) -> Rejected:
    """Refuse because of the state something is in: HTTP 409."""
    return Rejected(Message(text, conflict=True))


def bad_parameters(text: str) -> Rejected:
    """Refuse because of what was asked for: HTTP 400."""
    return Rejected(Message(text))


def vm_not_found(action: str) -> Rejected:
    return bad_parameters(f"Cannot {action} VM. VM is not found.")


def vm_being_migrated(name: str) -> Message:
    """Give the message of the lock that a migration holds; it names no action of its own."""
    return Message(f"Cannot migrate VM. VM {name} is being migrated.", conflict=True)


def migration_in_progress(action: str) -> Rejected:
    return conflict(f"Cannot {action} VM. VM migration is in progress.")


def vm_not_running(action: str) -> Rejected:
    return conflict(f"Cannot {action} VM. VM is not running.")


def vm_status_illegal(action: str, status: str) -> Rejected:
    return conflict(f"Cannot {action} VM because the VM is in {status} status.")


def invalid_host(action: str) -> Rejected:
    return bad_parameters(f"Cannot {action} VM. Invalid Host Id.")


def same_host() -> Rejected:
    return conflict("Cannot migrate VM, source and destination is the same.")


def all_hosts_filtered(action: str, refusals: Sequence[tuple[str, str, str]]) -> Rejected:
    """Refuse because internal filters left no host; one message for each: host's name, filter, reason.

    The engine puts one set of variables into all of them, so that each says what is true of the last one.
    """
    head = f"Cannot {action} VM. There is no host that satisfies current scheduling constraints."
    host, unit, reason = refusals[-1] if refusals else ("", "", "")
    last = Message(f"The host {host} did not satisfy internal filter {unit} because {reason}.")
    return Rejected(Message(f"{head} See below for details:", conflict=True), *([last] * len(refusals)))


def host_not_found(action: str) -> Rejected:
    return bad_parameters(f"Cannot {action} Host. Invalid Host Id.")
