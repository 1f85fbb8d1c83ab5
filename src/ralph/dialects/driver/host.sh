# Hosts one platform driver: host.sh DRIVER VERB [ARGUMENT…]
#
# Answers go to our original stdout, each ended by NUL because a prompt may contain newlines. Anything else that the
# driver prints to stdout is sent to stderr, so that it cannot mix with the answers.

set -u
exec 3>&1 1>&2 </dev/null

_ralph_answer() { printf '%s\0' "$@" >&3; }
# Runs a hook without the answers' descriptor, so that a process it leaves behind cannot keep that open.
_ralph_run() { "$@" 3>&-; }
_ralph_defined() { declare -F "$1" >/dev/null; }
_ralph_truth() { if "$@" 3>&- >/dev/null; then _ralph_answer yes; else _ralph_answer no; fi; }
log_status() { printf '%s\n' "${*:2}" >&2; }

# Defaults for hooks that a driver may leave out.
driver_supports_tool_allowlist() { return 1; }
driver_supports_sessions() { return 0; }
driver_supports_live_output() { return 0; }
driver_permission_denial_help() {
  echo "$DRIVER_DISPLAY_NAME was denied a permission that it needs: check its permission settings."
  echo "The settings that ralph passes to the driver are in $RALPHRC_FILE."
}

VALID_TOOL_PATTERNS=()
CLAUDE_CMD_ARGS=()
LIVE_CMD_ARGS=()
: "${CLAUDE_USE_CONTINUE:=}" "${CLAUDE_OUTPUT_FORMAT:=}" "${CLAUDE_ALLOWED_TOOLS:=}" "${CLAUDE_PERMISSION_MODE:=}"
: "${RALPHRC_FILE:=}" "${DRIVER_DISPLAY_NAME:=}" "${CLAUDE_CODE_CMD:=}" "${PLATFORM_DRIVER:=}"
: "${RALPH_DIR:=.ralph}" "${VERBOSE_PROGRESS:=false}" "${LIVE_OUTPUT:=true}" "${SCRIPT_DIR:=}"
: "${PROMPT_FILE:=$RALPH_DIR/PROMPT.md}" "${LOG_DIR:=$RALPH_DIR/logs}"

_ralph_driver=$1
_ralph_verb=$2
shift 2
# A non-zero status is fine if the file parses: its last line may be a test that fails.
# shellcheck disable=SC1090
source "$_ralph_driver" 3>&- || bash -n "$_ralph_driver" || exit 3
set +e

for _ralph_hook in driver_name driver_display_name driver_cli_binary driver_valid_tools driver_build_command; do
  _ralph_defined "$_ralph_hook" || _ralph_missing="${_ralph_missing:-} $_ralph_hook"
done
if [[ -n "${_ralph_missing:-}" ]]; then
  _ralph_answer missing "${_ralph_missing# }"
  exit 0
fi
driver_valid_tools 3>&-
CLAUDE_CODE_CMD=$(_ralph_run driver_cli_binary)
DRIVER_DISPLAY_NAME=$(_ralph_run driver_display_name)

_ralph_describe() {
  _ralph_answer name "$(_ralph_run driver_name)" title "$DRIVER_DISPLAY_NAME" binary "$CLAUDE_CODE_CMD"
  _ralph_answer allow_list; _ralph_truth driver_supports_tool_allowlist
  _ralph_answer sessions; _ralph_truth driver_supports_sessions
  _ralph_answer live; _ralph_truth driver_supports_live_output
  for _ralph_hook in prepare_live_command stream_filter extract_session_id_from_output fallback_session_id; do
    _ralph_answer "$_ralph_hook"; _ralph_truth _ralph_defined "driver_$_ralph_hook"
  done
  if _ralph_defined driver_stream_filter; then _ralph_answer filter "$(_ralph_run driver_stream_filter)"; fi
  _ralph_answer tools "${#VALID_TOOL_PATTERNS[@]}" ${VALID_TOOL_PATTERNS[@]+"${VALID_TOOL_PATTERNS[@]}"}
}

# PROMPT_FILE CONTEXT SESSION yes|no
_ralph_command() {
  driver_build_command "$1" "$2" "$3" 3>&- || { _ralph_answer failed "$?"; return; }
  if [[ $4 == yes ]]; then
    if ! _ralph_defined driver_prepare_live_command; then
      LIVE_CMD_ARGS=(${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"})
    elif ! driver_prepare_live_command 3>&-; then
      LIVE_CMD_ARGS=()
    fi
    if [[ ${#LIVE_CMD_ARGS[@]} -gt 0 ]]; then
      _ralph_answer live "${LIVE_CMD_ARGS[@]}"
      return
    fi
  fi
  _ralph_answer plain ${CLAUDE_CMD_ARGS[@]+"${CLAUDE_CMD_ARGS[@]}"}
}

# Answers with what the hook $1 prints. No answer if the driver does not define it.
_ralph_output() {
  local _ralph_text _ralph_hook=$1
  shift
  if _ralph_defined "$_ralph_hook"; then
    _ralph_text=$(_ralph_run "$_ralph_hook" "$@")
    _ralph_answer output "$_ralph_text"
  fi
}

case $_ralph_verb in
  describe) _ralph_describe ;;
  command) _ralph_command "$@" ;;
  output) _ralph_output "$@" ;;
  available) if _ralph_defined driver_check_available; then _ralph_truth driver_check_available; fi ;;
esac
exit 0
