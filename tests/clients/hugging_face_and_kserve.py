#!/usr/bin/env python3
"""Unmodified clients of other servers against a running one: by hand, for they come from PyPI.

    python3 -m venv venv
    venv/bin/pip install huggingface_hub text-generation 'tritonclient[http,grpc]'
    hippodrome serve --model deploy/models/h3-demo --model deploy/models/bigs-demo &
    venv/bin/python tests/clients/hugging_face_and_kserve.py HTTP_ADDRESS GRPC_ADDRESS

The output of a run is in hugging_face_and_kserve.txt.
"""
import importlib.metadata
import sys

import numpy
import requests
import tritonclient.grpc
import tritonclient.http
from huggingface_hub import InferenceClient
from text_generation import Client
from text_generation.errors import ValidationError
from tritonclient.utils import InferenceServerException

http, grpc = sys.argv[1:]
PROMPT = "The king"
failures = 0


def check(what, good, shown=""):
    global failures
    failures += not good
    print("ok    " if good else "FAILED", what, shown)


def versions():
    for name in ["huggingface_hub", "text-generation", "tritonclient", "grpcio"]:
        print(name, importlib.metadata.version(name))


def models():
    """The first decoder and the first encoder, with its head's outputs."""
    names = [m["id"] for m in requests.get(f"http://{http}/v1/models").json()["data"]]
    metadata = {n: requests.get(f"http://{http}/v2/models/{n}").json() for n in names}
    decoder = next(n for n in names if metadata[n]["inputs"][0]["name"] == "text_input")
    encoder = next(n for n in names if metadata[n]["inputs"][0]["name"] == "text")
    return decoder, encoder, [o["name"] for o in metadata[encoder]["outputs"]]


def hugging_face():
    client = InferenceClient(model=f"http://{http}")
    text = client.text_generation(PROMPT, max_new_tokens=12)
    check("huggingface_hub text_generation", bool(text), repr(text))
    parts = list(client.text_generation(PROMPT, max_new_tokens=12, stream=True))
    check("huggingface_hub stream", "".join(parts) == text, f"{len(parts)} parts")
    details = client.text_generation(PROMPT, max_new_tokens=12, details=True, do_sample=True, seed=7)
    check("huggingface_hub details", details.details.generated_tokens == 12
          and details.details.seed == 7, details.details.finish_reason)
    last = list(client.text_generation(PROMPT, max_new_tokens=3, details=True, stream=True))[-1]
    check("huggingface_hub stream details", last.details.finish_reason == "length"
          and last.details.generated_tokens == 3)
    full = client.text_generation(PROMPT, max_new_tokens=12, return_full_text=True)
    check("huggingface_hub return_full_text", full == PROMPT + text)
    try:
        client.text_generation(PROMPT, max_new_tokens=0)
        check("huggingface_hub error", False)
    except Exception as error:
        check("huggingface_hub error", "max_new_tokens" in str(error), type(error).__name__)


def text_generation_client():
    client = Client(f"http://{http}")
    try:
        answer = client.generate(PROMPT, max_new_tokens=12)
        check("text-generation generate", answer.details.generated_tokens == 12,
              repr(answer.generated_text))
        events = list(client.generate_stream(PROMPT, max_new_tokens=12))
        check("text-generation generate_stream",
              "".join(e.token.text for e in events) == answer.generated_text
              and events[-1].generated_text == answer.generated_text)
    except Exception as error:
        check("text-generation generate", False, repr(error))
    try:
        client.generate(PROMPT, max_new_tokens=4, truncate=1, watermark=True)
        check("text-generation error", False)
    except ValidationError as error:
        check("text-generation error", "watermark" in str(error), str(error))


def kserve(module, address, decoder, encoder, outputs):
    name = module.__name__
    client = module.InferenceServerClient(address)
    check(f"{name} live, ready", client.is_server_live() and client.is_server_ready()
          and client.is_model_ready(encoder))
    try:
        ready = client.is_model_ready("no-such-model")
    except InferenceServerException:
        ready = False
    check(f"{name} no such model", not ready)
    server = client.get_server_metadata()
    check(f"{name} metadata", (server["name"] if isinstance(server, dict) else server.name)
          == "hippodrome")

    texts = numpy.array(["Paris is a city.", "I like it."], dtype=object)
    tensor = module.InferInput("text", [2], "BYTES")
    tensor.set_data_from_numpy(texts)
    result = client.infer(encoder, [tensor], request_id="7")
    head = {o: result.as_numpy(o) for o in outputs if result.get_output(o) is not None}
    check(f"{name} infer, encoder", head and all(v is not None for v in head.values()),
          {k: list(v.shape) for k, v in head.items()})
    result = client.infer(encoder, [tensor], outputs=[module.InferRequestedOutput("embedding")])
    embedding = result.as_numpy("embedding")
    norms = numpy.linalg.norm(embedding, axis=1)
    check(f"{name} infer, embedding", embedding.shape[0] == 2 and numpy.allclose(norms, 1),
          list(embedding.shape))

    prompt = module.InferInput("text_input", [1], "BYTES")
    prompt.set_data_from_numpy(numpy.array([PROMPT], dtype=object))
    result = client.infer(decoder, [prompt], parameters={"max_tokens": 12, "temperature": 0})
    check(f"{name} infer, decoder", bool(result.as_numpy("text_output")[0]),
          result.as_numpy("text_output")[0])
    try:
        client.infer(decoder, [prompt], parameters={"beam_width": 2})
        check(f"{name} error", False)
    except InferenceServerException as error:
        check(f"{name} error", "beam_width" in str(error), str(error))


versions()
decoder, encoder, outputs = models()
hugging_face()
text_generation_client()
kserve(tritonclient.http, http, decoder, encoder, outputs)
kserve(tritonclient.grpc, grpc, decoder, encoder, outputs)
print("failures:", failures)
sys.exit(failures > 0)
