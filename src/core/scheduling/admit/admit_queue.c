/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of commands about queues. */
#include "core/scheduling/admit/admit.h"

#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/model/apply.h"
#include "core/scheduling/admit/queue_rights.h"
#include "core/scheduling/queues/bounds.h"
#include "core/scheduling/queues/calendar.h"

bool queue_is_below(const struct facts *f, struct queue_id queue, struct queue_id top)
{
	for (; queue.v; queue = queue_get(f, queue)->parent)
		if (queue.v == top.v)
			return true;
	return false;
}

/* Guarantees of the queues below `parent`, `except` left out. */
static int64_t children_guarantee(const struct facts *f, struct queue_id parent,
				  struct queue_id except)
{
	int64_t sum = 0;

	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (id != except.v && !q->removed && q->parent.v == parent.v)
			sum += q->guarantee_share;
	}
	return sum;
}

static int guarantee_check(const struct admission *a, const struct event_queue_set *e,
			   struct queue_id id, struct queue_id parent)
{
	const struct facts *f = a->facts;
	int64_t taken, below;

	if (e->limit_share >= 0 && e->guarantee_share > e->limit_share)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": guarantee %s is more than its limit %s", e->name,
			       share_text(a->arena, e->guarantee_share),
			       share_text(a->arena, e->limit_share));
	below = id.v ? children_guarantee(f, id, (struct queue_id){ 0 }) : 0;
	if (below > e->guarantee_share)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\": guarantee %s is less than the %s GPUs promised to the queues below it",
			e->name, share_text(a->arena, e->guarantee_share),
			share_text(a->arena, below));
	if (!parent.v || !e->guarantee_share)
		return 0;
	taken = children_guarantee(f, parent, id);
	if (taken + e->guarantee_share <= queue_get(f, parent)->guarantee_share)
		return 0;
	return err_set(
		a->err, ERR_INVALID,
		"queue \"%s\": guarantee %s is more than the %s GPUs left of its parent \"%s\"'s guarantee of %s",
		e->name, share_text(a->arena, e->guarantee_share),
		share_text(a->arena, queue_get(f, parent)->guarantee_share - taken),
		facts_name(f, queue_get(f, parent)->name),
		share_text(a->arena, queue_get(f, parent)->guarantee_share));
}

static bool models_are(const struct facts *f, const struct name_id *models, const int64_t *shares,
		       const char *list, const int64_t *given, uint32_t given_count)
{
	char part[NAME_MAX_BYTES + 1];
	uint32_t count = 0;

	for (; list_next(&list, part); count++)
		if (count == QUEUE_MODELS_MAX || count == given_count ||
		    strcmp(facts_name(f, models[count]), part) != 0 ||
		    shares[count] != given[count])
			return false;
	return count == QUEUE_MODELS_MAX || !models[count].v;
}

bool queue_limits_are(const struct facts *f, const struct queue *q, const struct event_queue_set *e)
{
	return models_are(f, q->limit_model, q->limit_model_share, e->limit_models,
			  e->limit_model_shares, e->limit_model_shares_count) &&
	       q->limit_cpu_milli == e->limit_cpu_milli && q->limit_ram_mib == e->limit_ram_mib;
}

bool queue_pledges_are(const struct facts *f, const struct queue *q,
		       const struct event_queue_set *e)
{
	return models_are(f, q->guarantee_model, q->guarantee_model_share, e->guarantee_models,
			  e->guarantee_model_shares, e->guarantee_model_shares_count);
}

static bool queue_admits_are(const struct queue *q, const struct event_queue_set *e)
{
	return q->tiers == e->tiers && q->max_priority == e->max_priority &&
	       q->user_limit_share == e->user_limit_share && q->user_part == e->user_part &&
	       q->user_waiting == e->user_waiting;
}

