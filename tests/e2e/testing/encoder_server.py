"""The real program as a server of encoders, and calls as the usual clients make them."""

import json
import urllib.request

from testing.processes import Process

# The headers of huggingface_hub and of openai-python.
HUB = {"user-agent": "unknown/None; hf_hub/1.1.7; python/3.11.2",
       "content-type": "application/json"}
OPENAI = {"Accept": "application/json", "Content-Type": "application/json",
          "User-Agent": "OpenAI/Python 1.109.1", "Authorization": "Bearer none",
          "X-Stainless-Lang": "python", "X-Stainless-Retry-Count": "0"}
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Server(Process):
    def __init__(self, hippodrome, models, log, weights="f32"):
        """Serves `models`, {name: directory}, and writes what it says to the file `log`."""
        command = [hippodrome, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                   "--weights", weights, "--device", "cpu"]
        for name, directory in models.items():
            command += ["--model", f"{name}={directory}"]
        super().__init__(command, log)
        self.url = "http://" + self.listens("http")

    def call(self, path, body, headers):
        """Of an error, raises urllib.error.HTTPError."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers)
        with DIRECT.open(request) as response:
            return json.load(response)

    def stop(self):
        code = super().stop()
        if code != 0:
            raise RuntimeError(f"exit code {code} after SIGTERM")
