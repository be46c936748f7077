"""Serves encoders with the real program and calls every route as the usual clients do.

  encode_test.py HIPPODROME GOLDEN_DIR

GOLDEN_DIR holds the model directories classifier and masked_lm. Answers are checked against what
`hippodrome forward` says of the same tokens.
"""

import array
import base64
import json
import math
import os
import pathlib
import sys
import tempfile
import unittest
import urllib.error

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing import encoder_models
from testing.encoder_models import softmax
from testing.encoder_server import HUB, OPENAI, Server

HIPPODROME, GOLDEN = sys.argv[1], sys.argv[2]
TEXT = "the old man and the sea"
# Softmax and mean in f32 against double precision: a few roundings of 6e-8.
TOLERANCE = 2e-6


class EncodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.work = tempfile.TemporaryDirectory()
        cls.models = encoder_models.make_models(GOLDEN, cls.work.name)
        cls.forward = encoder_models.Forward(HIPPODROME, cls.work.name)
        cls.server = Server(HIPPODROME, cls.models, os.path.join(cls.work.name, "log"))

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.work.cleanup()

    def call(self, path, body=None, headers=HUB):
        return self.server.call(path, body, headers)

    def refused(self, path, body):
        """The status and the error of a call that must fail."""
        with self.assertRaises(urllib.error.HTTPError) as caught:
            self.call(path, body)
        with caught.exception as response:
            return response.code, json.load(response)["error"]

    def tokenize(self, model, text):
        """With [CLS] and [SEP]."""
        return self.call("/tokenize", {"model": model, "prompt": text})["tokens"]

    def pair(self, model, first, second):
        """The ids and types of a pair."""
        first = self.tokenize(model, first)
        second = self.tokenize(model, second)[1:]
        return first + second, [0] * len(first) + [1] * len(second)

    def assert_near(self, found, expected, tolerance=TOLERANCE):
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertLessEqual(abs(a - b), tolerance)

    # ---- Classification

    def logits(self, ids, types=None):
        return self.forward(self.models["classifier"], ids, types)["logits"]

    def assert_predicts(self, answer, logits):
        expected = sorted(enumerate(softmax(logits)), key=lambda pair: -pair[1])
        self.assertEqual([score["label"] for score in answer], [f"LABEL_{i}" for i, _ in expected])
        self.assert_near([score["score"] for score in answer], [score for _, score in expected])

    def test_predict_as_tei_clients_call_it(self):
        one = self.logits(self.tokenize("classifier", TEXT))
        self.assert_predicts(self.call("/predict", {"inputs": TEXT}), one)
        pair = self.logits(*self.pair("classifier", TEXT, "by the sea"))
        self.assert_predicts(self.call("/predict", {"inputs": [TEXT, "by the sea"]}), pair)
        batch = self.call("/predict", {"inputs": [[TEXT], [TEXT, "by the sea"]]})
        self.assert_predicts(batch[0], one)
        self.assert_predicts(batch[1], pair)
        raw = self.call("/predict", {"inputs": TEXT, "raw_scores": True})
        # No rounding at all: the same logits, written so that they are read back.
        self.assertEqual(array.array("f", [score["score"] for score in raw]),
                         array.array("f", sorted(one, reverse=True)))

    def test_truncation(self):
        ids = self.tokenize("classifier", "sea " * 60 + "the man " * 60)
        self.assertGreater(len(ids), 128)
        text = "sea " * 60 + "the man " * 60
        status, error = self.refused("/predict", {"inputs": text})
        self.assertEqual(status, 400)
        self.assertIn("128", error["message"])
        right = self.call("/predict", {"inputs": text, "truncate": True,
                                       "truncation_direction": "Right"})
        self.assert_predicts(right, self.logits(ids[:127] + ids[-1:]))
        left = self.call("/predict", {"inputs": text, "truncate": True,
                                      "truncation_direction": "Left"})
        self.assert_predicts(left, self.logits(ids[:1] + ids[-127:]))

    def test_text_classification_of_huggingface_hub(self):
        logits = self.logits(self.tokenize("classifier", TEXT))
        answer = self.call("/predict", {"inputs": TEXT, "parameters": {}})
        self.assert_predicts(answer[0], logits)
        answer = self.call("/predict", {"inputs": TEXT, "parameters": {
            "function_to_apply": "sigmoid", "top_k": 1}})
        self.assertEqual(len(answer[0]), 1)
        self.assert_near([answer[0][0]["score"]], [1 / (1 + math.exp(-max(logits)))])

    def test_multiple_choice(self):
        pairs = [["the old man is", "at sea"], ["the old man is", "by the house"]]
        logits = [self.forward(self.models["chooser"], *self.pair("chooser", *pair))["logits"][0]
                  for pair in pairs]
        answer = self.call("/predict", {"model": "chooser", "inputs": pairs})[0]
        best = max(range(2), key=lambda i: logits[i])
        self.assertEqual(answer[0]["label"], str(best))
        self.assert_near([answer[0]["score"]], [softmax(logits)[best]])

    # ---- Embeddings

    def test_embed_is_what_the_classifier_sees(self):
        mean = self.call("/embed", {"inputs": TEXT, "normalize": False})[0]
        tensors = encoder_models.read_tensors(
            os.path.join(self.models["classifier"], "model.safetensors"))

        def linear(name, x):
            weight, bias = tensors[name + ".weight"][1], tensors[name + ".bias"][1]
            return [bias[i] + sum(w * y for w, y in zip(weight[i * len(x):(i + 1) * len(x)], x))
                    for i in range(len(bias))]

        pooled = [math.tanh(x) for x in linear("bigs.pooler.dense", mean)]
        logits = self.logits(self.tokenize("classifier", TEXT))
        self.assert_near(linear("classifier", pooled), logits, 1e-5)

    def test_embed_as_its_clients_call_it(self):
        texts = [TEXT, "by the sea"]
        plain = self.call("/embed", {"inputs": texts, "normalize": False, "truncate": True,
                                     "truncation_direction": "right"})
        normal = self.call("/embed", {"inputs": texts})
        for x, unit in zip(plain, normal):
            norm = math.sqrt(sum(a * a for a in x))
            self.assert_near(unit, [a / norm for a in x])
        ids = [self.tokenize("classifier", text) for text in texts]
        self.assertEqual(self.call("/embed", {"inputs": ids}), normal)
        self.assertEqual(self.call("/embed", {"inputs": ids[1]}), normal[1:])

    def test_openai_embeddings(self):
        normal = self.call("/embed", {"model": "filler", "inputs": [TEXT, "by the sea"]})
        request = {"input": [TEXT, "by the sea"], "model": "filler", "encoding_format": "base64"}
        answer = self.call("/v1/embeddings", request, OPENAI)
        for i, item in enumerate(answer["data"]):
            self.assertEqual((item["object"], item["index"]), ("embedding", i))
            floats = array.array("f", base64.b64decode(item["embedding"]))
            self.assertEqual(floats, array.array("f", normal[i]))
        self.assertEqual(answer["object"], "list")
        self.assertEqual(answer["model"], "filler")
        tokens = sum(len(self.tokenize("filler", text)) for text in request["input"])
        self.assertEqual(answer["usage"], {"prompt_tokens": tokens, "total_tokens": tokens})
        request["encoding_format"] = "float"
        answer = self.call("/v1/embeddings", request, OPENAI)
        self.assertEqual([item["embedding"] for item in answer["data"]], normal)
        error = self.refused("/v1/embeddings", {"input": "a", "dimensions": 7})[1]
        self.assertEqual(error["param"], "dimensions")

    # ---- Masks, tags, answers

    def test_fill_mask_of_huggingface_hub(self):
        text = "the [MASK] man and the [MASK]"
        ids = self.tokenize("filler", text)
        logits = self.forward(self.models["filler"], ids)["logits"]
        mask = self.tokenize("filler", "[MASK]")[1]
        places = [i for i, token in enumerate(ids) if token == mask]
        answer = self.call("/fill_mask", {"inputs": text, "parameters": {"top_k": 3},
                                          "model": "filler"})
        self.assertEqual(len(answer), 2)
        for candidates, place in zip(answer, places):
            scores = softmax(logits[place * 300:(place + 1) * 300])
            best = sorted(range(300), key=lambda i: -scores[i])[:3]
            self.assertEqual([candidate["token"] for candidate in candidates], best)
            self.assert_near([candidate["score"] for candidate in candidates],
                             [scores[i] for i in best])
        one = self.call("/fill_mask", {"inputs": "the [MASK] man", "model": "filler",
                                       "parameters": {"targets": ["was", "for"]}})
        self.assertEqual({candidate["token_str"] for candidate in one}, {"was", "for"})
        for candidate in one:
            self.assertEqual(candidate["sequence"], f"the {candidate['token_str']} man")

    def test_token_classification_of_huggingface_hub(self):
        ids = self.tokenize("tagger", TEXT)
        logits = self.forward(self.models["tagger"], ids)["logits"]
        count = len(encoder_models.TAGS)
        expected = []
        for i in range(1, len(ids) - 1):
            scores = softmax(logits[i * count:(i + 1) * count])
            best = max(range(count), key=lambda c: scores[c])
            if encoder_models.TAGS[best] != "O":
                expected.append((i, encoder_models.TAGS[best], scores[best]))
        self.assertTrue(expected, "the random model tags nothing")
        answer = self.call("/token_classification", {
            "inputs": TEXT, "parameters": {"aggregation_strategy": "none"}, "model": "tagger"})
        self.assertEqual([(token["index"], token["entity"]) for token in answer],
                         [(i, tag) for i, tag, _ in expected])
        self.assert_near([token["score"] for token in answer], [score for _, _, score in expected])
        for strategy in ["simple", "first", "average", "max"]:
            answer = self.call("/token_classification", {
                "inputs": TEXT, "parameters": {"aggregation_strategy": strategy},
                "model": "tagger"})
            for group in answer:
                self.assertEqual(group["word"], TEXT[group["start"]:group["end"]])
                self.assertIn(group["entity_group"], ["PER", "LOC"])

    def test_question_answering_of_huggingface_hub(self):
        question, words = "what was it?", ["he", "was", "at", "one", "with"]
        context = " ".join(words)
        ids, types = self.pair("answerer", question, context)
        outputs = self.forward(self.models["answerer"], ids, types)
        first = len(ids) - 1 - len(words)
        self.assertEqual(first, types.index(1), "each word of the context is a token")
        spans = [(outputs["start_logits"][first + i] + outputs["end_logits"][first + j], i, j)
                 for i in range(len(words)) for j in range(i, len(words))]
        scores = softmax([span[0] for span in spans])
        score, (_, i, j) = max(zip(scores, spans))
        answer = self.call("/question_answering", {
            "inputs": {"question": question, "context": context}, "parameters": {},
            "model": "answerer"})
        self.assertEqual(answer["answer"], " ".join(words[i:j + 1]))
        self.assertEqual(answer["answer"], context[answer["start"]:answer["end"]])
        self.assert_near([answer["score"]], [score])
        several = self.call("/question_answering", {
            "inputs": {"question": question, "context": context},
            "parameters": {"top_k": 3, "max_answer_len": 2}, "model": "answerer"})
        self.assertEqual(len(several), 3)

    # ---- The rest

    def test_info_and_models(self):
        info = self.call("/info")
        self.assertEqual(info["model_id"], "classifier")
        self.assertEqual(info["model_dtype"], "float32")
        self.assertEqual(info["model_type"]["classifier"]["id2label"]["2"], "LABEL_2")
        self.assertEqual(info["max_input_length"], 128)
        self.assertEqual([model["id"] for model in self.call("/v1/models")["data"]],
                         list(self.models))

    def test_errors(self):
        self.assertEqual(self.refused("/predict", {"inputs": [1]})[1]["param"], "inputs")
        self.assertEqual(self.refused("/predict", {"inputs": "a", "model": "none"})[0], 404)
        wrong_head = {"inputs": "[MASK]", "model": "classifier"}
        self.assertEqual(self.refused("/fill_mask", wrong_head)[0], 400)
        self.assertEqual(self.refused("/v1/completions", {"prompt": "a"})[0], 400)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
