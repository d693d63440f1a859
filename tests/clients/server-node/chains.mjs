// Chains, branches, deletes and what is kept.

import OpenAI from 'openai';
import { plain } from './harness.mjs';

export const TIDE = 'The tide turns at ten.';
export const ANSWER = `You said: "${TIDE}"`;
export const FIRST = `You first said: "${TIDE}"`;

export function clientOf(world, options = {}) {
  return new OpenAI({ baseURL: world.baseURL, apiKey: 'not-needed-on-loopback', ...options });
}

async function chains(world) {
  const client = clientOf(world);
  const { model } = world;
  const one = await client.responses.create({ model, input: TIDE });
  world.equal('the first turn is answered', one.output_text, ANSWER);
  world.equal('it is completed', [one.status, one.error], ['completed', null]);
  world.equal("the model's name is echoed", one.model, model);
  world.check('usage is counted', one.usage?.total_tokens > 0, one.usage);
  const two = await client.responses.create({
    model,
    input: 'What did I say first?',
    previous_response_id: one.id,
  });
  world.equal('the second turn knows the first', two.output_text, FIRST);
  const three = await client.responses.create({
    model,
    input: 'How many messages?',
    previous_response_id: two.id,
  });
  const wanted = 'There are 5 messages so far, 3 of them yours.';
  world.equal('the third has the whole chain', three.output_text, wanted);
  for (const each of [one, two, three]) {
    const read = await client.responses.retrieve(each.id);
    world.equal('what is read later is what was answered', plain(read), plain(each));
  }
}

async function branches(world) {
  const client = clientOf(world);
  const say = (input, previous_response_id) =>
    client.responses.create({ model: world.model, input, previous_response_id });
  const root = await say('root');
  const sides = await Promise.all(['left', 'right'].map((text) => say(text, root.id)));
  for (const [side, name] of [[sides[0], 'left'], [sides[1], 'right']]) {
    const asked = await say('what did I say last?', side.id);
    world.equal(`${name} sees itself alone`, asked.output_text, `You last said: "${name}"`);
  }
  const again = await say('what did I say last?', root.id);
  world.equal('the root is as it was', again.output_text, 'You last said: "root"');
}

async function kept(world) {
  const client = clientOf(world);
  const { model } = world;
  const metadata = { ship: 'Selene' };
  const made = await client.responses.create({
    model,
    input: [{ role: 'user', content: [{ type: 'input_text', text: TIDE }] }],
    metadata,
    instructions: 'Answer briefly.',
  });
  const read = await client.responses.retrieve(made.id);
  world.equal('metadata is kept', read.metadata, metadata);
  world.equal('instructions are kept', read.instructions, 'Answer briefly.');
  const gone = await client.responses.create({ model, input: TIDE, store: false });
  await world.refused(
    'what is not stored cannot be read',
    OpenAI.NotFoundError,
    () => client.responses.retrieve(gone.id),
    { status: 404, words: gone.id },
  );
  const history = [
    { role: 'user', content: TIDE },
    ...gone.output,
    { role: 'user', content: 'What did I say first?' },
  ];
  const more = await client.responses.create({ model, input: history, store: false });
  world.equal('a client may keep the history itself', more.output_text, FIRST);
}

async function deletes(world) {
  const client = clientOf(world);
  const { model } = world;
  const one = await client.responses.create({ model, input: TIDE });
  const two = await client.responses.create({ model, input: 'two', previous_response_id: one.id });
  const three = await client.responses.create({
    model,
    input: 'three',
    previous_response_id: two.id,
  });
  const gone = await client.responses.delete(two.id);
  world.equal('it says so', gone, { id: two.id, object: 'response', deleted: true });
  for (const work of [
    () => client.responses.retrieve(two.id),
    () => client.responses.delete(two.id),
    () => client.responses.inputItems.list(two.id),
  ]) {
    await world.refused('a deleted response is gone', OpenAI.NotFoundError, work, {
      status: 404,
      words: two.id,
    });
  }
  await world.refused(
    'and cannot be continued',
    OpenAI.BadRequestError,
    () => client.responses.create({ model, input: 'x', previous_response_id: two.id }),
    { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' },
  );
  const more = await client.responses.create({
    model,
    input: 'How many messages?',
    previous_response_id: three.id,
  });
  const wanted = 'There are 7 messages so far, 4 of them yours.';
  world.equal('descendants go on with everything', more.output_text, wanted);
}

async function inputItems(world) {
  const client = clientOf(world);
  const { model } = world;
  const chain = [await client.responses.create({ model, input: 'turn 0' })];
  for (let number = 1; number < 4; number += 1) {
    const previous_response_id = chain.at(-1).id;
    const input = `turn ${number}`;
    chain.push(await client.responses.create({ model, input, previous_response_id }));
  }
  const items = [];
  const pages = client.responses.inputItems.list(chain.at(-1).id, { order: 'asc', limit: 2 });
  for await (const item of pages) items.push(item);
  const said = items.map((item) => item.content[0].text);
  const wanted = [0, 1, 2, 3].flatMap((number) => [`turn ${number}`, `You said: "turn ${number}"`]);
  world.equal('pages of two hold everything', said, wanted.slice(0, -1));
  const page = await client.responses.inputItems.list(chain.at(-1).id, { limit: 3 });
  const newest = items.map((item) => item.id).reverse().slice(0, 3);
  world.equal('the newest come first', page.data.map((item) => item.id), newest);
  const counted = await client.responses.inputTokens.count({ model, input: 'one two three' });
  world.check('tokens are counted', counted.input_tokens > 0, counted);
}

export const SCENARIOS = [chains, branches, kept, deletes, inputItems];
