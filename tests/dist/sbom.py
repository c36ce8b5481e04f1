#!/usr/bin/env python3
"""Prints what the binary is built from, as a CycloneDX 1.5 document.

Reads `cargo metadata` on standard input and Cargo.lock in the current directory. What only
builds or tests mcpx is left out. SOURCE_DATE_EPOCH dates it, so that it is the same each time.
"""
import json
import os
import sys
import time
import tomllib
import uuid

metadata = json.load(sys.stdin)
with open("Cargo.lock", "rb") as f:
    locked = {(p["name"], p["version"]): p for p in tomllib.load(f)["package"]}
packages = {p["id"]: p for p in metadata["packages"]}
nodes = {n["id"]: n for n in metadata["resolve"]["nodes"]}
root = metadata["resolve"]["root"]


def used(node):
    """What a package is linked with: neither what runs at build time nor what tests need."""
    return [d["pkg"] for d in node["deps"] if any(k["kind"] is None for k in d["dep_kinds"])]


shipped, waiting = set(), [root]
while waiting:
    one = waiting.pop()
    if one not in shipped:
        shipped.add(one)
        # A procedural macro is part of the compiler, not of what it compiles.
        macro = any("proc-macro" in t["kind"] for t in packages[one]["targets"])
        waiting += [] if macro else used(nodes[one])
shipped = {i for i in shipped if not any("proc-macro" in t["kind"] for t in packages[i]["targets"])}


def ref(identity):
    p = packages[identity]
    return f"pkg:cargo/{p['name']}@{p['version']}"


def component(identity):
    p = packages[identity]
    kind = "application" if identity == root else "library"
    out = {"type": kind, "bom-ref": ref(identity), "name": p["name"], "version": p["version"], "purl": ref(identity)}
    if p.get("description"):
        out["description"] = " ".join(p["description"].split())
    if p.get("license"):
        # Before SPDX expressions a slash stood for OR.
        out["licenses"] = [{"expression": p["license"].replace("/", " OR ").replace("  ", " ")}]
    checksum = locked.get((p["name"], p["version"]), {}).get("checksum")
    if checksum:
        out["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    return out


libraries = sorted((component(i) for i in shipped if i != root), key=lambda c: c["bom-ref"])
if not libraries:
    sys.exit("sbom: cargo metadata names no dependency")
dependencies = sorted(
    ({"ref": ref(i), "dependsOn": sorted(ref(d) for d in used(nodes[i]) if d in shipped)} for i in shipped),
    key=lambda d: d["ref"],
)
at = time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
document = {
    "bomFormat": "CycloneDX",
    "specVersion": "1.5",
    "serialNumber": "urn:uuid:" + str(uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([libraries, dependencies]))),
    "version": 1,
    "metadata": {"timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", at), "component": component(root)},
    "components": libraries,
    "dependencies": dependencies,
}
json.dump(document, sys.stdout, indent=1)
print()
