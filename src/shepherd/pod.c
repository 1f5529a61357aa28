/* SPDX-License-Identifier: Apache-2.0 */
#include "shepherd/pod.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"
#include "base/wait.h"
#include "engine/checkpoint.h"
#include "engine/local/place.h"
#include "shepherd/shepherd.h"

enum {
	KEPT_MAX = 64, /* reports that the daemon does not have yet; of more the oldest go */
	SENT_MAX = 16, /* at a time */
	PROGRESS_PAUSE_MS = 5000, /* progress alone is sent this often */
	WAIT_MAX_MS = 15000, /* that the daemon may keep a question open */
	ANSWER_MS = 5000, /* beyond that */
	ANSWER_BYTES = 1 << 20, /* an answer names all ranks */
	FIRST_PAUSE_MS = 100,
	LAST_PAUSE_MS = 2000,
	FENCED_GRACE_MS = 5000,
	LOOKS = 4, /* at a checkpoint that does not seem good, before that is believed: file servers keep what they saw for a while */
	LOOK_PAUSE_MS = 1000,
	LOOK_PATIENCE_MS = 60000,
	END_MS = 5000
};

struct pod {
	struct pod_options options;
	char path[96];
	int folder;
	pthread_t lease_thread, report_thread, look_thread;
	atomic_int_fast64_t lease_ms, until_ms; /* boot clock; 0 = none was given yet */
	atomic_bool fenced;
	atomic_bool torn; /* the checkpoint that it was to go on from */
	pthread_mutex_t lock; /* of what follows */
	bool looked; /* at that checkpoint: it is good, or there is none */
	bool leased, gone; /* the first lease was given; the task was told to go */
	pthread_cond_t changed;
	struct engine_fact kept[KEPT_MAX];
	uint32_t kept_count;
	bool finishing;
	char refusal[200]; /* why it may not go on */
	/* the loop's: */
	bool stopped;
	char lost[256];
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

int64_t pod_margin_ms(int64_t lease_ms)
{
	return least(lease_ms / 10, 10000);
}

int64_t pod_grace_ms(int64_t lease_ms)
{
	return pod_margin_ms(lease_ms) + least(lease_ms / 5, 30000);
}

static void pause_ms(int64_t ms)
{
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&pause, NULL);
}

struct pod *pod_create(const struct pod_options *options)
{
	struct pod *pod = calloc(1, sizeof(*pod));
	char rank[PLACE_NAME_MAX];

	CHECK(pod);
	pod->options = *options;
	place_name(rank, options->rank, options->launch);
	snprintf(pod->path, sizeof(pod->path), "/pods/v1/attempts/%" PRIu64 "/ranks/%s/",
		 options->attempt, rank);
	pthread_mutex_init(&pod->lock, NULL);
	cond_init(&pod->changed);
	return pod;
}

static int ask(struct pod *pod, const char *what, const char *body, int64_t timeout_ms,
	       struct buf *answer, struct err *err)
{
	char path[128];

	snprintf(path, sizeof(path), "%s%s", pod->path, what);
	return pod_http_post(&(struct pod_post){ .server = pod->options.server,
						 .path = path,
						 .token = pod->options.token,
						 .body = body,
						 .timeout_ms = timeout_ms,
						 .most = ANSWER_BYTES },
			     answer, err);
}

/* {"error": {"message": ...}} */
static void read_refusal(const struct buf *answer, char *out, size_t room)
{
	struct json_reader r;
	struct json_slice key, text;

	out[0] = '\0';
	pull_init(&r, buf_text(answer), answer->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (!pull_key_is(&key, "error")) {
			pull_skip(&r);
			continue;
		}
		pull_object(&r);
		while (pull_member(&r, &key)) {
			if (!pull_key_is(&key, "message")) {
				pull_skip(&r);
				continue;
			}
			pull_string(&r, &text);
			snprintf(out, room, "%.*s", (int)least((int64_t)text.size, 180), text.data);
		}
	}
}

/* --- the lease ----------------------------------------------------------------------------------------------------- */

struct lease {
	int64_t lease_ms, pause_ms, grace_ms;
	uint64_t warning;
	bool stop;
	struct json_slice world; /* as it stands in the answer; NULL = it says nothing of it */
	struct pod_world placed;
};

