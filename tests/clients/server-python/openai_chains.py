"""Chains, branches, deletes and what is kept, through the openai package."""

from __future__ import annotations

import openai
from harness import World
from openai import OpenAI

TIDE = "The tide turns at ten."
FIRST = 'You first said: "The tide turns at ten."'

# How many turns a chain has whose requests are weighed.
TURNS = 24


def client_of(world: World, **options: object) -> OpenAI:
    return OpenAI(base_url=world.base_url, api_key="not-needed-on-loopback", **options)


def chains(world: World) -> None:
    client = client_of(world)
    one = client.responses.create(model=world.model, input=TIDE)
    world.equal("the first turn is answered", one.output_text, f'You said: "{TIDE}"')
    world.equal("it is completed", (one.status, one.error), ("completed", None))
    world.check("its id looks like one", one.id.startswith("resp_"), one.id)
    world.equal("the model's name is echoed", one.model, world.model)
    world.check("usage is counted", one.usage and one.usage.total_tokens > 0, one.usage)
    two = client.responses.create(
        model=world.model, input="What did I say first?", previous_response_id=one.id
    )
    world.equal("the second turn knows the first", two.output_text, FIRST)
    world.equal("it names what it continues", two.previous_response_id, one.id)
    three = client.responses.create(
        model=world.model, input="How many messages?", previous_response_id=two.id
    )
    wanted = "There are 5 messages so far, 3 of them yours."
    world.equal("the third has the whole chain", three.output_text, wanted)
    if not world.demo:
        lines = world.control.heard()["lines"]
        wanted = [
            f"user: {TIDE}",
            f'assistant: You said: "{TIDE}"',
            "user: What did I say first?",
            f"assistant: {FIRST}",
            "user: How many messages?",
        ]
        world.equal("the vendor hears it whole and in order", lines, wanted)
    for each in (one, two, three):
        read = client.responses.retrieve(each.id)
        world.equal("what is read later is what was answered", read.to_dict(), each.to_dict())


def branches(world: World) -> None:
    client = client_of(world)

    def say(text: str, after: str | None = None) -> openai.types.responses.Response:
        previous = after or openai.omit
        return client.responses.create(
            model=world.model, input=text, previous_response_id=previous
        )

    root = say("root")
    left, right = say("left", root.id), say("right", root.id)
    world.check("siblings have their own ids", left.id != right.id, left.id)
    question = "what did I say last?"
    for side, name in ((left, "left"), (right, "right")):
        asked = say(question, side.id)
        world.equal(f"{name} sees itself alone", asked.output_text, f'You last said: "{name}"')
    deeper = say("deeper", left.id)
    again = say(question, root.id)
    world.equal("a branch from the root sees the root", again.output_text, 'You last said: "root"')
    asked = say(question, deeper.id)
    world.equal("and no branch moves another", asked.output_text, 'You last said: "deeper"')
    repeated = [say("twice", deeper.id).id for _ in range(2)]
    world.check("the same turn twice is two branches", repeated[0] != repeated[1], repeated)


def instructions(world: World) -> None:
    client = client_of(world)
    said = {"model": world.model, "instructions": "Speak like a pilot."}
    one = client.responses.create(**said, input="one")
    world.equal("instructions are echoed", one.instructions, said["instructions"])
    if not world.demo:
        heard = world.control.heard()["instructions"]
        world.equal("the model is told", heard, said["instructions"])
    two = client.responses.create(model=world.model, input="two", previous_response_id=one.id)
    world.equal("they are not inherited", two.instructions, None)
    if not world.demo:
        world.equal("nor told again", world.control.heard()["instructions"], None)
    read = client.responses.retrieve(one.id)
    world.equal("they stay with their response", read.instructions, said["instructions"])


