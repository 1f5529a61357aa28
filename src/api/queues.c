/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queues. Whether the caller has to do with the queue is decided here, by its team; what he may change of it by the core
 * (core/scheduling/admit/queue_rights.h).
 */
#include <stdlib.h>
#include <string.h>
#include "api/call.h"
#include "api/order.h"
#include "api/money.h"
#include "api/zones.h"
#include "core/scheduling/queues/spend.h"
#include "api/tally.h"
#include "base/check.h"
#include "base/parse.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/queues/standing.h"

/* "H100-80GB=8,any=0.5": limits, guarantees of models as they are given. */
static const char *models_say(const struct facts *f, const struct name_id *models,
			      const int64_t *shares, struct arena *arena)
{
	const char *text = "";

	for (uint32_t i = 0; i < QUEUE_MODELS_MAX && models[i].v; i++)
		text = arena_printf(arena, "%s%s%s=%s", text, i ? "," : "",
				    facts_name(f, models[i]), share_text(arena, shares[i]));
	return text;
}

/* "critical,standard"; "" for none. */
static const char *tiers_say(uint8_t tiers, struct arena *arena)
{
	const char *text = "";

	for (int tier = TIER_CRITICAL; tier >= TIER_BEST_EFFORT; tier--)
		if (tiers >> tier & 1)
			text = arena_printf(arena, "%s%s%s", text, *text ? "," : "",
					    tier_name((uint8_t)tier));
	return text;
}

/* What the queue states of what it admits; what it does not state is not there. */
static void admits_add(struct buf *out, const struct queue *q, struct arena *arena)
{
	if (q->tiers)
		out_text(out, "tiers", tiers_say(q->tiers, arena));
	if (q->max_priority)
		out_int(out, "max_priority", q->max_priority < 0 ? 0 : q->max_priority);
	if (q->user_limit_share)
		out_share(out, "user_limit_gpus", q->user_limit_share);
	if (q->user_part)
		out_int(out, "user_limit_percent", q->user_part);
	if (q->user_waiting)
		out_int(out, "user_waiting", q->user_waiting);
}

static void queue_add(struct buf *out, const struct facts *f, const struct tally *tally,
		      uint32_t id, struct arena *arena)
{
	const struct queue *q = queue_get(f, (struct queue_id){ id });
	const struct tally_queue *t = &tally->queues[id - 1];

	out_object(out, NULL);
	out_text(out, "name", facts_name(f, q->name));
	out_text(out, "parent", q->parent.v ? facts_name(f, queue_get(f, q->parent)->name) : "");
	out_text(out, "team", facts_name(f, q->team));
	out_share(out, "guarantee_gpus", q->guarantee_share);
	if (q->limit_share >= 0)
		out_share(out, "limit_gpus", q->limit_share);
	out_int(out, "weight", q->weight);
	out_bool(out, "reserved", q->reserved);
	out_int(out, "default_limit_ms", q->default_limit_ms);
	out_int(out, "used_gpu_ms", q->used_gpu_ms);
	out_int(out, "past_gpu_ms", queue_past_gpu_ms(f, (struct queue_id){ id }, f->now_ms));
	out_text(out, "calendar", facts_text(f, q->calendar));
	admits_add(out, q, arena);
	out_text(out, "limit_models", models_say(f, q->limit_model, q->limit_model_share, arena));
	out_text(out, "guarantee_models",
		 models_say(f, q->guarantee_model, q->guarantee_model_share, arena));
	if (q->budget_ms) {
		out_text(out, "budget_left", money_text(arena, queue_left_micro(q)));
		out_text(out, "budget_spent", money_text(arena, q->spent_micro));
		out_int(out, "budget_ms", q->budget_ms);
		out_text(out, "currency", facts_name(f, q->currency));
	}
	out_int(out, "limit_cpu_milli", q->limit_cpu_milli);
	out_int(out, "limit_memory_mib", q->limit_ram_mib);
	out_int(out, "running", t->running);
	out_int(out, "waiting", t->waiting);
	out_share(out, "gpus", t->share);
	out_share(out, "promised_gpus", queue_guarantee(f, (struct queue_id){ id }));
	out_bool(out, "simulated", cluster_simulated(f));
	out_end(out, '}');
}

