/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's part for expectations: what must be true, and when. */
#include "sim/scenario.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/core.h"
#include "core/model/facts.h"
#include "sim/reader.h"

static const char *const key_names[] = {
	[EXPECT_RUNNING] = "running",
	[EXPECT_WAITING] = "waiting",
	[EXPECT_EVICTED] = "evicted",
	[EXPECT_MOVED] = "moved",
	[EXPECT_UNTOUCHED] = "untouched",
	[EXPECT_FINISHED] = "finished",
	[EXPECT_PLACE] = "place",
	[EXPECT_STARTED] = "started",
	[EXPECT_REASON] = "reason",
	[EXPECT_REASON_HAS] = "reason_has",
	[EXPECT_TOTAL_RUNNING_GPUS] = "total_running_gpus",
	[EXPECT_STATE] = "state",
	[EXPECT_ATTEMPTS] = "attempts",
	[EXPECT_WORK_LOST] = "work_lost",
	[EXPECT_NODE_STATE] = "node_state",
	[EXPECT_BANDWIDTH] = "bandwidth",
	[EXPECT_SLOWDOWN] = "slowdown",
};

const char *expect_key_name(enum expect_key key)
{
	CHECK((size_t)key < ARRAY_SIZE(key_names));
	return key_names[key];
}

/* One item for a whole list: `waiting: [a, "u[0-7]"]`; or a number of jobs where `may_count`. */
static int read_whole(struct reader *r, const struct conf *c, struct expect_item *item,
		      bool may_count)
{
	struct names names;
	int rc;

	if (may_count && c->type == CONF_SCALAR &&
	    strspn(c->text, "0123456789") == strlen(c->text)) {
		item->counted = true;
		return conf_int(r->err, r->file, c, item->label, 0, SCENARIO_JOBS_MAX,
				&item->number);
	}
	if (c->type != CONF_LIST)
		return conf_error(r->err, r->file, c, "%s must be a list of jobs%s", item->label,
				  may_count ? " or their number" : "");
	rc = reader_ranges(r, c, item->label, &names);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = scenario_check_job(r, c, names.at[i]);
	if (rc == 0) {
		item->names = names.at;
		item->name_count = (uint32_t)names.count;
	}
	return rc;
}

static int read_texts(struct reader *r, const struct conf *c, struct expect_item *item)
{
	const char **texts =
		arena_new_array(r->arena, const char *, c->type == CONF_LIST ? c->count + 1 : 1);
	int rc = 0;

	item->texts = texts;
	if (c->type != CONF_LIST) {
		item->text_count = 1;
		return conf_text(r->err, r->file, c, item->label, EVENT_TEXT_MAX, texts);
	}
	item->text_count = (uint32_t)c->count;
	for (size_t i = 0; rc == 0 && i < c->count; i++)
		rc = conf_text(r->err, r->file, c->items[i], item->label, EVENT_TEXT_MAX,
			       &texts[i]);
	return rc;
}

/* Each text must be one of the words. */
static int read_words(struct reader *r, const struct conf *c, const char *what,
		      const char *const *words, size_t count, struct expect_item *item)
{
	int rc = read_texts(r, c, item);

	for (uint32_t t = 0; rc == 0 && t < item->text_count; t++) {
		bool found = false;

		for (size_t i = 0; i < count; i++)
			found = found || strcmp(words[i], item->texts[t]) == 0;
		if (!found)
			rc = reader_unknown(r, c, what, item->texts[t], words, count);
	}
	return rc;
}

static int read_reasons(struct reader *r, const struct conf *c, struct expect_item *item)
{
	const char *words[REASON_END - 1];

	for (int i = 0; i < REASON_END - 1; i++)
		words[i] = reason_name((enum reason)(i + 1));
	return read_words(r, c, "reason", words, ARRAY_SIZE(words), item);
}

static int read_state(struct reader *r, const struct conf *c, struct expect_item *item)
{
	const char *words[JOB_TIMED_OUT - JOB_QUEUED + 1];

	for (uint8_t i = JOB_QUEUED; i <= JOB_TIMED_OUT; i++)
		words[i - JOB_QUEUED] = job_state_name(i);
	return read_words(r, c, "job state", words, ARRAY_SIZE(words), item);
}

static int read_node_state(struct reader *r, const struct conf *c, struct expect_item *item)
{
	const char *words[NODE_MAINTENANCE + 1];

	for (uint8_t i = 0; i <= NODE_MAINTENANCE; i++)
		words[i] = node_state_name(i);
	return read_words(r, c, "node state", words, ARRAY_SIZE(words), item);
}

