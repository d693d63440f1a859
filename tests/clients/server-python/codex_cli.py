"""Holds a running server against the codex command line; see `harness.py` and `tasks.py`.

Each scenario runs `codex exec` in a folder of its own with a configuration that names our server as
its model provider. The scripted model has it run harmless shell commands.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

import tasks
from harness import World, main

# No run takes so many seconds; one that does hangs.
LONGEST = 60

CONFIG = """
model = {model}
model_provider = "throughline"
model_reasoning_effort = "low"
model_reasoning_summary = "auto"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
{more}
[model_providers.throughline]
name = "throughline"
base_url = {base_url}
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
{transport}
[analytics]
enabled = false
"""

# The provider is asked over a WebSocket.
SOCKETS = "supports_websockets = true"

# Without the tools that only OpenAI's own models have.
FUNCTIONS_ONLY = """
web_search = "disabled"

[features]
multi_agent = false
"""

ONE = 'use exec_command with cmd="echo high water"'
STEPS = 'think first: step by step: exec_command cmd="echo one"; exec_command cmd="echo two"'
BOTH = 'think first: call exec_command cmd="echo one" and exec_command cmd="echo two"'


class Session:
    """A folder with a configuration, in which codex runs."""

    def __init__(
        self, world: World, *, model: str | None = None, more: str = "", transport: str = ""
    ) -> None:
        self.world = world
        self.folder = tempfile.TemporaryDirectory(prefix="codex-")
        root = Path(self.folder.name)
        self.home, self.work = root / "home", root / "work"
        self.home.mkdir()
        self.work.mkdir()
        config = CONFIG.format(
            model=json.dumps(model or world.model),
            base_url=json.dumps(world.base_url),
            more=more,
            transport=transport,
        )
        (self.home / "config.toml").write_text(config)

    def run(self, *arguments: str) -> Run:
        # Nothing leaves the machine: what is not loopback goes to a proxy that is not there.
        nowhere = "http://127.0.0.1:9"
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CODEX_HOME": str(self.home),
            "HTTP_PROXY": nowhere,
            "HTTPS_PROXY": nowhere,
            "NO_PROXY": "127.0.0.1,localhost",
        }
        command = [self.world.arguments.codex, "exec", *arguments]
        done = subprocess.run(
            command,
            cwd=self.work,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        return Run(done)

    def ask(self, *arguments: str) -> Run:
        return self.run("--skip-git-repo-check", "--json", *arguments)


class Run:
    """What one run of codex printed."""

    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code = done.returncode
        self.complaint = done.stderr
        lines = (line for line in done.stdout.splitlines() if line.startswith("{"))
        self.events: list[dict[str, Any]] = [json.loads(line) for line in lines]

    def items(self, kind: str) -> list[dict[str, Any]]:
        ended = (event["item"] for event in self.events if event["type"] == "item.completed")
        return [item for item in ended if item["type"] == kind]

    @property
    def answer(self) -> str:
        messages = self.items("agent_message")
        return messages[-1]["text"] if messages else ""

    @property
    def commands(self) -> list[tuple[str, int | None]]:
        ran = self.items("command_execution")
        return [(item["aggregated_output"].strip(), item["exit_code"]) for item in ran]

    @property
    def errors(self) -> str:
        wrong = [event for event in self.events if event["type"] in ("error", "turn.failed")]
        return json.dumps(wrong) + self.complaint


def ended_well(world: World, what: str, run: Run) -> None:
    world.need(f"{what}: the run ends well", run.code == 0, run.code, run.errors)


def only_calls(world: World) -> list[str]:
    """The calls in the last request, and the last line of each result."""
    lines = world.control.heard()["lines"]
    kept = []
    for line in lines:
        if line.startswith("call:"):
            kept.append(line)
        elif line.startswith("result:"):
            kept.append(f"result: {line.strip().splitlines()[-1]}")
    return kept


def command(world: World) -> None:
    """One shell command, with every tool that codex offers by itself."""
    session = Session(world)
    before = 0 if world.demo else world.control.count()
    run = session.ask(ONE if world.demo else f"think first: {ONE}")
    ended_well(world, "one command", run)
    world.equal("the command ran once", run.commands, [("high water", 0)])
    world.check("the answer is from its output", "high water" in run.answer, run.answer)
    if not world.demo:
        tasks.asked_times(world, before, 2)
        wanted = ['call: exec_command {"cmd":"echo high water"}', "result: high water"]
        world.equal("call and result arrive as such", only_calls(world), wanted)
        tasks.thoughts_returned(world, "with its reasoning", 1)
        tasks.reasoning_asked(world)


def upgrades(world: World) -> int:
    """How many WebSockets the server has opened."""
    address = world.base_url.removesuffix("/v1") + "/metrics"
    with urllib.request.urlopen(address) as answer:
        lines = answer.read().decode().splitlines()
    opened = "http_server_request_duration_seconds_count{"
    counts = (line for line in lines if line.startswith(opened) and '"101"' in line)
    return sum(int(float(line.split()[-1])) for line in counts)


def sockets(world: World) -> None:
    """One shell command over a WebSocket: first what comes before it, then what is new alone."""
    opened = upgrades(world)
    session = Session(world, transport=SOCKETS)
    before = 0 if world.demo else world.control.count()
    run = session.ask(ONE if world.demo else f"think first: {ONE}")
    ended_well(world, "one command over a WebSocket", run)
    world.equal("the command ran once", run.commands, [("high water", 0)])
    world.check("the answer is from its output", "high water" in run.answer, run.answer)
    world.equal("over one WebSocket", upgrades(world) - opened, 1)
    if not world.demo:
        # What comes first is asked of no model.
        tasks.asked_times(world, before, 2)
        wanted = ['call: exec_command {"cmd":"echo high water"}', "result: high water"]
        world.equal("call and result arrive as such", only_calls(world), wanted)
        tasks.thoughts_returned(world, "with its reasoning", 1)


def steps(world: World) -> None:
    """Two rounds in one run, and a second run that resumes the session."""
    if world.demo:
        return
    for what, more in (("all tools", ""), ("functions only", FUNCTIONS_ONLY)):
        session = Session(world, more=more)
        before = world.control.count()
        run = session.ask(STEPS)
        ended_well(world, what, run)
        world.equal(f"{what}: each command ran once", run.commands, [("one", 0), ("two", 0)])
        tasks.asked_times(world, before, 3)
        wanted = [
            'call: exec_command {"cmd":"echo one"}',
            "result: one",
            'call: exec_command {"cmd":"echo two"}',
            "result: two",
        ]
        world.equal(f"{what}: calls and results as such", only_calls(world), wanted)
        tasks.thoughts_returned(world, f"{what}: with the reasoning of both rounds", 2)
        run = session.run(
            "resume", "--last", "--skip-git-repo-check", "--json", "say exactly: resumed"
        )
        ended_well(world, f"{what}, resumed", run)
        world.equal(f"{what}: a resumed session answers", run.answer, "resumed")
        world.equal(f"{what}: and has all of it", only_calls(world), wanted)


def parallel(world: World) -> None:
    if world.demo:
        return
    before = world.control.count()
    run = Session(world, more=FUNCTIONS_ONLY).ask(BOTH)
    ended_well(world, "two at once", run)
    world.equal("both commands ran", sorted(run.commands), [("one", 0), ("two", 0)])
    tasks.asked_times(world, before, 2)
    wanted = [
        'call: exec_command {"cmd":"echo one"}',
        'call: exec_command {"cmd":"echo two"}',
        "result: one",
        "result: two",
    ]
    world.equal("calls and results arrive as such", only_calls(world), wanted)


def structured(world: World) -> None:
    if world.demo:
        return
    session = Session(world, more=FUNCTIONS_ONLY)
    schema = {**tasks.Berth.model_json_schema(), "additionalProperties": False}
    file = session.work / "schema.json"
    file.write_text(json.dumps(schema))
    text = f"say exactly: {tasks.BERTH.model_dump_json()}"
    run = session.ask("--output-schema", str(file), text)
    ended_well(world, "an answer with a schema", run)
    world.equal("the answer is typed", json.loads(run.answer or "null"), tasks.BERTH.model_dump())


def picture(world: World) -> None:
    if world.demo:
        return
    session = Session(world, more=FUNCTIONS_ONLY)
    file = session.work / "point.png"
    file.write_bytes(tasks.PNG)
    run = session.ask("say exactly: a red point", "--image", str(file))
    ended_well(world, "a picture", run)
    world.equal("it answers", run.answer, "a red point")
    body = json.dumps(world.control.ask("body"))
    world.check("the vendor receives a picture", '"image/png"' in body or "data:image/png" in body)


def errors(world: World) -> None:
    run = Session(world, model="nobody/nothing").ask("x")
    world.check("an unknown model ends the run", run.code != 0, run.code)
    world.check("and is named", "nobody/nothing" in run.errors, run.errors)
    if world.demo:
        return
    world.control.ask("fault invalid_request 100")
    try:
        run = Session(world, more=FUNCTIONS_ONLY).ask("x")
    finally:
        world.control.ask("heal")
    world.check("a refusal by the vendor ends the run", run.code != 0, run.code)


def version_of(arguments: argparse.Namespace) -> str:
    printed = subprocess.run(
        [arguments.codex, "--version"], capture_output=True, text=True, check=True
    )
    return printed.stdout.split()[-1]


SCENARIOS = [command, sockets, steps, parallel, structured, picture, errors]

if __name__ == "__main__":
    PARSER = argparse.ArgumentParser()
    PARSER.add_argument("--codex", required=True, help="the command")
    sys.exit(main("codex", SCENARIOS, parser=PARSER, version_of=version_of))
