/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What shepherds in pods ask (docs/decisions/0022), at an address of its own where nothing else is answered:
 *
 *	POST /pods/v1/attempts/ATTEMPT/ranks/RANK/lease		may its task go on? The answer is kept back for `wait_ms` while there is nothing to
 *								say, and comes at once when a checkpoint is wanted, or ranks left or came (world_calls.c)
 *	POST /pods/v1/attempts/ATTEMPT/ranks/RANK/reports	progress and checkpoints; answered with the number up to which they are durable
 *
 *	POST /pods/v1/attempts/ATTEMPT/ranks/RANK/ended		nothing is left of its task, which ended with `code`
 *
 *	POST /pods/v1/attempts/ATTEMPT/ranks/RANK/torn		the checkpoint that it was to resume from is not good (torn_calls.c)
 *	GET  /pods/v1/attempts/ATTEMPT/ranks/RANK/code[/N]	the job's snapshot (code_calls.c)
 *
 * RANK is "3", and "3.1" of one that was started anew once.
 *
 * Who asks has the token of the attempt: a MAC of its number with the key of the data folder, so that nothing has to be kept, and every
 * daemon with that key knows it. It says and learns things of that attempt alone.
 *
 * All that comes may be hostile: a body has 64 KiB at most, MOST_PARKED questions are kept open at a time (the next ones are answered at once,
 * and told to pause), and reports are counted by the engine.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "base/check.h"
#include "base/json.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/thread.h"
#include "daemon/state.h"
#include "engine/report.h"

enum {
	MOST_PARKED = 4000,
	STRANGERS_MOST = 64, /* connections that have shown no token yet */
	PAUSE_MS = 10000, /* for who can't be kept waiting */
	WAIT_MOST_MS = 30000,
	BODY_MOST = 64 << 10,
	REPORTS_MOST = 64 /* in one body */
};
#define TOKEN_HEAD "fp_"
#define PATH_HEAD "/pods/v1/attempts/"

struct parked {
	struct parked *next;
	struct http_request *request;
	uint64_t attempt;
	uint32_t rank, launch;
	int64_t warning; /* the newest that it knows */
	int64_t world; /* likewise, the generation; WORLD_UNASKED = it does not ask */
	bool stopping; /* it knows that it is to stop */
	int64_t lease_ms, until_ms; /* boot clock */
};

struct shepherd_calls {
	struct daemon *daemon;
	struct http_server *server;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct parked *parked;
	uint32_t parked_count;
	int64_t next_ms; /* boot clock: when the first of them is answered at the latest */
	bool woken, stopping;
};

/* --- tokens -------------------------------------------------------------------------------------------------------- */

static void token_mac(struct daemon *d, uint64_t attempt, struct digest *ret)
{
	char plain[96] = ""; /* begins with NUL, as no body of a job does: the key is theirs, too */
	int n = snprintf(plain + 1, sizeof(plain) - 1, "shepherds of attempt %" PRIu64 " of %s",
			 attempt, d->instance);

	seal_mac(d->key, plain, (size_t)n + 1, ret);
}

void shepherd_token(struct daemon *d, uint64_t attempt, char out[SHEPHERD_TOKEN_MAX])
{
	char hex[DIGEST_HEX_MAX];
	struct digest mac;

	token_mac(d, attempt, &mac);
	snprintf(out, SHEPHERD_TOKEN_MAX, TOKEN_HEAD "%" PRIu64 "_%s", attempt,
		 digest_format(&mac, hex));
}

/* The attempt that the caller's token is of. */
static int token_check(struct daemon *d, const char *header, uint64_t *ret, struct err *err)
{
	static const char head[] = "Bearer " TOKEN_HEAD;
	const char *number = header ? header + sizeof(head) - 1 : "", *hex = NULL;
	struct digest given, mac;
	char digits[16];
	int64_t attempt;

	if (header && strncmp(header, head, sizeof(head) - 1) == 0)
		hex = strchr(number, '_');
	if (hex && (size_t)(hex - number) < sizeof(digits) && digest_parse(hex + 1, &given)) {
		snprintf(digits, sizeof(digits), "%.*s", (int)(hex - number), number);
		if (parse_int(digits, 1, UINT32_MAX, &attempt, NULL) == 0) {
			token_mac(d, (uint64_t)attempt, &mac);
			*ret = (uint64_t)attempt;
			if (digest_equal(&mac, &given))
				return 0;
		}
	}
	return err_set(
		err, ERR_UNAUTHENTICATED,
		"this is for shepherds in pods that Fairlead made, with the token of their attempt");
}

