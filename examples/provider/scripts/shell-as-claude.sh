#!/usr/bin/env bash
# Stands in for a model: does the first open box of the plan that its prompt names, and tells of it as Claude would.
set -euo pipefail

prompt=""
while [[ $# -gt 0 ]]; do
    case $1 in
    -p) prompt=${2:-}; shift $(($# > 1 ? 2 : 1)) ;;
    *) shift ;; # flags that only Claude has
    esac
done
[[ -n $prompt || -t 0 ]] || prompt=$(cat)
[[ $prompt =~ docs/plans/[a-z-]+\.md ]] || { echo "no plan is named in the prompt" >&2; exit 1; }
plan=${BASH_REMATCH[0]}

say() { # one line of text as an event; these lines need no escapes
    printf '{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s\\n"}}\n' "$1"
}

line=$(grep -n -m 1 -F -- '- [ ]' "$plan" || true)
if [[ -n $line ]]; then
    file=$(sed -E 's/.*`(.*)`.*/\1/' <<<"$line")
    say "The next open box asks for $file."
    echo "${file%.txt}" >"$file"
    sed -i.old "${line%%:*}s/\[ \]/[x]/" "$plan" && rm "$plan.old"
fi
if grep -q -F -- '- [ ]' "$plan"; then
    say "More boxes are open."
else
    # in two fragments, as models stream it
    printf '{"type":"content_block_delta","delta":{"type":"text_delta","text":"<<<RALPHEX:ALL_"}}\n'
    say "TASKS_DONE>>>"
fi
echo '{"type":"result","result":""}'
