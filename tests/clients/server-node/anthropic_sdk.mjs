// Holds the stateless Messages route of a running server against the @anthropic-ai/sdk package; see
// `harness.mjs`.

import Anthropic from '@anthropic-ai/sdk';
import { main } from './harness.mjs';

const TIDE = 'The tide turns at ten.';
const ANSWER = `You said: "${TIDE}"`;
const FIRST = `You first said: "${TIDE}"`;
const BOTH = 'call get_tide port=Hull and add a=1 b=2';

const tool = (name, types) => ({
  name,
  description: `Does ${name}.`,
  input_schema: {
    type: 'object',
    properties: Object.fromEntries(Object.entries(types).map(([key, type]) => [key, { type }])),
    required: Object.keys(types),
  },
});

const TOOLS = [tool('get_tide', { port: 'string' }), tool('add', { a: 'number', b: 'number' })];

const run = ({ name, input }) =>
  name === 'add' ? String(input.a + input.b) : `04:12 in ${input.port}`;

const clientOf = (world) =>
  new Anthropic({ baseURL: world.baseURL.replace(/\/v1$/, ''), apiKey: 'any', maxRetries: 0 });

const textOf = (message) =>
  message.content
    .filter((block) => block.type === 'text')
    .map((block) => block.text)
    .join('');

async function plain(world) {
  const { model } = world;
  const client = clientOf(world);
  const messages = [{ role: 'user', content: TIDE }];
  const first = await client.messages.create({ model, max_tokens: 1000, messages });
  world.equal('it answers', textOf(first), ANSWER);
  world.equal('and is done', first.stop_reason, 'end_turn');
  world.equal('under the name that was asked', first.model, model);
  messages.push(
    { role: 'assistant', content: first.content },
    { role: 'user', content: 'What did I say first?' },
  );
  const second = await client.messages.create({ model, max_tokens: 1000, messages });
  world.equal('history is heard', textOf(second), FIRST);
  const counted = await client.messages.countTokens({ model, messages, tools: TOOLS });
  world.check('tokens are counted', counted.input_tokens > 10, counted);
}

async function tools(world) {
  const { model } = world;
  const client = clientOf(world);
  const think = world.demo ? '' : 'think first: ';
  const options = { model, max_tokens: 8000, tools: TOOLS };
  if (!world.demo) options.thinking = { type: 'adaptive' };
  const messages = [{ role: 'user', content: `${think}${BOTH}` }];
  const asked = await client.messages.create({ ...options, messages });
  world.equal('calls are the reason', asked.stop_reason, 'tool_use');
  const calls = asked.content.filter((block) => block.type === 'tool_use');
  world.equal('two at once', calls.map((call) => call.name), ['get_tide', 'add']);
  const results = calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: run(call) }));
  messages.push({ role: 'assistant', content: asked.content }, { role: 'user', content: results });
  const answer = await client.messages.create({ ...options, messages });
  const lines = textOf(answer).split('\n').sort();
  world.equal('their results', lines, ['add says: 3', 'get_tide says: 04:12 in Hull']);
}

async function streams(world) {
  const { model } = world;
  const client = clientOf(world);
  for (const content of [TIDE, BOTH]) {
    const options = { model, max_tokens: 8000, tools: TOOLS, messages: [{ role: 'user', content }] };
    const whole = await client.messages.create(options);
    const gathered = await client.messages.stream(options).finalMessage();
    const shown = (message) =>
      message.content.map((block) => [block.type, block.text ?? null, block.input ?? null]);
    world.equal('blocks are equal', shown(gathered), shown(whole));
    world.equal('reasons are equal', gathered.stop_reason, whole.stop_reason);
    world.equal('usage is equal', gathered.usage.output_tokens, whole.usage.output_tokens);
  }
}

async function errors(world) {
  const client = clientOf(world);
  const messages = [{ role: 'user', content: 'x' }];
  const error = await world.raises('an unknown model', Anthropic.NotFoundError, () =>
    client.messages.create({ model: 'nowhere/none', max_tokens: 9, messages }),
  );
  world.equal('its type', error.error.error.type, 'not_found_error');
}

await main([plain, tools, streams, errors], { name: 'anthropic-node', folder: '@anthropic-ai/sdk' });
