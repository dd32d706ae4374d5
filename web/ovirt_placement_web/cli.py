"""`ovirt-placement-web run`: serves the page until SIGTERM."""

from collections.abc import Sequence
from pathlib import Path

from ovirt_placement import config
from ovirt_placement.config_file import DEFAULT_PATH, PATH_VARIABLE
from ovirt_service import identity, process
from ovirt_service.arguments import Parser, add_version
from ovirt_service.errors import UserError
from ovirt_service.log import log_to_stderr

COMMAND = "ovirt-placement-web"

_EXAMPLES = """\
examples:
  ovirt-placement-web run
  ovirt-placement-web run --config /etc/ovirt-placement/east.toml
"""

#: What comes with the extra `web`.
_EXTRA = {"starlette", "uvicorn", "jinja2", "anyio"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a subcommand; return its status, or 2 after one line that says what is wrong and what to do."""
    return process.guarded(COMMAND, lambda: _command(arguments))


def _command(arguments: Sequence[str] | None) -> int:
    args = _parser().parse_args(arguments)
    log_to_stderr()
    try:
        from ovirt_placement_web import serving
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise UserError(f"{error}: the page needs pip install 'ovirt-placement[web]'") from None
    found = config.load(args.config)
    identity.become_owner(found.folders, found.files)
    serving.run(found)
    return 0


def _parser() -> Parser:
    parser = Parser(prog=COMMAND, description="A page that shows where VMs run and why.")
    add_version(parser)
    running = parser.add_subparsers(metavar="COMMAND", required=True).add_parser(
        "run",
        help="serve the page, until SIGTERM",
        description="Serve the page with what the inventory publishes, until SIGTERM. See docs/web.md.\n",
        epilog=_EXAMPLES,
    )
    where = f"configuration (TOML); else ${PATH_VARIABLE}, else {DEFAULT_PATH}"
    running.add_argument("--config", type=Path, metavar="FILE", help=where)
    return parser
