"""Holds the stateless routes of a running server against `ChatOpenAI` and `ChatAnthropic` of LangChain;
see `harness.py`.
"""

from __future__ import annotations

import sys
from typing import Any

from harness import World, main
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI
from langchain_sdk import ANSWER, FIRST, TIDE, TOOLS, Berth, looped


def chats(world: World, **options: Any) -> list[tuple[str, Any]]:
    key: Any = "not-needed-on-loopback"
    openai = ChatOpenAI(
        model=world.model, base_url=world.base_url, api_key=key, use_responses_api=False, **options
    )
    claude = ChatAnthropic(
        model=world.model,
        base_url=world.base_url.removesuffix("/v1"),
        api_key=key,
        max_tokens=8000,
        **options,
    )
    return [("ChatOpenAI", openai), ("ChatAnthropic", claude)]


def plain(world: World) -> None:
    for name, chat in chats(world):
        history: list[Any] = [SystemMessage("Answer briefly."), HumanMessage(TIDE)]
        answer = chat.invoke(history)
        world.equal(f"{name}: it answers", answer.text, ANSWER)
        usage = answer.usage_metadata
        world.check(f"{name}: with usage", usage and usage["total_tokens"] > 0, usage)
        history += [answer, HumanMessage("What did I say first?")]
        world.equal(f"{name}: history is heard", chat.invoke(history).text, FIRST)


def tools(world: World) -> None:
    for name, chat in chats(world):
        bound = chat.bind_tools(list(TOOLS.values()))
        history: list[Any] = [HumanMessage("call get_tide port=Goole and add a=1 b=2")]
        answer = looped(world, bound, history)
        wanted = ["add says: 3", "get_tide says: 04:12 in Goole"]
        world.equal(f"{name}: two at once", sorted(answer.text.split("\n")), wanted)
        forced = chat.bind_tools(list(TOOLS.values()), tool_choice="add")
        calls = forced.invoke("a=1 b=2").tool_calls
        world.equal(f"{name}: a choice is kept", [call["name"] for call in calls], ["add"])


def streams(world: World) -> None:
    for name, chat in chats(world):
        whole = None
        for piece in chat.stream([HumanMessage(TIDE)]):
            whole = piece if whole is None else whole + piece
        world.equal(f"{name}: pieces add up", whole.text, ANSWER)
        whole = None
        for piece in chat.bind_tools(list(TOOLS.values())).stream("call get_tide port=Hull and add a=1 b=2"):
            whole = piece if whole is None else whole + piece
        calls = [(call["name"], call["args"]) for call in whole.tool_calls]
        wanted = [("get_tide", {"port": "Hull"}), ("add", {"a": 1, "b": 2})]
        world.equal(f"{name}: calls are streamed", calls, wanted)


def structured(world: World) -> None:
    if world.demo:
        return
    for name, chat in chats(world):
        berth = Berth(port="Hull", number=4)
        typed = chat.with_structured_output(Berth, method="json_schema")
        found = typed.invoke(f"say exactly: {berth.model_dump_json()}")
        world.equal(f"{name}: the answer is typed", found, berth)


SCENARIOS = [plain, tools, streams, structured]

if __name__ == "__main__":
    sys.exit(main("langchain-anthropic", SCENARIOS))
