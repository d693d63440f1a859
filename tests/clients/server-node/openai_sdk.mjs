// Holds a running server against the openai package; see `harness.mjs`.

import * as chains from './chains.mjs';
import * as conversations from './conversations.mjs';
import * as errors from './errors.mjs';
import { main } from './harness.mjs';
import * as streams from './streams.mjs';
import * as tools from './tools.mjs';
import * as webhooks from './webhooks.mjs';

const MODULES = [chains, streams, tools, errors, conversations, webhooks];

await main(MODULES.flatMap((each) => each.SCENARIOS));
