#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Growth of the cost of decisions with nodes, GPUs, running and queued jobs and their shapes, each by itself, at 1, 10 and 100 times; the exponent is
the slope over the two decades (1 = linear, 2 = quadratic). Nothing is asserted.

    bench/growth.py BUILD-FOLDER [--svg FILE]

Prints the table for docs/benchmarks.md, and draws docs/growth.svg."""

import argparse
import json
import math
import os
import subprocess

# dimension: [(factor, nodes, GPUs per node, running, queued, shapes of these)]; what does not grow stays as in the smallest case
CASES = {
    "nodes": [(1, 125, 8, 1000, 10000, 40), (10, 1250, 8, 1000, 10000, 40), (100, 12500, 8, 1000, 10000, 40)],
    "GPUs per node": [(1, 1250, 1, 1000, 10000, 40), (8, 1250, 8, 1000, 10000, 40), (32, 1250, 32, 1000, 10000, 40)],
    "running jobs": [(1, 12500, 8, 1000, 10000, 40), (10, 12500, 8, 10000, 10000, 40), (100, 12500, 8, 100000, 10000, 40)],
    "queued jobs": [(1, 1250, 8, 10000, 10000, 40), (10, 1250, 8, 10000, 100000, 40), (100, 1250, 8, 10000, 1000000, 40)],
    "shapes": [(1, 1250, 8, 10000, 100000, 40), (10, 1250, 8, 10000, 100000, 400), (100, 1250, 8, 10000, 100000, 4000)],
}
MEASURES = {"pass": "full pass", "event": "one job ends", "explain": "explain", "rebuild": "index rebuilt"}
COLOURS = {"pass": "#1f5fa8", "event": "#b3541e", "explain": "#2c7a4b", "rebuild": "#7a3b8f"}


def measure(build):
    result = {}
    for dimension, cases in CASES.items():
        for factor, *sizes in cases:
            out = subprocess.run([os.path.join(build, "bench/growth")] + [str(s) for s in sizes], capture_output=True, text=True, check=True).stdout
            result.setdefault(dimension, []).append((factor, json.loads(out)))
    return result


def exponent(points, name):
    (f0, first), (f1, last) = points[0], points[-1]
    return math.log(last[name] / first[name]) / math.log(f1 / f0)


def table(result):
    lines = ["| grows | factor | " + " | ".join(MEASURES.values()) + " |", "|---|---|" + "---|" * len(MEASURES)]
    for dimension, points in result.items():
        for factor, values in points:
            lines.append("| %s | %d | %s |" % (dimension, factor, " | ".join("%.3g ms" % (values[m] / 1000) for m in MEASURES)))
        lines.append("| | exponent | %s |" % " | ".join("%.2f" % exponent(points, m) for m in MEASURES))
    return "\n".join(lines)


def svg(result):
    """One panel per dimension, both axes logarithmic; the dotted line is quadratic growth."""
    width, height, pad, low, high = 250, 240, 46, 1, 10000000
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (width * len(result), height + 40),
           '<rect width="100%" height="100%" fill="white"/>']

    def x_of(panel, factor):
        return panel * width + pad + (width - pad - 12) * math.log10(factor) / 2

    def y_of(us):
        return height - pad + 20 - (height - pad - 10) * (math.log10(max(us, low)) / math.log10(high / low))

    for panel, (dimension, points) in enumerate(result.items()):
        out.append('<text x="%d" y="14" font-weight="bold">%s</text>' % (panel * width + pad, dimension))
        for power in range(0, 8):
            y = y_of(10 ** power)
            out.append('<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#ddd"/>' % (panel * width + pad, panel * width + width - 12, y, y))
            label = "%g %s" % (10 ** (power % 3), ["us", "ms", "s"][power // 3])
            out.append('<text x="%d" y="%.1f" text-anchor="end" fill="#555">%s</text>' % (panel * width + pad - 4, y + 4, label))
        for factor, _ in points:
            out.append('<text x="%.1f" y="%d" text-anchor="middle" fill="#555">%dx</text>' % (x_of(panel, factor), height - pad + 36, factor))
        start, last = points[0][1]["pass"], points[-1][0]
        out.append('<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#999" stroke-dasharray="3 3"/>'
                   % (x_of(panel, 1), y_of(start), x_of(panel, last), y_of(min(start * last ** 2, high))))
        for name in MEASURES:
            path = " ".join("%.1f,%.1f" % (x_of(panel, factor), y_of(values[name])) for factor, values in points)
            out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (path, COLOURS[name]))
    for i, (name, label) in enumerate(MEASURES.items()):
        out.append('<text x="%d" y="%d" fill="%s">%s</text>' % (pad + i * 110, height + 32, COLOURS[name], label))
    out.append('<text x="%d" y="%d" fill="#777">dotted: quadratic, from the full pass</text>' % (pad + 470, height + 32))
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("build")
    a.add_argument("--svg", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "../docs/growth.svg"))
    a = a.parse_args()
    result = measure(a.build)
    print(table(result))
    with open(a.svg, "w") as f:
        f.write(svg(result))


if __name__ == "__main__":
    main()
