"""Requests that are well-formed HTTP and gRPC, and hostile or odd inside, against the real program: every
field with values that it cannot have, JSON that costs more than it weighs, broken Unicode, and stop
strings that nearly match.

  hostile_requests_test.py HIPPODROME MODELS_DIR [--long] [--sanitized]

The short form takes seconds and is a test; the output of --long is kept in
tests/benchmarks/hostile-requests.txt. --sanitized: memory is not looked at, for sanitizers keep it. Fields
come from /openapi.json and from the .proto files in the working directory.
"""

import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import statistics
import struct
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import hostile_peers, raw_http2

# As they stand in JSON; the first three do not stand there.
VALUES = ["NaN", "Infinity", "-Infinity", "-1", "0", "1e-45", "1e38", "-1e38", "1e400", "0.5", "1.5",
          "2147483648", "-2147483649", "9223372036854775807", "9223372036854775808",
          "-9223372036854775809", "18446744073709551616", "true", '"x"', '"1"', '""', "null", "[]",
          "[1]", "[[]]", "{}", '{"a": 1}', '"\\u0000"']
FINITE = [value for value in VALUES[3:] if value != "1e400"]
INTEGERS = [0, 1, -1, 2**31 - 1, 2**31, -2**31, 2**32 + 1, 2**63 - 1, -2**63]
FLOATS = [float("nan"), float("inf"), -float("inf"), -1, -0.0, 0, 1e-45, 1e-38, 0.5, 1, 1e38, -1e38]
# OK, and what a client did wrong: INVALID_ARGUMENT, NOT_FOUND, RESOURCE_EXHAUSTED,
# FAILED_PRECONDITION, OUT_OF_RANGE.
CLIENT_CODES = {0, 3, 5, 8, 9, 11}

# A call of each route that is taken, quick, and has the fields beside these.
BODIES = {
    "/v1/completions": {"prompt": "It was", "max_tokens": 2},
    "/v1/chat/completions": {},
    "/v1/embeddings": {"input": "It was"},
    "/generate": {"inputs": "It was", "parameters": {"max_new_tokens": 2}},
    "/generate_stream": {"inputs": "It was", "parameters": {"max_new_tokens": 2}},
    "/": {"inputs": "It was", "parameters": {"max_new_tokens": 2}},
    "/predict": {"inputs": "It was"},
    "/embed": {"inputs": "It was"},
    "/embed_all": {"inputs": "It was"},
    "/rerank": {"query": "a", "texts": ["b"]},
    "/similarity": {"inputs": {"source_sentence": "a", "sentences": ["b"]}},
    "/decode": {"ids": [1, 2]},
    "/fill_mask": {"inputs": "a [MASK]"},
    "/token_classification": {"inputs": "It was"},
    "/question_answering": {"inputs": {"question": "a", "context": "b"}},
    "/tokenize": {"prompt": "It was"},
    "/detokenize": {"tokens": [1, 2]},
    "/v1/states/{handle}/fork": {"n": 2},
    "/v1/batches": {"input_file_id": "", "endpoint": "/predict", "completion_window": "24h"},
    "/v2/models/m/infer": {"inputs": [{"name": "text_input", "datatype": "BYTES", "shape": [1],
                                       "data": ["It was"]}], "parameters": {"max_tokens": 2}},
    "/v2/models/m/generate": {"text_input": "It was", "max_tokens": 2},
    "/v2/models/m/generate_stream": {"text_input": "It was", "max_tokens": 2},
}


