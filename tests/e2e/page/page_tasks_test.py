"""Writes with the page at / in Chromium, and tries what encoders do, at the widths of desktops and phones: what is
shown is what the API gives.

  page_tasks_test.py HIPPODROME MODELS GOLDEN_DIR

MODELS holds h3-demo and bigs-demo, GOLDEN_DIR the encoders classifier and masked_lm. Without
Chromium the exit status is 77.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from testing.page import PHONE, PROMPT, Steps, main
from testing.page import set_up as setUpModule  # noqa: F401


class DesktopTest(Steps):
    def reach(self, token):
        """Shows the alternatives of a token."""
        self.browser.point(token)

    # ---- Writing

    def test_writes_what_the_api_does(self):
        self.settle(seed=7, max_tokens=40)
        self.browser.click("#go")
        self.finish()
        expected = self.complete(PROMPT, seed=7, max_tokens=40)
        self.assertEqual(self.written(), PROMPT + expected["text"])
        self.assertEqual(self.browser.text("#count"), "40")
        self.assertRegex(self.browser.text("#first-token"), r"^[\d.]+ m?s$")
        self.assertGreater(float(self.browser.text("#speed")), 0)

    def test_streams_stops_and_goes_on(self):
        before = self.metric(r'hippodrome_cancelled_total\{model="h3-demo",where="decode"\}')
        self.settle(seed=7, max_tokens=20000, temperature=0)
        self.browser.click("#go")
        count = "return Number(document.querySelector('#count').textContent)"
        first = self.browser.wait(count)
        self.browser.wait(count + " > arguments[0]", first)  # while it is being written
        self.assertEqual(self.browser.text("#go"), "Stop")
        self.browser.click("#go")
        self.finish()
        self.await_metric(r'hippodrome_cancelled_total\{model="h3-demo",where="decode"\}', before + 1)
        self.await_metric(r'hippodrome_requests_running\{model="h3-demo",phase="decode"\}', 0)
        stopped = self.written()
        tokens = int(self.browser.text("#count"))
        self.assertLess(tokens, 20000)
        self.browser.type("#max_tokens", "5")
        self.browser.click("#go")
        self.finish()
        # What one call says, then what another one says of that: tokens that are taken in have other
        # roundings than those that are made, so that it may go on differently from both in one. And
        # of those tokens, not of their text: behind "\n\n" the same text may have others.
        whole = self.complete(PROMPT, max_tokens=tokens, temperature=0)
        self.assertEqual(stopped, PROMPT + whole["text"])
        ids = self.api("tokenize", {"model": "h3-demo", "prompt": PROMPT})["tokens"]
        more = self.complete(ids + whole["token_ids"], max_tokens=5, temperature=0)["text"]
        self.assertEqual(self.written(), stopped + more)
        self.browser.click("#undo")
        self.assertEqual(self.written(), stopped)

    def test_goes_on_from_another_token(self):
        seed, before = self.visible(5, max_tokens=20)
        self.settle(seed=seed, max_tokens=20)
        self.browser.click("#go")
        self.finish()
        self.reach('.token[data-index="5"]')
        self.browser.wait("return !document.querySelector('#alternatives').hidden")
        self.branch(lambda: self.browser.click("#alternatives button:enabled"), before, seed)
        # The mouse may be over a token, whose alternatives may be over the button.
        self.browser.point("#seed")
        self.browser.wait("return document.querySelector('#alternatives').hidden")
        self.browser.click("#undo")
        self.assertEqual(self.written(), PROMPT + before["text"])
        self.browser.click("#colour")
        colours = self.browser.run("return [...document.querySelectorAll('.token')].map((token) => "
                                   "getComputedStyle(token).backgroundColor)")
        self.assertGreater(len(set(colours)), 5)
        self.browser.click("#edit")
        self.assertEqual(self.browser.run("return document.querySelector('#text').value"),
                         PROMPT + before["text"])

    # ---- Encoders

    def test_classifies_and_switches_models(self):
        text = "The dog loves it."
        self.show("classify")
        for model, fields in [("bigs-demo", {"text": text}), ("classifier", {"text": text}),
                              ("classifier", {"text": text, "second": "the sea"})]:
            inputs = list(fields.values()) if "second" in fields else text
            scores = self.api("predict", {"model": model, "inputs": inputs})
            self.do("classify", model=model, **fields)
            self.assert_rows(self.rows("#classify .result"),
                             [(score["label"], score["score"]) for score in scores])

    def test_chooses(self):
        self.show("choose")
        self.do("choose", text="the old man is", choices="at sea\n\nby the house\n")
        pairs = [["the old man is", "at sea"], ["the old man is", "by the house"]]
        scores = self.api("predict", {"model": "chooser", "inputs": pairs})[0]
        self.assert_rows(self.rows("#choose .result"),
                         [(pairs[int(score["label"])][1], score["score"]) for score in scores])

    def test_fills_masks(self):
        text = "the [MASK] man and the [MASK]"
        answer = self.api("fill_mask", {"inputs": text, "model": "filler", "top_k": 5})
        self.show("fill")
        self.do("fill", text=text)
        self.assertEqual(self.marks("fill"), [mask[0]["token_str"] for mask in answer])
        self.assert_rows(self.rows("#fill .result"),
                         [(one["token_str"], one["score"]) for mask in answer for one in mask])
        self.browser.click("#fill .rows:last-child button:nth-of-type(3)")
        self.assertEqual(self.browser.text("#fill .sentence"),
                         f"the {answer[0][0]['token_str']} man and the {answer[1][2]['token_str']}")
        self.expected = ["400"]
        self.do("fill", text="no place")
        self.assertIn("[MASK]", self.browser.text("#fill .error"))

    def test_tags(self):
        text = "🐎 the old man and the sea"
        entities = self.api("token_classification", {
            "inputs": text, "model": "tagger", "aggregation_strategy": "first"})
        self.assertTrue(entities)
        self.show("tag")
        self.do("tag", text=text)
        self.assertEqual(self.marks("tag"), [entity["word"] for entity in entities])
        labels = self.browser.run(
            "return [...document.querySelectorAll('#tag small')].map((label) => label.textContent)")
        self.assertEqual(labels, [entity["entity_group"] for entity in entities])
        self.browser.run("document.querySelectorAll('#tag small').forEach((label) => label.remove())")
        self.assertEqual(self.browser.text("#tag .sentence"), text)

    def test_answers_questions(self):
        inputs = {"question": "what was it?", "context": "🐎 he was at one with the old man"}
        answers = self.api("question_answering", {"inputs": inputs, "model": "answerer", "top_k": 3})
        self.show("ask")
        self.do("ask", **inputs)
        self.assertEqual(self.marks("ask"), [answers[0]["answer"]])
        self.assertEqual(self.browser.text("#ask .sentence"), inputs["context"])
        self.assert_rows(self.rows("#ask .result"),
                         [(answer["answer"], answer["score"]) for answer in answers])
        self.browser.click("#ask .rows button:nth-of-type(2)")
        self.assertEqual(self.marks("ask"), [answers[1]["answer"]])

    def test_embeds(self):
        texts = ["the old man", "the sea", "at home"]
        embeddings = self.api("embed", {"model": "bigs-demo", "inputs": texts})
        self.show("embed")
        self.do("embed", texts="\n".join(texts))
        cells = self.browser.run("return [...document.querySelectorAll('#embed td[style]')].map((cell) =>"
                                 " Number(cell.textContent))")
        expected = [sum(x * y for x, y in zip(a, b)) for a in embeddings for b in embeddings]
        self.assertEqual(len(cells), 9)
        for found, cosine in zip(cells, expected):
            self.assertLessEqual(abs(found - cosine), 0.0051)


class PhoneTest(DesktopTest):
    size = PHONE

    def reach(self, token):
        self.browser.point(token, "touch")


if __name__ == "__main__":
    main()
