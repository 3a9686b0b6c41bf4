// What web/proof.js says of real proofs, and of each thing that can be wrong with one: refused, at the step
// that it belongs to.  Speaks TAP.
//
//     node proof_test.mjs PROOF.JS ANSWERS.JSON
import { readFileSync } from "node:fs";

const [script, answersFile] = process.argv.slice(2);
const Proof = new Function(`${readFileSync(script, "utf8")}\nreturn Proof;`)();
const answers = JSON.parse(readFileSync(answersFile, "utf8"));

const lines = [];
function report(good, name, why = "") {
  lines.push(`${good ? "ok" : "not ok"} ${lines.length + 1} - ${name}`);
  if (!good && why) console.log(`# ${name}: ${why}`);
}

// The step that refuses, "" where none does.
async function step(promise) {
  try {
    await promise;
    return "";
  } catch (fault) {
    return fault instanceof Proof.Refusal ? fault.step : `${fault}`;
  }
}

function answerOf({ proof, leaf, index }) {
  return { proof, keys: answers.keys, shown: { index: Number(index), leaf } };
}

const base = answers.proofs.find((p) => p.index > 2 && p.proof.split("\n").indexOf("", 3) - 3 >= 5); // with five hashes or more
const another = answers.proofs.find((p) => p.index !== base.index);
const origin = answers.keys.split("+")[0];

// ---- what can be wrong ----

const proofLines = (change) => (a) => {
  const rows = a.proof.split("\n");
  change(rows, rows.indexOf("", 3));
  a.proof = rows.join("\n");
};
const line = (at, from, to) => proofLines((rows) => { rows[at] = rows[at].replace(from, to); });
const noteLine = (at, from, to) => proofLines((rows, end) => { rows[end + 1 + at] = rows[end + 1 + at].replace(from, to); });
const shown = (change) => (a) => { change(a.shown); };
const keys = (change) => (a) => { a.keys = change(a.keys); };

function flip(text, byte, bit = 1) {
  const bytes = Proof.decode64(text);
  bytes[byte] ^= bit;
  return Proof.encode64(bytes);
}

const flipIn = (byte) => (whole, head, code) => `${head}${flip(code, byte)}`;
const signature = /^(\u2014 \S+ )(.*)$/;

// Another character whose last bits are spare: the same bytes, not the canonical text.
const uncanonical = (text) => text.replace(/.(?==+$)/, (c) => String.fromCharCode(c.charCodeAt(0) + 1));

