// Function tools that the client runs, and structured answers.

import OpenAI from 'openai';
import { clientOf } from './chains.mjs';

const TOOLS = [
  {
    type: 'function',
    name: 'get_tide',
    description: 'When the tide turns in a port.',
    parameters: {
      type: 'object',
      properties: { port: { type: 'string' } },
      required: ['port'],
      additionalProperties: false,
    },
    strict: true,
  },
  {
    type: 'function',
    name: 'add',
    description: 'Adds two numbers.',
    parameters: {
      type: 'object',
      properties: { a: { type: 'number' }, b: { type: 'number' } },
      required: ['a', 'b'],
      additionalProperties: false,
    },
    strict: true,
  },
];
const BOTH = 'call get_tide port=Hull and add a=1 b=2';

const callsOf = (response) =>
  response.output
    .filter((item) => item.type === 'function_call')
    .map((call) => [call.name, JSON.parse(call.arguments)]);

const answer = (call, output) => ({
  type: 'function_call_output',
  call_id: call.call_id,
  output,
});

async function tools(world) {
  const client = clientOf(world);
  const { model } = world;
  const input = 'use get_tide with port=Hull';
  const asked = await client.responses.create({ model, input, tools: TOOLS });
  world.equal('it is called', callsOf(asked), [['get_tide', { port: 'Hull' }]]);
  const done = await client.responses.create({
    model,
    previous_response_id: asked.id,
    input: [answer(asked.output[0], '04:12')],
    tools: TOOLS,
  });
  world.equal('its result is heard', done.output_text, 'get_tide says: 04:12');
  const more = await client.responses.create({
    model,
    previous_response_id: done.id,
    input: 'What did I say first?',
  });
  world.equal('the chain goes on', more.output_text, `You first said: "${input}"`);
  await world.refused(
    'a call without its result stands in the way',
    OpenAI.BadRequestError,
    () => client.responses.create({ model, previous_response_id: asked.id, input: 'never mind' }),
    { status: 400, param: 'input', words: 'No tool output found for function call' },
  );
}

async function parallel(world) {
  const client = clientOf(world);
  const { model } = world;
  const stream = client.responses.stream({ model, input: BOTH, tools: TOOLS });
  const ended = [];
  stream.on('response.function_call_arguments.done', (event) => ended.push(event.name));
  const asked = await stream.finalResponse();
  world.equal('each call ends with its name', ended, ['get_tide', 'add']);
  const wanted = [['get_tide', { port: 'Hull' }], ['add', { a: 1, b: 2 }]];
  world.equal('both are called', callsOf(asked), wanted);
  const results = [answer(asked.output[1], '3'), answer(asked.output[0], '04:12')];
  const done = await client.responses.create({
    model,
    previous_response_id: asked.id,
    input: results,
    tools: TOOLS,
  });
  const said = done.output_text.split('\n').sort();
  world.equal('results in any order', said, ['add says: 3', 'get_tide says: 04:12']);
}

async function stateless(world) {
  const client = clientOf(world);
  const asked = {
    model: world.model,
    tools: TOOLS,
    store: false,
    include: ['reasoning.encrypted_content'],
    reasoning: { effort: 'low' },
  };
  const before = world.demo ? '' : 'think first: ';
  const history = [{ role: 'user', content: `${before}use get_tide with port=Hull` }];
  let made;
  for (let round = 0; round < 3; round += 1) {
    made = await client.responses.create({ ...asked, input: history });
    history.push(...made.output);
    const calls = made.output.filter((item) => item.type === 'function_call');
    if (calls.length === 0) break;
    history.push(...calls.map((call) => answer(call, '04:12')));
  }
  world.equal('the loop ends', made.output_text, 'get_tide says: 04:12');
  history.push({ role: 'user', content: 'How many messages?' });
  const counted = await client.responses.create({ ...asked, input: history });
  const wanted = 'There are 5 messages so far, 2 of them yours.';
  world.equal('nothing is lost or added', counted.output_text, wanted);
}

async function parsed(world) {
  if (world.demo) return;
  const client = clientOf(world);
  const berth = { port: 'Hull', number: 4 };
  const made = await client.responses.parse({
    model: world.model,
    input: `say exactly: ${JSON.stringify(berth)}`,
    text: {
      format: {
        type: 'json_schema',
        name: 'berth',
        strict: true,
        schema: {
          type: 'object',
          properties: { port: { type: 'string' }, number: { type: 'integer' } },
          required: ['port', 'number'],
          additionalProperties: false,
        },
      },
    },
  });
  world.equal('an answer is parsed', made.output_parsed, berth);
}

export const SCENARIOS = [tools, parallel, stateless, parsed];
