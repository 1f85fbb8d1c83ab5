#!/bin/sh
# Updates the lock files of the real CLIs (needs the network): versions and hashes, but no addresses, so that they do not
# depend on the registry that they were made with.
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
    echo "these lines contain an address and must not be committed" >&2
    exit 1
fi
