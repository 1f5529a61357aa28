/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "api/policy_table.h"
#include "base/check.h"
#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"

static bool is_switch(const char *shown)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);

	for (size_t i = 0; i < count; i++)
		if (strcmp(values[i].shown, shown) == 0)
			return values[i].form == POLICY_SWITCH;
	return false;
}

/* Under the names and in the form that `policy set` takes. */
static void add_values(const json_t *policy, struct buf *out)
{
	char text[DURATION_TEXT_MAX];
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)(uintptr_t)policy, key, value)
	{
		size_t length = strlen(key), from = out->size;
		bool duration = length > 3 && strcmp(key + length - 3, "_ms") == 0;

		for (size_t i = 0; i < length - (duration ? 3 : 0); i++)
			buf_addc(out, key[i] == '_' ? '-' : key[i]);
		while (out->size - from < 22)
			buf_addc(out, ' ');
		if (json_is_string(value))
			say_text(out, json_string_value(value));
		else if (duration && json_integer_value(value))
			buf_adds(out, format_duration(json_integer_value(value), text));
		else if (is_switch(key))
			buf_adds(out,
				 json_integer_value(value) || json_is_true(value) ? "yes" : "no");
		else
			buf_addi(out, json_integer_value(value));
		buf_addc(out, '\n');
	}
}

static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	AUTO_BUF out = BUF_INIT;
	json_t *policy = NULL;
	int rc = client_get(client, "/api/v1/policy", &policy, err);

	(void)in;
	if (rc < 0)
		return rc;
	if (!output_value(output, policy, "name")) {
		add_values(policy, &out);
		output_buf(&out);
	}
	json_decref(policy);
	return 0;
}

static int run_policy(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

const struct command command_policy = {
	.name = "policy",
	.arguments = "",
	.summary = "show the scheduling policy's values",
	.about =
		"One value in each line, under the name by which `fairlead policy set` changes it; `fairlead help policy set` says what each is, "
		"its unit and its default; docs/policy.md says more. The first line is the name of the rules themselves, which the journal keeps beside each decision.",
	.examples =
		"fairlead policy\n"
		"fairlead policy set --min-runtime 1m\tfor administrators; it counts from the next decision on",
	.route = "GET /api/v1/policy",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_policy,
};

static const struct flag set_flags[] = {
#define DURATION(name, min, flag, standard, in_scenarios, scenario, brief, more)                   \
	{ flag, 0, "DURATION", brief "; default " standard, false },
#define NUMBER(name, min, max, flag, standard, in_scenarios, scenario, brief, more)                \
	{ flag, 0, "N", brief ", " #min " to " #max "; default " standard, false },
#define SWITCH(name, flag, standard, in_scenarios, scenario, brief, more)                          \
	{ flag, 0, "yes|no", brief "; default " standard, false },
#define WORDS(name, words, flag, standard, in_scenarios, scenario, brief, more)                    \
	{ flag, 0, words, brief "; default " standard, false },
#include "api/policy.def"
	{ 0 },
};

static int add_switch(const struct invocation *in, const struct policy_value *value, json_t *body,
		      struct err *err)
{
	const char *text = arg_flag(in, value->flag);

	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return err_set(err, ERR_INVALID, "--%s takes yes or no, not \"%s\"", value->flag,
			       text);
	json_object_set_new(body, value->name, json_boolean(strcmp(text, "yes") == 0));
	return 0;
}

/* Durations and words go as they are typed: the daemon reads them. */
static int add_value(const struct invocation *in, const struct policy_value *value, json_t *body,
		     struct err *err)
{
	int64_t number;
	int rc;

	switch (value->form) {
	case POLICY_WORDS:
	case POLICY_DURATION:
		json_object_set_new(body, value->name, json_string(arg_flag(in, value->flag)));
		return 0;
	case POLICY_NUMBER:
		rc = arg_number(in, value->flag, value->min, value->max, 0, &number, err);
		if (rc >= 0)
			json_object_set_new(body, value->name, json_integer(number));
		return rc;
	case POLICY_SWITCH: return add_switch(in, value, body, err);
	default: UNREACHABLE();
	}
}

static int policy_body(const struct invocation *in, json_t *body, struct err *err)
{
	size_t count;
	const struct policy_value *values = policy_values(&count);
	int rc = 0;

	for (size_t i = 0; i < count && rc >= 0; i++)
		if (arg_has(in, values[i].flag))
			rc = add_value(in, &values[i], body, err);
	if (rc >= 0 && json_object_size(body) == 0)
		rc = err_set(
			err, ERR_INVALID,
			"nothing to change: give at least one flag; `fairlead help policy set` lists them");
	return rc;
}

static int run_set(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	json_t *body = json_object();
	int rc = policy_body(in, body, err);

	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc >= 0)
		rc = change_noun(client, "PUT", "/api/v1/policy", body, "was changed", "the policy",
				 err);
	json_decref(body);
	return rc;
}

const struct command command_policy_set = {
	.name = "policy set",
	.arguments = "",
	.summary = "change values of the scheduling policy; what is not given stays",
	.about =
		"For administrators. A change is an event of the journal like any other, and counts from the next decision on.",
	.flags = set_flags,
	.examples =
		"fairlead policy set --min-runtime 1m --grace 5m\tmore may be stopped for others, with more time to save\n"
		"fairlead policy set --blackhole-failures 0\tset nothing aside by itself",
	.route = "PUT /api/v1/policy",
	.shares = SHARES_DAEMON,
	.run = run_set,
};
