"""Canaries: texts that are found again wherever they went, in clear, base64, base64url or hex.

    canaries = Canaries()
    password = canaries.make("password")      # one of ours, to send as a secret
    canaries.keep("session", answer["session"])  # one that the system gave
    canaries.found(b"...")                    # {kind: its text}"""
import base64
import os
import re


def forms(raw):
    """All ways in which the bytes are looked for; in base64 at each place in a group of three."""
    yield from (raw, raw.hex().encode(), raw.hex().upper().encode())
    for shift in range(3):
        whole = base64.b64encode(b"\0" * shift + raw)
        inner = whole[(shift * 8 + 5) // 6:(shift + len(raw)) * 8 // 6]  # without what neighbours change
        yield from (inner, inner.translate(bytes.maketrans(b"+/", b"-_")))


class Canaries:
    def __init__(self):
        self.prefix = "CaNaRy" + os.urandom(6).hex()  # of all that are ours: one search finds them
        self.made, self.kept = [], {}

    def make(self, kind):
        self.made.append(kind)
        return f"{self.prefix}{len(self.made) - 1:05}"

    def keep(self, kind, secret):
        self.kept[secret if isinstance(secret, bytes) else secret.encode()] = kind
        return secret

    def found(self, haystack):
        found = {}
        for number in set(re.findall(re.escape(self.prefix.encode()) + rb"(\d{5})", haystack)):
            found[self.made[int(number)]] = f"{self.prefix}{number.decode()}"
        if any(form in haystack for form in list(forms(self.prefix.encode()))[1:]):
            for number, kind in enumerate(self.made):
                text = f"{self.prefix}{number:05}"
                if any(form in haystack for form in list(forms(text.encode()))[1:]):
                    found[kind] = text + " encoded"
            if not found:
                found["unknown"] = self.prefix + " encoded"
        for secret, kind in self.kept.items():
            if any(form in haystack for form in forms(secret)):
                found[kind] = repr(secret)
        return found
