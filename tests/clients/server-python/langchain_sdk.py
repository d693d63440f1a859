"""Holds a running server against the langchain-openai package; see `harness.py`."""

from __future__ import annotations

import sys
from typing import Any

import openai
import tasks
from harness import World, cut_while_asking, main
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

TIDE = "The tide turns at ten."
ANSWER = f'You said: "{TIDE}"'
FIRST = f'You first said: "{TIDE}"'


@tool
def get_tide(port: str) -> str:
    """When the tide turns in a port."""
    return f"04:12 in {port}"


@tool
def add(a: int, b: int) -> str:
    """Adds two numbers."""
    return str(a + b)


TOOLS = {each.name: each for each in (get_tide, add)}


def chat_of(world: World, **options: Any) -> ChatOpenAI:
    return ChatOpenAI(
        model=world.model,
        base_url=world.base_url,
        api_key="not-needed-on-loopback",
        use_responses_api=True,
        **options,
    )


def looped(world: World, chat: Any, history: list[Any]) -> AIMessage:
    """Runs tools until the model calls no more."""
    for _ in range(4):
        answer = chat.invoke(history)
        history.append(answer)
        if not answer.tool_calls:
            return answer
        for call in answer.tool_calls:
            history.append(TOOLS[call["name"]].invoke(call))
    world.need("the loop ends", False)
    raise AssertionError


def plain(world: World) -> None:
    """The client keeps the history and sends all of it."""
    for version in ("v0", "responses/v1", "v1"):
        chat = chat_of(world, output_version=version)
        history: list[Any] = [SystemMessage("Answer briefly."), HumanMessage(TIDE)]
        answer = chat.invoke(history)
        world.equal(f"{version}: it answers", answer.text, ANSWER)
        id = answer.response_metadata["id"]
        world.check(f"{version}: with an id", id.startswith("resp_"), id)
        usage = answer.usage_metadata
        world.check(f"{version}: and with usage", usage and usage["total_tokens"] > 0, usage)
        history += [answer, HumanMessage("What did I say first?")]
        world.equal(f"{version}: history is heard", chat.invoke(history).text, FIRST)
        if not world.demo:
            heard = world.control.heard()["instructions"]
            world.equal(f"{version}: with its instructions", heard, "Answer briefly.")


def chained(world: World) -> None:
    """The server keeps the history: only messages after the last answer are sent."""
    chat = chat_of(world, use_previous_response_id=True)
    history: list[Any] = [HumanMessage(TIDE)]
    history.append(chat.invoke(history))
    history.append(HumanMessage("What did I say first?"))
    before = world.control.order("bytes")["up"]
    history.append(chat.invoke(history))
    second = world.control.order("bytes")["up"] - before
    world.equal("the second turn knows the first", history[-1].text, FIRST)
    for number in range(6):
        history.append(HumanMessage(f"turn {number}, what did I say first"))
        history.append(chat.invoke(history))
    before = world.control.order("bytes")["up"]
    history.append(HumanMessage("What did I say first?"))
    history.append(chat.invoke(history))
    last = world.control.order("bytes")["up"] - before
    world.equal("the ninth too", history[-1].text, FIRST)
    world.check("and its request is no longer", last <= second + 8, second, last)


def tools(world: World) -> None:
    for chains in (False, True):
        what = "chained" if chains else "plain"
        chat = chat_of(world, use_previous_response_id=chains).bind_tools([get_tide, add])
        history: list[Any] = [HumanMessage("use get_tide with port=Hull")]
        answer = looped(world, chat, history)
        world.equal(f"{what}: the result", answer.text, "get_tide says: 04:12 in Hull")
        history.append(HumanMessage("call get_tide port=Goole and add a=1 b=2"))
        answer = looped(world, chat, history)
        said = sorted(answer.text.split("\n"))
        wanted = ["add says: 3", "get_tide says: 04:12 in Goole"]
        world.equal(f"{what}: two at once", said, wanted)
        history.append(HumanMessage("What did I say first?"))
        answer = looped(world, chat, history)
        wanted = 'You first said: "use get_tide with port=Hull"'
        world.equal(f"{what}: the chain goes on", answer.text, wanted)
        results = [each for each in history if isinstance(each, ToolMessage)]
        world.equal(f"{what}: each call ran once", len(results), 3)
    forced = chat_of(world).bind_tools([get_tide, add], tool_choice="add")
    calls = forced.invoke("a=1 b=2").tool_calls
    world.equal("a choice is kept", [call["name"] for call in calls], ["add"])