static int lease_read(const struct buf *answer, struct lease *ret, struct err *err)
{
	struct lease lease = { 0 };
	struct json_reader r;
	struct json_slice key;

	pull_init(&r, buf_text(answer), answer->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "lease_ms"))
			pull_int(&r, &lease.lease_ms);
		else if (pull_key_is(&key, "pause_ms"))
			pull_int(&r, &lease.pause_ms);
		else if (pull_key_is(&key, "warning"))
			pull_uint(&r, &lease.warning);
		else if (pull_key_is(&key, "stop"))
			pull_bool(&r, &lease.stop);
		else if (pull_key_is(&key, "grace_ms"))
			pull_int(&r, &lease.grace_ms);
		else if (pull_key_is(&key, "world"))
			lease.world = pod_value_skip(&r);
		else if (pull_key_is(&key, "rank"))
			pull_int(&r, &lease.placed.rank);
		else if (pull_key_is(&key, "leave_ms"))
			pull_int(&r, &lease.placed.leave_ms);
		else
			pull_skip(&r);
	}
	if (!r.problem && (lease.lease_ms <= 0 || lease.pause_ms < 0 || lease.grace_ms < 0))
		pull_fail(&r, "times are whole milliseconds");
	*ret = lease;
	return pull_finish(&r, err);
}

/* The task starts when it may and its checkpoint is good. */
static int go_when_due(struct pod *pod, struct err *err)
{
	int result = 0;

	pthread_mutex_lock(&pod->lock);
	if (pod->leased && pod->looked && !pod->gone) {
		result = place_put(pod->folder, "go", "", 0, err);
		pod->gone = result == 0;
	}
	pthread_mutex_unlock(&pod->lock);
	return result;
}

/* What was said and noted. */
struct heard {
	uint64_t warning;
	int64_t world; /* generation; -1 = none */
	bool stopping;
};

/* The answer to a question that was sent then. False: what it says could not be noted here. */
static bool lease_take(struct pod *pod, struct lease *lease, int64_t sent_ms, struct heard *heard)
{
	bool first = !atomic_load(&pod->until_ms);
	struct err err;
	int result = 0;

	atomic_store(&pod->lease_ms, lease->lease_ms);
	atomic_store(&pod->until_ms, sent_ms + lease->lease_ms);
	if (lease->world.data) {
		result = pod_world_put(pod->options.home, pod->folder, &lease->world,
				       &lease->placed, &err);
		if (result == 0)
			heard->world = lease->placed.generation;
	}
	if (result == 0 && lease->warning > heard->warning) {
		result = place_put_command(pod->folder, "warn", lease->warning, lease->grace_ms,
					   &err);
		if (result == 0)
			heard->warning = lease->warning;
	}
	if (result == 0 && lease->stop && !heard->stopping) {
		result = place_put_command(pod->folder, "stop", 1, lease->grace_ms, &err);
		heard->stopping = result == 0;
	}
	if (result == 0) {
		pthread_mutex_lock(&pod->lock);
		pod->leased = true;
		pthread_mutex_unlock(&pod->lock);
		result = go_when_due(pod, &err);
	}
	if (result < 0) {
		log_line(LOG_ERROR, "%s; trying again", err.text);
		if (first)
			atomic_store(&pod->until_ms, 0);
	}
	place_wake(pod->folder);
	return result == 0;
}

static void fence(struct pod *pod, int status, const struct buf *answer)
{
	pthread_mutex_lock(&pod->lock);
	read_refusal(answer, pod->refusal, sizeof(pod->refusal));
	pthread_mutex_unlock(&pod->lock);
	log_line(LOG_WARN, "it may not go on (%d): %s", status, pod->refusal);
	atomic_store(&pod->fenced, true);
	place_wake(pod->folder);
}

/* Seldom, and once when it is over. */
static void say_silence(const struct err *err, int64_t *said_ms)
{
	int64_t now = clock_boot_ms();

	if (*said_ms && now - *said_ms < 60000)
		return;
	*said_ms = now;
	log_line(LOG_WARN, "no word from Fairlead: %s", err->text);
}

