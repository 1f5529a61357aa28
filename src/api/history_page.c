/* SPDX-License-Identifier: Apache-2.0 */
#include "api/history_page.h"

#include <string.h>
#include "base/check.h"
#include "base/json.h"

/* Fields that leave for nobody: they are of use only to whoever attacks or correlates. */
static bool field_is_secret(const struct json_slice *key)
{
	return pull_key_is(key, "hash") || pull_key_is(key, "body") ||
	       pull_key_is(key, "body_mac") || pull_key_is(key, "client_key") ||
	       pull_key_is(key, "program");
}

static bool field_is_private(const struct json_slice *key)
{
	return pull_key_is(key, "path");
}

/* Copies the members of an object, but for those that this reader does not see. */
static bool members_copy(struct buf *out, const char *text, size_t size, enum event_view view)
{
	struct json_reader r;
	struct json_slice key;

	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		const char *start = key.data - 1; /* its quote */

		pull_skip(&r);
		if (r.problem)
			break;
		if (field_is_secret(&key) || (view == EVENT_VIEW_PUBLIC && field_is_private(&key)))
			continue;
		if (out->data[out->size - 1] != '{')
			buf_addc(out, ',');
		buf_add(out, start, (size_t)(r.at - start));
	}
	return pull_finish(&r, NULL) == 0;
}

bool event_add(struct buf *out, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
	       size_t size, enum event_view view)
{
	const struct event_info *info = event_info(kind);
	const size_t before = out->size;

	if (view == EVENT_VIEW_PUBLIC &&
	    (kind == EVENT_TOKEN_CREATED || kind == EVENT_TOKEN_REVOKED))
		return false;
	buf_addf(out, "{\"seq\":%llu,\"time_ms\":%lld,\"kind\":\"%s\",\"event\":{",
		 (unsigned long long)seq, (long long)time_ms, info ? info->name : "unknown");
	if (!members_copy(out, text, size, view)) {
		out->size = before;
		return false;
	}
	buf_adds(out, "}}");
	return true;
}

struct page {
	struct buf *out;
	enum event_view view;
	uint32_t rows, limit;
	uint64_t last;
};

static int page_take(void *context, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
		     size_t size)
{
	struct page *page = context;
	const size_t before = page->out->size;

	page->rows++;
	page->last = seq;
	if (page->out->data[page->out->size - 1] == '}')
		buf_addc(page->out, ',');
	if (!event_add(page->out, seq, time_ms, kind, text, size, page->view)) {
		page->out->size = before;
		page->out->data[before] = '\0';
	}
	return 0;
}

void history_reply(struct call *call, uint32_t job, bool full)
{
	const struct api_backend *backend = call->api->backend;
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	struct page page = { .out = &out, .view = full ? EVENT_VIEW_FULL : EVENT_VIEW_PUBLIC };
	int64_t after;

	if (call_page(call, &after, &page.limit, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	/* The history is not the facts: nothing of these is held while it is read. */
	call_release(call);
	out_object(&out, NULL);
	out_list(&out, "events");
	if (backend->history(backend->context, job, (uint64_t)after, page.limit, &page, page_take,
			     &err) < 0) {
		buf_deinit(&out);
		call_fail(call, &err);
		return;
	}
	out_end(&out, ']');
	if (page.rows == page.limit)
		out_int(&out, "next", (int64_t)page.last);
	out_end(&out, '}');
	call_reply(call, 200, &out);
}
