"""The same provider for browsers: the authorization code flow with PKCE, where every user who comes
is `person` without being asked.

    with CodeProvider(site.dir) as provider: ... provider.url, provider.visits"""
import base64
import hashlib
import os
import time
import urllib.parse

from provider import Provider


def s256(verifier):
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


class CodeProvider(Provider):
    def __init__(self, folder, client="bulkhead", person="ada"):
        self.person, self.visits, self.codes = person, [], {}
        super().__init__(folder, client)

    def authorize(self, fields):
        """Where the browser is sent: back, with a code."""
        code = os.urandom(16).hex()
        self.visits.append(fields)
        self.codes[code] = fields
        return fields["redirect_uri"] + "?" + urllib.parse.urlencode({"code": code, "state": fields["state"]})

    def get(self, path):
        where, _, query = path.partition("?")
        return self.authorize(dict(urllib.parse.parse_qsl(query))) if where == "/authorize" else super().get(path)

    def post(self, path, form):
        if form.get("grant_type") != "authorization_code":
            return super().post(path, form)
        visit = self.codes.pop(form["code"], None)
        if not visit or s256(form["code_verifier"]) != visit["code_challenge"]:
            return 400, {"error": "invalid_grant"}
        token = self.sign({"sub": self.person, "nonce": visit["nonce"], "auth_time": int(time.time()),
                           "preferred_username": self.person, "amr": ["pwd", "otp"]})
        return 200, {"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": token}
