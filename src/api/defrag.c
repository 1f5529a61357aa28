/* SPDX-License-Identifier: Apache-2.0 */
/* Running jobs that move so that free GPUs come to lie together. */
#include "api/call.h"

static void nodes_add(struct buf *out, const struct facts *f, const char *key,
		      const struct defrag_move *move, const uint32_t *nodes)
{
	out_list(out, key);
	for (uint32_t i = 0; i < move->tasks; i++) {
		uint32_t before = 0;

		while (before < i && nodes[before] != nodes[i])
			before++;
		if (before == i && nodes[i])
			out_text(out, NULL,
				 facts_name(f, node_get(f, (struct node_id){ nodes[i] })->name));
	}
	out_end(out, ']');
}

static void plan_add(struct buf *out, const struct facts *f, const struct defrag_plan *plan)
{
	out_object(out, NULL);
	out_int(out, "for_job", plan->for_job);
	out_share(out, "gained", plan->gained_share);
	out_int(out, "lost_gpu_seconds", plan->lost_gpu_ms / 1000);
	out_list(out, "moves");
	for (uint32_t i = 0; i < plan->count; i++) {
		out_object(out, NULL);
		out_int(out, "job", plan->moves[i].job);
		nodes_add(out, f, "from", &plan->moves[i], plan->moves[i].from);
		nodes_add(out, f, "to", &plan->moves[i], plan->moves[i].to);
		out_end(out, '}');
	}
	out_end(out, ']');
	out_end(out, '}');
}

void handle_defrag_show(struct call *call)
{
	const struct facts *f = call->facts;
	struct defrag_report *report = arena_new(call->arena, struct defrag_report);
	struct buf out = BUF_INIT;

	core_defrag(f, call->arena, report);
	out_object(&out, NULL);
	out_text(&out, "policy", defragment_name(f->policy.defragment));
	out_bool(&out, "asked", f->moves.asked);
	out_int(&out, "moved_jobs", f->moves.jobs);
	out_int(&out, "lost_gpu_seconds", f->moves.lost_gpu_ms / 1000);
	out_list(&out, "stuck");
	for (uint32_t i = 0; i < report->stuck_count; i++)
		out_int(&out, NULL, report->stuck[i]);
	out_end(&out, ']');
	out_list(&out, "plans");
	for (uint32_t i = 0; i < report->plan_count; i++)
		plan_add(&out, f, &report->plans[i]);
	out_end(&out, ']');
	out_end(&out, '}');
	call_reply(call, 200, &out);
}

void handle_defrag_ask(struct call *call)
{
	struct event event = call_event(call, EVENT_DEFRAG_ASKED);

	call_send(call, &event);
}
