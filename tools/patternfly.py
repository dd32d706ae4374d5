"""Makes the page's stylesheet and font of PatternFly 6 from its package, as published.

    npm pack @patternfly/patternfly@6.6.1 && tar xzf patternfly-patternfly-6.6.1.tgz
    python3 -m tools.patternfly package

Of the package it takes the components that the page uses, and of these the rules and variables that its
templates and scripts can meet. Run it again when a template uses a class that the bundle lacks.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

_WEB = Path(__file__).parents[1] / "web" / "ovirt_placement_web"
_VENDOR = _WEB / "static" / "vendor"
_COMPONENTS = (
    *("Alert", "Badge", "Breadcrumb", "Button", "Card", "Check", "DescriptionList", "EmptyState", "Form"),
    *("FormControl", "Label", "List", "Nav", "ProgressStepper", "Table", "Tabs", "Title", "ToggleGroup"),
)
_FONT = "RedHatText/RedHatTextVF.woff2"
#: Looks that the page does not have: glass, felt, high contrast, right to left.
_OTHER_LOOKS = re.compile(r"theme-(?:glass|felt|high-contrast|redhat)|dir-rtl|dir=")
_DARK = re.compile(r":(?:root:)?where\(\.pf-v6-theme-dark\)")
_CLASS = re.compile(r"\.([A-Za-z][\w-]*)")
_USE = re.compile(r"var\(\s*(--[\w-]+)")


class Rule(NamedTuple):
    """A rule, with the conditions (`@media`, `@supports`) that it stands in."""

    within: tuple[str, ...]
    selector: str
    declarations: tuple[tuple[str, str], ...]


def main() -> int:
    package = Path(sys.argv[1])
    version = json.loads((package / "package.json").read_text())["version"]
    sheets = [package / "patternfly-base.css"]
    for name in _COMPONENTS:
        file = re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
        sheets.append(package / "components" / name / f"{file}.css")
    own = (file for files in ("templates/*.html", "static/*.js", "*.py") for file in _WEB.glob(files))
    used = frozenset(re.findall(r"pf-(?:v6|m)-[\w-]+", " ".join(file.read_text() for file in own)))
    rules = [kept for sheet in sheets for rule in _rules(sheet.read_text()) if (kept := _met(rule, used))]
    rules = _needed(rules, "".join(file.read_text() for file in _WEB.glob("static/*.*s")))
    text = f"/* PatternFly {version}, MIT: patternfly.LICENSE. Made by tools/patternfly.py. */\n"
    text += _text(rules)
    (_VENDOR / "patternfly.css").write_text(text)
    font = (package / "assets" / "fonts" / _FONT).read_bytes()
    (_VENDOR / Path(_FONT).name).write_bytes(font)
    print(f"{len(rules)} rules: {len(text) / 1024:.0f} KiB, and a font of {len(font) / 1024:.0f} KiB")
    return 0


def _rules(text: str, within: tuple[str, ...] = ()) -> Iterator[Rule]:
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    at = 0
    while (opening := text.find("{", at)) >= 0:
        head, depth, end = text[at:opening].strip(), 1, opening + 1
        while depth:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body, at = text[opening + 1 : end - 1], end
        if head.startswith(("@media", "@supports", "@container")):
            yield from _rules(body, (*within, re.sub(r"\s+", " ", head)))
        elif not head.startswith(("@font-face", "@keyframes", "@-webkit", "@property")):
            pairs = (part.partition(":") for part in re.split(r";(?![^(]*\))", body) if ":" in part)
            found = tuple((name.strip(), re.sub(r"\s+", " ", value).strip()) for name, _, value in pairs)
            yield Rule(within, re.sub(r"\s+", " ", head), found)


def _met(rule: Rule, used: frozenset[str]) -> Rule | None:
    """The rule for those of its selectors that the page can meet, the dark look where people prefer it."""
    within = rule.within
    if any("prefers-contrast" in one or "prefers-reduced" in one for one in within):
        return None
    kept = []
    for selector in _split(rule.selector):
        asked = re.sub(r":not\((?:[^()]|\([^()]*\))*\)", "", selector)
        if _OTHER_LOOKS.search(asked):
            continue
        if _DARK.search(asked):
            within = (*rule.within, "@media (prefers-color-scheme: dark)")
            selector = _DARK.sub(":root", selector)
            asked = _DARK.sub("", asked)
        alternatives = re.findall(r":(?:is|where)\(((?:[^()]|\([^()]*\))*)\)", asked)
        alone = re.sub(r":(?:is|where)\((?:[^()]|\([^()]*\))*\)", "", asked)
        met = all(any(used.issuperset(_CLASS.findall(one)) for one in _split(each)) for each in alternatives)
        if met and used.issuperset(_CLASS.findall(alone)):
            kept.append(selector)
    return Rule(within, ",".join(kept), rule.declarations) if kept else None


def _needed(rules: list[Rule], own: str) -> list[Rule]:
    """Without variables that nothing reads: neither a declaration that stays, nor the page's own style."""
    needed = set(_USE.findall(own)) | set(re.findall(r"--pf-[\w-]+", own))
    by_name: dict[str, set[str]] = {}
    for rule in rules:
        for name, value in rule.declarations:
            if name.startswith("--"):
                by_name.setdefault(name, set()).update(_USE.findall(value))
            else:
                needed.update(_USE.findall(value))
    waiting = list(needed)
    while waiting:
        for name in by_name.get(waiting.pop(), ()):
            if name not in needed:
                needed.add(name)
                waiting.append(name)
    found = []
    for rule in rules:
        kept = tuple(one for one in rule.declarations if not one[0].startswith("--") or one[0] in needed)
        if kept:
            found.append(rule._replace(declarations=kept))
    return found


def _split(selectors: str) -> list[str]:
    """At the commas that stand in no bracket."""
    return [one.strip() for one in re.split(r",(?![^()]*(?:\([^()]*\)[^()]*)*\))", selectors)]


def _text(rules: Iterable[Rule]) -> str:
    lines, open_now = list[str](), tuple[str, ...]()
    for rule in rules:
        if rule.within != open_now:
            lines += ["}" * len(open_now)] if open_now else []
            lines += ["".join(f"{one}{{" for one in rule.within)] if rule.within else []
            open_now = rule.within
        lines.append(f"{rule.selector}{{{';'.join(f'{name}:{value}' for name, value in rule.declarations)}}}")
    return "\n".join([*lines, "}" * len(open_now), ""])


if __name__ == "__main__":
    sys.exit(main())
