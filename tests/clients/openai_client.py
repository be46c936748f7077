#!/usr/bin/env python3
"""openai-python, as it is published, against a server of deploy/models. By hand, for it comes from PyPI.

    python3 -m venv venv
    venv/bin/pip install openai
    venv/bin/python tests/clients/openai_client.py build/release/bin/hippodrome

The output of a run is in openai_client.txt.
"""
import array
import importlib.metadata
import pathlib
import sys
import tempfile

import openai

import local_server
from local_server import Server, check

PROMPT = "The king"
_, END_OF_TEXT = local_server.vocabulary()


def completions(client):
    """What the demo model answers, with the usual fields set."""
    def create(**fields):
        return client.completions.create(**{"model": "h3-demo", "prompt": PROMPT, "max_tokens": 8,
                                            "temperature": 0, **fields})

    return create


def plain(create):
    answer = create()
    check("completion", answer.object == "text_completion" and answer.choices[0].finish_reason == "length"
          and answer.usage.completion_tokens == 8, repr(answer.choices[0].text))
    again = create(temperature=1, seed=3), create(temperature=1, seed=3), create(temperature=1, seed=4)
    texts = [a.choices[0].text for a in again]
    check("seed", texts[0] == texts[1] != texts[2], texts[::2])
    stopped = create(stop=[" of", "zzz"], max_tokens=20)
    check("stop", stopped.choices[0].finish_reason == "stop" and " of" not in stopped.choices[0].text,
          repr(stopped.choices[0].text))
    several = create(prompt=[PROMPT, [5, 6, 7], "It was"][::2], n=2, temperature=1, seed=1)
    check("two prompts, n=2", [c.index for c in several.choices] == [0, 1, 2, 3]
          and len({c.text for c in several.choices}) == 4 and several.usage.completion_tokens == 32)
    ids = create(prompt=[[5, 6], [7]], max_tokens=1)
    check("prompts of token ids", len(ids.choices) == 2 and ids.usage.prompt_tokens == 3)
    biased = create(logit_bias={str(END_OF_TEXT): 100})
    check("logit_bias", biased.choices[0].text == "" and biased.choices[0].finish_reason == "stop"
          and biased.usage.completion_tokens == 1)
    dull, lively = create(max_tokens=40), create(max_tokens=40, frequency_penalty=2, presence_penalty=2)
    check("penalties", dull.choices[0].text != lively.choices[0].text, repr(lively.choices[0].text))


def scores(create):
    answer = create(logprobs=3)
    scored = answer.choices[0].logprobs
    check("logprobs", len(scored.tokens) == len(scored.token_logprobs) == len(scored.text_offset) == 8
          and "".join(scored.tokens) == answer.choices[0].text
          and all(len(top) == 3 and max(top.values()) == value
                  for top, value in zip(scored.top_logprobs, scored.token_logprobs)), scored.tokens)
    echoed = create(logprobs=1, echo=True, max_tokens=2).choices[0]
    places = zip(echoed.logprobs.tokens, echoed.logprobs.text_offset)
    check("echo", echoed.text.startswith(PROMPT) and echoed.logprobs.token_logprobs[0] is None
          and all(echoed.text[at:at + len(token)] == token for token, at in places), repr(echoed.text))
    alone = create(logprobs=1, echo=True, max_tokens=0)
    check("echo of the prompt alone", alone.choices[0].text == PROMPT and alone.usage.completion_tokens == 0)
    best = create(best_of=6, n=3, temperature=1.5, seed=5, logprobs=0)
    means = [sum(c.logprobs.token_logprobs) / len(c.logprobs.tokens) for c in best.choices]
    check("best_of", len(means) == 3 and means == sorted(means, reverse=True)
          and best.usage.completion_tokens == 48, [round(m, 3) for m in means])
    every = create(n=6, temperature=1.5, seed=5, logprobs=0)
    ranked = sorted((sum(c.logprobs.token_logprobs) / len(c.logprobs.tokens) for c in every.choices),
                    reverse=True)
    check("best_of takes the likeliest of its n", means == ranked[:3])


def streams(create):
    whole = create(logprobs=2, temperature=1, seed=9)
    events = list(create(logprobs=2, temperature=1, seed=9, stream=True,
                         stream_options={"include_usage": True}))
    text = "".join(c.text for e in events for c in e.choices)
    values = [v for e in events for c in e.choices for v in c.logprobs.token_logprobs]
    check("stream", text == whole.choices[0].text and values == whole.choices[0].logprobs.token_logprobs,
          f"{len(events)} events")
    check("stream_options", events[-1].usage == whole.usage and not events[-1].choices
          and all(e.usage is None for e in events[:-1]))
    several = list(create(n=2, stream=True, temperature=1, seed=9))
    parts = {i: "".join(c.text for e in several for c in e.choices if c.index == i) for i in (0, 1)}
    check("stream, n=2", parts[0] == text and parts[1] != text)
    stream = create(stream=True, max_tokens=100000)
    next(iter(stream))
    stream.close()
    check("a stream that is closed leaves the server well", create().usage.completion_tokens == 8)


def models(client):
    names = [m.id for m in client.models.list()]
    check("models.list", names == ["h3-demo", "bigs-demo"], names)
    check("models.retrieve", client.models.retrieve("h3-demo").id == "h3-demo")
    texts = ["Paris is a city.", "I like it."]
    base64 = client.embeddings.create(model="bigs-demo", input=texts)
    floats = client.embeddings.create(model="bigs-demo", input=texts, encoding_format="float")
    check("embeddings", [array.array("f", d.embedding) for d in base64.data]
          == [array.array("f", d.embedding) for d in floats.data]
          and all(abs(sum(x * x for x in d.embedding) - 1) < 1e-5 for d in base64.data),
          f"{len(base64.data)} of {len(base64.data[0].embedding)} numbers")


def errors(client, create):
    cases = [
        ("an unknown model", openai.NotFoundError, None, lambda: create(model="none")),
        ("models.retrieve of an unknown one", openai.NotFoundError, None,
         lambda: client.models.retrieve("none")),
        ("logprobs=21", openai.BadRequestError, "logprobs", lambda: create(logprobs=21)),
        ("temperature=-1", openai.BadRequestError, "temperature", lambda: create(temperature=-1)),
        ("suffix", openai.BadRequestError, "suffix", lambda: create(suffix=" end")),
        ("best_of < n", openai.BadRequestError, "best_of", lambda: create(n=2, best_of=1)),
        ("best_of in a stream", openai.BadRequestError, "best_of",
         lambda: create(best_of=2, stream=True)),
        ("a field that there is not", openai.BadRequestError, "guided_json",
         lambda: create(extra_body={"guided_json": {}})),
        ("chat.completions", openai.APIStatusError, None, lambda: client.chat.completions.create(
            model="h3-demo", messages=[{"role": "user", "content": "Hi"}])),
    ]
    for name, kind, parameter, call in cases:
        try:
            call()
            check(f"error: {name}", False)
        except openai.APIStatusError as error:
            check(f"error: {name}", isinstance(error, kind) and parameter in (None, error.param),
                  f"{error.status_code} {type(error).__name__}: {error.body['message']}")


print("openai", importlib.metadata.version("openai"))
with tempfile.TemporaryDirectory() as scratch, Server(sys.argv[1], pathlib.Path(scratch)) as server:
    client = openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0)
    create = completions(client)
    plain(create)
    scores(create)
    streams(create)
    models(client)
    errors(client, create)
print("failures:", local_server.failures)
sys.exit(local_server.failures > 0)
