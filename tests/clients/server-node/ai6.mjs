// Holds a running server against version 6 of the ai package; see `ai_sdk.mjs` and `harness.mjs`.

import { createOpenAI } from '@ai-sdk/openai-3';
import * as ai from 'ai6';
import { scenariosOf } from './ai_sdk.mjs';
import { main } from './harness.mjs';

const words = {
  instructions: 'system',
  steps: ai.stepCountIs,
  messages: async (result) => (await result.response).messages,
  stream: (run) => run.fullStream,
  picture: (image) => ({ type: 'image', image, mediaType: 'image/png' }),
};

await main(scenariosOf({ ai, createOpenAI, words }), { name: 'ai', folder: 'ai6' });
