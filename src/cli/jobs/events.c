/* SPDX-License-Identifier: Apache-2.0 */
/* The event list, and with -f the stream (server-sent events). */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"
#include "cli/output/prose.h"

/* "71  2026-03-01 19:02:11  job 12 (resnet) starts (attempt 1)" */
void event_line(const json_t *event, struct buf *out)
{
	buf_addf(out, "%7lld  ", (long long)get_int(event, "seq"));
	say_time(out, get_int(event, "time_ms"));
	buf_adds(out, "  ");
	say_text(out, get_text(event, "sentence")[0] ? get_text(event, "sentence")
						     : get_text(event, "kind"));
	buf_addc(out, '\n');
}

/* What the event does to its job, as an event of its own: NULL = nothing. */
static json_t *state_event(const json_t *event)
{
	const char *state = get_text(event, "job_state");

	if (!*state || !get_int(event, "job"))
		return NULL;
	return json_pack(
		"{s:I, s:I, s:s, s:b, s:{s:I, s:s}, s:o}", "seq", (json_int_t)get_int(event, "seq"),
		"time_ms", (json_int_t)get_int(event, "time_ms"), "kind", "job-state", "derived", 1,
		"event", "job", (json_int_t)get_int(event, "job"), "state", state, "sentence",
		json_sprintf("job %lld is %s", (long long)get_int(event, "job"), state));
}

void events_take(json_t *into, const json_t *events, bool all, bool derive)
{
	const json_t *event;
	size_t index;

	json_array_foreach((json_t *)(uintptr_t)events, index, event)
	{
		json_t *state = derive ? state_event(event) : NULL;

		if (!all && get_bool(event, "bookkeeping"))
			continue;
		json_array_append(into, (json_t *)(uintptr_t)event);
		if (state)
			json_array_append_new(into, state);
	}
}

static void print_event(const struct output *output, const json_t *event)
{
	AUTO_BUF out = BUF_INIT;

	if (output->form == OUTPUT_JSON) {
		output_json(event, JSON_COMPACT, &out);
		buf_addc(&out, '\n');
	} else {
		event_line(event, &out);
		prose_wrap(&out, output->width, 9);
	}
	output_buf(&out);
}

/* The job that an event is of; 0 = none. */
static int64_t event_job(const json_t *event)
{
	const int64_t job = get_int(event, "job");

	return job ? job : get_int(json_object_get(event, "event"), "job");
}

/* The stream */

/* Lines "field: value", an empty line ends an event. The stream says that there is something; the list has it with its sentences. */
struct sse {
	struct buf line, data;
	char event[32];
	const struct output *output;
	int64_t job; /* only events of it; 0 = all */
	int64_t last_seq; /* shown; -1 = none yet, and what was before is not asked for */
	int64_t come_seq; /* the newest that came */
	bool all, resync;
};

static void finish_event(struct sse *sse)
{
	json_t *value;

	if (strcmp(sse->event, "resync") == 0) {
		sse->resync = true;
	} else if (sse->data.size) {
		value = json_loadb(sse->data.data, sse->data.size, 0, NULL);
		if (get_int(value, "seq"))
			sse->come_seq = get_int(value, "seq");
		if (sse->last_seq < 0 && sse->come_seq)
			sse->last_seq = sse->come_seq - 1;
		json_decref(value);
	}
	buf_clear(&sse->data);
	sse->event[0] = '\0';
}