def inputs(world: World) -> None:
    """The ways to say something, and references to what was said."""
    client = client_of(world)
    listed = client.responses.create(
        model=world.model,
        input=[
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": 'You said: "one"'},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "two"}]},
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "What did I say first?"},
        ],
    )
    world.equal("messages are heard in order", listed.output_text, 'You first said: "one"')
    one = client.responses.create(model=world.model, input="The berth is free.")
    message = one.output[0]
    referred = client.responses.create(
        model=world.model,
        input=[
            {"role": "user", "content": "remember"},
            {"type": "item_reference", "id": message.id},
            {"role": "user", "content": "How many messages?"},
        ],
    )
    wanted = "There are 3 messages so far, 2 of them yours."
    world.equal("a reference stands for its item", referred.output_text, wanted)
    if not world.demo:
        lines = world.control.heard()["lines"]
        world.equal("in its place", lines[1], f"assistant: {one.output_text}")
    repeated = client.responses.create(
        model=world.model,
        previous_response_id=one.id,
        input=[message.to_dict(), {"role": "user", "content": "How many messages?"}],
    )
    wanted = "There are 3 messages so far, 2 of them yours."
    world.equal("an item sent again is not said twice", repeated.output_text, wanted)


def settings(world: World) -> None:
    client = client_of(world)
    metadata = {"ship": "Selene", "berth": "4"}
    made = client.responses.create(
        model=world.model,
        input="one",
        metadata=metadata,
        max_output_tokens=500,
        user="pilot-7",
        parallel_tool_calls=False,
    )
    world.equal("metadata is echoed", made.metadata, metadata)
    world.equal("and kept", client.responses.retrieve(made.id).metadata, metadata)
    world.equal("limits are echoed", made.max_output_tokens, 500)
    world.equal("parallel calls are echoed", made.parallel_tool_calls, False)
    # Gemini has no such member, and the built-in model takes no notice of it.
    if world.demo or world.control.upstream == "gemini":
        ignored = [one["path"] for one in made.throughline["ignored"]]
        world.check("the user is listed as left out", "user" in ignored, ignored)
    else:
        world.equal("the user is echoed", made.user, "pilot-7")
    short = client.responses.create(
        model=world.model, input="one two three four five six", max_output_tokens=16
    )
    world.equal("an answer within its limit is complete", short.status, "completed")
    words = " ".join(str(number) for number in range(40))
    cut = client.responses.create(model=world.model, input=words, max_output_tokens=16)
    reason = cut.incomplete_details and cut.incomplete_details.reason
    seen = (cut.status, reason)
    world.equal("one that is cut off is not", seen, ("incomplete", "max_output_tokens"))
    more = client.responses.create(
        model=world.model, input="What did I say first?", previous_response_id=cut.id
    )
    world.equal("and can be continued", more.output_text, f'You first said: "{words}"')


def unstored(world: World) -> None:
    client = client_of(world)
    gone = client.responses.create(model=world.model, input=TIDE, store=False)
    world.equal("it is answered", gone.output_text, f'You said: "{TIDE}"')
    world.refused(
        "it cannot be read",
        openai.NotFoundError,
        lambda: client.responses.retrieve(gone.id),
        status=404,
        code=None,
        words=gone.id,
    )
    world.refused(
        "nor continued",
        openai.BadRequestError,
        lambda: client.responses.create(
            model=world.model, input="two", previous_response_id=gone.id
        ),
        status=400,
        code="previous_response_not_found",
        param="previous_response_id",
        words=gone.id,
    )
    history: list = [{"role": "user", "content": TIDE}]
    history += gone.output
    history.append({"role": "user", "content": "What did I say first?"})
    more = client.responses.create(model=world.model, input=history, store=False)
    world.equal("a client may keep the history itself", more.output_text, FIRST)


