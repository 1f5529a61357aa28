/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What people see with kubectl: the condition PodScheduled of a pod that waits, and Events.
 *
 * Autoscalers make machines for pods whose condition says `Unschedulable`, so it says that only where room lacks; else the reason is one of
 * ours. There is at most one Event of each reason for a pod: it is counted up. Words that change are told after TELL_PAUSE_MS, other reasons at
 * once.
 *
 * A large gang is told at once why it waits, and nobody else waits for that: words give way to other requests, as many go out as the API server takes
 * (client.h), WORDS_MAX at most are under way, and the rest is told as those are answered. A pod hears each reason once in this way. What comes again is held back
 * to WRITES_MAX in a period: of what ten thousands of pods wait for, something changes all the time. It is told when its group is looked at next.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/kubernetes/events.h"
#include "engine/kubernetes/gangs/gangs.h"
#include "engine/kubernetes/rights.h"

enum {
	TELL_PAUSE_MS = 60000,
	PERIOD_MS = 5000,
	WRITES_MAX = 200,
	RIGHT_MS = 10000,
	WORDS_MAX = 256
};

static const struct {
	const char *event, *condition; /* reasons; NULL = no condition */
	bool warning;
} reasons[] = {
	[TELL_WAITS] = { "Queued", "Queued", false },
	[TELL_NO_ROOM] = { "FailedScheduling", "Unschedulable", true },
	[TELL_GATHERS] = { "GangIncomplete", "GangIncomplete", false },
	[TELL_REFUSED] = { "NotPlaced", "NotPlaced", true },
	[TELL_ALONE] = { "GangUnknown", NULL, true },
	[TELL_PREEMPTED] = { "Preempted", NULL, true },
};

static void noted(void *context, const struct kube_answer *answer)
{
	struct engine *engine = context;
	char text[256];

	if (right_is_lacking(answer)) {
		pthread_mutex_lock(&engine->lock);
		if (!engine->gangs.again_ms)
			engine->gangs.again_ms = clock_boot_ms() + RIGHT_MS;
		pthread_mutex_unlock(&engine->lock);
		return; /* which one is said in the log */
	}
	if (!answer->status || answer->status < 300 || answer->status == 404 ||
	    answer->status == 409)
		return;
	kube_problem(answer, text);
	log_line(LOG_WARN, "Kubernetes: %s", text);
}

/* Of a word that was told, or refused, or is not wanted any more: others may have waited for it. */
static void word_is_over(struct engine *engine, const struct kube_answer *answer)
{
	struct gang *gang, *next;

	noted(engine, answer);
	pthread_mutex_lock(&engine->lock);
	if (--engine->gangs.words <= WORDS_MAX / 2 && engine->gangs.untold &&
	    !kube_is_end(answer)) {
		engine->gangs.untold = false;
		HASH_ITER(hh, engine->gangs.gangs, gang, next)
		{
			if (gang->untold && !gang->attempt && !gang->broken)
				gang_tell(engine, gang, (enum tell_kind)gang->told_kind,
					  gang->text);
		}
		gangs_look(engine);
	}
	pthread_mutex_unlock(&engine->lock);
}

static void event_is_over(void *context, const struct kube_answer *answer)
{
	word_is_over(context, answer);
}

/* --- conditions -------------------------------------------------------------------------------------------------------- */

static void status_begin(const char *namespace, const char *name, const char *uid, struct buf *path,
			 struct buf *body)
{
	buf_addf(path, "/api/v1/namespaces/%s/pods/%s/status", namespace, name);
	buf_adds(body, "{\"metadata\":{");
	buf_add_json_member(body, "uid", uid);
	buf_adds(body, "},\"status\":{");
}

static void status_send(struct engine *engine, const struct buf *path, struct buf *body,
			bool (*wanted)(void *context),
			void (*done)(void *context, const struct kube_answer *answer),
			void *context)
{
	buf_adds(body, "}}");
	kube_call(engine->client,
		  &(struct kube_request){ .method = "PATCH",
					  .path = buf_text(path),
					  .type = "application/strategic-merge-patch+json",
					  .body = body,
					  .late = wanted != NULL,
					  .wanted = wanted,
					  .done = done,
					  .context = context });
}