/* `what`: "limit", "guarantee". */
static int admit_models(const struct admission *a, const char *queue, const char *what,
			const char *list, const int64_t *shares, uint32_t shares_count)
{
	const char *rest;
	char part[NAME_MAX_BYTES + 1], other[NAME_MAX_BYTES + 1];
	int count = admit_names(a, arena_printf(a->arena, "%s's model", what), list,
				QUEUE_MODELS_MAX, false);

	if (count < 0)
		return count;
	if ((uint32_t)count != shares_count)
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\": %d models are named and %u %ss given", queue, count,
			       shares_count, what);
	for (uint32_t i = 0; list_next(&list, part); i++) {
		if (admit_range(a,
				arena_printf(a->arena, "a queue's %s of a model in shares", what),
				shares[i], 0, INT64_C(1000000) * GPU_SHARE) < 0)
			return -(int)ERR_INVALID;
		for (rest = list; list_next(&rest, other);)
			if (strcmp(part, other) == 0)
				return err_set(a->err, ERR_INVALID,
					       "queue \"%s\": model \"%s\" has two %ss", queue,
					       part, what);
	}
	return 0;
}

static int admit_limits(const struct admission *a, const struct event_queue_set *e)
{
	int rc = admit_models(a, e->name, "limit", e->limit_models, e->limit_model_shares,
			      e->limit_model_shares_count);

	if (rc == 0)
		rc = admit_range(a, "a queue's limit of processors in thousandths",
				 e->limit_cpu_milli, 0, INT64_C(1000000000000));
	if (rc == 0)
		rc = admit_range(a, "a queue's limit of memory in MiB", e->limit_ram_mib, 0,
				 INT64_C(1000000000000));
	return rc;
}

/* What the queues below `parent` but `except` are promised of the model that stands at `index` in its guarantee. */
static int64_t children_pledge(const struct facts *f, struct queue_id parent, int index,
			       struct queue_id except)
{
	const struct queue *above = queue_get(f, parent);
	int64_t sum = 0;

	for (uint32_t id = 1; id <= f->queues.count; id++) {
		const struct queue *q = queue_get(f, (struct queue_id){ id });

		if (id == except.v || q->removed || q->parent.v != parent.v)
			continue;
		for (int i = 0; i < QUEUE_MODELS_MAX && q->guarantee_model[i].v; i++)
			if (models_index(f, above->guarantee_model, q->guarantee_model[i]) == index)
				sum += q->guarantee_model_share[i];
	}
	return sum;
}

/* A parent whose guarantee is by model has promised as much of each model to those below it at most. */
static int pledge_check(const struct admission *a, const struct event_queue_set *e,
			struct queue_id id, struct queue_id parent)
{
	const struct facts *f = a->facts;
	const struct queue *above = parent.v ? queue_get(f, parent) : NULL;
	const char *list = e->guarantee_models;
	char part[NAME_MAX_BYTES + 1];

	if (!above || !above->guarantee_model[0].v)
		return 0;
	for (uint32_t i = 0; list_next(&list, part); i++) {
		int index = models_index(f, above->guarantee_model, facts_name_find(f, part));
		int64_t left = index < 0 ? 0
					 : above->guarantee_model_share[index] -
						   children_pledge(f, parent, index, id);

		if (e->guarantee_model_shares[i] > left)
			return err_set(
				a->err, ERR_INVALID,
				"queue \"%s\": a guarantee of %s %s is more than the %s left of the guarantee of its parent \"%s\"",
				e->name, share_text(a->arena, e->guarantee_model_shares[i]), part,
				share_text(a->arena, left > 0 ? left : 0),
				facts_name(f, above->name));
	}
	return 0;
}

/* What the queue promises of each model to those below it must stay covered. */
static int pledge_below_check(const struct admission *a, const struct event_queue_set *e,
			      struct queue_id id)
{
	const struct facts *f = a->facts;
	struct name_id models[QUEUE_MODELS_MAX] = { { 0 } };
	int64_t left[QUEUE_MODELS_MAX];
	const char *list = e->guarantee_models;
	char part[NAME_MAX_BYTES + 1];
	bool any = *list, named[QUEUE_MODELS_MAX] = { false };
	int any_at = -1;
	uint32_t count = 0;

