# Runs one iteration of an agent script. All its functions run in this one shell:
#   host.sh FOLDER PROMPT_FILE CONFIG SCRIPT NAME FILTER RALPH_DIR RALPH_HOME MODE SESSION_LOG
#
# stdout carries the agent's raw output, byte for byte; stderr is shared. Descriptor 3 carries what a person should
# see: the text of the display filter (if FILTER is `filter`) and, after a byte 1, what the hooks log. The response
# (response.md) and the result (script.status) are written to FOLDER, where nothing that an agent prints can end up.

set -uo pipefail
exec {__ralph_raw}>&1 1>&2 </dev/null
# shellcheck source=common.sh
source "${BASH_SOURCE[0]%/*}/common.sh"

__ralph_folder=$1 __ralph_prompt=$2 __ralph_filter=$6
__ralph_files_given=("$3" "$4" "$5")
export RALPH_DIR=$7 RALPH_HOME=$8 MODE=$9 SESSION_LOG=${10}
__ralph_output=$RALPH_DIR/last_agent_output
__ralph_phase=load
__ralph_code=1
__ralph_terminated=
__ralph_status=()

# Copies the raw output to its file, to ralph and to the filter. Ignores TERM, so that what the agent prints while it
# is being stopped still gets through. Reports `raw` when everything is copied and `shown` when the filter has ended.
__ralph_copy() {
  trap '' TERM INT HUP
  exec {__ralph_report}>&1  # the reader waits until this is closed
  if [[ $__ralph_filter != filter ]]; then
    exec tee -- "$__ralph_output" >&"$__ralph_raw" {__ralph_aside}>&-
  fi
  {
    tee -- "$__ralph_output" "/dev/fd/$__ralph_raw" {__ralph_aside}>&- {__ralph_report}>&-
    echo raw >&"$__ralph_report"
  } | {
    # In a subshell, which may exit. `cat` reads what the filter leaves unread.
    (
      trap - TERM INT HUP
      echo "$BASHPID" >&"$__ralph_report"
      agent_format_display >&"$__ralph_aside" {__ralph_aside}>&- {__ralph_raw}>&- {__ralph_report}>&-
    )
    cat >/dev/null
    echo shown >&"$__ralph_report"
  }
}

# Waits for the copy to end. A process that the agent left behind may keep it open, and a filter may be stuck: we wait
# only as long as there is progress.
__ralph_drain() {
  local word code size last=-1 raw='' filter='' waited=0
  while :; do
    read -r -t 0.5 -u "$__ralph_reports" word
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
    __ralph_status+=(slow_filter '')
    kill "$filter"
    filter=
  done
}

__ralph_invoke() {
  local copier
  coproc __ralph_tee { __ralph_copy; }
  copier=$!
  exec {__ralph_reports}<&"${__ralph_tee[0]}" {__ralph_in}>&"${__ralph_tee[1]}"
  eval "exec ${__ralph_tee[0]}<&- ${__ralph_tee[1]}>&-"
  # A subshell, as in the original tool's pipeline: it may exec, exit or cd. Our descriptors are closed in it, because
  # a process that kept one open would keep the iteration from ending.
  (agent_invoke "$__ralph_prompt") >&"$__ralph_in" {__ralph_in}>&- {__ralph_reports}<&- {__ralph_aside}>&- {__ralph_raw}>&-
  __ralph_code=$?
  exec {__ralph_in}>&-
  __ralph_drain "$copier" 2>/dev/null
  exec {__ralph_reports}<&-
}

__ralph_extract() {
  (agent_extract_response "$__ralph_output") >"$__ralph_folder/response.md" {__ralph_aside}>&- {__ralph_raw}>&-
  __ralph_status+=(extracted "$?")
}

# Runs a hook in this shell, so that hooks can share variables. What it prints goes to stderr.
__ralph_hook() {
  local code
  __ralph_defined "$1" || return 0
  __ralph_phase=$1
  "$1"
  code=$?
  set +e
  ((code == 0)) || __ralph_status+=("$1" "$code")
}

# Runs even if a hook or an unset variable has exited the shell: agent_post_iteration is always called.
__ralph_finish() {
  local code=$?
  trap - EXIT
  set +eu
  if [[ $__ralph_phase != 'done' ]]; then
    __ralph_status+=(exited "$__ralph_phase")
    if [[ $__ralph_phase == agent_pre_iteration ]]; then
      __ralph_code=$((code ? code : 1))
      (set -u; __ralph_hook agent_post_iteration)
    fi
  fi
  __ralph_status+=(used "${_ITER_CONTEXT_USED:-}" max "${_ITER_CONTEXT_MAX:-}" percent "${_ITER_CONTEXT_PCT:-}")
  __ralph_status+=(warn "${CONTEXT_WARN_PCT:-}")
  printf '%s\0' "${__ralph_status[@]}" >"$__ralph_folder/script.status"
  [[ -z $__ralph_terminated ]] || __ralph_code=143
  # If a signal ended the agent, end the same way, so that ralph sees a crash and not an exit code.
  if ((__ralph_code > 128 && __ralph_code < 144)); then
    ulimit -c 0
    trap - TERM
    kill -"$((__ralph_code - 128))" $$
  fi
  exit "$__ralph_code"
}

trap __ralph_finish EXIT
trap '__ralph_terminated=1' TERM
__ralph_mask=$(umask)
umask 077  # the journal is private
: >>"$SESSION_LOG" >"$__ralph_folder/response.md"
: >"$__ralph_folder/script.status"
umask "$__ralph_mask"
: >"$__ralph_output"
__ralph_load "${__ralph_files_given[@]}"
if ! command -v -- "${AGENT_CLI:-}" >/dev/null; then
  printf 'ralph: %s can no longer be found\n' "${AGENT_CLI:-AGENT_CLI}" >&2
  __ralph_phase='done' __ralph_code=127
  exit
fi
__ralph_hook agent_pre_iteration
__ralph_phase=agent_invoke
__ralph_invoke
if [[ -z $__ralph_terminated ]]; then __ralph_extract; fi
__ralph_hook agent_post_iteration
__ralph_phase='done'
