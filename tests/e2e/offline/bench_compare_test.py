"""`bench compare` of a decoder and of an encoder: the table, its JSON, and the picture that is made of it.

  bench_compare_test.py HIPPODROME DECODER_CONFIG ENCODER_CONFIG
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

PLOT = pathlib.Path(__file__).resolve().parents[2] / "benchmarks" / "compare_plot.py"
HIPPODROME, DECODER, ENCODER = sys.argv[1:]


def compare(config, folder, *arguments):
    """The printed lines, and the results by type of weights."""
    report, picture = folder + "/compare.json", folder + "/compare.svg"
    done = subprocess.run([HIPPODROME, "bench", "compare", "--config", config, "--device", "cpu", "--threads", "1",
                           "--repeats", "2", "--json", report, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done
    subprocess.run([sys.executable, "-B", PLOT, report, picture], check=True)
    drawn = {element.text for element in xml.etree.ElementTree.parse(picture).iter("{http://www.w3.org/2000/svg}text")}
    with open(report) as file:
        found = {}
        for result in json.load(file)["results"]:
            found.setdefault(result["weights"], []).append(result)
    assert set(found) <= drawn, (found, drawn)
    return done.stdout.splitlines(), found


def check_figures(results):
    for result in results:
        assert result["unit"] == "tokens/s" and result["bytes_per_token"] > 0, result
        assert 0 < result["least"] <= result["value"] <= result["most"], result
        assert abs(result["value"] / result["limit"] - result["fraction"]) < 1e-9, result
    return [(result["name"], result["batch"], result["length"]) for result in results]


def check_decoder(folder):
    lines, found = compare(DECODER, folder, "--prompt", "20", "--batch", "1,2")
    assert list(found)[:3] == ["f32", "bf16", "int8"], found
    for results in found.values():
        works = check_figures(results)
        assert works == [("prefill", 1, 20), ("decode", 1, 20), ("decode", 2, 20)], works
        assert all(result["to_bf16"] > 0 for result in results), results
    assert lines[2].split() == ["prefill", "1x20", "decode", "1x20", "decode", "2x20"], lines
    titles = [line for line in lines[3:] if not line.startswith(" ")]
    assert titles == ["tokens/s, median", "tokens/s, slowest..fastest round", "of the limit", "times bf16",
                      "MB/token"], lines
    for weights in found:
        assert sum(line.split()[0] == weights for line in lines) == len(titles), lines


def check_encoder(folder):
    lines, found = compare(ENCODER, folder, "--length", "16", "--batch", "1,8", "--weights", "int8,f32")
    assert list(found) == ["int8", "f32"], found
    for results in found.values():
        works = check_figures(results)
        assert works == [("encode", 1, 16), ("encode", 8, 16)], works
        assert not any("to_bf16" in result for result in results), results
    assert "times bf16" not in lines, lines


def main():
    with tempfile.TemporaryDirectory(prefix="hippodrome-") as folder:
        check_decoder(folder)
        check_encoder(folder)


if __name__ == "__main__":
    main()
