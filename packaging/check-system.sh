#!/bin/sh
# Stops before a long build when a system package is missing, and says how to get it.
set -eu
python="${1:-python3}"
missing=""

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || missing="$missing Python>=3.11"
"$python" -c 'import venv, ensurepip' 2>/dev/null || missing="$missing venv"
command -v "${CC:-cc}" >/dev/null 2>&1 || missing="$missing C-compiler"
header="$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null || true)/Python.h"
[ -e "$header" ] || missing="$missing Python-headers"
command -v xml2-config >/dev/null 2>&1 || pkg-config --exists libxml-2.0 2>/dev/null || missing="$missing libxml2-headers"

[ -z "$missing" ] && exit 0
echo "missing:$missing" >&2
echo "Debian:         apt-get install -y gcc libxml2-dev python3-dev python3-venv" >&2
echo "EL8.10 to EL10: dnf install -y gcc libxml2-devel python3.12 python3.12-devel && make PYTHON=python3.12" >&2
exit 1
