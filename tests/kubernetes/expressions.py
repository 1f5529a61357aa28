# SPDX-License-Identifier: Apache-2.0
"""Expressions about devices, and devices, made from a seed. Most expressions are of the kind that drivers and examples use; some are of wrong
types, some are cut or have a sign too many, some ask for what no device has."""

import random

DRIVERS = 6 * ["gpu.nvidia.com"] + ["gpu.example.com", "dra.example.com"]
DOMAINS = DRIVERS + ["resource.kubernetes.io", "nowhere.example.com"]
BOOLS = ["virtual", "healthy", "shared"]
INTS = ["index", "numa", "minor"]
STRINGS = ["type", "productName", "uuid", "profile", "pcieRoot", "family"]
VERSIONS = ["driverVersion", "cudaDriverVersion", "cudaComputeCapability"]
CAPACITIES = ["memory", "multiprocessors", "copyEngines", "memorySlice0"]
TEXTS = ["gpu", "mig", "vfio", "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "1g.10gb", "3g.40gb", "pci0000:01", "GPU-8d5e-44", "",
         "a,b,c", "  left", "Grüße", "x.y", "H100", "A100", "100"]
VERSION_TEXTS = ["9.0.0", "8.0.0", "560.35.3", "550.127.8", "12.6.0", "1.0.0-rc.1", "1.0.0-rc.2+build.5", "1.0.0", "0.0.1-alpha.beta"]
BAD_VERSIONS = ["1.2", "v1.2.3", "01.2.3", "1.2.3-", "a.b.c", "", "1.2.3.4", "1.2.3-01", "v1", "1.2-rc"]
QUANTITIES = ["40Gi", "80Gi", "81920Mi", "85899345920", "0", "1", "7", "132", "500m", "1k", "1e3", "0.5", "1.5Gi", "5G", "-1", "100u", "2E", "1Ei", "1E2"]
BAD_QUANTITIES = ["", "x", "1kk", "40GiB", "1e", "--1", ".", "1.2.3", "1 Gi", "0x10"]
PATTERNS = ["^NVIDIA (A|H)100", "80GB$", "[0-9]+g\\\\.[0-9]+gb", "^GPU-", ".*", "a|b|", "\\\\d{2,3}", "[^a-z ]+", "(?:H|A)100( |-)?", "^$", "x*y+?z?",
            "\\\\w+\\\\s\\\\w+", "[A-Z]{2}", "H1{0}00", "a{2", "[]-]", "\\\\.", "(a(b|c)*)+", "[\\\\d.]+", "^[a-c,]{5}$", "ü", "[[:alpha:]]", "(?i)nvidia", "\\\\bH"]
BAD_PATTERNS = ["(", "[", "*a", "a**", "a{3,2}", "[z-a]", "a{1001}", ")", "(?P<n>a"]