/* --- what is asked, and of what ---------------------------------------------------------------------------------------- */

struct asked {
	enum engine_word_kind kind;
	uint64_t attempt;
	uint32_t rank, launch;
	bool torn; /* no word for the engine: what it found of its checkpoint */
	bool code; /* not a word, but the snapshot is asked for: */
	int64_t code_from; /* CODE_LIST, or the files from this line of it on */
};

static bool path_number(const char **at, uint64_t *ret)
{
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return *ret < UINT32_MAX;
}

/* "3", or "3.1" of a rank that was started anew. */
static bool path_rank(const char **at, struct asked *ret)
{
	uint64_t rank = 0, launch = 0;
	bool is = path_number(at, &rank);

	if (is && **at == '.') {
		++*at;
		is = path_number(at, &launch) && launch;
	}
	ret->rank = (uint32_t)rank;
	ret->launch = (uint32_t)launch;
	return is;
}

/* What stands behind the rank: "/code", "/code/12". */
static bool code_path(const char *at, int64_t *ret_from)
{
	uint64_t from = 0;

	if (strncmp(at, "/code", 5) != 0)
		return false;
	at += 5;
	*ret_from = CODE_LIST;
	if (!*at)
		return true;
	at++;
	if (at[-1] != '/' || !path_number(&at, &from) || *at)
		return false;
	*ret_from = (int64_t)from;
	return true;
}

static int path_read(struct http_request *request, struct asked *ret, struct err *err)
{
	const char *at = http_path(request);
	bool is = strncmp(at, PATH_HEAD, sizeof(PATH_HEAD) - 1) == 0,
	     posts = strcmp(http_method(request), "POST") == 0;

	at += is ? sizeof(PATH_HEAD) - 1 : 0;
	is = is && path_number(&at, &ret->attempt) && strncmp(at, "/ranks/", 7) == 0;
	at += is ? 7 : 0;
	is = is && path_rank(&at, ret);
	ret->code =
		is && strcmp(http_method(request), "GET") == 0 && code_path(at, &ret->code_from);
	ret->torn = is && posts && strcmp(at, "/torn") == 0;
	is = ret->code || ret->torn ||
	     (is && posts &&
	      (strcmp(at, "/lease") == 0 || strcmp(at, "/reports") == 0 ||
	       strcmp(at, "/ended") == 0));
	ret->kind = !is || strcmp(at, "/lease") == 0 ? WORD_LEASE
		    : strcmp(at, "/ended") == 0      ? WORD_ENDED
						     : WORD_REPORTS;
	return is ? 0
		  : err_set(err, ERR_NOT_FOUND, "there is nothing here but for shepherds in pods");
}

/* ERR_CONFLICT: what runs there may not go on. */
static int rank_lives(const struct facts *facts, const struct asked *asked, struct err *err)
{
	const struct attempt *attempt;
	const struct task *task;

	if (!asked->attempt || asked->attempt > facts->attempts.count)
		return err_set(err, ERR_UNAVAILABLE, "attempt %" PRIu64 " is not known here yet",
			       asked->attempt);
	attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)asked->attempt });
	if (attempt->state == ATTEMPT_FREE || attempt->state == ATTEMPT_OVER)
		return err_set(err, ERR_CONFLICT,
			       "attempt %" PRIu64 " is over: what still runs of it is stale",
			       asked->attempt);
	if (asked->rank >= attempt->tasks)
		return err_set(err, ERR_NOT_FOUND, "attempt %" PRIu64 " has no rank %u",
			       asked->attempt, asked->rank);
	task = task_get(facts, attempt, asked->rank);
	if (asked->launch > task->launch)
		return err_set(err, ERR_UNAVAILABLE,
			       "start %u of rank %u of attempt %" PRIu64 " is not known here yet",
			       asked->launch, asked->rank, asked->attempt);
	if (asked->launch < task->launch)
		return err_set(err, ERR_CONFLICT,
			       "rank %u of attempt %" PRIu64
			       " was started anew: what still runs of it is stale",
			       asked->rank, asked->attempt);
	if (task->state >= TASK_EXITED)
		return err_set(err, ERR_CONFLICT,
			       "rank %u of attempt %" PRIu64
			       " is over: what still runs of it is stale",
			       asked->rank, asked->attempt);
	return 0;
}

