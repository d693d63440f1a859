"""Holds a running server against the pydantic-ai-slim package; see `harness.py` and `tasks.py`."""

from __future__ import annotations

import sys
from typing import Any

import tasks
from harness import World, main
from pydantic_ai import Agent, BinaryContent, NativeOutput, UsageLimits
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    PartDeltaEvent,
    PartStartEvent,
    ToolReturnPart,
)
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.profiles.openai import openai_model_profile
from pydantic_ai.providers.openai import OpenAIProvider

LIMITS = UsageLimits(request_limit=tasks.MOST_CALLS)


class Desk:
    """An agent, and how it is run."""

    def __init__(
        self, world: World, *, profile: str | None = "gpt-5", tools: bool = True, **settings: Any
    ) -> None:
        self.calls = tasks.Calls()
        provider = OpenAIProvider(base_url=world.base_url, api_key="not-needed-on-loopback")
        # The name of a model tells this SDK whether it reasons. It knows no other vendors' names
        # here, so the profile is given; without one it takes every model for one that does not.
        named = None if profile is None else openai_model_profile(profile)
        options = OpenAIResponsesModelSettings(
            openai_reasoning_effort="low", openai_reasoning_summary="auto", **settings
        )
        self.agent = Agent(
            OpenAIResponsesModel(world.model, provider=provider, profile=named, settings=options),
            instructions=tasks.INSTRUCTIONS,
        )
        if tools:
            self.agent.tool_plain(self.calls.get_tide, description="When the tide turns in a port.")
            self.agent.tool_plain(self.calls.add, description="Adds two numbers.")

    async def run(self, text: Any, **options: Any) -> Any:
        return await self.agent.run(text, usage_limits=LIMITS, **options)


async def tools(world: World) -> None:
    desk = Desk(world)
    done = await desk.run(tasks.ASKED)
    world.equal("the tool ran once", desk.calls.seen, [("get_tide", "Hull")])
    world.equal("the answer is its result", done.output, tasks.SAID)
    if not world.demo:
        tasks.reasoning_asked(world)


async def without_reasoning(world: World) -> None:
    """A call that the model made without reasoning, with reasoning on."""
    if world.demo:
        return
    for what, settings in (("replayed", {}), ("chained", {"openai_previous_response_id": "auto"})):
        desk = Desk(world, **settings)
        before = world.control.count()
        done = await desk.run(tasks.WITHOUT_REASONING)
        world.equal(f"{what}: the tool ran once", desk.calls.seen, [("get_tide", "Hull")])
        world.equal(f"{what}: the answer is its result", done.output, tasks.SAID)
        tasks.asked_times(world, before, 2)
        wanted = tasks.WITHOUT_REASONING_RECEIVED
        tasks.received_exactly(world, f"{what}: call and result as such", wanted)


async def steps(world: World) -> None:
    """Two rounds of calls in one run; the SDK sends the items of each round back."""
    if world.demo:
        return
    desk = Desk(world)
    before = world.control.count()
    done = await desk.run(tasks.STEPS)
    world.equal("each tool ran once", desk.calls.seen, [("get_tide", "Hull"), ("add", 1, 2)])
    world.equal("the answer is the last result", done.output, tasks.STEPS_SAID)
    tasks.asked_times(world, before, 3)
    tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
    tasks.thoughts_returned(world, "with the reasoning of both rounds", 2)
    more = await desk.run("How many messages?", message_history=done.all_messages())
    wanted = "There are 7 messages so far, 2 of them yours."
    world.equal("the history goes on", more.output, wanted)


