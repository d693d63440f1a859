// Streams and the helpers around them.

import { ANSWER, FIRST, TIDE, clientOf } from './chains.mjs';
import { collect, plain } from './harness.mjs';

const DELTA = 'response.output_text.delta';

function checkText(world, events, text) {
  const deltas = events.filter((event) => event.type === DELTA);
  const kinds = events.map((event) => event.type);
  const wanted = [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
    ...deltas.map((event) => event.type),
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ];
  world.equal('events follow the grammar', kinds, wanted);
  world.equal('deltas add up', deltas.map((event) => event.delta).join(''), text);
  const numbers = events.map((event) => event.sequence_number);
  world.equal('numbers have no gap', numbers, [...events.keys()]);
}

async function streams(world) {
  const client = clientOf(world);
  const { model } = world;
  const events = await collect(await client.responses.create({ model, input: TIDE, stream: true }));
  checkText(world, events, ANSWER);
  const ended = events.at(-1).response;
  const read = plain(await client.responses.retrieve(ended.id));
  world.equal('what is read later is what was streamed', read, ended);
  const more = await client.responses.create({
    model,
    input: 'What did I say first?',
    previous_response_id: ended.id,
    stream: true,
  });
  checkText(world, await collect(more), FIRST);
}

async function helper(world) {
  const client = clientOf(world);
  const { model } = world;
  const seen = [];
  const snapshots = [];
  const stream = client.responses.stream({ model, input: TIDE });
  stream.on('event', (event) => seen.push(event.type));
  stream.on(DELTA, (event) => snapshots.push(event.snapshot));
  const final = await stream.finalResponse();
  world.equal('the helper ends with the answer', final.output_text, ANSWER);
  world.equal('and has grown it', snapshots.at(-1), ANSWER);
  const more = await client.responses
    .stream({ model, input: 'What did I say first?', previous_response_id: final.id })
    .finalResponse();
  world.equal('it goes on with a chain', more.output_text, FIRST);
  for (const after of [undefined, 0, 3, seen.length - 2]) {
    const resumed = client.responses.stream({ response_id: final.id, starting_after: after });
    const kinds = [];
    for await (const event of resumed) kinds.push(event.type);
    const first = after === undefined ? 0 : after + 1;
    world.equal(`it resumes after ${after}`, kinds, seen.slice(first));
    const again = await resumed.finalResponse();
    world.equal(`with the same answer after ${after}`, again.output_text, ANSWER);
  }
}

async function replays(world) {
  const client = clientOf(world);
  const { model } = world;
  const told = await collect(await client.responses.create({ model, input: TIDE, stream: true }));
  const { id } = told[0].response;
  const again = await collect(await client.responses.retrieve(id, { stream: true }));
  world.equal('a replay is what was told', again, told);
  for (const after of [0, 4, told.length - 2]) {
    const query = { stream: true, starting_after: after };
    const rest = await collect(await client.responses.retrieve(id, query));
    world.equal(`and begins after ${after}`, rest, told.slice(after + 1));
  }
  const whole = await client.responses.create({ model, input: TIDE });
  const made = await collect(await client.responses.retrieve(whole.id, { stream: true }));
  checkText(world, made, ANSWER);
  world.equal('its end is the response', made.at(-1).response, plain(whole));
}

async function leaving(world) {
  if (world.demo) return;
  const client = clientOf(world);
  const { model } = world;
  const input = 'hold: The tide turns at ten, and the berth is free until noon.';
  await world.control.ask('hold');
  const asked = await world.control.count();
  const told = [];
  try {
    const stream = await client.responses.create({ model, input, stream: true });
    for await (const event of stream) {
      told.push(plain(event));
      if (event.type === DELTA) break;
    }
    const running = await client.responses.retrieve(told[0].response.id);
    world.equal('it is at work', running.status, 'in_progress');
  } finally {
    await world.control.ask('release');
  }
  const { id } = told[0].response;
  const query = { stream: true, starting_after: told.at(-1).sequence_number };
  const rest = await collect(await client.responses.retrieve(id, query));
  const text = input.slice('hold: '.length);
  checkText(world, [...told, ...rest], `You said: "${text}"`);
  world.equal('the vendor was asked once', await world.control.count(), asked + 1);
}

export const SCENARIOS = [streams, helper, replays, leaving];
