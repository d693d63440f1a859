"""Holds what the codecs write against the models of the official SDKs.

    python check.py --wire NAME [--rendered] [--self-test] SAMPLES

SAMPLES are lines of `{"kind": …, "value": …}` as `worker sdk-samples` writes them, or with `--rendered`
as `worker sdk-rendered` does. Every line is read with the SDK's types, see `sdks.py` and `strict.py`. A
line is *refused* when a type does not accept it, and it has *unknown keys* when all that is wrong
are keys that no type declares. Both must be zero.

With `--self-test`, required keys are then taken from lines that were accepted, one at a time, and
each of the rests must be refused: a check that accepts everything would show.
"""

from __future__ import annotations

import argparse
import copy
import json
import sys
import time
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic_core import SchemaValidator, ValidationError

# The sources lie in the work tree, which stays clean.
sys.dont_write_bytecode = True

from sdks import SDKS, Sdk
from strict import Typed, schema_of, validator

# How many kinds of refusal are shown, and how much of each.
SHOWN = 5
SHOWN_BYTES = 2_000

# From how many lines of each kind the self-test takes keys.
SELF_TEST_LINES = 200

Place = tuple[Any, ...]


class Reader:
    """The validators of one format."""

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self.schemas = {kind: schema_of(declared) for kind, declared in sdk.kinds.items()}
        self.also = {place: schema_of(declared) for place, declared in sdk.also.items()}
        self.closed = self.validator("forbid", mark=False)
        self.open = self.validator("ignore", mark=False)

    def validator(self, unknown: str, *, mark: bool) -> SchemaValidator:
        return validator(
            self.schemas,
            unknown=unknown,
            required=self.sdk.required,
            optional=self.sdk.optional,
            also=self.also,
            keys=self.sdk.keys,
            checks=self.sdk.checks,
            mark=mark,
        )

    def problem(self, line: bytes | str) -> tuple[str, str] | None:
        """What is wrong with a line: "refused" or "unknown keys", and why."""
        try:
            self.closed.validate_json(line, strict=True)
            return None
        except ValidationError as error:
            closed = error
        try:
            self.open.validate_json(line, strict=True)
        except ValidationError as error:
            return "refused", reason(error)
        return "unknown keys", reason(closed)


def reason(error: ValidationError) -> str:
    """The complaints of the member of a union that came closest, on one line."""
    complaints = error.errors(include_url=False, include_context=False, include_input=False)
    # Members of a union put their name into the place. One that got deep into the value, or only
    # misses keys or has too many, is likely to be what was meant.
    groups: dict[tuple[str, ...], list[dict]] = {}
    for complaint in complaints:
        named = tuple(
            part for part in complaint["loc"] if isinstance(part, str) and not part.islower()
        )
        groups.setdefault(named, []).append(complaint)

    def unfitness(complaints: list[dict]) -> int:
        unlike = any(c["type"] not in ("missing", "extra_forbidden") for c in complaints)
        depth = max(len(complaint["loc"]) for complaint in complaints)
        return len(complaints) + 4 * unlike - depth

    closest = min(groups.values(), key=unfitness)
    texts = []
    for complaint in closest[:4]:
        steps = [str(part) for part in complaint["loc"][2:]]
        place = ".".join(step for step in steps if "[" not in step)
        texts.append(f"{place}: {complaint['msg']}")
    more = len(complaints) - len(texts)
    return "; ".join(texts) + (f" (and {more} other complaints)" if more > 0 else "")


def signature(kind: str, verdict: str, why: str) -> tuple[str, str, str]:
    """The same for refusals of one cause, wherever in a line they stand."""
    place, _, complaint = why.partition(": ")
    steps = [step for step in place.split(".") if not step.isdigit()]
    return kind, verdict, ".".join(steps[-2:]) + complaint.partition(";")[0][:60]


def elements(value: Any) -> list[Any]:
    """The value with only one of its elements, for each of them."""
    if isinstance(value, list):
        return [[element] for element in value]
    for key in ("input", "messages", "contents", "output", "content", "steps"):
        if isinstance(value.get(key), list) and len(value[key]) > 1:
            return [{**value, key: [element]} for element in value[key]]
    return []


def shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair, which no terminal takes.
        return json.dumps(value)
    return text


def refusals(reader: Reader, line: bytes) -> Iterator[tuple[str, str, str, str]]:
    """What is wrong in a line, element by element: kind, verdict, reason and JSON."""
    sample = json.loads(line)
    kind, value = sample["kind"], sample["value"]
    found = False
    for candidate in elements(value):
        problem = reader.problem(json.dumps({"kind": kind, "value": candidate}))
        if problem:
            found = True
            yield kind, *problem, shown(candidate)
    if not found:
        problem = reader.problem(line) or ("refused", "only beside the other elements")
        yield kind, *problem, shown(value)


def check(
    wire: str, reader: Reader, lines: list[bytes], show: int
) -> tuple[dict[str, int], list[bytes]]:
    """Reads every line; gives the counts, and the lines that were accepted."""
    counts = {"parsed": 0, "refused": 0, "unknown keys": 0}
    accepted = []
    found: dict[tuple[str, str, str], list[Any]] = {}
    for line in lines:
        try:
            reader.closed.validate_json(line, strict=True)
        except ValidationError:
            verdicts = set()
            for kind, verdict, why, text in refusals(reader, line):
                verdicts.add(verdict)
                entry = found.setdefault(signature(kind, verdict, why), [0, why, text])
                entry[0] += 1
                if len(text) < len(entry[2]):
                    entry[1:] = [why, text]
            counts["refused" if "refused" in verdicts else "unknown keys"] += 1
        else:
            counts["parsed"] += 1
            accepted.append(line)
    most_first = sorted(found.items(), key=lambda item: -item[1][0])
    for (kind, verdict, _), (count, why, text) in most_first[:show]:
        if len(text) > SHOWN_BYTES:
            text = text[:SHOWN_BYTES] + "…"
        print(f"{wire} {kind} {verdict}, {count} times: {why}\n    {text}")
    if len(most_first) > show:
        print(f"{wire}: and {len(most_first) - show} other kinds of refusal")
    return counts, accepted


def unplanted(value: Any, planted: set[str], found: set[str]) -> Any:
    """The value without the keys and items that were made up; those seen go to `found`."""
    if isinstance(value, dict):
        found |= planted & value.keys()
        return {
            key: unplanted(child, planted, found)
            for key, child in value.items()
            if key not in planted
        }
    if isinstance(value, list):
        tags = [child.get("type") if isinstance(child, dict) else None for child in value]
        found |= {tag for tag in tags if tag in planted}
        return [
            unplanted(child, planted, found)
            for tag, child in zip(tags, value)
            if tag not in planted
        ]
    return value


def without_planted(lines: list[bytes], planted: set[str]) -> tuple[list[bytes], set[str]]:
    """The lines without what was made up; a line that has nothing of it stays as it is."""
    found: set[str] = set()
    changed = []
    for line in lines:
        here: set[str] = set()
        sample = unplanted(json.loads(line), planted, here)
        changed.append(json.dumps(sample).encode() if here else line)
        found |= here
    return changed, found


def required_keys(declared: type) -> set[str]:
    """The required keys of a TypedDict, as its source says.

    Its own list is empty when annotations are strings, as they are in most SDKs.
    """
    keys = set()
    inherited: set[str] = set()
    for base in getattr(declared, "__orig_bases__", ()):
        if hasattr(base, "__total__"):
            keys |= required_keys(base)
            inherited |= set(base.__annotations__)
    for name, annotation in declared.__annotations__.items():
        text = getattr(annotation, "__forward_arg__", None) or repr(annotation)
        word = text.partition("[")[0].rpartition(".")[2]
        if word == "Required" or (
            name not in inherited and declared.__total__ and word != "NotRequired"
        ):
            keys.add(name)
    return keys