async def parallel(world: World) -> None:
    desk = Desk(world)
    before = 0 if world.demo else world.control.count()
    done = await desk.run(tasks.BOTH)
    world.equal("both tools ran", sorted(desk.calls.seen), [("add", 1, 2), ("get_tide", "Hull")])
    world.equal("both results are in the answer", sorted(done.output.split("\n")), tasks.BOTH_SAID)
    returned = [
        part
        for message in done.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    world.equal("each call has its result", len(returned), 2)
    if not world.demo:
        tasks.asked_times(world, before, 2)
        tasks.received_exactly(world, "calls and results arrive as such", tasks.BOTH_RECEIVED)
        tasks.thoughts_returned(world, "with their reasoning", 1)


async def without_profile(world: World) -> None:
    """Without a profile the SDK drops ids and sends reasoning as text. The loop still ends."""
    if world.demo:
        return
    desk = Desk(world, profile=None)
    before = world.control.count()
    done = await desk.run(tasks.STEPS)
    world.equal("each tool ran once", desk.calls.seen, [("get_tide", "Hull"), ("add", 1, 2)])
    world.equal("the answer is the last result", done.output, tasks.STEPS_SAID)
    tasks.asked_times(world, before, 3)
    lines = world.control.heard()["lines"]
    calls = [line for line in lines if line.startswith(("call:", "result:"))]
    world.equal("calls and results arrive as such", calls, tasks.STEPS_RECEIVED[1:])


async def chained(world: World) -> None:
    """The server keeps the history: each request has only what is new."""
    desk = Desk(world, openai_previous_response_id="auto")
    one = await desk.run(tasks.ASKED)
    world.equal("the answer is the tool's", one.output, tasks.SAID)
    two = await desk.run("What did I say first?", message_history=one.all_messages())
    world.equal("the next turn knows the first", two.output, tasks.FIRST)
    if not world.demo:
        desk = Desk(world, openai_previous_response_id="auto")
        before = world.control.count()
        done = await desk.run(tasks.STEPS)
        world.equal("two rounds end", done.output, tasks.STEPS_SAID)
        tasks.asked_times(world, before, 3)
        tasks.received_exactly(world, "the vendor receives it in order", tasks.STEPS_RECEIVED)
        tasks.thoughts_returned(world, "with the reasoning of both rounds", 2)


async def stateless(world: World) -> None:
    """Nothing is stored: reasoning goes back sealed."""
    if world.demo:
        return
    desk = Desk(world, openai_store=False)
    before = world.control.count()
    done = await desk.run(tasks.STEPS)
    world.equal("the answer is the last result", done.output, tasks.STEPS_SAID)
    tasks.asked_times(world, before, 3)
    tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
    tasks.thoughts_returned(world, "with the reasoning of both rounds", 2)


async def streamed(world: World) -> None:
    desk = Desk(world)
    texts: list[str] = []
    called: list[str] = []
    result: Any = None
    text = tasks.ASKED if world.demo else tasks.STEPS
    async with desk.agent.run_stream_events(text, usage_limits=LIMITS) as events:
        async for event in events:
            if isinstance(event, FunctionToolCallEvent):
                called.append(event.part.tool_name)
            elif isinstance(event, PartStartEvent) and event.part.part_kind == "text":
                texts.append(event.part.content)
            elif isinstance(event, PartDeltaEvent) and event.delta.part_delta_kind == "text":
                texts.append(event.delta.content_delta)
            elif event.event_kind == "agent_run_result":
                result = event.result
    said = tasks.SAID if world.demo else tasks.STEPS_SAID
    world.equal("text is streamed", "".join(texts), said)
    world.check("in several pieces", len(texts) > 1, texts)
    wanted = ["get_tide"] if world.demo else ["get_tide", "add"]
    world.equal("calls are streamed", called, wanted)
    world.equal("the answer is the last result", result and result.output, said)
    if not world.demo:
        tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
        more = await desk.run("How many messages?", message_history=result.all_messages())
        wanted = "There are 7 messages so far, 2 of them yours."
        world.equal("what was streamed can be continued", more.output, wanted)


async def structured(world: World) -> None:
    if world.demo:
        return
    desk = Desk(world, tools=False)
    berth = tasks.BERTH
    text = f"say exactly: {berth.model_dump_json()}"
    done = await desk.run(text, output_type=NativeOutput(tasks.Berth))
    world.equal("the answer is typed", done.output, berth)
    done = await desk.run("call final_result port=Hull number=4", output_type=tasks.Berth)
    world.equal("so is one that comes as a call", done.output, berth)


async def picture(world: World) -> None:
    desk = Desk(world)
    text = "What is in this picture?"
    asked = [text, BinaryContent(data=tasks.PNG, media_type="image/png")]
    done = await desk.run(asked)
    world.equal("it answers", done.output, tasks.picture_answered(world, text))
    tasks.picture_received(world)
    more = await desk.run("What did I say first?", message_history=done.all_messages())
    world.equal("it stays in the history", more.output, f'You first said: "{text}"')
    tasks.picture_received(world)


async def errors(world: World) -> None:
    async def status(desk: Desk) -> Any:
        try:
            done = await desk.run("x")
        except ModelHTTPError as error:
            return error.status_code, (error.body or {}).get("code")
        return done

    desk = Desk(world)
    desk.agent.model = OpenAIResponsesModel("nobody/nothing", provider=desk.agent.model._provider)
    world.equal("an unknown model", await status(desk), (404, "model_not_found"))
    desk = Desk(world, openai_previous_response_id=tasks.NOBODY)
    wanted = (400, "previous_response_not_found")
    world.equal("an unknown response to continue", await status(desk), wanted)
    if world.demo:
        return
    world.control.ask("fault invalid_request 100")
    try:
        found = await status(Desk(world))
    finally:
        world.control.ask("heal")
    world.equal("a request that the vendor refuses", found[0], 400)


SCENARIOS = [
    tools,
    without_reasoning,
    steps,
    parallel,
    without_profile,
    chained,
    stateless,
    streamed,
    structured,
    picture,
    errors,
]

if __name__ == "__main__":
    sys.exit(main("pydantic-ai-slim", SCENARIOS))
