"""The page at / in Chromium, and what tests do with it. A program that imports this is called with
HIPPODROME MODELS GOLDEN_DIR."""

import json
import os
import re
import sys
import tempfile
import time
import unittest
import urllib.request

from testing import encoder_models, processes, web_driver

HIPPODROME, MODELS, GOLDEN = sys.argv[1:4]
PROMPT = "It was a dark night, and"
DECODER = {"h3-demo": os.path.join(MODELS, "h3-demo")}
DESKTOP, PHONE = (1280, 900), (390, 844)


def serve(models, log, *options):
    command = [HIPPODROME, "serve", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
               "--device", "cpu", *options]
    for name, directory in models.items():
        command += ["--model", f"{name}={directory}"]
    return processes.Process(command, log)


def post(url, path, body):
    request = urllib.request.Request(url + path, json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with web_driver.DIRECT.open(request, timeout=300) as response:
        text = response.read()
    return json.loads(text) if text else None


def set_up():
    """One server of all models and one window for all tests."""
    work = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(work.cleanup)
    Steps.work = work.name
    models = {**DECODER, "bigs-demo": os.path.join(MODELS, "bigs-demo"),
              **encoder_models.make_models(GOLDEN, work.name)}
    server = serve(models, os.path.join(work.name, "log"))
    unittest.addModuleCleanup(server.stop)
    Steps.url = f"http://{server.listens('http')}/"
    Steps.browser = web_driver.Browser(work.name)
    unittest.addModuleCleanup(Steps.browser.__exit__)


class Steps(unittest.TestCase):
    """What the tests do with the page, and what they ask of all of them: that the browser does not
    complain, and that no request leaves the server."""

    size = DESKTOP

    def setUp(self):
        self.expected = []  # of what the browser complains of
        self.browser.resize(*self.size, phone=self.size == PHONE)
        self.prefer("light")
        self.show("write")

    def tearDown(self):
        complaints = [entry["message"] for entry in self.browser.console()]
        self.assertEqual([text for text in complaints
                          if not any(expected in text for expected in self.expected)], [])
        for url in self.browser.requested():
            self.assertTrue(url.startswith((self.url, "data:")), url)

    def prefer(self, scheme):
        """Nothing moves: what is looked at is not on its way."""
        self.browser.prefer(color_scheme=scheme, reduced_motion="reduce")

    def show(self, section, url=None):
        """Loads the page anew, with a section."""
        self.browser.open("about:blank")
        self.browser.open(f"{url or self.url}#{section}")
        self.browser.wait("return document.querySelector('#state').className === 'good' && "
                          "!document.getElementById(arguments[0]).hidden", section)

    def go(self, section):
        self.browser.run("location.hash = arguments[0]", "#" + section)
        self.browser.wait("return !document.getElementById(arguments[0]).hidden", section)

    def leave(self):
        """The page of a server that only one test has."""
        self.browser.open("about:blank")
        self.browser.requested()

    def api(self, path, body):
        return post(self.url, path, body)

    def metric(self, pattern, url=None):
        with web_driver.DIRECT.open((url or self.url) + "metrics") as response:
            return sum(float(value) for value in
                       re.findall(rf"^{pattern} (\S+)$", response.read().decode(), re.M))

    def await_metric(self, pattern, value, url=None):
        for _ in range(1200):
            if self.metric(pattern, url) == value:
                return
            time.sleep(0.05)
        self.assertEqual(self.metric(pattern, url), value)

    def settle(self, prompt=PROMPT, **settings):
        self.browser.type("#text", prompt)
        for name, value in settings.items():
            self.browser.type("#" + name, str(value))

    def finish(self):
        self.browser.wait("return document.querySelector('#go').textContent === 'Write' && "
                          "!document.querySelector('#written').hidden")
        self.assertEqual(self.browser.text("#write-error"), "")

    def written(self):
        return self.browser.text("#written")

    def complete(self, prompt, **settings):
        return self.api("v1/completions", {"model": "h3-demo", "prompt": prompt, "temperature": 0.8,
                                           "top_p": 0.95, "logprobs": 8, **settings})["choices"][0]

    def visible(self, index, **settings):
        """A seed with which token `index` has something to point at, and the answer."""
        for seed in range(7, 107):
            answer = self.complete(PROMPT, seed=seed, **settings)
            if answer["logprobs"]["tokens"][index].strip():
                return seed, answer
        self.fail(f"token {index} is blank with every seed")

    def rows(self, within):
        """(name, percent) of each row with a bar."""
        return [tuple(row) for row in self.browser.run(
            "return [...document.querySelectorAll(arguments[0] + ' .row')].map((row) => "
            "[row.querySelector('.name').textContent, row.querySelector('.number').textContent])",
            within)]

    def assert_rows(self, found, expected):
        """`expected`: (name, probability) of each row."""
        self.assertEqual([name for name, _ in found], [name for name, _ in expected])
        for (_, shown), (_, probability) in zip(found, expected):
            self.assertLessEqual(abs(float(shown.split()[0]) / 100 - probability), 0.00051)

    def do(self, task, **fields):
        """Fills the form of a task in, sends it, and waits for what comes of it."""
        for name, value in fields.items():
            if name == "model":
                self.browser.choose(f"#{task} select", value)
                continue
            # Characters beyond 16 bits cannot be typed through WebDriver.
            self.browser.run("document.querySelector(arguments[0]).value = arguments[1]",
                             f'#{task} [name="{name}"]', value)
        self.browser.run("document.querySelector(arguments[0]).replaceChildren()", f"#{task} .result")
        self.browser.click(f"#{task} .primary")
        self.browser.wait("return document.querySelector(arguments[0]).children.length > 0 || "
                          "document.querySelector(arguments[1]).children.length > 0",
                          f"#{task} .result", f"#{task} .error")

    def marks(self, task):
        return self.browser.run(
            "return [...document.querySelectorAll(arguments[0] + ' mark')].map((m) => m.firstChild.data)",
            "#" + task)

    def branch(self, choose, before, seed=7):
        """`before`: the answer with `seed` from which `choose` goes another way at token 5, its first row."""
        names = [name.replace(" ", "·").replace("\n", "↵") for name in before["logprobs"]["top_logprobs"][5]]
        probabilities = before["logprobs"]["top_logprobs"][5].values()
        expected = sorted(zip(names, (2.718281828459045 ** x for x in probabilities)),
                          key=lambda pair: -pair[1])
        self.assert_rows(self.rows("#alternatives"), expected)
        chosen = before["logprobs"]["tokens"][5]
        other = next(name for name in before["logprobs"]["top_logprobs"][5] if name != chosen)
        shown = self.written()
        choose()
        self.browser.wait("return document.querySelector('#written').textContent !== arguments[0]", shown)
        self.finish()
        ids = self.api("tokenize", {"model": "h3-demo", "prompt": PROMPT})["tokens"]
        ids += before["token_ids"][:5]
        ids += self.api("tokenize", {"model": "h3-demo", "prompt": other})["tokens"]
        after = self.complete(ids, seed=seed, max_tokens=20)
        stem = "".join(before["logprobs"]["tokens"][:5])
        self.assertEqual(self.written(), PROMPT + stem + other + after["text"])


def main():
    if web_driver.missing():
        print(f"there is no {web_driver.missing()} (tools/deps --checks)")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
