"""Function tools that the client runs, and structured answers, through the openai package."""

from __future__ import annotations

import json
from typing import Any

import openai
from harness import World
from openai_chains import client_of
from pydantic import BaseModel

TIDE = {
    "type": "function",
    "name": "get_tide",
    "description": "When the tide turns in a port.",
    "parameters": {
        "type": "object",
        "properties": {"port": {"type": "string"}},
        "required": ["port"],
        "additionalProperties": False,
    },
    "strict": True,
}
ADD = {
    "type": "function",
    "name": "add",
    "description": "Adds two numbers.",
    "parameters": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
    "strict": True,
}
TOOLS = [TIDE, ADD]
BOTH = "call get_tide port=Hull and add a=1 b=2"


def calls_of(response: Any) -> list[tuple[str, Any]]:
    calls = [item for item in response.output if item.type == "function_call"]
    return [(call.name, json.loads(call.arguments)) for call in calls]


def answer(call: Any, output: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call.call_id, "output": output}


def tools(world: World) -> None:
    client = client_of(world)
    asked = client.responses.create(
        model=world.model, input="use get_tide with port=Hull", tools=TOOLS
    )
    world.equal("it is called", calls_of(asked), [("get_tide", {"port": "Hull"})])
    world.equal("the response is complete", asked.status, "completed")
    world.equal("tools are echoed", [tool.name for tool in asked.tools], ["get_tide", "add"])
    done = client.responses.create(
        model=world.model,
        previous_response_id=asked.id,
        input=[answer(asked.output[0], "04:12")],
        tools=TOOLS,
    )
    world.equal("its result is heard", done.output_text, "get_tide says: 04:12")
    if not world.demo:
        lines = world.control.heard()["lines"]
        wanted = [
            "user: use get_tide with port=Hull",
            'call: get_tide {"port":"Hull"}',
            "result: 04:12",
        ]
        world.equal("as a round", lines, wanted)
    more = client.responses.create(
        model=world.model, previous_response_id=done.id, input="What did I say first?"
    )
    wanted = 'You first said: "use get_tide with port=Hull"'
    world.equal("and the chain goes on", more.output_text, wanted)
    branch = client.responses.create(
        model=world.model,
        previous_response_id=asked.id,
        input=[answer(asked.output[0], [{"type": "input_text", "text": "05:30"}])],
        tools=TOOLS,
    )
    world.equal("a branch has its own result", branch.output_text, "get_tide says: 05:30")


def parallel(world: World) -> None:
    client = client_of(world)
    asked = client.responses.create(model=world.model, input=BOTH, tools=TOOLS)
    wanted = [("get_tide", {"port": "Hull"}), ("add", {"a": 1, "b": 2})]
    world.equal("both are called", calls_of(asked), wanted)
    ids = [call.call_id for call in asked.output]
    world.equal("with ids of their own", len(set(ids)), 2)
    results = [answer(asked.output[1], "3"), answer(asked.output[0], "04:12")]
    done = client.responses.create(
        model=world.model, previous_response_id=asked.id, input=results, tools=TOOLS
    )
    said = sorted(done.output_text.split("\n"))
    world.equal("in any order", said, ["add says: 3", "get_tide says: 04:12"])
    one = client.responses.create(
        model=world.model,
        previous_response_id=done.id,
        input="call add a=2 b=2",
        tools=TOOLS,
        parallel_tool_calls=False,
    )
    world.equal("and again in the same chain", calls_of(one), [("add", {"a": 2, "b": 2})])
    half = client.responses.create(model=world.model, input=BOTH, tools=TOOLS)
    world.refused(
        "half of the results is not enough",
        openai.BadRequestError,
        lambda: client.responses.create(
            model=world.model,
            previous_response_id=half.id,
            input=[answer(half.output[0], "04:12")],
            tools=TOOLS,
        ),
        status=400,
        code=None,
        param="input",
        words=f"No tool output found for function call {half.output[1].call_id}",
    )


def streamed_calls(world: World) -> None:
    client = client_of(world)
    with client.responses.stream(model=world.model, input=BOTH, tools=TOOLS) as stream:
        events = list(stream)
        final = stream.get_final_response()
    ended = [event for event in events if event.type == "response.function_call_arguments.done"]
    names = [event.name for event in ended]
    world.equal("each call ends with its name", names, ["get_tide", "add"])
    for event in ended:
        deltas = [
            other.delta
            for other in events
            if other.type == "response.function_call_arguments.delta"
            and other.item_id == event.item_id
        ]
        world.equal("its deltas add up", "".join(deltas), event.arguments)
    world.equal("the end has both", len(calls_of(final)), 2)
    with client.responses.stream(
        model=world.model,
        previous_response_id=final.id,
        input=[answer(call, "7") for call in final.output],
        tools=TOOLS,
    ) as stream:
        done = stream.get_final_response()
    world.equal("results are heard", done.output_text, "get_tide says: 7\nadd says: 7")


