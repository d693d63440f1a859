// Conversations and their items, background responses, and cancelling.

import OpenAI from 'openai';
import { ANSWER, FIRST, TIDE, clientOf } from './chains.mjs';

async function conversations(world) {
  const client = clientOf(world);
  const { model } = world;
  const made = await client.conversations.create({
    items: [
      { type: 'message', role: 'user', content: TIDE },
      { type: 'message', role: 'assistant', content: 'Noted.' },
    ],
    metadata: { topic: 'tides' },
  });
  const turn = await client.responses.create({
    model,
    input: 'What did I say first?',
    conversation: made.id,
  });
  world.equal('a turn knows the items', turn.output_text, FIRST);
  world.equal('the response names its conversation', turn.conversation?.id, made.id);
  const listed = [];
  for await (const item of client.conversations.items.list(made.id, { order: 'asc', limit: 1 })) {
    listed.push(item.id);
  }
  world.equal('a turn adds two items', listed.length, 4);
  const first = listed[0];
  const read = await client.conversations.items.retrieve(first, { conversation_id: made.id });
  world.equal('an item is read by its id', read.id, first);
  const left = await client.conversations.items.delete(first, { conversation_id: made.id });
  world.equal('deleting an item answers with the conversation', left.id, made.id);
  const changed = await client.conversations.update(made.id, { metadata: { topic: 'buoys' } });
  world.equal('metadata is replaced', changed.metadata.topic, 'buoys');
  const gone = await client.conversations.delete(made.id);
  world.equal('it is deleted', gone.deleted, true);
  const work = () => client.conversations.retrieve(made.id);
  await world.raises('a deleted conversation', OpenAI.NotFoundError, work);
}

async function background(world) {
  const client = clientOf(world);
  const { model } = world;
  const begun = await client.responses.create({ model, input: TIDE, background: true });
  let response = begun;
  while (response.status === 'queued' || response.status === 'in_progress') {
    await new Promise((next) => setTimeout(next, 20));
    response = await client.responses.retrieve(begun.id);
  }
  world.equal('it is made', [response.id, response.status], [begun.id, 'completed']);
  world.equal('its answer is read', response.output_text, ANSWER);
  const late = await client.responses.cancel(begun.id);
  world.equal('what has ended stays', late.status, 'completed');
}

export const SCENARIOS = [conversations, background];
