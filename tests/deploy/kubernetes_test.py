"""The manifests of deploy/kubernetes: what the published schemas say of them, whether they agree with each other, and
whether the program has what they name.

  kubernetes_test.py HIPPODROME MODELS_DIR PROMTOOL

The exit status is 77 if build/python or PROMTOOL is missing.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
from testing import http_peers, python_packages

python_packages.need()

import kubernetes_validate
import yaml

PROGRAM, MODELS, PROMTOOL = sys.argv[1:4]
FOLDER = ROOT / "deploy" / "kubernetes"
# The oldest and the newest that docs/replicas.md names.
VERSIONS = re.search(r"schemas of Kubernetes (\d+[.]\d+) to\s+(\d+[.]\d+)",
                     (ROOT / "docs" / "replicas.md").read_text()).groups()
BUILT_IN = ("cpu", "gpu", "services", "redis", "autoscaling")

# Fields of custom resources as their published definitions have them: KServe (serving.kserve.io), the MPI operator
# (kubeflow.org/v2beta1), the Prometheus operator (monitoring.coreos.com/v1). A type, a set of values, a list of what
# its elements are, or fields; those with * must be there. POD: a container's or a pod's, which Kubernetes defines.
POD = object()
TEXTS = {"...": str}
CUSTOM = {
    ("serving.kserve.io/v1alpha1", "ServingRuntime"): {
        "*containers": [POD], "annotations": TEXTS, "labels": TEXTS, "multiModel": bool, "disabled": bool,
        "supportedModelFormats": [{"*name": str, "version": str, "autoSelect": bool, "priority": int}],
        "protocolVersions": [{"v1", "v2", "grpc-v1", "grpc-v2"}]},
    ("serving.kserve.io/v1beta1", "InferenceService"): {
        "*predictor": {
            "minReplicas": int, "maxReplicas": int, "terminationGracePeriodSeconds": int, "timeout": int,
            "model": {"*modelFormat": {"*name": str, "version": str}, "runtime": str, "storageUri": str,
                      "protocolVersion": {"v1", "v2", "grpc-v1", "grpc-v2"}, "args": [str]}}},
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {
        "*selector": {"matchLabels": TEXTS}, "jobLabel": str, "podTargetLabels": [str],
        "*endpoints": [{"port": str, "path": str, "interval": str, "scrapeTimeout": str, "scheme": {"http", "https"}}]},
    ("kubeflow.org/v2beta1", "MPIJob"): {
        "mpiImplementation": {"OpenMPI", "Intel", "MPICH"}, "slotsPerWorker": int, "sshAuthMountPath": str,
        "launcherCreationPolicy": {"AtStartup", "WaitForWorkersReady"}, "runLauncherAsWorker": bool,
        "runPolicy": {"cleanPodPolicy": {"None", "Running", "All"}, "backoffLimit": int, "ttlSecondsAfterFinished": int,
                      "activeDeadlineSeconds": int, "suspend": bool},
        "*mpiReplicaSpecs": {
            name: {"replicas": int, "restartPolicy": {"Never", "OnFailure", "Always"}, "template": POD}
            for name in ("*Launcher", "*Worker")}},
}


def documents(name):
    return [document for document in yaml.safe_load_all((FOLDER / (name + ".yaml")).read_text())]


def one(name, kind):
    found, = (document for document in documents(name) if document["kind"] == kind)
    return found


def validate(document):
    for version in VERSIONS:
        kubernetes_validate.validate(document, version, strict=True)


def pod(spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}


def check_fields(value, expected, where):
    """Raises what is wrong with a value of a custom resource. `expected`: as CUSTOM has it."""
    if expected is POD:
        validate(pod(value["spec"] if "spec" in value else {"containers": [value]}))
    elif isinstance(expected, type):
        assert type(value) is expected, f"{where}: {value!r} is no {expected.__name__}"
    elif isinstance(expected, set):
        assert value in expected, f"{where}: {value!r} is none of {sorted(expected)}"
    elif isinstance(expected, list):
        for i, element in enumerate(value):
            check_fields(element, expected[0], f"{where}[{i}]")
    else:
        fields = {name.lstrip("*"): what for name, what in expected.items()}
        for name in expected:
            assert not name.startswith("*") or name[1:] in value, f"{where} has no {name[1:]}"
        for name, part in value.items():
            assert name in fields or "..." in fields, f"{where} has no field {name}"
            check_fields(part, fields.get(name, fields.get("...")), f"{where}.{name}")


def check_resource(document):
    expected = CUSTOM[document["apiVersion"], document["kind"]]
    assert set(document) == {"apiVersion", "kind", "metadata", "spec"}, document
    check_fields(document["spec"], expected, document["kind"])


class SchemaTest(unittest.TestCase):
    def test_what_kubernetes_defines(self):
        for name in BUILT_IN:
            for document in documents(name):
                with self.subTest(name, kind=document["kind"]):
                    validate(document)

    def test_what_others_define(self):
        found = [document for name in ("service-monitor", "kserve", "mpijob") for document in documents(name)]
        self.assertEqual({(document["apiVersion"], document["kind"]) for document in found}, set(CUSTOM))
        for document in found:
            with self.subTest(document["kind"]):
                check_resource(document)

    def test_mistakes_are_found(self):
        broken = one("cpu", "Deployment")
        broken["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
        with self.assertRaises(kubernetes_validate.ValidationError):
            validate(broken)
        for name, kind, path, value in (
                ("mpijob", "MPIJob", "runPolicy", {"cleanPods": "Running"}),
                ("mpijob", "MPIJob", "slotsPerWorker", "1"),
                ("mpijob", "MPIJob", "mpiReplicaSpecs", {"Worker": {"replicas": 1}}),
                ("kserve", "ServingRuntime", "protocolVersions", ["v3"]),
                ("service-monitor", "ServiceMonitor", "endpoints", [{"port": 8081}])):
            broken = one(name, kind)
            broken["spec"][path] = value
            with self.assertRaises(AssertionError, msg=path):
                check_resource(broken)

    def test_all_files_are_looked_at(self):
        self.assertEqual({path.stem for path in FOLDER.glob("*.yaml")},
                         {*BUILT_IN, "service-monitor", "kserve", "mpijob", "adapter-rules"})


def configuration(name):
    return json.loads(one(name, "ConfigMap")["data"]["config.json"])


def container(name):
    return one(name, "Deployment")["spec"]["template"]["spec"]["containers"][0]


def ports(which):
    return {port["name"]: port["containerPort"] for port in which["ports"]}


def probes(which):
    return {name: which[name]["httpGet"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}


def port_of(address):
    return int(address.rsplit(":", 1)[1])


class AgreementTest(unittest.TestCase):
    """Of the manifests with each other and with the image."""

    def test_ports(self):
        for name in ("cpu", "gpu"):
            config, named = configuration(name), ports(container(name))
            self.assertEqual(named, {key: port_of(config[key]) for key in ("http", "grpc", "admin")})
            for probe, get in probes(container(name)).items():
                self.assertEqual(get["port"], "admin", probe)
        services = {service["metadata"]["labels"]["app.kubernetes.io/component"]: service["spec"]
                    for service in documents("services") if service["kind"] == "Service"}
        self.assertEqual({name: spec["ports"][0]["targetPort"] for name, spec in services.items()},
                         {name: name for name in named})
        self.assertEqual(services["grpc"]["clusterIP"], "None")
        policy = one("services", "NetworkPolicy")["spec"]
        open_to_all, open_to_prometheus = (
            [port["port"] for port in rule["ports"]] for rule in policy["ingress"])
        self.assertEqual(open_to_all, [named["http"], named["grpc"]])
        self.assertEqual(open_to_prometheus, [named["admin"]])

    def test_selectors_find_the_replicas(self):
        labels = one("cpu", "Deployment")["spec"]["template"]["metadata"]["labels"]
        self.assertEqual(labels, one("gpu", "Deployment")["spec"]["template"]["metadata"]["labels"])
        found = [service["spec"]["selector"] for service in documents("services") if service["kind"] == "Service"]
        found += [one("services", "PodDisruptionBudget")["spec"]["selector"]["matchLabels"],
                  one("services", "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]]
        for selector in found:
            self.assertEqual(selector, labels)
        for spread in one("cpu", "Deployment")["spec"]["template"]["spec"]["topologySpreadConstraints"]:
            self.assertEqual(spread["labelSelector"]["matchLabels"], labels)
        target = one("autoscaling", "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
        self.assertEqual(target["name"], one("cpu", "Deployment")["metadata"]["name"])
        admin = one("service-monitor", "ServiceMonitor")["spec"]["selector"]["matchLabels"]
        self.assertIn(admin, [service["metadata"]["labels"] for service in documents("services")])

    def test_a_pod_that_stops_has_its_time(self):
        for name in ("cpu", "gpu"):
            config, spec = configuration(name), one(name, "Deployment")["spec"]["template"]["spec"]
            command = container(name)["lifecycle"]["preStop"]["exec"]["command"]
            self.assertEqual(command[0], "sleep")
            needed = int(command[1]) + config["drain-delay"] + config["grace-seconds"]
            self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], needed + 5)
            # A balancer that asks as seldom as the probe does has seen it by then.
            probe = container(name)["readinessProbe"]
            self.assertGreater(config["drain-delay"], probe["periodSeconds"] * probe["failureThreshold"])
        options = dict(option[2:].split("=", 1) for option in runtime()["args"][1:])
        given = one("kserve", "InferenceService")["spec"]["predictor"]["terminationGracePeriodSeconds"]
        self.assertGreaterEqual(given, int(options["drain-delay"]) + int(options["grace-seconds"]) + 5)

    def test_threads_are_the_processors(self):
        self.assertEqual(str(configuration("cpu")["threads"]), container("cpu")["resources"]["requests"]["cpu"])
        self.assertIn("--threads=" + runtime()["resources"]["requests"]["cpu"], runtime()["args"])

    def test_the_store(self):
        service = one("redis", "Service")
        host = f"{service['metadata']['name']}:{service['spec']['ports'][0]['port']}"
        for name in ("cpu", "gpu"):
            self.assertEqual(configuration(name)["state-store"], f"redis://{host}/0")
        arguments = one("redis", "Deployment")["spec"]["template"]["spec"]["containers"][0]["args"]
        self.assertIn("volatile-lru", arguments)

    def test_the_image(self):
        dockerfile = (ROOT / "deploy" / "docker" / "Dockerfile").read_text()
        user = int(re.search(r"^USER (\d+)", dockerfile, re.M)[1])
        for name in ("cpu", "gpu"):
            context = one(name, "Deployment")["spec"]["template"]["spec"]["securityContext"]
            self.assertEqual((context["runAsUser"], context["runAsGroup"]), (user, user))
            self.assertEqual([model for model in configuration(name)["model"] if model not in dockerfile], [])
        self.assertIn("-t " + container("cpu")["image"], dockerfile)
        self.assertEqual(runtime()["image"], container("cpu")["image"])
        self.assertEqual(runtime()["securityContext"]["runAsUser"], user)
        of_mpi = (ROOT / "deploy" / "docker" / "Dockerfile.mpi").read_text()
        self.assertIn("FROM " + container("cpu")["image"], of_mpi)
        job = one("mpijob", "MPIJob")["spec"]
        for role in job["mpiReplicaSpecs"].values():
            which, = role["template"]["spec"]["containers"]
            self.assertIn("-t " + which["image"], of_mpi)
            self.assertIn(f"USER {which['securityContext']['runAsUser']}:", of_mpi)
        self.assertIn("HostKey " + job["sshAuthMountPath"], of_mpi)

    def test_ranks(self):
        job = one("mpijob", "MPIJob")["spec"]
        launcher, = job["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"]
        ranks = launcher["args"][launcher["args"].index("-n") + 1]
        self.assertEqual(int(ranks), job["slotsPerWorker"] * job["mpiReplicaSpecs"]["Worker"]["replicas"])

    def test_metrics_of_the_autoscaler_are_those_of_the_adapter(self):
        asked = [metric["pods"]["metric"]["name"]
                 for metric in one("autoscaling", "HorizontalPodAutoscaler")["spec"]["metrics"]]
        self.assertEqual(asked, list(rules()))


def runtime():
    return one("kserve", "ServingRuntime")["spec"]["containers"][0]


def rules():
    """The queries of the adapter, by the names that they give, as it would ask for two pods."""
    document, = documents("adapter-rules")
    found = {}
    for rule in document["rules"]:
        series = re.match(r"\w+", rule["seriesQuery"])[0]
        query = rule["metricsQuery"].replace("<<.Series>>", series).replace("<<.GroupBy>>", "pod")
        query = query.replace("<<.LabelMatchers>>", 'namespace="n",pod=~"a|b"')
        found[rule.get("name", {}).get("as", series)] = query
    return found


SAMPLES = {
    'hippodrome_requests_queued{namespace="n",pod="a",model="h3"}': 3,
    'hippodrome_requests_queued{namespace="n",pod="a",model="bigs"}': 4,
    'hippodrome_requests_queued{namespace="n",pod="b",model="h3"}': 0,
    'hippodrome_state_slots{namespace="n",pod="a",model="h3",state="active"}': 48,
    'hippodrome_state_slots{namespace="n",pod="a",model="h3",state="free"}': 16,
    'hippodrome_state_slots{namespace="n",pod="b",model="h3",state="active"}': 0,
    'hippodrome_state_slots{namespace="n",pod="b",model="h3",state="free"}': 64,
    'hippodrome_state_bytes{namespace="n",pod="a",model="h3",kind="attention_kv"}': 100,
    'hippodrome_state_bytes{namespace="n",pod="a",model="h3",kind="recurrent"}': 100,
    'hippodrome_state_bytes{namespace="n",pod="b",model="h3",kind="recurrent"}': 900,
    'hippodrome_state_budget_bytes{namespace="n",pod="a",model="h3"}': 1000,
    'hippodrome_state_budget_bytes{namespace="n",pod="b",model="h3"}': 1000,
}
VALUES = {"hippodrome_requests_queued": {"a": 7, "b": 0}, "hippodrome_state_used": {"a": 0.75, "b": 0.9}}


class AdapterTest(unittest.TestCase):
    def test_queries_say_what_they_should(self):
        tests = [{"expr": query, "eval_time": "1m", "exp_samples": [
            {"labels": f'{{pod="{pod}"}}', "value": value} for pod, value in VALUES[name].items()]}
            for name, query in rules().items()]
        # Sums keep no name, and the queries are aggregations.
        file = {"rule_files": [], "evaluation_interval": "1m", "tests": [{
            "interval": "1m", "promql_expr_test": tests,
            "input_series": [{"series": name, "values": f"{value}x3"} for name, value in SAMPLES.items()]}]}
        done = subprocess.run([PROMTOOL, "test", "rules", "/dev/stdin"], input=yaml.safe_dump(file), text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


def options_of(command):
    """The options that the help of a command has."""
    said = subprocess.run([PROGRAM, command, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?<![\w-])--([a-z][a-z-]*)", said))


def commands(text):
    """The commands with their options that comments and scripts call the program with."""
    text = re.sub(r"\\\n[#\s]*", " ", text)
    for command, rest in re.findall(r"\bhippodrome (serve|train)\b(.*)", text):
        yield command, re.findall(r"(?<![\w-])--([a-z][a-z-]*)", rest)


class FlagsTest(unittest.TestCase):
    def test_options_in_files(self):
        known = {command: options_of(command) for command in ("serve", "train")}
        self.assertIn("drain-delay", known["serve"])
        found = 0
        for folder in ("docker", "haproxy", "kubernetes", "nginx", "slurm", "systemd"):
            for path in sorted((ROOT / "deploy" / folder).iterdir()):
                for command, options in commands(path.read_text()):
                    found += len(options)
                    self.assertEqual(set(options) - known[command], set(), path)
        self.assertGreater(found, 10)
        for name in ("cpu", "gpu"):
            self.assertEqual(set(configuration(name)) - known["serve"], set())
            self.assertEqual(container(name)["args"][:2], ["serve", "--config"])
        options = [option[2:].split("=")[0] for option in runtime()["args"][1:]]
        self.assertEqual(set(options) - known["serve"], set())
        launcher = one("mpijob", "MPIJob")["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
        mine = launcher["args"][launcher["args"].index("hippodrome"):]
        self.assertEqual(mine[:2], ["hippodrome", "train"])
        self.assertEqual({option[2:] for option in mine if option.startswith("--")} - known["train"], set())


class RunningTest(unittest.TestCase):
    """A server with the options of the ConfigMap, but with ports and a store of this machine."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        config = {**configuration("cpu"), "http": "127.0.0.1:0", "grpc": "127.0.0.1:0", "admin": "127.0.0.1:0",
                  "state-store": "memory", "drain-delay": 600, "threads": 1}
        del config["model"]  # the server of the tests names them
        path = os.path.join(cls.folder.name, "config.json")
        with open(path, "w") as file:
            json.dump(config, file)
        # What is given before the file counts.
        cls.server = http_peers.Server(PROGRAM, MODELS, "--config", path, "--admin", "127.0.0.1:0")

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        cls.folder.cleanup()

    def get(self, path, admin):
        return self.server.get(path, self.server.admin if admin else None)

    def test_metrics(self):
        status, text = self.get(one("service-monitor", "ServiceMonitor")["spec"]["endpoints"][0]["path"], True)
        self.assertEqual(status, 200)
        series = re.findall(r"^(hippodrome_\w+)(?:\{(.*)\})? ", text, re.M)
        known = {name for name, _ in series}
        asked = set(re.findall(r"hippodrome_\w+", " ".join(rules().values())))
        self.assertGreater(len(asked), 3)
        self.assertEqual(asked - known, set())
        # And the labels that queries and their sample choose or sum by.
        labels = {(name, label, value) for name, all_of in series
                  for label, value in re.findall(r'(\w+)="([^"]*)"', all_of)}
        for sample in SAMPLES:
            name = re.match(r"\w+", sample)[0]
            for label, value in re.findall(r'(\w+)="([^"]*)"', sample):
                if label in ("state", "kind"):
                    self.assertIn((name, label, value), labels)
        self.assertIn(("hippodrome_requests_queued", "model", "h3-demo"), labels)
        annotations = one("kserve", "ServingRuntime")["spec"]["annotations"]
        self.assertEqual(self.get(annotations["prometheus.kserve.io/path"], True)[0], 200)
        self.assertEqual(int(annotations["prometheus.kserve.io/port"]), ports(runtime())["admin"])

    def test_probes(self):
        """And what they say of a server that stops."""
        asked = {(get["path"], True) for name in ("cpu", "gpu") for get in probes(container(name)).values()}
        for get in probes(runtime()).values():
            self.assertEqual(get["port"], ports(runtime())["http1"])
            asked.add((get["path"], False))
        self.assertEqual(asked, {("/ready", True), ("/health", True), ("/v2/health/ready", False),
                                 ("/v2/health/live", False)})
        for path, admin in asked:
            self.assertEqual(self.get(path, admin)[0], 200, path)
        for config in ("haproxy/haproxy.cfg", "haproxy/replicas.cfg"):
            self.assertIn("option httpchk GET /ready\n", (ROOT / "deploy" / config).read_text())
        self.server.signal()
        self.assertTrue(http_peers.wait_until(lambda: self.get("/ready", True)[0] == 503))
        for path, admin in asked:
            self.assertEqual(self.get(path, admin)[0], 503 if path.endswith("ready") else 200, path)


if __name__ == "__main__":
    if not os.access(PROMTOOL, os.X_OK):
        print(f"there is no promtool at {PROMTOOL}; tools/deps --checks installs it")
        sys.exit(77)
    unittest.main(argv=sys.argv[:1])
