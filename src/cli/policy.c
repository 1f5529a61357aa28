/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/parse.h"
#include "cli/commands.h"
#include "cli/jobs.h"
#include "cli/nouns.h"

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
		else if (strcmp(key, "packing") == 0 || strcmp(key, "budget_warns") == 0 ||
			 strcmp(key, "allow_critical_burst") == 0)
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
		"its unit and its default. The first line is the name of the rules themselves, which the journal keeps beside each decision.",
	.examples =
		"fairlead policy\n"
		"fairlead policy set --min-runtime 1m\tfor administrators; it counts from the next decision on",
	.route = "GET /api/v1/policy",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_policy,
};

/*
 * Flags and the body's fields that they fill; numbers and yes|no are told apart by the daemon from
 * their form.
 */
static const struct flag set_flags[] = {
	{ "min-runtime", 0, "DURATION",
	  "a standard job that has run for less is not stopped for others; default 10m", false },
	{ "grace", 0, "DURATION",
	  "time a job gets for its checkpoint before it is stopped for others, when it names none; default 2m",
	  false },
	{ "default-limit", 0, "DURATION",
	  "run time assumed for jobs that declare none, where the queue says none either; nothing is stopped by it; default 1d",
	  false },
	{ "blackhole-window", 0, "DURATION",
	  "a job that fails so soon after its start counts against its node and GPUs; default 1m",
	  false },
	{ "blackhole-failures", 0, "N",
	  "so many such failures of different jobs set a node or GPU aside, 1 to 4; 0 = never; default 3",
	  false },
	{ "packing", 0, "yes|no",
	  "pack tightly, so that whole hosts stay free; no spreads over hosts; default yes",
	  false },
	{ "allow-critical-burst", 0, "yes|no",
	  "critical work may leave its queue's guarantee; default no", false },
	{ "backfill-depth", 0, "N",
	  "blocked jobs, from the first one on, whose start no smaller job may delay, 0 to 1024; default 32",
	  false },
	{ "half-life", 0, "DURATION",
	  "what a queue used in the past counts half after it, when queues are equally far in their shares; 0s = it does not fade; default 1w",
	  false },
	{ "keep-ended", 0, "DURATION",
	  "an ended job stays among the current ones for so long, and for 7 days since its submission; then it is read from the history; default 1w",
	  false },
	{ "order-deadline", 0, "N",
	  "weight of little time to spare before a job's deadline, among jobs of one queue, tier and priority, 0 to 1000; default 0",
	  false },
	{ "order-efficiency", 0, "N",
	  "weight of GPU time that is of use: as declared, and as kept in earlier attempts, 0 to 1000; default 0",
	  false },
	{ "order-age", 0, "N", "weight of the time a job waits, 0 to 1000; default 0", false },
	{ "order-user", 0, "N",
	  "weight of how few GPUs a job's user holds in the queue, 0 to 1000; default 0", false },
	{ "collect-after", 0, "DURATION",
	  "what is reserved for a job that was blocked longer is lent only to best-effort work; 0s = never; default 1h",
	  false },
	{ "order-budget", 0, "N",
	  "weight of how much of its queue's budget a job leaves, 0 to 1000; default 0", false },
	{ "budget-warns", 0, "yes|no",
	  "jobs that cost more than their queue's budget has left start all the same; default no",
	  false },
	{ 0 },
};

static int add_switch(const struct invocation *in, const char *flag, const char *field,
		      json_t *body, struct err *err)
{
	if (!arg_has(in, flag))
		return 0;
	const char *text = arg_flag(in, flag);
	if (strcmp(text, "yes") != 0 && strcmp(text, "no") != 0)
		return err_set(err, ERR_INVALID, "--%s takes yes or no, not \"%s\"", flag, text);
	json_object_set_new(body, field, json_boolean(strcmp(text, "yes") == 0));
	return 0;
}

static int add_number(const struct invocation *in, const char *flag, const char *field, int64_t max,
		      json_t *body, struct err *err)
{
	int64_t value;
	int rc = arg_number(in, flag, 0, max, 0, &value, err);

	if (rc >= 0 && arg_has(in, flag))
		json_object_set_new(body, field, json_integer(value));
	return rc;
}

static int policy_body(const struct invocation *in, json_t *body, struct err *err)
{
	static const struct {
		const char *flag, *field;
	} durations[] = {
		{ "min-runtime", "min_runtime" },     { "grace", "grace" },
		{ "default-limit", "default_limit" }, { "blackhole-window", "blackhole_window" },
		{ "half-life", "half_life" },         { "keep-ended", "keep_ended" },
		{ "collect-after", "collect_after" },
	};
	int rc = add_number(in, "blackhole-failures", "blackhole_failures", 4, body, err);

	if (rc >= 0)
		rc = add_number(in, "backfill-depth", "backfill_depth", 1024, body, err);
	if (rc >= 0)
		rc = add_number(in, "order-deadline", "order_deadline", 1000, body, err);
	if (rc >= 0)
		rc = add_number(in, "order-efficiency", "order_efficiency", 1000, body, err);
	if (rc >= 0)
		rc = add_number(in, "order-age", "order_age", 1000, body, err);
	if (rc >= 0)
		rc = add_number(in, "order-user", "order_user", 1000, body, err);
	if (rc >= 0)
		rc = add_number(in, "order-budget", "order_budget", 1000, body, err);
	if (rc >= 0)
		rc = add_switch(in, "budget-warns", "budget_warns", body, err);
	if (rc >= 0)
		rc = add_switch(in, "packing", "packing", body, err);
	if (rc >= 0)
		rc = add_switch(in, "allow-critical-burst", "allow_critical_burst", body, err);
	for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
		if (arg_has(in, durations[i].flag))
			json_object_set_new(body, durations[i].field,
					    json_string(arg_flag(in, durations[i].flag)));
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
