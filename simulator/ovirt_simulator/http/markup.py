"""XML as text: content escaped, absent values left out, one line for each child of an entity.

Plain text is many times faster than trees, and a list of ten thousand VMs must not stall the engine that it
shows. Everything here returns markup that may be joined; an empty string stands for "nothing".
"""

from __future__ import annotations

import re
from typing import TypeAlias
from urllib.parse import quote
from xml.sax.saxutils import escape

DECLARATION = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'

API = "/ovirt-engine/api"

#: Text that stands for itself in content and in attributes: nearly all, so looked at first.
_PLAIN = re.compile('[^<>&"\x00-\x1f\ud800-\udfff\ufffe\uffff]*')
_ILLEGAL = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

Value: TypeAlias = "str | int | float | bool | None"


def text(tag: str, value: Value) -> str:
    """An element that holds a value; nothing when the value is None."""
    if value is None:
        return ""
    return f"<{tag}>{content(value)}</{tag}>"


def content(value: str | int | float | bool) -> str:
    """A value as character data."""
    if isinstance(value, str):
        if _PLAIN.fullmatch(value):
            return value
        return escape(_ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value), {"\r": "&#13;"})
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def attribute(value: str) -> str:
    """A value as the content of a quoted attribute."""
    if _PLAIN.fullmatch(value):
        return value
    return escape(
        _ILLEGAL.sub("\N{REPLACEMENT CHARACTER}", value),
        {'"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"},
    )


def element(tag: str, *children: str) -> str:
    """An element around markup; without any it closes itself."""
    inside = "".join(children)
    return f"<{tag}>{inside}</{tag}>" if inside else f"<{tag}/>"


def lines(*children: str) -> str:
    """Children of an entity, each on a line of its own."""
    return "\n".join(filter(None, children))


def entity(tag: str, href: str | None, entity_id: str, *children: str) -> str:
    """An entity with its address and id; `href` is None where the engine gives none."""
    start = f'<{tag} id="{attribute(entity_id)}"'
    if href is not None:
        start = f'<{tag} href="{href}" id="{attribute(entity_id)}"'
    inside = lines(*children)
    return f"{start}>\n{inside}\n</{tag}>" if inside else f"{start}/>"


def collection(tag: str, items: list[str]) -> str:
    return f"<{tag}>\n" + "\n".join(items) + f"\n</{tag}>" if items else f"<{tag}/>"


def path(*segments: str) -> str:
    """The address of a resource: `path("vms", vm_id)` is /ovirt-engine/api/vms/ID."""
    return "/".join([API, *(quote(segment, safe="") for segment in segments)])


def document(root: str) -> str:
    return f"{DECLARATION}{root}\n"
