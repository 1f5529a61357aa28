/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clients of the event stream: one that hears all from the first event on, one that reads seldom, one who may not see all. Whoever
 * is cut off comes back with the number of the last event that it has. Each event must then be told once, in order, as it was recorded;
 * only who read too slowly, or while the history did not answer, is told to begin anew.
 */
#include <stdlib.h>
#include <string.h>

#include "api/history_page.h"
#include "api/hub.h"
#include "base/check.h"
#include "whole.h"

enum { LISTENERS = 3, SLOW = 1, PUBLIC = 2, AGAIN_MS = 3000, PASSES_END = 50 };

/* A record that has left the gate. */
struct told {
	int64_t time_ms;
	uint32_t kind;
	char *text;
	size_t size;
};

struct listener {
	const char *name;
	enum event_view view;
	int64_t last; /* the newest event that it has; -1 = none yet, and it wants those from now on */
	int64_t next_ms; /* reads, or comes back */
	bool asked; /* for a stream, which has not begun */
	bool excused; /* it may be told to begin anew */
	struct buf text; /* read, and not whole yet */
};

struct listeners {
	struct whole *w;
	struct listener all[LISTENERS];
	struct sim_random random;
	struct told *told; /* by sequence number */
	size_t count, room;
	int64_t pass_ms; /* of the hub; NEVER = it has nothing to do */
};

struct listeners *listeners_create(struct whole *w)
{
	struct listeners *l = calloc(1, sizeof(*l));

	CHECK(l);
	l->w = w;
	l->random.state = w->seed ^ 0x115;
	l->pass_ms = NEVER;
	l->all[0] = (struct listener){ .name = "who hears all", .view = EVENT_VIEW_FULL };
	l->all[SLOW] = (struct listener){ .name = "who reads seldom", .view = EVENT_VIEW_FULL };
	l->all[PUBLIC] =
		(struct listener){ .name = "alice", .view = EVENT_VIEW_PUBLIC, .last = -1 };
	for (uint32_t i = 0; i < LISTENERS; i++)
		l->all[i].next_ms = w->now_ms + 1000;
	return l;
}

void listeners_destroy(struct listeners *l)
{
	for (size_t i = 0; i < l->count; i++)
		free(l->told[i].text);
	for (uint32_t i = 0; i < LISTENERS; i++)
		buf_deinit(&l->all[i].text);
	free(l->told);
	free(l);
}

/* --- what there is to tell -------------------------------------------------------------------------------------------------- */

void listeners_record(struct whole *w, uint64_t seq, int64_t time_ms, uint32_t kind,
		      const char *text, size_t size)
{
	struct listeners *l = w->listeners;

	CHECK(seq == l->count + 1);
	if (l->count == l->room) {
		l->room = l->room ? l->room * 2 : 1024;
		l->told = reallocarray(l->told, l->room, sizeof(*l->told));
		CHECK(l->told);
	}
	l->told[l->count] = (struct told){ time_ms, kind, malloc(size + 1), size };
	CHECK(l->told[l->count].text);
	memcpy(l->told[l->count].text, text, size);
	l->told[l->count++].text[size] = '\0';
}

void listeners_published(struct whole *w)
{
	if (w->listeners->pass_ms == NEVER)
		w->listeners->pass_ms = w->now_ms + HUB_BATCH_MS;
}

/* In place of the read models; now and then they do not answer. */
int listeners_history(void *context, uint32_t job, uint64_t after, uint32_t limit,
		      void *take_context,
		      int (*take)(void *take_context, uint64_t seq, int64_t time_ms, uint32_t kind,
				  const char *text, size_t size),
		      struct err *err)
{
	struct listeners *l = whole->listeners;

	(void)context;
	CHECK(job == 0);
	if (!whole->calm && one_in(&l->random, 20)) {
		for (uint32_t i = 0; i < LISTENERS; i++)
			l->all[i].excused = true;
		return err_set(err, ERR_UNAVAILABLE, "history is behind the journal");
	}
	for (uint64_t seq = after + 1; seq <= l->count && limit--; seq++) {
		const struct told *told = &l->told[seq - 1];
		int rc = take(take_context, seq, told->time_ms, told->kind, told->text, told->size);

		if (rc)
			return rc;
	}
	return 0;
}

/* --- reading ----------------------------------------------------------------------------------------------------------------- */

/* The event as this listener is to see it; false: not at all. */
static bool event_seen(const struct listeners *l, const struct listener *who, uint64_t seq,
		       struct buf *ret)
{
	const struct told *told = &l->told[seq - 1];

	return event_add(ret, seq, told->time_ms, told->kind, told->text, told->size, who->view);
}

static void check_left_out(struct listeners *l, const struct listener *who, int64_t end)
{
	for (int64_t seq = who->last + 1; who->last >= 0 && seq < end; seq++) {
		struct buf text = BUF_INIT;

		if (event_seen(l, who, (uint64_t)seq, &text))
			whole_problem(l->w, "%s is told event %ld behind event %ld, and not %ld",
				      who->name, (long)end, (long)who->last, (long)seq);
		buf_deinit(&text);
	}
}

