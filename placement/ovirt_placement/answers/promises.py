"""The words that promise something, each said by one function; all that is printed or drawn takes them here.

"Healthy" is `health.judge`'s, and that an alert has ended is `ovirt_enforcer.ha_monitor.ledger.due`'s.
"""

from __future__ import annotations


def safe_word(safe: bool | None) -> str:
    """Of a check of highly available VMs.

    "safe" promises: no such VM is down, unknown or on a host that does not answer; and for each set of hosts
    that is to be able to fail there is an order of starts of which each passes every filter that is known
    (docs/rules.md), as things stand. "unsafe": of some set it is proven that there is none, or a VM is lost.
    "unknown" promises neither.
    """
    return "unknown" if safe is None else "safe" if safe else "unsafe"


def fewest_text(proven: bool, what: str = "", *, otherwise: str = "perhaps fewer would do") -> str:
    """Of migrations, with what they do: "the fewest that repair all".

    "the fewest" is said only of what is proven, and promises: no legal sequence under all rules repairs or
    empties more, and none that does as much has fewer migrations. What was not tried whole takes
    the word away, as a filter of others or a deadline that ended: then `otherwise` is said.
    """
    return f"the fewest{what}" if proven else otherwise


def fewest_rounds_text(proven: bool, migrations_at_least: int) -> str:
    """Of hosts that are taken out in rounds, after the count of migrations.

    "proven" promises: no plan under all rules takes the hosts out in fewer rounds, and none in as many
    rounds with fewer migrations.
    """
    if proven:
        return "(proven: no plan has fewer rounds, nor as many and fewer migrations)"
    return f"(at least {migrations_at_least} in that many rounds)"


def none_text(proven: bool, what: str, otherwise: str) -> str:
    """That nothing helps: "no migrations let VM a start".

    It promises, where it is proven: no legal sequence of migrations under all rules does it, as things
    stand. Where not all was tried, `otherwise` says that none was found.
    """
    return f"no {what}" if proven else otherwise
