"""The command line: a file a subcommand, which parses and prints and decides nothing."""
