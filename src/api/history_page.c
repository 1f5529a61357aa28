/* SPDX-License-Identifier: Apache-2.0 */
#include "api/history_page.h"

#include <string.h>
#include "api/event_words.h"
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

struct row {
	uint64_t seq;
	int64_t time_ms;
	struct event_text event;
};

struct page {
	struct arena *arena;
	struct row *rows;
	uint32_t count, limit;
};

static int page_take(void *context, uint64_t seq, int64_t time_ms, uint32_t kind, const char *text,
		     size_t size)
{
	struct page *page = context;

	if (page->count == page->limit)
		return 0;
	page->rows[page->count++] =
		(struct row){ .seq = seq,
			      .time_ms = time_ms,
			      .event = { .kind = kind,
					 .text = arena_strndup(page->arena, text, size),
					 .size = size } };
	return 0;
}

/* What people read, behind what programs read. */
static void words_add(struct buf *out, const struct facts *f, const struct event_text *event,
		      struct arena *arena)
{
	const char *state = event_job_state(event);
	const uint32_t job = event_job(f, event);
	AUTO_BUF sentence = BUF_INIT;

	event_sentence(f, event, arena, &sentence);
	out->data[--out->size] = '\0'; /* the bracket */
	buf_adds(out, ",\"sentence\":");
	buf_add_json(out, buf_text(&sentence), sentence.size);
	if (job)
		buf_addf(out, ",\"job\":%u", job);
	if (state)
		buf_addf(out, ",\"job_state\":\"%s\"", state);
	if (event_is_bookkeeping(event->kind))
		buf_adds(out, ",\"bookkeeping\":true");
	buf_addc(out, '}');
}

static void rows_add(struct buf *out, const struct page *page, const struct facts *f,
		     enum event_view view)
{
	for (uint32_t i = 0; i < page->count; i++) {
		const struct row *row = &page->rows[i];
		const size_t before = out->size;

		if (out->data[out->size - 1] == '}')
			buf_addc(out, ',');
		if (event_add(out, row->seq, row->time_ms, row->event.kind, row->event.text,
			      row->event.size, view)) {
			words_add(out, f, &row->event, page->arena);
			continue;
		}
		out->size = before;
		out->data[before] = '\0';
	}
}

void history_reply(struct call *call, uint32_t job, bool full)
{
	const struct api_backend *backend = call->api->backend;
	const enum event_view view = full ? EVENT_VIEW_FULL : EVENT_VIEW_PUBLIC;
	struct err err = { 0 };
	struct buf out = BUF_INIT;
	struct page page = { .arena = call->arena };
	struct frozen *frozen = NULL;
	const bool past = call->past;
	int64_t after;

	if (call_page(call, &after, &page.limit, &err) < 0) {
		call_fail(call, &err);
		return;
	}
	page.rows = arena_new_array(call->arena, struct row, page.limit);
	/* The history is not the facts: nothing of these is held while it is read, but for those of a past job, which are the call's own. */
	if (!past)
		call_release(call);
	if (backend->history(backend->context, job, (uint64_t)after, page.limit, &page, page_take,
			     &err) < 0) {
		call_fail(call, &err);
		return;
	}
	if (!past)
		frozen = backend->frozen(backend->context);
	out_object(&out, NULL);
	out_list(&out, "events");
	rows_add(&out, &page, past ? call->facts : &frozen->facts, view);
	out_end(&out, ']');
	if (page.count == page.limit)
		out_int(&out, "next", (int64_t)page.rows[page.count - 1].seq);
	out_end(&out, '}');
	if (frozen)
		backend->release(backend->context, frozen);
	call_reply(call, 200, &out);
}
