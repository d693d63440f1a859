// What the scenarios share: checks, the world around the server, and the command line. The same as
// `../server-python/harness.py`, which says more.

import { isDeepStrictEqual, parseArgs } from 'node:util';
import { readFileSync } from 'node:fs';

// The longest text of a value in the line of a check that failed.
const SHOWN = 2000;

/** A check that the rest of its scenario rests on has failed. */
class Failed extends Error {}

/** The vendor behind the server and the wire in front of it. */
class Control {
  constructor(address, upstream) {
    this.address = address;
    this.upstream = upstream;
  }

  async order(words) {
    const answer = await fetch(`http://${this.address}/`, { method: 'POST', body: words });
    return answer.json();
  }

  /** Something of the vendor. The built-in model has none. */
  async ask(words) {
    if (!this.upstream) throw new Failed('demo has no vendor behind it');
    return this.order(`${this.upstream} ${words}`);
  }

  /** How often the vendor has been asked. */
  async count() {
    return (await this.ask('counts')).requests;
  }

  /** The last request that the vendor took: instructions, and a line for each thing said. */
  async heard() {
    return this.ask('heard');
  }
}

/** Where a scenario takes place, and what it has found. */
class World {
  constructor(options) {
    this.baseURL = options['base-url'];
    this.model = options.model;
    this.control = new Control(options.control, options.upstream);
    this.scenario = '';
    this.passed = 0;
    this.failed = 0;
  }

  /** Whether the built-in model answers, which has no vendor behind it. */
  get demo() {
    return !this.control.upstream;
  }

  check(what, good, ...seen) {
    const line = { scenario: this.scenario, check: what, ok: Boolean(good) };
    if (good) {
      this.passed += 1;
    } else {
      this.failed += 1;
      line.seen = seen.map((value) => String(JSON.stringify(value) ?? value).slice(0, SHOWN));
    }
    console.log(JSON.stringify(line));
  }

  equal(what, found, wanted) {
    this.check(what, isDeepStrictEqual(found, wanted), found, wanted);
  }

  /** A check without which the scenario cannot go on. */
  need(what, good, ...seen) {
    this.check(what, good, ...seen);
    if (!good) throw new Failed(what);
  }

  /** Checks that something is refused, and gives the exception. */
  async raises(what, expected, work) {
    let result;
    try {
      result = await work();
    } catch (error) {
      if (error instanceof expected) {
        this.check(what, true);
        return error;
      }
      this.check(what, false, `${error?.constructor?.name}: ${error?.message}`);
      throw new Failed(what);
    }
    this.check(what, false, result);
    throw new Failed(what);
  }

  /** Checks a documented refusal: class, status, code, parameter and words. */
  async refused(what, expected, work, { status, code = null, param = null, words = '' }) {
    const error = await this.raises(what, expected, work);
    const seen = [error.status, error.code ?? null, error.param ?? null];
    this.equal(`${what}: status, code, param`, seen, [status, code, param]);
    this.check(`${what}: words`, error.message.includes(words), error.message);
    return error;
  }
}

/** A value as it is on the wire: without what the SDK has added. */
export function plain(value) {
  const { output_text: _, _request_id: __, ...rest } = JSON.parse(JSON.stringify(value));
  if (rest.response) rest.response = plain(rest.response);
  return rest;
}

export async function collect(stream) {
  const events = [];
  for await (const event of stream) events.push(plain(event));
  return events;
}

// No program takes longer; one that does hangs.
const LONGEST_MS = 600_000;

/** Runs scenarios with an SDK: what to call it, and the folder of its package. */
export async function main(scenarios, sdk = { name: 'openai-node', folder: 'openai' }) {
  setTimeout(() => {
    console.error(`still at work after ${LONGEST_MS} ms`);
    process.exit(1);
  }, LONGEST_MS).unref();
  const text = { type: 'string' };
  const names = ['base-url', 'control', 'model', 'upstream', 'only'];
  const options = Object.fromEntries(names.map((name) => [name, text]));
  const { values } = parseArgs({ options });
  const world = new World(values);
  for (const scenario of scenarios) {
    world.scenario = scenario.name;
    if (values.only && values.only !== scenario.name) continue;
    try {
      await scenario(world);
    } catch (error) {
      if (!(error instanceof Failed)) {
        world.check('nothing unexpected is raised', false, `${error?.stack ?? error}`);
      }
    }
    if (!world.demo) {
      world.equal('the vendor refuses nothing', await world.control.ask('refused'), []);
    }
  }
  const about = new URL(`./node_modules/${sdk.folder}/package.json`, import.meta.url);
  const { version } = JSON.parse(readFileSync(about, 'utf8'));
  const { passed, failed } = world;
  console.log(JSON.stringify({ sdk: `${sdk.name} ${version}`, passed, failed }));
  process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
}
