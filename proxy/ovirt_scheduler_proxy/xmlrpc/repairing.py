"""Makes calls well-formed in which the engine's Apache client wrote what XML cannot hold.

It writes a character beyond the first 65,536 as two references to halves of it, and control characters as
they are. A user who may set a property of a policy can write either into its value, and to a fault the engine
would keep all hosts.
"""

from __future__ import annotations

import re

#: What XML 1.0 cannot hold, not even escaped.
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_REFERENCES = re.compile(r"(?:&#[0-9]{1,7};)+")
_LAST = 0x10FFFF


#: What the value of a property holds; others' calls wait while more is replaced.
_MOST = 10_000
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})
#: What U+FFFE and U+FFFF begin with in UTF-8.
_LAST_OF_PLANE = b"\xef\xbf"


def is_beyond_repair(body: bytes) -> bool:
    """Whether a call has more of what XML cannot hold, or of references, than anybody would mean."""
    return body.count(b"&#") + _controls(body) > _MOST


def repaired(body: bytes) -> bytes:
    """The call with halves of a character put together, and U+FFFD for all else that XML cannot hold.

    The call as it is where it is no text, or has nothing of the kind: all others wait while it is looked for.
    """
    if b"&#" not in body and _LAST_OF_PLANE not in body and not _controls(body):
        return body
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return body
    return NOT_XML.sub("\ufffd", _REFERENCES.sub(_joined, text)).encode("utf-8")


def _controls(body: bytes) -> int:
    return len(body) - len(body.translate(None, _CONTROLS))


def _joined(found: re.Match[str]) -> str:
    numbers = map(int, found[0][2:-1].split(";&#"))
    halves = "".join([chr(number) if number <= _LAST else "\ufffd" for number in numbers])
    whole = halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join([f"&#{ord(character)};" for character in NOT_XML.sub("\ufffd", whole)])
