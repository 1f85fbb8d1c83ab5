# Hosts one platform driver: host.sh DRIVER VERB [ARGUMENT…]
#
# Answers go to the stdout that ralph gave us, each ended by NUL, because a prompt has newlines in it. Whatever the
# driver itself prints where it should not goes to stderr, so that it cannot get in between.

set -u
exec 3>&1 1>&2 </dev/null

_ralph_answer() { printf '%s\0' "$@" >&3; }
# What a hook echoes; without the answers' descriptor, so that nothing it leaves behind holds it open.
_ralph_echoed() { "$@" 3>&-; }
_ralph_defined() { declare -F "$1" >/dev/null; }
_ralph_truth() { if "$@" 3>&- >/dev/null; then _ralph_answer yes; else _ralph_answer no; fi; }
log_status() { printf '%s\n' "${*:2}" >&2; }

# What holds for a driver that does not say.
driver_supports_tool_allowlist() { return 1; }
driver_supports_sessions() { return 0; }
driver_supports_live_output() { return 0; }
driver_permission_denial_help() {
  echo "Look at the permission settings of $DRIVER_DISPLAY_NAME: it was refused something that it needs."
  echo "What a driver takes from the configuration stands in $RALPHRC_FILE."
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
# A file may end with a test that fails; only one that cannot be read to its end is broken.
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
CLAUDE_CODE_CMD=$(_ralph_echoed driver_cli_binary)
DRIVER_DISPLAY_NAME=$(_ralph_echoed driver_display_name)

_ralph_describe() {
  _ralph_answer name "$(_ralph_echoed driver_name)" title "$DRIVER_DISPLAY_NAME" binary "$CLAUDE_CODE_CMD"
  _ralph_answer allow_list; _ralph_truth driver_supports_tool_allowlist
  _ralph_answer sessions; _ralph_truth driver_supports_sessions
  _ralph_answer live; _ralph_truth driver_supports_live_output
  for _ralph_hook in prepare_live_command stream_filter extract_session_id_from_output fallback_session_id; do
    _ralph_answer "$_ralph_hook"; _ralph_truth _ralph_defined "driver_$_ralph_hook"
  done
  if _ralph_defined driver_stream_filter; then _ralph_answer filter "$(_ralph_echoed driver_stream_filter)"; fi
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

# What the hook $1 echoes; nothing if the driver has none.
_ralph_said() {
  local _ralph_text _ralph_hook=$1
  shift
  if _ralph_defined "$_ralph_hook"; then
    _ralph_text=$(_ralph_echoed "$_ralph_hook" "$@")
    _ralph_answer said "$_ralph_text"
  fi
}

case $_ralph_verb in
  describe) _ralph_describe ;;
  command) _ralph_command "$@" ;;
  said) _ralph_said "$@" ;;
  available) if _ralph_defined driver_check_available; then _ralph_truth driver_check_available; fi ;;
esac
exit 0
