"""Calls a running server with grpcio alone, and prints each case with what came of it. It has no .proto
files: reflection says what there is. For a virtual environment, not for continuous integration:

  pip install grpcio grpcio-reflection grpcio-health-checking
  hippodrome serve --model deploy/models/h3-demo --model deploy/models/bigs-demo
  grpcio_calls.py 127.0.0.1:50051 127.0.0.1:8080    # gRPC and HTTP

The exit status is 1 if a case came out otherwise than it must.
"""

import collections
import concurrent.futures
import queue
import random
import re
import sys
import threading
import time
import urllib.request

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import \
    ProtoReflectionDescriptorDatabase

ADDRESS, HTTP = sys.argv[1:3]
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
CHANNEL = grpc.insecure_channel(ADDRESS, UNLIMITED)
DATABASE = ProtoReflectionDescriptorDatabase(CHANNEL)
POOL = descriptor_pool.DescriptorPool(DATABASE)
failures = 0


def message(name, **fields):
    descriptor = POOL.FindMessageTypeByName("hippodrome.v1." + name)
    return message_factory.GetMessageClass(descriptor)(**fields)


def method(path, response, kind="unary_unary", channel=CHANNEL):
    return getattr(channel, kind)(path, request_serializer=lambda m: m.SerializeToString(),
                                  response_deserializer=response.FromString)


def generate(channel=CHANNEL):
    return method("/hippodrome.v1.Generation/Generate", type(message("GenerateResponse")),
                  "unary_stream", channel)


def tokenize(text):
    return TOKENIZE(message("TokenizeRequest", text=text))


def code_of(work):
    try:
        work()
        return "OK"
    except grpc.RpcError as error:
        return error.code().name


def case(name, found, expected):
    global failures
    good = found == expected
    failures += not good
    print(f"{'ok    ' if good else 'FAILED'} {name}: {found}" + ("" if good else f", not {expected}"))


def metrics(*names):
    """The sum of each of these series, whatever their labels are, but for those in the name."""
    with urllib.request.urlopen(f"http://{HTTP}/metrics") as answer:
        text = answer.read().decode()
    return {name: sum(float(value) for value in
                      re.findall(rf"^{re.escape(name)}(?:\{{.*\}})? (\S+)$", text, re.M))
            for name in names}


def reflection():
    services = sorted(DATABASE.get_services())
    print("services:", ", ".join(services))
    for service in services:
        case("describes " + service, POOL.FindServiceByName(service).full_name, service)
    newer = method("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
                   reflection_pb2.ServerReflectionResponse, "stream_stream")
    request = reflection_pb2.ServerReflectionRequest(list_services="")
    listed = [s.name for answer in newer(iter([request])) for s in answer.list_services_response.service]
    case("v1 lists as v1alpha", sorted(listed), services)


def health():
    stub = health_pb2_grpc.HealthStub(CHANNEL)
    request = health_pb2.HealthCheckRequest
    case("Check", stub.Check(request()).status, 1)
    case("Check of an unknown service", code_of(lambda: stub.Check(request(service="x"))), "NOT_FOUND")
    statuses = stub.List(health_pb2.HealthListRequest()).statuses
    case("List has the server", statuses[""].status, 1)
    watch = stub.Watch(request(service="x"))
    case("Watch of an unknown service", next(watch).status, 3)
    watch.cancel()


def embed_stream():
    return method("/hippodrome.v1.Encoding/EmbedStream", type(message("EmbedResponse")), "stream_stream")


def embeddings(inputs, words):
    return message("EmbedRequest", model="bigs-demo",
                   inputs=[message("EncodingInput", text="a " * words)] * inputs)


def ping_pong(sizes):
    """Each request follows the answer to the one before. How many embeddings came each time."""
    answered = queue.SimpleQueue()

    def requests():
        for size in sizes:
            yield embeddings(size, 3)
            answered.get()

    for answer in embed_stream()(requests()):
        yield len(answer.embeddings)
        answered.put(None)


def cancelled_embeddings(after):
    ended = threading.Event()

    def requests():
        yield embeddings(1, 3)
        ended.wait()

    call = embed_stream()(requests())
    for _ in range(after):
        next(call)
    call.cancel()
    code = code_of(lambda: list(call))
    ended.set()
    return code


def many_large(count):
    request = message("TokenizeRequest", text="\x01" * 271828)
    calls = [TOKENIZE.future(request) for _ in range(count)]
    return dict(collections.Counter(code_of(call.result) for call in calls))


