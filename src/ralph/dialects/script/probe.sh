# Inspects an agent script without running its agent: probe.sh CONFIG SCRIPT NAME RALPH_DIR RALPH_HOME MODE [VARIABLE…]
#
# Answers go to our original stdout: names and values, each ended by NUL. What the files print themselves goes to
# stderr. Without a SCRIPT, only the configuration is sourced.

set -uo pipefail
exec {__ralph_answers}>&1 1>&2 </dev/null 3>&-
# shellcheck source=common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"
SESSION_LOG=/dev/null
export RALPH_DIR=$4 RALPH_HOME=$5 MODE=$6 SESSION_LOG
__ralph_names=("${@:7}")
__ralph_answer() { printf '%s\0' "$@" >&"$__ralph_answers"; }

__ralph_answer bash "${BASH_VERSINFO[0]}"
__ralph_file_in_use=$1
trap '__ralph_answer failed "$__ralph_file_in_use"' EXIT
if [[ -n $2 ]]; then
  __ralph_file_in_use="$2"
  __ralph_load "$1" "$2" "$3"
else
  __ralph_source "$1"
fi
trap - EXIT
set +e

for __ralph_name in "${__ralph_names[@]}"; do
  if [[ -n ${!__ralph_name+x} ]]; then __ralph_answer "=$__ralph_name" "${!__ralph_name}"; fi
done
for __ralph_name in agent_invoke agent_extract_response agent_format_display; do
  if __ralph_defined "$__ralph_name"; then __ralph_answer "$__ralph_name" ''; fi
done
if [[ -n ${AGENT_CLI:-} ]] && command -v -- "$AGENT_CLI" >/dev/null; then __ralph_answer installed ''; fi
__ralph_answer done ''