static void *lease_main(void *argument)
{
	struct pod *pod = argument;
	AUTO_BUF answer = BUF_INIT;
	struct heard heard = { .world = -1 };
	bool unheard = false;
	int64_t silent_ms = 0, pause = FIRST_PAUSE_MS;

	for (;;) {
		int64_t lease_ms = atomic_load(&pod->lease_ms), sent_ms = clock_boot_ms();
		/* Who did not answer may be asleep, and behind a Service the next one is another: answers come at once then, or not. */
		int64_t wait_ms = unheard ? 0 : least(lease_ms / 4, WAIT_MAX_MS);
		struct lease lease;
		struct err err = { 0 };
		char body[160];

		snprintf(body, sizeof(body),
			 "{\"wait_ms\":%" PRId64 ",\"warning\":%" PRIu64 ",\"world\":%" PRId64
			 ",\"stopping\":%s}",
			 wait_ms, heard.warning, heard.world, heard.stopping ? "true" : "false");
		int status =
			ask(pod, "lease", body,
			    wait_ms + (lease_ms ? least(lease_ms / 8 + 200, ANSWER_MS) : ANSWER_MS),
			    &answer, &err);
		unheard = status <= 0;
		if (status == 200 && lease_read(&answer, &lease, &err) == 0) {
			pause = FIRST_PAUSE_MS;
			if (silent_ms)
				log_line(LOG_INFO, "Fairlead answers again");
			silent_ms = 0;
			if (!lease_take(pod, &lease, sent_ms, &heard))
				pause_ms(LAST_PAUSE_MS);
			else if (lease.pause_ms)
				pause_ms(least(lease.pause_ms, lease.lease_ms / 4));
			continue;
		}
		if (status == 403 || status == 409) {
			fence(pod, status, &answer);
			return NULL;
		}
		if (status > 0)
			err_set(&err, ERR_UNREACHABLE, "%.80s answers %d", pod->options.server,
				status);
		say_silence(&err, &silent_ms);
		pause_ms(pause);
		pause = least(pause * 2,
			      lease_ms ? least(lease_ms / 20 + 50, LAST_PAUSE_MS) : LAST_PAUSE_MS);
	}
}

/* --- what it goes on from ------------------------------------------------------------------------------------------ */

bool pod_resume_parse(const char *text, int64_t *ret_number, int64_t *ret_bytes)
{
	const char *colon = strchr(text, ':');
	char number[24];

	if (!colon || (size_t)(colon - text) >= sizeof(number))
		return false;
	snprintf(number, sizeof(number), "%.*s", (int)(colon - text), text);
	return parse_int(number, 1, UINT32_MAX, ret_number, NULL) == 0 &&
	       parse_int(colon + 1, 0, INT64_MAX, ret_bytes, NULL) == 0;
}

/* -1: it is not there, or can't be read (`away`: at this moment). INT64_MAX: it is there, and that is all that can be known. */
static int64_t resume_size(const struct pod *pod, bool *ret_away, struct err *err)
{
	const struct checkpoint_ask ask = { .path = pod->options.resume_path,
					    .uid = geteuid(),
					    .gid = getegid(),
					    .patience_ms = LOOK_PATIENCE_MS };
	int64_t bytes = 0;
	int result = checkpoint_look(&ask, &bytes, err);

	*ret_away = checkpoint_may_come_back(result);
	return result > 0 || result == -(int)ERR_INTERNAL ? INT64_MAX : result < 0 ? -1 : bytes;
}

enum said {
	SAID, /* the daemon knows */
	SAID_IN_VAIN, /* it is of an older release, or does not see it so: then it is as if nobody had looked */
	SAID_TO_FENCE /* the task may not go on anyway */
};

static enum said torn_say(struct pod *pod, int64_t bytes)
{
	AUTO_BUF answer = BUF_INIT;
	int64_t silent_ms = 0;
	struct err err;
	char body[96], text[40] = "";

	if (bytes >= 0)
		snprintf(text, sizeof(text), ",\"bytes\":%" PRId64, bytes);
	snprintf(body, sizeof(body), "{\"number\":%" PRId64 "%s}", pod->options.resume_number,
		 text);
	for (;;) {
		int status = ask(pod, "torn", body, ANSWER_MS, &answer, &err);

		if (status == 200)
			return SAID;
		if (status == 403 || status == 409) {
			fence(pod, status, &answer);
			return SAID_TO_FENCE;
		}
		if (status >= 400 && status < 500)
			return SAID_IN_VAIN;
		if (status > 0)
			err_set(&err, ERR_UNREACHABLE, "%.80s answers %d", pod->options.server,
				status);
		say_silence(&err, &silent_ms);
		pause_ms(LAST_PAUSE_MS);
	}
}

static void torn_note(struct pod *pod, int64_t bytes, bool forbidden)
{
	pthread_mutex_lock(&pod->lock);
	if (bytes < 0 && forbidden)
		snprintf(pod->refusal, sizeof(pod->refusal),
			 "the account with uid %u may not read \"%.120s\"", geteuid(),
			 pod->options.resume_path);
	else if (bytes < 0)
		snprintf(pod->refusal, sizeof(pod->refusal),
			 "\"%.120s\" is missing or can't be read", pod->options.resume_path);
	else
		snprintf(pod->refusal, sizeof(pod->refusal),
			 "it has %" PRId64 " bytes, and had %" PRId64, bytes,
			 pod->options.resume_bytes);
	pthread_mutex_unlock(&pod->lock);
	atomic_store(&pod->torn, true);
}

