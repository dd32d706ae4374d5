"""A command that the engine refuses: the messages, and the HTTP status that the REST face answers with."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import msgspec

Value = TypeVar("Value")


class ErrorType(StrEnum):
    """The engine's error types of a message, which decide the HTTP status."""

    BAD_PARAMETERS = "BAD_PARAMETERS"
    CONFLICT = "CONFLICT"
    NONE = "NONE"


class Message(msgspec.Struct, frozen=True):
    """One reason of a refusal: the engine's message key and its resolved text."""

    key: str
    text: str
    type: ErrorType = ErrorType.NONE


class Rejected(Exception):
    """The engine refuses a command.

    Without messages it came after validation (an external filter refused): HTTP 400, and the detail `[]`.
    """

    def __init__(self, *messages: Message) -> None:
        super().__init__(", ".join(message.text for message in messages))
        self.messages = messages

    @property
    def http_status(self) -> int:
        """The status of the answer: 409 for a conflict, unless bad parameters come with it; else 400."""
        types = {message.type for message in self.messages} - {ErrorType.NONE}
        return 409 if types == {ErrorType.CONFLICT} else 400

    @property
    def detail(self) -> str:
        """The fault's detail: a list as Java renders it."""
        return "[" + ", ".join(message.text for message in self.messages) + "]"


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
