"""OCI layouts made by hand: good ones, and such as no tool would make."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
TAR = "application/vnd.oci.image.layer.v1.tar"
GZIP = TAR + "+gzip"


def entry(name, text=None, type=tarfile.REGTYPE, link="", mode=0o755, uid=0, gid=0, **more):
    """A member of a layer: (header, content)."""
    info = tarfile.TarInfo(name)
    data = text.encode() if isinstance(text, str) else text or b""
    info.type, info.linkname, info.mode, info.uid, info.gid, info.size = type, link, mode, uid, gid, len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def folder(name, **more):
    return entry(name, type=tarfile.DIRTYPE, **more)


def layer(*entries):
    """A plain archive of them."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def programs(*names):
    """Members: these programs of this machine with the libraries that they need."""
    files, made = {}, []
    for name in names:
        files[f"bin/{name}"] = pathlib.Path(f"/bin/{name}").read_bytes()
        for word in subprocess.run(["ldd", f"/bin/{name}"], capture_output=True, text=True).stdout.split():
            if word.startswith("/"):
                files[word[1:]] = pathlib.Path(word).read_bytes()
    folders = sorted({str(p) for f in files for p in pathlib.PurePath(f).parents if str(p) != "."})
    made += [folder(f) for f in folders]
    return made + [entry(f, data) for f, data in files.items()]


class Layout:
    """A layout in a folder.  `tweak` functions change a document before it is written."""

    def __init__(self, path, owner=None):
        self.path = pathlib.Path(path)
        self.owner = owner
        (self.path / "blobs/sha256").mkdir(parents=True, exist_ok=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion":"1.0.0"}')
        self.manifests = []

    def blob(self, data, media, **more):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        digest = hashlib.sha256(data).hexdigest()
        (self.path / "blobs/sha256" / digest).write_bytes(data)
        return {"mediaType": media, "digest": "sha256:" + digest, "size": len(data), **more}

    def add(self, tag, *layers, config=None, zipped=True, manifest=lambda m: m, document=lambda c: c, diff_ids=None):
        """An image of these plain archives; its digest."""
        blobs = [self.blob(gzip.compress(data, 1) if zipped else data, GZIP if zipped else TAR) for data in layers]
        ids = diff_ids or ["sha256:" + hashlib.sha256(data).hexdigest() for data in layers]
        made = document({"architecture": "amd64", "os": "linux", "config": config or {},
                         "rootfs": {"type": "layers", "diff_ids": ids}})
        body = manifest({"schemaVersion": 2, "config": self.blob(made, CONFIG), "layers": blobs})
        found = self.blob(body, MANIFEST)
        self.manifests.append({**found, "annotations": {"org.opencontainers.image.ref.name": tag}})
        self.write()
        return found["digest"][len("sha256:"):]

    def write(self, **more):
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": self.manifests, **more}))
        if self.owner:
            for at, folders, files in os.walk(self.path):
                for name in ["."] + folders + files:
                    os.lchown(os.path.join(at, name), self.owner, self.owner)