static int read_started(struct reader *r, const struct conf *c, struct expect_item *item)
{
	static const char *const known[] = { "by", "not_before" };
	int rc = reader_map(r, c, "started", known, ARRAY_SIZE(known));

	item->by_ms = SCENARIO_FOREVER;
	if (rc == 0)
		rc = reader_duration(r, c, "by", NULL, 0, &item->by_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "not_before", NULL, 0, &item->not_before_ms);
	return rc;
}

static int take_names(struct expect_item *item, const struct names *names)
{
	item->texts = names->at;
	item->text_count = (uint32_t)names->count;
	return 0;
}

/* What a place must be: [n0, n1], {within: rack}, {nodes: 2}, {avoid: [n2]}, {same_gpu: [x]},
 * {other_gpu: [x]}. */
static int read_place(struct reader *r, const struct conf *c, struct expect_item *item)
{
	static const char *const known[] = { "within", "nodes", "avoid", "same_gpu", "other_gpu" };
	const struct conf *value;
	struct names names = { 0 };
	int rc;

	if (c->type == CONF_LIST) {
		item->form = PLACE_NODES;
		rc = reader_ranges(r, c, "place", &names);
		for (size_t i = 0; rc == 0 && i < names.count; i++)
			rc = scenario_check_node(r, c, names.at[i]);
		return rc == 0 ? take_names(item, &names) : rc;
	}
	rc = reader_map(r, c, "place", known, ARRAY_SIZE(known));
	if (rc < 0)
		return rc;
	if (c->count != 1)
		return conf_error(
			r->err, r->file, c,
			"place is a list of nodes or a map with one of within, nodes, avoid, same_gpu, other_gpu");
	value = c->items[0];
	if (strcmp(value->key, "nodes") == 0) {
		item->form = PLACE_COUNT;
		return conf_int(r->err, r->file, value, "nodes", 1, SCENARIO_NODES_MAX,
				&item->number);
	}
	if (strcmp(value->key, "within") == 0) {
		item->form = PLACE_WITHIN;
		return read_texts(r, value, item);
	}
	item->form = strcmp(value->key, "avoid") == 0      ? PLACE_AVOID
		     : strcmp(value->key, "same_gpu") == 0 ? PLACE_SAME_GPU
							   : PLACE_OTHER_GPU;
	rc = reader_ranges(r, value, value->key, &names);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = item->form == PLACE_AVOID ? scenario_check_node(r, value, names.at[i])
					       : scenario_check_job(r, value, names.at[i]);
	return rc == 0 ? take_names(item, &names) : rc;
}

static int read_value(struct reader *r, const struct conf *c, struct expect_item *item)
{
	switch (item->key) {
	case EXPECT_RUNNING:
	case EXPECT_ATTEMPTS:
	case EXPECT_BANDWIDTH:
	case EXPECT_SLOWDOWN:
		return conf_int(r->err, r->file, c, item->label, 0, INT32_MAX, &item->number);
	case EXPECT_WORK_LOST: return conf_duration(r->err, r->file, c, item->label, &item->number);
	case EXPECT_PLACE: return read_place(r, c, item);
	case EXPECT_STARTED: return read_started(r, c, item);
	case EXPECT_REASON: return read_reasons(r, c, item);
	case EXPECT_REASON_HAS: return read_texts(r, c, item);
	case EXPECT_STATE: return read_state(r, c, item);
	case EXPECT_NODE_STATE: return read_node_state(r, c, item);
	case EXPECT_WAITING:
	case EXPECT_EVICTED:
	case EXPECT_MOVED:
	case EXPECT_UNTOUCHED:
	case EXPECT_FINISHED:
	case EXPECT_TOTAL_RUNNING_GPUS: break;
	}
	UNREACHABLE();
}

/* `job/role`, of keys that look at tasks; the job's name alone in ret_name. */
static int read_role(struct reader *r, const struct conf *c, struct expect_item *item,
		     const char **ret_name)
{
	const char *slash = strchr(c->key, '/');

	*ret_name = c->key;
	if (!slash)
		return 0;
	if (item->key != EXPECT_RUNNING && item->key != EXPECT_PLACE)
		return conf_error(r->err, r->file, c, "%s is of a whole job: leave \"%s\" out",
				  expect_key_name(item->key), slash);
	*ret_name = arena_strndup(r->arena, c->key, (size_t)(slash - c->key));
	item->role = slash + 1;
	return 0;
}

