#!/bin/sh
# Builds the wheel, installs it in a clean environment with nothing but its own dependencies, and runs the demo with it.
# wheel-smoke.sh PYTHON   (a Python that has `build` and `hatchling`)
set -eu
python=$1
work=.build/wheel-smoke
rm -rf "$work"
mkdir -p "$work/dist"

"$python" -m build --no-isolation --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log"
    exit 1
}
"$python" -m venv "$work/venv"
# The versions of the lock file, but only the packages that the wheel itself requires.
grep -vE '^ *--hash' requirements/dev.txt | sed 's/ *\\$//' >"$work/constraints.txt"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$work/constraints.txt" "$work"/dist/*.whl

cd "$work"
# On a package index a relative link leads nowhere.
venv/bin/python - <<'CHECK'
import re
from importlib.metadata import metadata

package = metadata("ralph-run")
targets = re.findall(r"\]\(([^)]*)\)", package.get_payload())
relative = [target for target in targets if not target.startswith(("https://", "#"))]
if not targets or relative:
    raise SystemExit(f"relative links in the README of the wheel: {relative or 'it has no links at all'}")
CHECK
venv/bin/ralph --version
venv/bin/ralph run --agent-cmd "printf 'hello\n<promise>COMPLETE</promise>\n'" --cwd "$(mktemp -d "$PWD/empty.XXXXXX")" -p hi --ui quiet
venv/bin/ralph demo --fast --ui quiet --dir demo
echo "the wheel works"
