"""Requests that are sent again: by the SDK after a cut, and by a caller with a key."""

from __future__ import annotations

import threading
from typing import Any

import openai
from harness import World, cut_while_asking
from openai_chains import client_of


def retries(world: World) -> None:
    if world.demo:
        return
    client = client_of(world, max_retries=4)
    for how in ("reset", "500"):
        asked = world.control.count()
        with cut_while_asking(world, how):
            made = client.responses.create(model=world.model, input=f"hold: after {how}")
        world.equal(f"{how}: the answer comes", made.output_text, f'You said: "after {how}"')
        world.equal(f"{how}: the vendor was asked once", world.control.count(), asked + 1)
        with cut_while_asking(world, how):
            more = client.responses.create(
                model=world.model, input="hold: more", previous_response_id=made.id
            )
        world.equal(f"{how}: in a chain too", more.output_text, 'You said: "more"')
        world.equal(f"{how}: once more", world.control.count(), asked + 2)


def streams_cut(world: World) -> None:
    """A stream that is cut is taken up where it ended, without asking the vendor again."""
    client = client_of(world)
    text = "The tide turns at ten, and the berth is free until noon."
    for bytes in (1_500, 4_000, 6_000):
        world.control.order(f"cut after {bytes}")
        told: list[dict[str, Any]] = []
        asked = None if world.demo else world.control.count()
        try:
            with client.responses.create(model=world.model, input=text, stream=True) as stream:
                for event in stream:
                    told.append(event.to_dict())
        except Exception as error:  # noqa: BLE001
            # Whatever the HTTP library calls it.
            world.check(f"{bytes}: the cut shows", error)
        if not told:
            world.check(f"{bytes}: nothing came", True)
            continue
        world.check(f"{bytes}: it was cut", told[-1]["type"] != "response.completed")
        id = told[0]["response"]["id"]
        after = told[-1]["sequence_number"]
        rest = client.responses.retrieve(id, stream=True, starting_after=after)
        told += [event.to_dict() for event in rest]
        numbers = [event["sequence_number"] for event in told]
        world.equal(f"{bytes}: no gap and no repeat", numbers, list(range(len(told))))
        ended = told[-1]["response"]["output"][0]["content"][0]["text"]
        world.equal(f"{bytes}: the whole answer", ended, f'You said: "{text}"')
        if asked is not None:
            world.equal(f"{bytes}: the vendor was asked once", world.control.count(), asked + 1)


def keys(world: World) -> None:
    client = client_of(world)

    def create(text: str, key: str, **more: Any) -> Any:
        headers = {"Idempotency-Key": key}
        return client.responses.create(
            model=world.model, input=text, extra_headers=headers, **more
        )

    key = f"{world.model}-one"
    one = create("once", key)
    asked = None if world.demo else world.control.count()
    again = create("once", key)
    world.equal("the same key is the same run", again.to_dict(), one.to_dict())
    if asked is not None:
        world.equal("and no second question", world.control.count(), asked)
    world.refused(
        "another body under that key",
        openai.UnprocessableEntityError,
        lambda: create("twice", key),
        status=422,
        code="idempotency_key_reused",
    )
    other = create("once", f"{world.model}-two")
    world.check("another key is another run", other.id != one.id, other.id)
    streamed = [event.to_dict() for event in create("told", f"{key}-told", stream=True)]
    told = [event.to_dict() for event in create("told", f"{key}-told", stream=True)]
    world.equal("a stream under a key is told again", told, streamed)
    plain = [client.responses.create(model=world.model, input="once").id for _ in range(2)]
    world.check("without a key each is a run", plain[0] != plain[1], plain)


def keys_at_work(world: World) -> None:
    if world.demo:
        return
    client = client_of(world, max_retries=0)
    headers = {"Idempotency-Key": f"{world.model}-held"}
    said = {"model": world.model, "input": "hold: patience", "extra_headers": headers}
    asked = world.control.count()
    world.control.ask("hold")
    made: list[Any] = []
    first = threading.Thread(target=lambda: made.append(client.responses.create(**said)))
    first.start()
    try:
        world.control.ask(f"received {asked + 1}")
        error = world.refused(
            "the same key while it runs",
            openai.ConflictError,
            lambda: client.responses.create(**said),
            status=409,
            code="idempotency_in_progress",
        )
        again = error.response.headers.get("x-should-retry")
        world.equal("may be sent again", again, "true")
    finally:
        world.control.ask("release")
        first.join()
    patient = client_of(world).responses.create(**said)
    world.equal("and gets the answer then", patient.to_dict(), made[0].to_dict())
    world.equal("the vendor was asked once", world.control.count(), asked + 1)


def unfinished(world: World) -> None:
    """A response at work cannot be continued yet."""
    if world.demo:
        return
    client = client_of(world, max_retries=0)
    world.control.ask("hold")
    try:
        stream = client.responses.create(
            model=world.model, input="hold: The tide turns at ten.", stream=True
        )
        id = next(iter(stream)).response.id
        error = world.refused(
            "it is not final",
            openai.ConflictError,
            lambda: client.responses.create(
                model=world.model, input="x", previous_response_id=id
            ),
            status=409,
            code="response_not_final",
            param="previous_response_id",
        )
        world.check("when to come back", error.response.headers.get("retry-after"))
    finally:
        world.control.ask("release")
    for _ in stream:
        pass
    more = client.responses.create(
        model=world.model, input="How many messages?", previous_response_id=id
    )
    wanted = "There are 3 messages so far, 2 of them yours."
    world.equal("and is, once it ended", more.output_text, wanted)


SCENARIOS = [retries, streams_cut, keys, keys_at_work, unfinished]
