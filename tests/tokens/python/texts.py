"""Writes the texts that tokens are counted of, one line of JSON for each.

The languages are Django's translations of its own messages, and as prose the declaration of human
rights, from a folder that is named. The code is Django's own. The rest is generated from fixed
seeds. Every row of the table has two halves: weights are fitted to `fit`, and
checked on `check`. Which half a message is in depends on the English message only, so that no
message is in one half in one language and in the other half in another.
"""

import ast
import base64
import gettext
import hashlib
import html
import json
import random
import re
import sys
from pathlib import Path

import django

LANGUAGES = {
    "English": None,
    "German": "de",
    "Polish": "pl",
    "Finnish": "fi",
    "Turkish": "tr",
    "Russian": "ru",
    "Arabic": "ar",
    "Hindi": "hi",
    "Japanese": "ja",
    "Chinese": "zh_Hans",
    "Korean": "ko",
    "Greek": "el",
    "French": "fr",
    "Spanish": "es",
    "Thai": "th",
    "Hebrew": "he",
    "Swedish": "sv",
    "Dutch": "nl",
    "Italian": "it",
    "Portuguese": "pt_BR",
    "Czech": "cs",
    "Hungarian": "hu",
    "Vietnamese": "vi",
    "Indonesian": "id",
    "Ukrainian": "uk",
    "Persian": "fa",
    "Bengali": "bn",
    "Tamil": "ta",
    "Georgian": "ka",
    "Armenian": "hy",
}

# The files of the declaration.
DECLARATIONS = {
    "English": "eng",
    "German": "deu_1996",
    "Polish": "pol",
    "Finnish": "fin",
    "Turkish": "tur",
    "Russian": "rus",
    "Arabic": "arb",
    "Hindi": "hin",
    "Japanese": "jpn",
    "Chinese": "cmn_hans",
    "Korean": "kor",
    "Greek": "ell_monotonic",
    "French": "fra",
    "Spanish": "spa",
    "Thai": "tha",
    "Hebrew": "heb",
}

# Texts are cut into documents of about so many characters.
DOCUMENT = 2_000

# What a row has of one kind of file, in characters.
MOST = 150_000

ROOT = Path(django.__file__).parent


def half(name):
    return "fit" if hashlib.sha256(name.encode()).digest()[0] % 2 == 0 else "check"


def write(row, part, text):
    print(json.dumps({"row": row, "half": part, "text": text}, ensure_ascii=False))


def documents(row, part, pieces, joint):
    """Pieces as documents of about one length."""
    some, size = [], 0
    for piece in pieces:
        some.append(piece)
        size += len(piece)
        if size >= DOCUMENT:
            write(row, part, joint.join(some))
            some, size = [], 0
    if some:
        write(row, part, joint.join(some))


def messages(locale):
    """English messages and their translations, in a fixed order."""
    found = {}
    for path in sorted(ROOT.glob(f"**/locale/{locale}/LC_MESSAGES/*.mo")):
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog
        for key, text in catalog.items():
            # Plural forms have the number of the form beside the message.
            english = key[0] if isinstance(key, tuple) else key
            english = english.rpartition("\x04")[2]
            if english and text:
                found.setdefault(english, text)
    return sorted(found.items())


def languages():
    for row, locale in LANGUAGES.items():
        pairs = messages(locale or "fr")
        for part in ("fit", "check"):
            own = [
                english if locale is None else text
                for english, text in pairs
                if half(english) == part
            ]
            documents(row, part, own, "\n")


def prose(folder):
    for row, name in DECLARATIONS.items():
        page = (folder / f"{name}.html").read_text("utf-8")
        elements = re.findall(r"<(?:p|h1|h2|li)>(.*?)</(?:p|h1|h2|li)>", page, re.DOTALL)
        paragraphs = [html.unescape(re.sub("<[^>]+>", "", text)).strip() for text in elements]
        documents(f"{row}, prose", "fit", paragraphs[::2], "\n")
        documents(f"{row}, prose", "check", paragraphs[1::2], "\n")


def code():
    kinds = {"Python": ["*.py"], "JavaScript": ["*.js"], "HTML and CSS": ["*.html", "*.css"]}
    for row, patterns in kinds.items():
        paths = sorted(path for pattern in patterns for path in ROOT.rglob(pattern))
        # Names of countries and rules of minified files are no code.
        paths = [path for path in paths if "locale" not in path.parts and ".min." not in path.name]
        for part in ("fit", "check"):
            own = [path for path in paths if half(path.name) == part]
            random.Random(1).shuffle(own)
            left = MOST
            for path in own:
                if left <= 0:
                    break
                text = path.read_text("utf-8")[:20_000]
                left -= len(text)
                documents(row, part, text.splitlines(), "\n")


