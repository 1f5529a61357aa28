/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/replay/plain_spot.h"

#include <math.h>

static const double lead_least_ms = 60000;

/* So far ahead of the line it leaves a node on demand: without a least it would come and go for ever where a restart costs nothing. */
static double lead_ms(const struct plain_spot_task *t)
{
	const double restarts_ms = 2 * (double)t->restart_ms;

	return restarts_ms > lead_least_ms ? restarts_ms : lead_least_ms;
}

/* What going away now would cost at most beside the restart. */
static int64_t risk_ms(const struct plain_spot_task *t)
{
	if (t->at != AT_SPOT)
		return 0;
	return t->every_ms ? t->every_ms : t->unsaved_ms;
}

/* Time that it can still do without; 0 and less: on demand to the end. */
static int64_t spare_ms(const struct plain_spot_task *t)
{
	const int64_t left_ms = t->submit_ms + t->deadline_ms - t->now_ms;

	return left_ms - t->rest_ms - t->pending_ms - 2 * t->restart_ms - risk_ms(t);
}

/* Going to spot costs a restart, and from there it must be able to come back. */
static bool can_go(const struct plain_spot_task *t)
{
	return spare_ms(t) > t->restart_ms + t->every_ms;
}

static double line_ms(const struct plain_spot_task *t)
{
	return (double)(t->now_ms - t->submit_ms) * (double)t->work_ms / (double)t->deadline_ms;
}

/* How far ahead of the line. */
static double ahead_ms(const struct plain_spot_task *t)
{
	return (double)(t->work_ms - t->rest_ms) - line_ms(t);
}

bool plain_spot_leaves(enum plain_spot_rule rule, const struct plain_spot_task *t)
{
	if (t->at == AT_SPOT)
		return spare_ms(t) <= 0;
	return rule == SPOT_RULE_UNIFORM && t->at == AT_DEMAND && can_go(t) &&
	       ahead_ms(t) >= lead_ms(t);
}

enum plain_at plain_spot_choose(enum plain_spot_rule rule, const struct plain_spot_task *t,
				bool there)
{
	if (spare_ms(t) <= 0)
		return AT_DEMAND;
	if (there && can_go(t))
		return AT_SPOT;
	return rule == SPOT_RULE_UNIFORM && ahead_ms(t) <= 0 ? AT_DEMAND : AT_NOWHERE;
}

/* It has `behind` to catch up, at a rate. */
static int64_t after(const struct plain_spot_task *t, double behind, double rate)
{
	return t->now_ms + t->pending_ms + (int64_t)ceil(behind / rate);
}

int64_t plain_spot_look_ms(enum plain_spot_rule rule, const struct plain_spot_task *t)
{
	const double slope = (double)t->work_ms / (double)t->deadline_ms;
	const int64_t spare = spare_ms(t);
	int64_t look_ms = INT64_MAX;

	if (spare <= 0)
		return INT64_MAX;
	switch (t->at) {
	case AT_NOWHERE:
		look_ms = t->now_ms + spare;
		if (rule == SPOT_RULE_UNIFORM && ahead_ms(t) > 0) {
			const int64_t behind_ms = t->now_ms + (int64_t)ceil(ahead_ms(t) / slope);

			look_ms = behind_ms < look_ms ? behind_ms : look_ms;
		}
		break;
	case AT_SPOT: /* what is saved regularly is never short of time here */
		if (!t->every_ms)
			look_ms = t->now_ms + spare;
		break;
	case AT_DEMAND:
		if (rule == SPOT_RULE_UNIFORM && slope < 1 && can_go(t)) {
			/* While the restart lasts the line goes on alone. */
			const double wanted =
				lead_ms(t) - ahead_ms(t) + slope * (double)t->pending_ms;

			if (wanted > 0)
				look_ms = after(t, wanted, 1 - slope);
		}
		break;
	}
	return look_ms > t->now_ms ? look_ms : t->now_ms + 1;
}
