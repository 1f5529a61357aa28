# SPDX-License-Identifier: Apache-2.0
"""Writes man pages and completion scripts, from the program's own table.

make_pages.py PROGRAM FOLDER        into man1/ and completion/ of the folder
make_pages.py --install PROGRAM     where man and the shells look, below the prefix that `meson install` gives
"""

import os
import re
import subprocess
import sys
import time

SHELLS = {"bash": "fairlead", "zsh": "_fairlead", "fish": "fairlead.fish"}
INSTALLED = {"man": "share/man/man1", "bash": "share/bash-completion/completions", "zsh": "share/zsh/site-functions",
             "fish": "share/fish/vendor_completions.d"}


def write(folder, name, text):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, name), "w") as f:
        f.write(text)


def pages(program):
    """(what it is for, file name, text) of each."""
    made = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH") or os.stat(program).st_mtime)))

    def ask(*words):
        return subprocess.run([program, *words], stdout=subprocess.PIPE, text=True, check=True).stdout

    names = re.findall(r"^## fairlead (.+)$", ask("help", "--markdown", "commands"), re.M)
    for name in ["fairlead"] + names:
        if " " in name and name.split()[0] in names:
            continue  # stands on the page of its noun
        yield "man", "fairlead.1" if name == "fairlead" else "fairlead-%s.1" % name.replace(" ", "-"), ask("help", "--man", name).replace('" 1 "" "', '" 1 "%s" "' % made, 1)
    for shell, file in SHELLS.items():
        yield shell, file, ask("completion", shell)


def main():
    if sys.argv[1] == "--install":
        prefix = os.environ["MESON_INSTALL_DESTDIR_PREFIX"]
        for what, file, text in pages(sys.argv[2]):
            write(os.path.join(prefix, INSTALLED[what]), file, text)
        return
    for what, file, text in pages(sys.argv[1]):
        write(os.path.join(sys.argv[2], "man1" if what == "man" else os.path.join("completion", what)), file, text)
    write(sys.argv[2], "pages.done", "")


main()
