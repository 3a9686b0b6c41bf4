"use strict";
// Checks that a record is in the signed audit log, in the reader's browser: C2SP tlog-proof, RFC 6962
// hashes, signed-note with Ed25519, by WebCrypto alone.  docs/audit.md says what that proves.
const Proof = (() => {
  const FIRST_LINE = "c2sp.org/tlog-proof@v1";
  const KEY_ED25519 = 1, ID_BYTES = 4, SIGNATURE_BYTES = ID_BYTES + 64;
  const NOTE_BYTES_MAX = 16384, SIGNATURES_MAX = 100, KEYS_MAX = 8, HASHES_MAX = 64;

  // What a check found wrong: `step` says where, `sure` that it is the proof and not this browser.
  class Refusal extends Error {
    constructor(step, message, sure = true) {
      super(message);
      this.step = step;
      this.sure = sure;
    }
  }

  const encoder = new TextEncoder();
  const equal = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);
  const hex = (bytes) => [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const encode64 = (bytes) => btoa(String.fromCharCode(...bytes));

  function join(...parts) {
    const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let at = 0;
    for (const part of parts) {
      whole.set(part, at);
      at += part.length;
    }
    return whole;
  }

  // The bytes of canonical base 64; null for anything else.
  function decode64(text) {
    if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) return null;
    const raw = atob(text);
    return btoa(raw) === text ? Uint8Array.from(raw, (c) => c.charCodeAt(0)) : null;
  }

  // A number without leading zeros that a double holds; null for anything else.
  function number(text) {
    const value = /^(?:0|[1-9][0-9]{0,15})$/.test(text) ? Number(text) : NaN;
    return Number.isSafeInteger(value) ? value : null;
  }

  async function sha256(...parts) {
    return new Uint8Array(await crypto.subtle.digest("SHA-256", join(...parts)));
  }

  const hashLeaf = (leaf) => sha256([0], leaf);
  const hashNode = (left, right) => sha256([1], left, right);

  // ---- keys ----

  async function parseKey(line) {
    const match = /^([\x21-\x2a\x2c-\x7e]{1,128})\+([0-9a-f]{8})\+(\S+)$/.exec(line);
    const typed = match && decode64(match[3]);
    if (!typed || typed.length !== 33 || typed[0] !== KEY_ED25519)
      throw new Refusal("key", "This is no Ed25519 verifier key, as NAME+ID+KEY.");
    const id = (await sha256(encoder.encode(match[1] + "\n"), typed)).slice(0, ID_BYTES);
    if (hex(id) !== match[2]) throw new Refusal("key", `The key of ${match[1]} does not have the id ${match[2]}.`);
    return { name: match[1], id, raw: typed.slice(1) };
  }

  // Keys of one log, a line each, the newest first.
  async function parseKeys(text) {
    const lines = text.split(/[\r\n]+/).filter((line) => line !== "");
    if (lines.length === 0 || lines.length > KEYS_MAX) throw new Refusal("key", "There must be one to eight verifier keys, a line each.");
    const keys = [];
    for (const line of lines) keys.push(await parseKey(line.trim()));
    if (keys.some((key) => key.name !== keys[0].name)) throw new Refusal("key", "The verifier keys are of different logs.");
    return keys;
  }

  // ---- Ed25519 ----

  async function verify(key, signature, text) {
    const imported = await crypto.subtle.importKey("raw", key, { name: "Ed25519" }, false, ["verify"]);
    return crypto.subtle.verify({ name: "Ed25519" }, imported, signature, text);
  }

  // Whether this browser can: it is given test 2 of RFC 8032, and the same with a wrong text.
  async function canVerify() {
    const key = decode64("PUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=");
    const signature = decode64("kqAJqfDUyrhyDoILX2QlQKKye1QWUD+Ps3YiI+vbadoIWsHkPhWZbkWPNhPQ8R2MOHsurrQwKu6wDSkWErsMAA==");
    try {
      return (await verify(key, signature, new Uint8Array([0x72]))) && !(await verify(key, signature, new Uint8Array([0x73])));
    } catch {
      return false;
    }
  }

  // ---- signed notes ----

  // Text and signature lines of a note.
  function splitNote(note) {
    const end = note.lastIndexOf("\n\n");
    const clean = !/[\x00-\x09\x0b-\x1f]/.test(note) && note.isWellFormed?.() !== false;
    if (!clean || end < 0 || !note.endsWith("\n") || encoder.encode(note).length > NOTE_BYTES_MAX)
      throw new Refusal("signature", "The checkpoint is no signed note.");
    const lines = note.slice(end + 2).split("\n").slice(0, -1);
    if (lines.length > SIGNATURES_MAX) throw new Refusal("signature", "The checkpoint has too many signatures.");
    const signatures = lines.map((line) => {
      const match = /^\u2014 ([^ ]+) (.*)$/.exec(line);
      if (!match) throw new Refusal("signature", "The checkpoint has a malformed signature line.");
      return { name: match[1], code: match[2] };
    });
    return { text: note.slice(0, end + 1), signatures };
  }

  // Whether one of the keys signed the text; a bad signature under a key's id is a fault.
  async function checkSignatures({ text, signatures }, keys) {
    let signer = null;
    for (const { name, code } of signatures) {
      if (name !== keys[0].name) continue;
      const bytes = decode64(code);
      if (!bytes) throw new Refusal("signature", `The checkpoint has a malformed signature of ${name}.`);
      const key = keys.find((candidate) => equal(candidate.id, bytes.slice(0, ID_BYTES)));
      if (!key) continue;
      if (bytes.length !== SIGNATURE_BYTES || !(await verify(key.raw, bytes.slice(ID_BYTES), encoder.encode(text))))
        throw new Refusal("signature", `The signature of ${name} is not of this checkpoint.`);
      signer ??= key;
    }
    if (!signer) throw new Refusal("signature", `The checkpoint is not signed by this key of ${keys[0].name}.`);
    return signer;
  }

  // What a checkpoint says; whether it is signed is not asked.
  function readCheckpoint(note) {
    const { text, signatures } = splitNote(note);
    const lines = text.split("\n");
    const size = lines.length === 4 ? number(lines[1]) : null;
    const root = lines.length === 4 ? decode64(lines[2]) : null;
    if (size === null || root?.length !== 32 || lines[0] === "")
      throw new Refusal("signature", "The checkpoint is not three lines: origin, size and root.");
    return { origin: lines[0], size, root, note, text, signatures };
  }

  async function checkCheckpoint(checkpoint, keys) {
    if (!(await canVerify())) throw new Refusal("signature", "This browser cannot check Ed25519 signatures.", false);
    const signer = await checkSignatures(checkpoint, keys);
    if (checkpoint.origin !== signer.name)
      throw new Refusal("signature", `The checkpoint is of the log ${checkpoint.origin}, not of ${signer.name}.`);
    return signer;
  }

  // ---- proofs ----

  function parsePath(step, lines) {
    const hashes = Array.isArray(lines) ? lines.map((line) => decode64(String(line))) : [null];
    if (hashes.length > HASHES_MAX || hashes.some((hash) => hash?.length !== 32))
      throw new Refusal(step, "The hashes of the proof are not lines of 32 bytes in base 64.");
    return hashes;
  }

  function parseProof(text) {
    const lines = text.split("\n");
    const leaf = lines[1]?.startsWith("extra ") ? decode64(lines[1].slice(6)) : null;
    const match = /^index (.*)$/.exec(lines[2] ?? "");
    const index = match && number(match[1]), end = lines.indexOf("", 3);
    if (lines[0] !== FIRST_LINE || !leaf || leaf.length === 0 || index === null || end < 0)
      throw new Refusal("proof", `This is no proof: it has no first line "${FIRST_LINE}", no record or no index.`);
    return { leaf, index, path: parsePath("proof", lines.slice(3, end)), checkpoint: readCheckpoint(lines.slice(end + 1).join("\n")) };
  }

  // The way up from a node: its number and that of the last one, level by level (RFC 9162, 2.1.3.2).
  const half = (n) => Math.floor(n / 2);
  const isRight = (at) => at.node % 2 === 1 || at.node === at.last;

  function rise(at) {
    while (at.node % 2 === 0 && at.node === at.last && at.node > 0) {
      at.node = half(at.node);
      at.last = half(at.last);
    }
    at.node = half(at.node);
    at.last = half(at.last);
  }

  async function checkInclusion(leafHash, index, path, tree) {
    const at = { node: index, last: tree.size - 1 };
    let hash = leafHash;
    if (index >= tree.size) throw new Refusal("path", `The log of ${tree.size} records has no record ${index}.`);
    for (const beside of path) {
      if (at.last === 0) throw new Refusal("path", "The path has too many hashes.");
      hash = isRight(at) ? await hashNode(beside, hash) : await hashNode(hash, beside);
      rise(at);
    }
    if (at.last !== 0 || !equal(hash, tree.root))
      throw new Refusal("path", `This is not record ${index} of the log of ${tree.size} records that was signed.`);
  }

  // Whether the older tree is the beginning of the newer (RFC 9162, 2.1.4.2).
  async function checkConsistency(older, newer, hashes) {
    const fork = new Refusal("consistency", `The log of ${newer.size} records does not begin with that of ${older.size}.`);
    if (older.size > newer.size) throw fork;
    if (older.size === newer.size) {
      if (hashes.length > 0 || !equal(older.root, newer.root)) throw fork;
      return;
    }
    if (older.size === 0 || hashes.length === 0) throw fork;
    const at = { node: older.size - 1, last: newer.size - 1 };
    const power = Number.isInteger(Math.log2(older.size)) && 2 ** Math.log2(older.size) === older.size;
    const rest = power ? hashes : hashes.slice(1);
    let before = power ? older.root : hashes[0], now = before;
    while (at.node % 2 === 1) {
      at.node = half(at.node);
      at.last = half(at.last);
    }
    for (const beside of rest) {
      if (at.last === 0) throw fork;
      if (isRight(at)) before = await hashNode(beside, before);
      now = isRight(at) ? await hashNode(beside, now) : await hashNode(now, beside);
      rise(at);
    }
    if (at.last !== 0 || !equal(before, older.root) || !equal(now, newer.root)) throw fork;
  }

  // All steps in order; `done(step, sentence)` hears of each that held.  `shown` is what the reader sees:
  // the record's number and its leaf.
  async function check({ proof, keys, shown }, done = () => {}) {
    if (!globalThis.crypto?.subtle) throw new Refusal("key", "This browser has no WebCrypto here.", false);
    const trusted = await parseKeys(keys);
    done("key", `It is a key of ${trusted[0].name}, with the id ${hex(trusted[0].id)}.`);
    const { leaf, index, path, checkpoint } = parseProof(proof);
    if (index !== shown.index || !equal(leaf, encoder.encode(shown.leaf)))
      throw new Refusal("proof", `The proof is of a different record than the one on this page, ${shown.index}.`);
    done("proof", `The proof is of record ${index}, and of the ${leaf.length} bytes that this page shows.`);
    const hash = await hashLeaf(leaf);
    done("leaf", `The hash of the record is ${hex(hash)}.`);
    await checkInclusion(hash, index, path, checkpoint);
    done("path", `With ${path.length} hashes beside it, it leads to the root of the log of ${checkpoint.size} records.`);
    const signer = await checkCheckpoint(checkpoint, trusted);
    done("signature", `${signer.name} signed that root, with the key ${hex(signer.id)}.`);
    return checkpoint;
  }

  // Whether the log of a checkpoint that was checked continues that of the one which was seen before.
  // `ask(old, new)` fetches the hashes, in base 64.
  async function compare(seen, present, ask) {
    if (seen.origin !== present.origin)
      throw new Refusal("consistency", `The log was ${seen.origin} when this browser saw it last; now it is ${present.origin}.`);
    if (seen.size > present.size)
      throw new Refusal("consistency", `The log went back: this browser saw ${seen.size} records signed, now there are ${present.size}.`);
    const hashes = seen.size < present.size ? parsePath("consistency", await ask(seen.size, present.size)) : [];
    await checkConsistency(seen, present, hashes);
  }

  return { Refusal, parseKeys, parseProof, readCheckpoint, checkCheckpoint, checkInclusion, checkConsistency,
           hashLeaf, canVerify, check, compare, decode64, encode64, hex };
})();

