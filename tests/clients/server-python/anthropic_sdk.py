"""Holds the stateless Messages route of a running server against the anthropic package; see
`harness.py`.
"""

from __future__ import annotations

import sys
from typing import Any

import anthropic
import tasks
from harness import World, main

TIDE = "The tide turns at ten."
ANSWER = f'You said: "{TIDE}"'
FIRST = f'You first said: "{TIDE}"'


def tool(name: str, **properties: str) -> Any:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": list(properties),
    }
    return {"name": name, "description": f"Does {name}.", "input_schema": schema}


TOOLS = [tool("get_tide", port="string"), tool("add", a="number", b="number")]


def run(call: Any) -> str:
    if call.name == "get_tide":
        return f"04:12 in {call.input['port']}"
    return str(call.input["a"] + call.input["b"])


def base_url_of(world: World) -> str:
    return world.base_url.removesuffix("/v1")


def client_of(world: World) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=base_url_of(world), api_key="not-needed", max_retries=0)


def text_of(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def plain(world: World) -> None:
    client = client_of(world)
    options: Any = {"model": world.model, "max_tokens": 1000, "system": "Answer briefly."}
    messages: list[Any] = [{"role": "user", "content": TIDE}]
    first = client.messages.create(messages=messages, **options)
    world.equal("it answers", text_of(first), ANSWER)
    world.equal("and is done", first.stop_reason, "end_turn")
    world.equal("under the name that was asked", first.model, world.model)
    world.check("with usage", first.usage.output_tokens > 0, first.usage)
    world.check("and an id", first.id.startswith("msg_"), first.id)
    messages += [
        {"role": "assistant", "content": first.content},
        {"role": "user", "content": "What did I say first?"},
    ]
    second = client.messages.create(messages=messages, **options)
    world.equal("history is heard", text_of(second), FIRST)
    if not world.demo:
        world.equal("with instructions", world.control.heard()["instructions"], "Answer briefly.")
    counted = client.messages.count_tokens(
        model=world.model, system="Answer briefly.", messages=messages, tools=TOOLS
    )
    world.check("tokens are counted", counted.input_tokens > 10, counted)


def tools(world: World) -> None:
    client = client_of(world)
    for ask, wanted in [(tasks.WITHOUT_REASONING, 1), (tasks.BOTH, 2), (tasks.STEPS, 2)]:
        if world.demo and "think first" in ask:
            continue
        options: Any = {"model": world.model, "max_tokens": 8000, "tools": TOOLS}
        if "think first" in ask:
            options["thinking"] = {"type": "adaptive"}
        messages: list[Any] = [{"role": "user", "content": ask}]
        ran = 0
        for _ in range(tasks.MOST_CALLS):
            made = client.messages.create(messages=messages, **options)
            messages.append({"role": "assistant", "content": made.content})
            calls = [block for block in made.content if block.type == "tool_use"]
            if not calls:
                break
            world.equal("calls are the reason", made.stop_reason, "tool_use")
            ran += len(calls)
            results = [
                {"type": "tool_result", "tool_use_id": call.id, "content": run(call)}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})
        world.equal(f"{ask}: calls", ran, wanted)
        world.check(f"{ask}: results", "says:" in text_of(made), made)
        if "think first" in ask and world.control.upstream != "openai-chat":
            said = [message["content"] for message in messages if message["role"] == "assistant"]
            thought = [block for block in said[0] if block.type == "thinking"]
            world.check(f"{ask}: it thinks", thought and thought[0].signature, said)
            # What was sealed or signed before the calls went back to its vendor.
            world.check(f"{ask}: sealed", world.control.ask("thoughts") > 0)
    forced = client.messages.create(
        model=world.model,
        max_tokens=1000,
        messages=[{"role": "user", "content": "a=1 b=2"}],
        tools=TOOLS,
        tool_choice={"type": "tool", "name": "add"},
    )
    world.equal("a choice is kept", [block.name for block in forced.content if block.type == "tool_use"], ["add"])


def streams(world: World) -> None:
    """The SDK gathers the events itself, strictly."""
    client = client_of(world)
    asks = [TIDE, "call get_tide port=Hull and add a=1 b=2"]
    if not world.demo:
        asks.append(f"think first: {TIDE}")
    for ask in asks:
        options: Any = {
            "model": world.model,
            "max_tokens": 8000,
            "tools": TOOLS,
            "messages": [{"role": "user", "content": ask}],
        }
        if "think first" in ask:
            options["thinking"] = {"type": "adaptive"}
        whole = client.messages.create(**options)
        with client.messages.stream(**options) as stream:
            kinds = [event.type for event in stream]
            gathered = stream.get_final_message()
        world.check("it comes in pieces", "content_block_delta" in kinds, kinds)
        shown = [
            [
                (block.type, getattr(block, "text", None), getattr(block, "input", None), getattr(block, "thinking", None))
                for block in each.content
            ]
            for each in (whole, gathered)
        ]
        world.equal("blocks are equal", shown[1], shown[0])
        world.equal("reasons are equal", gathered.stop_reason, whole.stop_reason)
        world.equal("usage is equal", gathered.usage.output_tokens, whole.usage.output_tokens)


async def asynchronous(world: World) -> None:
    client = anthropic.AsyncAnthropic(base_url=base_url_of(world), api_key="x", max_retries=0)
    async with client.messages.stream(
        model=world.model, max_tokens=1000, messages=[{"role": "user", "content": TIDE}]
    ) as stream:
        text = "".join([piece async for piece in stream.text_stream])
    world.equal("a stream is read", text, ANSWER)


def errors(world: World) -> None:
    client = client_of(world)
    messages: Any = [{"role": "user", "content": "x"}]
    create = client.messages.create
    error = world.raises(
        "an unknown model",
        anthropic.NotFoundError,
        lambda: create(model="nowhere/none", max_tokens=9, messages=messages),
    )
    world.equal("its type", error.body["error"]["type"], "not_found_error")
    world.check("and its request", str(error.request_id).startswith("req_"), error.request_id)
    lost: Any = [{"type": "tool_result", "tool_use_id": "toolu_zzz", "content": "04:12"}]
    error = world.raises(
        "a result without a call",
        anthropic.BadRequestError,
        lambda: create(model=world.model, max_tokens=9, messages=[{"role": "user", "content": lost}]),
    )
    world.equal("its type", error.body["error"]["type"], "invalid_request_error")


SCENARIOS = [plain, tools, streams, asynchronous, errors]

if __name__ == "__main__":
    sys.exit(main("anthropic", SCENARIOS))
