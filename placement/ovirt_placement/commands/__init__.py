"""One module a subcommand of `ovirt-placement`: `add_parser(subparsers)` and `run(args) -> exit status`."""
