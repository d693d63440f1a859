"""Counts the tokens of texts with Mistral's vocabulary; one number for each line of JSON."""

import json
import sys
from pathlib import Path

import mistral_common
from mistral_common.tokens.tokenizers.tekken import Tekkenizer


def main():
    data = Path(mistral_common.__file__).parent / "data"
    vocabulary = Tekkenizer.from_file(data / "tekken_240911.json")
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            text = json.loads(line)["text"]
            print(len(vocabulary.encode(text, bos=False, eos=False)))


main()