static void add_condition(struct buf *body, const char *type, bool status, const char *reason,
			  const char *text)
{
	char now[KUBE_TIME_MAX];

	kube_time_now(now);
	buf_adds(body, "\"conditions\":[{");
	buf_add_json_member(body, "type", type);
	buf_addf(body, ",\"status\":\"%s\",", status ? "True" : "False");
	buf_add_json_member(body, "reason", reason);
	buf_addc(body, ',');
	buf_add_json_member(body, "message", text);
	buf_addc(body, ',');
	buf_add_json_member(body, "lastTransitionTime", now);
	buf_adds(body, "}]");
}

/* What a request about a pod says of it. */
struct about_pod {
	struct engine *engine;
	char uid[KUBE_WORD_MAX];
};

static struct about_pod *about_pod_create(struct engine *engine, const struct member *member)
{
	struct about_pod *about = calloc(1, sizeof(*about));

	CHECK(about);
	about->engine = engine;
	memcpy(about->uid, member->uid, sizeof(about->uid));
	return about;
}

/* By its turn the pod may have a place: a condition that it has none would be wrong. */
static bool still_waits(void *context)
{
	const struct about_pod *about = context;
	struct engine *engine = about->engine;
	struct member *member;
	bool waits;

	pthread_mutex_lock(&engine->lock);
	member = member_find(engine, about->uid);
	waits = member && !member->bound && !member->deleting &&
		!(member->gang && member->gang->attempt);
	if (member && !waits)
		member->told = false; /* where it comes to wait again, it is told anew */
	pthread_mutex_unlock(&engine->lock);
	return waits;
}

static void condition_is_over(void *context, const struct kube_answer *answer)
{
	struct about_pod *about = context;

	word_is_over(about->engine, answer);
	free(about);
}

static void condition_write(struct engine *engine, const struct member *member, const char *reason,
			    const char *text)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	status_begin(member->namespace, member->name, member->uid, &path, &body);
	add_condition(&body, "PodScheduled", false, reason, text);
	status_send(engine, &path, &body, still_waits, condition_is_over,
		    about_pod_create(engine, member));
	engine->gangs.words++;
}

static void nominated(void *context, const struct kube_answer *answer)
{
	struct about_pod *nomination = context;
	struct engine *engine = nomination->engine;
	struct member *member;

	noted(engine, answer);
	if (answer->status >= 300 && answer->status != 404) {
		pthread_mutex_lock(&engine->lock);
		member = member_find(engine, nomination->uid);
		if (member && !member->bound) {
			member->nominate_again = true;
			if (!engine->gangs.nominate_ms)
				engine->gangs.nominate_ms = clock_boot_ms() + RIGHT_MS;
		}
		pthread_mutex_unlock(&engine->lock);
	}
	free(nomination);
}

static void nomination_write(struct engine *engine, struct member *member)
{
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	member->nominate_again = false;
	status_begin(member->namespace, member->name, member->uid, &path, &body);
	if (member->nominated)
		buf_add_json_member(&body, "nominatedNodeName", member->nominated);
	else
		buf_adds(&body, "\"nominatedNodeName\":null");
	status_send(engine, &path, &body, NULL, nominated, about_pod_create(engine, member));
}

void member_nominate(struct engine *engine, struct member *member, const char *node)
{
	if (strcmp(member->nominated ? member->nominated : "", node) == 0)
		return;
	free(member->nominated);
	member->nominated = *node ? strdup(node) : NULL;
	CHECK(member->nominated || !*node);
	nomination_write(engine, member);
}

/* --- Events ------------------------------------------------------------------------------------------------------------- */

static void member_event(struct engine *engine, const struct member *member, enum tell_kind kind,
			 const char *text)
{
	event_write(engine,
		    &(struct kube_event){ .kind = "Pod",
					  .namespace = member->namespace,
					  .name = member->name,
					  .uid = member->uid,
					  .reason = reasons[kind].event,
					  .text = text,
					  .warning = reasons[kind].warning,
					  .count = member->told_count },
		    event_is_over);
	engine->gangs.words++;
}

/* --- when --------------------------------------------------------------------------------------------------------------- */

static uint32_t hash_of(const char *text)
{
	uint32_t hash = UINT32_C(2166136261);

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT32_C(16777619);
	return hash;
}

/* What is told again. */
static bool may_repeat(struct engine *engine)
{
	int64_t now_ms = clock_boot_ms();

	if (now_ms - engine->gangs.period_ms > PERIOD_MS) {
		engine->gangs.period_ms = now_ms;
		engine->gangs.writes = 0;
	}
	return engine->gangs.writes < WRITES_MAX;
}

