#!/bin/sh
# Builds the wheel, installs it into a clean venv with nothing but its own dependencies, and runs the demo with it.
# wheel-smoke.sh PYTHON   (a Python that has `build` and `hatchling`)
set -eu
python=$1
work=.build/wheel-smoke
rm -rf "$work"
mkdir -p "$work/dist"

"$python" -m build --wheel --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log"
    exit 1
}
"$python" -m venv "$work/venv"
# The versions of the lock file, but only what the wheel itself asks for.
grep -vE '^ *--hash' requirements/dev.txt | sed 's/ *\\$//' >"$work/constraints.txt"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$work/constraints.txt" "$work"/dist/*.whl

cd "$work"
venv/bin/ralph --version
venv/bin/ralph run --agent-cmd "printf 'hello\n<promise>COMPLETE</promise>\n'" --cwd "$(mktemp -d "$PWD/empty.XXXXXX")" -p hi --ui quiet
venv/bin/ralph demo --fast --ui quiet --dir demo
echo "the wheel works"