/* Its wished-for checkpoint: a number that grows with each wish, 0 = there is none; and until when it may take. */
static int64_t warning_of(const struct publication *publication, uint64_t id, bool *ret_stop,
			  int64_t *ret_grace_ms)
{
	const struct facts *facts = &publication->frozen.facts;
	const struct attempt *attempt = attempt_get(facts, (struct attempt_id){ (uint32_t)id });
	int64_t now = publication->clock.event_ms + clock_boot_ms() - publication->clock.boot_ms,
		until = attempt_until_ms(facts, attempt);

	*ret_grace_ms = until > now ? until - now : 0;
	*ret_stop = attempt->state == ATTEMPT_STOPPING;
	return attempt->warned_ms;
}

static int word(struct daemon *d, const struct asked *asked, const struct engine_word *words,
		int64_t *ret_lease_ms, struct err *err)
{
	struct engine_word with = *words, *said = &with;
	int result;

	with.launch = asked->launch;

	if (atomic_load(&d->stands_by))
		return err_set(err, ERR_UNAVAILABLE, "this daemon stands by: another one leads");
	pthread_mutex_lock(&d->engine_swap);
	if (d->engine && d->engine_ops->pods)
		result = d->engine_ops->pods->word(d->engine, asked->attempt, asked->rank, said,
						   ret_lease_ms, err);
	else
		result = err_set(err, ERR_UNAVAILABLE, "the daemon has no cluster at this moment");
	pthread_mutex_unlock(&d->engine_swap);
	return result;
}

/* --- the lease -------------------------------------------------------------------------------------------------------- */

struct news {
	int64_t warning, grace_ms; /* 0 = none */
	bool stop, world;
};

static void lease_reply(struct daemon *d, const struct publication *publication,
			const struct parked *parked, int64_t pause_ms, const struct news *news)
{
	struct buf out = BUF_INIT;

	buf_addf(&out, "{\"lease_ms\":%" PRId64, parked->lease_ms);
	if (pause_ms)
		buf_addf(&out, ",\"pause_ms\":%" PRId64, pause_ms);
	if (news->warning)
		buf_addf(&out, ",\"warning\":%" PRId64, news->warning);
	if (news->stop)
		buf_adds(&out, ",\"stop\":true");
	if (news->warning || news->stop)
		buf_addf(&out, ",\"grace_ms\":%" PRId64, news->grace_ms);
	if (news->world)
		world_add(d, publication, parked->attempt, parked->rank, &out);
	buf_adds(&out, "}\n");
	http_reply(parked->request, 200, "application/json", &out);
}

/* What there is to say now. False: nothing that it does not know. */
static bool lease_answer(struct daemon *d, const struct publication *publication,
			 const struct parked *parked, bool at_once)
{
	const struct asked asked = { .attempt = parked->attempt,
				     .rank = parked->rank,
				     .launch = parked->launch };
	struct news news = { 0 };
	struct err err;

	if (rank_lives(&publication->frozen.facts, &asked, &err) < 0) {
		http_reply_error(parked->request, &err);
		return true;
	}
	news.warning = warning_of(publication, parked->attempt, &news.stop, &news.grace_ms);
	if (news.warning <= parked->warning)
		news.warning = 0;
	news.stop &= !parked->stopping;
	news.world = world_is_news(&publication->frozen.facts, parked->attempt, parked->world);
	if (!news.warning && !news.stop && !news.world && !at_once)
		return false;
	lease_reply(d, publication, parked, 0, &news);
	return true;
}

static int lease_read(struct http_request *request, int64_t *ret_wait_ms, struct parked *ret,
		      struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	size_t size;
	const char *body = http_body(request, &size);

	pull_init(&r, body, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "wait_ms"))
			pull_int(&r, ret_wait_ms);
		else if (pull_key_is(&key, "warning"))
			pull_int(&r, &ret->warning);
		else if (pull_key_is(&key, "world"))
			pull_int(&r, &ret->world);
		else if (pull_key_is(&key, "stopping"))
			pull_bool(&r, &ret->stopping);
		else
			pull_skip(&r);
	}
	if (!r.problem && (*ret_wait_ms < 0 || ret->warning < 0 || ret->world < WORLD_UNASKED))
		pull_fail(&r, "numbers are 0 or more; world is -1 while nothing is known of it");
	if (*ret_wait_ms > WAIT_MOST_MS)
		*ret_wait_ms = WAIT_MOST_MS;
	return pull_finish(&r, err);
}

