// Holds a running server against the @openai/agents package; see `harness.mjs` and `tasks.mjs`.

import {
  Agent,
  MaxTurnsExceededError,
  MemorySession,
  OpenAIProvider,
  Runner,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { z } from 'zod';
import { main } from './harness.mjs';
import * as tasks from './tasks.mjs';

// Nothing leaves the machine.
setTracingDisabled(true);

const COUNTED = 'There are 7 messages so far, 2 of them yours.';
const user = (content) => ({ role: 'user', content });

/** An agent, and how it is run. */
class Desk {
  constructor(world, { settings = {}, model = world.model, ...options } = {}) {
    const openAIClient = new OpenAI({
      baseURL: world.baseURL,
      apiKey: 'not-needed-on-loopback',
      maxRetries: 0,
    });
    this.calls = [];
    this.runner = new Runner({
      modelProvider: new OpenAIProvider({ openAIClient, useResponses: true }),
      tracingDisabled: true,
    });
    this.agent = new Agent({
      name: 'Harbour',
      instructions: tasks.INSTRUCTIONS,
      model,
      modelSettings: { reasoning: { effort: 'low', summary: 'auto' }, ...settings },
      tools: this.tools(),
      ...options,
    });
  }

  tools() {
    return [
      tool({
        name: 'get_tide',
        description: 'When the tide turns in a port.',
        parameters: z.object({ port: z.string() }),
        execute: async ({ port }) => {
          this.calls.push(['get_tide', port]);
          return `04:12 in ${port}`;
        },
      }),
      tool({
        name: 'add',
        description: 'Adds two numbers.',
        parameters: z.object({ a: z.number(), b: z.number() }),
        execute: async ({ a, b }) => {
          this.calls.push(['add', a, b]);
          return String(a + b);
        },
      }),
    ];
  }

  run(input, options = {}) {
    return this.runner.run(this.agent, input, { maxTurns: tasks.MOST_CALLS, ...options });
  }
}

async function tools(world) {
  const desk = new Desk(world);
  const done = await desk.run(tasks.ASKED);
  world.equal('the tool ran once', desk.calls, [['get_tide', 'Hull']]);
  world.equal('the answer is its result', done.finalOutput, tasks.SAID);
  if (!world.demo) await tasks.reasoningAsked(world);
}

/** A call that the model made without reasoning, with reasoning on. */
async function withoutReasoning(world) {
  if (world.demo) return;
  const desk = new Desk(world);
  const before = await world.control.count();
  const done = await desk.run(tasks.WITHOUT_REASONING);
  world.equal('the tool ran once', desk.calls, [['get_tide', 'Hull']]);
  world.equal('the answer is its result', done.finalOutput, tasks.SAID);
  await tasks.askedTimes(world, before, 2);
  const wanted = tasks.WITHOUT_REASONING_RECEIVED;
  await tasks.receivedExactly(world, 'call and result arrive as such', wanted);
}

/** Two rounds of calls in one run; `how` is told in the checks. */
async function twoRounds(world, how, settings) {
  const desk = new Desk(world, { settings });
  const before = await world.control.count();
  const done = await desk.run(tasks.STEPS);
  world.equal(`${how}: each tool ran once`, desk.calls, [['get_tide', 'Hull'], ['add', 1, 2]]);
  world.equal(`${how}: the answer is the last result`, done.finalOutput, tasks.STEPS_SAID);
  await tasks.askedTimes(world, before, 3);
  await tasks.receivedExactly(world, `${how}: calls and results as such`, tasks.STEPS_RECEIVED);
  await tasks.thoughtsReturned(world, `${how}: with the reasoning of both rounds`, 2);
  const more = await desk.run([...done.history, user('How many messages?')]);
  world.equal(`${how}: the history goes on`, more.finalOutput, COUNTED);
}

/** By default the SDK sends the items of each round back, with the ids that they had. */
async function steps(world) {
  if (world.demo) return;
  await twoRounds(world, 'stored', {});
}

/** Nothing is stored: reasoning goes back sealed. */
async function stateless(world) {
  if (world.demo) return;
  const providerData = { include: ['reasoning.encrypted_content'] };
  await twoRounds(world, 'sealed', { store: false, providerData });
}

async function parallel(world) {
  const desk = new Desk(world);
  const before = world.demo ? 0 : await world.control.count();
  const done = await desk.run(tasks.BOTH);
  world.equal('both ran', desk.calls.toSorted(), [['add', 1, 2], ['get_tide', 'Hull']]);
  const said = done.finalOutput.split('\n').toSorted();
  world.equal('both results are in the answer', said, tasks.BOTH_SAID);
  if (world.demo) return;
  await tasks.askedTimes(world, before, 2);
  await tasks.receivedExactly(world, 'calls and results arrive as such', tasks.BOTH_RECEIVED);
  await tasks.thoughtsReturned(world, 'with their reasoning', 1);
}

/** The server keeps the history: each request has only what is new. */
async function chained(world) {
  const one = await new Desk(world).run(tasks.ASKED);
  const desk = new Desk(world);
  const next = { previousResponseId: one.lastResponseId };
  const two = await desk.run('What did I say first?', next);
  world.equal('the next turn knows the first', two.finalOutput, tasks.FIRST);
  if (world.demo) return;
  const before = await world.control.count();
  const three = await desk.run(tasks.STEPS, { previousResponseId: two.lastResponseId });
  world.equal('two rounds in a continued turn', three.finalOutput, tasks.STEPS_SAID);
  await tasks.askedTimes(world, before, 3);
  const wanted = [
    `user: ${tasks.ASKED}`,
    'call: get_tide {"port":"Hull"}',
    'result: 04:12 in Hull',
    `assistant: ${tasks.SAID}`,
    'user: What did I say first?',
    `assistant: ${tasks.FIRST}`,
    ...tasks.STEPS_RECEIVED,
  ];
  await tasks.receivedExactly(world, 'the vendor receives all of it in order', wanted);
}

/** A session of the SDK keeps the items and sends all of them. */
async function session(world) {
  const desk = new Desk(world);
  const kept = new MemorySession();
  const asked = world.demo ? tasks.ASKED : tasks.STEPS;
  const one = await desk.run(asked, { session: kept });
  world.equal('it answers', one.finalOutput, world.demo ? tasks.SAID : tasks.STEPS_SAID);
  const two = await desk.run('How many messages?', { session: kept });
  const wanted = world.demo ? 'There are 5 messages so far, 2 of them yours.' : COUNTED;
  world.equal('nothing is lost or said twice', two.finalOutput, wanted);
  if (!world.demo) {
    const heard = [
      ...tasks.STEPS_RECEIVED,
      `assistant: ${tasks.STEPS_SAID}`,
      'user: How many messages?',
    ];
    await tasks.receivedExactly(world, 'calls and results arrive as such', heard);
  }
  const three = await desk.run('What did I say first?', { session: kept });
  world.equal('the third turn knows the first', three.finalOutput, `You first said: "${asked}"`);
}

async function streamed(world) {
  const desk = new Desk(world);
  const asked = world.demo ? tasks.ASKED : tasks.STEPS;
  const run = await desk.run(asked, { stream: true });
  const texts = [];
  const names = [];
  for await (const event of run) {
    if (event.type === 'raw_model_stream_event' && event.data.type === 'output_text_delta') {
      texts.push(event.data.delta);
    }
    if (event.type === 'run_item_stream_event' && event.name === 'tool_called') {
      names.push(event.item.rawItem.name);
    }
  }
  await run.completed;
  const said = world.demo ? tasks.SAID : tasks.STEPS_SAID;
  world.equal('text is streamed', texts.join(''), said);
  world.check('in several pieces', texts.length > 1, texts);
  world.equal('calls are streamed', names, world.demo ? ['get_tide'] : ['get_tide', 'add']);
  world.equal('the answer is the last result', run.finalOutput, said);
  if (world.demo) return;
  await tasks.receivedExactly(world, 'calls and results arrive as such', tasks.STEPS_RECEIVED);
  const more = await desk.run([...run.history, user('How many messages?')]);
  world.equal('what was streamed can be continued', more.finalOutput, COUNTED);
}

/** One agent hands the conversation to another; a handoff is a call as well. */
async function handoffs(world) {
  const desk = new Desk(world);
  const instructions = 'You are the pilot.';
  const pilot = new Agent({ name: 'Pilot', instructions, model: world.model });
  desk.agent = new Agent({
    name: 'Desk',
    instructions: 'Hand over.',
    model: world.model,
    handoffs: [pilot],
  });
  const done = await desk.run('call transfer_to_Pilot');
  world.equal('the other one answers', done.lastAgent.name, 'Pilot');
  world.check('from the result of the call', done.finalOutput.includes('Pilot'), done.finalOutput);
}

async function structured(world) {
  if (world.demo) return;
  const outputType = z.object({ port: z.string(), number: z.number() });
  // Some models take no schema for their answers beside functions.
  const desk = new Desk(world, { outputType, tools: [] });
  const done = await desk.run(`say exactly: ${JSON.stringify(tasks.BERTH)}`);
  world.equal('the answer is typed', done.finalOutput, tasks.BERTH);
}

async function picture(world) {
  const desk = new Desk(world);
  const text = 'What is in this picture?';
  const asked = user([
    { type: 'input_text', text },
    { type: 'input_image', image: tasks.PNG_URL },
  ]);
  if (world.demo) return tasks.pictureRefused(world, desk.run([asked]));
  const done = await desk.run([asked]);
  world.equal('it answers', done.finalOutput, `You said: "${text}"`);
  await tasks.pictureReceived(world);
  const more = await desk.run([...done.history, user('What did I say first?')]);
  world.equal('it stays in the history', more.finalOutput, `You first said: "${text}"`);
  await tasks.pictureReceived(world);
}

/** The limit of steps of the SDK holds: a run that needs more of them is ended. */
async function limited(world) {
  const desk = new Desk(world);
  const work = () => desk.run(tasks.ASKED, { maxTurns: 1 });
  await world.raises('a limit of one step is reached', MaxTurnsExceededError, work);
}

async function errors(world) {
  const unknown = () => new Desk(world, { model: 'nobody/nothing' }).run('x');
  await world.refused('an unknown model', OpenAI.NotFoundError, unknown, {
    status: 404,
    code: 'model_not_found',
    param: 'model',
  });
  const lost = () => new Desk(world).run('x', { previousResponseId: tasks.NOBODY });
  await world.refused('an unknown response to continue', OpenAI.BadRequestError, lost, {
    status: 400,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  });
  if (world.demo) return;
  await world.control.ask('fault invalid_request 100');
  try {
    const work = () => new Desk(world).run('x');
    await world.raises('a request that the vendor refuses', OpenAI.BadRequestError, work);
  } finally {
    await world.control.ask('heal');
  }
}

const SCENARIOS = [
  tools,
  withoutReasoning,
  steps,
  stateless,
  parallel,
  chained,
  session,
  streamed,
  handoffs,
  structured,
  picture,
  limited,
  errors,
];

await main(SCENARIOS, { name: '@openai/agents', folder: '@openai/agents' });
