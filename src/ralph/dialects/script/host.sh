# Runs one iteration of an agent script, with all its functions in this one shell:
#   host.sh FOLDER PROMPT_FILE CONFIG SCRIPT NAME FILTER RALPH_DIR RALPH_HOME MODE SESSION_LOG
#
# stdout is the agent's raw output, byte for byte; stderr is everybody's. On descriptor 3 goes what a person should
# see: the display filter's text (if FILTER is `filter`) and, behind a byte 1, what the hooks log. FOLDER takes the
# response (response.md) and how it went (script.status): nothing that an agent prints gets there.

set -uo pipefail
exec {__ralph_raw}>&1 1>&2 </dev/null
# shellcheck source=common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"

__ralph_folder=$1 __ralph_prompt=$2 __ralph_filter=$6
__ralph_given=("$3" "$4" "$5")
export RALPH_DIR=$7 RALPH_HOME=$8 MODE=$9 SESSION_LOG=${10}
__ralph_output=$RALPH_DIR/last_agent_output
__ralph_phase=load
__ralph_code=1
__ralph_ended=
__ralph_told=()

# Copies the raw output to its file, to ralph and to the filter. It does not react to TERM: the agent's last words, when
# it is told to end, still have to get through. It says `raw` when all is copied and `shown` when the filter has ended.
__ralph_copy() {
  trap '' TERM INT HUP
  exec {__ralph_say}>&1  # as long as it is open, the copy is not at its end
  if [[ $__ralph_filter != filter ]]; then
    exec tee -- "$__ralph_output" >&"$__ralph_raw" {__ralph_aside}>&-
  fi
  {
    tee -- "$__ralph_output" "/dev/fd/$__ralph_raw" {__ralph_aside}>&- {__ralph_say}>&-
    echo raw >&"$__ralph_say"
  } | {
    # In a shell of its own, which may exit; what it does not want to read is read for it.
    (
      trap - TERM INT HUP
      echo "$BASHPID" >&"$__ralph_say"
      agent_format_display >&"$__ralph_aside" {__ralph_aside}>&- {__ralph_raw}>&- {__ralph_say}>&-
    )
    cat >/dev/null
    echo shown >&"$__ralph_say"
  }
}

# Waits for the copy to end. A process that the agent left behind may hold it open, and a filter may be stuck: neither
# is waited for longer than it makes headway.
__ralph_drain() {
  local word code size last=-1 raw='' filter='' waited=0
  while :; do
    read -r -t 0.5 -u "$__ralph_said" word
    code=$?
    if ((code == 0)); then
      case $word in
        raw) raw=1 ;;
        shown) return ;;
        *) filter=$word ;;
      esac
      continue
    fi
    ((code > 128)) || return 0
    if [[ -n $raw ]]; then
      ((++waited < 20)) && continue
    else
      size=$(wc -c <"$__ralph_output")
      if [[ $size != "$last" ]]; then
        last=$size
        continue
      fi
    fi
    if [[ -z $filter ]]; then
      kill -KILL "$1"
      return
    fi
    __ralph_told+=(slow_filter '')
    kill "$filter"
    filter=
  done
}

__ralph_invoke() {
  local copier
  coproc __ralph_tee { __ralph_copy; }
  copier=$!
  exec {__ralph_said}<&"${__ralph_tee[0]}" {__ralph_in}>&"${__ralph_tee[1]}"
  eval "exec ${__ralph_tee[0]}<&- ${__ralph_tee[1]}>&-"
  # A subshell, as in the pipeline that this convention has always used: it may exec, exit, cd. None of our descriptors
  # is open in it: whoever held one could keep the iteration from ending.
  (agent_invoke "$__ralph_prompt") >&"$__ralph_in" {__ralph_in}>&- {__ralph_said}<&- {__ralph_aside}>&- {__ralph_raw}>&-
  __ralph_code=$?
  exec {__ralph_in}>&-
  __ralph_drain "$copier" 2>/dev/null
  exec {__ralph_said}<&-
}

__ralph_extract() {
  (agent_extract_response "$__ralph_output") >"$__ralph_folder/response.md" {__ralph_aside}>&- {__ralph_raw}>&-
  __ralph_told+=(extracted "$?")
}

# In this shell, so that what one hook remembers the next one knows. What it prints goes where stderr goes.
__ralph_hook() {
  local code
  __ralph_defined "$1" || return 0
  __ralph_phase=$1
  "$1"
  code=$?
  set +e
  ((code == 0)) || __ralph_told+=("$1" "$code")
}

# Also when a hook or an unset variable has ended the shell: what comes after the agent comes in any case.
__ralph_finish() {
  local code=$?
  trap - EXIT
  set +eu
  if [[ $__ralph_phase != 'done' ]]; then
    __ralph_told+=(exited "$__ralph_phase")
    if [[ $__ralph_phase == agent_pre_iteration ]]; then
      __ralph_code=$((code ? code : 1))
      (set -u; __ralph_hook agent_post_iteration)
    fi
  fi
  __ralph_told+=(used "${_ITER_CONTEXT_USED:-}" max "${_ITER_CONTEXT_MAX:-}" percent "${_ITER_CONTEXT_PCT:-}")
  __ralph_told+=(warn "${CONTEXT_WARN_PCT:-}")
  printf '%s\0' "${__ralph_told[@]}" >"$__ralph_folder/script.status"
  [[ -z $__ralph_ended ]] || __ralph_code=143
  # An agent that was ended by a signal is a crash, not an exit code.
  if ((__ralph_code > 128 && __ralph_code < 144)); then
    ulimit -c 0
    trap - TERM
    kill -"$((__ralph_code - 128))" $$
  fi
  exit "$__ralph_code"
}

trap __ralph_finish EXIT
trap '__ralph_ended=1' TERM
__ralph_mask=$(umask)
umask 077  # the journal is nobody else's to read
: >>"$SESSION_LOG" >"$__ralph_folder/response.md"
: >"$__ralph_folder/script.status"
umask "$__ralph_mask"
: >"$__ralph_output"
__ralph_load "${__ralph_given[@]}"
if ! command -v -- "${AGENT_CLI:-}" >/dev/null; then
  printf 'ralph: there is no %s any more\n' "${AGENT_CLI:-AGENT_CLI}" >&2
  __ralph_phase='done' __ralph_code=127
  exit
fi
__ralph_hook agent_pre_iteration
__ralph_phase=agent_invoke
__ralph_invoke
if [[ -z $__ralph_ended ]]; then __ralph_extract; fi
__ralph_hook agent_post_iteration
__ralph_phase='done'