def declared_keys(value: Any, place: Place, required: dict[str, set[str]]) -> Iterator[Any]:
    """Every required key in what a validator returned: its type, its place and its name."""
    if isinstance(value, Typed):
        for key in required_keys(value.declared) | required.get(value.declared.__name__, set()):
            yield value.declared.__name__, place, key
        for key, child in value.items():
            yield from declared_keys(child, (*place, key), required)
    elif isinstance(value, BaseModel):
        declared = type(value)
        extra = required.get(declared.__name__, set())
        for name, about in declared.model_fields.items():
            key = about.alias or name
            if about.is_required() or name in extra:
                yield declared.__name__, place, key
            child = getattr(value, name)
            yield from declared_keys(child, (*place, key), required)
    elif isinstance(value, dict):
        for key, child in value.items():
            yield from declared_keys(child, (*place, key), required)
    elif isinstance(value, (list, tuple)):
        for index, child in enumerate(value):
            yield from declared_keys(child, (*place, index), required)


def without(sample: Any, place: Place, key: str) -> Any:
    changed = copy.deepcopy(sample)
    at = changed
    for step in place:
        at = at[step]
    del at[key]
    return changed


def self_test(wire: str, reader: Reader, lines: list[bytes]) -> bool:
    """Takes required keys away; gives whether each rest was refused."""
    marking = reader.validator("forbid", mark=True)
    kinds = dict.fromkeys(reader.sdk.kinds, 0)
    tried: set[tuple[str, str, str]] = set()
    missed = []
    for line in lines:
        sample = json.loads(line)
        kind = sample["kind"]
        kinds[kind] += 1
        if kinds[kind] > SELF_TEST_LINES:
            continue
        read = marking.validate_json(line, strict=True)
        for declared, place, key in declared_keys(read, (), reader.sdk.required):
            if key in reader.sdk.optional.get(declared, ()) or declared in reader.sdk.loose:
                continue
            if (kind, declared, key) in tried:
                continue
            tried.add((kind, declared, key))
            rest = json.dumps(without(sample, place, key))
            if reader.problem(rest) is None:
                missed.append(f"{kind}: {declared} without {key} at {place}: {rest[:SHOWN_BYTES]}")
    bare = sorted(kind for kind, count in kinds.items() if count == 0)
    taken = {kind: sum(1 for each in tried if each[0] == kind) for kind in kinds}
    bare += sorted(kind for kind, count in taken.items() if count == 0 and kind not in bare)
    for miss in missed[:SHOWN]:
        print(f"{wire} self-test accepted {miss}")
    for kind in bare:
        print(f"{wire} self-test: no line of kind {kind} to take a key from")
    refused = len(tried) - len(missed)
    print(f"self-test sdk {wire}: keys taken away={len(tried)} refused={refused}")
    return not missed and not bare


def main() -> int:
    parser = argparse.ArgumentParser(description="Read samples with the models of an SDK.")
    parser.add_argument("--wire", required=True, choices=sorted(SDKS))
    parser.add_argument("--rendered", action="store_true", help="rendered requests")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("--show", type=int, default=SHOWN, metavar="N", help="kinds of refusal")
    parser.add_argument("samples", type=argparse.FileType("rb"))
    arguments = parser.parse_args()
    wire = arguments.wire
    started = time.monotonic()
    sdk = SDKS[wire]()
    if arguments.rendered:
        wire += " rendered"
    reader = Reader(sdk.for_rendered() if arguments.rendered else sdk)
    with arguments.samples as samples:
        lines = samples.read().splitlines()
    good = True
    if arguments.rendered:
        lines, found = without_planted(lines, sdk.planted)
        for each in sorted(sdk.planted - found):
            print(f"{wire}: {each} is in no transcript any more; take it from the list")
            good = False
    counts, accepted = check(wire, reader, lines, arguments.show)
    good &= counts["parsed"] == len(lines) > 0
    if arguments.self_test:
        good &= self_test(wire, reader, accepted)
    took = time.monotonic() - started
    if arguments.rendered:
        read = f"rendered={len(lines)} parsed={counts['parsed']}"
        about = f"planted={len(sdk.planted)} adapter={reader.sdk.adapter()}"
    else:
        read = f"samples={len(lines)} parsed={counts['parsed']}"
        about = f"s={took:.1f}"
    wrong = f"refused={counts['refused']} unknown_keys={counts['unknown keys']}"
    print(f"{read} {wrong} {about}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
