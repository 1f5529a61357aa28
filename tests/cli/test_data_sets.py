# SPDX-License-Identifier: Apache-2.0
"""Data sets of known size: from the cluster file to the place of a job, and to what is said of it."""

import json

import harness

HEAD = """levels: [region]
nodes:
  - {name: node0, region: eu}
  - {name: node1, region: us}
"""
DATA = """data: {imagenet: {size: 150GB, at: [eu]}, small: {size: 1GB}}
transfers:
  - {from: eu, to: us, price: 0.09, bandwidth: 1GB/s}
"""


def describe(d, text, check=True):
    return d.run("fabric", "set", "-", stdin=text, check=check)


def test_what_it_takes_to_bring_data_is_weighed_and_said():
    with harness.Daemon(nodes="sim:2x1xH100-80GB") as d:
        assert "was set" in describe(d, HEAD + DATA).out
        assert "was so already" in describe(d, HEAD + DATA).out
        shown = d.ask("fabric")
        assert [(s["name"], s["size_mib"], s["at"]) for s in shown["data"]] == [("imagenet", 143051, ["eu"]), ("small", 953, [])]
        assert [(t["from"], t["to"], t["price"], t["mbps"]) for t in shown["transfers"]] == [("eu", "us", "0.090000", 1000)]
        said = d.run("fabric").out
        assert "data set imagenet: " in said and ", in eu" in said and "transfer eu to us: 0.09 a GB, 1.0 GB/s" in said, said

        near = d.submit("sleep", "300", flags=("-g", "1", "--dataset", "imagenet"))
        d.wait(near, "running")
        assert d.job(near)["attempts"][-1]["tasks"][0]["node"] == "node0" and "transfer" not in d.job(near)
        planned = json.loads(d.run("run", "--dry-run", "-g", "1", "--dataset", "imagenet", "-o", "json", "--", "true").out)
        assert planned["transfer"]["known"] and planned["transfer"]["ms"] == 150000 and planned["transfer"]["cost"].startswith("13.49"), planned
        assert "Bringing its data sets there: about 2m 30s, 13.50" in d.run("run", "--dry-run", "-g", "1", "--dataset", "imagenet", "--", "true").out
        far = d.submit("sleep", "300", flags=("-g", "1", "--dataset", "imagenet"))
        d.wait(far, "running")
        assert d.job(far)["transfer"] == planned["transfer"] == d.job(far)["attempts"][-1]["transfer"]
        assert "about 2m 30s, 13.50" in d.run("job", str(far)).out
        assert "takes about 2m 30s and costs 13.50" in d.run("explain", str(far), "-v").out

        describe(d, "data: {}\n")  # replaces the sets, leaves the transfers
        assert d.ask("fabric")["data"] == [] and len(d.ask("fabric")["transfers"]) == 1
        describe(d, "transfers: []\n")
        assert d.ask("fabric")["transfers"] == []


def test_what_is_wrong_with_data_sets_is_named_by_line_and_column():
    with harness.Daemon(nodes="sim:2x1xH100-80GB") as d:
        for text, place, why in (
            ("data: {web: {at: [eu]}}\n", ":1:", "needs a size"),
            ("data:\n  web: {size: 0MiB}\n", ":2:", "between 1MiB and 4095TiB"),
            ("data: {web: {size: 1GB, at: [a, b, c, d, e, f, g, h, i]}}\n", ":1:", "9 places are given; the limit is 8"),
            ("transfers: [{from: eu}]\n", ":1:", "needs a price, a bandwidth, or both"),
            ("transfers: [{price: 1000.000001}]\n", ":1:", "at most 1000"),
            ("transfers: [{bandwidth: fast}]\n", ":1:", "rate"),
            ("transfers: [{price: 1}, {from: any, price: 2}]\n", ":1:", "described twice"),
            ("data: [web]\n", ":1:", "must be a map"),
        ):
            bad = describe(d, text, check=False)
            assert bad.code != 0 and place in bad.err and why in bad.err, (text, bad)
        assert d.ask("fabric")["data"] == []
