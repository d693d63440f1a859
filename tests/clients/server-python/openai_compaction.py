"""Conversations that are put in short, through the openai package."""

from __future__ import annotations

from typing import Any

import openai
from harness import World
from openai_chains import FIRST, TIDE, client_of
from openai_tools import TOOLS, answer


def chain(world: World, client: openai.OpenAI) -> Any:
    """Two turns, one of them with a call."""
    one = client.responses.create(model=world.model, input=TIDE)
    asked = client.responses.create(
        model=world.model,
        input="use get_tide with port=Hull",
        previous_response_id=one.id,
        tools=TOOLS,
    )
    return client.responses.create(
        model=world.model,
        input=[answer(asked.output[0], "04:12")],
        previous_response_id=asked.id,
        tools=TOOLS,
    )


def compacts(world: World) -> None:
    client = client_of(world)
    last = chain(world, client)
    short = client.responses.compact(model=world.model, previous_response_id=last.id)
    world.equal("the object is named", short.object, "response.compaction")
    kinds = [item.type for item in short.output]
    world.equal("users' words and one item", kinds, ["message", "message", "compaction"])
    world.equal("no model was asked", short.usage.total_tokens, 0)
    items: list[Any] = [item.to_dict() for item in short.output]
    texts = [item["content"][0]["text"] for item in items[:2]]
    world.equal("as they were said", texts, [TIDE, "use get_tide with port=Hull"])
    again = client.responses.compact(model=world.model, input=items)
    same = [item.to_dict() for item in again.output]
    world.equal("doing it again changes nothing", same, items)
    said = [*items, {"role": "user", "content": "What did I say first?"}]
    more = client.responses.create(model=world.model, input=said)
    world.equal("the conversation goes on with it", more.status, "completed")
    if world.demo:
        world.equal("from its first word", more.output_text, FIRST)
    else:
        lines = world.control.heard()["lines"]
        world.equal("from its first word", lines[0], f"user: {TIDE}")
        world.check("the vendor hears what was done", "04:12" in "\n".join(lines), lines)
        world.check("and no call", not any(line.startswith("call:") for line in lines), lines)
    listed = list(client.responses.input_items.list(more.id, order="asc"))
    world.equal("it is listed as what it is", listed[2].to_dict(), items[2])
    forged = {**items[2], "encrypted_content": items[2]["encrypted_content"][:-1] + "x"}
    world.refused(
        "a forged item",
        openai.BadRequestError,
        lambda: client.responses.create(model=world.model, input=[forged]),
        status=400,
        code="invalid_encrypted_content",
        param="input[0].encrypted_content",
    )


def asked_for(world: World) -> None:
    """The ways to ask for it in a request."""
    client = client_of(world)
    managed = [{"type": "compaction", "compact_threshold": 4_000}]
    made = client.responses.create(
        model=world.model, input=TIDE, truncation="auto", context_management=managed
    )
    world.equal("truncation is echoed", made.truncation, "auto")
    world.equal("and it is answered", made.output_text, f'You said: "{TIDE}"')
    world.refused(
        "too small a threshold",
        openai.BadRequestError,
        lambda: client.responses.create(
            model=world.model,
            input=TIDE,
            context_management=[{"type": "compaction", "compact_threshold": 10}],
        ),
        status=400,
        code="integer_below_min_value",
        param="context_management[0].compact_threshold",
    )


SCENARIOS = [compacts, asked_for]
