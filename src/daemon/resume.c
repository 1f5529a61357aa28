/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which checkpoint an attempt resumes from. All files of it are looked at: one that is missing or smaller than it was when
 * it was reported is void; that becomes an event, and the one before it is taken.
 *
 * The files can be many, and lie on a file server that does not answer. So threads of their own look at them, and the
 * engine thread goes on: a start that is being looked into delays nobody else's. Order is kept where it matters: an attempt
 * is given to the engine only when its answer is back, and everything that is told to it comes behind its start.
 *
 * Where a file server gives errors, or no rights, for a while, the wish lies aside and is looked at again each second, for CHECKPOINT_AWAY_MS;
 * no thread waits with it. Then the checkpoint is void; but where the folder in which it lies gives errors as well, its file server is away: the place is given
 * back, and the checkpoint kept (docs/decisions/0032). Rights are taken away by users too: eight jobs whose folders are closed would else hold up the starts of all
 * others for minutes. A daemon that starts anew begins these minutes anew.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/jobfile/jobfile.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/thread.h"
#include "daemon/state.h"
#include "engine/checkpoint.h"
#include "engine/failpoint.h"

/* So many file servers may hang before a start from another one waits for them. */
enum { RESUMERS = 8, PATIENCE_MS = 2000, LOOK_PATIENCE_MS = 60000, LOOK_PAUSE_MS = 1000 };
enum { RESUME_FIND, RESUME_QUIT };

struct wish {
	struct message message;
	uint64_t attempt;
	uint32_t number; /* of a checkpoint that can't be read at this moment; 0 = of none */
	bool again; /* it is to be looked at once more, from `at_ms` on */
	bool away; /* it is not: its file server was waited for long enough */
	int64_t at_ms, until_ms; /* by the boot clock; until_ms: then it is void */
};

struct resume {
	struct mailbox box;
	pthread_mutex_t lock; /* of what follows */
	struct message *aside,
		**aside_end; /* wishes that are looked at again, the first one first */
	pthread_t threads[RESUMERS];
	atomic_int running;
	struct mailbox over; /* a message when the last of them is */
	struct message last;
};

/* --- one checkpoint ------------------------------------------------------------------------------------------ */

/* While the store does not answer: one of these threads waits, and not the start of anything else. */
static int body_wait(struct daemon *d, const struct facts *facts, struct job_id id, struct buf *ret,
		     struct err *err)
{
	for (bool said = false;; said = true) {
		int rc = d->backend.body(d, facts, id, ret, err);

		if (rc != -(int)ERR_UNAVAILABLE || atomic_load(&d->ending))
			return rc;
		if (!said)
			log_line(
				LOG_ERROR,
				"job %u waits for its checkpoint, which is looked for each second: %s",
				id.v, err->text);
		sleep(1);
	}
}

/* As the job says, or its own in the data folder; NULL = what the job says can't be read. */
static const char *folder_of(struct daemon *d, const struct facts *facts, struct job_id id,
			     struct arena *arena)
{
	struct buf text = BUF_INIT;
	struct job_body body = { 0 };
	struct err err = { 0 };
	bool known = body_wait(d, facts, id, &text, &err) == 0 &&
		     job_body_parse(text.data, text.size, arena, &body, &err) == 0;
	buf_deinit(&text);
	if (!known)
		return NULL;
	return body.checkpoint_path ? body.checkpoint_path
				    : arena_printf(arena, "%s/checkpoints/%u", d->folder, id.v);
}

static void void_done(void *context, const struct command_reply *reply)
{
	(void)context;
	if (reply->err.code != ERR_NONE)
		log_line(LOG_WARN, "a torn checkpoint could not be recorded: %s", reply->err.text);
}

static void checkpoint_void(struct daemon *d, struct job_id job,
			    const struct checkpoint *checkpoint, const char *reason)
{
	struct event event = event_make(EVENT_CHECKPOINT_VOID, 0, "engine");
	event.checkpoint_void.job = job.v;
	event.checkpoint_void.number = checkpoint->number;
	event.checkpoint_void.reason = reason;
	struct command *command = command_create(&event, NULL, 0);
	command->done = void_done;
	d->backend.send(d, command);
	log_line(LOG_WARN, "job %u: checkpoint %u is not used: %s", job.v, checkpoint->number,
		 reason);
}

static const char missing[] = "it is missing or can't be read",
		  torn[] = "it is smaller than it was when it was reported complete",
		  forbidden[] = "the job's account may not read it";