void handle_queue_list(struct call *call)
{
	const struct facts *f = call->facts;
	struct named *order = arena_new_array(call->arena, struct named, f->queues.count + 1);
	struct tally tally;
	struct buf out = BUF_INIT;
	uint32_t count = 0;

	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (q->name.v && !q->removed)
			order[count++] = (struct named){ facts_name(f, q->name), id };
	}
	named_sort(order, count);
	tally_init(&tally, f);
	out_object(&out, NULL);
	out_list(&out, "queues");
	for (uint32_t i = 0; i < count; i++)
		queue_add(&out, f, &tally, order[i].id, call->arena);
	out_end(&out, ']');
	out_end(&out, '}');
	tally_deinit(&tally);
	call_reply(call, 200, &out);
}

/* "8", "0.5" as a share; false when it is none. Exact: digits, no floating point. */
static bool share_parse(const char *text, int64_t *ret)
{
	int64_t whole = 0, part = 0, scale = 1;
	const char *p = text;

	while (*p >= '0' && *p <= '9' && whole <= 10000000)
		whole = whole * 10 + (*p++ - '0');
	if (p == text || whole > 10000000)
		return false;
	if (*p == '.')
		for (p++; *p >= '0' && *p <= '9' && scale < 1000000; p++, scale *= 10)
			part = part * 10 + (*p - '0');
	*ret = whole * GPU_SHARE + (part * GPU_SHARE + scale / 2) / scale;
	return !*p;
}

/* Also "-1" and "none" where none is allowed. */
static int share_read(const struct conf *body, const char *name, bool none_allowed, int64_t *ret,
		      struct err *err)
{
	const struct conf *c = conf_find(body, name);

	if (!c)
		return 0;
	if (c->type != CONF_SCALAR)
		return conf_error(err, body_file, c, "%s: expected a number of GPUs", name);
	if (none_allowed && (!strcmp(c->text, "-1") || !strcmp(c->text, "none"))) {
		*ret = -1;
		return 0;
	}
	if (!share_parse(c->text, ret))
		return conf_error(
			err, body_file, c,
			"%s: \"%.40s\" is not a number of GPUs from 0 to 10000000 with at most six decimals",
			name, c->text);
	return 0;
}

/* What is said of models under one key. */
struct models {
	const char *names; /* comma separated */
	int64_t *shares;
	uint32_t count;
	bool given;
};

/* "H100-80GB=8,any=4"; "" and "none" say nothing of any model. */
static int models_read(struct call *call, const struct conf *body, const char *key,
		       struct models *ret, struct err *err)
{
	const struct conf *c = conf_find(body, key);
	char *part, *rest;
	const char *text;

	*ret = (struct models){ .names = "" };
	if (!c)
		return 0;
	if (body_text(body, key, EVENT_TEXT_MAX, &text, &ret->given, err) < 0)
		return -(int)err->code;
	ret->shares = arena_new_array(call->arena, int64_t, QUEUE_MODELS_MAX);
	rest = arena_strdup(call->arena, strcmp(text, "none") == 0 ? "" : text);
	while (*rest) {
		char *end = strchr(rest, ','), *is;

		part = rest;
		rest = end ? end + 1 : rest + strlen(rest);
		if (end)
			*end = '\0';
		is = strchr(part, '=');
		if (ret->count == QUEUE_MODELS_MAX)
			return conf_error(err, body_file, c, "%s: more than %d models", key,
					  QUEUE_MODELS_MAX);
		if (!is || is == part || !share_parse(is + 1, &ret->shares[ret->count]))
			return conf_error(err, body_file, c,
					  "%s: \"%.80s\" is not like MODEL=GPUS, such as "
					  "H100-80GB=8,any=4",
					  key, part);
		*is = '\0';
		ret->names = arena_printf(call->arena, "%s%s%s", ret->names,
					  ret->count++ ? "," : "", part);
	}
	return 0;
}