def choices(world: World) -> None:
    client = client_of(world)

    def ask(text: str, choice: Any) -> Any:
        return client.responses.create(
            model=world.model, input=text, tools=TOOLS, tool_choice=choice
        )

    none = ask("use get_tide with port=Hull", "none")
    world.equal("none is none", calls_of(none), [])
    world.equal("and is echoed", none.tool_choice, "none")
    forced = ask("port=Hull", "required")
    world.equal("required is at least one", [name for name, _ in calls_of(forced)], ["get_tide"])
    named = ask("a=1 b=2", {"type": "function", "name": "add"})
    world.equal("a name is that one", calls_of(named), [("add", {"a": 1, "b": 2})])


def stateless(world: World) -> None:
    """A loop whose history the client keeps, with reasoning that only its vendor can read."""
    client = client_of(world)
    asked = {
        "model": world.model,
        "tools": TOOLS,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low"},
    }
    before = "" if world.demo else "think first: "
    history: list[Any] = [{"role": "user", "content": f"{before}use get_tide with port=Hull"}]
    for _ in range(3):
        made = client.responses.create(**asked, input=history)
        history += made.output
        calls = [item for item in made.output if item.type == "function_call"]
        if not calls:
            break
        history += [answer(call, "04:12") for call in calls]
    world.equal("the loop ends", made.output_text, "get_tide says: 04:12")
    kinds = [item.type for item in history if hasattr(item, "type")]
    if world.demo or world.control.upstream == "openai-chat":
        world.equal("calls and answer", kinds, ["function_call", "message"])
    else:
        # What else a vendor has signed may come as reasoning, too.
        others = [kind for kind in kinds if kind != "reasoning"]
        world.equal("calls and answer", others, ["function_call", "message"])
        world.equal("reasoning first", kinds[0], "reasoning")
        world.check("the seal is there", history[1].encrypted_content, history[1])
    history.append({"role": "user", "content": "How many messages?"})
    counted = client.responses.create(**asked, input=history)
    wanted = "There are 5 messages so far, 2 of them yours."
    world.equal("nothing is lost or added", counted.output_text, wanted)


def open_calls(world: World) -> None:
    client = client_of(world)
    asked = client.responses.create(
        model=world.model, input="use get_tide with port=Hull", tools=TOOLS
    )
    call = asked.output[0].call_id
    go_on = {"model": world.model, "previous_response_id": asked.id, "input": "never mind"}
    world.refused(
        "a call without its result stands in the way",
        openai.BadRequestError,
        lambda: client.responses.create(**go_on),
        status=400,
        code=None,
        param="input",
        words=f"No tool output found for function call {call}",
    )
    closed = client.responses.create(**go_on, extra_body={"throughline": {"on_open_calls": "close"}})
    world.equal("unless it is to be closed", closed.output_text, 'You said: "never mind"')
    done = client.responses.create(
        model=world.model, previous_response_id=asked.id, input=[answer(asked.output[0], "04:12")]
    )
    world.equal("the response itself stays open", done.output_text, "get_tide says: 04:12")


class Berth(BaseModel):
    port: str
    number: int


class AddNumbers(BaseModel):
    a: float
    b: float


def parsed(world: World) -> None:
    client = client_of(world)
    tool = openai.pydantic_function_tool(AddNumbers, name="add")
    asked = client.responses.parse(model=world.model, input="call add a=1 b=2", tools=[tool])
    found = asked.output[0].parsed_arguments
    world.equal("arguments are parsed", found, AddNumbers(a=1, b=2))
    if world.demo:
        return
    berth = Berth(port="Hull", number=4)
    said = f"say exactly: {berth.model_dump_json()}"
    made = client.responses.parse(model=world.model, input=said, text_format=Berth)
    world.equal("an answer is parsed", made.output_parsed, berth)
    world.equal("its format is echoed", made.text.format.type, "json_schema")
    with client.responses.stream(
        model=world.model, input=said, text_format=Berth, previous_response_id=made.id
    ) as stream:
        final = stream.get_final_response()
    world.equal("streamed too", final.output_parsed, berth)


SCENARIOS = [tools, parallel, streamed_calls, choices, stateless, open_calls, parsed]