/* False: so many wait already. What is published is looked at once more under the lock, which who publishes takes afterwards. */
static bool park(struct shepherd_calls *calls, const struct parked *parked)
{
	struct publication *publication;
	struct parked *kept;
	bool full;

	pthread_mutex_lock(&calls->lock);
	full = calls->stopping || calls->parked_count >= MOST_PARKED;
	publication = publication_get(calls->daemon);
	if (!full && !lease_answer(calls->daemon, publication, parked, false)) {
		kept = malloc(sizeof(*kept));
		CHECK(kept);
		*kept = *parked;
		kept->next = calls->parked;
		calls->parked = kept;
		calls->parked_count++;
		if (kept->until_ms < calls->next_ms) {
			calls->next_ms = kept->until_ms;
			pthread_cond_signal(&calls->changed);
		}
	}
	publication_release(publication);
	pthread_mutex_unlock(&calls->lock);
	return !full;
}

static void lease_ask(struct shepherd_calls *calls, const struct publication *publication,
		      const struct asked *asked, struct http_request *request)
{
	struct parked parked = { .request = request,
				 .attempt = asked->attempt,
				 .rank = asked->rank,
				 .launch = asked->launch,
				 .world = WORLD_UNASKED };
	int64_t wait_ms = 0;
	struct err err;

	if (lease_read(request, &wait_ms, &parked, &err) < 0 ||
	    word(calls->daemon, asked, &(struct engine_word){ .kind = WORD_LEASE },
		 &parked.lease_ms, &err) < 0) {
		http_reply_error(request, &err);
		return;
	}
	if (lease_answer(calls->daemon, publication, &parked, wait_ms == 0))
		return;
	parked.until_ms = clock_boot_ms() + wait_ms;
	if (!park(calls, &parked))
		lease_reply(calls->daemon, publication, &parked, PAUSE_MS, &(struct news){ 0 });
}

/* --- reports ---------------------------------------------------------------------------------------------------------- */

struct reports {
	struct engine_fact fact[REPORTS_MOST];
	uint32_t count;
};

/* One as the report socket takes it, with its number and what its files were found to have together. */
static void report_read(struct json_reader *r, struct engine_fact *fact)
{
	struct json_slice key, text;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "number")) {
			pull_uint(r, &fact->number);
		} else if (pull_key_is(&key, "step")) {
			pull_int(r, &fact->step);
			if (!r->problem && (fact->step < 0 || fact->step > REPORT_STEP_MAX))
				pull_fail(r, "step must be between 0 and 2^53");
		} else if (pull_key_is(&key, "checkpoint")) {
			pull_string(r, &text);
			pull_copy(r, &text, fact->path, sizeof(fact->path));
			fact->checkpoint = true;
			if (!r->problem &&
			    (fact->path[0] != '/' || !report_path_is_fit(fact->path)))
				pull_fail(
					r,
					"checkpoint must be an absolute path without \"..\" and control characters");
		} else if (pull_key_is(&key, "bytes")) {
			pull_int(r, &fact->bytes);
			if (!r->problem && fact->bytes < 0)
				pull_fail(r, "bytes must be 0 or more");
		} else {
			pull_skip(r);
		}
	}
	if (!r->problem &&
	    (!fact->number || fact->number > UINT32_MAX || (!fact->checkpoint && fact->step < 0)))
		pull_fail(r, "a report has a number from 1, and a step or a checkpoint");
}

static int reports_read(struct http_request *request, const struct asked *asked,
			struct reports *ret, struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	size_t size;
	const char *body = http_body(request, &size);

	pull_init(&r, body, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (!pull_key_is(&key, "reports")) {
			pull_skip(&r);
			continue;
		}
		pull_array(&r);
		while (pull_element(&r)) {
			if (ret->count == REPORTS_MOST) {
				pull_fail(&r, "too many reports at a time");
				break;
			}
			struct engine_fact *fact = &ret->fact[ret->count++];
			*fact = (struct engine_fact){ .kind = ENGINE_REPORT,
						      .attempt = asked->attempt,
						      .rank = asked->rank,
						      .launch = asked->launch,
						      .time_ms = clock_wall_ms(),
						      .step = -1 };
			report_read(&r, fact);
		}
	}
	return pull_finish(&r, err);
}

