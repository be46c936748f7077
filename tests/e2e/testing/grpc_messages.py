"""Messages of gRPC written by hand, as far as tests need them, and calls over raw_http2."""

import collections
import struct

from testing import raw_http2

GENERATE, SCORE, EMBED = (f"/hippodrome.v1.{name}" for name in
                          ("Generation/Generate", "Generation/Score", "Encoding/Embed"))


def varint(value):
    data = b""
    while value > 127:
        data, value = data + bytes([value & 127 | 128]), value >> 7
    return data + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def text(field, value):
    value = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(value)) + value


def generate_message(prompt, tokens, top=None):
    """Greedy, and over the end of the text."""
    message = (text(1, "h3-demo") + text(2, prompt) + number(4, tokens) + varint(5 << 3 | 5) +
               struct.pack("<f", 0) + number(11, 1))
    return message if top is None else message + number(18, top)


def single(field, value):
    return varint(field << 3 | 5) + struct.pack("<f", value)


def completion_message(request):
    """For Generate, what a body of /v1/completions asks for; `prompt` is a text or ids."""
    message = text(1, request["model"]) + number(4, request["max_tokens"]) + single(5, request["temperature"])
    message += number(9, request["seed"]) + number(11, request["ignore_eos"])
    if isinstance(request.get("prompt"), str):
        message += text(2, request["prompt"])
    elif "prompt" in request:
        message += text(3, text(1, b"".join(map(varint, request["prompt"]))))
    for stop in request.get("stop", ()):
        message += text(10, stop)
    if "frequency_penalty" in request:
        message += single(15, request["frequency_penalty"])
    if "state" in request:
        message += text(20, request["state"])
    return message + (number(22, 1) if request.get("return_state") == "handle" else b"")


def score_message(prompt, count):
    return text(1, "h3-demo") + text(2, prompt) + text(4, text(1, " and so")) * count + number(5, 1)


def embed_message(inputs):
    return text(1, "bigs-demo") + text(2, text(1, "a word")) * inputs


def entries(message):
    """(field, value) in order: bytes for texts and messages, and numbers."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        value = varint()
        if key & 7 == 2:
            value, at = message[at:at + value], at + value
        yield key >> 3, value


def nested(message, *path):
    """The values at a path of fields."""
    for field, value in entries(message):
        if field == path[0]:
            yield from nested(value, *path[1:]) if path[1:] else [value]


def fields(message):
    """The fields of a message that are not numbers, joined by their number."""
    found = collections.defaultdict(bytes)
    for field, value in entries(message):
        if isinstance(value, bytes):
            found[field] += value
    return found


def address_of(server):
    """Where an http_peers.Server serves gRPC."""
    return "%s:%d" % server.address("grpc")


def open_call(connection, path, message, **headers):
    stream = connection.open(path, **headers)
    for _ in connection_data(connection, stream, raw_http2.message(message)):
        pass
    return stream


def connection_data(connection, stream, data):
    """Sends what fits into the window that a connection begins with."""
    assert len(data) <= 60000, len(data)
    while data:
        piece, data = data[:16384], data[16384:]
        end = 0 if data else raw_http2.END_STREAM
        connection.send(raw_http2.frame(raw_http2.DATA, end, stream, piece))
        yield piece


def status_of(trailers):
    value = trailers.partition(b"grpc-status")[2]
    return int(value[1:1 + value[0]])


def messages_of(data):
    """The messages in the data of a stream."""
    found = []
    while data:
        size = int.from_bytes(data[1:5], "big")
        found.append(data[5:5 + size])
        data = data[5 + size:]
    return found


def answers(connection, stream, message, pause=lambda: None):
    """Sends the one message of a call that was opened. Its grpc-status, and the messages of its answer; `pause` is
    called before each read."""
    for _ in connection_data(connection, stream, raw_http2.message(message)):
        pass
    data = b""
    for kind, flags, _, payload in connection.frames():
        pause()
        if kind == raw_http2.DATA:
            data += payload
            update = struct.pack(">I", max(len(payload), 1))
            connection.send(raw_http2.frame(raw_http2.WINDOW_UPDATE, 0, stream, update) +
                            raw_http2.frame(raw_http2.WINDOW_UPDATE, 0, 0, update))
        if kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
            status = status_of(payload)
            break
    else:
        raise OSError("the connection ended before the call")
    return status, messages_of(data)


def answer(connection, stream, message, pause=lambda: None):
    """As answers(), with the fields of all messages, joined by their number."""
    status, messages = answers(connection, stream, message, pause)
    found = collections.defaultdict(bytes)
    for part in messages:
        for field, value in fields(part).items():
            found[field] += value
    return status, found


def generate(server, message, source="127.0.0.1", pause=lambda: None, tls=None):
    """The text, the tokens and their scores, as bytes; `pause` is called before each read, `tls` as in
    raw_http2."""
    with raw_http2.Connection(address_of(server), 120, source, tls) as connection:
        status, found = answer(connection, connection.open(GENERATE), message, pause)
    assert status == 0, status
    return found[1], found[2], found[5]


def call(server, path, *messages, **headers):
    """Sends messages of any size, as windows allow. The grpc-status, and the messages of the answer."""
    with raw_http2.Connection(address_of(server)) as connection:
        stream = connection.open(path, **headers)
        data, status = b"", None
        for kind, flags, where, payload in connection.sending(stream, b"".join(map(raw_http2.message, messages))):
            if where != stream:
                continue
            if kind == raw_http2.DATA and payload:
                data += payload
                update = struct.pack(">I", len(payload))
                for opened in (0, stream):
                    connection.send(raw_http2.frame(raw_http2.WINDOW_UPDATE, 0, opened, update))
            if kind == raw_http2.HEADERS and flags & raw_http2.END_STREAM:
                status = status_of(payload)
                break
    return status, messages_of(data)