/* A guarantee without models takes the place of one by model. */
static int pledges_read(struct call *call, const struct conf *body, struct event_queue_set *e,
			struct err *err)
{
	struct models models;
	int rc = models_read(call, body, "guarantee_models", &models, err);

	if (rc < 0 || (!models.given && !conf_find(body, "guarantee_gpus")))
		return rc;
	e->guarantee_models = models.names;
	e->guarantee_model_shares = models.shares;
	e->guarantee_model_shares_count = models.count;
	if (models.given && !models.count && !conf_find(body, "guarantee_gpus"))
		e->guarantee_share = 0;
	return rc;
}

static int limit_models_read(struct call *call, const struct conf *body, struct event_queue_set *e,
			     struct err *err)
{
	struct models models;
	int rc = models_read(call, body, "limit_models", &models, err);

	if (rc < 0 || !models.given)
		return rc;
	e->limit_models = models.names;
	e->limit_model_shares = models.shares;
	e->limit_model_shares_count = models.count;
	return rc;
}

static int bounds_read(struct call *call, const struct conf *body, struct event_queue_set *e,
		       struct err *err)
{
	const struct conf *memory = conf_find(body, "limit_memory");
	int64_t cpus = 0;
	bool given = false;
	int rc = limit_models_read(call, body, e, err);

	if (rc >= 0)
		rc = pledges_read(call, body, e, err);
	if (rc >= 0)
		rc = body_int(body, "limit_cpus", 0, 1000000000, &cpus, &given, err);
	if (rc >= 0 && given)
		e->limit_cpu_milli = cpus * 1000;
	if (rc >= 0 && memory && memory->type == CONF_SCALAR && strcmp(memory->text, "0") == 0)
		e->limit_ram_mib = 0;
	else if (rc >= 0 && memory)
		rc = conf_size_mib(err, body_file, memory, "limit_memory", &e->limit_ram_mib);
	return rc;
}

/* "critical,standard"; "default" states nothing. */
static int tiers_read(struct call *call, const struct conf *body, int64_t *ret, struct err *err)
{
	static const char *const words[] = { "best-effort", "standard", "critical" };
	const struct conf *c = conf_find(body, "tiers");
	const char *text = "", *hint;
	char *rest, *part;
	uint8_t tier;
	bool given;

	if (!c)
		return 0;
	if (body_text(body, "tiers", EVENT_TEXT_MAX, &text, &given, err) < 0)
		return -(int)err->code;
	*ret = 0;
	if (strcmp(text, "default") == 0)
		return 0;
	rest = arena_strdup(call->arena, text);
	while ((part = strsep(&rest, ","))) {
		if (!tier_find(part, &tier)) {
			hint = spelling_hint(part, words, ARRAY_SIZE(words));
			return conf_error(
				err, body_file, c, "tiers: there is no tier \"%.40s\"%s%s%s", part,
				hint ? "; did you mean \""
				     : ": name some of critical, standard, best-effort, or default",
				hint ? hint : "", hint ? "\"?" : "");
		}
		*ret |= 1 << tier;
	}
	return 0;
}

/* A number from `min` on; "none" states nothing. */
static int stated_read(const struct conf *body, const char *name, int64_t min, int64_t max,
		       bool *ret_given, int64_t *ret, struct err *err)
{
	const struct conf *c = conf_find(body, name);
	struct err why;

	*ret_given = c != NULL;
	if (c && c->type == CONF_SCALAR && strcmp(c->text, "none") == 0) {
		*ret = 0;
		*ret_given = false;
		return 0;
	}
	if (!c)
		return 0;
	if (c->type != CONF_SCALAR || parse_int(c->text, min, max, ret, &why) < 0)
		return conf_error(err, body_file, c,
				  "%s: expected a whole number from %lld to %lld, or none", name,
				  (long long)min, (long long)max);
	return 0;
}

