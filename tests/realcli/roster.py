"""The real CLIs, and the settings and variables that point each of them at a scripted model."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

NPM = Path(__file__).parent.parent.parent / ".npm"
KEY = "no-real-key"


@dataclass(frozen=True)
class RealAgent:
    """One CLI in one version."""

    #: the name of its folder in tests/realcli/npm
    folder: str
    #: writes its settings to HOME and returns its environment variables
    prepare: Callable[[Path, str], dict[str, str]]
    agent: str
    model: str | None = None
    #: which of usage, session and resume it lacks; "live usage": it reports usage only when it ends;
    #: "usage before tools": it reports a message's usage only after the tools of that message have ended;
    #: "same session": a continued session gets a new ID
    lacks: frozenset[str] = frozenset()
    #: whether it accepts a prompt of 300 KB, which does not fit in an argument
    long_prompt: bool = True
    #: whether it reports a tool call as failed if the command exits with 3
    tells_failed_command: bool = True
    #: whether every run uses the same port
    alone: bool = False

    @property
    def bin(self) -> Path:
        return NPM / self.folder / "node_modules" / ".bin"

    @property
    def path(self) -> str:
        """Its own folder first, then the node that some need, then the machine's programs."""
        return os.pathsep.join((str(self.bin), str(NPM / "node" / "node_modules" / ".bin"), os.environ["PATH"]))


def _write(file: Path, content: object) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))


def _claude(home: Path, url: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def _codex(home: Path, url: str) -> dict[str, str]:
    _write(
        home / ".codex" / "config.toml",
        f"""
        model = "scripted-model"
        model_provider = "scripted"
        [model_providers.scripted]
        name = "scripted"
        base_url = "{url}/v1"
        wire_api = "responses"
        env_key = "SCRIPTED_KEY"
        request_max_retries = 1
        stream_max_retries = 1
        """,
    )
    return {"SCRIPTED_KEY": KEY}


def _gemini(home: Path, url: str) -> dict[str, str]:
    _write(
        home / ".gemini" / "settings.json",
        {"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"maxAttempts": 2}},
    )
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "TMPDIR": str(home)}


def _opencode(home: Path, url: str) -> dict[str, str]:
    model = {
        "name": "Scripted",
        "tool_call": True,
        "reasoning": True,
        "limit": {"context": 1_000_000, "output": 8192},
    }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
        "models": {"scripted-model": model},
    }
    _write(home / ".config" / "opencode" / "opencode.json", {"autoupdate": False, "provider": {"scripted": provider}})
    return {"OPENCODE_DISABLE_AUTOUPDATE": "1"}


def _copilot(home: Path, url: str) -> dict[str, str]:
    return {
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": "scripted-model",
    }


def _qwen(home: Path, url: str) -> dict[str, str]:
    _write(home / ".qwen" / "settings.json", {"model": {"generationConfig": {"maxRetries": 0}}})
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": "scripted-model"}


def _pi(home: Path, url: str) -> dict[str, str]:
    model = {"id": "scripted-model", "reasoning": True, "contextWindow": 1_000_000, "maxTokens": 8192}
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": KEY, "models": [model]}
    _write(home / ".pi" / "agent" / "models.json", {"providers": {"scripted": provider}})
    return {"PI_OFFLINE": "1"}


def _cline(home: Path, url: str) -> dict[str, str]:
    """Lets the CLI write its own settings."""
    flags = ["-p", "openai-compatible", "-k", KEY, "-m", "scripted-model", "-b", f"{url}/v1"]
    program = NPM / "cline" / "node_modules" / ".bin" / "cline"
    environment = os.environ | {"HOME": str(home)}
    subprocess.run(
        [program, "auth", *flags],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=True,
    )
    return {}


def _goose(home: Path, url: str) -> dict[str, str]:
    program = NPM / "goose" / "node_modules" / ".bin" / "goose"
    if not program.exists():  # npm names it after the platform
        program.symlink_to(next(program.parent.glob("goose-binary-*")).name)
    return {
        "GOOSE_PROVIDER": "openai",
        "GOOSE_MODEL": "gpt-4o",
        "GOOSE_DISABLE_KEYRING": "1",
        "OPENAI_HOST": url,
        "OPENAI_API_KEY": KEY,
    }


def _droid(home: Path, url: str) -> dict[str, str]:
    model = {
        "model": "scripted-model",
        "displayName": "Scripted",
        "baseUrl": f"{url}/v1",
        "apiKey": KEY,
        "provider": "generic-chat-completion-api",
        "maxOutputTokens": 8192,
    }
    _write(home / ".factory" / "settings.json", {"cloudSessionSync": False, "customModels": [model]})
    return {}


def _kimi(home: Path, url: str) -> dict[str, str]:
    _write(
        home / ".kimi-code" / "config.toml",
        f"""
        default_model = "scripted"
        telemetry = false
        [models.scripted]
        provider = "scripted"
        model = "scripted-model"
        max_context_size = 1000000
        capabilities = ["thinking", "tool_use"]
        [providers.scripted]
        type = "kimi"
        base_url = "{url}/v1"
        api_key = "{KEY}"
        [thinking]
        enabled = true
        """,
    )
    return {"KIMI_CODE_NO_AUTO_UPDATE": "1"}


ROSTER = (
    RealAgent("claude", _claude, "claude"),
    RealAgent("codex", _codex, "codex"),
    RealAgent("codex-0.50", _codex, "codex"),
    RealAgent(
        "gemini", _gemini, "gemini", model="gemini-2.5-pro", lacks=frozenset({"live usage"}), tells_failed_command=False
    ),
    RealAgent(
        "opencode",
        _opencode,
        "opencode",
        model="scripted/scripted-model",
        lacks=frozenset({"usage before tools"}),
    ),
    RealAgent("copilot", _copilot, "copilot", lacks=frozenset({"usage"})),
    RealAgent("qwen", _qwen, "qwen"),
    RealAgent("pi", _pi, "pi", model="scripted/scripted-model"),
    RealAgent("cline", _cline, "cline", lacks=frozenset({"session", "resume"}), long_prompt=False, alone=True),
    RealAgent("goose", _goose, "goose", lacks=frozenset({"session", "live usage"})),
    RealAgent("droid", _droid, "droid", model="custom:scripted-model", lacks=frozenset({"same session", "live usage"})),
    RealAgent("kimi", _kimi, "kimi", lacks=frozenset({"usage"}), long_prompt=False),
)


def chosen(names: str | None) -> tuple[RealAgent, ...]:
    """The CLIs that AGENTS names, or all of them."""
    wanted = (names or "").split()
    unknown = set(wanted) - {a.folder for a in ROSTER} - {a.agent for a in ROSTER}
    if unknown:
        raise ValueError(f"AGENTS names {', '.join(sorted(unknown))}; there are {', '.join(a.folder for a in ROSTER)}")
    return tuple(a for a in ROSTER if not wanted or a.folder in wanted or a.agent in wanted)
