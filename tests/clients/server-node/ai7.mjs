// Holds a running server against version 7 of the ai package; see `ai_sdk.mjs` and `harness.mjs`.

import { createOpenAI } from '@ai-sdk/openai-4';
import * as ai from 'ai7';
import { scenariosOf } from './ai_sdk.mjs';
import { main } from './harness.mjs';

const words = {
  instructions: 'instructions',
  steps: ai.isStepCount,
  messages: async (result) => result.responseMessages,
  stream: (run) => run.stream,
  picture: (data) => ({ type: 'file', data, mediaType: 'image/png' }),
};

await main(scenariosOf({ ai, createOpenAI, words }), { name: 'ai', folder: 'ai7' });