static int reports_take(struct daemon *d, const struct publication *publication,
			const struct asked *asked, struct http_request *request, uint64_t *ret_kept,
			struct err *err)
{
	const struct facts *facts = &publication->frozen.facts;
	const struct attempt *attempt =
		attempt_get(facts, (struct attempt_id){ (uint32_t)asked->attempt });
	const struct task *task = task_get(facts, attempt, asked->rank);
	struct reports *reports = calloc(1, sizeof(*reports));
	uint32_t news = 0;
	int64_t lease_ms;
	int result;

	CHECK(reports);
	*ret_kept = task->reports;
	result = reports_read(request, asked, reports, err);
	for (uint32_t i = 0; i < reports->count; i++)
		news += reports->fact[i].number > task->reports;
	/* The word that it has started may still be on its way. */
	if (result == 0 && news && task->state == TASK_RUNNING) {
		result = word(d, asked,
			      &(struct engine_word){ .kind = WORD_REPORTS, .reports = news },
			      &lease_ms, err);
		for (uint32_t i = 0; result == 0 && i < reports->count; i++)
			if (reports->fact[i].number > task->reports)
				effects_report(d, &reports->fact[i]);
	}
	free(reports);
	return result;
}

static void reports_ask(struct shepherd_calls *calls, const struct publication *publication,
			const struct asked *asked, struct http_request *request)
{
	struct buf out = BUF_INIT;
	struct err err;
	uint64_t kept;

	if (reports_take(calls->daemon, publication, asked, request, &kept, &err) < 0) {
		http_reply_error(request, &err);
		return;
	}
	buf_addf(&out, "{\"kept\":%" PRIu64 "}\n", kept);
	http_reply(request, 200, "application/json", &out);
}

/* --- the end ------------------------------------------------------------------------------------------------------------ */

static void ended_say(struct shepherd_calls *calls, const struct asked *asked,
		      struct http_request *request)
{
	struct engine_word said = { .kind = WORD_ENDED };
	struct json_reader r;
	struct json_slice key;
	struct buf out = BUF_INIT;
	int64_t code = -1, lease_ms;
	struct err err;
	size_t size;
	const char *body = http_body(request, &size);

	pull_init(&r, body, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "code"))
			pull_int(&r, &code);
		else
			pull_skip(&r);
	}
	if (!r.problem && (code < 0 || code > 255))
		pull_fail(&r, "code is from 0 to 255");
	said.code = (int)code;
	if (pull_finish(&r, &err) < 0 || word(calls->daemon, asked, &said, &lease_ms, &err) < 0) {
		http_reply_error(request, &err);
		return;
	}
	buf_adds(&out, "{}\n");
	http_reply(request, 200, "application/json", &out);
}

/* --- the door --------------------------------------------------------------------------------------------------------- */

/* Before the body is read. */
static int head(void *context, struct http_request *request)
{
	struct shepherd_calls *calls = context;
	struct asked *asked = arena_new(http_arena(request), struct asked);
	uint64_t attempt = 0;
	struct err err;
	int result =
		token_check(calls->daemon, http_header(request, "Authorization"), &attempt, &err);

	if (result == 0)
		result = path_read(request, asked, &err);
	if (result == 0 && attempt != asked->attempt)
		result =
			err_set(&err, ERR_FORBIDDEN,
				"this token is of attempt %" PRIu64 ", and not of attempt %" PRIu64,
				attempt, asked->attempt);
	http_set_user(request, asked);
	if (result == 0) {
		http_known(request);
		return 0;
	}
	http_reply_error(request, &err);
	return 1;
}

static void handle(void *context, struct http_request *request)
{
	struct shepherd_calls *calls = context;
	const struct asked *asked = http_user(request);
	struct publication *publication = publication_get(calls->daemon);
	struct err err;
	size_t size;
	int result = rank_lives(&publication->frozen.facts, asked, &err);

	(void)http_body(request, &size);
	if (result == 0 && size > BODY_MOST)
		result = err_set(&err, ERR_TOO_LARGE, "a body has at most %d KiB here",
				 BODY_MOST >> 10);
	/* A stand-by is behind: what it takes for over may not be, and the other way round. */
	if (atomic_load(&calls->daemon->stands_by))
		result = err_set(&err, ERR_UNAVAILABLE, "this daemon stands by: another one leads");
	if (result < 0)
		http_reply_error(request, &err);
	else if (asked->code)
		code_answer(calls->daemon, request, asked->attempt, asked->code_from);
	else if (asked->torn)
		torn_say(calls->daemon, request, &publication->frozen.facts, asked->attempt);
	else if (asked->kind == WORD_LEASE)
		lease_ask(calls, publication, asked, request);
	else if (asked->kind == WORD_ENDED)
		ended_say(calls, asked, request);
	else
		reports_ask(calls, publication, asked, request);
	publication_release(publication);
}

