"""Whatever text the state holds, what is rendered is XML and says the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from ovirt_simulator.http import markup

#: Text that XML can hold.
LEGAL = st.text(
    st.characters(
        exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff", include_characters="\t\n\r"
    )
)


@given(LEGAL, LEGAL)
def test_text_and_attributes_come_through(content: str, entity_id: str) -> None:
    rendered = markup.entity("vm", "/x", entity_id, markup.text("name", content))
    node = etree.fromstring(rendered.encode())
    assert (node.findtext("name"), node.get("id")) == (content, entity_id)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_what_xml_cannot_hold_is_replaced(content: str) -> None:
    node = etree.fromstring(markup.text("name", content).encode())
    assert len(node.text or "") == len(content)


def test_absent_values_are_left_out() -> None:
    assert markup.text("a", None) == ""
    assert markup.entity("a", None, "1", "", markup.text("b", False), "") == '<a id="1">\n<b>false</b>\n</a>'
    assert markup.element("hosts") == "<hosts/>"
    assert markup.collection("vms", []) == "<vms/>"


@given(st.text(min_size=1, alphabet="ab/%?#& é"))
def test_addresses_are_quoted(entity_id: str) -> None:
    address = markup.path("vms", entity_id)
    assert not set(address) & set("?#& é")
    assert address.count("/") == 4
