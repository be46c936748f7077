"""Tests the scripts that draw what was measured.

  plots_test.py
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import compare_plot
import conversations_plot
import scaling_plot
from svg_chart import text, ticks

SVG = "{http://www.w3.org/2000/svg}"


def result(weights, value, batch=1, **more):
    return {"name": "decode", "batch": batch, "length": 512, "weights": weights, "value": value, "limit": 200,
            "fraction": value / 200, "bytes_per_token": 2.5e8, "unit": "tokens/s", **more}


def drawn(*results):
    """The picture's root, and its texts."""
    root = xml.etree.ElementTree.fromstring(
        compare_plot.chart({"machine": "Some <machine>, 2 cores", "results": list(results)}))
    return root, [element.text for element in root.iter(SVG + "text")]


class SvgChartTest(unittest.TestCase):
    def test_ticks_are_round_and_reach_the_most(self):
        self.assertEqual(ticks(10), [0, 2, 4, 6, 8, 10])
        for tenths in range(1, 2000, 7):
            marks = ticks(tenths / 10)
            self.assertGreaterEqual(marks[-1], tenths / 10 * (1 - 1e-9))
            self.assertLessEqual(len(marks), 10)

    def test_texts_are_escaped(self):
        self.assertIn(">a &lt; b &amp; c<", text(0, 0, "a < b & c"))


class ConversationsPlotTest(unittest.TestCase):
    def test_the_picture_is_of_the_figures(self):
        report = json.loads((HERE / "conversations.json").read_text())
        self.assertEqual(conversations_plot.chart(report), (HERE / "conversations.svg").read_text())


class ScalingPlotTest(unittest.TestCase):
    def test_lines_and_rings_are_of_the_tables(self):
        report = json.loads((HERE / "gpu-results.json").read_text())
        root = xml.etree.ElementTree.fromstring(
            scaling_plot.chart(report, {128: 8e10, 4096: 2.6e12}, {128: 8e10, 4096: 4.1e12}))
        texts = [element.text for element in root.iter(SVG + "text")]
        for expected in ("512", "1,536", "4,096", "measured, hybrid H3", "BERT large", "10,000", "1E12"):
            self.assertIn(expected, texts)
        rings = len(list(root.iter(SVG + "circle")))
        self.assertEqual(rings, 2 * (3 + 1) + 2 * (4 + 1))  # with the legend's

    def test_what_points_stand_for(self):
        self.assertEqual(scaling_plot.operations("matrix products  8.0e+10 (8E10)\ntotal            8.078e+10 (8E10)\n"),
                         8.078e10)
        results = [{"name": "table7", "length": 512, "value": 5, "limit": 10}, {"name": "prefill"}]
        self.assertEqual(scaling_plot.throughput({"machine": "some", "results": results}),
                         ("some", {512: 5}, {512: 10}))
        for other in ({}, [], {"results": [{"name": "prefill"}]}):
            with self.assertRaisesRegex(ValueError, "no results of table7"):
                scaling_plot.throughput(other)
        with self.assertRaisesRegex(ValueError, "no total"):
            scaling_plot.operations("")


class ComparePlotTest(unittest.TestCase):
    def test_bars_are_as_high_as_their_values(self):
        root, _ = drawn(result("f32", 50), result("bf16", 100))
        filled = [float(bar.get("height")) for bar in root.iter(SVG + "rect")
                  if bar.get("fill") in compare_plot.COLOURS]
        limits = [float(bar.get("height")) for bar in root.iter(SVG + "rect") if bar.get("stroke-dasharray")]
        self.assertEqual(len(filled), 2)
        self.assertAlmostEqual(filled[1], 2 * filled[0], delta=0.2)
        self.assertAlmostEqual(limits[0], 4 * filled[0], delta=0.3)
        self.assertEqual(limits[0], limits[1])

    def test_labels_have_numbers_and_units(self):
        _, texts = drawn(result("f32", 50, to_bf16=0.5), result("bf16", 100, to_bf16=1))
        for expected in ("Some <machine>, 2 cores", "decode, 1 x 512 tokens", "f32", "bf16", "tokens/s", "50", "100",
                         "of the limit", "25 %", "50 %", "times bf16", "0.50", "1.00", "MB/token", "250"):
            self.assertIn(expected, texts)
        self.assertIn("-", drawn(result("int8", 50))[1])

    def test_works_have_panels_and_types_have_colours(self):
        root, texts = drawn(*(result(weights, 50, batch) for weights in ("f32", "int8") for batch in (1, 8, 32, 64)))
        panels = [group.get("transform") for group in root.iter(SVG + "g")]
        self.assertEqual(len(set(panels)), 4)
        self.assertEqual(sum(title.startswith("decode, ") for title in texts), 4)
        colours = [bar.get("fill") for bar in root.iter(SVG + "rect") if bar.get("fill") in compare_plot.COLOURS]
        self.assertEqual(colours, list(compare_plot.COLOURS[:2]) * 4)

    def test_the_spread_is_a_line_from_slowest_to_fastest(self):
        def lines(*results):
            return [path.get("d") for path in drawn(*results)[0].iter(SVG + "path") if path.get("stroke") == "#000"]

        self.assertEqual(lines(result("f32", 50)), [])
        line, = lines(result("f32", 50, least=20, mean=50, most=100))
        low, high = map(float, re.match(r"M\S+ (\S+)V([0-9.]+)", line).groups())
        scale = (compare_plot.BOTTOM - compare_plot.TOP) / 200
        self.assertAlmostEqual(low - high, 80 * scale, delta=0.2)

    def test_other_files_are_refused(self):
        lacking = result("f32", 50)
        del lacking["bytes_per_token"]
        none = "no results, expected"
        for content, message in (("{}", none), ("[]", none), ('{"results": []}', none),
                                 (json.dumps({"results": [result("f32", 50), lacking]}),
                                  "results[1] has no bytes_per_token, expected"), ("{", "Expecting property name")):
            with tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "report.json")
                path.write_text(content)
                done = subprocess.run([sys.executable, "-B", HERE / "compare_plot.py", path, path.with_suffix(".svg")],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, 1)
                self.assertRegex(done.stderr, rf"^{re.escape(str(path))}: .*{re.escape(message)}")
                self.assertFalse(path.with_suffix(".svg").exists())


if __name__ == "__main__":
    unittest.main()