/* Answers those whose time it is; when the next one's is, on the boot clock. */
static int64_t parked_look(struct daemon *d, bool all, struct parked *parked,
			   struct parked **ret_kept, uint32_t *ret_count)
{
	struct publication *publication = publication_get(d);
	int64_t now = clock_boot_ms(), next_ms = now + WAIT_MOST_MS;

	while (parked) {
		struct parked *next = parked->next;

		if (lease_answer(d, publication, parked, all || now >= parked->until_ms)) {
			free(parked);
			++*ret_count;
		} else {
			parked->next = *ret_kept;
			*ret_kept = parked;
			next_ms = parked->until_ms < next_ms ? parked->until_ms : next_ms;
		}
		parked = next;
	}
	publication_release(publication);
	return next_ms;
}

static void *calls_main(void *argument)
{
	struct shepherd_calls *calls = argument;

	pthread_mutex_lock(&calls->lock);
	while (!calls->stopping || calls->parked) {
		struct parked *taken, *kept = NULL;
		uint32_t answered = 0;
		int64_t left_ms = calls->next_ms - clock_boot_ms();
		bool all = calls->stopping;

		if (!calls->woken && !calls->stopping && left_ms > 0) {
			const struct timespec until = wait_until(left_ms);

			(void)pthread_cond_timedwait(&calls->changed, &calls->lock, &until);
			continue;
		}
		calls->woken = false;
		taken = calls->parked;
		calls->parked = NULL;
		calls->next_ms = clock_boot_ms() + WAIT_MOST_MS;
		pthread_mutex_unlock(&calls->lock);
		left_ms = parked_look(calls->daemon, all, taken, &kept, &answered);
		pthread_mutex_lock(&calls->lock);
		if (left_ms < calls->next_ms)
			calls->next_ms = left_ms;
		calls->parked_count -= answered;
		while (kept) {
			struct parked *next = kept->next;

			kept->next = calls->parked;
			calls->parked = kept;
			kept = next;
		}
	}
	pthread_mutex_unlock(&calls->lock);
	return NULL;
}

void shepherd_calls_wake(struct daemon *d)
{
	struct shepherd_calls *calls = d->shepherd_calls;

	if (!calls)
		return;
	pthread_mutex_lock(&calls->lock);
	calls->woken = true;
	pthread_cond_signal(&calls->changed);
	pthread_mutex_unlock(&calls->lock);
}

void shepherd_calls_create(struct daemon *d)
{
	struct shepherd_calls *calls = calloc(1, sizeof(*calls));

	CHECK(calls);
	calls->daemon = d;
	pthread_mutex_init(&calls->lock, NULL);
	cond_init(&calls->changed);
	d->shepherd_calls = calls;
}

const char *shepherd_calls_address(const struct daemon *d)
{
	const struct shepherd_calls *calls = d->shepherd_calls;

	return calls && calls->server ? http_address(calls->server) : "";
}

int shepherd_calls_open(struct daemon *d, const char *listen, int connections, struct err *err)
{
	struct shepherd_calls *calls = d->shepherd_calls;

	if (!calls || !listen)
		return 0;
	const struct http_options http = { .listen = listen,
					   .listen_anywhere = true,
					   .context = calls,
					   .handle = handle,
					   .head = head,
					   .connections_max = connections,
					   .strangers_max = STRANGERS_MOST };
	if (http_start(&http, &calls->server, err) < 0)
		return -1;
	thread_start(&calls->thread, calls_main, calls);
	return 0;
}

void shepherd_calls_close(struct daemon *d)
{
	struct shepherd_calls *calls = d->shepherd_calls;

	if (!calls || !calls->server)
		return;
	pthread_mutex_lock(&calls->lock);
	calls->stopping = true;
	pthread_cond_signal(&calls->changed);
	pthread_mutex_unlock(&calls->lock);
	pthread_join(calls->thread, NULL);
	http_stop(calls->server);
	calls->server = NULL;
}

void shepherd_calls_destroy(struct daemon *d)
{
	free(d->shepherd_calls);
	d->shepherd_calls = NULL;
}
