"""Calls a running server with grpcio alone, and prints each case with what came of it. It has no .proto
files: reflection says what there is. For a virtual environment, not for continuous integration:

  pip install grpcio grpcio-reflection grpcio-health-checking
  grpcio_calls.py HOST:PORT    # serves deploy/models/h3-demo

The exit status is 1 if a case came out otherwise than it must.
"""

import sys

import grpc
from google.protobuf import descriptor_pool, message_factory
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import \
    ProtoReflectionDescriptorDatabase

ADDRESS = sys.argv[1]
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
    call = method("/hippodrome.v1.Generation/Tokenize", type(message("TokenizeResponse")))
    return call(message("TokenizeRequest", text=text))


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
    packed = grpc.insecure_channel(ADDRESS, compression=grpc.Compression.Gzip)
    texts = message("GenerateRequest", text="It was " * 100, max_tokens=1)
    case("client_compressed_unary", code_of(lambda: list(generate(packed)(texts))), "UNIMPLEMENTED")


print("grpcio", grpc.__version__)
reflection()
health()
interoperability()
sys.exit(failures > 0)
