"""Holds a running server against the openai package; see `harness.py`."""

import sys

import openai_chains
import openai_compaction
import openai_conversations
import openai_errors
import openai_retries
import openai_streams
import openai_tools
import openai_webhooks
from harness import main

MODULES = [
    openai_chains,
    openai_streams,
    openai_tools,
    openai_errors,
    openai_retries,
    openai_compaction,
    openai_conversations,
    openai_webhooks,
]

if __name__ == "__main__":
    sys.exit(main("openai", [scenario for module in MODULES for scenario in module.SCENARIOS]))
