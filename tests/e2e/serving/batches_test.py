#!/usr/bin/env python3
"""/v1/files and /v1/batches: OpenAI's own client, servers that are killed, keys, and calls that somebody waits for.

  batches_test.py HIPPODROME MODELS_DIR [--shim FAULT_SHIM] [TEST...]

A batch that servers were killed under has the same files as one that nothing disturbed, byte for byte, but for the
ids and the time of the batch.
"""

import argparse
import contextlib
import http.client
import io
import json
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import api_keys, python_packages
from testing.faults import Faults
from testing.http_peers import Server

python_packages.need()

import openai  # noqa: E402  (after the interpreter that has it)

WORDS = "the old man and the sea it was a dark night dogs love this food great treats awful taste never again".split()
FINAL = ("completed", "failed", "cancelled", "expired")
KILLS = 4

arguments = None


# ---- Inputs


def line(number, endpoint, **body):
    return json.dumps({"custom_id": f"line {number}", "method": "POST", "url": endpoint, "body": body})


def completions(count, tokens=8, seed=1):
    """Prompts of all kinds, each seventh of which is wrong."""
    chance = random.Random(seed)
    lines = []
    for i in range(count):
        body = {"model": "h3-demo", "prompt": " ".join(chance.choices(WORDS, k=chance.randint(1, 30))),
                "max_tokens": chance.randint(1, tokens)}
        body.update(chance.choice(({"temperature": 0}, {"seed": i}, {"n": 2, "logprobs": 2}, {"echo": True}, {})))
        if i % 7 == 5:
            body.update(chance.choice(({"max_tokens": -1}, {"model": "none"}, {"unknown": 1})))
        lines.append(line(i, "/v1/completions", **body))
    return lines


def texts(count):
    chance = random.Random(2)
    return [line(i, "/predict", inputs=" ".join(chance.choices(WORDS, k=chance.randint(1, 20))))
            for i in range(count)]


# ---- A server and its client


class BatchServer(Server):
    """One with a directory of batches, and what its client sees."""

    def __init__(self, folder, *options, key=None, client_key="none", **how):
        super().__init__(arguments.hippodrome, arguments.models, "--batch-dir", folder, *options, key=key, **how)
        self.client = self.client_of(client_key)

    def client_of(self, key):
        return openai.OpenAI(base_url="http://{}:{}/v1".format(*self.http), api_key=key, max_retries=0, timeout=60)

    def kill(self):
        self.process.kill()
        self.process.wait()


def upload(client, lines, name="input.jsonl"):
    return client.files.create(file=(name, io.BytesIO(("\n".join(lines) + "\n").encode())), purpose="batch")


def create(client, lines, endpoint="/v1/completions", **more):
    file = upload(client, lines)
    return client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h", **more)


def wait(client, batch, statuses=FINAL, seconds=240):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        now = client.batches.retrieve(batch.id)
        if now.status in statuses:
            return now
        time.sleep(0.05)
    raise RuntimeError(f"the batch stays {now.status}: {now}")


def content(client, file):
    return client.files.content(file).read() if file else b""


def records(client, file):
    return [json.loads(text) for text in content(client, file).splitlines()]


def files_of(client, batch):
    """Both files, without what is the batch's own."""
    mine = batch.id.removeprefix("batch_").encode()
    created = b'"created":%d' % batch.created_at
    return [content(client, file).replace(mine, b"ID").replace(created, b'"created":0')
            for file in (batch.output_file_id, batch.error_file_id)]


class Case(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())

    def serve(self, *options, **how):
        return self.stack.enter_context(BatchServer(self.folder, *options, **how))

    def refused(self, kind, text, call):
        with self.assertRaises(kind) as caught:
            call()
        self.assertIn(text, str(caught.exception))


# ---- Tests


