#!/bin/sh
# Installs the named agent CLIs (by default, all) in .npm/, in the versions of their lock files.
set -eu
cd "$(dirname "$0")/.."
locks=tests/realcli/npm

for tool in node npm; do
    if ! command -v "$tool" >/dev/null; then
        echo "make realcli: '$tool' was not found in PATH. The real CLIs come from npm: install Node.js 20 or newer." >&2
        exit 1
    fi
done

[ $# -gt 0 ] || set -- $(ls "$locks")
# Codex is tested in two versions, and some CLIs need a newer node than this machine may have.
for name in "$@"; do
    case $name in
    codex) set -- "$@" codex-0.50 ;;
    kimi | qwen) set -- "$@" node ;;
    esac
done

for name in "$@"; do
    if [ ! -f "$locks/$name/package-lock.json" ]; then
        echo "make realcli: unknown CLI '$name'; known are:" $(ls "$locks") >&2
        exit 1
    fi
    if cmp -s "$locks/$name/package-lock.json" ".npm/$name/installed.json"; then
        continue
    fi
    echo "installing $name"
    mkdir -p ".npm/$name"
    cp "$locks/$name/package.json" "$locks/$name/package-lock.json" ".npm/$name/"
    # Not `npm ci`: it refuses a lock file that lacks packages for other systems, and a registry may not have them.
    npm install --prefix ".npm/$name" --no-save --no-audit --no-fund --loglevel=error
    cp "$locks/$name/package-lock.json" ".npm/$name/installed.json"
done