static void *look_main(void *argument)
{
	struct pod *pod = argument;
	struct err err = { 0 };
	bool away, told = false;
	int64_t bytes = resume_size(pod, &away, &err),
		until_ms = clock_boot_ms() + CHECKPOINT_AWAY_MS;
	enum said said = SAID_IN_VAIN;

	for (int i = 1;
	     bytes < pod->options.resume_bytes && (away ? clock_boot_ms() < until_ms : i < LOOKS);
	     i += !away) {
		if (away && !told)
			log_line(LOG_WARN,
				 "what it resumes from is looked at again each second for %d s: %s",
				 CHECKPOINT_AWAY_MS / 1000, err.text);
		told = told || away;
		pause_ms(LOOK_PAUSE_MS);
		bytes = resume_size(pod, &away, &err);
	}
	if (bytes < pod->options.resume_bytes)
		said = torn_say(pod, bytes);
	if (said == SAID)
		torn_note(pod, bytes, err.code == ERR_FORBIDDEN);
	if (said == SAID_IN_VAIN) {
		pthread_mutex_lock(&pod->lock);
		pod->looked = true;
		pthread_mutex_unlock(&pod->lock);
		if (go_when_due(pod, &err) < 0) /* the next lease tries again */
			log_line(LOG_ERROR, "%s; trying again", err.text);
	}
	place_wake(pod->folder);
	return NULL;
}

/* --- reports ---------------------------------------------------------------------------------------------------------- */

/* Of progress the newest says all; checkpoints are kept as they came. */
void pod_reported(struct pod *pod, const struct engine_fact *fact)
{
	pthread_mutex_lock(&pod->lock);
	if (pod->kept_count && !fact->checkpoint && !pod->kept[pod->kept_count - 1].checkpoint)
		pod->kept_count--;
	if (pod->kept_count == KEPT_MAX)
		memmove(pod->kept, pod->kept + 1, sizeof(*pod->kept) * (size_t)--pod->kept_count);
	pod->kept[pod->kept_count++] = *fact;
	pthread_cond_broadcast(&pod->changed);
	pthread_mutex_unlock(&pod->lock);
}

static bool has_checkpoint(const struct pod *pod)
{
	for (uint32_t i = 0; i < pod->kept_count; i++)
		if (pod->kept[i].checkpoint)
			return true;
	return false;
}

static void wait_ms(struct pod *pod, int64_t ms)
{
	const struct timespec until = wait_until(ms);

	(void)pthread_cond_timedwait(&pod->changed, &pod->lock, &until);
}

/* Under the lock: waits until there is something to send now. */
static void wait_for_reports(struct pod *pod, int64_t sent_ms)
{
	while (!pod->kept_count && !pod->finishing)
		pthread_cond_wait(&pod->changed, &pod->lock);
	while (!has_checkpoint(pod) && !pod->finishing) {
		int64_t left = sent_ms + PROGRESS_PAUSE_MS - clock_boot_ms();

		if (left <= 0)
			return;
		wait_ms(pod, left);
	}
}

static void reports_format(const struct pod *pod, struct buf *out)
{
	buf_adds(out, "{\"reports\":[");
	for (uint32_t i = 0; i < pod->kept_count && i < SENT_MAX; i++) {
		const struct engine_fact *fact = &pod->kept[i];

		buf_addf(out, "%s{\"number\":%" PRIu64, i ? "," : "", fact->number);
		if (fact->step >= 0)
			buf_addf(out, ",\"step\":%" PRId64, fact->step);
		if (fact->checkpoint) {
			buf_adds(out, ",\"checkpoint\":");
			buf_add_json(out, fact->path, strlen(fact->path));
			buf_addf(out, ",\"bytes\":%" PRId64, fact->bytes);
		}
		buf_addc(out, '}');
	}
	buf_adds(out, "]}");
}

static void drop_until(struct pod *pod, uint64_t number)
{
	uint32_t count = 0;

	while (count < pod->kept_count && pod->kept[count].number <= number)
		count++;
	pod->kept_count -= count;
	memmove(pod->kept, pod->kept + count, sizeof(*pod->kept) * pod->kept_count);
	pthread_cond_broadcast(&pod->changed);
}

static int kept_read(const struct buf *answer, uint64_t *ret, struct err *err)
{
	struct json_reader r;
	struct json_slice key;

	*ret = 0;
	pull_init(&r, buf_text(answer), answer->size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "kept"))
			pull_uint(&r, ret);
		else
			pull_skip(&r);
	}
	return pull_finish(&r, err);
}