	for (; list_next(&list, part); count++) {
		models[count] = facts_name_find(f, part);
		named[count] = models[count].v != 0;
		any_at = strcmp(part, "any") == 0 ? (int)count : any_at;
		left[count] = e->guarantee_model_shares[count];
	}
	for (uint32_t q = 1; any && id.v && q <= f->queues.count; q++) {
		const struct queue *below = queue_get(f, (struct queue_id){ q });

		if (below->removed || below->parent.v != id.v)
			continue;
		for (int i = 0; i < QUEUE_MODELS_MAX && below->guarantee_model[i].v; i++) {
			int index = any_at;

			for (uint32_t k = 0; k < count; k++)
				if (named[k] && name_same(models[k], below->guarantee_model[i]))
					index = (int)k;
			if (index < 0 || (left[index] -= below->guarantee_model_share[i]) < 0)
				return err_set(
					a->err, ERR_CONFLICT,
					"queue \"%s\": its guarantee must cover the %s %s promised to queue \"%s\" below it",
					e->name,
					share_text(a->arena, below->guarantee_model_share[i]),
					facts_name(f, below->guarantee_model[i]),
					facts_name(f, below->name));
		}
	}
	return 0;
}

/* A guarantee by model: its sum is the queue's guarantee. */
static int admit_pledges(const struct admission *a, struct event_queue_set *e)
{
	int rc = admit_models(a, e->name, "guarantee", e->guarantee_models,
			      e->guarantee_model_shares, e->guarantee_model_shares_count);

	if (rc < 0 || !*e->guarantee_models)
		return rc;
	e->guarantee_share = 0;
	for (uint32_t i = 0; i < e->guarantee_model_shares_count; i++)
		e->guarantee_share += e->guarantee_model_shares[i];
	return 0;
}

static bool queue_is(const struct facts *f, const struct queue *q, const struct event_queue_set *e,
		     struct queue_id parent)
{
	return !q->removed && q->parent.v == parent.v && q->guarantee_share == e->guarantee_share &&
	       q->limit_share == e->limit_share && q->weight == e->weight &&
	       q->reserved == (e->reserved != 0) && q->default_limit_ms == e->default_limit_ms &&
	       strcmp(facts_name(f, q->team), e->team) == 0 &&
	       strcmp(facts_text(f, q->calendar), e->calendar) == 0 && queue_limits_are(f, q, e) &&
	       queue_pledges_are(f, q, e) && queue_admits_are(q, e);
}

static int admit_calendar(const struct admission *a, const struct event_queue_set *e)
{
	struct calendar calendar;
	struct err why;

	if (calendar_read(a->facts, e->calendar, &calendar, &why) == 0)
		return 0;
	return err_set(a->err, why.code, "queue \"%s\": %s", e->name, why.text);
}

static int admit_admits(const struct admission *a, const struct event_queue_set *e)
{
	const struct {
		const char *what;
		int64_t value, min, max;
	} fields[] = {
		{ "what a queue states of tiers, as bits,", e->tiers, 0, TIERS_ALL },
		{ "a queue's highest priority", e->max_priority, -1, PRIORITY_MOST },
		{ "a queue's limit per user in shares", e->user_limit_share, 0,
		  INT64_C(1000000) * GPU_SHARE },
		{ "a user's part of a queue in percent", e->user_part, 0, 100 },
		{ "a queue's limit of waiting jobs per user", e->user_waiting, 0,
		  USER_WAITING_MOST },
	};

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (admit_range(a, fields[i].what, fields[i].value, fields[i].min, fields[i].max) <
		    0)
			return -(int)ERR_INVALID;
	return 0;
}

