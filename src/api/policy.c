/* SPDX-License-Identifier: Apache-2.0 */
/* The policy's values: shown to everybody, changed by admins. Values that nothing acts on yet are not offered. */
#include <string.h>
#include "api/call.h"
#include "api/policy_table.h"
#include "base/check.h"

void handle_policy(struct call *call)
{
	struct buf out = BUF_INIT;
	size_t count;
	const struct policy_value *values = policy_values(&count);

	out_object(&out, NULL);
	out_text(&out, "name", core_policy_name);
	for (size_t i = 0; i < count; i++) {
		const int64_t number = policy_value_get(&values[i], &call->facts->policy);
		char word[POLICY_WORD_MAX];

		if (values[i].form == POLICY_WORDS)
			out_text(&out, values[i].shown, policy_word(&values[i], number, word));
		else
			out_int(&out, values[i].shown, number);
	}
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

static int word_read(const struct conf *body, const struct policy_value *value, int64_t *ret,
		     struct err *err)
{
	const struct conf *c = conf_find(body, value->name);
	const char *text = "";
	bool given;
	int rc = body_text(body, value->name, EVENT_TEXT_MAX, &text, &given, err);

	if (rc < 0)
		return rc;
	*ret = policy_word_find(value, text);
	if (*ret)
		return 0;
	return err_at(err, ERR_INVALID, body_file, c->line, c->column,
		      "%s: \"%.40s\" is none of %s", value->name, text, value->range);
}

static int value_read(const struct conf *body, const struct policy_value *value, int64_t *ret,
		      struct err *err)
{
	const struct conf *c = conf_find(body, value->name);
	bool given, on = false;
	int rc;

	switch (value->form) {
	case POLICY_DURATION:
		rc = conf_duration(err, body_file, c, value->name, ret);
		if (rc == 0 && *ret < value->min)
			rc = err_at(err, ERR_INVALID, body_file, c->line, c->column,
				    "%s: \"%.40s\" is none of %s", value->name, c->text,
				    value->range);
		break;
	case POLICY_NUMBER:
		rc = body_int(body, value->name, value->min, value->max, ret, &given, err);
		break;
	case POLICY_SWITCH:
		rc = body_bool(body, value->name, &on, &given, err);
		*ret = on;
		break;
	case POLICY_WORDS: rc = word_read(body, value, ret, err); break;
	default: UNREACHABLE();
	}
	return rc;
}

static int policy_read(const struct conf *body, struct event_policy_set *e, struct err *err)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	for (size_t i = 0; i < count; i++) {
		int64_t to;

		if (!conf_find(body, values[i].name))
			continue;
		if (value_read(body, &values[i], &to, err) < 0)
			return -(int)err->code;
		policy_value_set(&values[i], e, to);
	}
	return 0;
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
