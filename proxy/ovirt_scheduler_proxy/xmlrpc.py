"""XML-RPC: calls are read with lxml, and become questions; answers and faults are written by hand.

The shapes of answers are few, and joining text is what Python does fastest.
"""

import contextlib
import re
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

import msgspec
from lxml import etree

from ovirt_scheduler_proxy.worker.contract import UnitKind
from ovirt_service.decoding import complaint

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
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_REFERENCES = re.compile(r"(?:&#[0-9]{1,7};)+")
_CONTROLS = bytes({*range(32)} - {*b"\t\n\r"})
#: What U+FFFE and U+FFFF begin with in UTF-8.
_LAST_OF_PLANE = b"\xef\xbf"

#: So much of what XML cannot hold may the value of a property have; others' calls wait while it is replaced.
_MOST_REPAIRED = 10_000
#: Deeper nesting of values than this is no call of the engine's; its own reach a depth of 11.
_DEEPEST = 64
#: XML-RPC has none, and what takes long to read keeps other calls waiting.
_MOST_ATTRIBUTES = 10_000
#: From this many elements on, a list is first tried as a list of plain texts.
_LONG_LIST = 8

_nests = etree.XPath("boolean(*/*)")
_texts_bare = etree.XPath("value/text()", smart_strings=False)
_texts_tagged = etree.XPath("value[count(*)=1]/string[not(*)]/text()", smart_strings=False)
#: Of the other scalars, an argument of a method is none.
_INTEGERS = frozenset({"int", "i4", "i8", "i1", "i2", "biginteger"})
_INTEGER = re.compile(r"[+-]?[0-9]{1,400}")

