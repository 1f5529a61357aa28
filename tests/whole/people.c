/* SPDX-License-Identifier: Apache-2.0 */
/*
 * People: they submit, ask, change their minds, and remember what they were told. Who got no answer asks again with the same
 * client key. What was acknowledged must be so from then on, whatever breaks.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "whole.h"

#define SECRET "sesame-opens-nothing"
enum { AGAIN_MS = 7000, TOKENS_MAX = 64, NOTICES_MAX = 64 };

enum wish_state { WISH_NEW, WISH_SENT, WISH_TAKEN, WISH_REFUSED };

/* A job that somebody wants. */
struct wish {
	uint32_t number; /* of its item in the plan: its name */
	enum wish_state state;
	uint32_t tries, job;
	int64_t next_ms;
	bool cancel_taken; /* its cancellation was acknowledged */
	char *body;
};

struct pass {
	char text[80], id[80];
	bool ended; /* that was acknowledged */
};

/* A node that will go; who says so says it until it is heard. */
struct notice {
	uint32_t node;
	int64_t at_ms, back_ms, next_ms;
	bool drain, heard, over;
};

struct people {
	struct notice notices[NOTICES_MAX];
	uint32_t notice_count;
	struct wish *wishes;
	uint32_t wish_count, wish_room;
	struct pass tokens[TOKENS_MAX];
	uint32_t token_count;
	bool begun;
};

const char *people_secret(const struct whole *w)
{
	(void)w;
	return SECRET;
}

struct people *people_create(struct whole *w)
{
	struct people *p = calloc(1, sizeof(*p));

	(void)w;
	CHECK(p);
	/* Answers name a wish: they never move. */
	p->wish_room = PLAN_MAX;
	p->wishes = calloc(p->wish_room, sizeof(*p->wishes));
	CHECK(p->wishes);
	return p;
}

void people_destroy(struct people *p)
{
	for (uint32_t i = 0; i < p->wish_count; i++)
		free(p->wishes[i].body);
	free(p->wishes);
	free(p);
}

/* The number behind "name": in an answer; 0 when there is none. */
static uint32_t answer_number(const char *text, const char *name)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":", name);
	at = strstr(text, key);
	return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : 0;
}

static void answer_text(const char *text, const char *name, char *out, size_t room)
{
	char key[40];
	const char *at;

	snprintf(key, sizeof(key), "\"%s\":\"", name);
	at = strstr(text, key);
	snprintf(out, room, "%.*s", at ? (int)strcspn(at + strlen(key), "\"") : 0,
		 at ? at + strlen(key) : "");
}

/* As the administrator, through the socket of the machine. */
static void admin(struct whole *w, const char *method, const char *path, const char *body)
{
	if (w->daemon)
		transport_send(w, method, path, NULL, NULL, body, NULL, NULL);
}

static void admin_job(struct whole *w, uint32_t job, const char *what)
{
	char path[80];

	snprintf(path, sizeof(path), "/api/v1/jobs/%u/%s", job, what);
	admin(w, "POST", path, "{}");
}

/* --- tokens ------------------------------------------------------------------------------------------------------------------ */

static void token_made(struct whole *w, void *context, int status, const char *text)
{
	struct people *p = w->people;
	struct pass *token = &p->tokens[p->token_count];

	(void)context;
	if (status / 100 != 2 || p->token_count == TOKENS_MAX)
		return;
	answer_text(text, "token", token->text, sizeof(token->text));
	answer_text(text, "id", token->id, sizeof(token->id));
	p->token_count++;
}

static void token_ended(struct whole *w, void *context, int status, const char *text)
{
	struct pass *token = context;

	(void)w;
	(void)text;
	token->ended = token->ended || status / 100 == 2;
}

static void token_make(struct whole *w)
{
	if (w->daemon)
		transport_send(w, "POST", "/api/v1/tokens", NULL, NULL, "{\"user\":\"alice\"}",
			       token_made, NULL);
}

static void token_end(struct whole *w, struct pass *token)
{
	char path[120];

	snprintf(path, sizeof(path), "/api/v1/tokens/%s", token->id);
	if (w->daemon)
		transport_send(w, "DELETE", path, NULL, NULL, NULL, token_ended, token);
}

