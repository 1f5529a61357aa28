/* SPDX-License-Identifier: Apache-2.0 */
/* The event list, and with -f the stream (server-sent events). */
#include <string.h>

#include "base/parse.h"
#include "cli/table/commands.h"
#include "cli/jobs/jobs.h"
#include "cli/output/problem.h"
#include "cli/output/prose.h"
#include "core/model/facts.h"

/* Numbers that stand for words. A value of 0 is left out of records, so it is not shown either. */
static const struct {
	const char *kind, *field;
	const char *(*name)(uint8_t value);
} words[] = {
	{ "job-submitted", "tier", tier_name },    { "job-submitted", "kind", kind_name },
	{ "job-ended", "state", job_state_name },  { "attempt-stopped", "why", stop_why_name },
	{ "attempt-ended", "why", stop_why_name }, { "node-state", "state", node_state_name },
	{ "user-set", "role", role_name },         { "task-exited", "cause", task_cause_name },
	{ "job-ended", "cause", task_cause_name },
};

/* Says nothing to a reader: a number that was not given, or the moment that stands in front. */
static bool is_noise(const char *field, const json_t *value)
{
	return (json_is_integer(value) && json_integer_value(value) == -1) ||
	       strcmp(field, "at_ms") == 0;
}

static bool add_word(const char *kind, const char *field, const json_t *value, struct buf *out)
{
	if (!json_is_integer(value) || json_integer_value(value) < 0 ||
	    json_integer_value(value) > 255)
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(words[i].kind, kind) == 0 && strcmp(words[i].field, field) == 0) {
			say_text(out, words[i].name((uint8_t)json_integer_value(value)));
			return true;
		}
	return false;
}

/* "71  2026-03-01 19:02:11  job-submitted  job=12 name=resnet ..." */
void event_line(const json_t *event, struct buf *out)
{
	const json_t *fields = json_object_get(event, "event"), *value;
	const char *key;
	char *text;

	buf_addf(out, "%7lld  ", (long long)get_int(event, "seq"));
	say_time(out, get_int(event, "time_ms"));
	buf_adds(out, "  ");
	say_text(out, get_text(event, "kind"));
	for (size_t pad = strlen(get_text(event, "kind")); pad < 20; pad++)
		buf_addc(out, ' ');
	json_object_foreach((json_t *)(uintptr_t)fields, key, value)
	{
		if (is_noise(key, value))
			continue;
		buf_addc(out, ' ');
		say_text(out, key);
		buf_addc(out, '=');
		if (add_word(get_text(event, "kind"), key, value, out))
			continue;
		if (json_is_string(value) && !strpbrk(json_string_value(value), " \t\n\"=")) {
			say_text(out, json_string_value(value));
			continue;
		}
		text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
		say_text(out, text ? text : "");
		free(text);
	}
	buf_addc(out, '\n');
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

/* The stream */

/* Lines "field: value", an empty line ends an event. */
struct sse {
	struct buf line, data;
	char event[32];
	const struct output *output;
	int64_t job; /* only events that name it; 0 = all */
	int64_t last_seq;
	bool resync;
};

static void finish_event(struct sse *sse)
{
	json_t *value;

	if (strcmp(sse->event, "resync") == 0) {
		sse->resync = true;
	} else if (sse->data.size) {
		value = json_loadb(sse->data.data, sse->data.size, 0, NULL);
		if (get_int(value, "seq"))
			sse->last_seq = get_int(value, "seq");
		if (value &&
		    (!sse->job || get_int(json_object_get(value, "event"), "job") == sse->job))
			print_event(sse->output, value);
		json_decref(value);
	}
	buf_clear(&sse->data);
	sse->event[0] = '\0';
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
	while (rc >= 0 && !stream.over && !interrupted())
		client_streams_wait(client, 1000);
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
	struct sse sse = { .output = output, .last_seq = after };
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

/* Without --after the last ones, as many as --limit says. */
static int list(struct invocation *in, struct client *client, const struct output *output,
		int64_t after, int64_t limit, struct err *err)
{
	json_t *answer = NULL, *all = json_array(), *event;
	size_t index;
	int64_t job, left = limit;
	int rc = arg_number(in, "job", 1, UINT32_MAX, 0, &job, err);

	while (rc >= 0 && left > 0) {
		const char *base =
			job ? arena_printf(in->arena, "/api/v1/jobs/%lld/history", (long long)job)
			    : "/api/v1/events";

		rc = client_get(client,
				arena_printf(in->arena, "%s?after=%lld&limit=%lld", base,
					     (long long)after,
					     (long long)(left < 500 ? left : 500)),
				&answer, err);
		if (rc < 0)
			break;
		json_array_extend(all, json_object_get(answer, "events"));
		left = limit - (int64_t)json_array_size(all);
		after = get_int(answer, "next");
		json_decref(answer);
		if (!after)
			break;
	}
	if (rc >= 0 && output->form == OUTPUT_NAME)
		rc = output_list(output, NULL, all, "seq", err);
	else if (rc >= 0 && !output_value(output, all, "seq"))
		json_array_foreach(all, index, event) print_event(output, event);
	json_decref(all);
	return rc < 0 ? rc : 0;
}

static int run_events(struct invocation *in, struct err *err)
{
	AUTO_CLIENT client = NULL;
	struct output output;
	int64_t after, limit, newest = 0;
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
	if (after < 0 && !arg_has(in, "job")) {
		rc = newest_seq(client, &newest, err);
		after = newest > limit ? newest - limit : 0;
	}
	return rc < 0 ? rc : list(in, client, &output, after < 0 ? 0 : after, limit, err);
}

static const struct flag flags[] = {
	{ "follow", 'f', NULL, "show what comes, until Ctrl-C", false },
	{ "after", 0, "SEQ", "only what comes behind this number", false },
	{ "limit", 0, "N", "at most so many; default 50", false },
	{ "job", 0, "ID", "only what names this job", false },
	{ 0 },
};

const struct command command_events = {
	.name = "events",
	.arguments = "",
	.summary = "show what happened, and what happens",
	.about =
		"Each line has a number, a time, a kind, and the event's fields. With -f and -o json each event is one line of JSON. A break of "
		"the connection loses nothing: the stream goes on behind the last event seen.",
	.flags = flags,
	.examples = "fairlead events -f\n"
		    "fairlead events --job 12\tall of one job\n"
		    "fairlead events -f -o json | jq .kind\tfor programs",
	.route = "GET /api/v1/events",
	.shares = SHARES_OUTPUT | SHARES_DAEMON,
	.run = run_events,
};
