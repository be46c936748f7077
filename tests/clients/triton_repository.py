#!/usr/bin/env python3
"""An unmodified tritonclient loads and unloads models of a running server: by hand, for it comes from PyPI.

    python3 -m venv venv
    venv/bin/pip install 'tritonclient[http,grpc]'
    hippodrome serve --model deploy/models/h3-demo --admin 127.0.0.1:9090 &
    venv/bin/python tests/clients/triton_repository.py HTTP_ADDRESS GRPC_ADDRESS ADMIN_ADDRESS

The output of a run is in triton_repository.txt.
"""
import importlib.metadata
import sys
import time

import requests
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import InferenceServerException

http, grpc, admin = sys.argv[1:]
failures = 0


def check(what, good, shown=""):
    global failures
    failures += not good
    print(f"{'ok' if good else 'FAILED':6} {what} {shown}")


def refused(call):
    try:
        call()
    except InferenceServerException as error:
        return str(error)
    return ""


def states():
    return {model["name"]: model["state"] for model in operator.get_model_repository_index()}


print("tritonclient", importlib.metadata.version("tritonclient"))
operator = tritonclient.http.InferenceServerClient(admin)
client = tritonclient.http.InferenceServerClient(http)
check("index", states() == {"h3-demo": "READY"}, states())
operator.load_model("h3-demo")
check("load again", client.is_model_ready("h3-demo"))
operator.unload_model("h3-demo")
error = refused(lambda: client.get_model_metadata("h3-demo"))
check("unload", "no model" in error, error)
for _ in range(100):
    if states() == {"h3-demo": "UNAVAILABLE"}:
        break
    time.sleep(0.05)
index = operator.get_model_repository_index()
check("index of what was unloaded", index[0]["reason"] == "unloaded", index)
operator.load_model("h3-demo")
check("load what was unloaded", client.is_model_ready("h3-demo"))
error = refused(lambda: operator.load_model("new"))
check("load what was never there", "directory" in error, error)
error = refused(lambda: operator.load_model("h3-demo", config="{}"))
check("a configuration of Triton's", "config" in error, error)
answer = requests.post(f"http://{admin}/v2/repository/models/other/load", timeout=60,
                       json={"parameters": {"directory": "deploy/models/bigs-demo"}})
check("load from a directory, without tritonclient", answer.status_code == 200, answer.text)
check("index", states() == {"h3-demo": "READY", "other": "READY"}, states())
answer = requests.post(f"http://{http}/v2/repository/index", timeout=60)
check("not on the main listener", answer.status_code == 404, answer.text)
stub = tritonclient.grpc.InferenceServerClient(grpc)
for name in ("load_model", "unload_model"):
    error = refused(lambda: getattr(stub, name)("h3-demo"))
    check(f"not over gRPC: {name}", "UNIMPLEMENTED" in error, error)
sys.exit(failures != 0)