class ClientTest(Case):
    """What OpenAI's client does with files and batches."""

    def test_a_batch_from_its_upload_to_its_end(self):
        client = self.serve().client
        lines = completions(30)
        file = upload(client, lines)
        self.assertEqual((file.object, file.purpose, file.status, file.filename),
                         ("file", "batch", "processed", "input.jsonl"))
        self.assertEqual(file.bytes, len("\n".join(lines)) + 1)
        batch = client.batches.create(input_file_id=file.id, endpoint="/v1/completions", completion_window="24h",
                                      metadata={"for": "test"})
        self.assertIn(batch.status, ("validating", "in_progress"))
        self.assertEqual((batch.object, batch.metadata, batch.expires_at - batch.created_at),
                         ("batch", {"for": "test"}, 86400))
        done = wait(client, batch)
        self.assertEqual(done.status, "completed")
        self.assertTrue(done.created_at <= done.in_progress_at <= done.finalizing_at <= done.completed_at)
        bad = [f"line {i}" for i in range(30) if i % 7 == 5]
        good = [f"line {i}" for i in range(30) if i % 7 != 5]
        counts = done.request_counts
        self.assertEqual((counts.total, counts.completed, counts.failed), (30, len(good), len(bad)))
        output, errors = records(client, done.output_file_id), records(client, done.error_file_id)
        self.assertEqual([record["custom_id"] for record in output], good)
        self.assertEqual([record["custom_id"] for record in errors], bad)
        self.assertEqual({record["response"]["status_code"] for record in output}, {200})
        self.assertTrue({record["response"]["status_code"] for record in errors} <= {400, 404})
        usage = [record["response"]["body"]["usage"] for record in output]
        self.assertEqual(done.usage.input_tokens, sum(one["prompt_tokens"] for one in usage))
        self.assertEqual(done.usage.output_tokens, sum(one["completion_tokens"] for one in usage))

    def test_answers_are_those_of_a_call(self):
        server = self.serve()
        for endpoint, bodies in {
                "/v1/completions": [{"model": "h3-demo", "prompt": "It was", "max_tokens": 5, "seed": 3}],
                "/predict": [{"inputs": "dogs love it"}, {"inputs": ["great", "awful"], "raw_scores": True}],
                "/v1/embeddings": [{"model": "bigs-demo", "input": "dogs"}],
                "/embed": [{"inputs": "dogs"}]}.items():
            lines = [line(i, endpoint, **body) for i, body in enumerate(bodies)]
            done = wait(server.client, create(server.client, lines, endpoint))
            output = records(server.client, done.output_file_id)
            self.assertEqual(len(output), len(bodies), (endpoint, records(server.client, done.error_file_id)))
            for body, record in zip(bodies, output):
                self.assertEqual(self.lasting(record["response"]["body"]),
                                 self.lasting(self.ask(server, endpoint, body)), endpoint)

    @staticmethod
    def lasting(answer):
        """Without what differs from call to call."""
        if isinstance(answer, dict):
            answer = {name: value for name, value in answer.items() if name not in ("id", "created")}
            answer.get("usage", {}).pop("prompt_tokens_details", None)
        return answer

    @staticmethod
    def ask(server, path, body):
        connection = http.client.HTTPConnection(*server.http, timeout=60)
        with contextlib.closing(connection):
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            return json.loads(connection.getresponse().read())

    def test_the_example_of_the_documentation_runs(self):
        server = self.serve()
        page = pathlib.Path(__file__).resolve().parents[3] / "docs" / "batch.md"
        example = re.search(r"^```python\n(.*?)^```$", page.read_text(), re.M | re.S)[1]
        here = example.replace("127.0.0.1:8080", "{}:{}".format(*server.http))
        self.assertNotEqual(here, example)
        done = subprocess.run([sys.executable, "-c", here], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?s)^0 .*\n1 ")

    def test_lists_come_in_pages_and_files_can_go(self):
        client = self.serve().client
        ids = [upload(client, [f"{i}"]).id for i in range(5)]
        self.assertEqual([file.id for file in client.files.list()], ids[::-1])
        self.assertEqual([file.id for file in client.files.list(limit=2, order="asc")], ids)
        self.assertEqual([file.id for file in client.files.list(purpose="batch_output")], [])
        self.assertEqual([file.id for file in client.files.list(after=ids[1])], [ids[0]])
        self.assertTrue(client.files.delete(ids[0]).deleted)
        self.refused(openai.NotFoundError, ids[0], lambda: client.files.retrieve(ids[0]))
        self.refused(openai.NotFoundError, ids[0], lambda: client.files.content(ids[0]))
        batches = [create(client, ["{}"]).id for _ in range(5)]
        self.assertEqual([batch.id for batch in client.batches.list(limit=2)], batches[::-1])

    def test_a_wrong_input_fails_its_batch_and_says_where(self):
        client = self.serve().client
        lines = [line(1, "/predict", inputs="a"), "{", line(1, "/predict", inputs="b"),
                 line(2, "/embed", inputs="b"), line(3, "/predict", inputs="b", stream=True)]
        failed = wait(client, create(client, lines, "/predict"))
        self.assertEqual((failed.status, failed.output_file_id, failed.error_file_id), ("failed", None, None))
        self.assertEqual([(error.line, error.code, error.param) for error in failed.errors.data],
                         [(2, "invalid_json_line", None), (3, "duplicate_custom_id", "custom_id"),
                          (4, "invalid_field", "url"), (5, "invalid_field", "body.stream")])
        self.assertTrue(failed.failed_at)

    def test_what_cannot_be_is_refused(self):
        client = self.serve("--batch-file-bytes", "1000").client
        file = upload(client, ["{}"])
        new = lambda **more: client.batches.create(**{
            "input_file_id": file.id, "endpoint": "/predict", "completion_window": "24h", **more})
        bad = openai.BadRequestError
        self.refused(bad, "endpoint", lambda: new(endpoint="/v1/chat/completions"))
        self.refused(bad, "completion_window", lambda: new(completion_window="1h"))
        self.refused(bad, "input_file_id", lambda: new(input_file_id="file-1"))
        self.refused(bad, "metadata", lambda: new(metadata={"a": "x" * 600}))
        self.refused(bad, "output_expires_after", lambda: new(
            output_expires_after={"anchor": "created_at", "seconds": 3600}))
        self.refused(bad, "purpose", lambda: client.files.create(file=b"{}", purpose="fine-tune"))
        self.refused(bad, "packed", lambda: client.files.create(file=b"\x1f\x8b", purpose="batch"))
        self.refused(openai.APIStatusError, "may have 1000", lambda: upload(client, ["x" * 1000]))
        self.refused(bad, "limit", lambda: list(client.batches.list(limit=1000)))
        self.refused(openai.NotFoundError, "batch_1", lambda: client.batches.retrieve("batch_1"))
        self.refused(openai.NotFoundError, "batch_1", lambda: client.batches.cancel("batch_1"))

    def test_without_a_directory_the_option_is_named(self):
        with Server(arguments.hippodrome, arguments.models) as server:
            self.assertIn("--batch-dir", server.get("/v1/batches")[1])
            self.assertIn("--batch-dir", server.get("/v1/files")[1])

    def test_a_cancelled_batch_has_what_it_did(self):
        client = self.serve().client
        batch = create(client, completions(2000))
        started = wait(client, batch, ("in_progress",))
        while started.request_counts.completed == 0:
            started = client.batches.retrieve(batch.id)
        self.assertEqual(client.batches.cancel(batch.id).status, "cancelling")
        done = wait(client, batch)
        self.assertEqual(done.status, "cancelled")
        self.assertTrue(done.cancelling_at <= done.cancelled_at)
        output, errors = records(client, done.output_file_id), records(client, done.error_file_id)
        self.assertEqual(len(output) + len(errors), 2000)
        unreached = [record for record in errors if record["response"] is None]
        self.assertGreater(len(unreached), 1000)
        self.assertEqual({record["error"]["code"] for record in unreached}, {"batch_cancelled"})
        self.refused(openai.BadRequestError, "cancelled", lambda: client.batches.cancel(batch.id))


