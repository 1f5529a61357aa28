/* SPDX-License-Identifier: Apache-2.0 */
#include "api/many.h"

#include "base/check.h"

struct many *many_create(struct call *call, const uint32_t *jobs, uint32_t count)
{
	struct many *many = arena_new(call->arena, struct many);

	many->call = call;
	many->jobs = jobs;
	many->count = many->matched = count;
	CHECK(pthread_mutex_init(&many->lock, NULL) == 0);
	return many;
}

static void note_problem(struct many *many, const struct err *err)
{
	if (many->failed < MANY_PROBLEMS)
		many->problems[many->failed] = *err;
	many->failed++;
}

void many_refused(struct many *many, const struct err *err)
{
	many->matched++;
	note_problem(many, err);
}

static void problems_add(const struct many *many, struct buf *out)
{
	out_list(out, "problems");
	for (uint32_t i = 0; i < many->failed && i < MANY_PROBLEMS; i++)
		out_text(out, NULL, many->problems[i].text);
	out_end(out, ']');
}

static void answer(struct many *many)
{
	struct buf out = BUF_INIT;

	pthread_mutex_destroy(&many->lock);
	if (many->failed && !many->done && !many->already) {
		call_fail(many->call, &many->problems[0]);
		return;
	}
	out_object(&out, NULL);
	out_int(&out, "matched", many->matched);
	out_int(&out, "done", many->done);
	out_int(&out, "already", many->already);
	out_int(&out, "failed", many->failed);
	if (many->failed) {
		out_text(&out, "problem", many->problems[0].text);
		out_text(&out, "problem_code", err_code_name(many->problems[0].code));
		problems_add(many, &out);
	}
	out_int(&out, "seq", (int64_t)many->seq);
	out_end(&out, '}');
	call_reply(many->call, 200, &out);
}

static void send_some(struct many *many);

static void one_done(void *context, const struct command_reply *reply)
{
	struct many *many = context;
	bool last;

	pthread_mutex_lock(&many->lock);
	if (reply->err.code != ERR_NONE)
		note_problem(many, &reply->err);
	else if (reply->already)
		many->already++;
	else
		many->done++;
	many->seq = reply->seq > many->seq ? reply->seq : many->seq;
	last = --many->pending == 0;
	pthread_mutex_unlock(&many->lock);
	if (!last)
		return;
	if (many->next < many->count)
		send_some(many);
	else
		answer(many);
}

/* Nobody else touches it: of those sent before all have been answered. */
static void send_some(struct many *many)
{
	const struct api_backend *backend = many->call->api->backend;
	const uint32_t first = many->next, left = many->count - first,
		       end = first + (left > MANY_TOGETHER ? MANY_TOGETHER : left);

	many->next = end;
	many->pending = end - first;
	for (uint32_t i = first; i < end; i++) {
		struct command *command;
		struct event event = { 0 };

		many->make(many, i, &event);
		command = command_create(&event, NULL, 0);
		command->context = many;
		command->done = one_done;
		backend->send(
			backend->context,
			command); /* the last one may answer the request: nothing of it behind this */
	}
}

static void before_done(void *context, const struct command_reply *reply)
{
	struct many *many = context;

	if (reply->err.code == ERR_NONE)
		send_some(many);
	else
		call_fail(many->call, &reply->err);
}

void many_send(struct many *many)
{
	const struct api_backend *backend = many->call->api->backend;
	struct command *command;

	CHECK(many->call->permitted);
	call_release(many->call);
	if (!many->count) {
		answer(many);
		return;
	}
	if (!many->before.kind) {
		send_some(many);
		return;
	}
	command = command_create(&many->before, NULL, 0);
	command->context = many;
	command->done = before_done;
	backend->send(backend->context, command);
}
