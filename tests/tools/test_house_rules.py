"""The check of the house rules finds what breaks one, and nothing else."""

from pathlib import Path

import pytest

from tools import house_rules


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        file = root / "placement" / "room" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


LONG = "x = 1\n" * 60
SHORT = "x = 1\n" * 59


def test_a_short_file_has_several_importers(tmp_path: Path) -> None:
    write(tmp_path, __init__="", short=SHORT, shared=SHORT, long=LONG, alone=SHORT)
    write(tmp_path, one="from room.short import x\nfrom room import shared\nimport room.long\n")
    write(tmp_path, two="from room import shared\n")
    assert [*house_rules.violations(tmp_path)] == ["short file placement/room/short.py"]


@pytest.mark.parametrize(("files", "found"), [(12, []), (13, ["large folder placement/room"])])
def test_a_folder_has_a_dozen_files(tmp_path: Path, files: int, found: list[str]) -> None:
    write(tmp_path, __init__="", **{f"file{number}": "" for number in range(files)})
    assert [*house_rules.violations(tmp_path)] == found


def test_a_private_function_is_a_verb_and_its_object(tmp_path: Path) -> None:
    write(tmp_path, one="class A:\n    def _take(self): ...\n\ndef _take_turn(): ...\n\ndef take(): ...\n")
    assert [*house_rules.violations(tmp_path)] == ["common verb placement/room/one.py _take"]


def test_what_violates_a_rule_or_none_any_more_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, one="def _take(): ...\n")
    listed = tmp_path / "house_rules.txt"
    monkeypatch.setattr(house_rules, "CHECKOUT", tmp_path)
    monkeypatch.setattr(house_rules, "EXCEPTIONS", listed)
    for known, status, said in (
        ("", 1, "common verb placement/room/one.py _take: see"),
        ("common verb placement/room/one.py _take\n", 0, ""),
        (
            "common verb placement/room/one.py _take\nlarge folder a\n",
            1,
            "large folder a: violates no rule any more",
        ),
    ):
        listed.write_text(known)
        assert house_rules.main() == status
        assert capsys.readouterr().out.startswith(said)
