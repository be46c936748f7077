"""What Prometheus's own checker says of deploy/prometheus, and what Grafana will find in deploy/grafana.

  monitoring_test.py PROMTOOL

The exit status is 77 if there is no PROMTOOL. tests/e2e/monitoring/prometheus_test.py asks for the expressions' values.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
PROMETHEUS = DEPLOY / "prometheus"
PROMTOOL = sys.argv.pop(1) if len(sys.argv) > 1 else "promtool"


def promtool(*arguments):
    done = subprocess.run([PROMTOOL, *arguments], cwd=PROMETHEUS, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def boards():
    return {path.stem: json.loads(path.read_text())
            for path in sorted((DEPLOY / "grafana" / "dashboards").glob("*.json"))}


class PrometheusTest(unittest.TestCase):
    def test_the_configuration_is_valid(self):
        for what in (["config", "prometheus.yml"], ["rules", "alerts.yml"]):
            status, said = promtool("check", *what)
            self.assertEqual(status, 0, said)
            self.assertNotRegex(said, "(?i)warning|lint")

    def test_each_alert_fires_and_is_silent(self):
        status, said = promtool("test", "rules", "alerts_test.yml")
        self.assertEqual(status, 0, said)
        alerts = re.findall(r"- alert: (\w+)", (PROMETHEUS / "alerts.yml").read_text())
        self.assertGreater(len(alerts), 8)
        cases = re.findall(r"- name: (.+?)\n.*?alertname: (\w+)\n.*?exp_alerts:(?: (\[\]))?",
                           (PROMETHEUS / "alerts_test.yml").read_text(), re.S)
        told = {(alert, bool(silent)) for _, alert, silent in cases}
        self.assertEqual(told, {(alert, silent) for alert in alerts for silent in (False, True)})

    def test_a_rule_that_does_not_fire_as_told_is_noticed(self):
        text = (PROMETHEUS / "alerts_test.yml").read_text().replace("1x5 0x20", "1x30", 1)
        done = subprocess.run([PROMTOOL, "test", "rules", "/dev/stdin"], cwd=PROMETHEUS, text=True,
                              input=text.replace("[alerts.yml]", f"[{PROMETHEUS}/alerts.yml]"),
                              capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("HippodromeDown", done.stdout + done.stderr)


class GrafanaTest(unittest.TestCase):
    def test_boards(self):
        found = boards()
        self.assertEqual(sorted(found), ["connections", "engine", "latency", "overview"])
        for name, board in found.items():
            with self.subTest(name):
                self.assertEqual(board["uid"], "hippodrome-" + name)
                self.assertEqual([variable["name"] for variable in board["templating"]["list"]],
                                 ["datasource", "instance", "model"])
                ids = [panel["id"] for panel in board["panels"]]
                self.assertEqual(len(ids), len(set(ids)))

    def test_panels_lie_beside_each_other_and_tell_what_they_show(self):
        for name, board in boards().items():
            taken = set()
            for panel in board["panels"]:
                place = panel["gridPos"]
                cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                         for y in range(place["y"], place["y"] + place["h"])}
                self.assertFalse(taken & cells, f"{name}: {panel['title']}")
                self.assertLessEqual(place["x"] + place["w"], 24)
                taken |= cells
                if panel["type"] == "row":
                    continue
                self.assertTrue(panel["description"], f"{name}: {panel['title']}")
                self.assertEqual(panel["datasource"]["uid"], "${datasource}")
                for target in panel["targets"]:
                    # The choice of servers applies to all.
                    self.assertIn('instance=~"$instance"', target["expr"])

    def test_provisioning_names_what_the_boards_are_read_by(self):
        provisioning = DEPLOY / "grafana" / "provisioning"
        source = (provisioning / "datasources" / "prometheus.yml").read_text()
        scrapes = re.search(r"scrape_interval: (\w+)", (PROMETHEUS / "prometheus.yml").read_text())[1]
        self.assertIn(f"timeInterval: {scrapes}\n", source)
        self.assertIn("url: $PROMETHEUS_URL\n", source)
        self.assertIn("path: $HIPPODROME_DASHBOARDS\n",
                      (provisioning / "dashboards" / "hippodrome.yml").read_text())


if __name__ == "__main__":
    if not os.access(PROMTOOL, os.X_OK):
        print(f"there is no promtool at {PROMTOOL}; tools/deps --checks installs it")
        sys.exit(77)
    unittest.main()
