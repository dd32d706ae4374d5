"""The configuration of a part under test: an engine somewhere, and a folder for all that the part keeps."""

from pathlib import Path

PASSWORD = "password"


def write_password(folder: Path, password: str = PASSWORD) -> Path:
    """Write a file that only we may read, as the parts demand."""
    file = folder / "password"
    file.touch(mode=0o600)
    file.write_text(password)
    return file


def write_configuration(
    folder: Path,
    url: str,
    *,
    name: str = "placement.toml",
    user: str = "admin@internal",
    engine: str = "",
    inventory: str = "",
    store: str = "",
    store_url: str | None = None,
    more: str = "",
) -> Path:
    """Write a configuration, and the password besides it; `url` is the API's.

    `engine`, `inventory` and `store` are further lines of these sections, and `more` is what follows them.
    """
    file = folder / name
    file.write_text(
        f'[engine]\nurl = "{url}"\nusername = "{user}"\npassword_file = "{write_password(folder)}"\n'
        f"{engine}\n"
        f'[inventory]\ndirectory = "{folder}/inventory"\n{inventory}\n'
        f'[store]\nurl = "{store_url or f"sqlite:///{folder}/store.db"}"\n{store}\n{more}'
    )
    return file
