/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's part for what nodes are called and jobs ask of them: labels, taints, versions, classes. */
#include "sim/scenario.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "sim/reader.h"

/* A list of texts as "a,b,c"; a lone text is a list of one. */
static int read_list(struct reader *r, const struct conf *map, const char *key, size_t limit,
		     const char **ret)
{
	const struct conf *c = conf_find(map, key);
	size_t count = c && c->type == CONF_LIST ? c->count : 1;

	if (!c)
		return 0;
	if (c->type == CONF_MAP || count > limit)
		return conf_error(r->err, r->file, c, "%s must be a list of at most %zu names", key,
				  limit);
	for (size_t i = 0; i < count; i++) {
		const struct conf *item = c->type == CONF_LIST ? c->items[i] : c;

		if (item->type != CONF_SCALAR || !*item->text || strchr(item->text, ','))
			return conf_error(r->err, r->file, item, "%s: a name is expected", key);
		*ret = arena_printf(r->arena, "%s%s%s", *ret, i ? "," : "", item->text);
	}
	return 0;
}

/* A map {key: value} as "key=value,key=value". */
static int read_labels(struct reader *r, const struct conf *map, const char *key, size_t limit,
		       const char **ret)
{
	const struct conf *c = conf_find(map, key);

	if (!c)
		return 0;
	if (c->type != CONF_MAP || c->count > limit)
		return conf_error(r->err, r->file, c,
				  "%s must be a map of at most %zu keys, as in {pool: blue}", key,
				  limit);
	for (size_t i = 0; i < c->count; i++) {
		if (c->items[i]->type != CONF_SCALAR)
			return conf_error(r->err, r->file, c->items[i],
					  "label \"%.63s\": a text is expected", c->items[i]->key);
		*ret = arena_printf(r->arena, "%s%s%s=%s", *ret, i ? "," : "", c->items[i]->key,
				    c->items[i]->text);
	}
	return 0;
}

/* "9.0" in tenths. */
static int read_capability(struct reader *r, const struct conf *map, const char *key, int64_t *ret)
{
	const struct conf *c = conf_find(map, key);
	const char *dot = c && c->type == CONF_SCALAR ? strchr(c->text, '.') : NULL;
	uint32_t version;

	if (!c)
		return 0;
	version = c->type == CONF_SCALAR ? version_parse(c->text) : 0;
	if (!version || (dot && strlen(dot) != 2) || version & 1023)
		return conf_error(r->err, r->file, c,
				  "%s must be a compute capability such as \"9.0\"", key);
	*ret = (int64_t)(version >> 20) * 10 + (version >> 10 & 1023);
	return 0;
}

static int read_speed(struct reader *r, const struct conf *c, int64_t *ret)
{
	struct err why;

	if (!c)
		return 0;
	if (c->type != CONF_SCALAR || parse_milli(c->text, 1, SPEED_MOST, ret, &why) < 0)
		return conf_error(r->err, r->file, c,
				  "throughput: a number such as 0.45 is expected");
	return 0;
}

/* {H100-80GB: 1, A100-80GB: 0.45}: these models are accepted, and so fast. */
static int read_throughput(struct reader *r, const struct conf *c, struct scenario_job *job)
{
	int64_t *speeds;

	if (!c)
		return 0;
	if (c->type != CONF_MAP || !c->count || c->count > SHAPE_MODELS_MAX || *job->models)
		return conf_error(r->err, r->file, c,
				  "throughput must be a map of at most %d models, which are those "
				  "accepted; `model` is left out",
				  SHAPE_MODELS_MAX);
	speeds = arena_new_array(r->arena, int64_t, c->count);
	for (size_t i = 0; i < c->count; i++) {
		if (read_speed(r, c->items[i], &speeds[i]) < 0)
			return -(int)r->err->code;
		job->models = arena_printf(r->arena, "%s%s%s", job->models, i ? "," : "",
					   c->items[i]->key);
	}
	job->throughput = speeds;
	job->throughput_count = (uint32_t)c->count;
	return 0;
}

/* [0, 1] as bits. */
static int read_gpu_mask(struct reader *r, const struct conf *c, uint32_t gpus, int64_t *ret)
{
	int64_t index = 0;
	int rc = reader_list(r, c, "gpus of a NUMA node", NODE_GPUS_MAX);

	for (size_t i = 0; rc == 0 && i < c->count; i++) {
		rc = conf_int(r->err, r->file, c->items[i], "GPU index", 0, (int64_t)gpus - 1,
			      &index);
		*ret |= INT64_C(1) << index;
	}
	return rc;
}

/* [{gpus: [0, 1], cpus: 16, nics: 1}, ...] */
static int read_numa(struct reader *r, const struct conf *c, struct scenario_node *node)
{
	static const char *const known[] = { "gpus", "cpus", "nics" };
	int rc = c ? reader_list(r, c, "numa", NUMA_MAX) : 0;

	for (size_t i = 0; c && rc == 0 && i < c->count; i++) {
		const struct conf *item = c->items[i];

		rc = reader_map(r, item, "NUMA node", known, ARRAY_SIZE(known));
		if (rc == 0 && !conf_find(item, "gpus"))
			return conf_error(r->err, r->file, item,
					  "a NUMA node needs gpus, such as [0, 1]");
		if (rc == 0)
			rc = read_gpu_mask(r, conf_find(item, "gpus"), node->gpus,
					   &node->numa_gpus[i]);
		if (rc == 0)
			rc = reader_int(r, item, "cpus", 0, 1000, &node->numa_cpu_milli[i]);
		node->numa_cpu_milli[i] *= 1000;
		if (rc == 0)
			rc = reader_int(r, item, "nics", 0, 64, &node->numa_nics[i]);
		node->numa_count++;
	}
	return rc;
}

