"""Tasks that every agent SDK is given, and what the vendor must have received at their end."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from typing import Any

from harness import World
from pydantic import BaseModel

INSTRUCTIONS = "Answer briefly."

# No task needs more model calls in one run, so a loop that does not end fails.
MOST_CALLS = 5

ASKED = "think first: use get_tide with port=Hull"
SAID = "get_tide says: 04:12 in Hull"
FIRST = f'You first said: "{ASKED}"'

# A model that is asked to reason may call a tool without doing so.
WITHOUT_REASONING = "use get_tide with port=Hull"
WITHOUT_REASONING_RECEIVED = [
    f"user: {WITHOUT_REASONING}",
    'call: get_tide {"port":"Hull"}',
    "result: 04:12 in Hull",
]

# Two rounds of calls in one run, with reasoning before each answer.
STEPS = "think first: step by step: use get_tide with port=Hull; call add a=1 b=2"
STEPS_SAID = "add says: 3"
STEPS_RECEIVED = [
    f"user: {STEPS}",
    'call: get_tide {"port":"Hull"}',
    "result: 04:12 in Hull",
    'call: add {"a":1,"b":2}',
    "result: 3",
]

BOTH = "think first: call get_tide port=Hull and add a=1 b=2"
BOTH_SAID = ["add says: 3", SAID]
BOTH_RECEIVED = [
    f"user: {BOTH}",
    'call: get_tide {"port":"Hull"}',
    'call: add {"a":1,"b":2}',
    "result: 04:12 in Hull",
    "result: 3",
]

NOBODY = "resp_00000000000000000000000000000000"


def _png() -> bytes:
    """A picture of one red point."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    point = zlib.compress(b"\x00\xff\x00\x00")
    end = chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", point) + end


PNG = _png()
PNG_BASE64 = base64.b64encode(PNG).decode()
PNG_URL = f"data:image/png;base64,{PNG_BASE64}"


class Berth(BaseModel):
    """Where a ship lies."""

    port: str
    number: int


BERTH = Berth(port="Hull", number=4)


class Calls:
    """What the tools of one run were called with."""

    def __init__(self) -> None:
        self.seen: list[tuple[Any, ...]] = []

    def get_tide(self, port: str) -> str:
        self.seen.append(("get_tide", port))
        return f"04:12 in {port}"

    def add(self, a: int, b: int) -> str:
        self.seen.append(("add", a, b))
        return str(a + b)


def asked_times(world: World, before: int, wanted: int) -> None:
    """The vendor was asked so many times since `before`: no step was repeated."""
    world.equal("the vendor was asked once for each step", world.control.count() - before, wanted)


def received_exactly(world: World, what: str, wanted: Sequence[str]) -> None:
    """The last request has exactly these calls, results and texts, each as what it is."""
    world.equal(what, world.control.heard()["lines"], list(wanted))


def thoughts_returned(world: World, what: str, wanted: int) -> None:
    """The last request gives the vendor its reasoning back, which Chat Completions cannot say."""
    wanted = 0 if world.control.upstream == "openai-chat" else wanted
    world.equal(what, world.control.ask("thoughts"), wanted)


def reasoning_asked(world: World) -> None:
    """The last request asks the vendor's model to reason, in the vendor's own words."""
    body = world.control.ask("body")
    found = {
        "anthropic": lambda: body["thinking"]["type"] in ("enabled", "adaptive"),
        "gemini": lambda: body["generationConfig"]["thinkingConfig"],
        "openai-chat": lambda: body["reasoning_effort"] == "low",
        "openai-responses": lambda: body["reasoning"]["effort"] == "low",
    }
    try:
        good = found[world.control.upstream or ""]()
    except (KeyError, TypeError):
        good = False
    world.check("the vendor is asked to reason", good, {k: body[k] for k in body if k != "tools"})


def picture_answered(world: World, text: str) -> str:
    """The answer to a text with a picture. The built-in model cannot look at one, and says what it is."""
    return f'You said: "{text}"' + (", with an image (image/png)" if world.demo else "")


def picture_received(world: World) -> None:
    """The bytes of the picture are in the last request."""
    if world.demo:
        return
    body = str(world.control.ask("body"))
    world.check("the vendor receives the picture", PNG_BASE64 in body, body)
