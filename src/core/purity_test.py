# SPDX-License-Identifier: Apache-2.0
"""The core is a function of (state, event): shown by what its objects need from outside, and by its sources.

usage: purity_test.py LIBRARY CORE_FOLDER

Anything that a core object leaves undefined must be defined by another one, by the pure part of base, or be one of
the few calls of libc that only move bytes. No floating point: no type, no call of libm.
"""
import pathlib
import re
import subprocess
import sys

# Of libc: bytes in memory, nothing else. The fortified and instrumented forms of the same come from compilers.
LIBC = {"memcpy", "memmove", "memset", "memcmp", "memchr", "strlen", "strcmp", "strncmp"}
COMPILER = re.compile(r"^(_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|__(memcpy|memmove|memset)_chk|__popcount[ds]i2"
                      r"|__(u?div|u?mod|mul)ti[34]|__bswap[ds]i2|__(asan|ubsan|tsan|gcov|llvm|sanitizer)_.*"
                      r"|__start_.*|__stop_.*|_GLOBAL__.*)$")
# base/: arena, buf, check, err, json, parse, table, zone (what it asks of names and changes; zone_read opens a file), the date of a day and the text of a moment. Files that do more than compute are not in this list.
BASE = re.compile(r"^(arena|buf|err|pull|parse|format|table|text|utf8)_[a-z0-9_]+$|^check_failed$|^spelling_hint$|^zone_(name_)?is_sound$|^moment_(date|format)$")
# The one entrance with a FILE, for debuggers and tests.
EXCEPT = {"facts_dump.c.o": {"fwrite"}}


def symbols(library):
    """(object, undefined names), and all names defined in the library."""
    text = subprocess.run(["nm", library], check=True, capture_output=True, text=True).stdout
    needed, defined, member = {}, set(), "?"
    for line in text.splitlines():
        if line.endswith(":"):
            member = line[:-1]
            continue
        parts = line.split()
        if len(parts) == 2 and parts[0] in "Uw":
            needed.setdefault(member, set()).add(parts[1])
        elif len(parts) == 3:
            defined.add(parts[2])
    return needed, defined


def code_of(path):
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    return re.sub(r'"(\\.|[^"\\])*"|//.*', '""', text)


def main():
    library, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    bad = []
    needed, defined = symbols(library)
    for member, names in sorted(needed.items()):
        allowed = next((more for name, more in EXCEPT.items() if member.endswith(name)), set())
        for name in sorted(names - defined - LIBC - allowed):
            if not COMPILER.match(name) and not BASE.match(name):
                bad.append(f"{member} needs {name}: the core may only use base and memory functions")
    for path in sorted(folder.rglob("*.[ch]")):
        if path.name.endswith("_test.c"):
            continue
        for number, line in enumerate(code_of(path).splitlines(), 1):
            if re.search(r"\b(float|double|long double)\b|<math\.h>", line):
                bad.append(f"{path.name}: floating point in: {line.strip()}")
            include = re.match(r'\s*#include "(\w+)/', line)
            if include and include.group(1) not in ("base", "core"):
                bad.append(f"{path.name}: {line.strip()}: the core knows only base and itself")
    print("\n".join(bad) or f"{len(needed)} objects, all pure")
    return 1 if bad else 0


sys.exit(main())