/* A tier that a queue above closes would be stated in vain. */
static int tiers_check(const struct admission *a, const struct event_queue_set *e,
		       struct queue_id parent)
{
	const struct facts *f = a->facts;

	for (; e->tiers && parent.v; parent = queue_get(f, parent)->parent) {
		const struct queue *above = queue_get(f, parent);
		const int64_t closed = above->tiers ? e->tiers & ~(int64_t)above->tiers : 0;

		if (closed)
			return err_set(
				a->err, ERR_INVALID,
				"queue \"%s\": tier %s is not admitted by queue \"%s\" above it; state it there first, which %s may do",
				e->name, tier_name((uint8_t)__builtin_ctzll((uint64_t)closed)),
				facts_name(f, above->name), rights_who(f, parent, a->arena));
	}
	return 0;
}

int admit_queue_set(const struct admission *a, struct event_queue_set *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = facts_queue_find(f, e->name), parent = { 0 };
	uint32_t user;
	int rc = admit_name(a, "queue", e->name);

	if (rc == 0)
		rc = rights_asker(a, e->by, &user);
	if (rc < 0)
		return rc;
	if (strcmp(e->name, "root") == 0)
		return err_set(
			a->err, ERR_INVALID,
			"queue \"root\" stands above all others and can't be made or changed");
	if (*e->parent && strcmp(e->parent, "root") != 0) {
		parent = admit_queue_find(a, e->parent);
		if (!parent.v)
			return -(int)ERR_NOT_FOUND;
	}
	if (id.v && queue_is_below(f, parent, id))
		return err_set(a->err, ERR_INVALID,
			       "queue \"%s\" can't lie below \"%s\", which lies below it", e->name,
			       e->parent);
	if (*e->team && !facts_team_find(f, e->team))
		return err_set(a->err, ERR_NOT_FOUND, "queue \"%s\": team \"%s\" does not exist",
			       e->name, e->team);
	if (e->weight == 0)
		e->weight = 1;
	rc = rights_queue_set(a, user, e, parent);
	if (rc == 0)
		rc = admit_pledges(a, e);
	if (rc == 0)
		rc = admit_range(a, "a queue's weight", e->weight, 1, 1000000);
	if (rc == 0)
		rc = admit_range(a, "a queue's guarantee in shares", e->guarantee_share, 0,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's limit in shares", e->limit_share, -1,
				 INT64_C(1000000) * GPU_SHARE);
	if (rc == 0)
		rc = admit_range(a, "a queue's default run-time limit in ms", e->default_limit_ms,
				 0, ADMIT_DURATION_MAX_MS);
	if (rc == 0)
		rc = admit_calendar(a, e);
	if (rc == 0)
		rc = admit_limits(a, e);
	if (rc == 0)
		rc = admit_admits(a, e);
	if (rc == 0)
		rc = tiers_check(a, e, parent);
	if (rc == 0)
		rc = guarantee_check(a, e, id, parent);
	if (rc == 0)
		rc = pledge_check(a, e, id, parent);
	if (rc == 0)
		rc = pledge_below_check(a, e, id);
	if (rc < 0)
		return rc;
	return id.v && queue_is(f, queue_get(f, id), e, parent) ? CORE_ALREADY : 0;
}

