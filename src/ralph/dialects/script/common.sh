# The environment of an agent script. probe.sh and host.sh both use it, so that a script finds the same in each.

# If ralph passed us descriptor 3, move it to a high number: scripts use low ones themselves.
__ralph_aside=-
if { true >&3; } 2>/dev/null; then exec {__ralph_aside}>&3 3>&-; fi

SPECS_DIR=specs
CONTEXT_WARN_PCT=80

# Shows a message to the user and keeps it. Uses stderr where the descriptor is not open (in the agent's process).
log() {
  printf '%s\n' "$*" >>"$SESSION_LOG"
  if [[ $__ralph_aside == - ]] || ! { printf '\001%s\n' "${*//$'\n'/$'\n\001'}" >&"$__ralph_aside"; } 2>/dev/null; then
    printf '%s\n' "$*" >&2
  fi
}

# A non-zero status is fine if the file parses: its last line may be a test that fails.
__ralph_source() {
  __ralph_file=$1
  set --  # no arguments, as with the tool that it was written for
  # shellcheck disable=SC1090
  source "$__ralph_file" || bash -n -- "$__ralph_file" 2>/dev/null || exit 2
}

# CONFIG SCRIPT NAME; CONFIG may be empty
__ralph_load() {
  __ralph_files=("$@")
  if [[ -n ${__ralph_files[0]} ]]; then __ralph_source "${__ralph_files[0]}"; fi
  AGENT=${__ralph_files[2]}
  export AGENT SPECS_DIR CONTEXT_WARN_PCT
  __ralph_source "${__ralph_files[1]}"
  set +e
  set -uo pipefail
}

__ralph_defined() { declare -F "$1" >/dev/null; }
