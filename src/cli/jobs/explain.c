/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/arena.h"
#include "cli/table/commands.h"
#include "cli/submission/follow.h"
#include "cli/jobs/array.h"
#include "cli/jobs/jobs.h"
#include "cli/jobs/pods.h"
#include "cli/output/prose.h"

static void add_sentence(struct buf *out, const char *before, const char *text)
{
	if (!text[0])
		return;
	buf_adds(out, before);
	say_sentence(out, text);
	buf_addc(out, '\n');
}

static void add_ahead(const json_t *answer, struct buf *out)
{
	const json_t *ahead = json_object_get(answer, "ahead"), *job;
	int64_t count = get_int(answer, "ahead_count");
	size_t index;

	if (count < 2) /* the chain names the first one */
		return;
	buf_addf(out, "It is number %lld of those that wait in its queue; ahead of it: ",
		 (long long)get_int(answer, "position"));
	json_array_foreach((json_t *)(uintptr_t)ahead, index, job)
		buf_addf(out, "%s%lld", index ? ", " : "", (long long)json_integer_value(job));
	if (count > (int64_t)json_array_size(ahead))
		buf_addf(out, " and %lld more",
			 (long long)(count - (int64_t)json_array_size(ahead)));
	buf_adds(out, ".\n");
}

/* When there is more than one: the first is the reason that was told. */
static void add_causes(const json_t *answer, struct buf *out)
{
	const json_t *causes = json_object_get(answer, "causes"), *cause;
	size_t index;

	if (json_array_size(causes) < 2)
		return;
	buf_adds(out, "Everything that keeps it from starting:\n");
	json_array_foreach((json_t *)(uintptr_t)causes, index, cause)
		add_sentence(out, "  - ", get_text(cause, "text"));
}

static void add_change(const json_t *answer, struct buf *out)
{
	const char *change = get_text(answer, "change");

	if (*change)
		add_sentence(out,
			     get_bool(answer, "change_is_smallest")
				     ? "The smallest change with which it would start now: "
				     : "With this it would start now, perhaps with less: ",
			     change);
	else if (json_array_size(json_object_get(answer, "causes")))
		add_sentence(
			out, "",
			"No change of limits, nodes, running jobs or its own wishes was found with which it would start now.");
}

/* Who or what is in the way: a job that holds what suits it, otherwise the first other thing. For a job that is protected for a while the
 * sentence with the end of that protection. */
static const char *holder_of(const json_t *answer)
{
	const json_t *line, *found = NULL;
	size_t index;

	if (get_bool(answer, "holder_protected"))
		return get_text(answer, "remedy");
	json_array_foreach(json_object_get(answer, "lines"), index, line)
	{
		const char *code = get_text(line, "code");

		if (strcmp(code, "holder") == 0)
			return get_text(line, "text");
		if (!found && index && strcmp(code, "queue") != 0 && strcmp(code, "order") != 0 &&
		    strcmp(code, "deadline") != 0 && strcmp(code, "place") != 0)
			found = line;
	}
	return found ? get_text(found, "text") : "";
}

/* Reason, holder, time and remedy: the one that was tried, where there is one. */
static void add_short(const json_t *answer, struct buf *out)
{
	const char *change = get_text(answer, "change");

	add_sentence(out, "", get_text(answer, "summary"));
	add_sentence(out, "  - ", holder_of(answer));
	say_estimate(answer, out);
	say_estimate_missing(answer, out);
	if (*change && get_bool(answer, "change_is_smallest"))
		add_sentence(out, "What would let it start now: ", change);
	else
		add_sentence(out, "What would let it start: ", get_text(answer, "remedy"));
}

static void add_all(const json_t *answer, struct buf *out)
{
	const char *summary = get_text(answer, "summary");
	const json_t *line;
	size_t index;

	add_sentence(out, "", summary);
	json_array_foreach(json_object_get(answer, "lines"), index, line)
	{
		if (strcmp(get_text(line, "text"), summary) != 0)
			add_sentence(out, "  - ", get_text(line, "text"));
	}
	add_ahead(answer, out);
	add_causes(answer, out);
	say_estimate(answer, out);
	say_estimate_missing(answer, out);
	say_price(answer, out);
	add_sentence(out, "What would let it start: ", get_text(answer, "remedy"));
	add_change(answer, out);
}