/* A file server that fails for a while, or gives no rights, has not lost it. One that was waited for in vain is not waited for again. */
static bool is_to_wait(struct daemon *d, struct wish *wish, uint32_t job, uint32_t number,
		       int result, const struct err *err)
{
	bool unreachable = result == -(int)ERR_UNREACHABLE;
	int64_t now_ms = clock_boot_ms();

	away_note(&d->away, job, number,
		  unreachable                     ? AWAY_UNREACHABLE
		  : result == -(int)ERR_FORBIDDEN ? AWAY_FORBIDDEN
						  : AWAY_FAILS);

	if (wish->number != number) {
		wish->number = number;
		wish->until_ms = now_ms + CHECKPOINT_AWAY_MS;
		log_line(LOG_WARN,
			 "job %u: what it resumes from is looked at again each second for %d s: %s",
			 job, CHECKPOINT_AWAY_MS / 1000, err->text);
	}
	wish->at_ms = now_ms + LOOK_PAUSE_MS;
	if (now_ms < wish->until_ms && !FAILPOINT("resume-away-over") &&
	    !(unreachable && away_was_given_back(&d->away, job, number)))
		return true;
	wish->away = unreachable;
	if (unreachable)
		away_give_back(&d->away, job, number);
	return false;
}

/* Why it is void; NULL = it is good, or nothing is known (wish->again: yet). */
static const char *problem_of(struct daemon *d, const struct job *job, struct wish *wish,
			      uint32_t id, const struct checkpoint *checkpoint, const char *path)
{
	/* As the user, who could have put a link to what is not his in its place meanwhile. */
	const struct checkpoint_ask ask = { .path = path,
					    .uid = (uid_t)job->uid,
					    .gid = (gid_t)job->gid,
					    .patience_ms = LOOK_PATIENCE_MS,
					    .above = true };
	struct err err = { 0 };
	int64_t bytes = 0;
	bool is_missing;
	int result;
	/* It lies where the pods have it: their shepherds look at it. */
	if (d->kubernetes)
		return !torn_take(d, id, checkpoint->number, &is_missing) ? NULL
		       : is_missing                                       ? missing
									  : torn;
	result = checkpoint_look(&ask, &bytes, &err);
	wish->again = checkpoint_may_come_back(result) &&
		      is_to_wait(d, wish, id, checkpoint->number, result, &err);
	/* Where the user's rights can't be had, nothing is known; the start will say so. */
	if (wish->again || wish->away || result > 0 || result == -(int)ERR_INTERNAL ||
	    (result == 0 && bytes >= checkpoint->bytes))
		return NULL;
	return result == -(int)ERR_FORBIDDEN ? forbidden : result < 0 ? missing : torn;
}

static struct resume_from find_checkpoint(struct daemon *d, const struct facts *facts,
					  struct job_id id, uint32_t number, struct wish *wish,
					  struct arena *arena)
{
	const struct job *job = job_get(facts, id);
	const char *folder = NULL, *problem;
	while (number > 0) {
		const struct checkpoint *checkpoint = job_checkpoint(facts, job, number);
		if (!checkpoint)
			break;
		const char *path = checkpoint->path;
		if (path[0] != '/') {
			if (!folder)
				folder = folder_of(d, facts, id, arena);
			if (!folder) /* nothing can be said of it, least of all that it is missing */
				return (struct resume_from){ .unknown = true };
			path = arena_printf(arena, "%s/%s", folder, path);
		}
		problem = problem_of(d, job, wish, id.v, checkpoint, path);
		if (!problem)
			return (struct resume_from){ .path = path,
						     .number = checkpoint->number,
						     .bytes = checkpoint->bytes,
						     .away = wish->away };
		checkpoint_void(d, id, checkpoint, problem);
		number = checkpoint->number - 1;
	}
	return (struct resume_from){ 0 };
}

/* --- the threads --------------------------------------------------------------------------------------------- */

static void find(struct daemon *d, struct wish *wish)
{
	(void)FAILPOINT("resume-before-look");
	struct publication *publication = publication_get(d);
	const struct facts *facts = &publication->frozen.facts;
	const struct attempt *attempt =
		attempt_get(facts, (struct attempt_id){ (uint32_t)wish->attempt });
	struct arena arena;
	struct resume_from from = { 0 };
	arena_init(&arena, 256 << 20);
	wish->again = wish->away = false;
	/* Of one that is over meanwhile nothing is looked at; the engine thread sees it too. */
	if (attempt->state == ATTEMPT_PREPARING)
		from = find_checkpoint(d, facts, attempt->job,
				       wish->number ? wish->number : attempt->resume_number, wish,
				       &arena);
	if (!wish->again && !wish->away)
		away_end(&d->away, attempt->job.v);
	if (!wish->again && !atomic_load(&d->ending))
		effects_start_from(d, wish->attempt, &from);
	arena_deinit(&arena);
	publication_release(publication);
}

