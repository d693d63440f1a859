"""Holds a running server against the openai-agents package; see `harness.py`."""

from __future__ import annotations

import sys
from typing import Any

import tasks
from agents import (
    Agent,
    ModelSettings,
    OpenAIConversationsSession,
    OpenAIProvider,
    OpenAIResponsesCompactionSession,
    RunConfig,
    Runner,
    SQLiteSession,
    function_tool,
    set_tracing_disabled,
)
from harness import World, cut_while_asking, main
from openai import AsyncOpenAI, NotFoundError
from openai.types.shared import Reasoning
from pydantic import BaseModel

# Nothing leaves the machine.
set_tracing_disabled(True)


class Tools:
    """Tools that note how they were called."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def all(self) -> list[Any]:
        @function_tool
        def get_tide(port: str) -> str:
            """When the tide turns in a port."""
            self.calls.append(("get_tide", port))
            return f"04:12 in {port}"

        @function_tool
        def add(a: int, b: int) -> str:
            """Adds two numbers."""
            self.calls.append(("add", a, b))
            return str(a + b)

        return [get_tide, add]


class Desk:
    """An agent, and how it is run."""

    def __init__(self, world: World, **options: Any) -> None:
        self.client = AsyncOpenAI(base_url=world.base_url, api_key="not-needed-on-loopback")
        # The provider passes the model's name on as it is.
        provider = OpenAIProvider(openai_client=self.client, use_responses=True)
        self.config = RunConfig(model_provider=provider, tracing_disabled=True)
        self.tools = Tools()
        self.agent = Agent(
            name="Harbour",
            instructions="Answer briefly.",
            model=world.model,
            tools=self.tools.all(),
            **options,
        )

    async def run(self, text: Any, **options: Any) -> Any:
        return await Runner.run(self.agent, text, run_config=self.config, **options)

    def streamed(self, text: Any, **options: Any) -> Any:
        return Runner.run_streamed(self.agent, text, run_config=self.config, **options)


ASKED = "use get_tide with port=Hull"
SAID = "get_tide says: 04:12 in Hull"
FIRST = f'You first said: "{ASKED}"'
COUNTED = "There are 7 messages so far, 3 of them yours."

# The compaction session takes no model but OpenAI's, by its name.
COMPACTING_MODEL = "gpt-5"


async def tools(world: World) -> None:
    desk = Desk(world)
    done = await desk.run(ASKED)
    world.equal("the tool ran once", desk.tools.calls, [("get_tide", "Hull")])
    world.equal("the answer is its result", done.final_output, SAID)
    desk = Desk(world)
    done = await desk.run("call get_tide port=Hull and add a=1 b=2")
    wanted = [("add", 1, 2), ("get_tide", "Hull")]
    world.equal("two tools ran", sorted(desk.tools.calls), wanted)
    said = sorted(done.final_output.split("\n"))
    world.equal("both are heard", said, ["add says: 3", SAID])


async def chained(world: World) -> None:
    """The server keeps the history: each request has only what is new."""
    desk = Desk(world)
    one = await desk.run(ASKED, auto_previous_response_id=True)
    world.equal("the answer is the tool's", one.final_output, SAID)
    two = await desk.run("What did I say first?", previous_response_id=one.last_response_id)
    world.equal("the next turn knows the first", two.final_output, FIRST)
    three = await desk.run(
        "call add a=2 b=3",
        previous_response_id=two.last_response_id,
        auto_previous_response_id=True,
    )
    world.equal("tools later in the chain", three.final_output, "add says: 5")
    calls = [("get_tide", "Hull"), ("add", 2, 3)]
    world.equal("each tool ran once", desk.tools.calls, calls)
    if not world.demo:
        lines = world.control.heard()["lines"]
        wanted = [
            f"user: {ASKED}",
            'call: get_tide {"port":"Hull"}',
            "result: 04:12 in Hull",
            f"assistant: {SAID}",
            "user: What did I say first?",
            f"assistant: {FIRST}",
            "user: call add a=2 b=3",
            'call: add {"a":2,"b":3}',
            "result: 5",
        ]
        world.equal("the vendor hears all of it in order", lines, wanted)


async def session(world: World) -> None:
    """The SDK keeps the history and sends all of it, with our ids in it."""
    desk = Desk(world)
    kept = SQLiteSession("harbour")
    one = await desk.run(ASKED, session=kept)
    world.equal("the answer is the tool's", one.final_output, SAID)
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the next turn knows the first", two.final_output, FIRST)
    three = await desk.run("How many messages?", session=kept)
    world.equal("nothing is said twice", three.final_output, COUNTED)
    items = [item.get("type", "message") for item in await kept.get_items()]
    wanted = ["message", "function_call", "function_call_output", "message"] + ["message"] * 4
    world.equal("the session holds it all", items, wanted)
    kept.close()


async def kinds_in(desk: Desk, conversation: str) -> list[str]:
    """What a conversation has on the server."""
    listed = desk.client.conversations.items.list(conversation, order="asc")
    return [item.type async for item in listed]


async def conversation(world: World) -> None:
    """The server keeps the history in a conversation: each request has only what is new."""
    desk = Desk(world)
    made = await desk.client.conversations.create()
    one = await desk.run(ASKED, conversation_id=made.id)
    world.equal("the answer is the tool's", one.final_output, SAID)
    two = await desk.run("What did I say first?", conversation_id=made.id)
    world.equal("the next turn knows the first", two.final_output, FIRST)
    three = await desk.run("How many messages?", conversation_id=made.id)
    world.equal("nothing is said twice", three.final_output, COUNTED)
    world.equal("the tool ran once", desk.tools.calls, [("get_tide", "Hull")])
    wanted = ["message", "function_call", "function_call_output", "message"] + ["message"] * 4
    world.equal("the conversation has it all", await kinds_in(desk, made.id), wanted)


async def conversation_session(world: World) -> None:
    """The SDK reads the items of a conversation, sends all of them, and adds what is new."""
    desk = Desk(world)
    kept = OpenAIConversationsSession(openai_client=desk.client)
    one = await desk.run(ASKED, session=kept)
    world.equal("the answer is the tool's", one.final_output, SAID)
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the next turn knows the first", two.final_output, FIRST)
    id = kept.session_id
    later = OpenAIConversationsSession(conversation_id=id, openai_client=desk.client)
    three = await desk.run("How many messages?", session=later)
    world.equal("another session goes on, and nothing is said twice", three.final_output, COUNTED)
    if not world.demo:
        lines = world.control.heard()["lines"][:4]
        wanted = [
            f"user: {ASKED}",
            'call: get_tide {"port":"Hull"}',
            "result: 04:12 in Hull",
            f"assistant: {SAID}",
        ]
        world.equal("call and result arrive as such", lines, wanted)
    wanted = ["message", "function_call", "function_call_output", "message"] + ["message"] * 4
    world.equal("the conversation has it all", await kinds_in(desk, id), wanted)
    last = await later.pop_item()
    world.equal("the last item is given", last["content"][0]["text"], COUNTED)
    world.equal("and is there no more", await kinds_in(desk, id), wanted[:-1])
    await later.clear_session()
    try:
        seen: Any = await desk.client.conversations.retrieve(id)
    except NotFoundError as error:
        seen = error.status_code
    world.equal("a session that is cleared deletes its conversation", seen, 404)


async def conversation_thoughts(world: World) -> None:
    """Reasoning that is an item of a conversation goes back to the vendor as it came."""
    if world.demo:
        return
    settings = ModelSettings(reasoning=Reasoning(effort="low", summary="auto"))
    desk = Desk(world, model_settings=settings)
    kept = OpenAIConversationsSession(openai_client=desk.client)
    one = await desk.run(tasks.STEPS, session=kept)
    world.equal("the answer is the last result", one.final_output, tasks.STEPS_SAID)
    two = await desk.run("How many messages?", session=kept)
    wanted = "There are 7 messages so far, 2 of them yours."
    world.equal("nothing is lost or said twice", two.final_output, wanted)
    ran = [("get_tide", "Hull"), ("add", 1, 2)]
    world.equal("each tool ran once", desk.tools.calls, ran)
    heard = [*tasks.STEPS_RECEIVED, f"assistant: {tasks.STEPS_SAID}", "user: How many messages?"]
    tasks.received_exactly(world, "calls and results arrive as such", heard)


async def after_compaction(world: World, desk: Desk, kept: Any, done: str) -> None:
    """A turn right after the session was put in short. `done` is of what was done before."""
    # Some vendors are sent messages of a user in one, in which a mock reads earlier wishes as new
    # ones. So there is nothing to call.
    tools, desk.agent.tools = desk.agent.tools, []
    made = await desk.run("What did I say first?", session=kept)
    desk.agent.tools = tools
    if world.demo:
        return world.equal("the next turn knows the first", made.final_output, FIRST)
    lines = world.control.heard()["lines"]
    world.equal("the vendor hears it from its first word", lines[0], f"user: {ASKED}")
    world.check("with what was done", done in "\n".join(lines), lines)
    world.check("and no call", not any(line.startswith("call:") for line in lines), lines)


async def compaction_session(world: World) -> None:
    """The SDK has its session put in short by the server, and goes on with what it got."""
    desk = Desk(world)
    below = SQLiteSession("compacted")
    kept = OpenAIResponsesCompactionSession(
        "compacted",
        below,
        client=desk.client,
        model=COMPACTING_MODEL,
        should_trigger_compaction=lambda seen: len(seen["compaction_candidate_items"]) >= 4,
    )
    await desk.run(ASKED, session=kept)
    kinds = [item.get("type", "message") for item in await kept.get_items()]
    wanted = ["message", "function_call", "function_call_output", "message"]
    world.equal("a short session stays as it is", kinds, wanted)
    before = 0 if world.demo else world.control.count()
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the second turn knows the first", two.final_output, FIRST)
    kinds = [item.get("type", "message") for item in await kept.get_items()]
    world.equal("a longer one is put in short", kinds, ["message", "message", "compaction"])
    await after_compaction(world, desk, kept, "04:12")
    if not world.demo:
        tasks.asked_times(world, before, 2)
    three = await desk.run("call add a=2 b=3", session=kept)
    world.equal("tools run after that", three.final_output, "add says: 5")
    kinds = [item.get("type", "message") for item in await kept.get_items()]
    world.equal("and it is put in short again", kinds.count("compaction"), 1)
    await after_compaction(world, desk, kept, "add")
    below.close()


async def streamed(world: World) -> None:
    desk = Desk(world)
    run = desk.streamed(ASKED, auto_previous_response_id=True)
    texts, names = [], []
    async for event in run.stream_events():
        if event.type == "raw_response_event":
            if event.data.type == "response.output_text.delta":
                texts.append(event.data.delta)
        elif event.type == "run_item_stream_event":
            names.append(event.name)
    world.equal("text is streamed", "".join(texts), SAID)
    wanted = ["tool_called", "tool_output", "message_output_created"]
    world.equal("items come as they are made", names, wanted)
    world.equal("the answer is the tool's", run.final_output, SAID)
    more = desk.streamed("What did I say first?", previous_response_id=run.last_response_id)
    async for _ in more.stream_events():
        pass
    world.equal("the next turn knows the first", more.final_output, FIRST)


async def handoffs(world: World) -> None:
    """One agent hands the conversation to another; a handoff is a call as well."""
    desk = Desk(world)
    pilot = Agent(
        name="Pilot", instructions="You are the pilot.", model=world.model, tools=desk.tools.all()
    )
    desk.agent = Agent(
        name="Desk", instructions="Hand over.", model=world.model, tools=[], handoffs=[pilot]
    )
    done = await desk.run("call transfer_to_pilot", auto_previous_response_id=True)
    world.equal("the other one answers", done.last_agent.name, "Pilot")
    world.check("from the call's result", "Pilot" in done.final_output, done.final_output)


class Berth(BaseModel):
    port: str
    number: int


async def structured(world: World) -> None:
    if world.demo:
        return
    berth = Berth(port="Hull", number=4)
    desk = Desk(world, output_type=Berth)
    # Some models take no schema for their answers beside functions.
    desk.agent.tools = []
    done = await desk.run(f"say exactly: {berth.model_dump_json()}")
    world.equal("the answer is typed", done.final_output, berth)


async def thoughts(world: World) -> None:
    """Two rounds of calls in one run with reasoning, for each way to continue a conversation."""
    if world.demo:
        return
    reasoning = Reasoning(effort="low", summary="auto")
    sealed = ModelSettings(
        reasoning=reasoning, store=False, response_include=["reasoning.encrypted_content"]
    )
    plain = ModelSettings(reasoning=reasoning)
    for what, settings, options in (
        ("chained", plain, {"auto_previous_response_id": True}),
        ("sealed", sealed, {}),
        ("replayed", plain, {}),
    ):
        desk = Desk(world, model_settings=settings)
        before = world.control.count()
        done = await desk.run(tasks.STEPS, max_turns=tasks.MOST_CALLS, **options)
        world.equal(f"{what}: the answer is the last result", done.final_output, tasks.STEPS_SAID)
        ran = [("get_tide", "Hull"), ("add", 1, 2)]
        world.equal(f"{what}: each tool ran once", desk.tools.calls, ran)
        tasks.asked_times(world, before, 3)
        tasks.received_exactly(world, f"{what}: calls and results as such", tasks.STEPS_RECEIVED)
        tasks.thoughts_returned(world, f"{what}: with the reasoning of both rounds", 2)


async def branches(world: World) -> None:
    desk = Desk(world)
    root = (await desk.run("root")).last_response_id
    sides = {}
    for name in ("left", "right"):
        sides[name] = (await desk.run(name, previous_response_id=root)).last_response_id
    for name, id in sides.items():
        asked = await desk.run("what did I say last?", previous_response_id=id)
        world.equal(f"{name} sees itself alone", asked.final_output, f'You last said: "{name}"')


async def retries(world: World) -> None:
    """What the SDK sends again after a cut is no second run, and runs no tool twice."""
    if world.demo:
        return
    desk = Desk(world)
    asked = world.control.count()
    with cut_while_asking(world, "reset"):
        done = await desk.run(f"hold: {ASKED}", auto_previous_response_id=True)
    world.equal("the answer comes", done.final_output, SAID)
    world.equal("the tool ran once", desk.tools.calls, [("get_tide", "Hull")])
    world.equal("the vendor was asked once for each step", world.control.count(), asked + 2)


SCENARIOS = [
    tools,
    chained,
    thoughts,
    branches,
    session,
    conversation,
    conversation_session,
    conversation_thoughts,
    compaction_session,
    streamed,
    handoffs,
    retries,
    structured,
]

if __name__ == "__main__":
    sys.exit(main("openai-agents", SCENARIOS))
