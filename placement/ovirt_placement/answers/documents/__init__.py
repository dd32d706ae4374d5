"""The answers of `ovirt-placement` as data, one file for each kind: what `--json` prints (docs/json.md)."""