class Maker:
    """wrong: how often, of a hundred, a value of another type stands where one is expected."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.variables = []  # (name, type)
        self.wrong = self.r.choice([0, 0, 0, 2, 8])

    def quote(self, text):
        return self.r.choice(['"%s"', "'%s'"]) % text

    def device(self):
        r, device = self.r, {"driver": self.r.choice(DRIVERS), "attributes": {}, "capacity": {}}
        if r.random() < 0.3:
            device["allowMultipleAllocations"] = r.random() < 0.5
        for names, make in ((BOOLS, lambda: {"bool": r.random() < 0.5}), (INTS, lambda: {"int": r.choice([0, 1, 2, 3, 7, -1, 2**63 - 1])}),
                            (STRINGS, lambda: {"string": r.choice(TEXTS)}), (VERSIONS, lambda: {"version": r.choice(VERSION_TEXTS)})):
            for name in names:
                if r.random() < 0.9:
                    device["attributes"][self.qualified(name)] = make() if r.random() < 0.93 else {"int": 5}
        for name in CAPACITIES:
            if r.random() < 0.9:
                device["capacity"][self.qualified(name)] = {"value": r.choice(QUANTITIES)}
        return device

    def qualified(self, name):
        return name if self.r.random() < 0.9 else self.r.choice(DOMAINS[6:9]) + "/" + name

    def attribute(self, names):
        r, name = self.r, self.r.choice(names)
        if any(kind == "domain" for _, kind in self.variables) and r.random() < 0.5:
            on = r.choice([n for n, kind in self.variables if kind == "domain"])
        else:
            on = "device.attributes[%s]" % (self.quote(r.choice(DOMAINS)) if r.random() < 0.85 else "device.driver")
        if r.random() < 0.85:
            return "%s.%s" % (on, name)
        return "%s[%s]" % (on, self.quote(name))

    def maybe(self, names, default):
        """An attribute that need not be there."""
        on = "device.attributes[%s]" % self.quote(self.r.choice(DOMAINS))
        return self.r.choice(["%s.?%s.orValue(%s)", "%s[?\"%s\"].orValue(%s)"]) % (on, self.r.choice(names), default)

    def variable(self, kind):
        known = [name for name, k in self.variables if k == kind]
        return self.r.choice(known) if known and self.r.random() < 0.5 else None

    def make(self, kind, depth):
        if self.r.random() * 100 < self.wrong:
            kind = self.r.choice(["bool", "int", "string", "quantity", "version", "strings", "ints"])
        return self.variable(kind) or getattr(self, "make_" + kind)(depth - 1)

    def make_int(self, depth):
        r = self.r
        choices = [lambda: str(r.choice([0, 1, 2, 3, 7, 100, -1, "0x1F", 2**63 - 1])), lambda: self.attribute(INTS)]
        if depth > 0:
            choices += [lambda: "(%s %s %s)" % (self.make("int", depth), r.choice("+-*/%"), self.make("int", depth)),
                        lambda: "%s.size()" % self.make("string", depth), lambda: "size(%s)" % self.make("strings", depth),
                        lambda: "%s.compareTo(%s)" % (self.make("quantity", depth), self.make("quantity", depth)),
                        lambda: "%s.compareTo(%s)" % (self.make("version", depth), self.make("version", depth)),
                        lambda: "%s.%s()" % (self.make("version", depth), r.choice(["major", "minor", "patch"])),
                        lambda: "%s.asInteger()" % self.make("quantity", depth), lambda: "sign(%s)" % self.make("quantity", depth),
                        lambda: "%s.%s(%s)" % (self.make("string", depth), r.choice(["indexOf", "lastIndexOf"]), self.make("string", depth)),
                        lambda: "int(%s)" % self.make("string", depth), lambda: self.maybe(INTS, self.make("int", depth)),
                        lambda: "-%s" % self.make("int", depth), lambda: "%s[%s]" % (self.make("ints", depth), self.make("int", depth))]
        return r.choice(choices)()

    def make_string(self, depth):
        r = self.r
        choices = [lambda: self.quote(r.choice(TEXTS)), lambda: self.attribute(STRINGS), lambda: self.attribute(STRINGS), lambda: "device.driver"]
        if depth > 0:
            choices += [lambda: "%s.%s()" % (self.make("string", depth), r.choice(["lowerAscii", "upperAscii", "trim"])),
                        lambda: "(%s + %s)" % (self.make("string", depth), self.make("string", depth)),
                        lambda: "string(%s)" % self.make(r.choice(["int", "bool", "string"]), depth),
                        lambda: "%s.substring(%s)" % (self.make("string", depth), self.make("int", depth)),
                        lambda: "%s.substring(0, %s)" % (self.make("string", depth), self.make("int", depth)),
                        lambda: "%s.charAt(%s)" % (self.make("string", depth), self.make("int", depth)),
                        lambda: "%s.replace(%s, %s)" % (self.make("string", depth), self.make("string", depth), self.make("string", depth)),
                        lambda: "%s.join(%s)" % (self.make("strings", depth), self.make("string", depth)),
                        lambda: self.maybe(STRINGS, self.make("string", depth)),
                        lambda: "(%s ? %s : %s)" % (self.make("bool", depth), self.make("string", depth), self.make("string", depth)),
                        lambda: "%s[%s]" % (self.make("strings", depth), r.choice(["0", "1", "5"]))]
        return r.choice(choices)()

    def make_quantity(self, depth):
        r = self.r

        def capacity():
            return "device.capacity[%s].%s" % (self.quote(r.choice(DOMAINS)), r.choice(CAPACITIES))
        choices = [lambda: 'quantity(%s)' % self.quote(r.choice(QUANTITIES if r.random() < 0.95 else BAD_QUANTITIES)), capacity, capacity]
        if depth > 0:
            choices += [lambda: "%s.%s(%s)" % (self.make("quantity", depth), r.choice(["add", "sub"]), self.make(r.choice(["quantity", "int"]), depth)),
                        lambda: 'device.capacity[%s].?%s.orValue(%s)' % (self.quote(r.choice(DOMAINS)), r.choice(CAPACITIES), self.make("quantity", depth)),
                        lambda: "quantity(%s)" % self.make("string", depth)]
        return r.choice(choices)()

    def make_version(self, depth):
        r = self.r
        choices = [lambda: "semver(%s)" % self.quote(r.choice(VERSION_TEXTS if r.random() < 0.95 else BAD_VERSIONS)), lambda: self.attribute(VERSIONS),
                   lambda: "semver(%s, true)" % self.quote(r.choice(VERSION_TEXTS + BAD_VERSIONS))]
        if depth > 0:
            choices += [lambda: "semver(%s)" % self.make("string", depth), lambda: self.maybe(VERSIONS, self.make("version", depth))]
        return r.choice(choices)()

    def make_strings(self, depth):
        r = self.r
        choices = [lambda: "[%s]" % ", ".join(self.make("string", depth) for _ in range(r.randint(0, 3)))]
        if depth > 0:
            choices += [lambda: "%s.split(%s)" % (self.make("string", depth), self.quote(r.choice([",", " ", ".", "g"]))),
                        lambda: "(%s + %s)" % (self.make("strings", depth), self.make("strings", depth)),
                        lambda: self.each("filter", "strings", "string", "bool", depth), lambda: self.each("map", "strings", "string", "string", depth)]
        return r.choice(choices)()

    def make_ints(self, depth):
        r = self.r
        choices = [lambda: "[%s]" % ", ".join(self.make("int", depth) for _ in range(r.randint(0, 3)))]
        if depth > 0:
            choices += [lambda: self.each("filter", "ints", "int", "bool", depth), lambda: self.each("map", "strings", "string", "int", depth)]
        return r.choice(choices)()

    def each(self, macro, over, item, body, depth):
        name = self.r.choice(["x", "y", "k"])
        on = self.make(over, depth) if over else self.r.choice(["device.attributes", "device.attributes[%s]" % self.quote(self.r.choice(DOMAINS)),
                                                               "device.capacity", "device.capacity[%s]" % self.quote(self.r.choice(DOMAINS))])
        self.variables.append((name, item))
        text = "%s.%s(%s, %s)" % (on, macro, name, self.make(body, depth))
        self.variables.pop()
        return text

    def bind(self, depth):
        name, kind = self.r.choice(["a", "b"]), self.r.choice(["domain", "string", "int", "quantity", "bool"])
        value = "device.attributes[%s]" % self.quote(self.r.choice(DOMAINS)) if kind == "domain" else self.make(kind, depth)
        self.variables.append((name, kind))
        text = "cel.bind(%s, %s, %s)" % (name, value, self.make("bool", depth))
        self.variables.pop()
        return text

    def make_bool(self, depth):
        r, make = self.r, self.make
        choices = [lambda: "%s == %s" % (self.attribute(STRINGS), self.quote(r.choice(TEXTS))), lambda: "device.driver == %s" % self.quote(r.choice(DRIVERS)),
                   lambda: self.attribute(BOOLS), lambda: r.choice(["true", "false", "device.allowMultipleAllocations"]),
                   lambda: "%s in device.%s" % (self.quote(r.choice(DOMAINS)), r.choice(["attributes", "capacity"])),
                   lambda: "%s in device.attributes[%s]" % (self.quote(r.choice(STRINGS)), self.quote(r.choice(DOMAINS))),
                   lambda: "has(%s)" % self.attribute(STRINGS + INTS)]
        if depth > 0:
            order = ["<", "<=", ">", ">=", "==", "!="]
            choices += 2 * [lambda: "%s && %s" % (make("bool", depth), make("bool", depth)), lambda: "(%s || %s)" % (make("bool", depth), make("bool", depth)),
                            lambda: "!(%s)" % make("bool", depth), lambda: "%s %s %s" % (make("int", depth), r.choice(order), make("int", depth)),
                            lambda: "%s.%s(%s)" % (make("string", depth), r.choice(["startsWith", "endsWith", "contains"]), make("string", depth)),
                            lambda: "%s.%s(%s)" % (make("quantity", depth), r.choice(["isGreaterThan", "isLessThan"]), make("quantity", depth)),
                            lambda: "%s.compareTo(%s) %s 0" % (make("quantity", depth), make("quantity", depth), r.choice(order)),
                            lambda: "%s.%s(%s)" % (make("version", depth), r.choice(["isGreaterThan", "isLessThan"]), make("version", depth))]
            choices += [lambda: "%s %s %s" % (make("string", depth), r.choice(order), make("string", depth)),
                        lambda: "%s.matches(%s)" % (make("string", depth), self.quote(r.choice(PATTERNS if r.random() < 0.95 else BAD_PATTERNS))),
                        lambda: "(%s ? %s : %s)" % (make("bool", depth), make("bool", depth), make("bool", depth)),
                        lambda: "%s %s %s" % (make("version", depth), r.choice(["==", "!="]), make("version", depth)),
                        lambda: "%s %s %s" % (make("quantity", depth), r.choice(["==", "!="]), make("quantity", depth)),
                        lambda: "%s in %s" % (make("string", depth), make("strings", depth)), lambda: "%s in %s" % (make("int", depth), make("ints", depth)),
                        lambda: self.each(r.choice(["exists", "all", "exists_one"]), "strings", "string", "bool", depth),
                        lambda: self.each(r.choice(["exists", "all", "exists_one"]), None, "string", "bool", depth),
                        lambda: self.bind(depth), lambda: "isQuantity(%s)" % self.quote(r.choice(QUANTITIES + BAD_QUANTITIES)),
                        lambda: "isSemver(%s%s)" % (self.quote(r.choice(VERSION_TEXTS + BAD_VERSIONS)), r.choice(["", ", true"])),
                        lambda: "%s.isInteger()" % make("quantity", depth), lambda: "%s == %s" % (make("strings", depth), make("strings", depth)),
                        lambda: "device.attributes[?%s].hasValue()" % self.quote(r.choice(DOMAINS)), lambda: self.maybe(BOOLS, make("bool", depth)),
                        lambda: "%s == %s" % (self.attribute(STRINGS + INTS), self.attribute(STRINGS + VERSIONS))]
        return r.choice(choices)()

    def spoiled(self, text):
        """With a sign too many, one too few, or another."""
        at = self.r.randrange(len(text))
        return self.r.choice([text[:at] + text[at + 1:], text[:at] + self.r.choice("()[]\"'.,?!=&|<>+-*/%:{} ax1\\") + text[at:], text[:at]])

    def expression(self):
        text = self.make_bool(self.r.choice([1, 2, 2, 3, 4]))
        return self.spoiled(text) if self.r.random() < 0.1 else text


def question(seed, devices=5):
    maker = Maker(seed)
    return {"expression": maker.expression()[:10240], "devices": [maker.device() for _ in range(devices)]}
