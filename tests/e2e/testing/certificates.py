"""Certificates for tests, made by the openssl program."""

import os
import shutil
import ssl
import subprocess
import time

SKIPPED = 77  # the exit status of a test without openssl
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def have_openssl():
    return shutil.which("openssl") is not None


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Authority:
    """Signs certificates for localhost and 127.0.0.1. Files lie in `folder`."""

    def __init__(self, folder, name="authority"):
        self.path = os.path.join(folder, name)
        self.pem = self.path + ".pem"
        openssl("req", "-x509", *KEY, "-keyout", self.path + ".key", "-out", self.pem, "-days", "2",
                "-subj", "/CN=" + name)

    def issue(self, name, expired=False):
        """The paths of a certificate and its key."""
        path = self.path + "-" + name
        with open(path + ".names", "w") as file:
            file.write("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        openssl("req", "-new", *KEY, "-keyout", path + ".key", "-out", path + ".request", "-subj", "/CN=" + name)
        openssl("x509", "-req", "-in", path + ".request", "-CA", self.pem, "-CAkey", self.path + ".key",
                "-CAcreateserial", "-days", "0" if expired else "1", "-extfile", path + ".names",
                "-out", path + ".pem")
        if expired:
            time.sleep(1.5)  # it was good for the second in which it was made
        return path + ".pem", path + ".key"

    def client(self, own=None, protocols=("http/1.1",), version=None):
        """Trusts this authority, and shows the certificate and key `own`."""
        context = ssl.create_default_context(cafile=self.pem)
        context.set_alpn_protocols(list(protocols))
        if own is not None:
            context.load_cert_chain(*own)
        if version is not None:
            context.set_ciphers("DEFAULT@SECLEVEL=0")  # else it would not offer the old ones
            context.minimum_version = context.maximum_version = version
        return context
