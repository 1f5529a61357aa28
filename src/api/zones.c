/* SPDX-License-Identifier: Apache-2.0 */
#include "api/zones.h"

#include "base/zone.h"
#include "core/scheduling/queues/calendar.h"

int zone_wanted(const struct call *call, const char *calendar, struct event *ret, struct err *err)
{
	struct zone_rules *rules;
	struct calendar c;

	*ret = (struct event){ 0 };
	if (calendar_parse(calendar, &c, NULL) < 0 || !c.zone_name[0] ||
	    facts_zone_find(call->facts, c.zone_name))
		return 0; /* what is wrong with it the core says */
	rules = arena_new(call->arena, struct zone_rules);
	if (zone_read(c.zone_name, rules, err) < 0)
		return -(int)err->code;
	*ret = event_zone_make(arena_strdup(call->arena, c.zone_name), rules, 0, call->caller.user);
	return 0;
}