def outline(path):
    """What tools answer about a file: names, lines and sizes."""
    text = path.read_text("utf-8")
    defined = [
        {
            "name": node.name,
            "line": node.lineno,
            "end": node.end_lineno,
            "arguments": [argument.arg for argument in node.args.args],
            "documented": ast.get_docstring(node) is not None,
            "returns": None,
        }
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
    ]
    return {"path": str(path.relative_to(ROOT)), "size": len(text), "functions": defined[:12]}


def documents_of_json():
    paths = [path for path in sorted(ROOT.rglob("*.py")) if "locale" not in path.parts]
    random.Random(2).shuffle(paths)
    for number, path in enumerate(paths[:240]):
        indent = 2 if number % 3 == 0 else None
        separators = (",", ":") if number % 3 == 1 else None
        write("JSON", half(path.name), json.dumps(outline(path), indent=indent, separators=separators))


def noise(name, size):
    """Bytes that look random and are the same everywhere."""
    blocks = (hashlib.sha256(f"{name}/{block}".encode()).digest() for block in range(size // 32 + 1))
    return b"".join(blocks)[:size]


def encoded():
    for number in range(60):
        part = "fit" if number % 2 == 0 else "check"
        raw = noise(f"base64 {number}", 900 + 37 * number)
        text = base64.b64encode(raw).decode()
        if number % 4 >= 2:
            text = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
        write("base64", part, text)
    for number in range(60):
        part = "fit" if number % 2 == 0 else "check"
        raw = noise(f"hex {number}", 32 * 24)
        lines = [raw[at : at + 32].hex() for at in range(0, len(raw), 32)]
        if number % 4 >= 2:
            lines = [f"{line[:40]} {word}.py" for line, word in zip(lines, ("views", "forms", "urls") * 8)]
        write("hex digests", part, "\n".join(lines))


def numbers(rng):
    """A table of one of the shapes that tools print."""
    shape = rng.randrange(4)
    lines = []
    for line in range(60):
        whole = [rng.randrange(10 ** rng.randrange(1, 8)) for _ in range(6)]
        parts = [f"{rng.uniform(-1, 1) * 10 ** rng.randrange(1, 5):.{rng.randrange(1, 5)}f}" for _ in range(3)]
        if shape == 0:
            lines.append(",".join([*map(str, whole), *parts]))
        elif shape == 1:
            lines.append("\t".join([*parts, *map(str, whole)]))
        elif shape == 2:
            lines.append("".join(f"{cell:>10}" for cell in [*whole, *parts]))
        else:
            time = f"2024-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02} {rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}"
            lines.append(f"| {time} | " + " | ".join([*parts, *map(str, whole[:3])]) + " |")
    return "\n".join(lines)


def tables():
    for number in range(60):
        part = "fit" if number % 4 < 2 else "check"
        write("digit tables", part, numbers(random.Random(1_000 + number)))


def symbols():
    """Check lists, boxes, arrows and pictures, as command lines print them."""
    pictures = "✅❌🚀🔥🎉💡📦🐛🔧📝👍🙏😀😂🤖🦀🌍⚡"
    for number in range(40):
        part = "fit" if number % 2 == 0 else "check"
        rng = random.Random(2_000 + number)
        lines = []
        for line in range(25):
            words = " ".join(rng.choices(("build", "tests", "docs", "release", "lint"), k=2))
            kind = rng.randrange(4)
            if kind == 0:
                lines.append(f"{rng.choice(pictures)} {words}")
            elif kind == 1:
                lines.append("│ " + words + " │ " + "└" + "─" * rng.randrange(1, 6) + "┘")
            elif kind == 2:
                lines.append(f"{words} → {words} — “{words}”…")
            else:
                lines.append("• " + words + " ≤ ± × " + rng.choice(pictures))
        write("symbols", part, "\n".join(lines))


def main():
    sys.stdout.reconfigure(encoding="utf-8")
    languages()
    prose(Path(sys.argv[1]))
    code()
    documents_of_json()
    encoded()
    tables()
    symbols()


main()
