"""Reads a method call: the engine's own in the quick way, all others with lxml."""

from __future__ import annotations

import base64
import binascii
import contextlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from lxml import etree

from . import quick
from .fault import INVALID_REQUEST, NOT_WELL_FORMED, Fault
from .repairing import is_beyond_repair, repaired

#: Deeper nesting of elements than this is no call of the engine's; its own reach a depth of 11.
DEEPEST = 64

#: XML-RPC has none, and what takes long to read keeps other calls waiting.
_MOST_ATTRIBUTES = 10_000

#: From this many elements on, a list is first tried as a list of plain texts.
_LONG_LIST = 8

_texts_bare = etree.XPath("value[not(*)]/text()", smart_strings=False)
_texts_tagged = etree.XPath("value[count(*)=1]/string[not(*)]/text()", smart_strings=False)

_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")


class MethodCall(msgspec.Struct, frozen=True):
    method: str
    parameters: list[Any]


_parser = etree.XMLParser(
    resolve_entities=False,
    load_dtd=False,
    no_network=True,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


def read_call(body: bytes, most_elements: int) -> MethodCall:
    """Read a `methodCall`.

    Raises `Fault` for what is not well-formed, declares a document type, nests too deep, has too many
    elements, or is no method call.
    """
    if body.count(b"<") > 2 * most_elements:
        raise Fault(INVALID_REQUEST, f"the call has more than {most_elements} elements")
    if body.count(b'="') + body.count(b"='") > _MOST_ATTRIBUTES:
        raise Fault(INVALID_REQUEST, f"the call has more than {_MOST_ATTRIBUTES} attributes")
    found = quick.read(body)
    return MethodCall(*found) if found is not None else parse_call(body)


def parse_call(body: bytes) -> MethodCall:
    """Read any `methodCall` with the full parser. Raises `Fault` as `read_call` does."""
    root = _root(body)
    if root.getroottree().docinfo.internalDTD is not None:
        raise Fault(NOT_WELL_FORMED, "the call declares a document type, which is not accepted")
    if root.tag != "methodCall":
        raise Fault(INVALID_REQUEST, f"the document is a {_name(root)}, not a methodCall")
    method = root.findtext("methodName")
    if not method or not method.strip():
        raise Fault(INVALID_REQUEST, "the call has no methodName")
    parameters = root.find("params")
    values = [] if parameters is None else [_parameter(parameter) for parameter in parameters]
    return MethodCall(method.strip(), values)


def _root(body: bytes) -> etree._Element:
    if is_beyond_repair(body):
        raise Fault(NOT_WELL_FORMED, "the call is not well-formed XML: too many references to characters")
    try:
        return etree.fromstring(body, _parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        if (whole := repaired(body)) is not body:
            with contextlib.suppress(etree.XMLSyntaxError, ValueError):
                return etree.fromstring(whole, _parser)
        raise Fault(NOT_WELL_FORMED, f"the call is not well-formed XML: {_one_line(error)}") from None


def _parameter(parameter: etree._Element) -> Any:
    if parameter.tag != "param" or len(parameter) != 1:
        raise Fault(INVALID_REQUEST, "each of the params must be a param with one value")
    return _value(parameter[0], 1)


def _value(element: etree._Element, depth: int) -> Any:
    if element.tag != "value":
        raise Fault(INVALID_REQUEST, f"found {_name(element)} where a value is wanted")
    if depth > DEEPEST:
        raise Fault(INVALID_REQUEST, f"the call nests deeper than {DEEPEST} values")
    count = len(element)
    if count == 0:
        return element.text or ""
    if count > 1:
        raise Fault(INVALID_REQUEST, "a value holds more than one type")
    typed = element[0]
    name = _name(typed)
    if name == "string":
        return _text(typed)
    if name == "array":
        return _array(typed, depth)
    if name == "struct":
        return _struct(typed, depth)
    read = _SCALARS.get(name)
    if read is None:
        raise Fault(INVALID_REQUEST, f"values of type {name} are not known")
    try:
        return read(_text(typed))
    except (ValueError, binascii.Error):
        raise Fault(INVALID_REQUEST, f"{_text(typed)[:40]!r} is no {name}") from None


def _array(array: etree._Element, depth: int) -> list[Any]:
    if len(array) != 1 or array[0].tag != "data":
        raise Fault(INVALID_REQUEST, "an array must hold one data")
    data = array[0]
    count = len(data)
    if count >= _LONG_LIST:
        # As many texts as values: so each value is one text, since the tree holds no comments.
        for read_texts in (_texts_bare, _texts_tagged):
            texts: Any = read_texts(data)
            if len(texts) == count:
                return list(texts)
    return [_value(value, depth + 1) for value in data]


def _struct(struct: etree._Element, depth: int) -> dict[str, Any]:
    members = {}
    for member in struct:
        if member.tag != "member" or len(member) != 2 or member[0].tag != "name":
            raise Fault(INVALID_REQUEST, "a struct must hold members with a name and a value")
        members[_text(member[0])] = _value(member[1], depth + 1)
    return members


def _text(element: etree._Element) -> str:
    if len(element):
        raise Fault(INVALID_REQUEST, f"found elements in a {_name(element)}, which holds text only")
    return element.text or ""


def _name(element: etree._Element) -> str:
    """The element's name without its namespace, which the types of Apache's extensions have."""
    return etree.QName(element).localname


def _integer(text: str) -> int:
    text = text.strip()
    if not _INTEGER.fullmatch(text):
        raise ValueError(text)
    return int(text)


def _boolean(text: str) -> bool:
    return {"0": False, "1": True}[text.strip()] if text.strip() in {"0", "1"} else _refuse(text)


def _refuse(text: str) -> bool:
    raise ValueError(text)


def _base64(text: str) -> bytes:
    return base64.b64decode("".join(text.split()), validate=True)


def _nil(_: str) -> None:
    return None


_SCALARS: dict[str, Callable[[str], Any]] = {
    "int": _integer,
    "i4": _integer,
    "i8": _integer,
    "i1": _integer,
    "i2": _integer,
    "biginteger": _integer,
    "boolean": _boolean,
    "double": float,
    "float": float,
    "bigdecimal": float,
    "nil": _nil,
    "base64": _base64,
    "dateTime.iso8601": datetime.fromisoformat,
    "dateTime": datetime.fromisoformat,
}


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