// The page (src/web/panel_record.c).
(() => {
  const place = globalThis.document?.getElementById("proof-check");
  if (!place) return;
  const SEEN = "bulkhead.checkpoint";
  const TITLES = { key: "Key", proof: "Record", leaf: "Leaf hash", path: "Path to the root", signature: "Signature", consistency: "Same log as before" };
  const button = place.querySelector("button[data-run]"), forget = place.querySelector("button[data-forget]");
  const list = place.querySelector("ol"), verdict = place.querySelector("[data-verdict]"), memory = place.querySelector("[data-memory]");
  const shown = { index: Number(place.dataset.record), leaf: document.getElementById("leaf").textContent };

  function put(kind, step, sentence) {
    const row = document.createElement("li"), name = document.createElement("strong");
    name.textContent = TITLES[step];
    row.className = kind;
    row.append(name, ` ${sentence}`);
    list.append(row);
  }

  function conclude(kind, sentence) {
    verdict.className = `notice ${kind}`;
    verdict.textContent = sentence;
  }

  // What this browser saw last; null: nothing, or nothing that can be read.
  function recall() {
    try {
      const { note, at } = JSON.parse(localStorage.getItem(SEEN));
      return { ...Proof.readCheckpoint(note), at };
    } catch {
      return null;
    }
  }

  function showMemory() {
    const seen = recall();
    forget.hidden = !seen;
    memory.textContent = seen
      ? `This browser remembers the checkpoint of ${seen.size} records that it checked on ${new Date(seen.at).toLocaleString()}.`
      : "This browser remembers no checkpoint of this log yet.";
  }

  async function fetchJson(address) {
    let reply, body;
    try {
      reply = await fetch(address, { credentials: "same-origin", redirect: "error", cache: "no-store" });
      body = await reply.json();
    } catch {
      throw new Proof.Refusal("proof", "The server did not send it. Your session may have ended: reload the page.", false);
    }
    if (!reply.ok) throw new Proof.Refusal("proof", `The server does not send it: ${body.error?.message ?? reply.status}.`, false);
    return body;
  }

  async function askConsistency(older, newer) {
    try {
      return (await fetchJson(`/audit/consistency?old=${older}&new=${newer}`)).hashes;
    } catch (fault) {
      throw new Proof.Refusal("consistency", fault.message, false);
    }
  }

  function remember(checkpoint) {
    const seen = recall();
    if (seen && seen.size > checkpoint.size) return; // another tab saw more meanwhile
    try {
      localStorage.setItem(SEEN, JSON.stringify({ note: checkpoint.note, at: Date.now() }));
    } catch {
      memory.textContent = "This browser does not let the page remember the checkpoint.";
    }
  }

  function showEvidence(seen, present) {
    for (const [title, note] of [["Seen before", seen.note], ["Sent now", present.note]]) {
      const text = document.createElement("pre");
      text.textContent = `${title}:\n${note}`;
      list.append(text);
    }
  }

  async function run() {
    const pasted = place.querySelector("textarea").value.trim();
    const seen = recall(); // before the server is asked: what it sends is not older
    const { proof } = await fetchJson(`${location.pathname}?json=proof`);
    const keys = pasted || (await fetchJson("/audit?json=log")).keys;
    const checkpoint = await Proof.check({ proof, keys, shown }, (...held) => put("good", ...held));
    if (seen) {
      try {
        await Proof.compare(seen, checkpoint, askConsistency);
      } catch (fault) {
        if (fault.sure) showEvidence(seen, checkpoint);
        throw fault;
      }
      put("good", "consistency", `The log of ${seen.size} records that this browser saw before is the beginning of this one.`);
    } else {
      put("", "consistency", "Nothing to compare with: this browser saw no checkpoint of this log before.");
    }
    remember(checkpoint);
    conclude("good", pasted ? "Verified: this record is in the log that the key you pasted signed."
      : "Verified against the key that this server shows. Paste a copy of the key from elsewhere to check the server, too.");
  }

  function fail(fault) {
    const step = fault instanceof Proof.Refusal ? fault.step : "proof";
    put("bad", step, fault.message);
    if (fault.sure === true && step === "consistency")
      conclude("bad", "ALARM: this log is not the one that this browser saw before. Save both checkpoints below and tell the auditors of the site.");
    else if (fault.sure === true)
      conclude("bad", `Not verified: step "${TITLES[step]}" failed.`);
    else
      conclude("", `Not checked to the end: step "${TITLES[step]}" could not be done. Use the command below.`);
  }

  button.addEventListener("click", async () => {
    button.disabled = true;
    list.replaceChildren();
    conclude("", "Checking.");
    await run().catch(fail);
    showMemory();
    button.disabled = false;
  });
  forget.addEventListener("click", () => {
    localStorage.removeItem(SEEN);
    showMemory();
    button.focus();
  });
  place.hidden = false;
  document.getElementById("proof-needs-script").hidden = true;
  showMemory();
})();
