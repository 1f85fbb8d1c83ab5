#!/bin/sh
# Creates the virtual environment of the checkout: bootstrap.sh PYTHON VENV
set -eu
python=$1
venv=$2

fail() {
    printf 'ralph: %s\n' "$*" >&2
    exit 1
}

command -v "$python" >/dev/null 2>&1 || fail "'$python' was not found: install Python 3.11 or newer, or set PYTHON=/path/to/python3"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$("$python" --version 2>&1) is too old: Python 3.11 or newer is needed (PYTHON=/path/to/python3)"

# Debian's Python has the venv module, but ensurepip, which it needs, is in the package python3-venv.
if ! "$python" -c 'import ensurepip' >/dev/null 2>&1; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
        printf 'ralph: this Python has no ensurepip; installing python3-venv\n'
        apt-get update -qq && apt-get install -y -qq python3-venv
    else
        fail "this Python cannot create virtual environments: install python3-venv (Debian, Ubuntu) and try again"
    fi
fi

rm -rf "$venv"
"$python" -m venv "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index --editable .