int admit_queue_removed(const struct admission *a, const struct event_queue_removed *e)
{
	const struct facts *f = a->facts;
	struct queue_id id = admit_queue_find(a, e->name);
	uint32_t jobs = 0, first = 0, user;
	int rc = id.v ? rights_asker(a, e->by, &user) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = rights_queue(a, user, id, "remove it");
	if (rc < 0)
		return rc;
	if (strcmp(e->name, "default") == 0)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"default\" can't be removed: jobs that name no queue go there");
	for (uint32_t q = 1; q <= f->queues.count; q++)
		if (queue_get(f, (struct queue_id){ q })->parent.v == id.v &&
		    !queue_get(f, (struct queue_id){ q })->removed)
			return err_set(
				a->err, ERR_CONFLICT,
				"queue \"%s\" has queue \"%s\" below it; remove that one first",
				e->name, facts_name(f, queue_get(f, (struct queue_id){ q })->name));
	for (uint32_t row = 1; row <= f->bookings.count; row++)
		if (booking_get(f, row)->name.v && booking_get(f, row)->queue.v == id.v)
			return err_set(a->err, ERR_CONFLICT,
				       "queue \"%s\" has reservation \"%s\"; delete that one first",
				       e->name, facts_name(f, booking_get(f, row)->name));
	for (uint32_t job = 1; job <= f->jobs.count; job++) {
		if (job_get(f, (struct job_id){ job })->queue.v != id.v ||
		    job_state_is_final(job_get(f, (struct job_id){ job })->state))
			continue;
		first = first ? first : job;
		jobs++;
	}
	if (jobs)
		return err_set(
			a->err, ERR_CONFLICT,
			"queue \"%s\" has %u jobs that are not over (job %u is the first); cancel them or wait",
			e->name, jobs, first);
	return 0;
}

/* --- money ---------------------------------------------------------------------------------------------- */

enum { PRICES_MAX = 1000 };
#define MONEY_MAX_MICRO (INT64_C(1000000000000) * 1000000)

/* A row of the prices is its own for ever, whether it has a price now or not. */
static bool price_was_set(const struct facts *facts, const char *model)
{
	for (uint32_t row = 1; row <= facts->prices.count; row++) {
		const struct price *price = table_get(&facts->prices, row);

		if (strcmp(facts_name(facts, price->model), model) == 0)
			return true;
	}
	return false;
}

int admit_price_set(const struct admission *a, const struct event_price_set *e)
{
	static const char spot[] = "spot:"; /* what it costs on spot nodes */
	const size_t before = strncmp(e->model, spot, sizeof(spot) - 1) == 0 ? sizeof(spot) - 1 : 0;
	int rc = admit_name(a, "model", e->model + before);

	if (rc == 0 && strlen(e->model) > NAME_MAX_BYTES)
		rc = err_set(a->err, ERR_INVALID, "the name \"%s\" is longer than %d characters",
			     e->model, NAME_MAX_BYTES);
	if (rc == 0)
		rc = admit_range(a, "a price in millionths per hour", e->micro_per_hour, -1,
				 MONEY_MAX_MICRO);
	if (rc == 0 && a->facts->prices.count >= PRICES_MAX && !price_was_set(a->facts, e->model))
		return err_set(a->err, ERR_INVALID,
			       "prices were set for %d models; there is no room for one of \"%s\"",
			       PRICES_MAX, e->model);
	return rc;
}

/* --- data ----------------------------------------------------------------------------------------------- */

/* Its row, whether anybody still says how large it is or not. */
static const struct data_set *data_row(const struct facts *facts, const char *name)
{
	for (uint32_t row = 1; row <= facts->data_sets.count; row++) {
		const struct data_set *d = table_get(&facts->data_sets, row);

		if (strcmp(facts_name(facts, d->name), name) == 0)
			return d;
	}
	return NULL;
}

int admit_data_set(const struct admission *a, const struct event_data_set *e)
{
	const struct data_set *known;
	char list[EVENT_TEXT_MAX + 1];
	int rc = *e->name ? admit_labels(a, "data set", e->name, 1, false)
			  : err_set(a->err, ERR_INVALID, "a data set needs a name");

	if (rc == 0)
		rc = admit_range(a, "the size of a data set in MiB", e->size_mib, 0, UINT32_MAX);
	if (rc == 0)
		rc = admit_names(a, "place of a data set", e->places, DATA_PLACES_MAX, false);
	if (rc < 0)
		return rc;
	known = data_row(a->facts, e->name);
	if (known && known->size_mib == e->size_mib &&
	    strcmp(names_text(a->facts, known->place, DATA_PLACES_MAX, list), e->places) == 0)
		return CORE_ALREADY;
	if (!known && a->facts->data_sets.count >= DATA_SETS_MAX)
		return err_set(
			a->err, ERR_INVALID,
			"%d data sets were described; there is no room for the one of \"%s\"",
			DATA_SETS_MAX, e->name);
	return 0;
}

