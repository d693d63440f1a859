// Scenarios for the ai package with @ai-sdk/openai, in the versions of `ai6.mjs` and `ai7.mjs`.

import OpenAI from 'openai';
import { z } from 'zod';
import * as tasks from './tasks.mjs';

const REASONING = { reasoningEffort: 'low', reasoningSummary: 'auto', forceReasoning: true };

/** Scenarios for one version; `words` has what versions call by different names. */
export function scenariosOf(sdk) {
  const { ai, createOpenAI, words } = sdk;

  /** An agent, and how it is run. */
  class Desk {
    constructor(world, { model = world.model, tools = true, ...options } = {}) {
      const provider = createOpenAI({ baseURL: world.baseURL, apiKey: 'not-needed-on-loopback' });
      this.calls = [];
      // The name of a model tells this SDK whether it reasons. It knows no other vendors' names, so
      // `forceReasoning` says it.
      this.asked = {
        model: provider.responses(model),
        [words.instructions]: tasks.INSTRUCTIONS,
        stopWhen: words.steps(tasks.MOST_CALLS),
        maxRetries: 0,
        providerOptions: { openai: { ...REASONING, ...options } },
        ...(tools ? { tools: this.tools() } : {}),
      };
    }

    tools() {
      return {
        get_tide: ai.tool({
          description: 'When the tide turns in a port.',
          inputSchema: z.object({ port: z.string() }),
          execute: async ({ port }) => {
            this.calls.push(['get_tide', port]);
            return `04:12 in ${port}`;
          },
        }),
        add: ai.tool({
          description: 'Adds two numbers.',
          inputSchema: z.object({ a: z.number(), b: z.number() }),
          execute: async ({ a, b }) => {
            this.calls.push(['add', a, b]);
            return String(a + b);
          },
        }),
      };
    }

    run(input, more = {}) {
      const said = typeof input === 'string' ? { prompt: input } : { messages: input };
      return ai.generateText({ ...this.asked, ...said, ...more });
    }
  }

  const user = (content) => ({ role: 'user', content });
  const messagesOf = words.messages;

  async function tools(world) {
    const desk = new Desk(world);
    const done = await desk.run(tasks.ASKED);
    world.equal('the tool ran once', desk.calls, [['get_tide', 'Hull']]);
    world.equal('the answer is its result', done.text, tasks.SAID);
    world.equal('nothing is warned of', done.warnings ?? [], []);
    if (!world.demo) await tasks.reasoningAsked(world);
  }

  /** A call that the model made without reasoning, with reasoning on. */
  async function withoutReasoning(world) {
    if (world.demo) return;
    for (const [how, options] of [['references', {}], ['sealed', { store: false }]]) {
      const desk = new Desk(world, options);
      const before = await world.control.count();
      const done = await desk.run(tasks.WITHOUT_REASONING);
      world.equal(`${how}: the tool ran once`, desk.calls, [['get_tide', 'Hull']]);
      world.equal(`${how}: the answer is its result`, done.text, tasks.SAID);
      await tasks.askedTimes(world, before, 2);
      const wanted = tasks.WITHOUT_REASONING_RECEIVED;
      await tasks.receivedExactly(world, `${how}: call and result as such`, wanted);
    }
  }

  /** Two rounds of calls in one run; `how` is the way in which earlier items go back. */
  async function twoRounds(world, how, options) {
    const desk = new Desk(world, options);
    const before = await world.control.count();
    const done = await desk.run(tasks.STEPS);
    world.equal(`${how}: each tool ran once`, desk.calls, [['get_tide', 'Hull'], ['add', 1, 2]]);
    world.equal(`${how}: the answer is the last result`, done.text, tasks.STEPS_SAID);
    world.equal(`${how}: steps of the loop`, done.steps.length, 3);
    await tasks.askedTimes(world, before, 3);
    await tasks.receivedExactly(world, `${how}: calls and results as such`, tasks.STEPS_RECEIVED);
    await tasks.thoughtsReturned(world, `${how}: with the reasoning of both rounds`, 2);
    const history = [user(tasks.STEPS), ...(await messagesOf(done)), user('How many messages?')];
    const more = await desk.run(history);
    const wanted = 'There are 7 messages so far, 2 of them yours.';
    world.equal(`${how}: the history goes on`, more.text, wanted);
  }

  /** By default the SDK sends references to items that the server has stored. */
  async function steps(world) {
    if (world.demo) return;
    await twoRounds(world, 'references', {});
  }

  /** Nothing is stored: the SDK sends whole items, reasoning sealed. */
  async function stateless(world) {
    if (world.demo) return;
    await twoRounds(world, 'sealed', { store: false });
  }

  async function parallel(world) {
    for (const [how, options] of [['references', {}], ['sealed', { store: false }]]) {
      const desk = new Desk(world, options);
      const before = world.demo ? 0 : await world.control.count();
      const done = await desk.run(tasks.BOTH);
      world.equal(`${how}: both ran`, desk.calls.toSorted(), [['add', 1, 2], ['get_tide', 'Hull']]);
      const said = done.text.split('\n').toSorted();
      world.equal(`${how}: both results are in the answer`, said, tasks.BOTH_SAID);
      if (world.demo) continue;
      await tasks.askedTimes(world, before, 2);
      await tasks.receivedExactly(world, `${how}: calls and results as such`, tasks.BOTH_RECEIVED);
      await tasks.thoughtsReturned(world, `${how}: with their reasoning`, 1);
    }
  }

  /** The server keeps the history: each turn has only what is new. */
  async function chained(world) {
    const one = await new Desk(world).run(tasks.ASKED);
    const previousResponseId = one.finalStep?.response?.id ?? one.response.id;
    const known = previousResponseId?.startsWith('resp_');
    world.check('a response has an id', known, previousResponseId);
    const desk = new Desk(world, { previousResponseId });
    const two = await desk.run('What did I say first?');
    world.equal('the next turn knows the first', two.text, tasks.FIRST);
    const three = await desk.run('call add a=2 b=3');
    world.equal('a call in a continued turn', three.text, 'add says: 5');
    world.equal('ran once', desk.calls, [['add', 2, 3]]);
    if (world.demo) return;
    const wanted = [
      `user: ${tasks.ASKED}`,
      'call: get_tide {"port":"Hull"}',
      'result: 04:12 in Hull',
      `assistant: ${tasks.SAID}`,
      'user: call add a=2 b=3',
      'call: add {"a":2,"b":3}',
      'result: 5',
    ];
    // The SDK says its instructions again in each turn. Gemini takes none in the middle of a
    // conversation, where they stand as text that is marked.
    const { lines } = await world.control.heard();
    const heard = lines.filter((line) => line !== `user: [System] ${tasks.INSTRUCTIONS}`);
    world.equal('the vendor receives all of it in order', heard, wanted);
  }

  /** The server keeps the history in a conversation, which only the openai package can make. */
  async function conversation(world) {
    const client = new OpenAI({ baseURL: world.baseURL, apiKey: 'not-needed-on-loopback' });
    const made = await client.conversations.create();
    const desk = new Desk(world, { conversation: made.id });
    const text = 'The tide turns at ten.';
    const one = await desk.run(text);
    world.equal('the first turn is answered', one.text, `You said: "${text}"`);
    const two = await desk.run('What did I say first?');
    world.equal('the second turn knows the first', two.text, `You first said: "${text}"`);
    const { warnings } = two;
    world.equal('the SDK warns of nothing', warnings ?? [], []);
    const three = ai.streamText({ ...desk.asked, prompt: 'How many messages?' });
    // The SDK says its instructions again in each turn, which the built-in model counts.
    const wanted = `There are ${world.demo ? 8 : 5} messages so far, 3 of them yours.`;
    world.equal('a streamed turn goes on, and nothing is said twice', await three.text, wanted);
    const roles = [];
    for await (const item of client.conversations.items.list(made.id, { order: 'asc' })) {
      roles.push(item.role);
    }
    const turn = ['developer', 'user', 'assistant'];
    world.equal('the conversation has it all', roles, [...turn, ...turn, ...turn]);
  }

  /**
   * Calls in a conversation. In each step of a turn the SDK sends the turn again, and all results
   * that it has so far.
   */
  async function conversationTools(world) {
    const client = new OpenAI({ baseURL: world.baseURL, apiKey: 'not-needed-on-loopback' });
    const begin = async () => {
      const { id } = await client.conversations.create();
      return new Desk(world, { conversation: id });
    };
    const desk = await begin();
    const done = await desk.run(tasks.ASKED);
    world.equal('the answer is that of the tool', done.text, tasks.SAID);
    world.equal('the tool ran once', desk.calls, [['get_tide', 'Hull']]);
    if (world.demo) return;
    // The client sends the whole turn with each of its steps.
    const steps = await begin();
    const said = await steps.run(tasks.STEPS);
    world.equal('two rounds in a conversation are answered', said.text, tasks.STEPS_SAID);
    world.equal('each tool ran once', steps.calls.length, 2);
  }

  async function streamed(world) {
    const desk = new Desk(world);
    const asked = world.demo ? tasks.ASKED : tasks.STEPS;
    const run = ai.streamText({ ...desk.asked, prompt: asked });
    const texts = [];
    const called = [];
    const wrong = [];
    let thought = '';
    for await (const part of words.stream(run)) {
      if (part.type === 'text-delta') texts.push(part.text);
      if (part.type === 'reasoning-delta') thought += part.text;
      if (part.type === 'tool-call') called.push(part.toolName);
      if (part.type === 'error') wrong.push(String(part.error?.message ?? part.error));
    }
    world.equal('the stream tells of no error', wrong, []);
    world.equal('text is streamed', texts.join(''), world.demo ? tasks.SAID : tasks.STEPS_SAID);
    world.check('in several pieces', texts.length > 1, texts);
    world.equal('calls are streamed', called, world.demo ? ['get_tide'] : ['get_tide', 'add']);
    if (world.demo) return;
    if (world.control.upstream !== 'openai-chat') {
      world.check('reasoning is streamed', thought.includes('The tide first'), thought);
    }
    await tasks.receivedExactly(world, 'calls and results arrive as such', tasks.STEPS_RECEIVED);
    const made = await messagesOf(run);
    const more = await desk.run([user(asked), ...made, user('How many messages?')]);
    const wanted = 'There are 7 messages so far, 2 of them yours.';
    world.equal('what was streamed can be continued', more.text, wanted);
  }

  async function structured(world) {
    if (world.demo) return;
    const desk = new Desk(world, { tools: false });
    const schema = z.object({ port: z.string(), number: z.number() });
    const text = `say exactly: ${JSON.stringify(tasks.BERTH)}`;
    const done = await desk.run(text, { output: ai.Output.object({ schema }) });
    world.equal('the answer is typed', done.output, tasks.BERTH);
  }

  async function picture(world) {
    const desk = new Desk(world);
    const text = 'What is in this picture?';
    const asked = user([{ type: 'text', text }, words.picture(tasks.PNG_BASE64)]);
    const done = await desk.run([asked]);
    world.equal('it answers', done.text, tasks.pictureAnswered(world, text));
    await tasks.pictureReceived(world);
    const made = await messagesOf(done);
    const more = await desk.run([asked, ...made, user('What did I say first?')]);
    world.equal('it stays in the history', more.text, `You first said: "${text}"`);
    await tasks.pictureReceived(world);
  }

  async function errors(world) {
    const seen = async (options) => {
      try {
        return (await new Desk(world, options).run('x')).text;
      } catch (error) {
        return [error.statusCode, error.data?.error?.code ?? null];
      }
    };
    const unknown = await seen({ model: 'nobody/nothing' });
    world.equal('an unknown model', unknown, [404, 'model_not_found']);
    const lost = await seen({ previousResponseId: tasks.NOBODY });
    const wanted = [400, 'previous_response_not_found'];
    world.equal('an unknown response to continue', lost, wanted);
    if (world.demo) return;
    await world.control.ask('fault invalid_request 100');
    try {
      world.equal('a request that the vendor refuses', (await seen({}))[0], 400);
    } finally {
      await world.control.ask('heal');
    }
  }

  return [
    tools,
    withoutReasoning,
    steps,
    stateless,
    parallel,
    chained,
    conversation,
    conversationTools,
    streamed,
    structured,
    picture,
    errors,
  ];
}
