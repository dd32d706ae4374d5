#!/bin/sh
# Asks the same question of every engine that has a configuration here: all-engines.sh status --timeout 20
# Exit status: 0 if every answer had 0, else 1.
failed=0
for configuration in "${OVIRT_PLACEMENT_CONFIGURATIONS:-/etc/ovirt-placement}"/*.toml; do
    engine=$(basename "$configuration" .toml)
    [ "$engine" = ovirt-placement ] && engine=default # the first engine's file, by its place
    echo "== $engine"
    ovirt-placement "$@" --config "$configuration" || failed=1
done
exit "$failed"
