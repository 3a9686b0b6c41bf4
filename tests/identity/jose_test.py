#!/usr/bin/env python3
"""Do other implementations agree with src/identity about signed tokens?  Speaks TAP.

    jose_test.py VERDICT FOLDER [SEED]

VERDICT is the program jws_verdict.  Tokens are signed by Debian's `jose` (libjose), and
by npm's jose, which is fetched into FOLDER where the registry can be reached; both are
skipped by name where they are missing.  Then tokens are damaged in ways that a seed
chooses, and each implementation is asked.  What src/identity accepts the other must
accept, with the same payload.  What the other accepts and src/identity refuses must be
refused for its form, never for its signature.
"""
import base64
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from report import Report

ALGS = ["RS256", "PS256", "ES256", "ES384", "EdDSA"]
# What src/identity asks beyond RFC 7515: more than a good signature.
STRICTER = {"token_encoding", "token_form", "header_json", "header_crit", "header_b64", "header_size",
            "header_type", "kid_invalid", "key_unknown", "alg_missing"}
CHARACTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ "


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, errors="surrogateescape", timeout=60)
    return done.returncode, done.stdout


def encode(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def public(key):
    return {name: value for name, value in key.items() if name not in ("d", "p", "q", "dp", "dq", "qi", "key_ops")}


class LibJose:
    """Debian's command over libjose."""
    name = "libjose"

    def __init__(self):
        code, listed = run("jose", "alg") if shutil.which("jose") else (1, "")
        self.algs = [alg for alg in ALGS if alg in listed.split()] if code == 0 else []
        self.missing = None if self.algs else "the program jose is not installed"
        self.cases = 20

    def make(self, alg):
        private = run("jose", "jwk", "gen", "-i", json.dumps({"alg": alg}))[1]
        with tempfile.NamedTemporaryFile("w", suffix=".jwk") as key:
            key.write(private)
            key.flush()
            code, token = run("jose", "jws", "sig", "-I", "-", "-c", "-k", key.name, "-s",
                              json.dumps({"protected": {"alg": alg, "kid": "k"}}), text='{"sub":"somebody"}')
        assert code == 0, alg
        return {**public(json.loads(private)), "kid": "k"}, token.strip()

    def judge(self, cases):
        with tempfile.NamedTemporaryFile("w", suffix=".jwk") as file:
            file.write(json.dumps(cases[0][0]))
            file.flush()
            for _, token in cases:
                code, payload = run("jose", "jws", "ver", "-i", "-", "-k", file.name, "-O", "-", text=token)
                yield encode(payload.encode("utf-8", "surrogateescape")) if code == 0 else None


NODE = """
import * as jose from 'jose';
import { createInterface } from 'node:readline';
const algs = %s;
for await (const line of createInterface({ input: process.stdin })) {
  const [what, a, b] = line.split('\\t');
  if (what === 'make') {
    const { publicKey, privateKey } = await jose.generateKeyPair(a, { extractable: true });
    const token = await new jose.CompactSign(new TextEncoder().encode('{"sub":"somebody"}'))
      .setProtectedHeader({ alg: a, kid: 'k' }).sign(privateKey);
    console.log(JSON.stringify([{ ...await jose.exportJWK(publicKey), kid: 'k', alg: a }, token]));
  } else {
    try {
      const key = await jose.importJWK(JSON.parse(a), JSON.parse(a).alg);
      const { payload } = await jose.compactVerify(b, key, { algorithms: algs });
      console.log('ok ' + Buffer.from(payload).toString('base64url'));
    } catch (e) { console.log('no'); }
  }
}
""" % json.dumps(ALGS)


class NpmJose:
    """npm's jose, run by node."""
    name = "npm jose"

    def __init__(self, folder):
        self.folder, self.algs, self.missing, self.cases = folder, ALGS, None, 400
        if not shutil.which("node") or not shutil.which("npm"):
            self.missing = "node and npm are not installed"
        elif not os.path.isdir(f"{folder}/node_modules/jose") and not self.fetch():
            self.missing = "the npm registry cannot be reached"
        else:
            with open(f"{folder}/ask.mjs", "w", encoding="utf-8") as script:
                script.write(NODE)

    def fetch(self):
        os.makedirs(self.folder, exist_ok=True)
        command = ["npm", "install", "--prefix", self.folder, "--no-audit", "--no-fund", "--ignore-scripts",
                   "--fetch-retries=0", "jose@6.2.13"]
        try:
            return subprocess.run(command, capture_output=True, timeout=60).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def ask(self, lines):
        code, answer = run("node", f"{self.folder}/ask.mjs", text="".join(line + "\n" for line in lines))
        assert code == 0
        return answer.splitlines()

    def make(self, alg):
        return json.loads(self.ask([f"make\t{alg}"])[0])

    def judge(self, cases):
        for line in self.ask(f"judge\t{json.dumps(key)}\t{token}" for key, token in cases):
            yield line[3:] if line.startswith("ok ") else None


def damage(token, dice):
    """The token with a character, a part or its header changed, or as it was."""
    kind, at = dice.randrange(6), dice.randrange(len(token))
    parts = token.split(".")
    if kind == 0:
        return token
    if kind == 1:
        return token[:at] + token[at + 1:]
    if kind == 2:
        return token[:at] + dice.choice(CHARACTERS) + token[at:]
    if kind == 3:
        header = dict(json.loads(base64.urlsafe_b64decode(parts[0] + "==")))
        header[dice.choice(["alg", "kid", "crit", "b64", "typ"])] = dice.choice([*ALGS, "none", "HS256", False, ["x"]])
        parts[0] = encode(json.dumps(header).encode())
        return ".".join(parts)
    if kind == 4:
        part = dice.randrange(3)
        parts[part] = dice.choice(["", "e30", "AAAA", parts[part][:len(parts[part]) // 2]])
        return ".".join(parts)
    return token[:at] + dice.choice(CHARACTERS) + token[at + 1:]


def verdicts(program, cases):
    lines = "".join(f"{json.dumps({'keys': [key]})}\t{token}\n" for key, token in cases)
    code, answer = run(program, text=lines)
    assert code == 0
    return answer.splitlines()


def compare(program, other, alg, seed):
    """How many of each outcome, and what they disagree about."""
    dice = random.Random(f"{seed} {other.name} {alg}")
    key, token = other.make(alg)
    cases = [(key, token)] + [(key, damage(token, dice)) for _ in range(other.cases)]
    agreed, stricter, faults = 0, 0, []
    for (_, text), ours, theirs in zip(cases, verdicts(program, cases), other.judge(cases)):
        mine = ours[3:] if ours.startswith("ok ") else None
        if mine == theirs:
            agreed += 1
        elif mine is None and ours in STRICTER:
            stricter += 1
        else:
            faults.append(f"{ours} against {theirs}: {text}")
    if not verdicts(program, cases[:1])[0].startswith("ok "):
        faults.append("the token as it was signed is refused")
    return agreed, stricter, faults


def main():
    program, folder, seed = sys.argv[1], sys.argv[2], (sys.argv[3:] or ["1"])[0]
    others = [LibJose(), NpmJose(folder)]
    report = Report(len(others) * len(ALGS))
    for other in others:
        for alg in ALGS:
            title = f"{other.name} {alg}"
            if other.missing or alg not in other.algs:
                report.line(True, title, skip=other.missing or other.name + " does not know it")
                continue
            agreed, stricter, faults = compare(program, other, alg, seed)
            report.line(not faults, f"{title}: {agreed} agreed, {stricter} refused only here", faults[:10])
    return report.close()


if __name__ == "__main__":
    sys.exit(main())
