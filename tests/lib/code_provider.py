"""A small OpenID provider on 127.0.0.1: signs in whoever it is told to, without asking.

    with Provider("bulkhead") as provider: ... provider.url

RS256 by the program openssl; authorization code with PKCE, and nothing else."""
import base64
import hashlib
import http.server
import json
import subprocess
import tempfile
import threading
import time
import urllib.parse


def encode(value):
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def openssl(*arguments, text=None):
    return subprocess.run(["openssl", *arguments], input=text, capture_output=True, check=True, timeout=30).stdout


class Provider:
    def __init__(self, client, person="ada"):
        self.client, self.person, self.codes, self.asked = client, person, {}, []
        self.key = openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048")
        modulus = openssl("rsa", "-noout", "-modulus", text=self.key).decode().strip().partition("=")[2]
        self.jwks = {"keys": [{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "e": "AQAB",
                               "n": encode(bytes.fromhex(modulus))}]}

    def __enter__(self):
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                provider.answer(self, None)

            def do_POST(self):
                provider.answer(self, self.rfile.read(int(self.headers["Content-Length"])).decode())

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()

    def answer(self, request, body):
        path, _, query = request.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(query if body is None else body))
        known = {"/.well-known/openid-configuration": self.configuration, "/jwks": lambda _: self.jwks, "/token": self.token}
        if path == "/authorize":
            request.send_response(303)
            request.send_header("Location", self.authorize(fields))
            request.send_header("Content-Length", "0")
            request.end_headers()
            return
        reply = json.dumps(known[path](fields)).encode() if path in known else b"{}"
        request.send_response(200 if path in known else 404)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(reply)))
        request.end_headers()
        request.wfile.write(reply)

    def configuration(self, _):
        return {"issuer": self.url, "authorization_endpoint": self.url + "/authorize", "token_endpoint": self.url + "/token",
                "jwks_uri": self.url + "/jwks", "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"], "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"], "grant_types_supported": ["authorization_code"]}

    def authorize(self, fields):
        """Where the browser is sent: back, with a code for whoever is signed in here."""
        self.asked.append(fields)
        code = encode(hashlib.sha256(repr((time.time(), fields)).encode()).digest())
        self.codes[code] = fields
        return fields["redirect_uri"] + "?" + urllib.parse.urlencode({"code": code, "state": fields["state"]})

    def token(self, fields):
        asked = self.codes.pop(fields["code"])
        assert encode(hashlib.sha256(fields["code_verifier"].encode()).digest()) == asked["code_challenge"]
        now = int(time.time())
        claims = {"iss": self.url, "sub": self.person, "aud": self.client, "iat": now, "exp": now + 300, "auth_time": now,
                  "nonce": asked["nonce"], "preferred_username": self.person, "amr": ["pwd", "otp"]}
        signed = ".".join(encode(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "k"}, claims))
        signature = self.sign(signed)
        return {"access_token": "a", "token_type": "Bearer", "expires_in": 300, "id_token": f"{signed}.{signature}"}

    def sign(self, text):
        with tempfile.NamedTemporaryFile() as key:
            key.write(self.key)
            key.flush()
            return encode(openssl("dgst", "-sha256", "-sign", key.name, text=text.encode()))