const mutations = [
  ["no first line", proofLines((rows) => rows.shift()), "proof"],
  ["a later version", line(0, "@v1", "@v2"), "proof"],
  ["no record", proofLines((rows) => rows.splice(1, 1)), "proof"],
  ["an empty record", line(1, /extra .*/, "extra "), "proof"],
  ["a record that is no base 64", line(1, "extra ", "extra *"), "proof"],
  ["a record cut off", line(1, /.{4}$/, ""), "proof"],
  ["one bit of the record", line(1, /^(extra )(.*)$/, flipIn(20)), "proof"],
  ["the index above", line(2, /\d+/, (n) => String(Number(n) + 1)), "proof"],
  ["the index below", line(2, /\d+/, (n) => String(Number(n) - 1)), "proof"],
  ["an index with a zero before it", line(2, /(\d+)/, "0$1"), "proof"],
  ["an index below nothing", line(2, /(\d+)/, "-$1"), "proof"],
  ["an index in letters", line(2, /\d+/, "0x2"), "proof"],
  ["an index with a power", line(2, /\d+/, "1e0"), "proof"],
  ["an index beyond what numbers hold", line(2, /\d+/, "9007199254740993"), "proof"],
  ["no index", proofLines((rows) => rows.splice(2, 1)), "proof"],
  ["a blank behind the index", line(2, /$/, " "), "proof"],
  ["line ends of another system", (a) => { a.proof = a.proof.replaceAll("\n", "\r\n"); }, "proof"],
  ["nothing at all", (a) => { a.proof = ""; }, "proof"],
  ["a refusal instead", (a) => { a.proof = "{\"error\":{}}"; }, "proof"],
  ["the first hash missing", proofLines((rows) => rows.splice(3, 1)), "path"],
  ["the last hash missing", proofLines((rows, end) => rows.splice(end - 1, 1)), "path"],
  ["no hash", proofLines((rows, end) => rows.splice(3, end - 3)), "path"],
  ["a hash twice", proofLines((rows) => rows.splice(3, 0, rows[3])), "path"],
  ["a hash more", proofLines((rows, end) => rows.splice(end, 0, rows[3])), "path"],
  ["two hashes in each other's place", proofLines((rows) => rows.splice(3, 2, rows[4], rows[3])), "path"],
  ["the hashes the other way around", proofLines((rows, end) => rows.splice(3, end - 3, ...rows.slice(3, end).reverse())), "path"],
  ["one bit of the first hash", line(3, /^.*$/, (code) => flip(code, 0)), "path"],
  ["one bit of the second hash", line(4, /^.*$/, (code) => flip(code, 31, 128)), "path"],
  ["one bit of the last hash", proofLines((rows, end) => { rows[end - 1] = flip(rows[end - 1], 15); }), "path"],
  ["a hash of 31 bytes", line(3, /^.*$/, (code) => Proof.encode64(Proof.decode64(code).slice(1))), "proof"],
  ["a hash that is not canonical", line(3, /^.*$/, uncanonical), "proof"],
  ["a hash that is no base 64", line(3, /^./, "!"), "proof"],
  ["65 hashes", proofLines((rows) => rows.splice(3, 0, ...Array(60).fill(rows[3]))), "proof"],
  ["no line before the checkpoint", proofLines((rows, end) => rows.splice(end, 1)), "proof"],
  ["the log's size above", noteLine(1, /\d+/, (n) => String(Number(n) + 1)), "signature path"],
  ["the log's size doubled", noteLine(1, /\d+/, (n) => String(2 * Number(n))), "path"],
  ["a log that ends before the record", noteLine(1, /\d+/, () => String(base.index)), "path"],
  ["a log of nothing", noteLine(1, /\d+/, "0"), "path"],
  ["a size with a zero before it", noteLine(1, /(\d+)/, "0$1"), "signature"],
  ["one bit of the root", noteLine(2, /^.*$/, (code) => flip(code, 7)), "path"],
  ["a root of 31 bytes", noteLine(2, /^.*$/, (code) => Proof.encode64(Proof.decode64(code).slice(1))), "signature"],
  ["a root that is not canonical", noteLine(2, /^.*$/, uncanonical), "signature"],
  ["the log of a different name", noteLine(0, /$/, "x"), "signature"],
  ["a fourth line", proofLines((rows, end) => rows.splice(end + 4, 0, "more")), "signature"],
  ["no root", proofLines((rows, end) => rows.splice(end + 3, 1)), "signature"],
  ["no signature", proofLines((rows, end) => rows.splice(end + 5)), "signature"],
  ["no signature, with the last line end", proofLines((rows, end) => rows.splice(end + 5, 1)), "signature"],
  ["one bit of the signature's first half", noteLine(4, signature, flipIn(10)), "signature"],
  ["one bit of its second half", noteLine(4, signature, flipIn(60)), "signature"],
  ["the id of a different key", noteLine(4, signature, flipIn(0)), "signature"],
  ["a signature cut off", noteLine(4, signature, (whole, head, code) => head + Proof.encode64(Proof.decode64(code).slice(0, 60))), "signature"],
  ["a signature that is no base 64", noteLine(4, signature, "$1*"), "signature"],
  ["a signature by a different name", noteLine(4, /^\u2014 /, "\u2014 x"), "signature"],
  ["a hyphen for the dash", noteLine(4, "\u2014", "-"), "signature"],
  ["no end of the last line", (a) => { a.proof = a.proof.slice(0, -1); }, "signature"],
  ["a bad signature behind the good one", proofLines((rows, end) => rows.splice(end + 6, 0, rows[end + 5].replace(signature, flipIn(40)))), "signature"],
  ["a line that is no signature", proofLines((rows, end) => rows.splice(end + 6, 0, "more")), "signature"],
  ["more than 100 signatures", proofLines((rows, end) => rows.splice(end + 6, 0, ...Array(100).fill(`\u2014 w ${Proof.encode64([1, 2, 3, 4, 5])}`))), "signature"],
  ["a tab in the checkpoint", noteLine(0, /^/, "\t"), "signature"],
  ["the signature of an earlier checkpoint", proofLines((rows, end) => { rows[end + 5] = answers.checkpoints[0].split("\n")[4]; }), "signature"],
  ["an earlier checkpoint", (a) => { a.proof = a.proof.slice(0, a.proof.indexOf("\n\n") + 2) + answers.checkpoints[0]; }, "path"],
  ["a different site's checkpoint", (a) => { a.proof = a.proof.slice(0, a.proof.indexOf("\n\n") + 2) + answers.other.checkpoint; }, "path"],
  ["a different site's proof", (a) => { Object.assign(a, answerOf(answers.other.proof)); }, "signature"],
  ["a different record's proof", (a) => { a.proof = another.proof; }, "proof"],
  ["a different record's proof with this index", (a) => { a.proof = another.proof.replace(/\nindex .*/, `\nindex ${base.index}`); }, "proof"],
  ["a different record's proof with this index and record",
   (a) => { a.proof = another.proof.replace(/\nindex .*/, `\nindex ${base.index}`).replace(/extra .*/, a.proof.split("\n")[1]); }, "path"],
  ["a page that shows a different number", shown((page) => { page.index += 1; }), "proof"],
  ["a page that shows a different record", shown((page) => { page.leaf = another.leaf; }), "proof"],
  ["a page that shows a blank more", shown((page) => { page.leaf += " "; }), "proof"],
  ["a different site's key", keys(() => answers.other.keys), "signature"],
  ["a key with one bit changed", keys((key) => key.replace(/^([^+]*\+[^+]*\+)(\S+)/, flipIn(20))), "key"],
  ["a key with a different id", keys((key) => key.replace(/\+([0-9a-f])/, (_, c) => `+${c === "0" ? "1" : "0"}`)), "key"],
  ["a key with a different name", keys((key) => `x${key}`), "key"],
  ["a key of a different kind", keys((key) => key.replace(/^([^+]*\+[^+]*\+)(\S+)/, flipIn(0))), "key"],
  ["a key cut off", keys((key) => key.slice(0, -6)), "key"],
  ["no key", keys(() => ""), "key"],
  ["words for a key", keys(() => "trust me"), "key"],
  ["markup for a key", keys(() => "<script>+00000000+AQ=="), "key"],
  ["nine keys", keys((key) => key.trim().concat("\n").repeat(9)), "key"],
  ["a key and one of a different log", keys((key) => `${key}\n${answers.other.keys.replace(/^[^+]*/, "w")}`), "key"],
];