/* The newest that holds. */
static const char *token_now(const struct people *p)
{
	for (uint32_t i = p->token_count; i-- > 0;)
		if (!p->tokens[i].ended)
			return p->tokens[i].text;
	return NULL;
}

const char *people_token(const struct whole *w)
{
	return token_now(w->people);
}

static void read_answered(struct whole *w, void *context, int status, const char *text)
{
	bool refused = context != NULL;

	(void)text;
	if (status && refused && status != 401)
		whole_problem(w, "a token that was ended is answered with %d", status);
	if (status && !refused && status == 401)
		whole_problem(w, "a token that holds is not known");
}

static void token_try(struct whole *w, struct sim_random *random)
{
	struct people *p = w->people;
	struct pass *token = p->token_count ? &p->tokens[below(random, p->token_count)] : NULL;
	const char *text;

	if (!token || !w->daemon)
		return;
	if (token->ended)
		transport_send(w, "GET", "/api/v1/whoami", token->text, NULL, NULL, read_answered,
			       token);
	text = token_now(p);
	if (text)
		transport_send(w, "GET", "/api/v1/whoami", text, NULL, NULL, read_answered, NULL);
}

/* --- submissions -------------------------------------------------------------------------------------------------------------- */

static void submit_answered(struct whole *w, void *context, int status, const char *text)
{
	struct wish *wish = context;
	uint32_t job = answer_number(text, "id");

	if (wish->state == WISH_TAKEN) { /* asked once more: the same */
		if (status / 100 == 2 && job != wish->job)
			whole_problem(w,
				      "job j%u has the number %u, and with the same client key %u",
				      wish->number, wish->job, job);
		return;
	}
	if (status / 100 == 2) {
		wish->state = WISH_TAKEN;
		wish->job = job;
	} else if (status == 0 || status >= 500 || status == 401) {
		wish->state = WISH_NEW;
		wish->next_ms = w->now_ms + AGAIN_MS;
	} else {
		wish->state = WISH_REFUSED;
		whole_trace(w, "job j%u is refused: %s", wish->number, text);
	}
}

static void wish_send(struct whole *w, struct wish *wish)
{
	char key[40];

	snprintf(key, sizeof(key), "key-%u", wish->number);
	if (wish->state == WISH_NEW)
		wish->state = WISH_SENT;
	wish->tries++;
	wish->next_ms = NEVER;
	transport_send(w, "POST", "/api/v1/jobs", token_now(w->people), key, wish->body,
		       submit_answered, wish);
}

static void other_answered(struct whole *w, void *context, int status, const char *text)
{
	const struct wish *wish = context;

	(void)text;
	if (status && status < 500 && status != 409)
		whole_problem(w, "the client key of job j%u with another body is answered with %d",
			      wish->number, status);
}

/* What was taken is asked for again: the same job; with another body: a conflict. */
static void ask_again(struct whole *w, struct wish *wish, bool other)
{
	char key[40];

	snprintf(key, sizeof(key), "key-%u", wish->number);
	transport_send(w, "POST", "/api/v1/jobs", token_now(w->people), key,
		       other ? "{\"name\":\"other\",\"command\":[\"other\"]}" : wish->body,
		       other ? other_answered : submit_answered, wish);
}