def deletes(world: World) -> None:
    client = client_of(world)
    chain = [client.responses.create(model=world.model, input=TIDE)]
    for text in ("two", "three"):
        previous = chain[-1].id
        more = client.responses.create(model=world.model, input=text, previous_response_id=previous)
        chain.append(more)
    middle = chain[1].id
    client.responses.delete(middle)
    for what, work in (
        ("read", lambda: client.responses.retrieve(middle)),
        ("streamed", lambda: list(client.responses.retrieve(middle, stream=True))),
        ("listed", lambda: client.responses.input_items.list(middle)),
        ("deleted again", lambda: client.responses.delete(middle)),
    ):
        what = f"a deleted response cannot be {what}"
        world.refused(what, openai.NotFoundError, work, status=404, code=None, words=middle)
    world.refused(
        "nor continued",
        openai.BadRequestError,
        lambda: client.responses.create(
            model=world.model, input="x", previous_response_id=middle
        ),
        status=400,
        code="previous_response_not_found",
        param="previous_response_id",
    )
    more = client.responses.create(
        model=world.model, input="What did I say first?", previous_response_id=chain[2].id
    )
    world.equal("what came after it goes on with everything", more.output_text, FIRST)
    counted = client.responses.create(
        model=world.model, input="How many messages?", previous_response_id=more.id
    )
    wanted = "There are 9 messages so far, 5 of them yours."
    world.equal("its words included", counted.output_text, wanted)
    read = client.responses.retrieve(chain[2].id)
    world.equal("descendants are read as before", read.to_dict(), chain[2].to_dict())


def input_items(world: World) -> None:
    client = client_of(world)
    chain = [client.responses.create(model=world.model, input="turn 0")]
    for number in range(1, 4):
        previous = chain[-1].id
        more = client.responses.create(
            model=world.model, input=f"turn {number}", previous_response_id=previous
        )
        chain.append(more)
    last = chain[-1].id
    everything = list(client.responses.input_items.list(last, order="asc", limit=2))
    said = [(item.role, item.content[0].text) for item in everything]
    wanted = []
    for number in range(4):
        wanted.append(("user", f"turn {number}"))
        wanted.append(("assistant", f'You said: "turn {number}"'))
    world.equal("pages of two hold everything before the answer", said, wanted[:-1])
    ids = [item.id for item in everything]
    world.equal("no item twice", len(set(ids)), len(ids))
    answers = [each.output[0].id for each in chain[:-1]]
    world.equal("answers have the ids that they were given with", ids[1::2], answers)
    page = client.responses.input_items.list(last, limit=3)
    world.equal("the newest come first", [item.id for item in page.data], ids[::-1][:3])
    world.equal("and there are more", page.has_more, True)
    after = client.responses.input_items.list(last, limit=100, order="asc", after=ids[2])
    world.equal("a page begins after an item", [item.id for item in after.data], ids[3:])
    world.equal("and is the last", after.has_more, False)
    again = [item.id for item in client.responses.input_items.list(last, order="asc")]
    world.equal("ids are the same for every reader", again, ids)


def input_tokens(world: World) -> None:
    client = client_of(world)
    few = client.responses.input_tokens.count(model=world.model, input="one")
    world.equal("the object is named", few.object, "response.input_tokens")
    many = client.responses.input_tokens.count(model=world.model, input="one two three " * 50)
    world.check("more words are more tokens", 0 < few.input_tokens < many.input_tokens, few, many)
    made = client.responses.create(model=world.model, input="one two three " * 50)
    chained = client.responses.input_tokens.count(
        model=world.model, input="one", previous_response_id=made.id
    )
    enough = chained.input_tokens > many.input_tokens
    world.check("what came before counts", enough, chained, many)


def requests_stay_small(world: World) -> None:
    client = client_of(world)
    sizes = []
    previous: object = openai.omit
    for number in range(TURNS):
        before = world.control.order("bytes")["up"]
        made = client.responses.create(
            model=world.model, input=f"turn {number:02}", previous_response_id=previous
        )
        sizes.append(world.control.order("bytes")["up"] - before)
        previous = made.id
    spread = max(sizes[1:]) - min(sizes[1:])
    world.check("the last request is no longer than the second", spread <= 8, sizes)
    asked = client.responses.create(
        model=world.model, input="How many messages?", previous_response_id=previous
    )
    wanted = f"There are {2 * TURNS + 1} messages so far, {TURNS + 1} of them yours."
    world.equal("and nothing is missing", asked.output_text, wanted)


SCENARIOS = [
    chains,
    branches,
    instructions,
    inputs,
    settings,
    unstored,
    deletes,
    input_items,
    input_tokens,
    requests_stay_small,
]
