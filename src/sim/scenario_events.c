/* SPDX-License-Identifier: Apache-2.0 */
/* The reader's part for events: {at: 5m, node_down: n3}. */
#include "sim/scenario.h"

#include <string.h>

#include "base/check.h"
#include "base/parse.h"
#include "core/model/facts.h"
#include "sim/reader.h"

enum about {
	ABOUT_NODE,
	ABOUT_JOB,
	ABOUT_TASK,
	ABOUT_GPU,
	ABOUT_NEW_NODE,
	ABOUT_QUEUE,
	ABOUT_BOOKING,
	ABOUT_MASK,
	ABOUT_NAME
};

static const struct happening {
	const char *key;
	enum scenario_event_kind kind;
	enum about about;
} happenings[] = {
	{ "node_down", HAPPENS_NODE_DOWN, ABOUT_NODE },
	{ "node_up", HAPPENS_NODE_UP, ABOUT_NODE },
	{ "drain", HAPPENS_DRAIN, ABOUT_NODE },
	{ "maintenance", HAPPENS_MAINTENANCE, ABOUT_NODE },
	{ "add_node", HAPPENS_ADD_NODE, ABOUT_NEW_NODE },
	{ "gpu_down", HAPPENS_GPU_DOWN, ABOUT_GPU },
	{ "gpu_up", HAPPENS_GPU_UP, ABOUT_GPU },
	{ "set_queue", HAPPENS_SET_QUEUE, ABOUT_QUEUE },
	{ "reserve", HAPPENS_RESERVE, ABOUT_BOOKING },
	{ "unreserve", HAPPENS_UNRESERVE, ABOUT_NAME },
	{ "mask", HAPPENS_MASK, ABOUT_MASK },
	{ "finish", HAPPENS_FINISH, ABOUT_JOB },
	{ "fail", HAPPENS_FAIL, ABOUT_JOB },
	{ "cancel", HAPPENS_CANCEL, ABOUT_JOB },
	{ "hold", HAPPENS_HOLD, ABOUT_JOB },
	{ "release", HAPPENS_RELEASE, ABOUT_JOB },
	{ "lose_task", HAPPENS_LOSE_TASK, ABOUT_TASK },
	{ "end_task", HAPPENS_END_TASK, ABOUT_TASK },
	{ "torn_checkpoint", HAPPENS_TORN_CHECKPOINT, ABOUT_JOB },
};

static bool node_is_known(const struct scenario *s, const char *name)
{
	for (uint32_t i = 0; i < s->node_count; i++)
		if (strcmp(s->nodes[i].name, name) == 0)
			return true;
	for (uint32_t i = 0; i < s->event_count; i++)
		for (uint32_t k = 0; k < s->events[i].node_count; k++)
			if (strcmp(s->events[i].node[k].name, name) == 0)
				return true;
	return false;
}

int scenario_check_node(struct reader *r, const struct conf *c, const char *name)
{
	const char **names;

	if (node_is_known(r->s, name))
		return 0;
	names = arena_new_array(r->arena, const char *, r->s->node_count + 1);
	for (uint32_t i = 0; i < r->s->node_count; i++)
		names[i] = r->s->nodes[i].name;
	return reader_unknown(r, c, "node", name, names, r->s->node_count);
}

/* "gang/1": a name and a number behind a slash. */
static int read_part(struct reader *r, const struct conf *c, const char *what, uint32_t max,
		     struct scenario_event *event)
{
	const char *slash = c->type == CONF_SCALAR ? strchr(c->text, '/') : NULL;
	int64_t number;
	struct err why;

	if (!slash)
		return conf_error(r->err, r->file, c, "%s", what);
	if (parse_int(slash + 1, 0, max, &number, &why) < 0)
		return conf_error(r->err, r->file, c, "%s: %s", what, why.text);
	event->name = arena_strndup(r->arena, c->text, (size_t)(slash - c->text));
	event->number = (uint32_t)number;
	return 0;
}

static int read_queue(struct reader *r, const struct conf *c, struct scenario_event *event)
{
	struct scenario_queue check = { .name = "", .parent = "" };
	int rc = scenario_read_queue(r, c, &check);

	if (rc < 0)
		return rc;
	if (!*check.name)
		return conf_error(r->err, r->file, c, "set_queue needs the queue's name");
	event->name = check.name;
	event->queue = c;
	return 0;
}

