"""Holds a running server against agent-framework-openai; see `harness.py` and `tasks.py`."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import tasks
from agent_framework import Agent, Content, Message, tool
from agent_framework.exceptions import ChatClientException
from agent_framework_openai import OpenAIChatClient
from harness import World, main
from openai import AsyncOpenAI

COUNTED = "There are 7 messages so far, 2 of them yours."


class Desk:
    """An agent, and how it is run."""

    def __init__(self, world: World, *, tools: bool = True, **options: Any) -> None:
        self.calls = tasks.Calls()
        client = OpenAIChatClient(
            model=options.pop("model", world.model),
            base_url=world.base_url,
            api_key="not-needed-on-loopback",
            function_invocation_configuration={"max_iterations": tasks.MOST_CALLS},
        )
        self.agent = Agent(
            client,
            instructions=tasks.INSTRUCTIONS,
            tools=self.tools() if tools else None,
            default_options={"reasoning": {"effort": "low", "summary": "auto"}, **options},
        )

    def tools(self) -> list[Any]:
        @tool(approval_mode="never_require")
        def get_tide(port: str) -> str:
            """When the tide turns in a port."""
            return self.calls.get_tide(port)

        @tool(approval_mode="never_require")
        def add(a: int, b: int) -> str:
            """Adds two numbers."""
            return self.calls.add(a, b)

        return [get_tide, add]

    async def run(self, messages: Any, **options: Any) -> Any:
        return await self.agent.run(messages, **options)


async def tools(world: World) -> None:
    desk = Desk(world)
    done = await desk.run(tasks.ASKED)
    world.equal("the tool ran once", desk.calls.seen, [("get_tide", "Hull")])
    world.equal("the answer is its result", done.text, tasks.SAID)
    if not world.demo:
        tasks.reasoning_asked(world)


async def without_reasoning(world: World) -> None:
    """A call that the model made without reasoning, with reasoning on."""
    if world.demo:
        return
    for what, options in (("chained", {}), ("stateless", {"store": False})):
        desk = Desk(world, **options)
        before = world.control.count()
        done = await desk.run(tasks.WITHOUT_REASONING)
        world.equal(f"{what}: the tool ran once", desk.calls.seen, [("get_tide", "Hull")])
        world.equal(f"{what}: the answer is its result", done.text, tasks.SAID)
        tasks.asked_times(world, before, 2)
        wanted = tasks.WITHOUT_REASONING_RECEIVED
        tasks.received_exactly(world, f"{what}: call and result as such", wanted)


async def steps(world: World) -> None:
    """Two rounds of calls in one run, chained by the SDK with `previous_response_id`."""
    if world.demo:
        return
    desk = Desk(world)
    before = world.control.count()
    done = await desk.run(tasks.STEPS)
    world.equal("each tool ran once", desk.calls.seen, [("get_tide", "Hull"), ("add", 1, 2)])
    world.equal("the answer is the last result", done.text, tasks.STEPS_SAID)
    tasks.asked_times(world, before, 3)
    tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
    tasks.thoughts_returned(world, "with the reasoning of both rounds", 2)


async def stateless(world: World) -> None:
    """Nothing is stored: the SDK sends the items of each round back, reasoning sealed."""
    if world.demo:
        return
    desk = Desk(world, store=False)
    before = world.control.count()
    done = await desk.run(tasks.STEPS)
    world.equal("each tool ran once", desk.calls.seen, [("get_tide", "Hull"), ("add", 1, 2)])
    world.equal("the answer is the last result", done.text, tasks.STEPS_SAID)
    tasks.asked_times(world, before, 3)
    tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
    tasks.thoughts_returned(world, "with the reasoning of both rounds", 2)


async def replayed(world: World) -> None:
    """The program keeps the messages and sends all of them, though the server has them too.

    The SDK sends messages with calls only if it has their reasoning sealed, and asks for that by
    itself only in the first request of a run.
    """
    if world.demo:
        return
    desk = Desk(world, include=["reasoning.encrypted_content"])
    history = [Message("user", [tasks.STEPS])]
    done = await desk.run(history)
    history += [*done.messages, Message("user", ["How many messages?"])]
    before = world.control.count()
    more = await desk.run(history)
    world.equal("nothing is lost or said twice", more.text, COUNTED)
    tasks.asked_times(world, before, 1)
    wanted = [*tasks.STEPS_RECEIVED, f"assistant: {tasks.STEPS_SAID}", "user: How many messages?"]
    tasks.received_exactly(world, "calls and results arrive as such", wanted)
    world.equal("no tool ran again", len(desk.calls.seen), 2)


async def parallel(world: World) -> None:
    for what, options in (("chained", {}), ("stateless", {"store": False})):
        desk = Desk(world, **options)
        before = 0 if world.demo else world.control.count()
        done = await desk.run(tasks.BOTH)
        calls = [("add", 1, 2), ("get_tide", "Hull")]
        world.equal(f"{what}: both tools ran", sorted(desk.calls.seen), calls)
        said = sorted(done.text.split("\n"))
        world.equal(f"{what}: both results are in the answer", said, tasks.BOTH_SAID)
        if not world.demo:
            tasks.asked_times(world, before, 2)
            tasks.received_exactly(world, f"{what}: calls and results as such", tasks.BOTH_RECEIVED)
            tasks.thoughts_returned(world, f"{what}: with their reasoning", 1)


async def session(world: World) -> None:
    """A session holds the id of the last response."""
    desk = Desk(world)
    kept = desk.agent.create_session()
    one = await desk.run(tasks.ASKED, session=kept)
    world.equal("the answer is the tool's", one.text, tasks.SAID)
    id = kept.service_session_id
    world.check("the session has the response", str(id).startswith("resp_"), id)
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the next turn knows the first", two.text, tasks.FIRST)
    three = await desk.run("How many messages?", session=kept)
    wanted = "There are 7 messages so far, 3 of them yours."
    world.equal("nothing is said twice", three.text, wanted)


async def local_session(world: World) -> None:
    """With `store` off the session holds the messages themselves."""
    desk = Desk(world, store=False)
    kept = desk.agent.create_session()
    one = await desk.run(tasks.ASKED, session=kept)
    world.equal("the answer is the tool's", one.text, tasks.SAID)
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the next turn knows the first", two.text, tasks.FIRST)
    three = await desk.run("How many messages?", session=kept)
    wanted = "There are 7 messages so far, 3 of them yours."
    world.equal("nothing is said twice", three.text, wanted)


def openai_of(world: World) -> AsyncOpenAI:
    """For what the SDK leaves to the openai package: making conversations, and reading them."""
    return AsyncOpenAI(base_url=world.base_url, api_key="not-needed-on-loopback")


async def conversation(world: World) -> None:
    """A session holds the id of a conversation."""
    client = openai_of(world)
    made = await client.conversations.create()
    desk = Desk(world)
    kept = desk.agent.get_session(made.id)
    one = await desk.run(tasks.ASKED, session=kept)
    world.equal("the answer is the tool's", one.text, tasks.SAID)
    world.equal("the session keeps the conversation", kept.service_session_id, made.id)
    two = await desk.run("What did I say first?", session=kept)
    world.equal("the next turn knows the first", two.text, tasks.FIRST)
    stream = desk.agent.run("How many messages?", stream=True, session=kept)
    texts = [update.text async for update in stream]
    await stream.get_final_response()
    wanted = "There are 7 messages so far, 3 of them yours."
    world.check("a streamed turn goes on with it", wanted in "".join(texts), texts)
    world.equal("the session still has it", kept.service_session_id, made.id)
    world.equal("the tool ran once", desk.calls.seen, [("get_tide", "Hull")])
    listed = client.conversations.items.list(made.id, order="asc")
    kinds = [item.type async for item in listed if item.type != "reasoning"]
    wanted_kinds = ["message", "function_call", "function_call_output", "message"]
    world.equal("the conversation has it all", kinds, wanted_kinds + ["message"] * 4)
    other = await Desk(world).run(
        "What did I say first?", options={"conversation_id": made.id}
    )
    world.equal("another agent goes on by its id", other.text, tasks.FIRST)


async def ended(desk: Desk, done: Any, **options: Any) -> tuple[Any, int]:
    """Polls with the token of the SDK until there is none; gives how many polls it took, too."""
    polls = 0
    while done.continuation_token is not None:
        await asyncio.sleep(0.02)
        token = {"continuation_token": done.continuation_token}
        done = await desk.run(None, options={"background": True, **token}, **options)
        polls += 1
    return done, polls


async def background(world: World) -> None:
    """Each model call of a run is made in the background, and polled."""
    desk = Desk(world)
    kept = desk.agent.create_session()
    text = "The tide turns at ten."
    if not world.demo:
        world.control.ask("hold")
    begun = await desk.run(f"hold: {text}", options={"background": True}, session=kept)
    if not world.demo:
        token = begun.continuation_token or {}
        world.check("there is a token", token.get("response_id", "").startswith("resp_"), begun)
        world.control.ask("release")
    done, polls = await ended(desk, begun, session=kept)
    said = f"hold: {text}" if world.demo else text
    world.equal("it is made", done.text, f'You said: "{said}"')
    world.check("and was polled", world.demo or polls > 0, polls)
    begun = await desk.run(tasks.ASKED, options={"background": True}, session=kept)
    done, _ = await ended(desk, begun, session=kept)
    world.equal("tools run with what is polled", done.text, tasks.SAID)
    world.equal("each once", desk.calls.seen, [("get_tide", "Hull")])


async def background_streamed(world: World) -> None:
    """A stream of a background response is left, and taken up again with its token."""
    if world.demo:
        return
    desk = Desk(world)
    text = "The tide turns at ten."
    world.control.ask("hold")
    stream = desk.agent.run(f"hold: {text}", stream=True, options={"background": True})
    token = None
    async for update in stream:
        token = update.continuation_token
        if token is not None:
            break
    world.control.ask("release")
    world.need("there is a token", token)
    options = {"background": True, "continuation_token": token}
    again = desk.agent.run(None, stream=True, options=options)
    async for _ in again:
        pass
    done = await again.get_final_response()
    world.equal("it is taken up and told to its end", done.text, f'You said: "{text}"')


async def streamed(world: World) -> None:
    desk = Desk(world)
    kept = desk.agent.create_session()
    text = tasks.ASKED if world.demo else tasks.STEPS
    stream = desk.agent.run(text, stream=True, session=kept)
    texts: list[str] = []
    called: list[str] = []
    async for update in stream:
        for content in update.contents:
            # At the end of a text the SDK repeats the whole in place of its pieces.
            if content.type == "text" and content.text and content.merge_mode != "replace":
                texts.append(content.text)
            if content.type == "function_call" and content.name:
                called.append(content.name)
    done = await stream.get_final_response()
    said = tasks.SAID if world.demo else tasks.STEPS_SAID
    world.equal("text is streamed", "".join(texts), said)
    world.check("in several pieces", len(texts) > 1, texts)
    wanted = ["get_tide"] if world.demo else ["get_tide", "add"]
    world.equal("calls are streamed", list(dict.fromkeys(called)), wanted)
    world.equal("the answer is the last result", done.text, said)
    if not world.demo:
        tasks.received_exactly(world, "calls and results arrive as such", tasks.STEPS_RECEIVED)
        more = await desk.run("How many messages?", session=kept)
        world.equal("what was streamed can be continued", more.text, COUNTED)


async def structured(world: World) -> None:
    if world.demo:
        return
    desk = Desk(world, tools=False)
    text = f"say exactly: {tasks.BERTH.model_dump_json()}"
    done = await desk.run(text, options={"response_format": tasks.Berth})
    world.equal("the answer is typed", done.value, tasks.BERTH)


async def picture(world: World) -> None:
    desk = Desk(world)
    text = "What is in this picture?"
    message = Message("user", [text, Content.from_uri(tasks.PNG_URL, media_type="image/png")])
    done = await desk.run([message])
    world.equal("it answers", done.text, tasks.picture_answered(world, text))
    tasks.picture_received(world)


async def errors(world: World) -> None:
    async def refused(desk: Desk, **options: Any) -> Any:
        try:
            done = await desk.run("x", **options)
        except ChatClientException as error:
            cause = error.__cause__
            return getattr(cause, "status_code", None), getattr(cause, "code", None)
        return done.text

    found = await refused(Desk(world, model="nobody/nothing"))
    world.equal("an unknown model", found, (404, "model_not_found"))
    options = {"conversation_id": tasks.NOBODY}
    found = await refused(Desk(world), options=options)
    wanted = (400, "previous_response_not_found")
    world.equal("an unknown response to continue", found, wanted)
    if world.demo:
        return
    world.control.ask("fault invalid_request 100")
    try:
        found = await refused(Desk(world))
    finally:
        world.control.ask("heal")
    world.equal("a request that the vendor refuses", found[0], 400)


SCENARIOS = [
    tools,
    without_reasoning,
    steps,
    stateless,
    replayed,
    parallel,
    session,
    local_session,
    conversation,
    background,
    background_streamed,
    streamed,
    structured,
    picture,
    errors,
]

if __name__ == "__main__":
    sys.exit(main("agent-framework-openai", SCENARIOS))
