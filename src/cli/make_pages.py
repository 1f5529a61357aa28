# SPDX-License-Identifier: Apache-2.0
"""Writes man pages and completion scripts, from the program's own table: make_pages.py PROGRAM FOLDER"""

import os
import re
import subprocess
import sys


def ask(*words):
    return subprocess.run([sys.argv[1], *words], stdout=subprocess.PIPE, text=True, check=True).stdout


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)


def main():
    folder = sys.argv[2]
    names = re.findall(r"^## fairlead (.+)$", ask("help", "--markdown", "commands"), re.M)
    for name in ["fairlead"] + names:
        if " " in name and name.split()[0] in names:
            continue  # stands on the page of its noun
        page = "fairlead.1" if name == "fairlead" else "fairlead-%s.1" % name.replace(" ", "-")
        write(os.path.join(folder, "man1"), page, ask("help", "--man", name))
    for shell, name in (("bash", "fairlead"), ("zsh", "_fairlead"), ("fish", "fairlead.fish")):
        write(os.path.join(folder, "completion", shell), name, ask("completion", shell))
    write(folder, "pages.done", "")


main()
