#!/usr/bin/env bash
# A stand-in for a model: does the first open task of the plan named in its prompt, and reports it as Claude would.
set -euo pipefail

prompt=""
while [[ $# -gt 0 ]]; do
    case $1 in
    -p) prompt=${2:-}; shift $(($# > 1 ? 2 : 1)) ;;
    *) shift ;; # ignore Claude's flags
    esac
done
[[ -n $prompt || -t 0 ]] || prompt=$(cat)
[[ $prompt =~ docs/plans/[a-z-]+\.md ]] || { echo "the prompt does not name a plan" >&2; exit 1; }
plan=${BASH_REMATCH[0]}

say() { # prints one line of text as an event; these lines contain nothing to escape
    printf '{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s\\n"}}\n' "$1"
}

line=$(grep -n -m 1 -F -- '- [ ]' "$plan" || true)
if [[ -n $line ]]; then
    file=$(sed -E 's/.*`(.*)`.*/\1/' <<<"$line")
    say "The next task is $file."
    echo "${file%.txt}" >"$file"
    sed -i.old "${line%%:*}s/\[ \]/[x]/" "$plan" && rm "$plan.old"
fi
if grep -q -F -- '- [ ]' "$plan"; then
    say "There are open boxes left."
else
    # in two fragments, as models stream text
    printf '{"type":"content_block_delta","delta":{"type":"text_delta","text":"<<<RALPHEX:ALL_"}}\n'
    say "TASKS_DONE>>>"
fi
echo '{"type":"result","result":""}'
