// Holds the stateless Chat Completions route of a running server against the openai package; see
// `harness.mjs`.

import OpenAI from 'openai';
import { main } from './harness.mjs';

const TIDE = 'The tide turns at ten.';
const ANSWER = `You said: "${TIDE}"`;
const FIRST = `You first said: "${TIDE}"`;
const BOTH = 'call get_tide port=Hull and add a=1 b=2';

const tool = (name, types) => ({
  type: 'function',
  function: {
    name,
    description: `Does ${name}.`,
    parameters: {
      type: 'object',
      properties: Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }])),
      required: Object.keys(types),
      additionalProperties: false,
    },
  },
});

const TOOLS = [tool('get_tide', { port: 'string' }), tool('add', { a: 'number', b: 'number' })];

const run = ({ name, arguments: text }) => {
  const given = JSON.parse(text);
  return name === 'add' ? String(given.a + given.b) : `04:12 in ${given.port}`;
};

const clientOf = (world) => new OpenAI({ baseURL: world.baseURL, apiKey: 'any', maxRetries: 0 });

async function plain(world) {
  const { model } = world;
  const completions = clientOf(world).chat.completions;
  const messages = [{ role: 'user', content: TIDE }];
  const first = await completions.create({ model, messages });
  world.equal('it answers', first.choices[0].message.content, ANSWER);
  world.equal('under the name that was asked', first.model, model);
  messages.push(first.choices[0].message, { role: 'user', content: 'What did I say first?' });
  const second = await completions.create({ model, messages });
  world.equal('history is heard', second.choices[0].message.content, FIRST);
}

async function tools(world) {
  const { model } = world;
  const completions = clientOf(world).chat.completions;
  const messages = [{ role: 'user', content: BOTH }];
  const asked = await completions.create({ model, messages, tools: TOOLS });
  const { message, finish_reason: reason } = asked.choices[0];
  world.equal('calls are the reason', reason, 'tool_calls');
  world.equal('two at once', message.tool_calls.map((call) => call.function.name), ['get_tide', 'add']);
  messages.push(message);
  for (const call of message.tool_calls) {
    messages.push({ role: 'tool', tool_call_id: call.id, content: run(call.function) });
  }
  const answer = await completions.create({ model, messages, tools: TOOLS });
  const lines = answer.choices[0].message.content.split('\n').sort();
  world.equal('their results', lines, ['add says: 3', 'get_tide says: 04:12 in Hull']);
}

async function streams(world) {
  const { model } = world;
  const completions = clientOf(world).chat.completions;
  for (const content of [TIDE, BOTH]) {
    const messages = [{ role: 'user', content }];
    const whole = await completions.create({ model, messages, tools: TOOLS });
    const stream = completions.stream({ model, messages, tools: TOOLS });
    const gathered = await stream.finalChatCompletion();
    const [one, other] = [whole.choices[0], gathered.choices[0]];
    world.equal('texts are equal', other.message.content ?? null, one.message.content);
    const calls = (choice) =>
      (choice.message.tool_calls ?? []).map((call) => [call.function.name, JSON.parse(call.function.arguments)]);
    world.equal('calls are equal', calls(other), calls(one));
    world.equal('reasons are equal', other.finish_reason, one.finish_reason);
  }
}

async function errors(world) {
  const completions = clientOf(world).chat.completions;
  const messages = [{ role: 'user', content: 'x' }];
  await world.refused(
    'an unknown model',
    OpenAI.NotFoundError,
    () => completions.create({ model: 'nowhere/none', messages }),
    { status: 404, code: 'model_not_found', param: 'model' },
  );
}

await main([plain, tools, streams, errors]);
