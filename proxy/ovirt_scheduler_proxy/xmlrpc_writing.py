"""Writes answers and faults by hand: their shapes are few, and joining text is what Python does fastest."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from ovirt_scheduler_proxy.xmlrpc_reading import NOT_XML

_BETWEEN_TEXTS = "</string></value>\n<value><string>"
_NO_MEMBERS = "<value><struct>\n</struct></value>"
_NO_ELEMENTS = "<value><array><data>\n</data></array></value>"


class Rendered(str):
    """A value that is XML already."""

    __slots__ = ()


def response(value: Any) -> bytes:
    """A method's answer."""
    return _document(f"<params>\n<param>\n{_value(value)}\n</param>\n</params>")


def answer(result_code: int, result: Any, plugin_errors: dict[str, list[str]]) -> bytes:
    """The struct that the engine reads. Every key is always there and nothing is ever null."""
    errors = _value(plugin_errors) if plugin_errors else _NO_MEMBERS
    return _document(
        "<params>\n<param>\n<value><struct>\n"
        f"<member>\n<name>result_code</name>\n<value><int>{result_code}</int></value>\n</member>\n"
        f"<member>\n<name>result</name>\n{_value(result)}\n</member>\n"
        f"<member>\n<name>plugin_errors</name>\n{errors}\n</member>\n"
        f"<member>\n<name>errors</name>\n{_NO_ELEMENTS}\n</member>\n"
        "</struct></value>\n</param>\n</params>"
    )


def fault(code: int, sentence: str) -> bytes:
    """A fault in place of an answer."""
    return _document(f"<fault>\n{_value({'faultCode': code, 'faultString': sentence})}\n</fault>")


def weights(hosts: Sequence[str], values: Iterable[int], unit: str) -> str:
    """The fragments `[host, weight, unit]` of one unit, to be put together by `array`."""
    end = f"</int></value><value><string>{_escape(unit)}</string></value></data></array></value>\n"
    return "".join(
        [
            f"<value><array><data><value><string>{host}</string></value><value><int>{weight}{end}"
            for host, weight in zip(_escape_all(hosts), values, strict=True)
        ]
    )


def array(fragments: Iterable[str]) -> Rendered:
    """A list whose elements are rendered already."""
    return Rendered(f"<value><array><data>\n{''.join(fragments)}</data></array></value>")


def _document(content: str) -> bytes:
    text = f"<?xml version='1.0'?>\n<methodResponse>\n{content}\n</methodResponse>\n"
    return text.encode("utf-8", "replace")


def _value(value: Any) -> str:
    if isinstance(value, Rendered):
        return value
    if isinstance(value, str):
        return f"<value><string>{_escape(value)}</string></value>"
    if isinstance(value, bool):
        return f"<value><boolean>{value:d}</boolean></value>"
    if isinstance(value, int):
        return f"<value><int>{_int32(value)}</int></value>"
    if isinstance(value, float):
        return f"<value><double>{_finite(value)!r}</double></value>"
    if isinstance(value, dict):
        members = "".join([_member(name, member) for name, member in value.items()])
        return f"<value><struct>\n{members}</struct></value>"
    if isinstance(value, (list, tuple)):
        return _list(value)
    raise TypeError(f"XML-RPC has no {type(value).__name__}")


def _list(values: Sequence[Any]) -> str:
    if set(map(type, values)) == {str}:
        texts = _BETWEEN_TEXTS.join(_escape_all(values))
        return array([f"<value><string>{texts}</string></value>\n"])
    return array([f"{_value(value)}\n" for value in values])


def _member(name: Any, value: Any) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the name of a member must be text, not {name!r}")
    return f"<member>\n<name>{_escape(name)}</name>\n{_value(value)}\n</member>\n"


def _escape_all(texts: Sequence[str]) -> Sequence[str]:
    """Each text escaped: looked at together first, since ids need no escaping."""
    together = "".join(texts)
    if together.isprintable() and not ("&" in together or "<" in together or ">" in together):
        return texts
    return [_escape(text) for text in texts]


def _escape(text: str) -> str:
    if "&" in text:
        text = text.replace("&", "&amp;")
    text = text.replace("<", "&lt;").replace(">", "&gt;")
    if not text.isprintable():
        text = NOT_XML.sub("\ufffd", text).replace("\r", "&#13;")
    return text


def _int32(value: int) -> int:
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"{value} is no 32-bit integer")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"XML-RPC has no {value}")
    return value
