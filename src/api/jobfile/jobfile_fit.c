/* SPDX-License-Identifier: Apache-2.0 */
/* Wishes about the place in a job file that go beyond what a node must have: tasks apart from one another, the model of GPU. */
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "core/scheduling/queues/calendar.h"

int read_spread(struct reading *r, const struct conf *c, const char *what)
{
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &r->job->spread);

	if (rc < 0)
		return rc;
	if (parse_name(r->job->spread, what, &why) < 0)
		return conf_error(r->err, r->file, c, "%s", why.text);
	return 0;
}

static int read_speed(struct reading *r, const struct conf *c, const char *what, int64_t *ret)
{
	const char *text = "";
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (parse_milli(text, 1, SPEED_MOST, ret, &why) < 0)
		return conf_error(r->err, r->file, c, "%s: %s", what, why.text);
	return 0;
}

int read_capacity(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	uint8_t capacity;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (!capacity_find(text, &capacity))
		return conf_error(r->err, r->file, c,
				  "%s must be on-demand, spot or any, not \"%.60s\"", what, text);
	r->job->capacity = capacity;
	return 0;
}

int read_align(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (strcmp(text, "numa") == 0)
		r->job->align = ALIGN_NUMA;
	else if (strcmp(text, "nic") == 0)
		r->job->align = ALIGN_NIC;
	else
		return conf_error(r->err, r->file, c, "%s must be numa or nic, not \"%.60s\"", what,
				  text);
	return 0;
}

int read_label_table(struct reading *r, const struct conf *c, const char *what, uint32_t most,
		     const char **ret)
{
	if (c->type != CONF_MAP || !c->count || c->count > most)
		return conf_error(r->err, r->file, c,
				  "%s must be a map of 1 to %u labels, such as {pool: blue}", what,
				  most);
	for (size_t i = 0; i < c->count; i++) {
		const char *text;
		int rc = conf_text(r->err, r->file, c->items[i], what, NAME_MAX_BYTES, &text);

		if (rc < 0)
			return rc;
		if (!*text || strpbrk(text, ",=") || strpbrk(c->items[i]->key, ",=") ||
		    strlen(c->items[i]->key) + 1 + strlen(text) > NAME_MAX_BYTES)
			return conf_error(
				r->err, r->file, c->items[i],
				"%s: label and value are letters, digits, dots, hyphens, underscores and slashes, %d with the = between them",
				what, NAME_MAX_BYTES);
		*ret = arena_printf(r->arena, "%s%s%s=%s", *ret, i ? "," : "", c->items[i]->key,
				    text);
	}
	return 0;
}

int read_labels(struct reading *r, const struct conf *c, const char *what)
{
	return read_label_table(r, c, what, JOB_LABELS_MAX, &r->job->own_labels);
}

int read_apart_from(struct reading *r, const struct conf *c, const char *what)
{
	return read_label_table(r, c, what, JOB_LABELS_MAX, &r->job->apart_from);
}

static int read_level(struct reading *r, const struct conf *c, const char *what, const char **ret)
{
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, ret);

	if (rc < 0)
		return rc;
	return parse_name(*ret, what, &why) < 0 ? conf_error(r->err, r->file, c, "%s", why.text)
						: 0;
}

int read_apart_level(struct reading *r, const struct conf *c, const char *what)
{
	return read_level(r, c, what, &r->job->apart_level);
}

int read_apart_prefer(struct reading *r, const struct conf *c, const char *what)
{
	bool yes = false;
	int rc = conf_bool(r->err, r->file, c, what, &yes);

	r->job->apart_wish = yes;
	return rc;
}

int read_window(struct reading *r, const struct conf *c, const char *what)
{
	struct calendar calendar;
	struct err why;
	int rc = conf_text(r->err, r->file, c, what, NAME_MAX_BYTES, &r->job->window);

	if (rc < 0)
		return rc;
	if (!*r->job->window)
		return conf_error(r->err, r->file, c,
				  "%s is empty: leave it out to run at any time", what);
	if (calendar_parse(r->job->window, &calendar, &why) < 0)
		return conf_error(r->err, r->file, c, "%s: %s", what, why.text);
	return 0;
}