static void *report_main(void *argument)
{
	struct pod *pod = argument;
	AUTO_BUF body = BUF_INIT;
	AUTO_BUF answer = BUF_INIT;
	int64_t sent_ms = 0, pause = FIRST_PAUSE_MS;

	for (;;) {
		uint64_t number;
		struct err err;

		pthread_mutex_lock(&pod->lock);
		wait_for_reports(pod, sent_ms);
		buf_clear(&body);
		reports_format(pod, &body);
		bool all_sent = !pod->kept_count;
		pthread_mutex_unlock(&pod->lock);
		if (all_sent)
			return NULL; /* and the task is over */
		int status = ask(pod, "reports", buf_text(&body), ANSWER_MS, &answer, &err);
		sent_ms = clock_boot_ms();
		if (status == 200 && kept_read(&answer, &number, &err) == 0) {
			pthread_mutex_lock(&pod->lock);
			uint32_t before = pod->kept_count;
			drop_until(pod, number);
			bool some = pod->kept_count < before;
			pthread_mutex_unlock(&pod->lock);
			if (some) {
				pause = FIRST_PAUSE_MS;
				continue;
			}
		}
		pause_ms(pause);
		pause = least(pause * 2, LAST_PAUSE_MS);
	}
}

/* Its kubelet says so, too, and this is not waited for long. */
static void say_end(struct pod *pod, int code)
{
	int64_t until_ms = clock_boot_ms() + END_MS;
	AUTO_BUF answer = BUF_INIT;
	struct err err;
	char body[32];

	snprintf(body, sizeof(body), "{\"code\":%d}", code);
	while (clock_boot_ms() < until_ms && !atomic_load(&pod->fenced)) {
		int status = ask(pod, "ended", body, END_MS, &answer, &err);

		if (status == 200 || (status >= 400 && status < 500))
			return;
		pause_ms(FIRST_PAUSE_MS * 2);
	}
}

void pod_finish(struct pod *pod, int code, int64_t patience_ms)
{
	int64_t until_ms = clock_boot_ms() + patience_ms;

	pthread_mutex_lock(&pod->lock);
	pod->finishing = true;
	pthread_cond_broadcast(&pod->changed);
	while (pod->kept_count && !atomic_load(&pod->fenced)) {
		int64_t left = until_ms - clock_boot_ms();

		if (left <= 0)
			break;
		wait_ms(pod, least(left, 200));
	}
	pthread_mutex_unlock(&pod->lock);
	say_end(pod, code);
}

/* --- the loop's -------------------------------------------------------------------------------------------------------- */

void pod_start(struct pod *pod, int folder)
{
	pod->folder = folder;
	pod->looked = !pod->options.resume_path;
	thread_start(&pod->lease_thread, lease_main, pod);
	thread_start(&pod->report_thread, report_main, pod);
	if (pod->options.resume_path)
		thread_start(&pod->look_thread, look_main, pod);
}

static int64_t stop_at_ms(const struct pod *pod)
{
	int64_t until_ms = atomic_load(&pod->until_ms), lease_ms = atomic_load(&pod->lease_ms);

	return until_ms ? until_ms - pod_grace_ms(lease_ms) : INT64_MAX;
}

int64_t pod_left_ms(const struct shepherd *s, int64_t now)
{
	int64_t at = stop_at_ms(s->pod);

	return s->pod->stopped || at == INT64_MAX ? INT64_MAX : at - now;
}

void pod_look(struct shepherd *s, int64_t now)
{
	struct pod *pod = s->pod;
	int64_t until_ms = atomic_load(&pod->until_ms);
	int64_t kill_ms = until_ms - pod_margin_ms(atomic_load(&pod->lease_ms)) - now;
	bool fenced = atomic_load(&pod->fenced), torn = !fenced && atomic_load(&pod->torn);

	if (pod->stopped || s->phase >= OVER || (!fenced && !torn && now < stop_at_ms(pod)))
		return;
	pod->stopped = true;
	pthread_mutex_lock(&pod->lock);
	snprintf(pod->lost, sizeof(pod->lost), "%s%.180s",
		 fenced ? "Fairlead says that it may not go on: "
		 : torn ? "the checkpoint to resume from is not good any more: "
			: "no word from Fairlead, and its lease ends",
		 fenced || torn ? pod->refusal : "");
	pthread_mutex_unlock(&pod->lock);
	log_line(LOG_WARN, "the task is stopped: %s", pod->lost);
	if (fenced || torn)
		kill_ms = until_ms ? least(kill_ms, FENCED_GRACE_MS) : 0;
	control_stop(s, kill_ms > 0 ? kill_ms : 0);
}

const char *pod_lost(const struct pod *pod)
{
	return pod->lost;
}
