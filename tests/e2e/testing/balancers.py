"""The balancers of deploy/ in front of three replicas on this machine."""

import collections
import os
import pathlib
import shutil
import sys

from testing.free_ports import free_addresses
from testing.processes import Process

DEPLOY = pathlib.Path(__file__).resolve().parents[3] / "deploy"
# Each has its own, with the same ports, as on machines of their own.
HOSTS = ("127.0.0.11", "127.0.0.12", "127.0.0.13")
Ports = collections.namedtuple("Ports", "http grpc admin")


class HAProxy(Process):
    def __init__(self, program, ports, folder):
        self.http, self.grpc = free_addresses(2)
        names = {f"HIPPODROME_{i + 1}": host for i, host in enumerate(HOSTS)}
        names.update({f"HIPPODROME_{name.upper()}_PORT": str(port) for name, port in ports._asdict().items()})
        super().__init__([program, "-db", "-f", DEPLOY / "haproxy" / "replicas.cfg"], folder + "/haproxy.log",
                         env={**os.environ, "HAPROXY_HTTP": self.http, "HAPROXY_GRPC": self.grpc, **names})


NGINX = """daemon off;
worker_processes 2;
pid {folder}/pid;
error_log stderr error;
{user}
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/replicas.conf;
}}
"""


def nginx_configuration(folder, names=()):
    """The path of a whole configuration, which includes that of deploy/ with `names` replaced."""
    text = (DEPLOY / "nginx" / "replicas.conf").read_text()
    for old, new in names:
        assert old in text, old
        text = text.replace(old, new)
    with open(folder + "/replicas.conf", "w") as file:
        file.write(text)
    with open(folder + "/nginx.conf", "w") as file:
        file.write(NGINX.format(folder=folder, user="user root;" if os.geteuid() == 0 else ""))
    return folder + "/nginx.conf"


class Nginx(Process):
    def __init__(self, program, ports, folder):
        self.http, self.grpc = free_addresses(2)
        names = [(f"10.0.0.1{i + 1}:{old}", f"{host}:{new}") for i, host in enumerate(HOSTS)
                 for old, new in (("8080", ports.http), ("50051", ports.grpc))]
        names += [("listen 8000;", f"listen {self.http};"), ("listen 50050 http2;", f"listen {self.grpc} http2;")]
        # The comment at its head has some of these, too.
        super().__init__([program, "-e", "stderr", "-c", nginx_configuration(folder, names)], folder + "/nginx.log")


BALANCERS = {"haproxy": (HAProxy, "/usr/sbin/haproxy"), "nginx": (Nginx, "/usr/sbin/nginx")}


def program_of(name):
    """Its path. The exit status is 77 if it is not there."""
    program = shutil.which(name) or BALANCERS[name][1]
    if not os.access(program, os.X_OK):
        print(f"there is no {name}; tools/deps --checks installs it")
        sys.exit(77)
    return program
