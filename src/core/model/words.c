/* SPDX-License-Identifier: Apache-2.0 */
/* Enums as words and back. The words are part of the interface (API, job file, scenarios): only ever added to. */
#include <string.h>

#include "base/check.h"
#include "core/model/facts.h"

static const char *const job_states[] = {
	[JOB_NONE] = "unknown",
	[JOB_QUEUED] = "queued",
	[JOB_HELD] = "held",
	[JOB_BLOCKED] = "blocked",
	[JOB_STARTING] = "starting",
	[JOB_RUNNING] = "running",
	[JOB_CHECKPOINTING] = "checkpointing",
	[JOB_PREEMPTED] = "preempted",
	[JOB_RESUMING] = "resuming",
	[JOB_UNREACHABLE] = "unreachable",
	[JOB_SUCCEEDED] = "succeeded",
	[JOB_FAILED] = "failed",
	[JOB_CANCELLED] = "cancelled",
	[JOB_TIMED_OUT] = "timed-out",
};

static const char *const tiers[] = {
	[TIER_BEST_EFFORT] = "best-effort",
	[TIER_STANDARD] = "standard",
	[TIER_CRITICAL] = "critical",
};

static const char *const kinds[] = {
	[KIND_TRAINING] = "training",
	[KIND_BATCH] = "batch",
	[KIND_INFERENCE] = "inference",
	[KIND_INTERACTIVE] = "interactive",
};

static const char *const share_gpus_words[] = {
	[SHARE_GPUS_TEAM] = "team",
	[SHARE_GPUS_ANY] = "any",
	[SHARE_GPUS_OFF] = "off",
};

static const char *const defragment_words[] = {
	[DEFRAGMENT_ON_DEMAND] = "on-demand",
	[DEFRAGMENT_ALWAYS] = "always",
	[DEFRAGMENT_OFF] = "off",
};

static const char *const roles[] = {
	[ROLE_NONE] = "none",       [ROLE_VIEWER] = "viewer", [ROLE_RESEARCHER] = "researcher",
	[ROLE_SERVICE] = "service", [ROLE_LEAD] = "lead",     [ROLE_ADMIN] = "admin",
};

static const char *const node_states[] = {
	[NODE_READY] = "ready",
	[NODE_CORDONED] = "cordoned",
	[NODE_DRAINING] = "draining",
	[NODE_QUARANTINED] = "quarantined",
	[NODE_DOWN] = "down",
	[NODE_GONE] = "gone",
	[NODE_MAINTENANCE] = "maintenance",
};

static const char *const node_classes[] = {
	[NODE_CLASS_ANY] = "any",
	[NODE_CLASS_TRAINING] = "training",
	[NODE_CLASS_INFERENCE] = "inference",
};

static const char *const stop_whys[] = {
	[STOP_NONE] = "none",     [STOP_EVICTED] = "evicted", [STOP_CANCELLED] = "cancelled",
	[STOP_FAILED] = "failed", [STOP_LIMIT] = "limit",     [STOP_NODE] = "node",
	[STOP_LOST] = "lost",     [STOP_START] = "start",     [STOP_DONE] = "done",
	[STOP_WINDOW] = "window", [STOP_MOVED] = "moved",
};

static const char *const task_causes[] = {
	[CAUSE_EXIT] = "exit",           [CAUSE_SIGNAL] = "signal",     [CAUSE_STOPPED] = "stopped",
	[CAUSE_MEMORY] = "memory",       [CAUSE_START] = "start",       [CAUSE_LOST] = "lost",
	[CAUSE_LOG_LIMIT] = "log-limit", [CAUSE_NO_SPACE] = "no-space", [CAUSE_MACHINE] = "machine",
};

static const char *word(const char *const *words, size_t count, uint8_t value)
{
	return value < count ? words[value] : "unknown";
}

static bool word_find(const char *const *words, size_t count, const char *name, uint8_t *ret)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(words[i], name) == 0) {
			*ret = (uint8_t)i;
			return true;
		}
	}
	return false;
}

const char *job_state_name(uint8_t state)
{
	return word(job_states, ARRAY_SIZE(job_states), state);
}
const char *tier_name(uint8_t tier)
{
	return word(tiers, ARRAY_SIZE(tiers), tier);
}
const char *kind_name(uint8_t kind)
{
	return word(kinds, ARRAY_SIZE(kinds), kind);
}
const char *role_name(uint8_t role)
{
	return word(roles, ARRAY_SIZE(roles), role);
}
const char *node_state_name(uint8_t state)
{
	return word(node_states, ARRAY_SIZE(node_states), state);
}
static const char *const partitionings[] = {
	[PARTITIONING_FIXED] = "fixed",
	[PARTITIONING_AUTO] = "auto",
	[PARTITIONING_OFF] = "off",
};

