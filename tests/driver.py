# SPDX-License-Identifier: Apache-2.0
"""A stand-in for NVIDIA's driver: the library that the C tests use (src/node/testing/fake_nvml.c), told what to say by a file."""

import os
import tempfile

import harness

LIBRARY = os.path.join(harness.BUILD, "src/node/libfakenvml.so")


class Driver:
    def __init__(self, *lines):
        self.folder = tempfile.mkdtemp(prefix="fairlead-test-driver-", dir=harness.TMP)
        self.path = os.path.join(self.folder, "state")
        self.say(*lines)

    def say(self, *lines):
        """All that it says from now on; at once, also for a daemon that is reading."""
        with open(self.path + ".new", "w") as file:
            file.write("".join(line + "\n" for line in lines))
        os.rename(self.path + ".new", self.path)

    def env(self):
        return {"FAIRLEAD_NVML": LIBRARY, "FAKE_NVML_STATE": self.path, "HWLOC_COMPONENTS": "-pci", "FAIRLEAD_SYS": self.folder}