static int read_idle(struct reader *r, const struct conf *c, struct scenario_booking *booking)
{
	const char *idle = "lend";
	int rc = reader_text(r, c, "idle", &idle);

	booking->keep = strcmp(idle, "keep") == 0;
	if (rc == 0 && !booking->keep && strcmp(idle, "lend") != 0)
		return conf_error(r->err, r->file, conf_find(c, "idle"),
				  "idle is lend or keep, not \"%s\"", idle);
	return rc;
}

/* {name: x, queue: a, gpus: 4 or nodes: [n0], model: M, from: 2h, to: 4h, idle: keep} */
static int read_booking(struct reader *r, const struct conf *c, struct scenario_event *event)
{
	static const char *const known[] = { "name",  "queue", "user", "team", "gpus",
					     "nodes", "model", "from", "to",   "idle" };
	struct scenario_booking *b = arena_new(r->arena, struct scenario_booking);
	struct names names = { .count = 0 };
	int rc = reader_map(r, c, "reserve", known, ARRAY_SIZE(known));

	*b = (struct scenario_booking){
		.name = "", .queue = "", .user = "", .team = "", .model = ""
	};
	if (rc == 0)
		rc = reader_text(r, c, "name", &b->name);
	if (rc == 0)
		rc = reader_text(r, c, "queue", &b->queue);
	if (rc == 0)
		rc = reader_text(r, c, "user", &b->user);
	if (rc == 0)
		rc = reader_text(r, c, "team", &b->team);
	if (!*b->queue && !*b->user && !*b->team)
		b->queue = "default";
	if (rc == 0)
		rc = reader_text(r, c, "model", &b->model);
	if (rc == 0)
		rc = reader_int(r, c, "gpus", 1, 1000000, &b->gpus);
	if (rc == 0)
		rc = reader_duration(r, c, "from", NULL, event->at_ms, &b->from_ms);
	if (rc == 0)
		rc = reader_duration(r, c, "to", NULL, 0, &b->to_ms);
	if (rc == 0)
		rc = read_idle(r, c, b);
	if (rc == 0 && conf_find(c, "nodes"))
		rc = reader_ranges(r, conf_find(c, "nodes"), "nodes", &names);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = scenario_check_node(r, conf_find(c, "nodes"), names.at[i]);
	b->nodes = names.at;
	b->node_count = (uint32_t)names.count;
	event->booking = b;
	event->name = b->name;
	return rc;
}

/* {name: m, nodes: n[0-3], why: "node affinity leaves 4"}; without nodes there are none in it. {name: m, ended: true} */
static int read_mask(struct reader *r, const struct conf *c, struct scenario_event *event)
{
	static const char *const known[] = { "name", "nodes", "why", "ended" };
	struct scenario_mask *mask = arena_new(r->arena, struct scenario_mask);
	struct names names = { .count = 0 };
	int rc = reader_map(r, c, "mask", known, ARRAY_SIZE(known));

	*mask = (struct scenario_mask){ .name = "", .why = "" };
	if (rc == 0)
		rc = reader_text(r, c, "name", &mask->name);
	if (rc == 0)
		rc = reader_text(r, c, "why", &mask->why);
	if (rc == 0)
		rc = reader_bool(r, c, "ended", &mask->ended);
	if (rc == 0 && conf_find(c, "nodes"))
		rc = reader_ranges(r, conf_find(c, "nodes"), "nodes", &names);
	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = scenario_check_node(r, conf_find(c, "nodes"), names.at[i]);
	mask->nodes = names.at;
	mask->node_count = (uint32_t)names.count;
	event->mask = mask;
	event->name = mask->name;
	return rc;
}

static int read_about(struct reader *r, const struct conf *c, enum about about,
		      struct scenario_event *event)
{
	struct scenario_node *nodes;
	struct names names;
	int rc;

