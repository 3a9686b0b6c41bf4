"""A registry of one's own on the loopback, which serves a layout by the OCI distribution
protocol and misbehaves where a test asks for it."""
import hashlib
import http.server
import json
import threading
import time


class Registry:
    """Serves `layout` (oci.Layout) as repository `name`.  What it was asked stands in `asked`.

    stall     blobs of that hexadecimal digest (or "*") stop after half of them
    endless   blobs of that digest never end
    wrong     blobs of that digest have one byte changed
    redirect  {digest: address} sends whoever wants a blob elsewhere
    basic     what a request must carry as Basic credentials, or None
    """

    def __init__(self, layout, name="vision/torch", at="127.0.0.1", tls=None):
        self.layout, self.name, self.asked = layout, name, []
        self.stall = self.endless = self.wrong = self.basic = None
        self.redirect, self.slow = {}, 0
        self.let_go = threading.Event()
        self.server = http.server.ThreadingHTTPServer((at, 0), self._handler())
        if tls:     # a context: handshakes are the connections' own, so that none holds up others
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        self.server.daemon_threads = True
        self.server.block_on_close = False
        self.port = self.server.server_address[1]
        self.host = f"{at}:{self.port}"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    def image(self, tag="good", digest=None):
        return f"docker://{self.host}/{self.name}" + (f"@sha256:{digest}" if digest else f":{tag}")

    def blobs(self):
        """Digests of the blobs that were asked for, in order."""
        return [path.rsplit(":", 1)[1] for path in self.asked if "/blobs/" in path]

    def stop(self):
        self.let_go.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def manifest(self, reference):
        """(media type, bytes) of what a tag or digest names, or None."""
        if reference.startswith("sha256:"):
            path = self.layout.path / "blobs/sha256" / reference[7:]
            data = path.read_bytes() if path.exists() else None
        else:
            found = [m for m in self.layout.manifests
                     if m.get("annotations", {}).get("org.opencontainers.image.ref.name") == reference]
            data = (self.layout.path / "blobs/sha256" / found[0]["digest"][7:]).read_bytes() if found else None
        if data is None:
            return None
        media = json.loads(data).get("mediaType") or next(
            (m["mediaType"] for m in self.layout.manifests if m["digest"] == "sha256:" + hashlib.sha256(data).hexdigest()),
            "application/vnd.oci.image.manifest.v1+json")
        return media, data

    def _handler(registry):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words):
                pass

            def answer(self, status, body=b"", **headers):
                self.send_response(status)
                self.send_header("Docker-Distribution-Api-Version", "registry/2.0")
                for name, value in headers.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.pour_out(body)

            def pour_out(self, data):
                """False: the other side wants no more."""
                try:
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True
                    return False
                return True

            def do_HEAD(self):
                self.do_GET()

            def do_GET(self):
                registry.asked.append(self.path)
                if registry.basic and self.headers.get("Authorization") != "Basic " + registry.basic:
                    return self.answer(401, WWW_Authenticate='Basic realm="here"')
                if self.path == "/v2/":
                    return self.answer(200, b"{}", Content_Type="application/json")
                before, _, after = self.path.partition(f"/v2/{registry.name}/")
                kind, _, reference = after.partition("/")
                if before or kind not in ("manifests", "blobs"):
                    return self.fail("NAME_UNKNOWN")
                return self.manifest(reference) if kind == "manifests" else self.blob(reference[7:])

            def fail(self, code):
                self.answer(404, json.dumps({"errors": [{"code": code, "message": code.lower()}]}).encode(),
                            Content_Type="application/json")

            def manifest(self, reference):
                found = registry.manifest(reference)
                if not found:
                    return self.fail("MANIFEST_UNKNOWN")
                self.answer(200, found[1], Content_Type=found[0],
                            Docker_Content_Digest="sha256:" + hashlib.sha256(found[1]).hexdigest())

            def blob(self, digest):
                path = registry.layout.path / "blobs/sha256" / digest
                if digest in registry.redirect:
                    return self.answer(307, Location=registry.redirect[digest])
                if not path.exists():
                    return self.fail("BLOB_UNKNOWN")
                data = path.read_bytes()
                if registry.wrong == digest:
                    data = bytes([data[0] ^ 1]) + data[1:]
                if registry.endless == digest:
                    return self.pour()
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if registry.stall in (digest, "*"):
                    self.pour_out(data[:len(data) // 2])
                    registry.let_go.wait(60)
                    self.close_connection = True
                    return None
                for at in range(0, len(data), 1 << 16):
                    self.pour_out(data[at:at + (1 << 16)])
                    if registry.slow:
                        time.sleep(registry.slow)
                return None

            def pour(self):
                self.send_response(200)
                self.send_header("Content-Type", "application/octet-stream")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                while not registry.let_go.is_set() and self.pour_out(b"10000\r\n" + b"\0" * 65536 + b"\r\n"):
                    pass
        return Handler
