/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's values: shown to everybody, changed by admins. Values that nothing acts on yet are not offered. */
#include "api/call.h"

void handle_policy(struct call *call)
{
	const struct policy *p = &call->facts->policy;
	struct buf out = BUF_INIT;

	out_object(&out, NULL);
	out_text(&out, "name", core_policy_name);
	out_int(&out, "min_runtime_ms", p->min_runtime_ms);
	out_int(&out, "grace_ms", p->grace_ms);
	out_int(&out, "default_limit_ms", p->default_limit_ms);
	out_int(&out, "blackhole_window_ms", p->blackhole_window_ms);
	out_int(&out, "blackhole_failures", p->blackhole_failures);
	out_int(&out, "packing", p->packing);
	out_int(&out, "allow_critical_burst", p->allow_critical_burst);
	out_int(&out, "backfill_depth", p->backfill_depth);
	out_int(&out, "half_life_ms", p->half_life_ms);
	out_int(&out, "keep_ended_ms", p->keep_ended_ms);
	out_int(&out, "order_deadline", p->order_deadline);
	out_int(&out, "order_efficiency", p->order_efficiency);
	out_int(&out, "order_age", p->order_age);
	out_int(&out, "order_user", p->order_user);
	out_int(&out, "collect_after_ms", p->collect_after_ms);
	out_int(&out, "order_budget", p->order_budget);
	out_int(&out, "budget_warns", p->budget_warns);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

static int duration_read(const struct conf *body, const char *name, int64_t *ret_ms,
			 struct err *err)
{
	const struct conf *c = conf_find(body, name);

	return c ? conf_duration(err, body_file, c, name, ret_ms) : 0;
}

static int switch_read(const struct conf *body, const char *name, int64_t *ret, struct err *err)
{
	bool given, value = false;
	int rc = body_bool(body, name, &value, &given, err);

	if (rc >= 0 && given)
		*ret = value;
	return rc;
}

/* In the record 0 is "as before", so it can't be asked for; it would mean what the client keys say anyway. */
static int keep_ended_read(const struct conf *body, int64_t *ret_ms, struct err *err)
{
	const struct conf *c = conf_find(body, "keep_ended");
	int rc = duration_read(body, "keep_ended", ret_ms, err);

	if (rc >= 0 && c && *ret_ms == 0)
		rc = err_at(
			err, ERR_INVALID, body_file, c->line, c->column,
			"keep_ended is 0s: give 1s or more; a job stays for 7 days since its submission all the same");
	return rc;
}

static int policy_read(const struct conf *body, struct event_policy_set *e, struct err *err)
{
	bool given;
	int rc = duration_read(body, "min_runtime", &e->min_runtime_ms, err);

	if (rc >= 0)
		rc = duration_read(body, "grace", &e->grace_ms, err);
	if (rc >= 0)
		rc = duration_read(body, "default_limit", &e->default_limit_ms, err);
	if (rc >= 0)
		rc = duration_read(body, "blackhole_window", &e->blackhole_window_ms, err);
	if (rc >= 0)
		rc = body_int(body, "blackhole_failures", 0, 4, &e->blackhole_failures, &given,
			      err);
	if (rc >= 0)
		rc = switch_read(body, "packing", &e->packing, err);
	if (rc >= 0)
		rc = switch_read(body, "allow_critical_burst", &e->allow_critical_burst, err);
	if (rc >= 0)
		rc = body_int(body, "backfill_depth", 0, 1024, &e->backfill_depth, &given, err);
	if (rc >= 0)
		rc = duration_read(body, "half_life", &e->half_life_ms, err);
	if (rc >= 0)
		rc = keep_ended_read(body, &e->keep_ended_ms, err);
	if (rc >= 0)
		rc = body_int(body, "order_deadline", 0, 1000, &e->order_deadline, &given, err);
	if (rc >= 0)
		rc = body_int(body, "order_efficiency", 0, 1000, &e->order_efficiency, &given, err);
	if (rc >= 0)
		rc = body_int(body, "order_age", 0, 1000, &e->order_age, &given, err);
	if (rc >= 0)
		rc = body_int(body, "order_user", 0, 1000, &e->order_user, &given, err);
	if (rc >= 0)
		rc = duration_read(body, "collect_after", &e->collect_after_ms, err);
	if (rc >= 0)
		rc = body_int(body, "order_budget", 0, 1000, &e->order_budget, &given, err);
	if (rc >= 0)
		rc = switch_read(body, "budget_warns", &e->budget_warns, err);
	return rc;
}

void handle_policy_set(struct call *call)
{
	struct event event = call_event(call, EVENT_POLICY_SET);
	const struct conf *body;
	struct err err = { 0 };

	event.policy_set = event_policy_make(0, "").policy_set;
	if (call_body(call, &body, &err) < 0 || policy_read(body, &event.policy_set, &err) < 0)
		call_fail(call, &err);
	else
		call_send(call, &event);
}
