# SPDX-License-Identifier: Apache-2.0
"""Writes copies of the sources that planted.txt names, with all its edits in them: plant.py PLANTED.TXT SRC OUTPUT...
Each output is the source's path below SRC with _ for /, behind "planted_". A number in the environment says which edit acts."""

import re
import sys
from pathlib import Path


def read_bugs(path):
    bugs = []
    for block in re.split(r"\n\s*\n", Path(path).read_text(encoding="utf-8")):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if re.match(r"(bug|file|find|put|told): ", line))
        if fields:
            bugs.append(fields)
    return bugs


def names_of(bugs):
    """In their order, each once: its place is its number."""
    return list(dict.fromkeys(bug["bug"] for bug in bugs))


def pattern(text):
    """C text with white space that does not count."""
    return re.compile(r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", text))))


def edited(bugs, src):
    texts, names = {}, names_of(bugs)
    for bug in bugs:
        number = 1 + names.index(bug["bug"])
        text = texts.get(bug["file"]) or (Path(src) / bug["file"]).read_text(encoding="utf-8")
        found = pattern(bug["find"]).findall(text)
        if len(found) != 1:
            sys.exit("planted.txt: \"%s\": its text is found %d times in src/%s; it must follow the code" % (bug["bug"], len(found), bug["file"]))
        put = re.sub(r"\bMUT\b", "(planted_number == %d)" % number, bug["put"])
        texts[bug["file"]] = pattern(bug["find"]).sub(lambda _, put=put: put, text)
    return texts


def main():
    texts = edited(read_bugs(sys.argv[1]), sys.argv[2])
    wanted = {"planted_" + file.replace("/", "_"): text for file, text in texts.items()}
    if set(wanted) != {Path(out).name for out in sys.argv[3:]}:
        sys.exit("tests/whole/meson.build must list: " + " ".join(sorted(wanted)))
    for out in sys.argv[3:]:
        Path(out).write_text("extern int planted_number;\n" + wanted[Path(out).name], encoding="utf-8")


if __name__ == "__main__":
    main()