class RestartTest(Case):
    def undisturbed(self, lines, endpoint):
        server = self.serve()
        done = wait(server.client, create(server.client, lines, endpoint))
        files = files_of(server.client, done)
        server.stop()
        return files, done.request_counts

    def disturbed(self, lines, endpoint):
        """The files of a batch whose server was killed several times, and stopped once."""
        server = self.serve()
        batch = create(server.client, lines, endpoint)
        for i in range(KILLS + 1):
            self.wait_for_lines(server, batch, (i + 1) * len(lines) // (KILLS + 3))
            server.kill() if i != 2 else self.assertEqual(server.stop(), 0)
            server = self.serve()
        done = wait(server.client, batch)
        files = files_of(server.client, done)
        again = server.client.batches.retrieve(batch.id)
        self.assertEqual(again, done)
        server.stop()
        return files, done.request_counts

    def wait_for_lines(self, server, batch, count):
        while True:
            counts = server.client.batches.retrieve(batch.id).request_counts
            if counts.completed + counts.failed >= count:
                return

    def check(self, lines, endpoint):
        whole, counts = self.undisturbed(lines, endpoint)
        self.assertEqual(counts.total, len(lines))
        self.assertEqual(sum(text.count(b"\n") for text in whole), len(lines))
        killed, killed_counts = self.disturbed(lines, endpoint)
        self.assertEqual(killed_counts, counts)
        self.assertEqual(killed, whole)

    def test_completions_are_the_same_when_servers_are_killed(self):
        self.check(completions(300), "/v1/completions")

    def test_classes_are_the_same_when_servers_are_killed(self):
        self.check(texts(600), "/predict")

    def test_a_directory_has_one_server(self):
        self.serve()
        command = [arguments.hippodrome, "serve", "--device", "cpu", "--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0",
                   "--batch-dir", self.folder, "--model", os.path.join(arguments.models, "bigs-demo")]
        second = subprocess.run(command, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("another server", second.stderr)

    def test_a_server_starts_over_what_is_damaged(self):
        server = self.serve()
        done = wait(server.client, create(server.client, texts(3), "/predict"))
        server.stop()
        for path in (f"batches/{done.id}.json", "files/" + done.input_file_id, "files/what", "batches/else"):
            with open(os.path.join(self.folder, path), "w") as file:
                file.write("{")
        server = self.serve()
        self.assertEqual(list(server.client.batches.list()), [])
        self.assertEqual([file.id for file in server.client.files.list()], [done.output_file_id])
        self.assertEqual(len(records(server.client, done.output_file_id)), 3)
        self.assertIn('"event":"batch_store"', server.said().replace(" ", ""))


class FaultsTest(Case):
    def setUp(self):
        super().setUp()
        if arguments.shim is None:
            self.skipTest("without the shim there are no faults")
        self.faults = Faults(arguments.shim)
        with self.faults.loaded():
            self.server = self.serve()

    def test_a_full_disk_makes_a_batch_wait(self):
        client = self.server.client
        lines = completions(200)
        whole = files_of(client, wait(client, create(client, lines)))
        batch = create(client, lines)
        wait(client, batch, ("in_progress",))
        self.faults.fill_disk(1)
        end = time.monotonic() + 60
        while '"batch_paused"' not in self.server.said() and time.monotonic() < end:
            time.sleep(0.05)
        self.refused(openai.InternalServerError, "the store of batches", lambda: upload(client, lines))
        self.assertEqual(client.batches.retrieve(batch.id).status, "in_progress")
        self.faults.fill_disk(0)
        done = wait(client, batch)
        self.assertEqual((done.status, done.request_counts.total), ("completed", 200))
        self.assertEqual(files_of(client, done), whole)
        self.assertEqual(len(list(client.files.list(purpose="batch"))), 2)

    def test_a_batch_expires_after_a_day(self):
        client = self.server.client
        batch = create(client, completions(2000))
        started = wait(client, batch, ("in_progress",))
        while started.request_counts.completed == 0:
            started = client.batches.retrieve(batch.id)
        self.faults.jump(24 * 60 * 60)
        done = wait(client, batch)
        self.assertEqual(done.status, "expired")
        self.assertGreaterEqual(done.expired_at, done.expires_at)
        output, errors = records(client, done.output_file_id), records(client, done.error_file_id)
        self.assertEqual(len(output) + len(errors), 2000)
        self.assertEqual(errors[-1]["error"]["code"], "batch_expired")

    def test_memory_that_runs_out_loses_no_line(self):
        """The server may end of it, as it says then; the next one goes on."""
        client = self.server.client
        lines = texts(60)
        whole = files_of(client, wait(client, create(client, lines, "/predict")))
        batch = create(client, lines, "/predict")
        for site in range(200, 20000, 1100):
            if self.server.process.poll() is not None:
                break
            self.faults.fail(site)
            time.sleep(0.05)
        self.faults.fail(-1)
        if self.server.process.poll() is None:
            self.server.stop()
        client = self.serve().client
        done = wait(client, batch)
        self.assertEqual(done.request_counts.total, 60)
        if done.request_counts.failed == 0:
            self.assertEqual(files_of(client, done), whole)


class KeysTest(Case):
    def keys(self, *names, limits=None):
        secrets, entries = {}, []
        for name in names:
            secrets[name], entry = api_keys.new(arguments.hippodrome, name, **(limits or {}).get(name, {}))
            entries.append(entry)
        path = os.path.join(self.folder, "keys.json")
        api_keys.write(path, entries)
        return path, secrets, entries

    def test_what_a_key_has_does_not_exist_for_others(self):
        path, secrets, _ = self.keys("me", "you")
        server = self.serve("--api-keys", path, key=secrets["me"], client_key=secrets["me"])
        me, you = server.client, server.client_of(secrets["you"])
        batch = wait(me, create(me, texts(3), "/predict"))
        for call in (lambda: you.files.retrieve(batch.input_file_id), lambda: you.files.delete(batch.input_file_id),
                     lambda: you.files.content(batch.output_file_id), lambda: you.batches.retrieve(batch.id),
                     lambda: you.batches.cancel(batch.id)):
            self.assertRaises(openai.NotFoundError, call)
        self.assertEqual(list(you.files.list()), [])
        self.assertEqual(list(you.batches.list()), [])
        self.assertRaises(openai.BadRequestError, lambda: you.batches.create(
            input_file_id=batch.input_file_id, endpoint="/predict", completion_window="24h"))
        self.assertRaises(openai.AuthenticationError, lambda: list(server.client_of("hk-wrong").files.list()))

    def test_limits_of_a_key_hold_for_its_batches(self):
        limits = {"me": {"models": ["bigs-demo"], "limits": {"calls": 2, "requests_per_minute": 6000, "burst": 8}}}
        path, secrets, _ = self.keys("me", limits=limits)
        server = self.serve("--api-keys", path, key=secrets["me"], client_key=secrets["me"])
        done = wait(server.client, create(server.client, texts(40), "/predict"))
        self.assertEqual((done.status, done.request_counts.completed), ("completed", 40))
        refused = wait(server.client, create(server.client, completions(3)))
        statuses = [record["response"]["status_code"] for record in records(server.client, refused.error_file_id)]
        self.assertEqual(statuses, [403] * 3)

    def test_a_batch_ends_with_its_key(self):
        path, secrets, entries = self.keys("me", "you")
        server = self.serve("--api-keys", path, key=secrets["you"], client_key=secrets["me"])
        batch = create(server.client, completions(2000))
        wait(server.client, batch, ("in_progress",))
        api_keys.write(path, entries[1:])
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while '"batch_ended"' not in server.said() and time.monotonic() < end:
            time.sleep(0.05)
        self.assertIn('"reason":"key_gone"', server.said().replace(" ", ""))
        api_keys.write(path, entries)
        server.process.send_signal(signal.SIGHUP)
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(openai.AuthenticationError):
                failed = server.client.batches.retrieve(batch.id)
                break
        self.assertEqual((failed.status, failed.errors.data[0].code), ("failed", "key_gone"))


class BesideTest(Case):
    def test_calls_that_somebody_waits_for_are_answered_during_a_batch(self):
        server = self.serve()
        batch = create(server.client, completions(3000))
        wait(server.client, batch, ("in_progress",))
        answered = 0
        for i in range(20):
            answer = server.client.completions.create(model="h3-demo", prompt="It was", max_tokens=4, temperature=0)
            answered += answer.usage.completion_tokens > 0
        counts = server.client.batches.retrieve(batch.id).request_counts
        self.assertEqual(answered, 20)
        self.assertLess(counts.completed + counts.failed, 3000)
        server.client.batches.cancel(batch.id)
        wait(server.client, batch)

    def test_a_full_queue_is_no_error_of_a_line(self):
        """Others keep the one place in the queue."""
        server = self.serve("--max-queue", "1", "--max-sequences", "1")
        batch = create(server.client, completions(40))
        stop = threading.Event()

        def flood():
            client = server.client_of("none")
            while not stop.is_set():
                with contextlib.suppress(openai.RateLimitError):
                    client.completions.create(model="h3-demo", prompt="It was", max_tokens=8)

        floods = [threading.Thread(target=flood) for _ in range(3)]
        for thread in floods:
            thread.start()
        time.sleep(2)
        stop.set()
        for thread in floods:
            thread.join()
        done = wait(server.client, batch)
        bad = sum(1 for i in range(40) if i % 7 == 5)
        self.assertEqual((done.status, done.request_counts.failed), ("completed", bad))

    def test_metrics_and_the_log_tell_of_batches(self):
        server = self.serve()
        done = wait(server.client, create(server.client, completions(10)))
        metrics = server.metrics()
        self.assertEqual(metrics['hippodrome_batch_lines_total{result="completed"}'], done.request_counts.completed)
        self.assertEqual(metrics['hippodrome_batch_lines_total{result="failed"}'], done.request_counts.failed)
        self.assertEqual(metrics['hippodrome_batches{status="completed"}'], 1)
        self.assertGreater(metrics["hippodrome_batch_directory_bytes"], 0)
        said = server.said().replace(" ", "")
        self.assertIn('"event":"batch_started"', said)
        self.assertIn('"event":"batch_ended"', said)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("hippodrome")
    parser.add_argument("models")
    parser.add_argument("--shim")
    parser.add_argument("tests", nargs="*")
    arguments = parser.parse_intermixed_args()
    unittest.main(argv=[sys.argv[0], *arguments.tests])