def streams(world: World) -> None:
    chat = chat_of(world, use_previous_response_id=True)
    pieces = list(chat.stream([HumanMessage(TIDE)]))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    world.equal("pieces add up", whole.text, ANSWER)
    world.check("there are several", len([each for each in pieces if each.text]) > 1, pieces)
    id = whole.response_metadata.get("id")
    world.check("the sum knows its response", str(id).startswith("resp_"), id)
    usage = whole.usage_metadata
    world.check("and its usage", usage and usage["total_tokens"] > 0, usage)
    answer = chat.invoke([HumanMessage(TIDE), whole, HumanMessage("What did I say first?")])
    world.equal("and can be continued", answer.text, FIRST)
    bound = chat.bind_tools([get_tide, add])
    whole = None
    for piece in bound.stream("call get_tide port=Hull and add a=1 b=2"):
        whole = piece if whole is None else whole + piece
    calls = [(call["name"], call["args"]) for call in whole.tool_calls]
    wanted = [("get_tide", {"port": "Hull"}), ("add", {"a": 1, "b": 2})]
    world.equal("calls are streamed", calls, wanted)


async def asynchronous(world: World) -> None:
    chat = chat_of(world, use_previous_response_id=True)
    one = await chat.ainvoke([HumanMessage(TIDE)])
    whole = None
    async for piece in chat.astream([HumanMessage(TIDE), one, HumanMessage("What did I say first?")]):
        whole = piece if whole is None else whole + piece
    world.equal("a chain goes on as a stream", whole.text, FIRST)


def branches(world: World) -> None:
    chat = chat_of(world, use_previous_response_id=True)
    root: list[Any] = [HumanMessage("root")]
    root.append(chat.invoke(root))
    for name in ("left", "right"):
        side = [*root, HumanMessage(name)]
        side += [chat.invoke(side), HumanMessage("what did I say last?")]
        world.equal(f"{name} sees itself alone", chat.invoke(side).text, f'You last said: "{name}"')


def retries(world: World) -> None:
    """What the SDK sends again after a cut is no second run."""
    if world.demo:
        return
    chat = chat_of(world, max_retries=4, use_previous_response_id=True)
    history: list[Any] = [HumanMessage(TIDE)]
    history.append(chat.invoke(history))
    history.append(HumanMessage("hold: What did I say first?"))
    asked = world.control.count()
    with cut_while_asking(world, "reset"):
        answer = chat.invoke(history)
    world.equal("the answer comes", answer.text, FIRST)
    world.equal("the vendor was asked once", world.control.count(), asked + 1)


def thoughts(world: World) -> None:
    """Reasoning goes back to its vendor, for each way to continue a conversation."""
    if world.demo:
        return
    options = {"reasoning": {"effort": "low"}, "output_version": "responses/v1"}
    stateless = {"store": False, "include": ["reasoning.encrypted_content"]}
    chained = {"use_previous_response_id": True}
    for what, more in (("chained", chained), ("stateless", stateless), ("replayed", {})):
        chat = chat_of(world, **options, **more).bind_tools([get_tide, add])
        history: list[Any] = [HumanMessage("think first: use get_tide with port=Hull")]
        answer = looped(world, chat, history)
        world.equal(f"{what}: the result", answer.text, "get_tide says: 04:12 in Hull")
        tasks.thoughts_returned(world, f"{what}: with its reasoning", 1)
        history.append(HumanMessage("How many messages?"))
        answer = looped(world, chat, history)
        wanted = "There are 5 messages so far, 2 of them yours."
        world.equal(f"{what}: the chain goes on", answer.text, wanted)


class Berth(BaseModel):
    """Where a ship lies."""

    port: str
    number: int


def structured(world: World) -> None:
    if world.demo:
        return
    chat = chat_of(world).with_structured_output(Berth, method="json_schema")
    berth = Berth(port="Hull", number=4)
    found = chat.invoke(f"say exactly: {berth.model_dump_json()}")
    world.equal("the answer is typed", found, berth)


def errors(world: World) -> None:
    chat = chat_of(world)
    world.refused(
        "an unknown response to continue",
        openai.BadRequestError,
        lambda: chat.invoke("x", previous_response_id="resp_nope"),
        status=400,
        code="previous_response_not_found",
        param="previous_response_id",
    )
    lost = ToolMessage("04:12", tool_call_id="call_zzz")
    world.refused(
        "a result without a call",
        openai.BadRequestError,
        lambda: chat.invoke([HumanMessage("x"), lost]),
        status=400,
        code=None,
        param="input",
        words="No tool call found for function call output with call_id call_zzz.",
    )


SCENARIOS = [
    plain,
    chained,
    branches,
    tools,
    streams,
    asynchronous,
    retries,
    thoughts,
    structured,
    errors,
]

if __name__ == "__main__":
    sys.exit(main("langchain-openai", SCENARIOS))
