/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/nouns.h"
#include "cli/output/prose.h"

static void names_add(struct buf *out, const json_t *names)
{
	const json_t *name;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)names, i, name)
		buf_addf(out, "%s%s", i ? ", " : "", json_string_value(name));
}

static void gpus_add(struct buf *out, const json_t *gpus)
{
	if (json_is_integer(gpus))
		buf_addf(out, "%lld GPU%s", (long long)json_integer_value(gpus),
			 json_integer_value(gpus) == 1 ? "" : "s");
	else
		buf_addf(out, "%g of a GPU", json_number_value(gpus));
}

static void plan_add(struct buf *out, const json_t *plan)
{
	const json_t *moves = json_object_get(plan, "moves"), *move;
	size_t i;

	gpus_add(out, json_object_get(plan, "gained"));
	if (get_int(plan, "for_job"))
		buf_addf(out, " for job %lld", (long long)get_int(plan, "for_job"));
	else
		buf_adds(out, " brought together");
	buf_adds(out, ", at the cost of ");
	say_duration(out, get_int(plan, "lost_gpu_seconds") * 1000);
	buf_adds(out, " of GPU time:\n");
	json_array_foreach((json_t *)(uintptr_t)moves, i, move)
	{
		buf_addf(out, "  - job %lld moves from ", (long long)get_int(move, "job"));
		names_add(out, json_object_get(move, "from"));
		buf_adds(out, " to ");
		names_add(out, json_object_get(move, "to"));
		buf_addc(out, '\n');
	}
}

static bool has_plan_for(const json_t *plans, int64_t job)
{
	const json_t *plan;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)plans, i,
			   plan) if (get_int(plan, "for_job") == job) return true;
	return false;
}

static void answer_say(const json_t *answer, struct buf *out)
{
	const json_t *plans = json_object_get(answer, "plans"),
		     *stuck = json_object_get(answer, "stuck"), *item;
	size_t i;

	json_array_foreach((json_t *)(uintptr_t)stuck, i,
			   item) if (!has_plan_for(plans, json_integer_value(item)))
		buf_addf(
			out,
			"Job %lld waits although enough GPUs for it are free; no moves make room for it that are worth it.\n",
			(long long)json_integer_value(item));
	json_array_foreach((json_t *)(uintptr_t)plans, i, item) plan_add(out, item);
	if (!json_array_size(plans))
		buf_adds(out, "There is nothing to move.\n");
}

static int run_defrag(struct invocation *in, struct err *err)
{
	bool dry = arg_has(in, "dry-run"), any;
	AUTO_CLIENT client = NULL;
	json_t *answer = NULL, *body;
	AUTO_BUF out = BUF_INIT;
	struct output output;
	int rc = client_open(in, &client, err);

	output_init(&output, in);
	if (rc >= 0)
		rc = client_get(client, "/api/v1/defrag", &answer, err);
	if (rc < 0)
		return rc;
	any = json_array_size(json_object_get(answer, "plans")) > 0;
	if (!output_value(&output, answer, "policy")) {
		answer_say(answer, &out);
		output_buf(&out);
	}
	json_decref(answer);
	if (dry || !any)
		return 0;
	body = json_object();
	rc = change_noun(client, "POST", "/api/v1/defrag", body,
			 "asked for: jobs save, and go on at their new places", "moves are", err);
	json_decref(body);
	return rc;
}

const struct command command_defrag = {
	.name = "defrag",
	.arguments = "",
	.summary = "move running jobs so that free GPUs come to lie together",
	.about =
		"A job that wants two GPUs of one node waits although two nodes have one free each. This shows which running jobs would have to "
		"move, and has them moved: each is warned, saves, and goes on at a place that is kept for it. Only jobs that make checkpoints "
		"move, never critical ones, none younger than min_runtime, and nothing that loses more than it gains.\n\n"
		"By itself Fairlead does so when a waiting job needs it (policy `defragment`).",
	.flags =
		(const struct flag[]){
			{ "dry-run", 0, NULL, "only show what would move", false },
			{ 0 },
		},
	.examples = "fairlead defrag --dry-run\n"
		    "fairlead defrag",
	.route = "POST /api/v1/defrag",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_defrag,
};
