"""An OpenID provider on 127.0.0.1, for sign-ins of a whole system: discovery, keys, and the
device flow (RFC 8628), whose answers a test chooses one by one."""
import base64
import http.server
import json
import subprocess
import threading
import time
import urllib.parse


def b64(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Provider(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder, client="bulkhead"):
        super().__init__(("127.0.0.1", 0), Handler)
        self.url, self.client = f"http://127.0.0.1:{self.server_port}", client
        self.key = str(folder / "provider.key")
        self.asked = []    # forms of the token endpoint
        self.answers = []  # what it answers next: an error's name, a status, claims, or None to hang up
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        modulus = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True,
                                 capture_output=True, text=True).stdout.strip().split("=")[1]
        self.jwk = {"kty": "RSA", "kid": "k1", "alg": "RS256", "use": "sig", "e": "AQAB", "n": b64(bytes.fromhex(modulus))}
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def sign(self, claims):
        now = int(time.time())
        claims = {"iss": self.url, "aud": self.client, "iat": now, "exp": now + 300, **claims}
        text = ".".join(b64(json.dumps(part).encode()) for part in ({"alg": "RS256", "kid": "k1"}, claims))
        signature = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(),
                                   check=True, capture_output=True).stdout
        return f"{text}.{b64(signature)}"

    def get(self, path):
        return {"/.well-known/openid-configuration": {
                    "issuer": self.url, "authorization_endpoint": f"{self.url}/authorize",
                    "token_endpoint": f"{self.url}/token", "jwks_uri": f"{self.url}/jwks",
                    "device_authorization_endpoint": f"{self.url}/device",
                    "response_types_supported": ["code"], "subject_types_supported": ["public"],
                    "code_challenge_methods_supported": ["S256"],
                    "id_token_signing_alg_values_supported": ["RS256"]},
                "/jwks": {"keys": [self.jwk]}}.get(path)

    def post(self, path, form):
        """(status, answer)"""
        if path == "/device":
            return 200, {"device_code": "DEVICE-CODE", "user_code": "WDJB-MJHT", "verification_uri": f"{self.url}/enter",
                         "verification_uri_complete": f"{self.url}/enter?c=WDJB-MJHT", "expires_in": 120, "interval": 1}
        self.asked.append(form)
        answer = self.answers.pop(0) if self.answers else "authorization_pending"
        if answer is None:
            raise ConnectionAbortedError
        if isinstance(answer, int):
            return answer, {}
        if isinstance(answer, str):
            return 400, {"error": answer}
        return 200, {"access_token": "access", "token_type": "Bearer", "expires_in": 300, "id_token": self.sign(answer)}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def answer(self, status, value):
        text = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def do_GET(self):
        value = self.server.get(self.path)
        if isinstance(value, str):  # somewhere else
            self.send_response(303)
            self.send_header("Location", value)
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.answer(200 if value else 404, value or {})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        try:
            self.answer(*self.server.post(self.path, dict(urllib.parse.parse_qsl(body))))
        except ConnectionAbortedError:
            self.close_connection = True