static void aside_put(struct resume *resume, struct wish *wish)
{
	wish->message.next = NULL;
	pthread_mutex_lock(&resume->lock);
	*resume->aside_end = &wish->message;
	resume->aside_end = &wish->message.next;
	pthread_mutex_unlock(&resume->lock);
}

/* One that is due, where such are asked for; *wait_ms is until the first is due at most. */
static struct message *aside_take(struct resume *resume, bool ask, int64_t *wait_ms)
{
	struct message *first;
	int64_t left_ms;

	pthread_mutex_lock(&resume->lock);
	first = resume->aside;
	left_ms = first ? ((struct wish *)first)->at_ms - clock_boot_ms() : INT64_MAX;
	if (left_ms <= 0 && ask) {
		resume->aside = first->next;
		if (!first->next)
			resume->aside_end = &resume->aside;
	}
	pthread_mutex_unlock(&resume->lock);
	if (left_ms <= 0 && ask)
		return first;
	if (first && (*wait_ms < 0 || *wait_ms > left_ms))
		*wait_ms = left_ms > 0 ? left_ms : 0;
	return NULL;
}

/* New ones first: of those that lie aside each may take as long as its file server does. Who goes to work tells another thread how long to wait. */
static struct message *wish_take(struct resume *resume, int64_t wait_ms)
{
	struct message *taken = aside_take(resume, mailbox_size(&resume->box) == 0, &wait_ms);

	if (!taken)
		taken = mailbox_take(&resume->box, 1, wait_ms);
	pthread_mutex_lock(&resume->lock);
	bool any = resume->aside != NULL;
	pthread_mutex_unlock(&resume->lock);
	if (taken && any)
		mailbox_poke(&resume->box);
	return taken;
}

bool resume_pass(struct daemon *d, int64_t wait_ms)
{
	struct message *taken = wish_take(d->resume, wait_ms);
	struct wish *wish = (struct wish *)taken;
	bool quit = taken && taken->kind == RESUME_QUIT;
	if (taken && !quit && !atomic_load(&d->ending))
		find(d, wish);
	if (taken && !quit && wish->again && !atomic_load(&d->ending))
		aside_put(d->resume, wish);
	else
		free(taken);
	return !quit;
}

size_t resume_waiting(struct daemon *d)
{
	return mailbox_size(&d->resume->box);
}

static void *resume_main(void *argument)
{
	struct daemon *d = argument;
	while (resume_pass(d, -1))
		continue;
	if (atomic_fetch_sub(&d->resume->running, 1) == 1)
		mailbox_send(&d->resume->over, &d->resume->last);
	return NULL;
}

static void wish_send(struct daemon *d, int kind, uint64_t attempt)
{
	struct wish *wish = calloc(1, sizeof(*wish));
	CHECK(wish);
	wish->message.kind = kind;
	wish->attempt = attempt;
	mailbox_send(&d->resume->box, &wish->message);
}

void resume_find(struct daemon *d, uint64_t attempt)
{
	wish_send(d, RESUME_FIND, attempt);
}

void resume_open(struct daemon *d)
{
	d->resume = calloc(1, sizeof(*d->resume));
	CHECK(d->resume);
	mailbox_init(&d->resume->box);
	mailbox_init(&d->resume->over);
	pthread_mutex_init(&d->resume->lock, NULL);
	d->resume->aside_end = &d->resume->aside;
}

void resume_start(struct daemon *d)
{
	resume_open(d);
	atomic_init(&d->resume->running, RESUMERS);
	for (int i = 0; i < RESUMERS; i++)
		thread_start(&d->resume->threads[i], resume_main, d);
}

/*
 * What was not found by then is looked for again by the next start. The wait is for their last message and not
 * pthread_clockjoin_np, which gcc 12's ThreadSanitizer does not know: it would see forgotten threads and races.
 */
bool resume_join(struct daemon *d)
{
	for (int i = 0; i < RESUMERS; i++)
		wish_send(d, RESUME_QUIT, 0);
	if (!mailbox_take(&d->resume->over, 1, PATIENCE_MS)) {
		for (int i = 0; i < RESUMERS; i++)
			(void)pthread_tryjoin_np(d->resume->threads[i], NULL);
		return false; /* the others still use it; the process ends */
	}
	for (int i = 0; i < RESUMERS; i++)
		pthread_join(d->resume->threads[i], NULL);
	for (struct message *next; (next = d->resume->aside); free(next))
		d->resume->aside = next->next;
	pthread_mutex_destroy(&d->resume->lock);
	mailbox_deinit(&d->resume->over);
	mailbox_deinit(&d->resume->box);
	free(d->resume);
	d->resume = NULL;
	return true;
}
