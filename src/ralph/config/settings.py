"""The table of settings: type, default, flag, environment variable and keys in ralph.yml of each."""

# No `from __future__ import annotations` here: evaluating a hundred types from strings would slow down every start.

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]
#: seconds; written as a number or as `15m`
Seconds = Annotated[float, Meta(ge=0, extra={"duration": True})]


class PromptMode(StrEnum):
    ARG = "arg"
    STDIN = "stdin"
    FILE = "file"


class Ui(StrEnum):
    AUTO = "auto"
    RICH = "rich"
    PLAIN = "plain"
    JSON = "json"
    QUIET = "quiet"


class Signals(StrEnum):
    """How an agent reports that it is done; `auto` follows its convention."""

    AUTO = "auto"
    PROMISE = "promise"
    STATUS = "status"


class OnLimit(StrEnum):
    """What to do when the provider's limit is reached."""

    WAIT = "wait"
    STOP = "stop"
    FALLBACK = "fallback"


class ClaudePrompt(StrEnum):
    """How a Claude-compatible provider takes the prompt; `auto` depends on its length."""

    AUTO = "auto"
    ARG = "arg"
    STDIN = "stdin"


class CodexSandbox(StrEnum):
    NONE = "danger-full-access"
    WORKSPACE = "workspace-write"
    READ_ONLY = "read-only"


#: The default arguments of `--claude-command`, from the provider convention.
CLAUDE_ARGS = "--dangerously-skip-permissions --output-format stream-json --verbose"


class AdapterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`adapters.NAME` in ralph.yml. `timeout` is how long the agent may be silent."""

    enabled: bool = True
    timeout: Amount | None = None


class Settings(msgspec.Struct, frozen=True):
    """0 disables a limit or a deadline."""

    agent: str = "auto"
    agents: tuple[str, ...] = ()
    agent_cmd: str | None = None
    agent_script: str | None = None
    command: str | None = None
    args: tuple[str, ...] = ()
    prompt_mode: PromptMode = PromptMode.ARG
    prompt_flag: str | None = None
    agent_priority: tuple[str, ...] = ()
    adapters: dict[str, AdapterSettings] = {}
    dialect: str = "auto"
    driver: str | None = None
    claude_command: str | None = None
    claude_args: str = CLAUDE_ARGS
    claude_prompt: ClaudePrompt = ClaudePrompt.AUTO
    claude_error_patterns: tuple[str, ...] = ()
    claude_limit_patterns: tuple[str, ...] = ()
    claude_retry_patterns: tuple[str, ...] = ()
    preserve_anthropic_api_key: bool = False
    wait_on_limit: Seconds = 0.0
    codex_sandbox: CodexSandbox = CodexSandbox.NONE
    transcript: str = "auto"
    model: str | None = None
    allowed_tools: tuple[str, ...] = ()
    continue_session: bool = False
    session_expiry: Seconds = 86400.0
    pty: bool = False
    prompt: str | None = None
    prompt_file: str | None = None
    plan: str | None = None
    cwd: str | None = None
    completion_promise: str | None = None
    signals: Signals = Signals.AUTO
    fix_plan: str | None = None
    max_iterations: Count = 100
    max_runtime: Seconds = 0.0
    max_cost: Amount = 0.0
    prices: str | None = None
    max_tokens: Count = 0
    max_failures: Count = 5
    max_calls_per_hour: Count = 0
    denied_after: Count = 1
    on_limit: OnLimit = OnLimit.WAIT
    max_wait: Seconds = 21600.0
    limit_retries: Count = 10
    retry_delay: Seconds = 2.0
    retry_delay_max: Seconds = 300.0
    stuck_after: Count = 10
    same_error_after: Count = 10
    same_answer_after: Count = 10
    breaker_cooldown: Seconds = 1800.0
    breaker_auto_reset: bool = False
    idle_timeout: Seconds = 900.0
    wall_timeout: Seconds = 7200.0
    grace: Seconds = 5.0
    sleep: Seconds = 0.0
    verify: tuple[str, ...] = ()
    verify_timeout: Seconds = 600.0
    verify_baseline: bool = False
    confirmations: Positive = 1
    allowed_paths: tuple[str, ...] = ()
    env_deny: tuple[str, ...] = ()
    mask: bool = True
    mask_env: tuple[str, ...] = ()
    mask_patterns: tuple[str, ...] = ()
    redact_raw: bool = False
    interactive: bool = False
    exclusive: bool = True
    ui: Ui = Ui.AUTO


class Option(msgspec.Struct, frozen=True):
    """How users can set a setting, and its help."""

    name: str
    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    #: more keys in ralph.yml, the strongest first; the flat name always works
    keys: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    group: str = ""

    @property
    def all_keys(self) -> tuple[str, ...]:
        return (self.name, *self.keys)

    @property
    def all_env(self) -> tuple[str, ...]:
        return (f"RALPH_{self.name.upper()}", *self.env)


OPTIONS: tuple[Option, ...] = (
    Option(
        "agent",
        "Agent to run: a name, or 'auto' for the first one installed. [default: auto]",
        ("--agent",),
        "NAME",
        ("cli.backend",),
        group="Agent",
    ),
    Option(
        "agents",
        "Agents in order of preference, separated by commas: the first one runs, the others are fallbacks "
        "while it is rate-limited. [default: --agent alone]",
        ("--agents",),
        "NAMES",
        ("cli.agents",),
        group="Agent",
    ),
    Option(
        "agent_cmd",
        "Shell command to run as the agent. {prompt} in it is replaced by the path of a file that holds the "
        "prompt; without it, the command reads the prompt from stdin.",
        ("--agent-cmd",),
        "CMD",
        ("cli.agent_cmd",),
        ("AGENT_CMD",),
        group="Agent",
    ),
    Option(
        "agent_script",
        "Agent script to run (a bash file with agent_invoke and related functions): a path, or its name in agents/.",
        ("--agent-script",),
        "FILE",
        ("cli.agent_script",),
        group="Agent",
    ),
    Option(
        "command",
        "Program of a custom agent (agent: custom), or another binary for a named agent.",
        keys=("cli.command",),
    ),
    Option("args", "Arguments of a custom agent, before the prompt.", keys=("cli.args",)),
    Option("prompt_mode", "How a custom agent takes the prompt: arg, stdin or file.", keys=("cli.prompt_mode",)),
    Option(
        "prompt_flag",
        "Flag before the prompt argument of a custom agent.",
        keys=("cli.prompt_flag",),
    ),
    Option("agent_priority", "Order in which 'auto' looks for agents.", keys=("cli.agent_priority",)),
    Option("adapters", "Settings per agent: enabled (for 'auto') and timeout (without output)."),
    Option(
        "dialect",
        "Convention whose files to follow: auto, none, orchestrator, provider, driver or script. [default: auto]",
        ("--dialect",),
        "NAME",
        group="Agent",
    ),
    Option(
        "driver",
        "Platform driver whose agent to run: a path, or its name in ralph/drivers or .ralph/drivers.",
        ("--driver",),
        "PATH|NAME",
        env=("PLATFORM_DRIVER",),
        group="Agent",
    ),
    Option(
        "claude_command",
        "Claude-compatible program to run as the agent: it takes -p PROMPT and writes stream-json.",
        ("--claude-command",),
        "CMD",
        group="Agent",
    ),
    Option(
        "claude_args",
        "Arguments of --claude-command, before the prompt. [default: those that Claude Code needs]",
        ("--claude-args",),
        "ARGS",
        group="Agent",
    ),
    Option("claude_prompt", "How --claude-command takes the prompt: auto (depends on its length), arg or stdin."),
    Option("claude_error_patterns", "Texts in the output of --claude-command that mean it failed."),
    Option("claude_limit_patterns", "Texts in the output of --claude-command that mean it is rate-limited."),
    Option("claude_retry_patterns", "Texts in the output of --claude-command that mean it should be retried."),
    Option("preserve_anthropic_api_key", "Pass ANTHROPIC_API_KEY on to --claude-command."),
    Option("wait_on_limit", "How long to wait after one of claude_limit_patterns matches."),
    Option("codex_sandbox", "Sandbox of the agent codex: danger-full-access (none), workspace-write or read-only."),
    Option(
        "transcript",
        "Format of the agent's output: auto, plain, rtf1 or another adapter. [default: auto]",
        ("--transcript",),
        "NAME",
        ("cli.transcript",),
        group="Agent",
    ),
    Option(
        "model",
        "Model, passed to the agent with its own flag. [default: the agent's]",
        ("--model",),
        "NAME",
        ("cli.model",),
        group="Agent",
    ),
    Option(
        "allowed_tools",
        "Tools that the agent may use, separated by commas. [default: all]",
        ("--allowed-tools",),
        "NAMES",
        ("cli.allowed_tools",),
        group="Agent",
    ),
    Option(
        "continue_session",
        "Continue the agent's own session in each iteration instead of starting fresh.",
        ("--continue-session",),
        keys=("cli.continue_session",),
        group="Agent",
    ),
    Option(
        "session_expiry",
        "With --continue-session, the age at which a session is replaced by a new one. [default: 24h]",
        ("--session-expiry",),
        "TIME",
        ("cli.session_expiry",),
        group="Agent",
    ),
    Option(
        "pty",
        "Run the agent in a terminal of its own instead of with pipes. [default: per agent]",
        ("--pty",),
        keys=("cli.pty",),
        group="Agent",
    ),
    Option("prompt", "Prompt text.", ("-p", "--prompt"), "TEXT", ("event_loop.prompt", "prompt_text"), group="Prompt"),
    Option(
        "prompt_file",
        "File with the prompt, read again before each iteration. [default: PROMPT.md]",
        ("-P", "--prompt-file"),
        "FILE",
        ("event_loop.prompt_file",),
        group="Prompt",
    ),
    Option(
        "plan",
        "Plan file whose open checkboxes to work through, following the provider convention. [default: its only plan]",
        ("--plan",),
        "FILE",
        group="Prompt",
    ),
    Option(
        "cwd",
        "Directory that the agent works in; in ralph.yml, relative to that file. [default: the current directory]",
        ("--cwd",),
        "DIR",
        ("cli.cwd",),
        group="Agent",
    ),
    Option(
        "completion_promise",
        "Line that the agent prints when the work is done. [default: <promise>COMPLETE</promise> or LOOP_COMPLETE]",
        ("--completion-promise",),
        "TEXT",
        ("event_loop.completion_promise",),
        group="Completion",
    ),
    Option(
        "signals",
        "How the agent reports that the work is done: promise (a line of its own), status (a RALPH_STATUS "
        "block) or auto. [default: auto]",
        ("--signals",),
        "KIND",
        group="Completion",
    ),
    Option("fix_plan", "With signals: status, a checklist; the work is complete when every box is ticked."),
    Option(
        "verify",
        "Command that checks the work when the agent says it is done. Can be repeated; an empty value drops "
        "the checks in ralph.yml.",
        ("--verify",),
        "CMD",
        group="Completion",
    ),
    Option(
        "verify_timeout",
        "Time limit for each check. [default: 10m]",
        ("--verify-timeout",),
        "TIME",
        group="Completion",
    ),
    Option(
        "verify_baseline",
        "Accept a check that still fails if it failed before the run too.",
        ("--verify-baseline",),
        group="Completion",
    ),
    Option(
        "confirmations",
        "How many iterations in a row must report that the work is done. [default: 1]",
        ("--confirmations",),
        "N",
        group="Completion",
    ),
    Option(
        "allowed_paths",
        "Files, folders or patterns that the agent may change, separated by commas. Can be repeated. "
        "[default: everything]",
        ("--allowed-paths",),
        "PATHS",
        group="Completion",
    ),
    Option(
        "max_iterations",
        "Maximum number of iterations; 0 disables the limit. [default: 100]",
        keys=("event_loop.max_iterations",),
        group="Limits",
    ),
    Option(
        "max_runtime",
        "Time limit for the whole run, such as 90s, 15m or 8h. [default: no limit]",
        ("--max-runtime",),
        "TIME",
        ("event_loop.max_runtime_seconds", "event_loop.max_runtime"),
        group="Limits",
    ),
    Option(
        "max_cost",
        "Stop when the cost reaches this many dollars, as reported by the agent or computed from your "
        "prices. [default: no limit]",
        ("--max-cost",),
        "USD",
        ("event_loop.max_cost_usd", "event_loop.max_cost"),
        group="Limits",
    ),
    Option("prices", "File with model prices, instead of prices.toml next to your own ralph.yml."),
    Option(
        "max_tokens",
        "Stop when this many tokens have been used. [default: no limit]",
        ("--max-tokens",),
        "N",
        ("event_loop.max_tokens",),
        group="Limits",
    ),
    Option(
        "max_failures",
        "Stop after this many failed iterations in a row. [default: 5]",
        ("--max-failures",),
        "N",
        ("event_loop.max_consecutive_failures",),
        group="Limits",
    ),
    Option(
        "max_calls_per_hour",
        "Maximum number of times to start the agent per hour. [default: no limit]",
        ("--max-calls-per-hour",),
        "N",
        group="Limits",
    ),
    Option(
        "on_limit",
        "What to do when the provider's limit is reached: wait until it resets, stop, or switch to the next "
        "of --agents (fallback). [default: wait, or fallback if --agents names several]",
        ("--on-limit",),
        "WHAT",
        group="Limits",
    ),
    Option(
        "max_wait",
        "Longest single wait for a limit to reset; a longer one ends the run. [default: 6h]",
        ("--max-wait",),
        "TIME",
        group="Limits",
    ),
    Option("limit_retries", "How many times in a row to retry after a limit without a reset time."),
    Option("retry_delay", "Delay before the first of these retries; it doubles with each further one."),
    Option("retry_delay_max", "Longest delay between these retries."),
    Option(
        "denied_after",
        "Stop for a person after the agent is denied a tool in this many iterations in a row; 0 disables the "
        "limit. [default: 1]",
    ),
    Option(
        "stuck_after",
        "Stop as stuck after this many iterations in a row without a change; 0 disables the limit. [default: 10]",
        ("--stuck-after",),
        "N",
        group="Limits",
    ),
    Option("same_error_after", "Stop as stuck after this many iterations in a row with the same error."),
    Option(
        "same_answer_after",
        "Stop as stuck after this many iterations in a row with the same answer, no commit and no other files changed.",
    ),
    Option("breaker_cooldown", "With breaker_auto_reset, how long to wait when stuck."),
    Option("breaker_auto_reset", "When stuck, wait and try one more iteration instead of ending the run."),
    Option(
        "idle_timeout",
        "End an iteration after this long without output. [default: 15m]",
        ("--idle-timeout",),
        "TIME",
        ("event_loop.idle_timeout_seconds", "event_loop.idle_timeout_secs"),
        group="Limits",
    ),
    Option(
        "wall_timeout",
        "End an iteration after this long, even if it is still working. [default: 2h]",
        ("--timeout", "--wall-timeout"),
        "TIME",
        ("event_loop.iteration_timeout_seconds",),
        group="Limits",
    ),
    Option(
        "grace",
        "How long an agent may take to exit between TERM and KILL. [default: 5s]",
        ("--grace",),
        "TIME",
        group="Limits",
    ),
    Option(
        "sleep",
        "Pause between iterations. [default: none]",
        ("--sleep",),
        "TIME",
        ("event_loop.cooldown_delay_seconds",),
        group="Limits",
    ),
    Option(
        "exclusive",
        "Whether this must be the only run in its directory; with no, it can share the directory with other such "
        "runs. [default: yes]",
        ("--exclusive",),
        "yes|no",
        group="Limits",
    ),
    Option(
        "env_deny",
        "Environment variables to keep from the agent and from checks: names or patterns such as AWS_*, "
        "separated by commas. Can be repeated.",
        ("--env-deny",),
        "NAMES",
        group="Secrets",
    ),
    Option(
        "mask",
        "Whether to show and record [masked:NAME] instead of secrets. [default: yes]",
        ("--mask",),
        "yes|no",
        group="Secrets",
    ),
    Option(
        "mask_env",
        "More variables whose values are secrets: names or patterns, as for --env-deny.",
        ("--mask-env",),
        "NAMES",
        group="Secrets",
    ),
    Option("mask_patterns", "Regular expressions that match more secrets."),
    Option(
        "redact_raw",
        "Also mask secrets in the files that otherwise keep every byte: stdout.raw, stderr.raw and prompt.md.",
        ("--redact-raw",),
        group="Secrets",
    ),
    Option("interactive", "Ask between iterations whether to continue.", ("-i", "--interactive"), group="Screen"),
    Option(
        "ui",
        "What the screen shows: auto, rich, plain, json or quiet. [default: auto]",
        ("--ui",),
        "KIND",
        group="Screen",
    ),
)

BY_NAME: dict[str, Option] = {o.name: o for o in OPTIONS}
FIELDS: dict[str, msgspec.structs.FieldInfo] = {f.name: f for f in msgspec.structs.fields(Settings)}

#: Keys of ralph.yml that other tools support and ralph does not yet: reported once, not rejected.
NOT_ACTED_ON: frozenset[str] = frozenset(
    {
        "core", "hats", "events", "memories", "tasks", "skills", "hooks", "features", "RObot", "tui", "verbose",
        "cli.default_mode", "cli.idle_timeout_secs", "event_loop.starting_event",
        "event_loop.required_events", "event_loop.cancellation_promise", "event_loop.persistent",
        "event_loop.enforce_hat_scope", "event_loop.context_window_tokens", "event_loop.checkpoint_interval",
        "event_loop.starting_hat", "event_loop.mutation_score_warn_threshold", "event_loop.workflow_guards",
        "event_loop.execution_mode", "event_loop.event_policy", "event_loop.state_machine",
        "event_loop.path_required_events", "event_loop.verbose", "mode",
        # from the first version of the orchestrator
        "checkpoint_interval", "git_checkpoint", "archive_prompts", "enable_metrics", "metrics_interval", "dry_run",
        "iteration_telemetry", "output_preview_length", "context_window", "context_threshold", "max_prompt_size",
        "allow_unsafe_paths", "suppress_warnings", "_suppress_warnings", "project", "agent_args",
    }
)  # fmt: skip
#: Former settings of ralph, and what to do about them.
RETIRED: dict[str, str] = {
    "verify_strict": "it has no effect, because every check must pass now; "
    "verify_baseline accepts a check that failed before the run too",
}
#: Those of them that would change what the agent is told.
PROMPT_PARTS = frozenset({"core", "hats", "memories", "tasks", "skills"})
#: The same, below `adapters.NAME`.
ADAPTER_NOT_ACTED_ON = frozenset({"max_retries", "args", "env", "tool_permissions", "tool_timeout"})

#: Variables that are no settings: for ralph itself, for its agents, or of another convention.
VARIABLES = frozenset(
    {
        "RALPH_TRUST", "RALPH_CONFIG", "RALPH_DEBUG", "RALPH_AS_CLAUDE", "RALPH_DEMO_FAST", "RALPH_WATCHED",
        "RALPH_RUN_ID", "RALPH_RUN_DIR", "RALPH_ITERATION", "RALPH_CURRENT_PROMPT",
        "RALPH_DIR", "RALPH_HOME", "RALPH_VERBOSE",
    }
)  # fmt: skip

#: Settings that choose an agent of another convention.
HOSTED: tuple[str, ...] = ("agent_script", "claude_command", "driver")

SECTIONS = ("cli", "event_loop")


def is_duration(name: str) -> bool:
    kind = FIELDS[name].type
    extra: Any = next((m.extra for m in getattr(kind, "__metadata__", ()) if isinstance(m, Meta)), None)
    return bool(extra and extra.get("duration"))


def is_yes_or_no(name: str) -> bool:
    """Whether it is a switch that takes yes or no: `--exclusive=no`, or `exclusive: no`, a string in YAML 1.2."""
    return FIELDS[name].type is bool and BY_NAME[name].metavar is not None


def is_list(name: str) -> bool:
    return getattr(FIELDS[name].type, "__origin__", None) is tuple


def default(name: str) -> Any:
    field = FIELDS[name]
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default