	switch (about) {
	case ABOUT_NODE:
	case ABOUT_JOB:
		rc = reader_range(r, c, about == ABOUT_NODE ? "node" : "job", &names);
		for (size_t i = 0; rc == 0 && i < names.count; i++)
			rc = about == ABOUT_NODE ? scenario_check_node(r, c, names.at[i])
						 : scenario_check_job(r, c, names.at[i]);
		event->name = rc == 0 ? c->text : "";
		return rc;
	case ABOUT_TASK:
		rc = read_part(r, c, "a job and a rank are needed, as in gang/1", TASKS_MAX - 1,
			       event);
		return rc < 0 ? rc : scenario_check_job(r, c, event->name);
	case ABOUT_GPU:
		rc = read_part(r, c, "a node and a GPU index are needed, as in n0/3",
			       NODE_GPUS_MAX - 1, event);
		return rc < 0 ? rc : scenario_check_node(r, c, event->name);
	case ABOUT_NEW_NODE:
		if (conf_find(c, "fabric"))
			return conf_error(
				r->err, r->file, conf_find(c, "fabric"),
				"a node that comes later is built like the others of its model and number of GPUs: describe one of those");
		rc = scenario_read_nodes(r, c, &nodes, &event->node_count);
		event->node = rc == 0 ? nodes : NULL;
		return rc;
	case ABOUT_QUEUE: return read_queue(r, c, event);
	case ABOUT_BOOKING: return read_booking(r, c, event);
	case ABOUT_MASK: return read_mask(r, c, event);
	case ABOUT_NAME: return conf_text(r->err, r->file, c, "unreserve", 63, &event->name);
	}
	UNREACHABLE();
}

/* Without both it is called off. */
static int read_times(struct reader *r, const struct conf *item, struct scenario_event *event)
{
	int rc;

	if (event->kind != HAPPENS_MAINTENANCE)
		return 0;
	rc = reader_duration(r, item, "from", NULL, conf_find(item, "to") ? event->at_ms : 0,
			     &event->from_ms);
	if (rc == 0)
		rc = reader_duration(r, item, "to", NULL, 0, &event->to_ms);
	if (rc == 0 && event->from_ms && event->to_ms <= event->from_ms)
		return conf_error(r->err, r->file, item, "it must end after it begins");
	return rc;
}

static int read_event(struct reader *r, const struct conf *item, struct scenario_event *event)
{
	const char *known[ARRAY_SIZE(happenings) + 4] = { "at" };
	const struct happening *found = NULL;
	int rc;

	for (size_t i = 0; i < ARRAY_SIZE(happenings); i++)
		known[i + 1] = happenings[i].key;
	known[ARRAY_SIZE(happenings) + 1] = "within";
	known[ARRAY_SIZE(happenings) + 2] = "from";
	known[ARRAY_SIZE(happenings) + 3] = "to";
	rc = reader_map(r, item, "event", known, ARRAY_SIZE(known));
	if (rc == 0)
		rc = reader_duration(r, item, "at", NULL, 0, &event->at_ms);
	if (rc == 0)
		rc = reader_duration(r, item, "within", NULL, 0, &event->within_ms);
	if (rc < 0)
		return rc;
	for (size_t i = 0; i < ARRAY_SIZE(happenings); i++) {
		if (!conf_find(item, happenings[i].key))
			continue;
		if (found)
			return conf_error(
				r->err, r->file, item,
				"an event is one thing, this one is %s and %s; write two events",
				found->key, happenings[i].key);
		found = &happenings[i];
	}
	if (!found)
		return conf_error(r->err, r->file, item,
				  "the event says when, but not what happens");
	if (conf_find(item, "within") && found->kind != HAPPENS_DRAIN)
		return conf_error(r->err, r->file, item, "`within` goes with drain alone");
	if ((conf_find(item, "from") || conf_find(item, "to")) &&
	    found->kind != HAPPENS_MAINTENANCE)
		return conf_error(r->err, r->file, item,
				  "`from` and `to` go with maintenance alone");
	event->kind = found->kind;
	rc = read_times(r, item, event);
	if (rc < 0)
		return rc;
	event->line = item->line;
	return read_about(r, conf_find(item, found->key), found->about, event);
}

int scenario_read_events(struct reader *r, const struct conf *list)
{
	struct scenario_event *events;
	int rc = reader_list(r, list, "events", SCENARIO_EVENTS_MAX);

	if (rc < 0)
		return rc;
	events = arena_new_array(r->arena, struct scenario_event, list->count + 1);
	r->s->events = events;
	for (size_t i = 0; rc == 0 && i < list->count; i++) {
		rc = read_event(r, list->items[i], &events[i]);
		r->s->event_count = (uint32_t)i + 1;
	}
	return rc;
}
