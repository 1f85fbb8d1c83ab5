"""Every setting, once: its type, its default, its flag, its environment variable, its keys in ralph.yml."""

# No `from __future__ import annotations` here: reading a hundred types back out of strings would slow every start.

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
    """How an agent says that it is done; `auto` is as its convention does."""

    AUTO = "auto"
    PROMISE = "promise"
    STATUS = "status"


class OnLimit(StrEnum):
    """What is done when the provider says that a limit is reached."""

    WAIT = "wait"
    STOP = "stop"
    FALLBACK = "fallback"


class ClaudePrompt(StrEnum):
    """How a Claude-compatible provider is given the prompt; `auto` is by its length."""

    AUTO = "auto"
    ARG = "arg"
    STDIN = "stdin"


#: What that convention gives to Claude if nothing is said.
CLAUDE_ARGS = "--dangerously-skip-permissions --output-format stream-json --verbose"


class AdapterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`adapters.NAME` in ralph.yml."""

    enabled: bool = True
    timeout: Amount | None = None


class Settings(msgspec.Struct, frozen=True):
    """0 is "no limit" for every limit and deadline."""

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
    verify_strict: bool = False
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
    """How a setting is reached from outside."""

    name: str
    help: str
    flags: tuple[str, ...] = ()
    metavar: str | None = None
    #: keys in ralph.yml, the strongest first; the flat name always works
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
        "Which agent: a name, or 'auto' for the first that is installed [default: auto].",
        ("--agent",),
        "NAME",
        ("cli.backend",),
        group="Agent",
    ),
    Option(
        "agents",
        "The agent, and those that take over while it is limited, separated by commas [default: --agent alone].",
        ("--agents",),
        "NAMES",
        ("cli.agents",),
        group="Agent",
    ),
    Option(
        "agent_cmd",
        "Run this shell command as the agent. {prompt} in it becomes the path of a file with the "
        "prompt; without it the prompt comes on stdin.",
        ("--agent-cmd",),
        "CMD",
        ("cli.agent_cmd",),
        ("AGENT_CMD",),
        group="Agent",
    ),
    Option(
        "agent_script",
        "Run this agent script (a bash file with agent_invoke and its fellows), by path or by its name in agents/.",
        ("--agent-script",),
        "FILE",
        ("cli.agent_script",),
        group="Agent",
    ),
    Option(
        "command",
        "The program of a custom agent (agent: custom), or another binary for a named one.",
        keys=("cli.command",),
    ),
    Option("args", "Arguments of a custom agent, before the prompt.", keys=("cli.args",)),
    Option("prompt_mode", "How a custom agent takes the prompt: arg, stdin or file.", keys=("cli.prompt_mode",)),
    Option(
        "prompt_flag",
        "The flag in front of the prompt argument of a custom agent.",
        keys=("cli.prompt_flag",),
    ),
    Option("agent_priority", "The order in which 'auto' looks for agents.", keys=("cli.agent_priority",)),
    Option("adapters", "Settings of single agents: enabled (for 'auto'), timeout of an iteration."),
    Option(
        "dialect",
        "Which convention's files to follow: auto, none, orchestrator, provider, driver or script [default: auto].",
        ("--dialect",),
        "NAME",
        group="Agent",
    ),
    Option(
        "driver",
        "Run the agent of this platform driver: a path, or its name in ralph/drivers or .ralph/drivers.",
        ("--driver",),
        "PATH|NAME",
        env=("PLATFORM_DRIVER",),
        group="Agent",
    ),
    Option(
        "claude_command",
        "Run this program as the agent: any that takes Claude's -p PROMPT and writes its stream-json.",
        ("--claude-command",),
        "CMD",
        group="Agent",
    ),
    Option(
        "claude_args",
        "The arguments of --claude-command, in front of the prompt [default: those that Claude needs].",
        ("--claude-args",),
        "ARGS",
        group="Agent",
    ),
    Option("claude_prompt", "How --claude-command is given the prompt: auto (by its length), arg or stdin."),
    Option("claude_error_patterns", "Texts in the output of --claude-command that mean that it failed."),
    Option("claude_limit_patterns", "Texts in the output of --claude-command that mean that a limit is reached."),
    Option("claude_retry_patterns", "Texts in the output of --claude-command that mean that it should be tried again."),
    Option("preserve_anthropic_api_key", "Let ANTHROPIC_API_KEY reach --claude-command."),
    Option("wait_on_limit", "How long to wait after one of claude_limit_patterns was seen."),
    Option(
        "transcript",
        "How to read the agent's output: auto, plain, rtf1 or another adapter [default: auto].",
        ("--transcript",),
        "NAME",
        ("cli.transcript",),
        group="Agent",
    ),
    Option(
        "model",
        "The model, passed to the agent by its own flag [default: the agent's].",
        ("--model",),
        "NAME",
        ("cli.model",),
        group="Agent",
    ),
    Option(
        "allowed_tools",
        "The only tools the agent may use, separated by commas [default: all].",
        ("--allowed-tools",),
        "NAMES",
        ("cli.allowed_tools",),
        group="Agent",
    ),
    Option(
        "continue_session",
        "Go on with the agent's own session in each iteration, instead of starting afresh.",
        ("--continue-session",),
        keys=("cli.continue_session",),
        group="Agent",
    ),
    Option(
        "session_expiry",
        "With --continue-session: how old a session may get before a new one is begun [default: 24h].",
        ("--session-expiry",),
        "TIME",
        ("cli.session_expiry",),
        group="Agent",
    ),
    Option(
        "pty",
        "Run the agent on a terminal of its own instead of pipes [default: as it needs].",
        ("--pty",),
        keys=("cli.pty",),
        group="Agent",
    ),
    Option("prompt", "The prompt itself.", ("-p", "--prompt"), "TEXT", ("event_loop.prompt",), group="Prompt"),
    Option(
        "prompt_file",
        "Read the prompt from a file, again for each iteration [default: PROMPT.md].",
        ("-P", "--prompt-file"),
        "FILE",
        ("event_loop.prompt_file",),
        group="Prompt",
    ),
    Option(
        "plan",
        "Work through the open boxes of this plan, by the provider convention's rules [default: its only plan].",
        ("--plan",),
        "FILE",
        group="Prompt",
    ),
    Option(
        "cwd",
        "Where the agent works [default: here]. In ralph.yml it is seen from that file.",
        ("--cwd",),
        "DIR",
        ("cli.cwd",),
        group="Agent",
    ),
    Option(
        "completion_promise",
        "The line by which the agent says that all is done [default: <promise>COMPLETE</promise> or LOOP_COMPLETE].",
        ("--completion-promise",),
        "TEXT",
        ("event_loop.completion_promise",),
        group="Completion",
    ),
    Option(
        "signals",
        "How the agent says that all is done: promise (a line of its own), status (a RALPH_STATUS block) or auto "
        "[default: auto].",
        ("--signals",),
        "KIND",
        group="Completion",
    ),
    Option("fix_plan", "With signals: status, a list of boxes; when all are ticked, the work is complete."),
    Option(
        "verify",
        "A check that ralph runs itself before it believes that the work is done. Can be given several times; "
        "an empty one drops those of ralph.yml.",
        ("--verify",),
        "CMD",
        group="Completion",
    ),
    Option(
        "verify_timeout",
        "How long one check may take [default: 10m].",
        ("--verify-timeout",),
        "TIME",
        group="Completion",
    ),
    Option(
        "verify_strict",
        "A check blocks completion even if it failed before the run began.",
        ("--verify-strict",),
        group="Completion",
    ),
    Option(
        "confirmations",
        "How many iterations in a row must say that all is done [default: 1].",
        ("--confirmations",),
        "N",
        group="Completion",
    ),
    Option(
        "allowed_paths",
        "What the agent may change: files, folders or patterns, separated by commas or given several times "
        "[default: everything].",
        ("--allowed-paths",),
        "PATHS",
        group="Completion",
    ),
    Option(
        "max_iterations",
        "How many iterations at most [default: 100]; 0 is no limit.",
        keys=("event_loop.max_iterations",),
        group="Limits",
    ),
    Option(
        "max_runtime",
        "How long the whole run may take, like 90s, 15m or 8h [default: no limit].",
        ("--max-runtime",),
        "TIME",
        ("event_loop.max_runtime_seconds",),
        group="Limits",
    ),
    Option(
        "max_cost",
        "Stop when the cost, as the agent reports it or by your prices, reaches this many dollars [default: no limit].",
        ("--max-cost",),
        "USD",
        ("event_loop.max_cost_usd",),
        group="Limits",
    ),
    Option("prices", "A file with the prices of models [default: prices.toml beside your own ralph.yml]."),
    Option(
        "max_tokens",
        "Stop when this many tokens were used [default: no limit].",
        ("--max-tokens",),
        "N",
        ("event_loop.max_tokens",),
        group="Limits",
    ),
    Option(
        "max_failures",
        "How many iterations may fail in a row [default: 5].",
        ("--max-failures",),
        "N",
        ("event_loop.max_consecutive_failures",),
        group="Limits",
    ),
    Option(
        "max_calls_per_hour",
        "How often the agent may be called in an hour [default: no limit].",
        ("--max-calls-per-hour",),
        "N",
        group="Limits",
    ),
    Option(
        "on_limit",
        "When the provider's limit is reached: wait until it ends, stop, or let the next of --agents take over "
        "(fallback) [default: wait; fallback if --agents names several].",
        ("--on-limit",),
        "WHAT",
        group="Limits",
    ),
    Option(
        "max_wait",
        "The longest single wait for a limit to end; a longer one ends the run [default: 6h].",
        ("--max-wait",),
        "TIME",
        group="Limits",
    ),
    Option("limit_retries", "How often in a row to try again after a limit that does not say when it ends."),
    Option("retry_delay", "The first pause after such a limit; each further one is twice as long."),
    Option("retry_delay_max", "The longest of these pauses."),
    Option(
        "denied_after",
        "How many iterations in a row may be refused a tool before a person is needed [default: 1]; 0 is any number.",
    ),
    Option(
        "stuck_after",
        "How many iterations in a row may change nothing before that counts as stuck [default: 10]; 0 is any number.",
        ("--stuck-after",),
        "N",
        group="Limits",
    ),
    Option("same_error_after", "How many iterations in a row may end with the same error before that is stuck."),
    Option(
        "same_answer_after",
        "How many iterations in a row may give the same answer, without a commit and with no other files changed, "
        "before that is stuck.",
    ),
    Option("breaker_cooldown", "With breaker_auto_reset: how long to wait when stuck."),
    Option("breaker_auto_reset", "When stuck, wait and try one more iteration instead of ending the run."),
    Option(
        "idle_timeout",
        "End an iteration after this time without any output [default: 15m].",
        ("--idle-timeout",),
        "TIME",
        ("event_loop.idle_timeout_seconds",),
        group="Limits",
    ),
    Option(
        "wall_timeout",
        "End an iteration after this time in any case [default: 2h].",
        ("--timeout", "--wall-timeout"),
        "TIME",
        ("event_loop.iteration_timeout_seconds",),
        group="Limits",
    ),
    Option(
        "grace",
        "The time an agent gets to end by itself, between TERM and KILL [default: 5s].",
        ("--grace",),
        "TIME",
        group="Limits",
    ),
    Option(
        "sleep",
        "Pause between iterations [default: none].",
        ("--sleep",),
        "TIME",
        ("event_loop.cooldown_delay_seconds",),
        group="Limits",
    ),
    Option(
        "exclusive",
        "Whether this is the only run in its directory; no lets several go on side by side, if all say so "
        "[default: yes].",
        ("--exclusive",),
        "yes|no",
        group="Limits",
    ),
    Option(
        "env_deny",
        "Keep these variables from the agent and from checks: names or patterns like AWS_*, separated by commas or "
        "given several times.",
        ("--env-deny",),
        "NAMES",
        group="Secrets",
    ),
    Option(
        "mask",
        "Whether [masked:NAME] is shown and recorded instead of secrets [default: yes].",
        ("--mask",),
        "yes|no",
        group="Secrets",
    ),
    Option(
        "mask_env",
        "The values of these variables are secrets, too: names or patterns, as for --env-deny.",
        ("--mask-env",),
        "NAMES",
        group="Secrets",
    ),
    Option("mask_patterns", "Regular expressions: what they match is a secret, too."),
    Option(
        "redact_raw",
        "Mask secrets also in the files that else keep every byte: stdout.raw, stderr.raw, prompt.md.",
        ("--redact-raw",),
        group="Secrets",
    ),
    Option("interactive", "Ask between iterations whether to go on.", ("-i", "--interactive"), group="Screen"),
    Option(
        "ui",
        "What the screen shows: auto, rich, plain, json or quiet [default: auto].",
        ("--ui",),
        "KIND",
        group="Screen",
    ),
)

BY_NAME: dict[str, Option] = {o.name: o for o in OPTIONS}
FIELDS: dict[str, msgspec.structs.FieldInfo] = {f.name: f for f in msgspec.structs.fields(Settings)}

#: Keys of ralph.yml that other versions act on and this one does not yet: named once, not refused.
NOT_ACTED_ON: frozenset[str] = frozenset(
    {
        "core", "hats", "events", "memories", "tasks", "skills", "hooks", "features", "RObot", "tui", "verbose",
        "backpressure", "cli.default_mode", "cli.idle_timeout_secs", "event_loop.starting_event",
        "event_loop.required_events", "event_loop.cancellation_promise", "event_loop.persistent",
        "event_loop.enforce_hat_scope", "event_loop.context_window_tokens", "event_loop.checkpoint_interval",
        # of the first version of that tool
        "checkpoint_interval", "git_checkpoint", "archive_prompts", "enable_metrics", "metrics_interval", "dry_run",
        "iteration_telemetry", "output_preview_length", "context_window", "context_threshold", "max_prompt_size",
        "allow_unsafe_paths", "suppress_warnings", "_suppress_warnings", "project",
    }
)  # fmt: skip
#: The same below `adapters.NAME`.
ADAPTER_NOT_ACTED_ON = frozenset({"max_retries", "args", "env", "tool_permissions"})

#: Settings that choose an agent of another convention's kind.
HOSTED: tuple[str, ...] = ("agent_script", "claude_command", "driver")

SECTIONS = ("cli", "event_loop")


def is_duration(name: str) -> bool:
    kind = FIELDS[name].type
    extra: Any = next((m.extra for m in getattr(kind, "__metadata__", ()) if isinstance(m, Meta)), None)
    return bool(extra and extra.get("duration"))


def is_yes_or_no(name: str) -> bool:
    """A switch that is given in words: `--exclusive=no`, and `exclusive: no`, which is a text in YAML 1.2."""
    return FIELDS[name].type is bool and BY_NAME[name].metavar is not None


def is_list(name: str) -> bool:
    return getattr(FIELDS[name].type, "__origin__", None) is tuple


def default(name: str) -> Any:
    field = FIELDS[name]
    return field.default_factory() if field.default is msgspec.NODEFAULT else field.default