/* A width: fixed, a range of which ranks come and go, or servers with workers. Returns whether four GPUs of one node are enough. */
static bool body_tasks(struct buf *out, struct sim_random *random)
{
	static const uint32_t gpus[] = { 1, 1, 1, 2, 4, 8 };
	uint32_t tasks = one_in(random, 3) ? 1 + below(random, 4) : 1, kind = below(random, 10),
		 each = 0;

	if (kind == 0) {
		buf_addf(out, ",\"tasks\":\"%u..%u\",\"gpus\":%u", 1 + below(random, 2),
			 3 + below(random, 4), 1 + below(random, 2));
		if (one_in(random, 4))
			buf_adds(out, ",\"resize\":\"restart\"");
	} else if (kind == 1) {
		buf_addf(
			out,
			",\"roles\":[{\"name\":\"server\",\"gpus\":0,\"cpus\":2},"
			"{\"name\":\"worker\",\"tasks\":%u,\"min\":%u,\"gpus\":1,\"ends_job\":true}]",
			2 + below(random, 3), 1 + below(random, 2));
	} else if (kind == 2) {
		buf_addf(out, ",\"tasks\":%u,\"gpus\":0.%u", tasks, 1 + below(random, 9));
	} else if (kind < 5) {
		uint32_t cpus = 8 * (1 + below(random, 6)), gib = 16 * (1 + below(random, 8));

		buf_addf(out, ",\"tasks\":%u,\"gpus\":0,\"cpus\":%u,\"memory\":\"%uGiB\"", tasks,
			 cpus, gib);
	} else {
		each = gpus[below(random, tasks > 2 ? 5 : 6)];
		buf_addf(out, ",\"tasks\":%u,\"gpus\":%u", tasks, each);
		if (one_in(random, 3))
			buf_addf(out, ",\"cpus\":%u,\"memory\":\"16GiB\"",
				 4 * (1 + below(random, 3)));
	}
	if (tasks > 1 && one_in(random, 2))
		buf_adds(out, ",\"rejoin\":true");
	return each && tasks * each <= 4;
}

static char *body_make(const struct whole *w, struct sim_random *random, uint32_t number)
{
	static const char *const queues[] = { "default", "red", "red", "blue" };
	struct buf out = BUF_INIT;
	bool saves = one_in(random, 2), small, batch;

	buf_addf(&out, "{\"name\":\"j%u\",\"queue\":\"%s\"", number, queues[below(random, 4)]);
	small = body_tasks(&out, random);
	batch = one_in(random, 3);
	buf_addf(&out, ",\"kind\":\"%s\"", batch ? "batch" : "training");
	if (one_in(random, 4))
		buf_adds(&out, ",\"tier\":\"best-effort\"");
	else if (one_in(random, 8))
		buf_adds(&out, ",\"tier\":\"critical\"");
	if (one_in(random, 3))
		buf_addf(&out, ",\"priority\":%u", below(random, 5));
	if (one_in(random, 3))
		buf_addf(&out, ",\"limit\":\"%um\"", 2 + below(random, 60));
	if (one_in(random, 4))
		buf_addf(&out, ",\"retries\":%u", 1 + below(random, 3));
	if (saves)
		buf_addf(&out,
			 ",\"checkpoint\":{\"how\":\"signal\",\"every\":\"%um\",\"grace\":\"%us\"}",
			 1 + below(random, 10), 10 + below(random, 120));
	if (saves)
		spot_wish(w, random, batch, small, &out);
	buf_adds(&out,
		 ",\"workdir\":\"/\",\"command\":[\"work\"],\"env\":{\"SECRET\":\"" SECRET "\"}}");
	return buf_take(&out);
}

static void submit(struct whole *w, const struct item *item)
{
	struct people *p = w->people;
	struct sim_random random = { item->seed };
	struct wish *wish = &p->wishes[p->wish_count++];

	*wish = (struct wish){ .number = (uint32_t)(item - w->plan), .next_ms = w->now_ms };
	wish->body = body_make(w, &random, wish->number);
}

/* --- changes of mind ------------------------------------------------------------------------------------------------------------ */

static void cancel_answered(struct whole *w, void *context, int status, const char *text)
{
	struct wish *wish = context;

	(void)w;
	(void)text;
	wish->cancel_taken = wish->cancel_taken || status == 200;
}

static struct wish *wish_choose(struct people *p, struct sim_random *random)
{
	uint32_t skip = below(random, 20);
	struct wish *found = NULL;

	for (uint32_t i = p->wish_count; i-- > 0;) {
		if (p->wishes[i].state != WISH_TAKEN)
			continue;
		found = &p->wishes[i];
		if (!skip--)
			break;
	}
	return found;
}