/* A map by job (or node): one item per entry. */
static int read_map(struct reader *r, const struct conf *map, enum expect_key key,
		    struct expect_item *items)
{
	struct names names;
	const char *name;
	struct err why;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < map->count; i++) {
		const struct conf *c = map->items[i];

		items[i] = (struct expect_item){ .key = key, .label = c->key, .line = c->key_line };
		rc = read_role(r, c, &items[i], &name);
		if (rc < 0)
			return rc;
		if (parse_name_range(name, r->arena, SCENARIO_RANGE_MAX, &names.at, &names.count,
				     &why) < 0)
			return conf_error(r->err, r->file, c, "%s: %s", expect_key_name(key),
					  why.text);
		for (size_t k = 0; rc == 0 && k < names.count; k++)
			rc = key == EXPECT_NODE_STATE ? scenario_check_node(r, c, names.at[k])
						      : scenario_check_job(r, c, names.at[k]);
		for (size_t k = 0; rc == 0 && items[i].role && k < names.count; k++)
			rc = scenario_check_role(r, c, names.at[k], items[i].role);
		items[i].names = names.at;
		items[i].name_count = (uint32_t)names.count;
		if (rc == 0)
			rc = read_value(r, c, &items[i]);
	}
	return rc;
}

static bool key_is_map(enum expect_key key)
{
	return key == EXPECT_RUNNING || (key >= EXPECT_PLACE && key != EXPECT_TOTAL_RUNNING_GPUS);
}

static enum expect_key key_find(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(key_names); i++)
		if (strcmp(key_names[i], name) == 0)
			return (enum expect_key)i;
	UNREACHABLE(); /* only known keys come here */
}

static int read_key(struct reader *r, const struct conf *c, struct expect_item *items,
		    uint32_t *count)
{
	enum expect_key key = key_find(c->key);
	struct expect_item *item = &items[*count];

	if (key_is_map(key)) {
		if (c->type != CONF_MAP)
			return conf_error(r->err, r->file, c, "%s must be a map such as {%s: ...}",
					  c->key, key == EXPECT_NODE_STATE ? "node" : "job");
		*count += (uint32_t)c->count;
		return read_map(r, c, key, item);
	}
	*item = (struct expect_item){ .key = key, .label = c->key, .line = c->key_line };
	*count += 1;
	if (key == EXPECT_TOTAL_RUNNING_GPUS)
		return conf_int(r->err, r->file, c, c->key, 0, INT32_MAX, &item->number);
	return read_whole(r, c, item, key == EXPECT_EVICTED || key == EXPECT_MOVED);
}

static int read_expectation(struct reader *r, const struct conf *c, struct expectation *ret)
{
	const char *known[ARRAY_SIZE(key_names) + 1] = { "at" };
	struct expect_item *items;
	size_t room = 1;
	int rc;

	memcpy(known + 1, key_names, sizeof(key_names));
	rc = reader_map(r, c, "expectation", known, ARRAY_SIZE(known));
	ret->at_ms = SCENARIO_FOREVER;
	ret->line = c->line;
	if (rc == 0)
		rc = reader_duration(r, c, "at", "end", SCENARIO_FOREVER, &ret->at_ms);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < c->count; i++)
		room += c->items[i]->count + 1;
	items = arena_new_array(r->arena, struct expect_item, room);
	ret->items = items;
	for (size_t i = 0; rc == 0 && i < c->count; i++)
		if (strcmp(c->items[i]->key, "at") != 0)
			rc = read_key(r, c->items[i], items, &ret->item_count);
	if (rc == 0 && ret->item_count == 0)
		return conf_error(r->err, r->file, c, "this expectation expects nothing");
	return rc;
}

int scenario_read_expects(struct reader *r, const struct conf *list)
{
	struct expectation *expects;
	int rc = reader_list(r, list, "expect", SCENARIO_EVENTS_MAX);

	if (rc < 0)
		return rc;
	if (list->count == 0)
		return conf_error(r->err, r->file, list,
				  "expect is empty: a scenario that checks nothing always passes");
	expects = arena_new_array(r->arena, struct expectation, list->count);
	r->s->expects = expects;
	r->s->expect_count = (uint32_t)list->count;
	for (size_t i = 0; rc == 0 && i < list->count; i++) {
		rc = read_expectation(r, list->items[i], &expects[i]);
		if (rc == 0 && i && expects[i].at_ms < expects[i - 1].at_ms)
			return conf_error(
				r->err, r->file, list->items[i],
				"expectations are checked in order; this one is earlier than the one before it");
	}
	return rc;
}
