// What differs between two texts, word by word.

const TOKEN = /\\[a-zA-Z]+|[\p{L}_]+|\p{N}+|\s+|[^]/gu;
const MAX_CELLS = 4_000_000; // beyond this, the texts are compared line by line

const tokenize = (text, other) => {
  const words = text.match(TOKEN) ?? [];
  return words.length * (other.match(TOKEN)?.length ?? 0) <= MAX_CELLS ? words : text.split(/(?<=\n)/);
};

// Return [kind, text] pairs; kind is "same", "removed" (only in `from`) or "added" (only in `to`).
export function diffWords(from, to) {
  const [before, after] = [tokenize(from, to), tokenize(to, from)];
  const width = after.length + 1;
  const lengths = new Uint32Array((before.length + 1) * width); // of the longest common subsequence from here on
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const isSame = before[i] === after[j];
      lengths[i * width + j] = isSame ? lengths[(i + 1) * width + j + 1] + 1 : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
    }
  }
  const out = [];
  const add = (kind, text) => (out.at(-1)?.[0] === kind ? (out.at(-1)[1] += text) : out.push([kind, text]));
  let [i, j] = [0, 0];
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      add("same", before[i++]);
      j += 1;
    } else if (j >= after.length || (i < before.length && lengths[(i + 1) * width + j] >= lengths[i * width + j + 1])) add("removed", before[i++]);
    else add("added", after[j++]);
  }
  return out;
}
