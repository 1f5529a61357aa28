/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A change of a job: a job file with some keys only, read by the same table and readers (jobfile.def). A key says which words of
 * core/model/job_changes.def change; what it is read as is their value. A map is looked into, so that what it does not name stays:
 *
 *	gpus: {count: 2}	gpus		the model stays
 *	limit: null		limit		none, as where a job file does not say it
 */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "core/model/job_change.h"

/* Keys that are no words of their own, or whose value is read as more than one. */
static const struct {
	const char *key;
	uint64_t set;
} also[] = {
	{ "gpus.count", JOB_CHANGE_BIT(GPUS) },
	{ "gpus.slice", JOB_CHANGE_BIT(GPUS) },
	/* Speeds are those of the models that are named. */
	{ "gpus.model", JOB_CHANGE_BIT(GPUS_MODEL) | JOB_CHANGE_BIT(THROUGHPUT) },
	{ "throughput", JOB_CHANGE_BIT(THROUGHPUT) | JOB_CHANGE_BIT(GPUS_MODEL) },
	{ "checkpoint.how", JOB_CHANGE_BIT(CHECKPOINT) },
};

#define RUNS "what a job runs stays as it was submitted, so that its number says what ran"
static const struct {
	const char *key, *why;
} refused[] = {
	{ "command", RUNS },
	{ "script", RUNS },
	{ "env", RUNS },
	{ "secrets", RUNS },
	{ "workdir", RUNS },
	{ "snapshot", RUNS },
	{ "git", RUNS },
	{ "image", RUNS },
	{ "volumes", RUNS },
	{ "resources", RUNS },
	{ "shm", RUNS },
	{ "service_account", RUNS },
	{ "pull_secrets", RUNS },
	{ "kubernetes", RUNS },
	{ "sweep", RUNS },
	{ "roles", RUNS },
	{ "checkpoint.signal", RUNS },
	{ "checkpoint.path", RUNS },
	{ "checkpoint.cost", "say with checkpoint: {every: ...} how often" },
	{ "team", "its use counts for the team that it was submitted for" },
	{ "depends_on", "what a job waits for is said once" },
	{ "array.count", "an array has the jobs that it was submitted with" },
	{ "hold", "`fairlead hold` and `fairlead release` do that" },
};
#undef RUNS

/* Keys that are maps, of which each member is a change of its own. */
static const char *const maps[] = { "gpus", "checkpoint", "topology", "array" };

struct changing {
	struct reading r;
	uint64_t set;
	bool memory, count; /* gpus: {memory}, {count} or a slice */
	bool how; /* checkpoint.how was said */
};

static uint64_t words_of(const char *key)
{
	enum job_change change;

	for (size_t i = 0; i < ARRAY_SIZE(also); i++)
		if (strcmp(also[i].key, key) == 0)
			return also[i].set;
	return job_change_find(key, &change) ? UINT64_C(1) << change : 0;
}

static int key_refuse(struct changing *c, const struct conf *item, const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (strcmp(refused[i].key, key) == 0)
			return jobfile_key_error(&c->r, item, "%s can't be changed: %s", key,
						 refused[i].why);
	return jobfile_key_error(&c->r, item, "%s can't be changed", key);
}

static int value_read(struct changing *c, const struct conf *item, const char *key, size_t at)
{
	const uint64_t set = words_of(key);

	if (!set)
		return key_refuse(c, item, key);
	c->set |= set;
	c->memory = c->memory || strcmp(key, "gpus.memory") == 0;
	c->count = c->count || set & JOB_CHANGE_BIT(GPUS);
	c->how = c->how || set & JOB_CHANGE_BIT(CHECKPOINT);
	if (item->type != CONF_NULL)
		return jobfile_readers[at](&c->r, item, key);
	if (set & (JOB_CHANGE_BIT(NAME) | JOB_CHANGE_BIT(QUEUE) | JOB_CHANGE_BIT(REJOIN)))
		return jobfile_key_error(&c->r, item, "%s has no default here: give it a value",
					 key);
	return 0;
}

