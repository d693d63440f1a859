// Misuse, vendors that fail, and requests that are sent again.

import OpenAI from 'openai';
import { clientOf } from './chains.mjs';
import { plain } from './harness.mjs';

const NOBODY = 'resp_00000000000000000000000000000000';

async function misuse(world) {
  const client = clientOf(world);
  const { model } = world;
  const cases = [
    [
      'no model',
      { input: 'x' },
      OpenAI.BadRequestError,
      { status: 400, code: 'missing_required_parameter', param: 'model' },
    ],
    [
      'an unknown model',
      { model: 'nobody/nothing', input: 'x' },
      OpenAI.NotFoundError,
      { status: 404, code: 'model_not_found', param: 'model' },
    ],
    [
      'an unknown response to continue',
      { model, input: 'x', previous_response_id: NOBODY },
      OpenAI.BadRequestError,
      { status: 400, code: 'previous_response_not_found', param: 'previous_response_id' },
    ],
    [
      'a result without a call',
      { model, input: [{ type: 'function_call_output', call_id: 'call_zzz', output: '1' }] },
      OpenAI.BadRequestError,
      { status: 400, param: 'input', words: 'call_zzz' },
    ],
  ];
  for (const [what, body, kind, wanted] of cases) {
    await world.refused(what, kind, () => client.responses.create(body), wanted);
  }
  for (const work of [
    () => client.responses.retrieve(NOBODY),
    () => client.responses.delete(NOBODY),
    () => client.responses.inputItems.list(NOBODY),
  ]) {
    const words = `Response with id '${NOBODY}' not found.`;
    await world.refused('an absent response', OpenAI.NotFoundError, work, { status: 404, words });
  }
  const work = () => client.embeddings.create({ model, input: 'x' });
  const error = await world.raises('embeddings are not served', OpenAI.NotFoundError, work);
  world.equal('embeddings say so', [error.status, error.code], [404, 'route_not_served']);
}

async function vendors(world) {
  if (world.demo) return;
  const client = clientOf(world);
  const { model } = world;
  for (const [fault, kind, status] of [
    ['unauthorised', OpenAI.InternalServerError, 502],
    ['invalid_request', OpenAI.BadRequestError, 400],
    ['rate_limited', OpenAI.RateLimitError, 429],
  ]) {
    await world.control.ask(`fault ${fault} 100`);
    let error;
    try {
      const work = () => client.responses.create({ model, input: `about ${fault}` });
      error = await world.raises(`${fault} is told`, kind, work);
    } finally {
      await world.control.ask('heal');
    }
    world.equal(`${fault} has its status`, error.status, status);
    const failed = await client.responses.retrieve(error.headers.get('x-throughline-response-id'));
    world.equal(`${fault} is kept as failed`, failed.status, 'failed');
  }
}

/** Cuts the wire once the vendor has been asked, and only then lets the vendor answer. */
async function cutWhileAsking(world, how, work) {
  const asked = await world.control.count();
  await world.control.ask('hold');
  const cut = async () => {
    await world.control.ask(`received ${asked + 1}`);
    await world.control.order(`cut ${how}`);
    await world.control.ask('release');
  };
  const [made] = await Promise.all([work(), cut()]);
  return made;
}

async function retries(world) {
  if (world.demo) return;
  const client = clientOf(world, { maxRetries: 4 });
  const { model } = world;
  for (const how of ['reset', '500']) {
    const asked = await world.control.count();
    const input = `hold: after ${how}`;
    const made = await cutWhileAsking(world, how, () => client.responses.create({ model, input }));
    world.equal(`${how}: the answer comes`, made.output_text, `You said: "after ${how}"`);
    world.equal(`${how}: the vendor was asked once`, await world.control.count(), asked + 1);
  }
}

async function keys(world) {
  const client = clientOf(world);
  const { model } = world;
  const create = (input, key) =>
    client.responses.create({ model, input }, { headers: { 'Idempotency-Key': key } });
  const key = `node-${model}`;
  const one = await create('once', key);
  const again = await create('once', key);
  world.equal('the same key is the same run', plain(again), plain(one));
  await world.refused(
    'another body under that key',
    OpenAI.UnprocessableEntityError,
    () => create('twice', key),
    { status: 422, code: 'idempotency_key_reused' },
  );
}

export const SCENARIOS = [misuse, vendors, retries, keys];
