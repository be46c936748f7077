#!/usr/bin/env python3
"""A conversation with any of several servers of one model, in turn: its state stays with the client.

  state_client.py URL [URL...]      reads lines from standard input, and answers each

No server keeps anything between two lines, so none has to be met again. One that stops in the middle hands over to the
next, with which it shares its store of states.
"""
import collections
import json
import sys
import urllib.error
import urllib.request


def ask(servers, path, body):
    """What the first server that takes a request says to it."""
    for _ in servers.copy():
        request = urllib.request.Request(servers[0] + path, json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request) as response:
                return json.load(response)
        except (OSError, urllib.error.URLError) as error:
            if getattr(error, "code", 503) != 503:
                raise
            servers.rotate(-1)  # it is stopping, or has stopped
    sys.exit("no server takes requests")


def complete(servers, prompt, state):
    """The model's answer to `prompt` after `state`, and the state after both."""
    body = {"prompt": ask(servers, "/tokenize", {"prompt": prompt})["tokens"], "max_tokens": 24, "temperature": 0,
            "return_state": "inline", **({"state": state} if state else {})}
    text, answer = "", None
    while answer is None or answer["choices"][0]["finish_reason"] == "migrated":
        if answer is not None:  # go on with what is left of the prompt, and of the tokens
            servers.rotate(-1)
            left = max(0, answer["usage"]["prompt_tokens"] - answer["state"]["position"])
            body.update(state=answer["state"]["handle"], prompt=body["prompt"][len(body["prompt"]) - left:] or "",
                        max_tokens=body["max_tokens"] - answer["usage"]["completion_tokens"])
        answer = ask(servers, "/v1/completions", body)
        text += answer["choices"][0]["text"]
    return text, answer["state"]["data"]


def main():
    state, servers = None, collections.deque(server.rstrip("/") for server in sys.argv[1:])
    for line in sys.stdin:
        text, state = complete(servers, line.rstrip("\n"), state)
        print(text, flush=True)
        servers.rotate(-1)


if __name__ == "__main__":
    main()
