#!/bin/sh
# Builds SQLite 3.26.0, which EL8 has, as a library that takes the place of the machine's: LD_PRELOAD it.
# Go's proxy carries its source in one file, and Go checks what it brings. Python asks for sqlite3_serialize,
# which SQLite then had on request only.
set -eu
library="$1"
module=crawshaw.io/sqlite@v0.1.1

source="$(cd / && GOFLAGS=-mod=mod go mod download -json "$module" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')"
[ -e "$source/sqlite3.c" ] || { echo "no sqlite3.c in $module" >&2; exit 1; }
mkdir -p "$(dirname "$library")"
"${CC:-cc}" -O2 -shared -fPIC -DSQLITE_ENABLE_DESERIALIZE -DSQLITE_ENABLE_JSON1 -DSQLITE_THREADSAFE=1 \
    -Wno-return-local-addr -o "$library" "$source/sqlite3.c" -ldl -lpthread -lm
