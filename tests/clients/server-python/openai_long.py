"""A session that is much longer than the vendor's window, through the openai package."""

from __future__ import annotations

import sys
from typing import Any

import openai
from harness import World, main
from openai_chains import client_of
from openai_tools import answer

READ = {
    "type": "function",
    "name": "read_file",
    "description": "What a file holds.",
    "parameters": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "additionalProperties": False,
    },
    "strict": True,
}

TURNS = 300
WINDOW = 32_000


def file(turn: int) -> str:
    lines = range(6 + turn * 37 % 90)
    return "".join(f"pub fn plank_{turn}_{line}() -> u32 {{ nail({line}) }}\n" for line in lines)


def report(response: Any) -> Any:
    """What the server says that it did; the package keeps members that it does not know."""
    return (response.model_extra or {}).get("throughline", {}).get("compaction")


def long_session(world: World) -> None:
    client = client_of(world)
    previous: Any = openai.omit
    epochs = 0
    answered = 0
    unmet = []

    def say(said: Any, after: Any) -> Any:
        return client.responses.create(
            model=world.model,
            input=said,
            previous_response_id=after,
            tools=[READ],
            truncation="auto",
        )

    for turn in range(TURNS):
        asked = say(f"use read_file with path=/src/pier_{turn}.rs", previous)
        calls = [item for item in asked.output if item.type == "function_call"]
        world.need(f"turn {turn} is one call", len(calls) == 1, asked)
        done = say([answer(calls[0], file(turn))], asked.id)
        answered += done.output_text.startswith("read_file says: ")
        for told in filter(None, (report(asked), report(done))):
            epochs += 1
            if "budget_unreachable" in told:
                unmet.append(told)
        previous = done.id
    world.equal("every turn is answered", answered, TURNS)
    world.equal("every budget is met", unmet, [])
    seen = world.control.ask("prompts")
    world.equal("nothing overflows", seen["overflows"], 0)
    world.check("the largest request fits", seen["largest"] <= WINDOW, seen)
    world.check("the session is longer than the window", epochs > 3, epochs)
    world.equal("prompts start again with epochs alone", seen["restarted"], epochs)
    stable = 2 * TURNS - 1 - epochs
    world.equal("all others go on with the one before", seen["continued"], stable)


if __name__ == "__main__":
    sys.exit(main("openai", [long_session]))