static void change_job(struct whole *w, struct sim_random *random)
{
	struct wish *wish = wish_choose(w->people, random);
	uint32_t dice = below(random, 10);
	char path[80], body[40];

	if (!wish || !w->daemon)
		return;
	if (dice < 2) {
		snprintf(path, sizeof(path), "/api/v1/jobs/%u/cancel", wish->job);
		transport_send(w, "POST", path, NULL, NULL, "{}", cancel_answered, wish);
	} else if (dice < 4) {
		admin_job(w, wish->job, "hold");
	} else if (dice < 6) {
		admin_job(w, wish->job, "release");
	} else if (dice < 8) {
		snprintf(path, sizeof(path), "/api/v1/jobs/%u/priority", wish->job);
		snprintf(body, sizeof(body), "{\"priority\":%u}", below(random, 6));
		admin(w, "POST", path, body);
	} else {
		ask_again(w, wish, dice == 9);
	}
}

static void change_queue(struct whole *w, struct sim_random *random)
{
	char body[80];

	if (one_in(random, 2)) {
		snprintf(body, sizeof(body), "{\"guarantee_gpus\":%u}", 4 + below(random, 10));
		admin(w, "PUT", "/api/v1/queues/red", body);
	} else {
		snprintf(body, sizeof(body), "{\"weight\":%u}", 1 + below(random, 4));
		admin(w, "PUT", "/api/v1/queues/blue", body);
	}
}

static void change_node(struct whole *w, struct sim_random *random)
{
	static const char *const states[] = { "ready", "ready", "cordoned", "draining" };
	char path[80], body[120];

	if (one_in(random, 3)) {
		snprintf(path, sizeof(path), "/api/v1/nodes/n%u/gpus", below(random, NODES));
		snprintf(body, sizeof(body), "{\"index\":%u,\"set_aside\":%s}", below(random, 4),
			 one_in(random, 2) ? "true" : "false");
	} else {
		snprintf(path, sizeof(path), "/api/v1/nodes/n%u/state", below(random, NODES));
		snprintf(body, sizeof(body), "{\"state\":\"%s\",\"reason\":\"chance\"}",
			 states[below(random, 4)]);
	}
	admin(w, "POST", path, body);
}

/* --- nodes that go at a time ------------------------------------------------------------------------------------------------ */

void people_notice(struct whole *w, uint32_t node, int64_t in_ms, int64_t for_ms, bool drain)
{
	struct people *p = w->people;

	if (p->notice_count < NOTICES_MAX)
		p->notices[p->notice_count++] =
			(struct notice){ .node = node,
					 .at_ms = w->now_ms + in_ms,
					 .back_ms = w->now_ms + in_ms + for_ms,
					 .next_ms = w->now_ms,
					 .drain = drain };
}

static void notice_heard(struct whole *w, void *context, int status, const char *text)
{
	struct notice *n = context;

	(void)text;
	n->heard = n->heard || status / 100 == 2;
	n->next_ms = n->heard ? n->back_ms : w->now_ms + AGAIN_MS;
}

static void notice_send(struct whole *w, struct notice *n)
{
	char path[80], body[160];

	n->next_ms = NEVER;
	snprintf(path, sizeof(path), "/api/v1/nodes/n%u/%s", n->node,
		 n->drain ? "state" : "maintenance");
	if (n->drain)
		snprintf(body, sizeof(body),
			 "{\"state\":\"draining\",\"within\":\"%lldms\",\"reason\":\"spot\"}",
			 (long long)(n->at_ms - w->now_ms));
	else
		snprintf(body, sizeof(body),
			 "{\"from\":\"%lldms\",\"for\":\"%lldms\",\"reason\":\"spot\"}",
			 (long long)(n->at_ms - w->now_ms), (long long)(n->back_ms - n->at_ms));
	transport_send(w, n->drain ? "POST" : "PUT", path, NULL, NULL, body, notice_heard, n);
}

/* Back from a drain: somebody says so. */
static void notice_end(struct whole *w, struct notice *n)
{
	char path[80];

	n->over = true;
	n->next_ms = NEVER;
	snprintf(path, sizeof(path), "/api/v1/nodes/n%u/state", n->node);
	if (n->drain)
		admin(w, "POST", path, "{\"state\":\"ready\"}");
}

