# Driver for Sketch, a fake agent CLI (../../bin/sketch): JSON lines, sessions, no tool allow-list.

driver_name() { echo "sketch"; }
driver_display_name() { echo "Sketch"; }

# The CLI is part of this example, so look for it there first.
driver_cli_binary() {
  local here
  here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
  if [[ -x "$here/../../bin/sketch" ]]; then
    echo "$here/../../bin/sketch"
  else
    echo "sketch"
  fi
}

driver_valid_tools() { VALID_TOOL_PATTERNS=("read" "write" "shell" "shell(git *)"); }

driver_build_command() {
  local prompt_file=$1 loop_context=$2 session_id=$3
  [[ -f "$prompt_file" ]] || { echo "no prompt: $prompt_file" >&2; return 1; }
  CLAUDE_CMD_ARGS=("$(driver_cli_binary)" --format "$CLAUDE_OUTPUT_FORMAT")
  if [[ "$CLAUDE_USE_CONTINUE" == "true" && -n "$session_id" ]]; then
    CLAUDE_CMD_ARGS+=(--session "$session_id")
  fi
  if [[ -n "$loop_context" ]]; then
    CLAUDE_CMD_ARGS+=(--note "$loop_context")
  fi
  CLAUDE_CMD_ARGS+=("$(cat "$prompt_file")")
}

driver_supports_tool_allowlist() { return 1; }
driver_supports_sessions() { return 0; }
driver_supports_live_output() { return 0; }

driver_prepare_live_command() {
  local argument
  LIVE_CMD_ARGS=()
  for argument in "${CLAUDE_CMD_ARGS[@]}"; do
    [[ "$argument" == "json" ]] && argument="jsonl"
    LIVE_CMD_ARGS+=("$argument")
  done
}

driver_stream_filter() {
  echo 'if .event == "delta" then .text
        elif .event == "tool" then "\n[" + .name + "]\n"
        else empty end'
}

driver_extract_session_id_from_output() {
  sed -n 's/.*"event":"opened","run":"\([^"]*\)".*/\1/p' "$1" | head -n 1
}

driver_permission_denial_help() {
  echo "$DRIVER_DISPLAY_NAME was not allowed to write. See $RALPHRC_FILE, then run again."
}

driver_min_version() { echo "1.2.0"; }
driver_check_available() { command -v "$(driver_cli_binary)" >/dev/null; }
