#!/bin/sh
# Writes the lock files of the real CLIs anew (needs the network): versions and hashes, and no address of anything,
# so that they say nothing about the registry they were made with.
set -eu
cd "$(dirname "$0")/../tests/realcli/npm"
for folder in */; do
    (
        cd "$folder"
        npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --ignore-scripts
        node -e '
            const fs = require("fs"), lock = JSON.parse(fs.readFileSync("package-lock.json"));
            for (const entry of Object.values(lock.packages)) {
                delete entry.funding;
                if (/:\/\//.test(entry.deprecated ?? "")) delete entry.deprecated;
            }
            fs.writeFileSync("package-lock.json", JSON.stringify(lock, null, 2) + "\n");
        '
    )
done
if grep -rnE '://|www\.|"resolved"' ./*/package-lock.json; then
    echo "these lines name an address: they must not be committed" >&2
    exit 1
fi
