"""Ports for programs that must be told theirs before they start."""

import contextlib
import random
import socket

# Below those that the system gives to connections going out, which could take one before its program does.
PORTS = range(10000, 32768)


def free_ports(count, hosts=("127.0.0.1",)):
    """That nobody uses at any of the hosts."""
    with contextlib.ExitStack() as probes:
        found = []
        while len(found) < count:
            port = random.choice(PORTS)
            with contextlib.suppress(OSError):
                for host in hosts:
                    probes.enter_context(socket.create_server((host, port)))
                found.append(port)
    return found


def free_addresses(count):
    return [f"127.0.0.1:{port}" for port in free_ports(count)]