_parser = etree.XMLParser(
    resolve_entities=False,
    load_dtd=False,
    no_network=True,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


def read_call(body: bytes, most_elements: int) -> tuple[str, list[Any]]:
    """The method of a `methodCall`, and its parameters.

    Raises `Fault` for what is not well-formed, declares a document type, nests too deep, has too many
    elements, or is no method call.
    """
    if body.count(b"<") > 2 * most_elements:
        raise Fault(INVALID_REQUEST, f"the call has more than {most_elements} elements")
    # A single byte is counted much faster than two.
    if body.count(b"=") > _MOST_ATTRIBUTES and body.count(b'="') + body.count(b"='") > _MOST_ATTRIBUTES:
        raise Fault(INVALID_REQUEST, f"the call has more than {_MOST_ATTRIBUTES} attributes")
    root = _root(body)
    if root.getroottree().docinfo.internalDTD is not None:
        raise Fault(NOT_WELL_FORMED, "the call declares a document type, which is not accepted")
    if root.tag != "methodCall":
        raise Fault(INVALID_REQUEST, f"the document is a {_name(root)}, not a methodCall")
    method = root.findtext("methodName")
    if not method or not method.strip():
        raise Fault(INVALID_REQUEST, "the call has no methodName")
    parameters = root.find("params")
    found: list[etree._Element] = [] if parameters is None else list(parameters)
    if any(one.tag != "param" or len(one) != 1 for one in found):
        raise Fault(INVALID_REQUEST, "each of the params must be a param with one value")
    return method.strip(), [_read(one[0], 1) for one in found]


def _root(body: bytes) -> etree._Element:
    try:
        return etree.fromstring(body, _parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        with contextlib.suppress(etree.XMLSyntaxError, ValueError):
            return etree.fromstring(_repaired(body), _parser)
        reason = " ".join(str(error).split())[:200]
        raise Fault(NOT_WELL_FORMED, f"the call is not well-formed XML: {reason}") from None


def _repaired(body: bytes) -> bytes:
    """The call with halves of a character put together, and U+FFFD for all else that XML cannot hold.

    Apache's client writes a character beyond 16 bits as two references. Raises `ValueError` for what is no
    text, and `Fault` where a real call has less of this.
    """
    suspects = body.count(b"&#") + len(body) - len(body.translate(None, _CONTROLS))
    if not suspects and _LAST_OF_PLANE not in body:
        raise ValueError("it has nothing to be repaired")
    if suspects > _MOST_REPAIRED:
        raise Fault(NOT_WELL_FORMED, "the call is not well-formed XML: too many references to characters")
    return _NOT_XML.sub("\ufffd", _REFERENCES.sub(_joined, body.decode("utf-8"))).encode("utf-8")


def _joined(found: re.Match[str]) -> str:
    numbers = map(int, found[0][2:-1].split(";&#"))
    halves = "".join([chr(number) if number <= 0x10FFFF else "\ufffd" for number in numbers])
    whole = halves.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return "".join([f"&#{ord(character)};" for character in _NOT_XML.sub("\ufffd", whole)])


def _read(element: etree._Element, depth: int) -> Any:
    if element.tag != "value":
        raise Fault(INVALID_REQUEST, f"found {_name(element)} where a value is wanted")
    if depth > _DEEPEST:
        raise Fault(INVALID_REQUEST, f"the call nests deeper than {_DEEPEST} values")
    if len(element) == 0:
        return element.text or ""
    if len(element) > 1:
        raise Fault(INVALID_REQUEST, "a value holds more than one type")
    typed = element[0]
    name = _name(typed)
    if name == "string":
        return _text(typed)
    if name == "array":
        return _read_array(typed, depth)
    if name == "struct":
        return _read_struct(typed, depth)
    return None if name == "nil" else _read_integer(typed, name)


def _read_array(array: etree._Element, depth: int) -> list[Any]:
    if len(array) != 1 or array[0].tag != "data":
        raise Fault(INVALID_REQUEST, "an array must hold one data")
    data = array[0]
    if len(data) >= _LONG_LIST:
        # As many texts as values: so each value is one text, since the tree holds no comments.
        texts: Any = (_texts_tagged if _nests(data) else _texts_bare)(data)
        if len(texts) == len(data):
            return list(texts)
    return [_read(value, depth + 1) for value in data]


def _read_struct(struct: etree._Element, depth: int) -> dict[str, Any]:
    members = {}
    for member in struct:
        if member.tag != "member" or len(member) != 2 or member[0].tag != "name":
            raise Fault(INVALID_REQUEST, "a struct must hold members with a name and a value")
        members[_text(member[0])] = _read(member[1], depth + 1)
    return members


def _read_integer(typed: etree._Element, name: str) -> int:
    if name not in _INTEGERS:
        raise Fault(INVALID_REQUEST, f"values of type {name} are not known")
    text = _text(typed).strip()
    if not _INTEGER.fullmatch(text):
        raise Fault(INVALID_REQUEST, f"{text[:40]!r} is no {name}")
    return int(text)


def _text(element: etree._Element) -> str:
    if len(element):
        raise Fault(INVALID_REQUEST, f"found elements in a {_name(element)}, which holds text only")
    return element.text or ""


def _name(element: etree._Element) -> str:
    """The element's name without its namespace, which the types of Apache's extensions have."""
    return etree.QName(element).localname


# A name or an id of the engine's has 36 characters; calls are logged and recorded with them.
_Text = Annotated[str, msgspec.Meta(max_length=1000)]
# A property without a value is an empty one: the engine saves it so where the parameter's regex allows the
# empty text, and keeps all hosts when it gets a fault.
_Properties = dict[_Text, Annotated[str, msgspec.Meta(max_length=100_000)] | None]


class Question(msgspec.Struct, frozen=True):
    """What the engine asks: these units about these hosts, for a VM unless it is about balance."""

    method: str
    kind: UnitKind
    units: list[str]
    hosts: list[str]
    vm: str
    #: Of the cluster's policy.
    properties: dict[str, str]


#: Of each method, what its units are, what its arguments are called, and what they are. The factors of cost
#: functions are only checked: the engine applies them itself.
_METHODS: dict[str, tuple[UnitKind, tuple[str, ...], Any]] = {
    "runFilters": (
        UnitKind.FILTER,
        ("filters", "hosts", "vm", "properties"),
        tuple[list[_Text], list[_Text], _Text, _Properties],
    ),
    "runCostFunctions": (
        UnitKind.SCORE,
        ("cost_functions", "hosts", "vm", "properties"),
        tuple[list[tuple[_Text, int]], list[_Text], _Text, _Properties],
    ),
    "runLoadBalancing": (
        UnitKind.BALANCE,
        ("balance", "hosts", "properties"),
        tuple[_Text, list[_Text], _Properties],
    ),
}
_PLACE = re.compile(r"\[(\d)\]")


def read_question(method: str, parameters: Sequence[Any]) -> Question:
    """The question that a call of one of the three methods asks; units and hosts that stand twice stand once.

    Raises `Fault` for an unknown method or arguments that the engine would not send. The old proxy's own test
    client sends an empty text for no properties.
    """
    if method not in _METHODS:
        known = ", ".join(["discover", *_METHODS])
        raise Fault(UNKNOWN_METHOD, f"there is no method {method[:80]!r}; there are {known}")
    kind, names, types = _METHODS[method]
    check_count(method, parameters, names)
    try:
        given = {} if parameters[-1] in (None, "") else parameters[-1]
        units, hosts, *vm, properties = msgspec.convert([*parameters[:-1], given], types)
    except msgspec.ValidationError as error:
        what = _PLACE.sub(lambda found: names[int(found[1])], complaint(error, Question), count=1)
        raise Fault(INVALID_PARAMETERS, f"{method}: {what}") from None
    if kind is UnitKind.BALANCE:
        units = [units]
    elif kind is UnitKind.SCORE:
        units = [unit for unit, _ in units]
    return Question(
        method,
        kind,
        list(dict.fromkeys(units)),
        list(dict.fromkeys(hosts)),
        vm[0] if vm else "",
        {name: value or "" for name, value in properties.items()},
    )


def check_count(method: str, parameters: Sequence[Any], names: Sequence[str] = ()) -> None:
    """Raise `Fault` unless there are as many arguments as names of them."""
    if len(parameters) != len(names):
        wanted = f"{method}({', '.join(names)})"
        raise Fault(INVALID_PARAMETERS, f"{wanted} takes {len(names)} arguments, not {len(parameters)}")


class Rendered(str):
    """A value that is XML already."""

    __slots__ = ()


def response(value: Any) -> bytes:
    """A method's answer."""
    return _document(f"<params>\n<param>\n{_value(value)}\n</param>\n</params>")


def answer(result_code: int, result: Any, plugin_errors: dict[str, list[str]]) -> bytes:
    """The struct that the engine reads. Every key is always there and nothing is ever null."""
    return response(
        {"result_code": result_code, "result": result, "plugin_errors": plugin_errors, "errors": []}
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
    if isinstance(value, int) and -(2**31) <= value < 2**31:
        return f"<value><int>{value}</int></value>"
    if isinstance(value, dict):
        members = "".join(
            [
                f"<member>\n<name>{_escape(name)}</name>\n{_value(member)}\n</member>\n"
                for name, member in value.items()
            ]
        )
        return f"<value><struct>\n{members}</struct></value>"
    if isinstance(value, (list, tuple)):
        if set(map(type, value)) == {str}:
            return array([f"<value><string>{text}</string></value>\n" for text in _escape_all(value)])
        return array([f"{_value(one)}\n" for one in value])
    raise TypeError(f"the engine cannot read {value!r}")


def _escape_all(texts: Sequence[str]) -> Sequence[str]:
    """Each text escaped: looked at together first, since ids need no escaping."""
    together = "".join(texts)
    if together.isprintable() and not ("&" in together or "<" in together or ">" in together):
        return texts
    return [_escape(text) for text in texts]


def _escape(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text if text.isprintable() else _NOT_XML.sub("\ufffd", text).replace("\r", "&#13;")