static const struct transfer *transfer_row(const struct facts *facts,
					   const struct event_transfer_set *e)
{
	for (uint32_t row = 1; row <= facts->transfers.count; row++) {
		const struct transfer *t = table_get(&facts->transfers, row);

		if (strcmp(facts_name(facts, t->from), e->from) == 0 &&
		    strcmp(facts_name(facts, t->to), e->to) == 0)
			return t;
	}
	return NULL;
}

int admit_transfer_set(const struct admission *a, const struct event_transfer_set *e)
{
	const struct transfer *known;
	int rc = admit_name(a, "place that data come from", e->from);

	if (rc == 0)
		rc = admit_name(a, "place that data go to", e->to);
	if (rc == 0)
		rc = admit_range(a, "the price of a transfer in millionths per GB", e->micro_per_gb,
				 -1, TRANSFER_PRICE_MAX);
	if (rc == 0)
		rc = admit_range(a, "the bandwidth of a transfer in MB/s", e->mbps, 0,
				 RATE_MAX_MBPS);
	if (rc < 0)
		return rc;
	known = transfer_row(a->facts, e);
	if (known && known->micro_per_gb == e->micro_per_gb && known->mbps == e->mbps)
		return CORE_ALREADY;
	if (!known && a->facts->transfers.count >= TRANSFERS_MAX)
		return err_set(a->err, ERR_INVALID,
			       "%d transfers were described; there is no room for %s to %s",
			       TRANSFERS_MAX, e->from, e->to);
	return 0;
}

static bool zone_is(const struct zone *z, const struct event_zone_set *e)
{
	if (z->before_ms != e->ahead_ms || z->count != e->at_ms_count)
		return false;
	for (uint32_t i = 0; i < z->count; i++)
		if (z->at_ms[i] != e->at_ms[i] || z->then_ms[i] != e->then_ms[i])
			return false;
	return true;
}

int admit_zone_set(const struct admission *a, const struct event_zone_set *e)
{
	const struct zone *known = facts_zone_find(a->facts, e->name);

	if (!zone_name_is_sound(e->name))
		return err_set(
			a->err, ERR_INVALID,
			"\"%.60s\" is no name of a time zone; they are like \"Europe/Berlin\"",
			e->name);
	if (e->at_ms_count != e->then_ms_count ||
	    !zone_is_sound(e->ahead_ms, e->at_ms, e->then_ms, e->at_ms_count))
		return err_set(
			a->err, ERR_INVALID,
			"time zone \"%s\": its changes are not in order, closer than two days, "
			"more than %d, or of more than 26 hours",
			e->name, ZONE_CHANGES_MAX);
	if (known)
		return zone_is(known, e) ? CORE_ALREADY : 0;
	if (a->facts->zones.count >= ZONES_MAX)
		return err_set(a->err, ERR_INVALID,
			       "%d time zones are in use; there is no room for \"%s\"", ZONES_MAX,
			       e->name);
	return 0;
}

int admit_budget_set(const struct admission *a, const struct event_budget_set *e)
{
	const struct queue_id queue = admit_queue_find(a, e->queue);
	uint32_t user;
	int rc = queue.v ? rights_asker(a, e->by, &user) : -(int)ERR_NOT_FOUND;

	if (rc == 0)
		rc = rights_queue(a, user, queue, "change its budget");
	if (rc == 0 && *e->currency)
		rc = admit_name(a, "currency", e->currency);
	if (rc == 0)
		rc = admit_range(a, "what is left of a budget in millionths", e->left_micro, -1,
				 MONEY_MAX_MICRO);
	return rc;
}
