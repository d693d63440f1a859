"""Streams and the helpers around them, through the openai package."""

from __future__ import annotations

from typing import Any

from harness import World
from openai import AsyncOpenAI
from openai_chains import FIRST, TIDE, client_of

ANSWER = f'You said: "{TIDE}"'

# The events of an answer that is one text, but for its deltas.
BEFORE = [
    "response.created",
    "response.in_progress",
    "response.output_item.added",
    "response.content_part.added",
]
AFTER = [
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "response.completed",
]
DELTA = "response.output_text.delta"


def plain(events: Any) -> list[dict[str, Any]]:
    return [event.to_dict() for event in events]


def check_text(world: World, events: list[dict[str, Any]], text: str) -> None:
    """Checks the events of an answer that is one text."""
    kinds = [event["type"] for event in events]
    deltas = [event["delta"] for event in events if event["type"] == DELTA]
    wanted = BEFORE + [DELTA] * len(deltas) + AFTER
    world.equal("events follow the grammar", kinds, wanted)
    world.equal("deltas add up", "".join(deltas), text)
    numbers = [event["sequence_number"] for event in events]
    world.equal("numbers have no gap", numbers, list(range(len(events))))
    ids = {event["item_id"] for event in events if "item_id" in event}
    item = events[-2]["item"]
    world.equal("an item keeps its id", ids, {item["id"]})
    world.equal("the end holds the item", events[-1]["response"]["output"], [item])


def streams(world: World) -> None:
    client = client_of(world)
    with client.responses.create(model=world.model, input=TIDE, stream=True) as stream:
        events = plain(stream)
    check_text(world, events, ANSWER)
    ended = events[-1]["response"]
    read = client.responses.retrieve(ended["id"]).to_dict()
    world.equal("what is read later is what was streamed", read, ended)
    more = client.responses.create(
        model=world.model,
        input="What did I say first?",
        previous_response_id=ended["id"],
        stream=True,
    )
    check_text(world, plain(more), FIRST)


def stream_helper(world: World) -> None:
    client = client_of(world)
    seen, snapshots = [], []
    with client.responses.stream(model=world.model, input=TIDE) as stream:
        for event in stream:
            seen.append(event.type)
            if event.type == DELTA:
                snapshots.append(event.snapshot)
        final = stream.get_final_response()
    world.equal("the helper ends with the answer", final.output_text, ANSWER)
    world.equal("and has grown it", snapshots[-1], ANSWER)
    with client.responses.stream(
        model=world.model, input="What did I say first?", previous_response_id=final.id
    ) as stream:
        more = stream.get_final_response()
    world.equal("it goes on with a chain", more.output_text, FIRST)
    for after in (None, 0, 3, len(seen) - 2):
        options = {} if after is None else {"starting_after": after}
        with client.responses.stream(response_id=final.id, **options) as stream:
            kinds = [event.type for event in stream]
            again = stream.get_final_response()
        first = 0 if after is None else after + 1
        world.equal(f"it resumes after {after}", kinds, seen[first:])
        world.equal(f"with the same answer after {after}", again.output_text, ANSWER)


def replays(world: World) -> None:
    """Every event can be read again, for a streamed response and for one that was not."""
    client = client_of(world)
    with client.responses.create(model=world.model, input=TIDE, stream=True) as stream:
        told = plain(stream)
    id = told[0]["response"]["id"]
    world.equal("a replay is what was told", plain(client.responses.retrieve(id, stream=True)), told)
    for after in (0, 4, len(told) - 2):
        rest = client.responses.retrieve(id, stream=True, starting_after=after)
        world.equal(f"and begins after {after}", plain(rest), told[after + 1 :])
    nothing = client.responses.retrieve(id, stream=True, starting_after=len(told) - 1)
    world.equal("and after the last one there is nothing", plain(nothing), [])
    whole = client.responses.create(model=world.model, input=TIDE)
    made = plain(client.responses.retrieve(whole.id, stream=True))
    check_text(world, made, ANSWER)
    world.equal("its end is the response", made[-1]["response"], whole.to_dict())
    again = plain(client.responses.retrieve(whole.id, stream=True))
    world.equal("for every reader", again, made)


def leaving(world: World) -> None:
    """A client that leaves only detaches: the run goes on, and the stream can be taken up again."""
    if world.demo:
        return
    client = client_of(world)
    world.control.ask("hold")
    asked = world.control.count()
    told = []
    text = "hold: The tide turns at ten, and the berth is free until noon."
    try:
        with client.responses.create(model=world.model, input=text, stream=True) as stream:
            for event in stream:
                told.append(event.to_dict())
                if event.type == DELTA:
                    break
        id = told[0]["response"]["id"]
        running = client.responses.retrieve(id)
        world.equal("it is at work", running.status, "in_progress")
        late = client.responses.retrieve(id, stream=True)
        first = next(iter(late)).to_dict()
        world.equal("a second reader starts at the beginning", first, told[0])
        late.close()
    finally:
        world.control.ask("release")
    number = told[-1]["sequence_number"]
    rest = plain(client.responses.retrieve(id, stream=True, starting_after=number))
    world.equal("it ends", rest[-1]["type"], "response.completed")
    everything = plain(client.responses.retrieve(id, stream=True))
    world.equal("what was told and the rest are everything", told + rest, everything)
    check_text(world, everything, f'You said: "{text.removeprefix("hold: ")}"')
    world.equal("the vendor was asked once", world.control.count(), asked + 1)


async def asynchronous(world: World) -> None:
    async with AsyncOpenAI(base_url=world.base_url, api_key="not-needed-on-loopback") as client:
        stream = await client.responses.create(model=world.model, input=TIDE, stream=True)
        events = [event.to_dict() async for event in stream]
        check_text(world, events, ANSWER)
        previous = events[-1]["response"]["id"]
        async with client.responses.stream(
            model=world.model, input="What did I say first?", previous_response_id=previous
        ) as helper:
            final = await helper.get_final_response()
        world.equal("the helper ends with the answer", final.output_text, FIRST)
        listed = client.responses.input_items.list(final.id, limit=1, order="asc")
        texts = [item.content[0].text async for item in listed]
        wanted = [TIDE, ANSWER, "What did I say first?"]
        world.equal("items are listed page by page", texts, wanted)


def thoughts(world: World) -> None:
    """Reasoning is told, kept and given back to its vendor, sealed."""
    if world.demo:
        return
    client = client_of(world)
    asked = {"model": world.model, "reasoning": {"effort": "low", "summary": "auto"}}
    with client.responses.stream(**asked, input=f"think first: {TIDE}") as stream:
        kinds = [event.type for event in stream]
        final = stream.get_final_response()
    world.equal("the answer follows", final.output_text, ANSWER)
    items = [item.type for item in final.output]
    if world.control.upstream == "openai-chat":
        world.equal("this format has no reasoning", items, ["message"])
    else:
        world.equal("reasoning comes first", items, ["reasoning", "message"])
        told = [kind for kind in kinds if "reasoning" in kind]
        world.check("and is told in events", len(told) >= 4, kinds)
    read = client.responses.retrieve(final.id)
    world.equal("it is kept", [item.type for item in read.output], items)
    more = client.responses.create(
        **asked, input="What did I say first?", previous_response_id=final.id
    )
    words = f'You first said: "think first: {TIDE}"'
    world.equal("and does not stand in the way", more.output_text, words)


SCENARIOS = [streams, stream_helper, replays, leaving, asynchronous, thoughts]