int read_window_end(struct reading *r, const struct conf *c, const char *what)
{
	const char *text;
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &text);

	if (rc < 0)
		return rc;
	if (strcmp(text, "stop") != 0 && strcmp(text, "finish") != 0)
		return conf_error(r->err, r->file, c, "%s must be stop or finish, not \"%.60s\"",
				  what, text);
	r->job->window_end = strcmp(text, "finish") == 0;
	return 0;
}

/* A text, or a list of them, as "a,b". */
int read_data(struct reading *r, const struct conf *c, const char *what)
{
	size_t count = c->type == CONF_LIST ? c->count : 1;

	if (!count || count > SHAPE_DATA_MAX)
		return conf_error(r->err, r->file, c, "%s takes 1 to %d names, not %zu", what,
				  SHAPE_DATA_MAX, count);
	for (size_t i = 0; i < count; i++) {
		const struct conf *item = c->type == CONF_LIST ? c->items[i] : c;
		const char *text;

		if (conf_text(r->err, r->file, item, what, NAME_MAX_BYTES, &text) < 0)
			return -(int)r->err->code;
		if (!*text || strchr(text, ','))
			return conf_error(r->err, r->file, item, "%s: \"%.63s\" is not a name",
					  what, text);
		r->job->data = arena_printf(r->arena, "%s%s%s", r->job->data, i ? "," : "", text);
	}
	return 0;
}

int read_throughput(struct reading *r, const struct conf *c, const char *what)
{
	if (c->type != CONF_MAP || !c->count || c->count > SHAPE_MODELS_MAX)
		return conf_error(
			r->err, r->file, c,
			"%s must be a map of 1 to %d models, such as {H100-80GB: 1.0, A100-80GB: 0.45}",
			what, SHAPE_MODELS_MAX);
	r->throughput = c;
	return 0;
}

int read_min_throughput(struct reading *r, const struct conf *c, const char *what)
{
	return read_speed(r, c, what, &r->job->min_throughput);
}

int read_mix_models(struct reading *r, const struct conf *c, const char *what)
{
	bool yes = false;
	int rc = conf_bool(r->err, r->file, c, what, &yes);

	r->job->mixes = yes;
	return rc;
}

/* Is the model, which ends at a comma or with the list, one of the map's? */
static const struct conf *speed_of(const struct conf *map, const char *model, size_t size)
{
	for (size_t i = 0; i < map->count; i++)
		if (strlen(map->items[i]->key) == size &&
		    memcmp(map->items[i]->key, model, size) == 0)
			return map->items[i];
	return NULL;
}

static int models_take(struct reading *r)
{
	for (size_t i = 0; i < r->throughput->count; i++) {
		const struct conf *item = r->throughput->items[i];
		struct err why;

		if (parse_name(item->key, "throughput: a model", &why) < 0)
			return jobfile_key_error(r, item, "%s", why.text);
		r->job->models =
			arena_printf(r->arena, "%s%s%s", r->job->models, i ? "," : "", item->key);
	}
	return 0;
}

int jobfile_fit_finish(struct reading *r)
{
	int64_t *speeds;
	uint32_t count = 0;

	if (!r->throughput)
		return 0;
	if (!*r->job->models && models_take(r) < 0)
		return -(int)r->err->code;
	speeds = arena_new_array(r->arena, int64_t, SHAPE_MODELS_MAX);
	for (const char *list = r->job->models; *list; count++) {
		size_t size = strcspn(list, ",");
		const struct conf *item = speed_of(r->throughput, list, size);

		if (!item)
			return conf_error(
				r->err, r->file, r->throughput,
				"throughput: model \"%.*s\" is accepted, but how fast it is is not said",
				(int)size, list);
		if (read_speed(r, item, "throughput", &speeds[count]) < 0)
			return -(int)r->err->code;
		list += size + (list[size] == ',');
	}
	if (count != r->throughput->count)
		return conf_error(
			r->err, r->file, r->throughput,
			"throughput: it names a model that `gpus: {model: ...}` does not accept");
	r->job->throughput = speeds;
	r->job->throughput_count = count;
	return 0;
}
