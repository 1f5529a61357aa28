/* SPDX-License-Identifier: Apache-2.0 */
/* Events: a page, or the stream. */
#include <string.h>
#include "api/call.h"
#include "api/history_page.h"
#include "api/hub.h"
#include "base/parse.h"

static bool wants_stream(const struct call *call)
{
	const char *accept = http_header(call->request, "Accept");

	return accept && strstr(accept, "text/event-stream");
}

/* Last-Event-ID is what a browser sends when it connects again; it is newer than the query of its first request. */
static int stream_after(const struct call *call, int64_t *ret, struct err *err)
{
	const char *last = http_header(call->request, "Last-Event-ID");

	*ret = call_query_int(call, "after", -1);
	if (*ret < -1)
		return err_set(err, ERR_INVALID, "?after=%lld: expected 0 or more",
			       (long long)*ret);
	if (last && *last && parse_int(last, 0, INT64_MAX / 2, ret, NULL) < 0)
		return err_set(err, ERR_INVALID,
			       "Last-Event-ID \"%.40s\": expected a sequence number", last);
	return 0;
}

void handle_event_list(struct call *call)
{
	struct err err = { 0 };
	int64_t after;

	if (!wants_stream(call))
		history_reply(call, 0, call->caller.role == ROLE_ADMIN);
	else if (stream_after(call, &after, &err) < 0)
		call_fail(call, &err);
	else
		event_hub_subscribe(call->api->hub, call, after);
}
