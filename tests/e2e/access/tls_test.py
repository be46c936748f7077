"""TLS on all listeners: who gets in and what others are told, and certificates that change under load.

  tls_test.py HIPPODROME MODELS_DIR [--long] [--json FILE]

The short form takes seconds and is a test; --long changes certificates 100 times while 64 streams run, and
waits until silent connections are closed. The exit status is 77 where there is no openssl.
"""

import json
import os
import pathlib
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import warnings

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.certificates import SKIPPED, Authority, have_openssl
from testing import grpc_messages
from testing.grpc_messages import address_of, generate_message
from testing import http_peers
from testing.http_peers import Server, generate, hostile, wait_until
from testing import raw_http2

GET = b"GET /ready HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
HEALTH = "/grpc.health.v1.Health/Check"
ADMIN = ("--admin", "127.0.0.1:0")


class TlsServer(Server):
    """`tls`: of the client that asks whether it is ready; `own`: its certificate and key, which are
    copied to where it reads them."""

    def __init__(self, hippodrome, models, folder, tls, own, *options, ca=None):
        self.tls = tls
        self.certificate = os.path.join(folder, "served.pem")
        self.key = os.path.join(folder, "served.key")
        self.install(own)
        more = () if ca is None else ("--tls-client-ca", ca)
        super().__init__(hippodrome, models, *ADMIN, "--tls-cert", self.certificate, "--tls-key", self.key,
                         *more, *options)
        self.grpc = address_of(self)

    def install(self, own):
        for source, target in zip(own, (self.certificate, self.key)):
            shutil.copy(source, target + ".new")
            os.rename(target + ".new", target)

    def get(self, path, where=None, timeout=60):
        with connect(where or self.http, self.tls, timeout) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n".encode())
            text = read_all(client).decode()
        return int(text.split(" ", 2)[1]), text

    def reload(self):
        """What the server says of it."""
        before = len(self.said())
        self.process.send_signal(signal.SIGHUP)
        answers = ('"what":"certificates', "nothing is reloaded")
        assert wait_until(lambda: any(answer in self.said()[before:] for answer in answers)), self.said()
        return self.said()[before:]


def connect(where, tls, timeout=60, source="127.0.0.1"):
    client = socket.create_connection(where, timeout, (source, 0))
    return client if tls is None else tls.wrap_socket(client, server_hostname="localhost")


def read_all(client):
    data = b""
    while piece := client.recv(65536):
        data += piece
    return data


