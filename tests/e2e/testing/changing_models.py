"""Models that are replaced while clients ask them, and what each of them answers."""

import contextlib
import http.client
import json
import os
import shutil
import ssl
import struct
import threading
import time

from testing import grpc_messages
from testing.grpc_messages import GENERATE, SCORE, text
from testing import raw_http2

FOREVER = float("inf")


def variant(source, directory):
    """A copy of the model directory `source` that answers otherwise: some matrices have other signs."""
    shutil.copytree(source, directory)
    path = os.path.join(directory, "model.safetensors")
    os.chmod(path, 0o644)
    with open(path, "rb") as file:
        data = bytearray(file.read())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for name, tensor in header.items():
        if name.endswith(("mlp.fc1.weight", "du_forward.weight")):
            # Of 8-bit weights the scales.
            tensor = header.get(name + "_scale", tensor)
            width = {"BF16": 2, "F32": 4}[tensor["dtype"]]
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            signs = slice(begin + width - 1, end, width)
            data[signs] = bytes(byte ^ 0x80 for byte in data[signs])
    with open(path, "wb") as file:
        file.write(data)
    return directory


class Place:
    """How a server is reached: `http`, `grpc` and `admin` are HOST:PORT; `authority`: the file of that of its
    certificate, where it has TLS."""

    def __init__(self, http, grpc, admin, authority=None, key=None, admin_key=None):
        self.http, self.grpc, self.admin = http, grpc, admin
        self.authority, self.key, self.admin_key = authority, key, admin_key
        self.tls = self.grpc_tls = None
        if authority is not None:
            self.tls = ssl.create_default_context(cafile=authority)
            self.grpc_tls = ssl.create_default_context(cafile=authority)
            self.grpc_tls.set_alpn_protocols(["h2"])

    def connect(self, where):
        if self.tls is None:
            return http.client.HTTPConnection(where, timeout=120)
        host, port = where.rsplit(":", 1)
        return http.client.HTTPSConnection("localhost" if host == "127.0.0.1" else host, int(port),
                                           timeout=120, context=self.tls)

    def fields(self, admin=False):
        key = self.admin_key if admin else self.key
        return {"authorization": "Bearer " + key} if key else {}

    def ask(self, path, body=None, where=None, method=None):
        """The status and the body of an answer; a body that breaks off is an error."""
        where = where or self.http
        if isinstance(body, dict):
            body = json.dumps(body)
        connection = self.connect(where)
        try:
            connection.request(method or ("GET" if body is None else "POST"), path, body,
                               self.fields(where == self.admin))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def call(self, path, message):
        """The grpc-status and the fields of all answers, joined by their number."""
        with raw_http2.Connection(self.grpc, 120, tls=self.grpc_tls) as connection:
            stream = connection.open(path, **self.fields())
            return grpc_messages.answer(connection, stream, message)


# A library may begin threads, twice as many as there are cores (gRPC), whenever load first asks for them.
MOST_NEW_THREADS = 2 * os.cpu_count()


def held(pid):
    """What a server at rest holds: the least that is seen within a moment, for connections are closing and a
    model may be being destroyed."""
    def look():
        with open(f"/proc/{pid}/status") as file:
            resident = next(line for line in file if line.startswith("VmRSS"))
        return {"resident_mib": round(int(resident.split()[1]) / 1024, 1),
                "threads": len(os.listdir(f"/proc/{pid}/task")),
                "descriptors": len(os.listdir(f"/proc/{pid}/fd"))}
    samples = []
    for _ in range(5):
        time.sleep(0.1)
        samples.append(look())
    return {name: min(sample[name] for sample in samples) for name in samples[0]}


def growth(samples):
    """The most that was held beyond the first of `samples`."""
    return {name: round(max(sample[name] for sample in samples) - samples[0][name], 1)
            for name in ("resident_mib", "threads", "descriptors")}


# ---- What is asked


def completion(model, prompt, tokens, **more):
    return {"model": model, "prompt": prompt, "max_tokens": tokens, "temperature": 0,
            "ignore_eos": True, **more}


def whole(place, model, prompt, tokens):
    status, body = place.ask("/v1/completions", completion(model, prompt, tokens))
    return status, json.loads(body)["choices"][0]["text"] if status == 200 else body


def streamed(place, model, prompt, tokens):
    status, body = place.ask("/v1/completions", completion(model, prompt, tokens, stream=True))
    if status != 200:
        return status, body
    events = body.decode().split("data: ")[1:]
    assert events[-1].strip() == "[DONE]", events[-1]
    return status, "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1])


def tgi(place, model, prompt, tokens):
    status, body = place.ask("/generate", {"model": model, "inputs": prompt, "parameters": {
        "max_new_tokens": tokens, "details": True, "truncate": 4}})
    return status, json.loads(body)["details"]["tokens"] if status == 200 else body