static int show_one(struct invocation *in, struct client *client, const struct output *output,
		    uint32_t id, struct err *err)
{
	json_t *answer = NULL;
	AUTO_BUF out = BUF_INIT;
	int rc = get_estimated(client, client_path(in->arena, "/api/v1/jobs/%u/explain", id),
			       &answer, err);

	if (rc < 0)
		return rc;
	if (!output_value(output, answer, "reason")) {
		buf_addf(&out, "job %u is %s", id,
			 state_is_final(get_text(answer, "state")) ? "over: " : "");
		output_state(output, get_text(answer, "state"), &out);
		if (strcmp(get_text(answer, "reason"), "none") != 0)
			buf_addf(&out, " (%s)", get_text(answer, "reason"));
		buf_adds(&out, "\n");
		if (arg_has(in, "verbose"))
			add_all(answer, &out);
		else
			add_short(answer, &out);
		if (state_is_final(get_text(answer, "state")))
			buf_addf(&out, "`fairlead job %u` says how it went.\n", id);
		prose_wrap(&out, output->width, 2);
		output_buf(&out);
		notice_simulated(output, get_bool(answer, "simulated"));
	}
	json_decref(answer);
	return 0;
}

/* A pod: the job that it is, or why it is none. */
static int show_pod(struct invocation *in, struct client *client, const struct output *output,
		    struct err *err)
{
	const char *word = in->args[0];
	AUTO_BUF out = BUF_INIT;
	json_t *answer = NULL;
	uint32_t id;
	int rc = pod_find(in, client, word, &answer, err);

	if (rc < 0)
		return rc;
	id = (uint32_t)get_int(answer, "job");
	if (id) {
		rc = show_one(in, client, output, id, err);
	} else if (!output_value(output, answer, "reason")) {
		buf_addf(&out, "pod %s is not placed: %s\n", word, get_text(answer, "reason"));
		prose_wrap(&out, output->width, 2);
		output_buf(&out);
	}
	json_decref(answer);
	return rc;
}

/* The number of an array is that of its first job too; its own words are under 40[0]. */
static int show(struct invocation *in, struct client *client, const struct output *output,
		struct err *err)
{
	json_t *job = NULL;
	uint32_t id;
	int rc;

	if (strchr(in->args[0], '/'))
		return show_pod(in, client, output, err);
	rc = named_job(in, client, in->args[0], &id, err);

	if (rc < 0 || array_numbers_find(in->args[0]))
		return rc < 0 ? rc : show_one(in, client, output, id, err);
	rc = client_get(client, client_path(in->arena, "/api/v1/jobs/%u", id), &job, err);
	if (rc < 0)
		return rc;
	if (job_is_array(job))
		rc = explain_array(in, client, output, job, err);
	else
		rc = show_one(in, client, output, id, err);
	json_decref(job);
	return rc;
}

static int run_explain(struct invocation *in, struct err *err)
{
	return watch(in, show, err);
}

static const struct flag explain_flags[] = {
	{ "verbose", 'v', NULL,
	  "also its queue's share, the order, every cause, and what it is expected to cost",
	  false },
	{ 0 },
};

const struct command command_explain = {
	.name = "explain",
	.arguments = "ID|NAMESPACE/POD",
	.summary = "say why a job waits, who is ahead, and what would let it start",
	.about =
		"Says what is missing, who holds it, when the job is likely to start, and what would let it start; --verbose says everything that is known. "
		"The number of an array explains all of its jobs together: how many wait for which reason. 40_3 is its number 3. On Kubernetes a pod is named as NAMESPACE/POD.",
	.flags = explain_flags,
	.examples = "fairlead explain 12\n"
		    "fairlead explain -v 12\twith the order, shares and every cause\n"
		    "fairlead explain 40\tan array: how many wait, and why\n"
		    "fairlead explain 40_3\tone job of it\n"
		    "fairlead explain vision/train-0-x7k2p\ta pod that others made, on Kubernetes\n"
		    "fairlead explain 12 -o name\tthe reason's code alone",
	.route = "GET /api/v1/jobs/{id}/explain",
	.shares = SHARES_OUTPUT | SHARES_WATCH | SHARES_DAEMON,
	.least = 1,
	.most = 1,
	.argument = ARGUMENT_JOB,
	.run = run_explain,
};