/* What has come and is not shown. */
static int show_new(struct client *client, struct arena *arena, struct sse *sse, struct err *err)
{
	while (sse->last_seq < sse->come_seq) {
		json_t *answer = NULL, *shown = json_array(), *event;
		const json_t *events;
		size_t index;
		int rc = client_get(client,
				    arena_printf(arena, "/api/v1/events?after=%lld&limit=500",
						 (long long)sse->last_seq),
				    &answer, err);

		events = json_object_get(answer, "events");
		events_take(shown, events, sse->all, sse->output->form == OUTPUT_JSON);
		json_array_foreach(shown, index,
				   event) if (!sse->job || event_job(event) == sse->job)
			print_event(sse->output, event);
		sse->last_seq =
			json_array_size(events)
				? get_int(json_array_get(events, json_array_size(events) - 1),
					  "seq")
				: sse->come_seq;
		json_decref(shown);
		json_decref(answer);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void finish_line(struct sse *sse)
{
	const char *text = buf_text(&sse->line), *value = strchr(text, ':');

	if (!sse->line.size) {
		finish_event(sse);
		return;
	}
	if (value && value > text) {
		size_t length = (size_t)(value - text);

		value += 1 + (value[1] == ' ');
		if (length == 4 && strncmp(text, "data", 4) == 0)
			buf_adds(&sse->data, value);
		else if (length == 5 && strncmp(text, "event", 5) == 0)
			snprintf(sse->event, sizeof(sse->event), "%s", value);
	}
	buf_clear(&sse->line);
}

static bool take_stream(void *context, const char *data, size_t size)
{
	struct sse *sse = context;

	for (size_t i = 0; i < size; i++) {
		if (data[i] == '\n')
			finish_line(sse);
		else if (data[i] != '\r')
			buf_addc(&sse->line, data[i]);
	}
	return !sse->resync;
}

static int follow_once(struct client *client, struct arena *arena, struct sse *sse, struct err *err)
{
	struct stream stream = { .accept = "text/event-stream",
				 .context = sse,
				 .take = take_stream };
	int rc;

	stream.path = sse->last_seq >= 0 ? arena_printf(arena, "/api/v1/events?after=%lld",
							(long long)sse->last_seq)
					 : "/api/v1/events";
	rc = client_stream_begin(client, &stream, err);
	while (rc >= 0 && !stream.over && !interrupted()) {
		client_streams_wait(client, 1000);
		rc = show_new(client, arena, sse, err);
	}
	if (rc >= 0 && stream.over && stream.err.code != ERR_NONE) {
		*err = stream.err;
		rc = -(int)err->code;
	}
	client_stream_end(client, &stream);
	buf_clear(&sse->line);
	buf_clear(&sse->data);
	return rc;
}

/* Comes back after a restart of the daemon, behind the last event seen. */
static int follow(struct invocation *in, struct client *client, const struct output *output,
		  int64_t after, struct err *err)
{
	struct sse sse = {
		.output = output, .last_seq = after, .come_seq = after, .all = arg_has(in, "all")
	};
	int rc = arg_number(in, "job", 1, UINT32_MAX, 0, &sse.job, err);

	interrupt_watch();
	while (rc >= 0 && !interrupted()) {
		rc = follow_once(client, in->arena, &sse, err);
		if (rc == -(int)ERR_UNREACHABLE && sse.last_seq > 0) {
			notice("%s; waiting for it", err->text);
			rc = 0;
			interruptible_sleep(1000);
		} else if (sse.resync) {
			notice("this side was too slow; going on from event %lld",
			       (long long)sse.last_seq);
			sse.resync = false;
		} else if (rc >= 0) {
			interruptible_sleep(200);
		}
	}
	buf_deinit(&sse.line);
	buf_deinit(&sse.data);
	return rc < 0 ? rc : 0;
}

static int newest_seq(struct client *client, int64_t *ret, struct err *err)
{
	json_t *status = NULL;
	int rc = client_get(client, "/api/v1/status", &status, err);

	*ret = get_int(status, "last_seq");
	json_decref(status);
	return rc;
}

static int fetch(struct invocation *in, struct client *client, int64_t job, int64_t after,
		 int64_t limit, json_t *all, struct err *err)
{
	const char *base =
		job ? arena_printf(in->arena, "/api/v1/jobs/%lld/history", (long long)job)
		    : "/api/v1/events";
	json_t *answer = NULL;
	int rc = 0;

	while (rc >= 0 && after >= 0 && (int64_t)json_array_size(all) < limit) {
		rc = client_get(
			client,
			arena_printf(in->arena, "%s?after=%lld&limit=500", base, (long long)after),
			&answer, err);
		if (rc < 0)
			break;
		events_take(all, json_object_get(answer, "events"), arg_has(in, "all"), false);
		after = get_int(answer, "next") ? get_int(answer, "next") : -1;
		json_decref(answer);
	}
	return rc;
}

/* The first ones behind `after`; where that is -1 the last ones, of which the scheduler's own notes take most numbers. */
static int list(struct invocation *in, struct client *client, const struct output *output,
		int64_t after, int64_t limit, struct err *err)
{
	enum { NOTES_FOR_EACH = 8 };
	json_t *found = json_array(), *shown = json_array(), *event;
	int64_t job, newest = 0, reach = limit;
	size_t index;
	int rc = arg_number(in, "job", 1, UINT32_MAX, 0, &job, err);

	if (rc >= 0 && after < 0 && !job)
		rc = newest_seq(client, &newest, err);
	do {
		const int64_t from = after >= 0 ? after : newest > reach ? newest - reach : 0;

		json_array_clear(found);
		if (rc >= 0)
			rc = fetch(in, client, job, from, after < 0 ? INT64_MAX : limit, found,
				   err);
		if (after >= 0 || job || !from || (int64_t)json_array_size(found) >= limit)
			break;
		reach *= NOTES_FOR_EACH;
	} while (rc >= 0);
	while ((int64_t)json_array_size(found) > limit)
		json_array_remove(found, after < 0 && !job ? 0 : json_array_size(found) - 1);
	events_take(shown, found, true, output->form == OUTPUT_JSON || output->form == OUTPUT_YAML);
	if (rc >= 0 && output->form == OUTPUT_NAME)
		rc = output_list(output, NULL, shown, "seq", err);
	else if (rc >= 0 && !output_value(output, shown, "seq"))
		json_array_foreach(shown, index, event) print_event(output, event);
	json_decref(shown);
	json_decref(found);
	return rc < 0 ? rc : 0;
}

static int run_events(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct output output;
	int64_t after, limit;
	int rc = arg_number(in, "after", 0, INT64_MAX, -1, &after, err);

	if (rc >= 0)
		rc = arg_number(in, "limit", 1, INT32_MAX, 50, &limit, err);
	if (rc >= 0)
		rc = client_open(in, &client, err);
	if (rc < 0)
		return rc;
	output_init(&output, in);
	if (arg_has(in, "follow"))
		return follow(in, client, &output, after, err);
	return list(in, client, &output, after, limit, err);
}

static const struct flag flags[] = {
	{ "follow", 'f', NULL, "show what comes, until Ctrl-C", false },
	{ "after", 0, "SEQ", "only what comes behind this number", false },
	{ "limit", 0, "N", "at most so many; default 50", false },
	{ "job", 0, "ID", "only what is of this job", false },
	{ "all", 0, NULL, "also ranks that are ready, progress, and places planned for later",
	  false },
	{ 0 },
};

const struct command command_events = {
	.name = "events",
	.arguments = "",
	.summary = "show what happened, and what happens",
	.about =
		"Each line has a number, a time and a sentence. -o json has the kind and the fields in addition, and an event job-state behind each one that changes the state "
		"of a job. With -f and -o json each event is one line of JSON. A break of "
		"the connection loses nothing: the stream goes on behind the last event seen.",
	.flags = flags,
	.examples = "fairlead events -f\n"
		    "fairlead events --job 12\tall of one job\n"
		    "fairlead events -f -o json | jq .kind\tfor programs",
	.route = "GET /api/v1/events",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_events,
};
