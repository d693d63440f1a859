// Webhooks of background responses: the openai package checks and reads what the server posts.

import OpenAI from 'openai';
import { TIDE, clientOf } from './chains.mjs';

/** Waits for the event about a response: the request as it came, and the secret. */
async function posted(world, response) {
  return world.control.order(`webhook ${response}`);
}

/** The event about a response is of this kind. */
async function read(world, response, kind) {
  const { body, headers, secret } = await posted(world, response);
  const client = clientOf(world, { webhookSecret: secret });
  const event = await client.webhooks.unwrap(body, headers);
  const seen = [event.object, event.type, event.data.id];
  world.equal(`${kind} is read as such`, seen, ['event', kind, response]);
  world.check(`${kind} has an id`, event.id.startsWith('evt_'), event.id);
}

async function webhookCompleted(world) {
  const client = clientOf(world);
  const { model } = world;
  const begun = await client.responses.create({ model, input: TIDE, background: true });
  await read(world, begun.id, 'response.completed');
  const done = await client.responses.retrieve(begun.id);
  world.equal('what has been posted has ended', done.status, 'completed');
}

async function webhookForged(world) {
  const client = clientOf(world);
  const { model } = world;
  const begun = await client.responses.create({ model, input: TIDE, background: true });
  const { body, headers, secret } = await posted(world, begun.id);
  const later = String(Number(headers['webhook-timestamp']) + 1);
  for (const [what, seen] of [
    ['another body', [body.replace('completed', 'failed'), headers, secret]],
    ['another id', [body, { ...headers, 'webhook-id': `${headers['webhook-id']}0` }, secret]],
    ['another time', [body, { ...headers, 'webhook-timestamp': later }, secret]],
    ['another secret', [body, headers, 'whsec_YW5vdGhlcg==']],
  ]) {
    const work = () => client.webhooks.unwrap(...seen);
    await world.raises(`${what} is refused`, OpenAI.InvalidWebhookSignatureError, work);
  }
  const event = await client.webhooks.unwrap(body, headers, secret);
  world.equal('what came is not', event.data.id, begun.id);
}

async function webhookCancelled(world) {
  if (world.demo) return;
  const client = clientOf(world);
  const asked = { model: world.model, input: `hold: ${TIDE}`, background: true };
  await world.control.ask('hold');
  const begun = await client.responses.create(asked);
  await client.responses.cancel(begun.id);
  await world.control.ask('release');
  await read(world, begun.id, 'response.cancelled');
}

async function webhookFailed(world) {
  if (world.demo) return;
  const client = clientOf(world);
  const { model } = world;
  await world.control.ask('fault invalid_request 1');
  try {
    const begun = await client.responses.create({ model, input: TIDE, background: true });
    await read(world, begun.id, 'response.failed');
  } finally {
    await world.control.ask('heal');
  }
}

export const SCENARIOS = [webhookCompleted, webhookForged, webhookCancelled, webhookFailed];
