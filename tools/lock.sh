#!/bin/sh
# Writes requirements/dev.txt: versions and hashes, no address of any registry. lock.sh PYTHON
set -eu
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"$1" -m venv "$tmp/venv"
"$tmp/venv/bin/python" -m pip install --quiet --disable-pip-version-check uv
"$tmp/venv/bin/uv" pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
    --no-emit-index-url --no-emit-find-links --output-file requirements/dev.txt pyproject.toml requirements/dev.in
if grep -nE '://' requirements/dev.txt; then
    echo "lock.sh: the lock file must not name a host" >&2
    exit 1
fi
