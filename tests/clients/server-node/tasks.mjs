// Tasks that every agent SDK is given, and what the vendor must have received at their end. The
// same as `../server-python/tasks.py`.

export const INSTRUCTIONS = 'Answer briefly.';

// No task needs more model calls in one run, so a loop that does not end fails.
export const MOST_CALLS = 5;

export const ASKED = 'think first: use get_tide with port=Hull';
export const SAID = 'get_tide says: 04:12 in Hull';
export const FIRST = `You first said: "${ASKED}"`;

// A model that is asked to reason may call a tool without doing so.
export const WITHOUT_REASONING = 'use get_tide with port=Hull';
export const WITHOUT_REASONING_RECEIVED = [
  `user: ${WITHOUT_REASONING}`,
  'call: get_tide {"port":"Hull"}',
  'result: 04:12 in Hull',
];

// Two rounds of calls in one run, with reasoning before each answer.
export const STEPS = 'think first: step by step: use get_tide with port=Hull; call add a=1 b=2';
export const STEPS_SAID = 'add says: 3';
export const STEPS_RECEIVED = [
  `user: ${STEPS}`,
  'call: get_tide {"port":"Hull"}',
  'result: 04:12 in Hull',
  'call: add {"a":1,"b":2}',
  'result: 3',
];

export const BOTH = 'think first: call get_tide port=Hull and add a=1 b=2';
export const BOTH_SAID = ['add says: 3', SAID];
export const BOTH_RECEIVED = [
  `user: ${BOTH}`,
  'call: get_tide {"port":"Hull"}',
  'call: add {"a":1,"b":2}',
  'result: 04:12 in Hull',
  'result: 3',
];

export const NOBODY = 'resp_00000000000000000000000000000000';

// A picture of one red point.
export const PNG_BASE64 =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC';
export const PNG_URL = `data:image/png;base64,${PNG_BASE64}`;

export const BERTH = { port: 'Hull', number: 4 };

/** The last request has exactly these calls, results and texts, each as what it is. */
export async function receivedExactly(world, what, wanted) {
  world.equal(what, (await world.control.heard()).lines, wanted);
}

/** The vendor was asked so many times since `before`: no step was repeated. */
export async function askedTimes(world, before, wanted) {
  const asked = (await world.control.count()) - before;
  world.equal('the vendor was asked once for each step', asked, wanted);
}

/** The last request gives the vendor its reasoning back. Chat Completions has no place for it. */
export async function thoughtsReturned(world, what, wanted) {
  const none = world.control.upstream === 'openai-chat';
  world.equal(what, await world.control.ask('thoughts'), none ? 0 : wanted);
}

/** The last request asks the vendor's model to reason, in the vendor's own words. */
export async function reasoningAsked(world) {
  const { tools: _, ...body } = await world.control.ask('body');
  const found = {
    anthropic: () => ['enabled', 'adaptive'].includes(body.thinking?.type),
    gemini: () => body.generationConfig?.thinkingConfig,
    'openai-chat': () => body.reasoning_effort === 'low',
    'openai-responses': () => body.reasoning?.effort === 'low',
  };
  world.check('the vendor is asked to reason', found[world.control.upstream](), body);
}

/** The answer to a text with a picture. The built-in model cannot look at one, and says what it is. */
export function pictureAnswered(world, text) {
  return `You said: "${text}"${world.demo ? ', with an image (image/png)' : ''}`;
}

/** The bytes of the picture are in the last request. */
export async function pictureReceived(world) {
  if (world.demo) return;
  const body = JSON.stringify(await world.control.ask('body'));
  world.check('the vendor receives the picture', body.includes(PNG_BASE64), body);
}
