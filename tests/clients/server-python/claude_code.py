"""Holds the stateless Messages route of a running server against the Claude Code command line; see
`harness.py`. It runs headless, with a key that means nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import World, main

# No run takes so many seconds; one that does hangs.
LONGEST = 120

TIDE = "The tide turns at ten."
BASH = 'use Bash with command="echo high water" description="Says it"'


class Session:
    """A home and a folder in which Claude Code runs."""

    def __init__(self, world: World, *, model: str | None = None) -> None:
        self.world = world
        self.model = model or world.model
        self.folder = tempfile.TemporaryDirectory(prefix="claude-code-")
        root = Path(self.folder.name)
        self.home, self.work = root / "home", root / "work"
        self.home.mkdir()
        self.work.mkdir()

    def ask(self, text: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        # Nothing leaves the machine: what is not loopback goes to a proxy that is not there.
        nowhere = "http://127.0.0.1:9"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "ANTHROPIC_BASE_URL": self.world.base_url.removesuffix("/v1"),
            "ANTHROPIC_API_KEY": "not-needed-on-loopback",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "NO_PROXY": "127.0.0.1,localhost",
        }
        command = [self.world.arguments.claude, "-p", text, "--model", self.model, *arguments]
        return subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )

    def result(self, text: str, *arguments: str) -> dict[str, Any]:
        done = self.ask(text, "--output-format", "json", *arguments)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        self.world.need("it ends with a result", lines, done.stdout, done.stderr)
        return json.loads(lines[-1])


def is_misled(world: World) -> bool:
    """Whether the scripted model answers something else than the prompt: it takes the last text of the
    user for that, and Gemini's format has the system text there that Claude Code sends after it.
    """
    return world.control.upstream == "gemini"


def plain(world: World) -> None:
    if is_misled(world):
        return
    text = TIDE if world.demo else f"say exactly: {TIDE}"
    found = Session(world).result(text)
    world.check("it ends well", not found["is_error"], found)
    world.check("with the answer", TIDE in found["result"], found["result"])
    world.check("and its usage", found["usage"]["output_tokens"] > 0, found["usage"])


def tools(world: World) -> None:
    """The model has Claude Code run a command and hears its output."""
    if is_misled(world) or world.demo:
        return
    asked = world.control.count()
    # Models with a budget for thinking must think before they call.
    found = Session(world).result(f"think first: {BASH}", "--allowedTools", "Bash")
    world.check("it ends well", not found["is_error"], found)
    world.check("with the output", "high water" in found["result"], found["result"])
    world.check("the vendor was asked twice", world.control.count() >= asked + 2)
    lines = world.control.heard()["lines"]
    world.check("it heard the output", any("high water" in line for line in lines), lines)


def streams(world: World) -> None:
    if is_misled(world):
        return
    text = TIDE if world.demo else f"say exactly: {TIDE}"
    options = ["--output-format", "stream-json", "--verbose", "--include-partial-messages"]
    done = Session(world).ask(text, *options)
    events = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    pieces = [
        event["event"]["delta"]["text"]
        for event in events
        if event["type"] == "stream_event"
        and event["event"]["type"] == "content_block_delta"
        and event["event"]["delta"]["type"] == "text_delta"
    ]
    world.check("pieces add up", TIDE in "".join(pieces), done.stdout[-2000:])
    world.check("there are several", len(pieces) > 1 or world.demo, pieces)


def errors(world: World) -> None:
    found = Session(world, model="nobody/nothing").result("x")
    world.check("an unknown model is an error", found["is_error"], found)


def version_of(arguments: argparse.Namespace) -> str:
    printed = subprocess.run(
        [arguments.claude, "--version"], capture_output=True, text=True, check=True
    )
    return printed.stdout.split()[0]


SCENARIOS = [plain, tools, streams, errors]

if __name__ == "__main__":
    PARSER = argparse.ArgumentParser()
    PARSER.add_argument("--claude", required=True, help="the command")
    sys.exit(main("claude-code", SCENARIOS, parser=PARSER, version_of=version_of))
