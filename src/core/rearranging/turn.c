/* SPDX-License-Identifier: Apache-2.0 */
#include "core/rearranging/rearrange.h"

#include "core/rearranging/layouts.h"
#include "core/scheduling/life/capacity.h"
#include "base/check.h"

void decide(const struct facts *facts, struct view *view, uint64_t budget, struct arena *step,
	    struct decisions *ret)
{
	struct pass pass;
	uint32_t mark;

	if (rest_holds(&view->rest, facts)) {
		*ret = (struct decisions){ .wake_ms = view->rest.wake_ms };
		return;
	}
	view_refresh(view, facts);
	pass_begin(&pass, facts, view, budget, step);
	mark = space_mark(&view->space);
	pass_run(&pass);
	rearrange_run(&pass);
	capacity_return(&pass);
	pass_grow(&pass);
	layouts_run(&pass);
	reserve_wake(&pass);
	space_rollback(&view->space, mark);
	rest_note(&pass);
	*ret = (struct decisions){ .events = pass.events,
				   .count = pass.count,
				   .more = pass.more,
				   .wake_ms = pass.wake_ms };
}

void decide_verify(const struct facts *facts, struct view *view, struct arena *step)
{
	struct rest shown = view->rest;
	struct decisions again;

	if (!rest_holds(&shown, facts))
		return;
	view->rest.known = false;
	decide(facts, view, UINT64_C(1) << 40, step, &again);
	CHECK(!again.count && !again.more && again.wake_ms == shown.wake_ms);
	view->rest = shown;
}