def name_of(error):
    """What a client was told, in the words of its library."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return "client: " + error.verify_message
    if isinstance(error, ssl.SSLEOFError):
        return "closed"
    if isinstance(error, ssl.SSLError):
        # Not all have a reason of their own: "[SSL] what was said (_ssl.c:1006)".
        return (error.reason or str(error).split("] ")[-1].split(" (")[0]).lower().replace("_", " ")
    return "reset" if isinstance(error, (ConnectionResetError, BrokenPipeError)) else repr(error)


def ask_http(where, tls):
    """How a request for /ready ends."""
    try:
        with connect(where, tls, 30) as client:
            client.sendall(GET)
            status = read_all(client).decode().partition("\r\n")[0]
            return status or "closed"
    except OSError as error:
        return name_of(error)


def ask_grpc(where, tls):
    """How a call of Health/Check ends."""
    try:
        with raw_http2.Connection(where, 30, tls=tls) as client:
            status = client.call(HEALTH, b"")
            return "closed" if status is None else f"grpc-status {status}"
    except OSError as error:
        return name_of(error)


def ask_all(server, http, grpc):
    """Of the three listeners; the admin one must say what the main one says."""
    main = ask_http(server.http, http)
    assert ask_http(server.admin, http) == main, main
    return {"http": main, "grpc": ask_grpc(server.grpc, grpc)}


GOOD = {"http": "HTTP/1.1 200 OK", "grpc": "grpc-status 0"}
# What gRPC does with a handshake that fails: it closes without an alert.
CUT = ("closed", "reset")


NO_ISSUER = "client: unable to get local issuer certificate"


class Cases:
    """Checks outcomes, and keeps them."""

    def __init__(self):
        self.found = {}

    def add(self, name, outcome, http, grpc=CUT):
        assert outcome["http"] == http, (name, outcome)
        assert outcome["grpc"] in grpc, (name, outcome)
        if grpc == CUT:
            outcome = {**outcome, "grpc": "closed without an alert"}
        self.found[name] = outcome

    def good(self, name, outcome):
        self.add(name, outcome, GOOD["http"], (GOOD["grpc"],))

    def both(self, name, outcome, what):
        self.add(name, outcome, what, (what,))


def renegotiate(where, protocol, authority, own):
    """What a client of TLS 1.2 gets that asks for another handshake."""
    command = ["openssl", "s_client", "-connect", where, "-tls1_2", "-alpn", protocol, "-CAfile", authority.pem,
               "-cert", own[0], "-key", own[1]]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as client:
        said = b""
        while b"Verify return code" not in said:  # the handshake is done
            piece = client.stdout.readline()
            assert piece, said
            said += piece
        # The line ends what it shows of the session.
        client.stdin.write(b"R\n")
        client.stdin.flush()
        said = client.stdout.read()
    # The last: what the server sent meanwhile came in place of a handshake.
    for answer in (b"no renegotiation", b"unexpected eof", b"unexpected record"):
        if answer in said:
            return answer.decode()
    raise AssertionError(said)


def who_gets_in(hippodrome, models, folder):
    """Versions, protocols and certificates of clients and servers."""
    authority, foreign = Authority(folder), Authority(folder, "foreign")
    own, client = authority.issue("server"), authority.issue("client")
    cases = Cases()

    def peers(authority, own, version=None):
        return authority.client(own, ("http/1.1",), version), authority.client(own, ("h2",), version)

    with TlsServer(hippodrome, models, folder, authority.client(client), own, ca=authority.pem) as server:
        def ask(authority=authority, own=client, version=None):
            return ask_all(server, *peers(authority, own, version))

        cases.good("TLS 1.3, good certificates", ask(version=ssl.TLSVersion.TLSv1_3))
        cases.good("TLS 1.2, good certificates", ask(version=ssl.TLSVersion.TLSv1_2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            cases.add("TLS 1.1", ask(version=ssl.TLSVersion.TLSv1_1), "tlsv1 alert protocol version")
        cases.add("a client that does not know the server's authority", ask(foreign), NO_ISSUER,
                  (NO_ISSUER, "client: self-signed certificate in certificate chain"))  # gRPC shows the whole chain
        cases.add("no client certificate, TLS 1.3", ask(own=None), "tlsv13 alert certificate required")
        cases.add("no client certificate, TLS 1.2", ask(own=None, version=ssl.TLSVersion.TLSv1_2),
                  "sslv3 alert handshake failure")
        cases.add("a client certificate of a foreign authority", ask(own=foreign.issue("client")),
                  "tlsv1 alert unknown ca")
        cases.add("a client certificate that has expired", ask(own=authority.issue("late", expired=True)),
                  "sslv3 alert certificate expired")
        cases.add("plain text to a port with TLS", ask_all(server, None, None), "closed")
        cases.add("another protocol (ALPN)",
                  ask_all(server, authority.client(client, ("h2",)), authority.client(client, ("http/1.1",))),
                  "tlsv1 alert no application protocol")
        cases.found["renegotiation, TLS 1.2"] = {
            "http": renegotiate("%s:%d" % server.http, "http/1.1", authority, client),
            "grpc": renegotiate(server.grpc, "h2", authority, client)}
        assert cases.found["renegotiation, TLS 1.2"]["http"] == "no renegotiation"
        failed = server.metrics()['hippodrome_http_tls_handshakes_failed_total{listener="main"}']
        assert failed >= 6, failed
        cases.good("after all that", ask())
        assert '"event":"warning"' not in server.said(), server.said()
    late = authority.issue("late-server", expired=True)
    trusting = authority.client()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    with TlsServer(hippodrome, models, folder, trusting, late) as server:
        cases.both("a server certificate that has expired",
                   ask_all(server, *peers(authority, None)), "client: certificate has expired")
        assert '"event":"warning"' in server.said() and "expired at" in server.said(), server.said()
    with Server(hippodrome, models) as server:
        outcome = {"http": ask_http(server.http, authority.client()),
                   "grpc": ask_grpc(address_of(server), authority.client(protocols=("h2",)))}
        cases.add("TLS to a plain port", outcome, "wrong version number", ("wrong version number", *CUT))
    return {"outcomes": cases.found}


def bad_files(hippodrome, models, folder, most):
    """What the server says of files with which it does not start, of the first `most` kinds."""
    authority = Authority(folder, "files")
    own, other = authority.issue("server"), authority.issue("other")
    empty = os.path.join(folder, "empty")
    open(empty, "w").close()
    rows = {"another's key": (own[0], other[1]), "no such file": (os.path.join(folder, "none"), own[1]),
            "empty certificate": (empty, own[1]), "no certificate": (own[1], own[1]), "no key": (own[0], own[0]),
            "empty clients' authorities": (*own, empty)}
    said = {}
    for name, (certificate, key, *ca) in list(rows.items())[:most]:
        command = [hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                   "--model", os.path.join(models, "h3-demo"), "--tls-cert", certificate, "--tls-key", key]
        command += ["--tls-client-ca", *ca] if ca else []
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
        assert result.returncode != 0, name
        said[name] = result.stderr.strip().splitlines()[-1].replace(folder, "DIR")
        assert "DIR/" in said[name], said[name]
    return {"said": said}


class Streams:
    """Clients that stream over connections of their own, one after the other, until stop()."""

    def __init__(self, server, authority, client, count, tokens):
        self.server, self.tokens = server, tokens
        self.http = authority.client(client)
        self.grpc = authority.client(client, ("h2",))
        self.expected = {"http": self.stream_http(), "grpc": self.stream_grpc()}
        self.done, self.dropped, self.differing = 0, [], 0
        self.stopping = False
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(("http", "grpc")[i % 2],)) for i in range(count)]
        for thread in self.threads:
            thread.start()

    def stream_http(self):
        with connect(self.server.http, self.http, 120) as client:
            client.sendall(generate("a", self.tokens, stream=True).replace(b"Host: h", b"Host: h\r\nConnection: close"))
            text = read_all(client).decode()
        if not text.endswith("data: [DONE]\n\n\r\n0\r\n\r\n"):
            raise OSError("truncated: " + text[-200:])
        return [json.loads(line[6:])["choices"][0]["text"] for line in text.splitlines()
                if line.startswith('data: {"')]

    def stream_grpc(self):
        return grpc_messages.generate(self.server, generate_message("a", self.tokens), tls=self.grpc)

    def run(self, transport):
        while not self.stopping:
            try:
                same = (self.stream_http if transport == "http" else self.stream_grpc)() == self.expected[transport]
                with self.lock:
                    self.done += 1
                    self.differing += not same
            except (OSError, ValueError, AssertionError) as error:
                with self.lock:
                    self.dropped.append(f"{transport}: {error!r}")

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def serials(server, authority, client):
    """Of the certificates that new connections are shown, by listener."""
    found = set()
    for where, protocol in ((server.http, "http/1.1"), (server.admin, "http/1.1"),
                            (server.grpc.rsplit(":", 1), "h2")):
        with connect((where[0], int(where[1])), authority.client(client, (protocol,))) as connection:
            found.add(connection.getpeercert()["serialNumber"])
    return found


def serial(path):
    text = subprocess.run(["openssl", "x509", "-in", path, "-noout", "-serial"], capture_output=True, text=True,
                          check=True).stdout
    return text.strip().partition("=")[2]


def reloads(hippodrome, models, folder, count, streams, tokens):
    """New certificates while streams begin and end on both transports."""
    authority = Authority(folder, "reloads")
    identities = [authority.issue("one"), authority.issue("two")]
    numbers = [{serial(own[0])} for own in identities]
    broken = (identities[0][0], identities[1][1])
    late = authority.issue("late", expired=True)
    client = authority.issue("client")
    refused = {}
    with TlsServer(hippodrome, models, folder, authority.client(client), identities[0], ca=authority.pem) as server:
        load = Streams(server, authority, client, streams, tokens)
        assert wait_until(lambda: load.done >= streams or load.dropped)
        resident = []
        for i in range(1, count + 1):
            before = load.done
            server.install(identities[i % 2])
            assert '"what":"certificates' in server.reload()
            assert serials(server, authority, client) == numbers[i % 2], i
            assert wait_until(lambda: load.done > before)
            resident.append(round(server.resident(), 1))
            if i in (count // 2, count):
                for name, own in (("another's key", broken), ("expired", late)):
                    server.install(own)
                    why, = [line for line in server.reload().splitlines() if "reload_failed" in line]
                    refused[name] = json.loads(why)["message"].replace(folder, "DIR")
                    assert "nothing is reloaded: certificates: DIR/" in refused[name], refused
                    assert serials(server, authority, client) == numbers[i % 2], name
        load.stop()
        assert not load.dropped and load.differing == 0, (load.dropped[:3], load.differing)
        assert server.stop() == 0, server.said()
    return {"reloads": count, "streams_at_once": streams, "streams": load.done, "tokens_each": tokens,
            "dropped": len(load.dropped), "differing": load.differing, "refused": refused,
            "resident_mib": {"after_a_tenth": resident[count // 10], "at_the_end": resident[-1]}}


def silent(hippodrome, models, folder, wait):
    """Connections that say nothing, or only begin a handshake: others get in, and in the end they are closed."""
    authority = Authority(folder, "silent")
    http, grpc = authority.client(), authority.client(protocols=("h2",))
    limits = ("--http-max-connections", "64", "--grpc-max-connections", "64",
              "--grpc-max-connections-per-address", "32")
    with TlsServer(hippodrome, models, folder, http, authority.issue("server"), *limits) as server:
        host, port = server.grpc.rsplit(":", 1)
        clients, begun = [], time.monotonic()
        for i in range(200):
            for where in (server.http, (host, int(port))):
                client = connect(where, None, source=hostile())
                if i % 2:
                    client.sendall(b"\x16\x03\x01\x02\x00\x01")  # the beginning of a hello
                clients.append(client)
        for _ in range(20):
            assert ask_http(server.http, http) == GOOD["http"]
            assert ask_grpc(server.grpc, grpc) == GOOD["grpc"]
        report = {"silent": len(clients), "others_served": 40}
        if wait:
            for client in clients:
                client.settimeout(60)
                try:
                    read_all(client)
                except ConnectionResetError:
                    pass
            report["all_closed_after_s"] = round(time.monotonic() - begun, 1)
            assert wait_until(lambda: server.metrics()["hippodrome_grpc_connections"] == 0)
        for client in clients:
            client.close()
        assert server.stop() == 0, server.said()
    return report


def main():
    arguments = http_peers.arguments()
    if not have_openssl():
        print("skipped: there is no openssl")
        return SKIPPED
    found = []

    def run(check, *more):
        with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
            found.append({"check": check.__name__, **check(arguments.hippodrome, arguments.models, folder, *more)})
        print(json.dumps(found[-1], indent=1), flush=True)

    run(who_gets_in)
    run(bad_files, None if arguments.long else 1)
    run(silent, arguments.long)
    run(reloads, *((100, 64, 100) if arguments.long else (4, 8, 20)))
    http_peers.write_report(arguments.json, found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
