r"""The names that Java knows in `\p{...}`, but for those of scripts, blocks and binary properties."""

from __future__ import annotations

from .cursor import Refused

_CATEGORIES = (
    "C Cc Cf Cn Co Cs L L1 LC LD Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So"
    " Z Zl Zp Zs"
)
_POSIX = "Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit"
_JAVA = (
    "Alphabetic Defined Digit ISOControl IdentifierIgnorable Ideographic JavaIdentifierPart"
    " JavaIdentifierStart Letter LetterOrDigit LowerCase Mirrored SpaceChar TitleCase"
    " UnicodeIdentifierPart UnicodeIdentifierStart UpperCase Whitespace"
)
_KNOWN = frozenset(
    [*_CATEGORIES.split(), *_POSIX.split(), "ASCII", "all", *(f"java{name}" for name in _JAVA.split())]
)

#: Under the flag U the case of these does not matter.
_ANY_CASE = frozenset(_POSIX.upper().split())

#: The keys of `\p{key=value}` whose values are known here, and those whose values only Java knows.
_OF_CATEGORIES = frozenset(["gc", "general_category"])
_OF_OTHERS = frozenset(["sc", "script", "blk", "block"])


def refuse_unknown(name: str, flag_u: bool) -> None:
    """Raises `Refused` for a name that Java does not know; `flag_u` says whether it may know more of them."""
    if name.startswith(("Is", "In")):
        return
    key, equals, value = name.partition("=")
    if not equals:
        known = name in _KNOWN or (flag_u and name.upper() in _ANY_CASE)
    else:
        known = key.lower() in _OF_OTHERS or (key.lower() in _OF_CATEGORIES and value in _KNOWN)
    if not known:
        raise Refused(f"the class \\p{{{name}}}")