async function holds() {
  for (const proof of answers.proofs) {
    const heard = [];
    const refused = await step(Proof.check(answerOf(proof), (name) => heard.push(name)));
    report(refused === "" && heard.join() === "key,proof,leaf,path,signature", `record ${proof.index} holds`, refused || heard.join());
  }
  const before = answerOf(base);
  before.keys = `${answers.keys.trim()}\r\n\r\n`;
  report(await step(Proof.check(before)) === "", "a key with the line ends of another system holds");
}

async function refuses() {
  for (const [name, change, want] of mutations) {
    const changed = answerOf(base), before = JSON.stringify(changed);
    changed.shown = { ...changed.shown };
    change(changed);
    const got = await step(Proof.check(changed));
    report(JSON.stringify(changed) !== before && want.split(" ").includes(got), `refused: ${name}`, `step "${got}", not "${want}"`);
  }
  report(mutations.length >= 60, "there are 60 mutations at least");
}

// Ways to say two logs apart from each other.
async function compares() {
  const newest = Proof.readCheckpoint(answers.checkpoints.at(-1));
  for (const [i, proof] of answers.consistency.entries()) {
    const older = Proof.readCheckpoint(answers.checkpoints[i]);
    const ask = (hashes) => async () => hashes;
    const say = (other, hashes = proof.hashes) => step(Proof.compare(other, newest, ask(hashes)));
    report(await say(older) === "", `the log of ${older.size} begins that of ${newest.size}`);
    const root = Uint8Array.from(older.root, (byte, at) => byte ^ (at === 3));
    report(await say({ ...older, root }) === "consistency", `not with a different root at ${older.size}`);
    report(await say({ ...older, size: newest.size + 1 }) === "consistency", "nor where it went back");
    report(await say({ ...older, origin: "elsewhere" }) === "consistency", "nor with a different name");
    if (proof.hashes.length === 0) continue;
    report(await say(older, proof.hashes.slice(1)) === "consistency", "nor without a hash");
    report(await say(older, [...proof.hashes, proof.hashes[0]]) === "consistency", "nor with a hash more");
    report(await say(older, []) === "consistency", "nor with none");
    for (const wrong of [undefined, "AAAA", [7], ["AAAA"], Array(65).fill(proof.hashes[0])])
      report(await say(older, wrong ?? null) === "consistency", `nor with ${JSON.stringify(wrong)?.slice(0, 20)} for hashes`);
    for (const at of proof.hashes.keys())
      report(await say(older, proof.hashes.map((hash, n) => (n === at ? flip(hash, 9) : hash))) === "consistency", `nor with one bit of hash ${at}`);
  }
}

// A browser without Ed25519 is not sure of anything, and says so.
async function incapable() {
  const real = crypto.subtle.importKey;
  crypto.subtle.importKey = () => Promise.reject(new DOMException("no", "NotSupportedError"));
  let fault = null;
  await Proof.check(answerOf(base)).catch((thrown) => { fault = thrown; });
  crypto.subtle.importKey = real;
  report(fault?.step === "signature" && fault.sure === false, "without Ed25519 nothing is verified, and nothing refused");
}

report(await Proof.canVerify(), "Ed25519 is to be had");
report(origin.length > 0, "the answers have a key");
await holds();
await refuses();
await compares();
await incapable();
console.log(lines.join("\n"));
console.log(`1..${lines.length}`);
process.exitCode = lines.some((text) => text.startsWith("not ok")) ? 1 : 0;
