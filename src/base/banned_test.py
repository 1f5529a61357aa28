# SPDX-License-Identifier: Apache-2.0
"""Every call that banned.h lists fails to compile, with the advice in the message.

usage: banned_test.py SOURCE_FOLDER COMPILER...
"""
import re
import subprocess
import sys

src, compiler = sys.argv[1], sys.argv[2:]
header = open(src + "/base/banned.h").read()
banned = dict(re.findall(r"#define \w+\(\.\.\.\) BANNED\((\w+), (\w+)\)", header))
asked = """strcpy strcat sprintf vsprintf strtok atoi atol system gets localtime gmtime ctime rand strncpy
alloca""".split()
flags = ["-D_GNU_SOURCE", "-I" + src, "-include", "base/banned.h", "-fsyntax-only", "-x", "c", "-"]


def compile_text(text):
    return subprocess.run(compiler + flags, input=text, capture_output=True, text=True)


harmless = compile_text("int main(void) { return (int)strlen(getenv(\"HOME\")); }")
assert harmless.returncode == 0, harmless.stderr
missing = set(asked) - set(banned)
assert not missing, missing
for name, advice in sorted(banned.items()):
    result = compile_text("void f(char *p);\nvoid f(char *p) { %s(p, p, p); }\n" % name)
    assert result.returncode != 0, name + " compiles"
    assert "%s_is_banned_%s" % (name, advice) in result.stderr, result.stderr
print("%d calls are refused" % len(banned))