static void notices_run(struct whole *w)
{
	struct people *p = w->people;

	for (uint32_t i = 0; i < p->notice_count; i++) {
		struct notice *n = &p->notices[i];

		if (n->over || n->next_ms > w->now_ms)
			continue;
		if (n->heard || n->at_ms - w->now_ms < 1000)
			notice_end(w, n);
		else if (w->daemon)
			notice_send(w, n);
		else
			n->next_ms = w->now_ms + AGAIN_MS;
	}
}

/* An answer never shows less than what was acknowledged. */
static void job_read(struct whole *w, void *context, int status, const char *text)
{
	const struct wish *wish = context;
	char name[20];

	if (!status)
		return;
	snprintf(name, sizeof(name), "\"j%u\"", wish->number);
	if (status == 404 || (status == 200 && !strstr(text, name)))
		whole_problem(w, "job j%u was taken, and is answered with %d", wish->number,
			      status);
}

static void read_job(struct whole *w, struct sim_random *random)
{
	const struct wish *wish = wish_choose(w->people, random);
	char path[80];

	if (!wish || !w->daemon)
		return;
	snprintf(path, sizeof(path), "/api/v1/jobs/%u", wish->job);
	transport_send(w, "GET", path, NULL, NULL, NULL, job_read, (void *)(uintptr_t)wish);
}

void people_do(struct whole *w, const struct item *item)
{
	struct sim_random random = { item->seed };
	struct people *p = w->people;

	if (item->kind == ITEM_SUBMIT)
		submit(w, item);
	else if (item->kind == ITEM_JOB)
		change_job(w, &random);
	else if (item->kind == ITEM_QUEUE)
		change_queue(w, &random);
	else if (item->kind == ITEM_NODE)
		change_node(w, &random);
	else if (item->kind == ITEM_TOKEN && one_in(&random, 2))
		token_make(w);
	else if (item->kind == ITEM_TOKEN && p->token_count > 1)
		token_end(w, &p->tokens[below(&random, p->token_count - 1)]);
	else if (item->kind == ITEM_READ && one_in(&random, 2))
		token_try(w, &random);
	else if (item->kind == ITEM_READ)
		read_job(w, &random);
}

void people_run(struct whole *w)
{
	struct people *p = w->people;

	notices_run(w);
	for (uint32_t i = 0; i < p->wish_count; i++) {
		struct wish *wish = &p->wishes[i];

		if (wish->state != WISH_NEW || wish->next_ms > w->now_ms)
			continue;
		if (w->daemon)
			wish_send(w, wish);
		else
			wish->next_ms = w->now_ms + AGAIN_MS;
	}
}

int64_t people_next_ms(const struct whole *w)
{
	const struct people *p = w->people;
	int64_t next = NEVER;

	for (uint32_t i = 0; i < p->wish_count; i++)
		if (p->wishes[i].state == WISH_NEW && p->wishes[i].next_ms < next)
			next = p->wishes[i].next_ms;
	for (uint32_t i = 0; i < p->notice_count; i++)
		if (!p->notices[i].over && p->notices[i].next_ms < next)
			next = p->notices[i].next_ms;
	return next;
}

void people_begin(struct whole *w)
{
	admin(w, "PUT", "/api/v1/users/alice",
	      "{\"role\":\"researcher\",\"uid\":4001,\"gid\":4001}");
	admin(w, "PUT", "/api/v1/queues/red", "{\"guarantee_gpus\":12,\"weight\":2}");
	admin(w, "PUT", "/api/v1/queues/blue", "{\"guarantee_gpus\":8}");
	for (int i = 0; i < 3; i++) { /* alice asks for such tiers and priorities everywhere */
		static const char *const names[] = { "default", "red", "blue" };
		char path[40];

		snprintf(path, sizeof(path), "/api/v1/queues/%s", names[i]);
		admin(w, "PUT", path,
		      "{\"tiers\":\"critical,standard,best-effort\",\"max_priority\":10}");
	}
	admin(w, "PUT", "/api/v1/policy",
	      w->seed % 2 ? "{\"min_runtime\":\"1m\",\"rejoin\":\"0s\"}"
			  : "{\"min_runtime\":\"1m\",\"rejoin\":\"2m\"}");
	(void)life_settle(w);
	token_make(w);
	(void)life_settle(w);
	if (!w->people->token_count)
		whole_problem(w, "there is no token at the beginning");
}

