# What an agent script finds when it is sourced, the same for a look at it and for an iteration.

# Above those that scripts use themselves: 3 is ours, where ralph gave us one.
__ralph_aside=-
if { true >&3; } 2>/dev/null; then exec {__ralph_aside}>&3 3>&-; fi

SPECS_DIR=specs
CONTEXT_WARN_PCT=80

# Shown to the user, and kept. Where the descriptor is not open (in the agent's own process), stderr is.
log() {
  printf '%s\n' "$*" >>"$SESSION_LOG"
  if [[ $__ralph_aside == - ]] || ! { printf '\001%s\n' "${*//$'\n'/$'\n\001'}" >&"$__ralph_aside"; } 2>/dev/null; then
    printf '%s\n' "$*" >&2
  fi
}

# A file may end with a test that fails; only one that cannot be read to its end is broken.
__ralph_source() {
  __ralph_file=$1
  set --  # it sees no arguments, as with the tool it was written for
  # shellcheck disable=SC1090
  source "$__ralph_file" || bash -n -- "$__ralph_file" 2>/dev/null || exit 2
}

# CONFIG SCRIPT NAME, of which the first may be empty
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