static void check_event(struct listeners *l, struct listener *who, int64_t seq, const char *data)
{
	struct buf text = BUF_INIT;

	if (seq < 1 || seq > (int64_t)l->count) {
		whole_problem(l->w, "%s is told event %ld, and %zu have left the gate", who->name,
			      (long)seq, l->count);
		return;
	}
	if (seq <= who->last) {
		whole_problem(l->w, "%s is told event %ld behind event %ld", who->name, (long)seq,
			      (long)who->last);
		return;
	}
	check_left_out(l, who, seq);
	if (!event_seen(l, who, (uint64_t)seq, &text) || strcmp(buf_text(&text), data) != 0)
		whole_problem(l->w, "%s is told event %ld as %.200s", who->name, (long)seq, data);
	buf_deinit(&text);
	who->last = seq;
	l->w->told++;
}

static void check_resync(struct listeners *l, struct listener *who, int64_t seq)
{
	if (!who->excused)
		whole_problem(l->w, "%s is told to begin anew at event %ld, and has all until %ld",
			      who->name, (long)seq, (long)who->last);
	if (seq < who->last)
		whole_problem(l->w, "%s is told to begin anew at event %ld, and has event %ld",
			      who->name, (long)seq, (long)who->last);
	who->last = seq;
	who->excused = false;
	l->w->resyncs++;
}

/* One frame, without the empty line behind it. */
static void frame_take(struct listeners *l, struct listener *who, char *frame)
{
	char *event = strstr(frame, "\nevent: "), *data = event ? strstr(event, "\ndata: ") : NULL;

	if (*frame == ':' || strncmp(frame, "retry: ", 7) == 0)
		return;
	if (strncmp(frame, "id: ", 4) != 0 || !event || !data) {
		whole_problem(l->w, "%s is told %.100s", who->name, frame);
		return;
	}
	if (strncmp(event, "\nevent: resync\n", 15) == 0)
		check_resync(l, who, strtoll(frame + 4, NULL, 10));
	else
		check_event(l, who, strtoll(frame + 4, NULL, 10), data + 7);
}

static void read_all(struct listeners *l, struct listener *who)
{
	char *text = transport_read(who), *frame, *end;
	bool slow;

	if (!text)
		return;
	whole_trace(l->w, "%s reads %zu bytes behind event %ld: %.20s", who->name, strlen(text),
		    (long)who->last, text);
	slow = strlen(text) > HUB_WAITING_MAX / 2;
	who->excused = who->excused || slow;
	buf_adds(&who->text, text);
	free(text);
	text = buf_take(&who->text);
	for (frame = text; (end = strstr(frame, "\n\n")); frame = end + 2) {
		*end = '\0';
		frame_take(l, who, frame);
	}
	buf_adds(&who->text, frame);
	free(text);
	who->excused =
		who->excused || slow; /* also where it was told of an earlier time in between */
	if (l->pass_ms == NEVER)
		l->pass_ms = l->w->now_ms + HUB_BATCH_MS; /* it is told of what it missed */
}

/* --- coming and going --------------------------------------------------------------------------------------------------------- */

static void refused(struct whole *w, void *context, int status, const char *text)
{
	struct listener *who = context;

	(void)text;
	who->asked = false;
	who->next_ms = w->now_ms + AGAIN_MS;
	if (status && status < 500 && status != 401)
		whole_problem(w, "%s asks for events and is answered with %d", who->name, status);
}

static void come(struct listeners *l, struct listener *who)
{
	bool public = who->view == EVENT_VIEW_PUBLIC;
	const char *token = public ? people_token(l->w) : NULL;

	who->next_ms = l->w->now_ms + AGAIN_MS;
	if (!l->w->daemon || (public && !token))
		return;
	who->asked = true;
	buf_clear(&who->text);
	whole_trace(l->w, "%s comes with event %ld", who->name, (long)who->last);
	transport_listen(l->w, token, who->last, refused, who);
}

static void listener_run(struct listeners *l, struct listener *who)
{
	bool slow = who == &l->all[SLOW];

	if (!transport_listens(who)) {
		if (!who->asked)
			come(l, who);
		return;
	}
	read_all(l, who);
	who->next_ms = l->w->now_ms + AGAIN_MS;
	if (slow && !l->w->calm)
		who->next_ms += below(&l->random, 3 * 3600000);
	if (!l->w->calm && one_in(&l->random, slow ? 4 : 400)) {
		whole_trace(l->w, "%s goes away", who->name);
		transport_leave(who);
		who->asked = false;
	}
}

void listeners_run(struct whole *w)
{
	struct listeners *l = w->listeners;

	if (w->daemon && l->pass_ms <= w->now_ms) {
		l->pass_ms = NEVER;
		event_hub_pass(api_hub(w->daemon->api));
	}
	for (uint32_t i = 0; i < LISTENERS; i++)
		if (l->all[i].next_ms <= w->now_ms)
			listener_run(l, &l->all[i]);
}

int64_t listeners_next_ms(const struct whole *w)
{
	const struct listeners *l = w->listeners;

	return w->daemon && l->pass_ms != NEVER ? l->pass_ms : NEVER;
}

/* Everything is told in the end. */
void listeners_end(struct whole *w)
{
	struct listeners *l = w->listeners;

	if (w->problem[0] || !w->daemon)
		return;
	for (uint32_t i = 0; i < PASSES_END; i++) {
		w->now_ms += HUB_BATCH_MS + AGAIN_MS;
		l->pass_ms = w->now_ms;
		for (uint32_t k = 0; k < LISTENERS; k++)
			l->all[k].next_ms = w->now_ms;
		listeners_run(w);
		(void)life_settle(w);
	}
	for (uint32_t i = 0; i < LISTENERS && !w->problem[0]; i++)
		check_left_out(l, &l->all[i], (int64_t)w->listeners->count + 1);
}
