/* SPDX-License-Identifier: Apache-2.0 */
#include "core/rearranging/rearrange.h"

#include "core/rearranging/layouts.h"
#include "core/scheduling/life/capacity.h"

void decide(const struct facts *facts, struct view *view, uint64_t budget, struct arena *step,
	    struct decisions *ret)
{
	struct pass pass;
	uint32_t mark;

	view_refresh(view, facts);
	pass_begin(&pass, facts, view, budget, step);
	mark = space_mark(&view->space);
	pass_run(&pass);
	rearrange_run(&pass);
	capacity_return(&pass);
	pass_grow(&pass);
	layouts_run(&pass);
	space_rollback(&view->space, mark);
	*ret = (struct decisions){ .events = pass.events,
				   .count = pass.count,
				   .more = pass.more,
				   .wake_ms = pass.wake_ms };
}