def infer(place, model, prompt, tokens):
    status, body = place.ask(f"/v2/models/{model}/generate", {
        "text_input": prompt, "parameters": {"max_tokens": tokens, "temperature": 0}})
    return status, json.loads(body)["text_output"] if status == 200 else body


def grpc_stream(place, model, prompt, tokens):
    """Greedy, and over the end of the text."""
    message = (text(1, model) + text(2, prompt) + grpc_messages.number(4, tokens) +
               grpc_messages.varint(5 << 3 | 5) + struct.pack("<f", 0) + grpc_messages.number(11, 1))
    status, answer = place.call(GENERATE, message)
    return {0: 200, 5: 404}.get(status, status), (answer[1], answer[2])


def score(place, model, prompt, tokens):
    message = text(1, model) + text(2, prompt) + text(4, text(1, " and so")) * 2
    status, answer = place.call(SCORE, message)
    return {0: 200, 5: 404}.get(status, status), answer[1]


def embedding(place, model, prompt, tokens):
    status, body = place.ask("/v1/embeddings", {"model": model, "input": prompt})
    return status, json.loads(body)["data"][0]["embedding"] if status == 200 else body


def predict(place, model, prompt, tokens):
    status, body = place.ask("/predict", {"model": model, "inputs": prompt})
    return status, body


DECODER_CALLS = (whole, streamed, tgi, grpc_stream, score)
PROMPTS = [f"The {word} of the sea was" for word in ("king", "end", "old man", "storm")]


# ---- What happens to models


class Operator:
    """Changes the models of a server, and knows at any time which ones may answer."""

    def __init__(self, place):
        self.place = place
        self.lock = threading.Lock()
        self.changes = {}  # by name: [begin, end, version]; None: there is none
        self.expected = {}

    def _change(self, name, version, path, body):
        change = [time.monotonic(), FOREVER, version]
        with self.lock:
            self.changes.setdefault(name, []).append(change)
        status, answer = self.place.ask(path, body, self.place.admin)
        change[1] = time.monotonic()
        return status, answer

    def served(self, name, version):
        """From the beginning."""
        self.changes[name] = [[0, 0, version]]

    def load(self, name, directory):
        """Its version is its directory."""
        status, answer = self._change(name, directory, f"/v2/repository/models/{name}/load",
                                      {"parameters": {"directory": directory}})
        assert status == 200, (status, answer)

    def unload(self, name):
        status, answer = self._change(name, None, f"/v2/repository/models/{name}/unload", {})
        assert status == 200, (status, answer)

    def index(self):
        status, body = self.place.ask("/v2/repository/index", "", self.place.admin)
        assert status == 200, (status, body)
        return {model["name"]: model for model in json.loads(body)}

    def possible(self, name, begin, end):
        """The versions that may have been found between these times."""
        with self.lock:
            changes = list(self.changes.get(name, []))
        done = [change for change in changes if change[1] <= begin]
        versions = {done[-1][2] if done else None}
        return versions | {change[2] for change in changes if change[0] < end and change[1] > begin}

    def learn(self, name, version, calls, prompts=PROMPTS, tokens=12):
        """Asks the model `name`, which must be of that version, everything."""
        for call in calls:
            for prompt in prompts:
                status, answer = call(self.place, name, prompt, tokens)
                assert status == 200, (call.__name__, status, answer)
                self.expected[call, prompt, tokens, version] = answer

    def check(self, name, call, prompt, tokens=12):
        """Asks once. An error where the answer is that of no model that can have been meant. Whether
        only one could."""
        begin = time.monotonic()
        status, answer = call(self.place, name, prompt, tokens)
        versions = self.possible(name, begin, time.monotonic())
        if status == 404:
            assert None in versions, f"{name} was not found, though it was there: {answer}"
        else:
            assert status == 200, (name, call.__name__, status, answer)
            answers = [self.expected[call, prompt, tokens, version]
                       for version in versions if version is not None]
            assert answer in answers, f"{name}, {call.__name__}: {answer} of none of {versions}"
        return len(versions) == 1


class Client(threading.Thread):
    """Asks `ask(i)` for i = 0, 1, ... until stop(), with a pause between."""

    def __init__(self, ask, pause=lambda: 0.005):
        super().__init__()
        self.ask, self.pause = ask, pause
        self.asked = 0
        self.certain = 0
        self.failures = []
        self.ended = threading.Event()
        self.working = threading.Lock()  # whoever holds it keeps the client from asking

    def run(self):
        while not self.ended.is_set():
            with self.working:
                try:
                    self.certain += bool(self.ask(self.asked))
                except Exception as error:  # pylint: disable=broad-except
                    self.failures.append(f"{type(error).__name__}: {error}"[:500])
                self.asked += 1
            self.ended.wait(self.pause())

    def stop(self):
        self.ended.set()
        self.join()


@contextlib.contextmanager
def resting(clients):
    """Nobody of `clients` asks anything."""
    with contextlib.ExitStack() as stack:
        for client in clients:
            stack.enter_context(client.working)
        yield
