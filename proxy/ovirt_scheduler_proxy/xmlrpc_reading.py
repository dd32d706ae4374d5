"""Reads method calls: the engine's own by splitting text, all others, repaired where need be, with lxml."""

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

NOT_WELL_FORMED = -32700
INVALID_REQUEST = -32600
UNKNOWN_METHOD = -32601
INVALID_PARAMETERS = -32602
INTERNAL_ERROR = -32603


class Fault(Exception):
    """The call cannot be answered; the text says why, for the reader of the engine's log."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


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
    """Whether a call has more of what XML cannot hold, or of references, than a real call."""
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


_SPACE = " \t\n"
_CONTROLS_OR_RETURN = bytes(range(32)).translate(None, b"\t\n")

_START = re.compile(
    r"<\?xml version=(?:'1\.0'|\"1\.0\")(?: encoding=(?:'UTF-8'|\"UTF-8\"))?\?>[ \t\n]*"
    r"<methodCall(?: xmlns:ex=\"http://ws\.apache\.org/xmlrpc/namespaces/extensions\")?>[ \t\n]*"
    r"<methodName>([A-Za-z]+)</methodName>[ \t\n]*<params>[ \t\n]*<param>"
)
_BETWEEN = re.compile(r"</param>[ \t\n]*<param>")
_END = re.compile(r"</param>[ \t\n]*</params>[ \t\n]*</methodCall>[ \t\n]*")

_LONGEST_END = 200

_TEXT = r"<value>(?:<string>([^<]*)</string>|([^<]*))</value>"
_MEMBER = re.compile(rf"[ \t\n]*<member>[ \t\n]*<name>([^<]*)</name>[ \t\n]*{_TEXT}[ \t\n]*</member>[ \t\n]*")
_PAIR = re.compile(
    rf"[ \t\n]*<value><array><data>[ \t\n]*{_TEXT}[ \t\n]*"
    r"<value><(int|i4)>(-?[0-9]{1,10})</\3></value>[ \t\n]*</data></array></value>[ \t\n]*"
)


def read_quickly(body: bytes) -> tuple[str, list[Any]] | None:
    """The method and its parameters; None for a call that needs the full parser."""
    text = _plain_text(body)
    start = _START.match(text) if text else None
    if start is None:
        return None
    last = text.rfind("</param>", max(start.end(), len(text) - _LONGEST_END))
    if last < 0 or not _END.fullmatch(text, last):
        return None
    values = []
    for piece in _BETWEEN.split(text[start.end() : last]):
        value = _quick_value(piece.strip(_SPACE))
        if value is None:
            return None
        values.append(value)
    return start[1], values


def _plain_text(body: bytes) -> str:
    """The text of a body that holds nothing but tags and characters; empty for all others."""
    # References, declarations, the end of a CDATA section, and in UTF-8 the characters that XML cannot hold.
    if b"&" in body or b"!" in body or b"]" in body or b"\xef" in body:
        return ""
    if len(body.translate(None, _CONTROLS_OR_RETURN)) != len(body):
        return ""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return ""


def _quick_value(piece: str) -> Any:
    """A text, a list of texts, a list of pairs, or a map of texts; None for anything else."""
    if piece.startswith("<value><array><data>") and piece.endswith("</data></array></value>"):
        return _quick_list(piece[20:-23].strip(_SPACE))
    if piece.startswith("<value><struct>") and piece.endswith("</struct></value>"):
        members = _sequence(_MEMBER, piece[15:-17])
        return None if members is None else {found[1]: found[2] or found[3] or "" for found in members}
    texts = _quick_texts(piece)
    return texts[0] if texts is not None and len(texts) == 1 else None


def _quick_list(inner: str) -> list[Any] | None:
    if not inner:
        return []
    texts = _quick_texts(inner)
    if texts is not None:
        return texts
    pairs = _sequence(_PAIR, inner)
    return None if pairs is None else [[found[1] or found[2] or "", int(found[4])] for found in pairs]


def _quick_texts(inner: str) -> list[str] | None:
    """Values that follow each other with the same space between: as many tags as they need and no more."""
    for opening, closing, tags in (("<value><string>", "</string></value>", 4), ("<value>", "</value>", 2)):
        if inner.startswith(opening) and inner.endswith(closing):
            content = inner[len(opening) : -len(closing)]
            for space in ("", "\n"):
                texts = content.split(f"{closing}{space}{opening}")
                if inner.count("<") == tags * len(texts):
                    return texts
    return None


def _sequence(pattern: re.Pattern[str], text: str) -> list[re.Match[str]] | None:
    """The text as matches that follow each other without a gap."""
    found = list(pattern.finditer(text))
    position = 0
    for match in found:
        if match.start() != position:
            return None
        position = match.end()
    return found if position == len(text) else None


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
    found = read_quickly(body)
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
