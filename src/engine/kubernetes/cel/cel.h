/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Expressions of the Common Expression Language over one device of a ResourceSlice: what the selectors of DeviceClasses and
 * ResourceClaims say of the devices that they want.
 *
 *	device.driver == "gpu.nvidia.com" && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0
 *
 * The part of the language that drivers and examples use is read (README.md lists it). The rest is refused with its name, never
 * guessed: an answer is the one that kube-scheduler would give, or there is none. tests/kubernetes/cel compares the two.
 *
 * An expression is compiled once and asked for each device. A program does not change after that, and threads may share it.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct arena;
struct cel_program;

enum {
	CEL_TEXT_MAX = 10240, /* bytes of an expression: Kubernetes' own limit */
	CEL_DEPTH_MAX = 64, /* of brackets, operators in operators and the like */
	CEL_STEPS_MAX = 100000, /* of one answer; beyond, the device is refused */
	CEL_DEVICE_FIELDS_MAX =
		1024, /* attributes and capacities of a device that are read; Kubernetes has 32 */
};

enum cel_answer {
	CEL_NO,
	CEL_YES,
	CEL_FAILED, /* the language has no answer: an attribute is missing, say. The claim can't be allocated */
	CEL_REFUSED, /* what it would take is not built here */
};

enum cel_attribute_kind { CEL_BOOL, CEL_INT, CEL_STRING, CEL_VERSION };

struct cel_attribute {
	const char *domain, *id; /* domain: NULL = the driver's */
	enum cel_attribute_kind kind;
	bool truth;
	int64_t number;
	const char *text; /* of a string or version */
};

struct cel_capacity {
	const char *domain, *id;
	const char *quantity; /* as Kubernetes writes it: 80Gi */
};

/* Owned by the caller, texts and all. Names are unique. */
struct cel_device {
	const char *driver;
	bool many_allocations; /* allowMultipleAllocations */
	const struct cel_attribute *attributes;
	uint32_t attribute_count;
	const struct cel_capacity *capacities;
	uint32_t capacity_count;
};

/* The program lives in the arena, and keeps no pointer to `text`. ERR_INVALID: not of the language, or not a yes or no;
 * ERR_UNSUPPORTED: of the language, but not read here; the column tells where. */
int cel_compile(struct arena *arena, const char *text, size_t size, const struct cel_program **ret,
		struct err *err) MUST_CHECK;
/* `scratch` may be reset afterwards; ret_why (may be NULL) is in it, or static, and is set for CEL_FAILED and CEL_REFUSED. */
enum cel_answer cel_ask(const struct cel_program *program, const struct cel_device *device,
			struct arena *scratch, const char **ret_why);