static int user_limit_read(const struct conf *body, int64_t *ret, struct err *err)
{
	const struct conf *c = conf_find(body, "user_limit_gpus");
	const int rc = share_read(body, "user_limit_gpus", true, ret, err);

	if (rc < 0 || !c)
		return rc;
	if (*ret == 0)
		return conf_error(
			err, body_file, c,
			"user_limit_gpus: 0 would keep every user from running jobs; give a number of GPUs, or none");
	if (*ret < 0)
		*ret = 0;
	return 0;
}

static int admits_read(struct call *call, const struct conf *body, struct event_queue_set *e,
		       struct err *err)
{
	bool given;
	int rc = tiers_read(call, body, &e->tiers, err);

	if (rc >= 0)
		rc = stated_read(body, "max_priority", 0, PRIORITY_MOST, &given, &e->max_priority,
				 err);
	if (rc >= 0 && given && e->max_priority == 0)
		e->max_priority = -1;
	if (rc >= 0)
		rc = user_limit_read(body, &e->user_limit_share, err);
	if (rc >= 0)
		rc = stated_read(body, "user_limit_percent", 1, 100, &given, &e->user_part, err);
	if (rc >= 0)
		rc = stated_read(body, "user_waiting", 1, USER_WAITING_MOST, &given,
				 &e->user_waiting, err);
	return rc;
}

static int limit_read(const struct conf *body, int64_t *ret, struct err *err)
{
	const struct conf *c = conf_find(body, "default_limit");

	return c ? conf_duration(err, body_file, c, "default_limit", ret) : 0;
}

static uint32_t models_begin(const struct facts *f, const struct name_id *models,
			     const int64_t *from, struct arena *arena, const char **ret_names,
			     const int64_t **ret_shares)
{
	int64_t *shares = arena_new_array(arena, int64_t, QUEUE_MODELS_MAX);
	uint32_t count = 0;

	for (; count < QUEUE_MODELS_MAX && models[count].v; count++) {
		*ret_names = arena_printf(arena, "%s%s%s", *ret_names, count ? "," : "",
					  facts_name(f, models[count]));
		shares[count] = from[count];
	}
	*ret_shares = shares;
	return count;
}

static void limits_begin(const struct facts *f, const struct queue *q, struct arena *arena,
			 struct event_queue_set *e)
{
	e->limit_model_shares_count = models_begin(f, q->limit_model, q->limit_model_share, arena,
						   &e->limit_models, &e->limit_model_shares);
	e->guarantee_model_shares_count =
		models_begin(f, q->guarantee_model, q->guarantee_model_share, arena,
			     &e->guarantee_models, &e->guarantee_model_shares);
	e->limit_cpu_milli = q->limit_cpu_milli;
	e->limit_ram_mib = q->limit_ram_mib;
}

/* The queue as it is, or a new one's first values. */
static void queue_begin(const struct facts *f, const char *name, struct arena *arena,
			struct event_queue_set *e)
{
	const struct queue_id id = facts_queue_find(f, name);
	const struct queue *q;

	e->name = name;
	e->limit_share = -1;
	e->weight = 1;
	if (!id.v)
		return;
	q = queue_get(f, id);
	e->parent = q->parent.v ? facts_name(f, queue_get(f, q->parent)->name) : "";
	e->guarantee_share = q->guarantee_share;
	e->limit_share = q->limit_share;
	e->weight = q->weight;
	e->reserved = q->reserved;
	e->default_limit_ms = q->default_limit_ms;
	e->team = facts_name(f, q->team);
	e->used_gpu_ms = q->used_gpu_ms;
	e->calendar = facts_text(f, q->calendar);
	e->tiers = q->tiers;
	e->max_priority = q->max_priority;
	e->user_limit_share = q->user_limit_share;
	e->user_part = q->user_part;
	e->user_waiting = q->user_waiting;
	limits_begin(f, q, arena, e);
}