class Client:
    """One connection at a time, opened again when the server closes it."""

    def __init__(self, address):
        self.address = address
        self.connection = http.client.HTTPConnection(address, timeout=120)

    def post(self, path, body):
        """Status and body. `body`: bytes, text that is JSON, or what becomes JSON."""
        if not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        data = body if isinstance(body, bytes) else body.encode()
        for attempt in range(2):
            try:
                self.connection.request("POST", path, data, {"content-type": "application/json"})
                with self.connection.getresponse() as answer:
                    return answer.status, answer.read()
            except (http.client.HTTPException, ConnectionError):
                # A refused body is not read to its end, and an idle connection may be gone.
                self.connection.close()
                if attempt == 1:
                    return None, b""
        return None, b""

    def upload(self, lines):
        """The id of a file for batches."""
        form = (b'--x\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
                b'--x\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + lines + b"\r\n--x--\r\n")
        self.connection.request("POST", "/v1/files", form, {"content-type": "multipart/form-data; boundary=x"})
        with self.connection.getresponse() as answer:
            return json.load(answer)["id"]

    def document(self):
        self.connection.request("GET", "/openapi.json")
        with self.connection.getresponse() as answer:
            return json.load(answer)


class Tally:
    """Counts what came of calls, and what must not have come."""

    def __init__(self, name):
        self.name = name
        self.codes = {}
        self.wrong = []

    def add(self, code, good, what):
        self.codes[code] = self.codes.get(code, 0) + 1
        if not good:
            self.wrong.append((code, what))

    def report(self):
        codes = ", ".join(f"{code}: {count}" for code, count in sorted(self.codes.items(), key=str))
        print(f"{self.name}: {sum(self.codes.values())} calls, {codes}")
        assert not self.wrong, self.wrong[:5]


# ---- Parameters over HTTP -----------------------------------------------------------------------


def fields_of(document, path):
    """Of the body that a route takes, and those of its parameters, as the document has them."""
    pattern = path.replace("/m/", "/{model}/")
    schema = document["paths"][pattern]["post"]["requestBody"]["content"]["application/json"]["schema"]
    top = set()
    for part in schema.get("oneOf", [schema]):
        top |= set(part.get("properties", {}))
    nested = set()
    if path in ("/", "/generate", "/generate_stream"):
        nested = set(document["components"]["schemas"]["TgiParameters"]["properties"])
    elif "parameters" in top:
        nested = top - {"parameters", "inputs", "input", "model"}
    return top, nested


def with_field(body, name, value, nested):
    """JSON of `body` with the text `value` for a field, which json could not write."""
    body = json.loads(json.dumps(body))
    (body.setdefault("parameters", {}) if nested else body)[name] = "@value@"
    return json.dumps(body).replace('"@value@"', value)


def check_fields(server, long):
    client = Client(server.http)
    document = client.document()
    served = {path.replace("{model}", "m") for path, methods in document["paths"].items()
              if "{version}" not in path
              and "application/json" in methods.get("post", {}).get("requestBody", {"content": ()})["content"]}
    assert served == set(BODIES), served ^ set(BODIES)
    BODIES["/v1/batches"]["input_file_id"] = client.upload(
        b'{"custom_id": "a", "method": "POST", "url": "/predict", "body": {"inputs": "It was"}}\n')
    tally = Tally("fields over HTTP, one at a time")
    draw = random.Random(1)
    for path, body in BODIES.items():
        for nested, names in enumerate(fields_of(document, path)):
            for name in sorted(names):
                for value in VALUES if long else draw.sample(VALUES, 3):
                    text = with_field(body, name, value, nested)
                    code, answer = client.post(path, text)
                    # Streams say what went wrong in an event.
                    good = code is not None and code < 500 and b'"code":"internal"' not in answer
                    if value in VALUES[:3]:
                        good = code == 400
                    tally.add(code, good, (path, text[:200], answer[:200]))
    tally.report()
    tally = Tally("fields over HTTP, several at a time")
    paths = [path for path in BODIES if fields_of(document, path)[0]]
    for _ in range(10000 if long else 200):
        path = draw.choice(paths)
        text = json.dumps(BODIES[path])
        for _ in range(draw.randrange(2, 6)):
            nested = draw.randrange(2)
            names = sorted(fields_of(document, path)[nested])
            if names and isinstance(json.loads(text).get("parameters", {}), dict):
                text = with_field(json.loads(text), draw.choice(names), draw.choice(FINITE), nested)
        code, answer = client.post(path, text)
        tally.add(code, code is not None and code < 500, (path, text[:300], answer[:200]))
    tally.report()


def check_counts(server):
    """A million of what costs little to write."""
    million = 10**6
    client = Client(server.http)
    calls = {
        "n": '{"prompt": "a", "n": 1000000}',
        "best_of": '{"prompt": "a", "best_of": 1000000}',
        "stop": '{"prompt": "a", "stop": [' + ",".join(['"a"'] * million) + "]}",
        "logit_bias": '{"prompt": "a", "logit_bias": {' +
                      ",".join(f'"{i}":1' for i in range(million * 6 // 10)) + "}}",
        "prompts": '{"prompt": [' + ",".join(['"a"'] * million) + "]}",
        "token ids": '{"prompt": [' + ",".join(["7"] * million) + "]}",
        "id -1": '{"prompt": [-1]}', "id 2^31": '{"prompt": [2147483648]}',
        "id 2^63": '{"prompt": [9223372036854775808]}', "id 10^6": '{"prompt": [1000000]}',
        "bias of -1": '{"prompt": "a", "logit_bias": {"-1": 1}}',
        "bias of 10^6": '{"prompt": "a", "logit_bias": {"1000000": 1}}',
        "bias of 2^31": '{"prompt": "a", "logit_bias": {"2147483648": 1}}',
        "bias NaN": '{"prompt": "a", "logit_bias": {"7": 1e39}}',
    }
    tally = Tally("counts and ids")
    for name, body in calls.items():
        code, answer = client.post("/v1/completions", body)
        tally.add(code, code == 400, (name, answer[:200]))
    over = '{"prompt": "a", "logit_bias": {' + ",".join(f'"{i}":1' for i in range(million)) + "}}"
    code, answer = client.post("/v1/completions", over)  # 10 MB: more than a body may have
    tally.add(code, code in (413, None), ("10^6 entries of logit_bias", answer[:200]))
    tally.report()


# ---- Parameters over gRPC -----------------------------------------------------------------------


def varint(value):
    value &= 2**64 - 1
    data = b""
    while value > 127:
        data += bytes([value & 127 | 128])
        value >>= 7
    return data + bytes([value])


def tag(number, kind):
    return varint(number << 3 | kind)


def block(number, data):
    return tag(number, 2) + varint(len(data)) + data


def encoded(kind, number, values):
    """Each of the values that a field may carry on the wire."""
    if kind == "float":
        return [tag(number, 5) + struct.pack("<f", value) for value in values["float"]]
    if kind == "double":
        return [tag(number, 1) + struct.pack("<d", value) for value in values["float"]]
    return [tag(number, 0) + varint(value) for value in values["integer"]]


def numbers_of(path, message):
    """(name, kind, number) of the numeric fields of a message."""
    with open(path) as file:
        text = re.search(rf"^message {message} {{\n(.*?)^}}", file.read(), re.M | re.S)[1]
    fields = re.findall(r"^  (?:optional )?(\w+) (\w+) = (\d+);", text, re.M)
    return [(name, kind, int(number)) for kind, name, number in fields
            if kind in ("float", "double", "int32", "int64", "uint64", "bool")]


def check_messages(server):
    values = {"float": FLOATS, "integer": INTEGERS}
    folder = "proto/hippodrome/v1/"
    generation, encoding = "/hippodrome.v1.Generation/", "/hippodrome.v1.Encoding/"
    text = block(2, b"It was") + tag(4, 0) + varint(2)
    inputs = block(2, block(1, b"a [MASK]"))
    messages = [(generation + "Generate", folder + "generation.proto", "GenerateRequest", text),
                (generation + "Score", folder + "generation.proto", "ScoreRequest",
                 block(2, b"It") + block(4, block(1, b" was"))),
                (encoding + "Classify", folder + "encoding.proto", "ClassifyRequest", inputs),
                (encoding + "FillMask", folder + "encoding.proto", "FillMaskRequest", inputs),
                (encoding + "Embed", folder + "encoding.proto", "EmbedRequest", inputs),
                (encoding + "AnswerQuestion", folder + "encoding.proto", "AnswerQuestionRequest",
                 block(2, block(1, b"a") + block(2, b"b")))]
    tally = Tally("fields over gRPC")

    def call(path, payload, good=CLIENT_CODES):
        with raw_http2.Connection(server.grpc, 120) as connection:
            code = connection.call(path, payload)
        tally.add(code, code in good, (path, payload[:60]))

    for path, file, name, base in messages:
        for _, kind, number in numbers_of(file, name):
            for payload in encoded(kind, number, values):
                call(path, base + payload)
    bias = [block(16, tag(1, 0) + varint(token) + tag(2, 5) + struct.pack("<f", value))
            for token in INTEGERS for value in FLOATS]
    for payload in bias + [b"".join(bias)]:
        call(generation + "Generate", text + payload)
    refused = {3, 8, 11}
    many = b"".join(block(16, tag(1, 0) + varint(i) + tag(2, 5) + b"\0\0\0\0") for i in range(10**5))
    call(generation + "Generate", text + many, refused)
    call(generation + "Generate", text + block(10, b"a") * 10**6, refused)
    call(generation + "Generate", block(3, block(1, varint(7) * 10**6)), refused)
    for token in (-1, 10**6, 2**31 - 1, -2**31):
        call(generation + "Generate", block(3, block(1, varint(token))), refused)
    # KServe's parameters: any name, with any kind of value.
    tensor = block(1, b"text_input") + block(2, b"BYTES") + tag(3, 0) + varint(1)
    infer = block(1, b"m") + block(5, tensor + block(5, block(8, b"It was")))
    kinds = [tag(1, 0) + b"\1", block(3, b"x")]
    kinds += encoded("int64", 2, values) + encoded("double", 4, values) + encoded("uint64", 5, values)
    names = [name for name, _, _ in numbers_of(folder + "generation.proto", "GenerateRequest")]
    for name in names + ["stop", "other"]:
        limit = b"" if name == "max_tokens" else parameter("max_tokens", tag(2, 0) + varint(2))
        for value in kinds:
            call("/inference.GRPCInferenceService/ModelInfer", infer + limit + parameter(name, value))
    tally.report()


def parameter(name, value):
    return block(4, block(1, name.encode()) + block(2, value))


# ---- JSON ---------------------------------------------------------------------------------------


def bombs(long):
    """(name, body, the status that it gets)."""
    for depth in (100, 10**4, 10**6):
        yield f"arrays in arrays, {depth}", b"[" * depth, 400
        yield f"arrays in a member, {depth}", b'{"prompt": ' + b"[" * depth + b"]" * depth + b"}", 400
        if depth * 6 < 8 << 20:
            yield f"objects in objects, {depth}", b'{"a":' * depth + b"1" + b"}" * depth, 400
    keys = b",".join(b'"%05x":1' % i for i in range(750000))
    yield "750,000 keys", b"{" + keys + b"}", 400
    yield "10^6 keys, 11 MB", b"{" + b",".join(b'"%06x":1' % i for i in range(10**6)) + b"}", 413
    yield "a key twice", b'{"prompt": "a", "prompt": "b"}', 400
    yield "a key twice, deep", b'{"a": [{"b": {"c": [{"d": 1, "d": 2}]}}]}', 400
    yield "a string of 8 MB less 1 KiB", b'{"x": "' + b"a" * ((8 << 20) - 1024) + b'"}', 400
    yield f"a string of {64 if long else 16} MB", \
        b'{"prompt": "' + b"a" * ((64 if long else 16) << 20) + b'"}', 413


def check_bombs(server, long, sanitized):
    client = Client(server.http)
    for name, body, expected in bombs(long):
        times, growth = [], []
        for path in ("/v1/completions", "/generate", "/predict", "/v2/models/m/infer", "/tokenize"):
            for _ in range(5 if long else 1):
                before = server.resident()
                server.forget_peak()
                begin = time.monotonic()
                code, answer = client.post(path, body)
                times.append(time.monotonic() - begin)
                growth.append(server.peak() - before)
                # The connection of a body that is too large may end before it is sent.
                allowed = (expected, None) if expected == 413 else (expected,)
                assert code in allowed, (name, path, code, answer[:200])
        print(f"{name}: {len(body):,} bytes, {expected}, {statistics.median(times) * 1e3:.1f} ms, "
              f"at most {max(growth) / 2**20:.1f} MiB more")
        # A body, what becomes of it at most 65,536 parts, and what threads keep of it.
        assert sanitized or max(growth) < 64 << 20, (name, growth)


# ---- Unicode ------------------------------------------------------------------------------------


def check_broken_text(server):
    client = Client(server.http)
    broken = [b"\xff", b"\x80", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80",
              b"\xf8\x88\x80\x80\x80", b"\\ud800", b"\\udc00", b"\\ud800\\u0041", b"\0", b"\n"]
    tally = Tally("strings that are not Unicode")
    for text in broken:
        for path, body in (("/v1/completions", b'{"prompt": "a%sb", "max_tokens": 1}'),
                           ("/v1/completions", b'{"prompt": "a", "max_tokens": 1, "stop": "%s"}'),
                           ("/v1/completions", b'{"prompt": "a", "max_tokens": 1, "%s": 1}'),
                           ("/generate", b'{"inputs": "a%sb"}'),
                           ("/v2/models/m/generate", b'{"text_input": "a%sb", "max_tokens": 1}'),
                           ("/predict", b'{"inputs": "%s"}'), ("/tokenize", b'{"prompt": "%s"}')):
            code, answer = client.post(path, body % text)
            answer.decode()  # whatever it repeats is UTF-8
            tally.add(code, code == 400, (path, text, answer[:200]))
    tally.report()
    for text in ("\0", "a\0b", "\U0001f600", "\ufeff", "\ufffd", "\u202e", "e\u0301"):
        code, answer = client.post("/v1/completions", {"prompt": text, "max_tokens": 2})
        assert code == 200, (text, answer)
        code, answer = client.post("/tokenize", {"prompt": text})
        code, answer = client.post("/detokenize", {"tokens": json.loads(answer)["tokens"]})
        assert json.loads(answer)["prompt"] == text, (text, answer)


def events(body):
    """The JSON of each event of a stream, every one of which is UTF-8 by itself."""
    for part in body.split(b"\n\n"):
        if not part or part.startswith(b":"):
            continue
        assert part.startswith(b"data: "), part
        text = part[6:].decode()  # strict
        if text != "[DONE]":
            yield json.loads(text)


def streamed_text(client, call):
    code, body = client.post("/v1/completions", dict(call, stream=True))
    assert code == 200 and body.endswith(b"data: [DONE]\n\n"), (code, body[-200:])
    return "".join(event["choices"][0]["text"] for event in events(body))


def whole_text(client, call):
    code, body = client.post("/v1/completions", call)
    assert code == 200, (code, body)
    return json.loads(body)["choices"][0]["text"]


def tgi_text(client, call):
    parameters = {name: call[name] for name in ("temperature", "seed", "stop") if name in call}
    parameters["max_new_tokens"] = call["max_tokens"]
    code, body = client.post("/generate_stream",
                             {"inputs": call["prompt"], "parameters": parameters})
    assert code == 200, (code, body)
    parts = list(events(body))
    text = "".join(part["token"]["text"] for part in parts if not part["token"]["special"])
    assert text == parts[-1]["generated_text"], (text, parts[-1])
    return text


def random_call(draw):
    """Hot enough that most tokens are parts of characters, or none."""
    alphabet = "aé€\U0001f600 \n\0"
    prompt = "".join(draw.choice(alphabet) for _ in range(draw.randrange(1, 12)))
    return {"prompt": prompt, "max_tokens": draw.randrange(1, 24), "seed": draw.randrange(2**63),
            "temperature": draw.choice([0, 1, 5, 100])}


def in_parallel(server, count, check):
    """check(client, draw) so often, by four clients; the sum of what it returns."""
    def part(seed):
        client = Client(server.http)
        draw = random.Random(seed)
        return sum(check(client, draw) for _ in range(count // 4))
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        return sum(pool.map(part, range(4)))


def check_streams(server, long):
    count = 10000 if long else 32

    def check(client, draw):
        call = random_call(draw)
        whole = whole_text(client, call)
        assert streamed_text(client, call) == whole, call
        assert tgi_text(client, call) == whole, call
        return "\ufffd" in whole

    replaced = in_parallel(server, count, check)
    print(f"{count} random streams of completions and of TGI are what the whole answer is; {replaced} "
          "have bytes that are no character")


# ---- Stop strings -------------------------------------------------------------------------------


def before_stops(text, stops):
    """The text before the stop string that ends first; of those that end there, the longest."""
    data = text.encode()
    ends = []
    for stop in (stop.encode() for stop in stops):
        at = data.find(stop)
        if at >= 0:
            ends.append((at + len(stop), at))
    return data[:min(ends)[1]].decode() if ends else text


def random_stops(draw, text):
    """Up to 16: pieces of the text, cut anywhere, their prefixes with another end, and long rows."""
    stops = []
    for _ in range(draw.randrange(1, 17)):
        begin = draw.randrange(len(text))
        piece = text[begin:begin + draw.randrange(1, 12)]
        stops.append(draw.choice([piece, piece + "~", piece[:-1] + "\u20ac", piece * 2,
                                  "a" * 255 + "b", " " * 200 + "b"]))
    return [stop for stop in stops if 0 < len(stop.encode()) <= 256]


def check_stops(server, long):
    count = 3000 if long else 40

    def check(client, draw):
        call = dict(random_call(draw), temperature=draw.choice([0, 1, 3]))
        text = whole_text(client, call)
        if not text:
            return 0
        stops = random_stops(draw, text)
        if not stops:
            return 0
        expected = before_stops(text, stops)
        call["stop"] = stops
        assert whole_text(client, call) == expected, (call, text)
        assert streamed_text(client, call) == expected, (call, text)
        assert tgi_text(client, call) == expected, (call, text)
        return expected != text

    stopped = in_parallel(server, count, check)
    print(f"{count} texts with up to 16 stop strings end where they must, also streamed; {stopped} of "
          "them before their end")


def check_candidates(server):
    """The best of several has the largest mean log probability, and the others are its peers."""
    client = Client(server.http)
    code, body = client.post("/generate", {"inputs": "It was", "parameters": {
        "max_new_tokens": 8, "do_sample": True, "temperature": 2, "seed": 5, "best_of": 8,
        "details": True}})
    assert code == 200, body
    details = json.loads(body)["details"]
    means = [statistics.fmean(token["logprob"] for token in part["tokens"])
             for part in [details] + details["best_of_sequences"]]
    assert len(means) == 8 and len(set(means)) > 1 and means[0] == max(means), means


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--sanitized", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = hostile_peers.Hippodrome(
            arguments.hippodrome, os.path.join(arguments.models, "h3-demo"), folder + "/log",
            "--model", "e=" + os.path.join(arguments.models, "bigs-demo"), "--threads", "2",
            "--batch-dir", folder + "/batches",
            "--kv-bytes", str(512 << 20))  # room for half of the tokens that a request may have
        try:
            Client(server.http).post("/v1/completions", {"prompt": "a"})
            before = server.resident()
            server.forget_peak()
            check_fields(server, arguments.long)
            check_counts(server)
            check_messages(server)
            peak, after = server.peak(), server.resident()
            print(f"resident: {before >> 20} MiB before, at most {peak >> 20}, {after >> 20} after")
            assert arguments.sanitized or peak - before < 256 << 20, "memory is not bounded"
            check_bombs(server, arguments.long, arguments.sanitized)
            check_broken_text(server)
            check_streams(server, arguments.long)
            check_stops(server, arguments.long)
            check_candidates(server)
        except BaseException:
            print(server.said()[-2000:])
            server.process.kill()
            raise
        code = server.stop()
        assert code == 0, code
    print("passed")


if __name__ == "__main__":
    sys.exit(main())