/* The key of each field whose name begins with the map's, as if it were there and empty. */
static int map_reset(struct changing *c, const struct conf *item, const char *prefix)
{
	const struct jobfile_field *fields;
	size_t count;

	fields = jobfile_fields(&count);
	for (size_t i = 0; i < count; i++)
		if (strncmp(fields[i].name, prefix, strlen(prefix)) == 0)
			c->set |= words_of(fields[i].name);
	return c->set ? 0 : jobfile_key_error(&c->r, item, "%s can't be changed", item->key);
}

static int map_read(struct changing *c, const struct conf *map, const char *prefix)
{
	for (size_t i = 0; i < map->count; i++) {
		const struct conf *item = map->items[i];
		const char *key = arena_printf(c->r.arena, "%s%s", prefix, item->key);
		size_t at;
		int rc;

		if (!jobfile_field_find(prefix, item->key, &at) || strchr(item->key, '.'))
			return jobfile_unknown_key(&c->r, item, prefix);
		rc = value_read(c, item, key, at);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_map(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++)
		if (strcmp(maps[i], key) == 0)
			return true;
	return false;
}

static int item_read(struct changing *c, const struct conf *item)
{
	const char *prefix = arena_printf(c->r.arena, "%s.", item->key);
	size_t at;

	if (!jobfile_field_find("", item->key, &at) || strchr(item->key, '.'))
		return jobfile_unknown_key(&c->r, item, "");
	if (is_map(item->key) && item->type == CONF_MAP)
		return map_read(c, item, prefix);
	if (is_map(item->key) && item->type == CONF_NULL)
		return map_reset(c, item, prefix);
	if (strcmp(item->key, "array") == 0)
		return key_refuse(c, item, "array.count");
	return value_read(c, item, item->key, at);
}

/* What needs more than one key. */
static int changes_finish(struct changing *c, const struct conf *document)
{
	if (!c->set)
		return conf_error(
			c->r.err, c->r.file, document,
			"nothing is to be changed; name a field of the job file, such as limit: 2h");
	return jobfile_fit_finish(&c->r);
}

int jobfile_read_change(const char *file, const struct conf *document, struct arena *arena,
			struct job_change_request *ret, struct err *err)
{
	struct event event = jobfile_event();
	struct changing c = { .r = { .file = file,
				     .document = document,
				     .arena = arena,
				     .err = err,
				     .job = &event.job_submitted,
				     .body.git = JOB_GIT_NONE } };
	int rc = 0;

	if (document->type != CONF_MAP)
		return conf_error(err, file, document,
				  "a change is a map of fields of the job file, such as limit:");
	for (size_t i = 0; i < document->count && rc >= 0; i++)
		rc = item_read(&c, document->items[i]);
	if (rc >= 0)
		rc = changes_finish(&c, document);
	if (rc < 0)
		return rc;
	*ret = (struct job_change_request){ .set = c.set,
					    .job = event.job_submitted,
					    .memory_alone = c.memory && !c.count,
					    .says_how = c.how,
					    .wants_signal = c.r.body.checkpoint_signal != NULL };
	return 0;
}

/* Each field takes what it takes in a job file, or null; a map may have null for what is in it. */
void jobfile_change_schema(struct buf *out)
{
	const struct jobfile_field *fields;
	size_t count;
	bool first = true;

	fields = jobfile_fields(&count);
	buf_adds(
		out,
		"{\"type\":\"object\",\"description\":\"A change of a job: fields as in JobFile, or null for the default. What is not given stays.\",\"additionalProperties\":false,\"properties\":{");
	for (size_t i = 0; i < count; i++) {
		if (strchr(fields[i].name, '.') ||
		    (!words_of(fields[i].name) && !is_map(fields[i].name)))
			continue;
		if (!first)
			buf_addc(out, ',');
		first = false;
		buf_add_json(out, fields[i].name, strlen(fields[i].name));
		buf_adds(out, ":{\"description\":");
		buf_add_json(out, fields[i].doc, strlen(fields[i].doc));
		buf_addc(out, '}');
	}
	buf_adds(out, "}}");
}