void member_tell(struct engine *engine, struct member *member, enum tell_kind kind,
		 const char *text)
{
	int64_t now_ms = clock_boot_ms();
	uint32_t hash = hash_of(text), first = UINT32_C(1) << kind;

	if (member->told && member->told_kind == (uint8_t)kind &&
	    (member->told_hash == hash || now_ms - member->told_ms < TELL_PAUSE_MS))
		return;
	if (engine->gangs.words >= WORDS_MAX) {
		engine->gangs.untold = true;
		if (member->gang)
			member->gang->untold = true;
		group_touch(engine, member->group);
		return;
	}
	if (member->told_kinds & first && !may_repeat(engine)) {
		group_touch(engine, member->group);
		return;
	}
	if (member->told_kinds & first)
		engine->gangs.writes += reasons[kind].condition ? 2 : 1;
	member->told_kinds |= (uint8_t)first;
	member->told_count =
		member->told && member->told_kind == (uint8_t)kind ? member->told_count + 1 : 1;
	member->told = true;
	member->told_kind = (uint8_t)kind;
	member->told_hash = hash;
	member->told_ms = now_ms;
	member_event(engine, member, kind, text);
	if (reasons[kind].condition)
		condition_write(engine, member, reasons[kind].condition, text);
}

/* --- disruption ---------------------------------------------------------------------------------------------------------- */

/* Whatever came of the condition: it is stopped. */
static void disruption_said(void *context, const struct kube_answer *answer)
{
	struct about *about = context;
	struct engine *engine = about->engine;
	struct attempt_entry *attempt;
	struct rank_state *state;

	noted(engine, answer);
	pthread_mutex_lock(&engine->lock);
	state = answer->status ? about_find(about, &attempt) : NULL;
	if (state && !state->over && !state->deleting)
		rank_delete(engine, attempt, about->rank, POD_OWN_GRACE);
	pthread_mutex_unlock(&engine->lock);
	free(about);
}

void member_disrupt(struct engine *engine, struct attempt_entry *attempt, uint32_t rank)
{
	struct rank_state *state = &attempt->ranks[rank];
	struct member *member = member_find(engine, state->uid);
	AUTO_BUF path = BUF_INIT;
	struct buf body = BUF_INIT;

	state->disrupting = true;
	if (member && attempt->preempted)
		member_tell(engine, member, TELL_PREEMPTED, attempt->disrupted);
	status_begin(state->namespace, state->name, state->uid, &path, &body);
	add_condition(&body, "DisruptionTarget", true,
		      attempt->preempted ? "PreemptionByScheduler" : "DrainByFairlead",
		      attempt->disrupted ? attempt->disrupted
					 : "Fairlead stops it, for its node is drained");
	status_send(engine, &path, &body, NULL, disruption_said,
		    about_create(engine, attempt->id, rank, state->uid));
}

void gang_tell(struct engine *engine, struct gang *gang, enum tell_kind kind, const char *text)
{
	gang->untold = false;
	gang->told_kind = (uint8_t)kind;
	for (uint32_t rank = 0; rank < gang->count; rank++)
		if (gang->members[rank])
			member_tell(engine, gang->members[rank], kind, text);
}

static void member_tell_again(struct engine *engine, struct member *member)
{
	if (!member->told)
		return;
	member->told = false;
	if (member->gang && member->gang->text[0] && !member->bound)
		member_tell(engine, member, (enum tell_kind)member->told_kind, member->gang->text);
	else
		group_touch(engine, member->group);
}

static void nominate_again(struct engine *engine)
{
	struct member *member, *next;

	if (!engine->gangs.nominate_ms || engine->gangs.nominate_ms > clock_boot_ms())
		return;
	engine->gangs.nominate_ms = 0;
	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		if (member->nominate_again && !member->bound)
			nomination_write(engine, member);
	}
}

void gangs_tell_again(struct engine *engine)
{
	struct member *member, *next;

	nominate_again(engine);
	if (!engine->gangs.again_ms || engine->gangs.again_ms > clock_boot_ms())
		return;
	engine->gangs.again_ms = 0;
	HASH_ITER(hh, engine->gangs.members, member, next)
	{
		member_tell_again(engine, member);
	}
}