def deadlines(count):
    """Calls of 1 ms to 10 s, eight at once, that would take longer, or about as long."""
    draw = random.Random(7)
    score = method("/hippodrome.v1.Generation/Score", type(message("ScoreResponse")))
    embed = method("/hippodrome.v1.Encoding/Embed", type(message("EmbedResponse")))
    endless = message("GenerateRequest", text="It was", max_tokens=20000, ignore_eos=True)
    continuation = type(message("ScoreRequest").continuations.add())(text=" one" * 100)
    scored = message("ScoreRequest", text="It was " * 100, continuations=[continuation] * 8)
    kinds = {"Generate": lambda time: list(generate()(endless, timeout=time)),
             "Score": lambda time: score(scored, timeout=time),
             "Embed": lambda time: embed(embeddings(128, 100), timeout=time),
             "EmbedStream": lambda time: list(embed_stream()(iter([embeddings(128, 100)]), timeout=time))}

    times = [10 ** draw.uniform(-3, 1) for _ in range(count)]

    def call(i):
        name = list(kinds)[i % len(kinds)]
        seconds = times[i]
        return name, code_of(lambda: kinds[name](seconds)), seconds

    gauges = ("hippodrome_requests_running", "hippodrome_requests_queued", "hippodrome_state_bytes",
              "hippodrome_state_slots_used")
    counters = ('hippodrome_request_failures_total{reason="cancelled"}',
                'hippodrome_request_failures_total{reason="deadline"}')
    base, before = metrics(*gauges), metrics(*counters)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(call, range(count)))
    begin = time.monotonic()
    while metrics(*gauges) != base and time.monotonic() - begin < 10:
        time.sleep(0.01)
    took = 1000 * (time.monotonic() - begin)
    for (name, code), calls in sorted(collections.Counter(end[:2] for end in ended).items()):
        case(f"deadlines of {name}, {calls} calls", code in ("OK", "DEADLINE_EXCEEDED") and code, code)
    case("gauges are where they were", metrics(*gauges), base)
    print(f"       after {took:.0f} ms")
    cancels, counted = (round(metrics(name)[name] - before[name]) for name in counters)
    case("cancels counted", cancels, 0)
    late = [seconds for _, code, seconds in ended if code == "DEADLINE_EXCEEDED"]
    # Calls whose time is short may end before they are sent.
    case("deadlines counted", sum(seconds > 0.1 for seconds in late) <= counted <= len(late), True)
    print(f"       {counted} of {len(late)}")


def interoperability():
    models = method("/hippodrome.v1.Models/List", type(message("ListModelsResponse")))
    empty = message("ListModelsRequest")
    case("empty_unary", code_of(lambda: models(empty)), "OK")
    metadata = (("x-custom", "value"), ("x-custom-bin", b"\x00\xff"))
    case("custom_metadata", code_of(lambda: models(empty, metadata=metadata)), "OK")
    case("large_unary, 4 MiB each way", len(tokenize("\x01" * (4 << 20)).token_ids) > 1 << 20, True)
    case("a message over 8 MiB", code_of(lambda: tokenize("a" * (9 << 20))), "RESOURCE_EXHAUSTED")
    for name in ("hippodrome.v1.Models/No", "hippodrome.v1.No/List"):
        call = method("/" + name, type(message("ListModelsResponse")))
        case("unimplemented " + name, code_of(lambda: call(empty)), "UNIMPLEMENTED")

    long = message("GenerateRequest", text="It was", max_tokens=2000, ignore_eos=True)
    short = message("GenerateRequest", text="It was", max_tokens=8, temperature=0)
    tokens = sum(len(response.token_ids) for response in generate()(short))
    case("server_streaming, 8 tokens", tokens, 8)
    call = generate()(long)
    call.cancel()
    case("cancel_after_begin", code_of(lambda: list(call)), "CANCELLED")
    call = generate()(long)
    next(call)
    call.cancel()
    case("cancel_after_first_response", code_of(lambda: list(call)), "CANCELLED")
    case("timeout_on_sleeping_server", code_of(lambda: list(generate()(long, timeout=0.001))),
         "DEADLINE_EXCEEDED")
    case("1,000 large_unary at once", many_large(1000), {"OK": 1000})
    packed = grpc.insecure_channel(ADDRESS, compression=grpc.Compression.Gzip)
    texts = message("GenerateRequest", text="It was " * 100, max_tokens=1)
    case("cancel_after_begin of a stream both ways", cancelled_embeddings(0), "CANCELLED")
    case("cancel_after_first_response of a stream both ways", cancelled_embeddings(1), "CANCELLED")
    sizes = [1, 40, 3, 12]
    case("ping_pong", [ping for ping in ping_pong(sizes)], sizes)
    case("empty_stream", list(embed_stream()(iter([]))), [])
    special = "\t\ntest with whitespace\r\nand Unicode BMP \u263a and non-BMP \U0001f608\t\n"
    try:
        list(generate()(message("GenerateRequest", text="a", model=special)))
    except grpc.RpcError as error:
        case("status_code_and_message", error.code().name, "NOT_FOUND")
        case("special_status_message", special in error.details(), True)
    case("client_compressed_unary", code_of(lambda: list(generate(packed)(texts))), "UNIMPLEMENTED")


TOKENIZE = method("/hippodrome.v1.Generation/Tokenize", type(message("TokenizeResponse")))
print("grpcio", grpc.__version__)
reflection()
health()
interoperability()
deadlines(400)
sys.exit(failures > 0)
