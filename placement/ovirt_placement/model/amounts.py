"""How many of something, in words: apart, since rules, answers and the enforcer say it alike."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """Give `1 VM`, `2 VMs`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def be(number: int) -> str:
    """Give the verb that goes with it: `is` of one, else `are`."""
    return "is" if number == 1 else "are"