static int read_capacity(struct reader *r, const struct conf *item, uint8_t *ret, uint8_t most)
{
	static const char *const words[] = { "on-demand", "spot", "any" };
	const char *word = NULL;
	int rc = reader_text(r, item, "capacity", &word);

	if (rc < 0 || !word)
		return rc;
	return capacity_find(word, ret) && *ret <= most
		       ? 0
		       : reader_unknown(r, conf_find(item, "capacity"), "capacity", word, words,
					most);
}

static int read_align(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	static const char *const words[] = { "numa", "nic" };
	const char *word = NULL;
	int rc = reader_text(r, item, "align", &word);

	if (rc < 0 || !word)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strcmp(words[i], word) == 0)
			job->align = ALIGN_NUMA + (int64_t)i;
	return job->align ? 0
			  : reader_unknown(r, conf_find(item, "align"), "alignment", word, words,
					   ARRAY_SIZE(words));
}

static int read_window(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	static const char *const words[] = { "stop", "finish" };
	const char *word = "stop";
	int rc = reader_text(r, item, "window", &job->window);

	if (rc == 0)
		rc = reader_text(r, item, "window_end", &word);
	if (rc == 0 && strcmp(word, "stop") != 0 && strcmp(word, "finish") != 0)
		return reader_unknown(r, conf_find(item, "window_end"), "end of a window", word,
				      words, ARRAY_SIZE(words));
	job->window_end = strcmp(word, "finish") == 0;
	return rc;
}

int scenario_read_node_names(struct reader *r, const struct conf *item, struct scenario_node *node)
{
	static const char *const classes[] = { "any", "training", "inference" };
	const char *class = NULL;
	int rc = reader_text(r, item, "driver", &node->driver);

	if (rc == 0)
		rc = reader_text(r, item, "cuda", &node->cuda);
	if (rc == 0)
		rc = read_capability(r, item, "capability", &node->capability);
	if (rc == 0)
		rc = read_labels(r, item, "labels", LABELS_MAX, &node->labels);
	if (rc == 0)
		rc = read_list(r, item, "taints", TAINTS_MAX, &node->taints);
	if (rc == 0)
		rc = read_list(r, item, "data", NODE_DATA_MAX, &node->data);
	if (rc == 0)
		rc = read_numa(r, conf_find(item, "numa"), node);
	if (rc == 0)
		rc = reader_text(r, item, "class", &class);
	if (rc == 0)
		rc = read_capacity(r, item, &node->capacity, CAPACITY_SPOT);
	if (rc == 0 && class && !node_class_find(class, &node->class))
		return reader_unknown(r, conf_find(item, "class"), "class", class, classes,
				      ARRAY_SIZE(classes));
	return rc;
}

int scenario_read_job_names(struct reader *r, const struct conf *item, struct scenario_job *job)
{
	int rc = reader_text(r, item, "min_driver", &job->min_driver);

	if (rc == 0)
		rc = reader_text(r, item, "min_cuda", &job->min_cuda);
	if (rc == 0)
		rc = read_capability(r, item, "min_capability", &job->min_capability);
	if (rc == 0)
		rc = read_list(r, item, "region", SHAPE_REGIONS_MAX, &job->regions);
	if (rc == 0)
		rc = read_labels(r, item, "selector", SHAPE_LABELS_MAX, &job->labels);
	if (rc == 0)
		rc = read_list(r, item, "tolerates", SHAPE_LABELS_MAX, &job->tolerates);
	if (rc == 0)
		rc = read_list(r, item, "data", SHAPE_DATA_MAX, &job->data);
	if (rc == 0)
		rc = read_align(r, item, job);
	if (rc == 0)
		rc = read_capacity(r, item, &job->capacity, CAPACITY_ANY);
	if (rc == 0)
		rc = read_window(r, item, job);
	if (rc == 0)
		rc = read_labels(r, item, "labels", JOB_LABELS_MAX, &job->own_labels);
	if (rc == 0)
		rc = read_labels(r, item, "apart_from", JOB_LABELS_MAX, &job->apart_from);
	if (rc == 0)
		rc = reader_text(r, item, "apart_level", &job->apart_level);
	if (rc == 0)
		rc = reader_bool(r, item, "apart_prefer", &job->apart_wish);
	if (rc == 0)
		rc = reader_text(r, item, "mask", &job->mask);
	if (rc == 0)
		rc = read_throughput(r, conf_find(item, "throughput"), job);
	if (rc == 0)
		rc = read_speed(r, conf_find(item, "min_throughput"), &job->min_throughput);
	if (rc == 0)
		rc = reader_bool(r, item, "mix_models", &job->mixes);
	return rc;
}