const char *partitioning_name(uint8_t partitioning)
{
	return word(partitionings, ARRAY_SIZE(partitionings), partitioning);
}
/* Of nodes and of jobs alike: what nobody said is no word. */
static const char *const capacities[] = { "", "on-demand", "spot", "any" };
const char *capacity_name(uint8_t capacity)
{
	return word(capacities, ARRAY_SIZE(capacities), capacity);
}
bool capacity_find(const char *name, uint8_t *ret)
{
	return *name && word_find(capacities, ARRAY_SIZE(capacities), name, ret);
}
bool partitioning_find(const char *name, uint8_t *ret)
{
	return word_find(partitionings, ARRAY_SIZE(partitionings), name, ret);
}
const char *node_class_name(uint8_t class)
{
	return word(node_classes, ARRAY_SIZE(node_classes), class);
}
const char *stop_why_name(uint8_t why)
{
	return word(stop_whys, ARRAY_SIZE(stop_whys), why);
}
const char *task_cause_name(uint8_t cause)
{
	return word(task_causes, ARRAY_SIZE(task_causes), cause);
}

bool job_state_find(const char *name, uint8_t *ret)
{
	uint8_t state;

	if (!word_find(job_states, ARRAY_SIZE(job_states), name, &state) || state == JOB_NONE)
		return false;
	*ret = state;
	return true;
}
bool tier_find(const char *name, uint8_t *ret)
{
	return word_find(tiers, ARRAY_SIZE(tiers), name, ret);
}
bool kind_find(const char *name, uint8_t *ret)
{
	return word_find(kinds, ARRAY_SIZE(kinds), name, ret);
}
const char *share_gpus_name(int64_t share_gpus)
{
	CHECK(share_gpus >= SHARE_GPUS_TEAM && share_gpus <= SHARE_GPUS_OFF);
	return share_gpus_words[share_gpus];
}
bool share_gpus_find(const char *name, int64_t *ret)
{
	for (int64_t i = SHARE_GPUS_TEAM; i <= SHARE_GPUS_OFF; i++)
		if (strcmp(share_gpus_words[i], name) == 0) {
			*ret = i;
			return true;
		}
	return false;
}
const char *defragment_name(int64_t defragment)
{
	CHECK(defragment >= DEFRAGMENT_ON_DEMAND && defragment <= DEFRAGMENT_OFF);
	return defragment_words[defragment];
}
bool defragment_find(const char *name, int64_t *ret)
{
	for (int64_t i = DEFRAGMENT_ON_DEMAND; i <= DEFRAGMENT_OFF; i++)
		if (strcmp(defragment_words[i], name) == 0) {
			*ret = i;
			return true;
		}
	return false;
}
bool role_find(const char *name, uint8_t *ret)
{
	return word_find(roles, ARRAY_SIZE(roles), name, ret);
}
bool node_class_find(const char *name, uint8_t *ret)
{
	return word_find(node_classes, ARRAY_SIZE(node_classes), name, ret);
}

/* --- versions --------------------------------------------------------------------------------------- */

enum { VERSION_PARTS = 3 };

/* Bits of the parts of a version, from the first. */
static const uint32_t version_bits[VERSION_PARTS] = { 12, 10, 10 };

uint32_t version_parse(const char *text)
{
	uint32_t version = 0;

	for (int part = 0; part < VERSION_PARTS; part++) {
		uint32_t most = (UINT32_C(1) << version_bits[part]) - 1, value = 0;

		for (; text && *text >= '0' && *text <= '9'; text++) {
			value = value * 10 + (uint32_t)(*text - '0');
			value = value > most ? most : value;
		}
		version = version << version_bits[part] | value;
		text = text && *text == '.' ? text + 1 : NULL;
	}
	return version;
}

static char *number_add(char *to, uint32_t number)
{
	if (number >= 10)
		to = number_add(to, number / 10);
	*to = (char)('0' + number % 10);
	return to + 1;
}

/* The second part of a driver's version has two digits or three, of CUDA's one or two: they are shown as they are counted. */
const char *version_text(uint32_t version, char ret[VERSION_TEXT_MAX])
{
	char *to = number_add(ret, version >> 20);

	*to++ = '.';
	to = number_add(to, version >> 10 & 1023);
	if (version & 1023) {
		*to++ = '.';
		to = number_add(to, version & 1023);
	}
	*to = '\0';
	return ret;
}

uint32_t node_numa_of(const struct node *node, uint32_t gpus)
{
	uint32_t i = 0;

	while (i < NUMA_MAX && !(node->numa_gpus[i] & gpus & -gpus))
		i++;
	return i;
}

const char *node_numa_cpus(const struct facts *f, const struct node *node, uint32_t index,
			   char ret[REASON_MAX_BYTES + 1])
{
	const char *text = facts_text(f, node->numa_cpus), *end;

	for (; index > 0 && *text; text++)
		index -= *text == ';';
	end = memchr(text, ';', strlen(text));
	if (!end)
		end = text + strlen(text);
	memcpy(ret, text, (size_t)(end - text));
	ret[end - text] = '\0';
	return ret;
}
