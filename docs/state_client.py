#!/usr/bin/env python3
"""A conversation with any of several servers of one model, in turn: its state stays with the client.

  state_client.py URL [URL...]      reads lines from standard input, and answers each

No server keeps anything between two lines, so none has to be met again.
"""
import itertools
import json
import sys
import urllib.request


def complete(server, prompt, state):
    """The model's answer to `prompt` after `state`, and the state after both."""
    body = {"prompt": prompt, "max_tokens": 24, "temperature": 0, "return_state": "inline"}
    if state is not None:
        body["state"] = state
    request = urllib.request.Request(server + "/v1/completions", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as response:
        answer = json.load(response)
    return answer["choices"][0]["text"], answer["state"]["data"]


def main():
    state = None
    for server, line in zip(itertools.cycle(sys.argv[1:]), sys.stdin):
        text, state = complete(server.rstrip("/"), line.rstrip("\n"), state)
        print(text, flush=True)


if __name__ == "__main__":
    main()