static int queue_read(struct call *call, struct event_queue_set *e, struct err *err)
{
	const struct conf *body;
	bool given, reserved = e->reserved != 0;
	int rc = call_body(call, &body, err);

	if (rc >= 0)
		rc = body_text(body, "parent", NAME_MAX_BYTES, &e->parent, &given, err);
	if (rc >= 0)
		rc = body_text(body, "team", NAME_MAX_BYTES, &e->team, &given, err);
	if (rc >= 0)
		rc = share_read(body, "guarantee_gpus", false, &e->guarantee_share, err);
	if (rc >= 0)
		rc = share_read(body, "limit_gpus", true, &e->limit_share, err);
	if (rc >= 0)
		rc = body_int(body, "weight", 1, 1000000, &e->weight, &given, err);
	if (rc >= 0)
		rc = body_bool(body, "reserved", &reserved, &given, err);
	if (rc >= 0)
		rc = limit_read(body, &e->default_limit_ms, err);
	if (rc >= 0)
		rc = bounds_read(call, body, e, err);
	if (rc >= 0)
		rc = admits_read(call, body, e, err);
	if (rc >= 0)
		rc = body_text(body, "calendar", CALENDAR_TEXT_MAX, &e->calendar, &given, err);
	e->reserved = reserved;
	return rc;
}

/* Of a queue that is not there yet its parent counts. */
static enum relation queue_relation(const struct call *call, const char *name, const char *parent)
{
	const struct facts *f = call->facts;
	const struct queue_id id = facts_queue_find(f, name),
			      queue = id.v ? id : facts_queue_find(f, parent);

	if (call->caller.role == ROLE_LEAD && rights_lead(f, call->caller.id, queue))
		return RELATION_TEAM;
	return relation_of_owner(call, NULL, facts_name(f, rights_team(f, queue)));
}

void handle_queue_set(struct call *call)
{
	struct event events[2] = { { 0 }, call_event(call, EVENT_QUEUE_SET) };
	struct event_queue_set *e = &events[1].queue_set;
	const char *name = call->match.param[0];
	struct err err = { 0 };

	queue_begin(call->facts, name, call->arena, e);
	e->by = call->caller.id;
	if (parse_name(name, "queue", &err) < 0 || queue_read(call, e, &err) < 0 ||
	    call_permit(call, queue_relation(call, name, e->parent),
			arena_printf(call->arena, "queue \"%s\"", name), &err) < 0 ||
	    (zone_wanted(call, e->calendar, &events[0], &err) < 0 &&
	     err_prefix(&err, "queue \"%s\": calendar", name) < 0))
		call_fail(call, &err);
	else if (events[0].kind)
		call_send_all(call, events, 2);
	else
		call_send(call, &events[1]);
}

/* The unit stays as it was when none is given. */
void handle_budget_set(struct call *call)
{
	struct event event = call_event(call, EVENT_BUDGET_SET);
	const char *name = call->match.param[0];
	const struct queue_id id = facts_queue_find(call->facts, name);
	const struct conf *body;
	struct err err = { 0 };
	bool given;

	if (!id.v) {
		err_set(&err, ERR_NOT_FOUND, "there is no queue \"%s\"", name);
		call_fail(call, &err);
		return;
	}
	event.budget_set.queue = name;
	event.budget_set.by = call->caller.id;
	event.budget_set.currency = facts_name(call->facts, queue_get(call->facts, id)->currency);
	if (call_body(call, &body, &err) < 0 ||
	    money_read(body, "left", &event.budget_set.left_micro, &err) < 0 ||
	    body_text(body, "currency", NAME_MAX_BYTES, &event.budget_set.currency, &given, &err) <
		    0 ||
	    call_permit(call, queue_relation(call, name, ""),
			arena_printf(call->arena, "queue \"%s\"", name), &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}

void handle_queue_remove(struct call *call)
{
	struct event event = call_event(call, EVENT_QUEUE_REMOVED);
	const char *name = call->match.param[0];
	struct err err = { 0 };

	if (!facts_queue_find(call->facts, name).v) {
		err_set(&err, ERR_NOT_FOUND, "there is no queue \"%s\"", name);
		call_fail(call, &err);
		return;
	}
	event.queue_removed.name = name;
	event.queue_removed.by = call->caller.id;
	if (call_permit(call, queue_relation(call, name, ""),
			arena_printf(call->arena, "queue \"%s\"", name), &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}