void people_ask_why(struct whole *w, uint32_t job)
{
	char path[80];

	snprintf(path, sizeof(path), "/api/v1/jobs/%u/explain", job);
	transport_send(w, "GET", path, NULL, NULL, NULL, NULL, NULL);
	(void)life_settle(w);
}

/* All is well again, and nobody holds anything back. */
void people_calm(struct whole *w)
{
	struct people *p = w->people;
	char path[80];

	for (uint32_t n = 0; n < NODES; n++) {
		snprintf(path, sizeof(path), "/api/v1/nodes/n%u/state", n);
		admin(w, "POST", path, "{\"state\":\"ready\"}");
		snprintf(path, sizeof(path), "/api/v1/nodes/n%u/maintenance", n);
		admin(w, "PUT", path, "{\"off\":true}");
		snprintf(path, sizeof(path), "/api/v1/nodes/n%u/gpus", n);
		admin(w, "POST", path,
		      n % 2 ? "{\"mask\":15,\"set_aside\":false}"
			    : "{\"mask\":255,\"set_aside\":false}");
	}
	/* Guarantees may have shrunk below what critical work needs. */
	admin(w, "PUT", "/api/v1/policy", "{\"allow_critical_burst\":true}");
	for (uint32_t i = 0; i < p->wish_count; i++)
		if (p->wishes[i].state == WISH_TAKEN)
			admin_job(w, p->wishes[i].job, "release");
}

/* --- what was acknowledged ------------------------------------------------------------------------------------------------------ */

static void check_wish(struct whole *w, const struct facts *facts, const struct wish *wish)
{
	const struct job *job;
	char name[20];

	snprintf(name, sizeof(name), "j%u", wish->number);
	if (!job_is_there(facts, wish->job)) {
		whole_problem(w, "job %s was taken as number %u, and is not there", name,
			      wish->job);
		return;
	}
	job = job_get(facts, (struct job_id){ wish->job });
	if (strcmp(facts_name(facts, job->name), name) != 0)
		whole_problem(w, "job %s was taken as number %u, which is job %s", name, wish->job,
			      facts_name(facts, job->name));
	if (wish->cancel_taken && !job->cancel_asked && !job_state_is_final(job->state))
		whole_problem(w, "job %s was cancelled, and is %s", name,
			      job_state_name(job->state));
}

void people_check(struct whole *w, const struct facts *facts)
{
	const struct people *p = w->people;

	for (uint32_t i = 0; i < p->wish_count; i++)
		if (p->wishes[i].state == WISH_TAKEN)
			check_wish(w, facts, &p->wishes[i]);
}

static const struct wish *wish_find(const struct people *p, uint32_t number)
{
	for (uint32_t i = 0; i < p->wish_count; i++)
		if (p->wishes[i].number == number)
			return &p->wishes[i];
	return NULL;
}

bool people_end(struct whole *w, const struct facts *facts)
{
	const struct people *p = w->people;
	bool over = true;

	for (uint32_t i = 0; i < p->wish_count; i++)
		over = over && p->wishes[i].state != WISH_NEW && p->wishes[i].state != WISH_SENT;
	for (uint32_t id = 1; id <= facts->jobs.count && over; id++) {
		const struct job *job = job_get(facts, (struct job_id){ id });
		const struct wish *wish;

		if (!job_state_is_final(job->state))
			return false;
		wish = wish_find(p, (uint32_t)strtoul(facts_name(facts, job->name) + 1, NULL, 10));
		if (!wish || wish->state != WISH_TAKEN || wish->job != id)
			whole_problem(w, "job %s has the number %u, which nobody was told",
				      facts_name(facts, job->name), id);
	}
	return over;
}
