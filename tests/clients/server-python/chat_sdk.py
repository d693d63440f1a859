"""Holds the stateless Chat Completions route of a running server against the openai package; see
`harness.py`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import openai
import tasks
from harness import World, main
from pydantic import BaseModel

TIDE = "The tide turns at ten."
ANSWER = f'You said: "{TIDE}"'
FIRST = f'You first said: "{TIDE}"'


def function(name: str, **properties: str) -> Any:
    parameters = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }
    about = {"name": name, "description": f"Does {name}.", "parameters": parameters}
    return {"type": "function", "function": about}


TOOLS = [function("get_tide", port="string"), function("add", a="number", b="number")]


def run(call: Any) -> str:
    arguments = json.loads(call.function.arguments)
    if call.function.name == "get_tide":
        return f"04:12 in {arguments['port']}"
    return str(arguments["a"] + arguments["b"])


def client_of(world: World) -> openai.OpenAI:
    return openai.OpenAI(base_url=world.base_url, api_key="not-needed-on-loopback", max_retries=0)


def plain(world: World) -> None:
    client = client_of(world)
    messages: list[Any] = [
        {"role": "system", "content": "Answer briefly."},
        {"role": "user", "content": TIDE},
    ]
    first = client.chat.completions.create(model=world.model, messages=messages)
    world.equal("it answers", first.choices[0].message.content, ANSWER)
    world.equal("and is done", first.choices[0].finish_reason, "stop")
    world.equal("under the name that was asked", first.model, world.model)
    world.check("with usage", first.usage and first.usage.total_tokens > 0, first.usage)
    world.check("and an id", first.id.startswith("chatcmpl"), first.id)
    messages += [first.choices[0].message, {"role": "user", "content": "What did I say first?"}]
    second = client.chat.completions.create(model=world.model, messages=messages)
    world.equal("history is heard", second.choices[0].message.content, FIRST)
    if not world.demo:
        world.equal("with instructions", world.control.heard()["instructions"], "Answer briefly.")


def tools(world: World) -> None:
    client = client_of(world)
    for ask, wanted in [(tasks.WITHOUT_REASONING, 1), (tasks.BOTH, 2), (tasks.STEPS, 2)]:
        messages: list[Any] = [{"role": "user", "content": ask}]
        if world.demo and "think first" in ask:
            continue
        ran = 0
        for _ in range(tasks.MOST_CALLS):
            made = client.chat.completions.create(model=world.model, messages=messages, tools=TOOLS)
            message = made.choices[0].message
            messages.append(message)
            if not message.tool_calls:
                break
            world.equal("calls are the reason", made.choices[0].finish_reason, "tool_calls")
            for call in message.tool_calls:
                ran += 1
                messages.append({"role": "tool", "tool_call_id": call.id, "content": run(call)})
        world.equal(f"{ask}: calls", ran, wanted)
        world.check(f"{ask}: results", "says:" in str(messages[-1].content), messages[-1])
    forced = client.chat.completions.create(
        model=world.model,
        messages=[{"role": "user", "content": "a=1 b=2"}],
        tools=TOOLS,
        tool_choice={"type": "function", "function": {"name": "add"}},
    )
    calls = [call.function.name for call in forced.choices[0].message.tool_calls or []]
    world.equal("a choice is kept", calls, ["add"])


def streams(world: World) -> None:
    """The SDK gathers the chunks itself, strictly."""
    client = client_of(world)
    asks = [TIDE, "call get_tide port=Hull and add a=1 b=2"]
    for ask in asks:
        messages: Any = [{"role": "user", "content": ask}]
        whole = client.chat.completions.create(model=world.model, messages=messages, tools=TOOLS)
        with client.chat.completions.stream(
            model=world.model,
            messages=messages,
            tools=TOOLS,
            stream_options={"include_usage": True},
        ) as stream:
            pieces = sum(1 for event in stream if event.type == "chunk")
            gathered = stream.get_final_completion()
        world.check("it comes in pieces", pieces > 2, pieces)
        one, other = whole.choices[0], gathered.choices[0]
        world.equal("texts are equal", other.message.content or None, one.message.content or None)
        seen = [
            [(call.function.name, json.loads(call.function.arguments)) for call in each.message.tool_calls or []]
            for each in (one, other)
        ]
        world.equal("calls are equal", seen[1], seen[0])
        world.equal("reasons are equal", other.finish_reason, one.finish_reason)
        world.equal("usage is equal", gathered.usage.total_tokens, whole.usage.total_tokens)
    if world.demo:
        return
    stream = client.chat.completions.create(
        model=world.model, messages=[{"role": "user", "content": f"hold: {TIDE}"}], stream=True
    )
    world.control.ask("hold")
    held = client.chat.completions.create(
        model=world.model, messages=[{"role": "user", "content": f"hold: {TIDE}"}], stream=True
    )
    world.control.ask("release")
    for each in (stream, held):
        text = "".join(chunk.choices[0].delta.content or "" for chunk in each if chunk.choices)
        world.equal("a stream that waits goes on", text, ANSWER)


class Berth(BaseModel):
    """Where a ship lies."""

    port: str
    number: int


def structured(world: World) -> None:
    if world.demo:
        return
    berth = Berth(port="Hull", number=4)
    parsed = client_of(world).chat.completions.parse(
        model=world.model,
        messages=[{"role": "user", "content": f"say exactly: {berth.model_dump_json()}"}],
        response_format=Berth,
    )
    world.equal("the answer is typed", parsed.choices[0].message.parsed, berth)


def errors(world: World) -> None:
    client = client_of(world)
    messages: Any = [{"role": "user", "content": "x"}]
    create = client.chat.completions.create
    world.refused(
        "an unknown model",
        openai.NotFoundError,
        lambda: create(model="nowhere/none", messages=messages),
        status=404,
        code="model_not_found",
        param="model",
    )
    world.refused(
        "several answers",
        openai.BadRequestError,
        lambda: create(model=world.model, messages=messages, n=2),
        status=400,
        code="unsupported_parameter",
        param="n",
    )
    lost: Any = [*messages, {"role": "tool", "tool_call_id": "call_zzz", "content": "04:12"}]
    world.raises(
        "a result without a call",
        openai.BadRequestError,
        lambda: create(model=world.model, messages=lost),
    )


SCENARIOS = [plain, tools, streams, structured, errors]

if __name__ == "__main__":
    sys.exit(main("openai", SCENARIOS))
