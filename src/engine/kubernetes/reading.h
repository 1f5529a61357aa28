/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the readers of pods and nodes share. */
#include "base/json.h"
#include "engine/kubernetes/objects.h"

/* A text, cut where it is longer; null reads as "". */
void read_cut(struct json_reader *r, char *out, size_t room);
/* The value that comes next, as it stands there. */
struct json_slice value_skip(struct json_reader *r);
/* The parts of an object, each to be read, and finished, by itself: what can't be read in one leaves the others as they are. One that is
 * not there reads as {}. */
struct object_parts {
	struct json_reader metadata, spec, status;
};
/* `json` must outlive *ret. 0, or -ERR_* where it is not an object. */
int object_parts_read(const char *json, size_t size, struct object_parts *ret, struct err *err)
	MUST_CHECK;
/* A map of resources to amounts, added to `use`. What is wished (pods NULL) is rounded up to whole ones and MiB, what is there down. */
void read_resources(struct json_reader *r, struct kube_use *use, int64_t *pods);
/* Enters an object or array; false when null stands there instead. */
bool enter_object(struct json_reader *r);
bool enter_array(struct json_reader *r);
/* "2026-11-22T19:07:02Z" as seconds since 1970; 0 = null, or something else. Parts of seconds are cut off. */
int64_t read_time(struct json_reader *r);
