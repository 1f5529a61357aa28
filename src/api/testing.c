/* SPDX-License-Identifier: Apache-2.0 */
#include "api/testing.h"

#include <arpa/inet.h>
#include <ftw.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include "api/identity.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/digest.h"

enum { BLOBS_MAX = 4096 };

struct kept {
	uint64_t seq;
	int64_t time_ms;
	uint32_t kind;
	uint32_t job;
	char *text;
	size_t size;
};

static struct {
	pthread_mutex_t lock;
	struct facts facts;
	struct view *view;
	struct arena step;
	struct kept *history;
	size_t history_count, history_room;
	struct {
		uint32_t job, count;
		char *text;
		size_t size;
	} bodies[BLOBS_MAX];
	size_t body_count;
	struct api *api;
	struct http_server *server;
	char folder[64], socket[96], logs[96];
	bool refuse;
	pthread_cond_t idle;
	int working;
} world = { .lock = PTHREAD_MUTEX_INITIALIZER, .idle = PTHREAD_COND_INITIALIZER };

static const struct {
	const char *name, *team;
	enum role role;
} people[] = {
	{ "root", "", ROLE_ADMIN },        { "ada", "", ROLE_ADMIN },
	{ "vera", "red", ROLE_VIEWER },    { "rita", "red", ROLE_RESEARCHER },
	{ "sam", "red", ROLE_SERVICE },    { "lena", "red", ROLE_LEAD },
	{ "rob", "red", ROLE_RESEARCHER }, { "bob", "blue", ROLE_RESEARCHER },
	{ "lars", "blue", ROLE_LEAD },
};
static char tokens[ARRAY_SIZE(people)][TOKEN_TEXT_MAX], hashes[ARRAY_SIZE(people)][TOKEN_HASH_MAX];

/* --- the core's side --------------------------------------------------------------------------------------------- */

static uint32_t event_job(const struct event *e)
{
	if (e->kind == EVENT_JOB_SUBMITTED)
		return (uint32_t)e->job_submitted.job;
	if (e->kind == EVENT_JOB_CANCEL_ASKED)
		return (uint32_t)e->job_cancel_asked.job;
	if (e->kind == EVENT_JOB_ENDED)
		return (uint32_t)e->job_ended.job;
	if (e->kind == EVENT_ATTEMPT_PLACED)
		return (uint32_t)e->attempt_placed.job;
	if (e->kind == EVENT_CHECKPOINT_SAVED)
		return (uint32_t)e->checkpoint_saved.job;
	return 0;
}

static void keep(const struct event *event, const char *text, size_t size)
{
	struct kept *k;

	if (world.history_count == world.history_room) {
		world.history_room = world.history_room ? 2 * world.history_room : 1024;
		world.history = realloc(world.history, world.history_room * sizeof *world.history);
		CHECK(world.history);
	}
	k = &world.history[world.history_count++];
	*k = (struct kept){ event->seq,       event->time_ms,      event->kind,
			    event_job(event), strndup(text, size), size };
	CHECK(k->text);
}

static void apply_locked(const struct event *proposed)
{
	struct event event = *proposed;
	struct buf text = BUF_INIT;

	event.seq = world.facts.seq + 1;
	event.time_ms = world.facts.now_ms > 1000000 ? world.facts.now_ms + 1 : clock_wall_ms();
	apply(&world.facts, &event);
	view_follow(world.view, &world.facts, &event);
	event_encode(&event, &text);
	keep(&event, text.data, text.size);
	if (world.api)
		event_hub_publish(api_hub(world.api), &event, text.data, text.size);
	buf_deinit(&text);
}

static void decide_locked(void)
{
	struct decisions d = { .more = true };

	while (d.more) {
		arena_reset(&world.step);
		decide(&world.facts, world.view, 100000, &world.step, &d);
		for (uint32_t i = 0; i < d.count; i++)
			apply_locked(&d.events[i]);
		if (!d.count)
			break;
	}
}

void testing_apply(const struct event *event)
{
	pthread_mutex_lock(&world.lock);
	apply_locked(event);
	pthread_mutex_unlock(&world.lock);
}

void testing_decide(void)
{
	pthread_mutex_lock(&world.lock);
	decide_locked();
	pthread_mutex_unlock(&world.lock);
}

/* --- the backend --------------------------------------------------------------------------------------------------- */

static void send_command(void *context, struct command *command)
{
	struct command_reply reply = { 0 };
	uint32_t job = 0;
	int rc;

	(void)context;
	pthread_mutex_lock(&world.lock);
	if (world.refuse) {
		err_set(&reply.err, ERR_UNAVAILABLE, "the disk is full");
	} else {
		command->event.time_ms = world.facts.now_ms + 1;
		rc = core_admit(&world.facts, world.view, &command->event, command->arena, &job,
				&reply.err);
		if (rc == 0) {
			if (command->event.kind == EVENT_JOB_SUBMITTED) {
				job = (uint32_t)command->event.job_submitted.job;
				CHECK(world.body_count < BLOBS_MAX);
				world.bodies[world.body_count].job = job;
				world.bodies[world.body_count].count =
					(uint32_t)command->event.job_submitted.array_count;
				world.bodies[world.body_count].text =
					strndup(command->body, command->body_size);
				world.bodies[world.body_count++].size = command->body_size;
			}
			apply_locked(&command->event);
			reply.seq = world.facts.seq;
			decide_locked();
		}
		reply.already = rc == CORE_ALREADY;
		reply.job = job;
	}
	pthread_mutex_unlock(&world.lock);
	command->done(command->context, &reply);
	command_destroy(command);
}

static struct frozen *get_frozen(void *context)
{
	struct frozen *frozen = calloc(1, sizeof *frozen);

	(void)context;
	CHECK(frozen);
	pthread_mutex_lock(&world.lock);
	facts_freeze(&world.facts, &frozen->facts);
	pthread_mutex_unlock(&world.lock);
	return frozen;
}

static void release(void *context, struct frozen *frozen)
{
	(void)context;
	facts_deinit(&frozen->facts);
	free(frozen);
}

static void get_status(void *context, struct api_status *ret)
{
	(void)context;
	pthread_mutex_lock(&world.lock);
	*ret = (struct api_status){ .build = "test",
				    .boot_id = "boot",
				    .data_folder = "/data",
				    .started_ms = 1700000000000,
				    .now_ms = world.facts.now_ms,
				    .accepting = !world.refuse,
				    .last_seq = world.facts.seq,
				    .history_seq = world.facts.seq,
				    .simulated_nodes = true,
				    .turns = 3,
				    .longest_turn_us = 1500 };
	snprintf(ret->problem, sizeof ret->problem, "%s", world.refuse ? "the disk is full" : "");
	pthread_mutex_unlock(&world.lock);
}

static int get_body(void *context, const struct facts *facts, struct job_id job, struct buf *ret,
		    struct err *err)
{
	(void)context;
	(void)facts;
	for (size_t i = 0; i < world.body_count; i++)
		if (job.v - world.bodies[i].job <
		    (world.bodies[i].count ? world.bodies[i].count : 1)) {
			buf_add(ret, world.bodies[i].text, world.bodies[i].size);
			return 0;
		}
	return err_set(err, ERR_NOT_FOUND, "no body");
}

static int read_history(void *context, uint32_t job, uint64_t after, uint32_t limit,
			void *take_context,
			int (*take)(void *take_context, uint64_t seq, int64_t time_ms,
				    uint32_t kind, const char *text, size_t size),
			struct err *err)
{
	size_t count;

	(void)context;
	(void)err;
	pthread_mutex_lock(&world.lock);
	count = world.history_count;
	for (size_t i = 0; i < count && limit; i++) {
		const struct kept *k = &world.history[i];

		if (k->seq <= after || (job && k->job != job))
			continue;
		take(take_context, k->seq, k->time_ms, k->kind, k->text, k->size);
		limit--;
	}
	pthread_mutex_unlock(&world.lock);
	return 0;
}

static void body_mac(void *context, const void *body, size_t size, char out[DIGEST_HEX_MAX])
{
	const struct digest digest = digest_of(body, size);

	(void)context;
	digest_format(&digest, out);
}

struct piece_of_work {
	void (*fn)(void *argument);
	void *argument;
};

static void *work_thread(void *context)
{
	struct piece_of_work *piece = context;

	piece->fn(piece->argument);
	free(piece);
	pthread_mutex_lock(&world.lock);
	world.working--;
	pthread_cond_broadcast(&world.idle);
	pthread_mutex_unlock(&world.lock);
	return NULL;
}

static void work(void *context, enum work_pace pace, void (*fn)(void *argument), void *argument)
{
	struct piece_of_work *piece = malloc(sizeof *piece);
	pthread_t thread;

	(void)context;
	(void)pace;
	CHECK(piece);
	*piece = (struct piece_of_work){ fn, argument };
	pthread_mutex_lock(&world.lock);
	world.working++;
	pthread_mutex_unlock(&world.lock);
	CHECK(pthread_create(&thread, NULL, work_thread, piece) == 0);
	pthread_detach(thread);
}

static const struct api_backend backend = {
	.send = send_command,
	.frozen = get_frozen,
	.release = release,
	.status = get_status,
	.body = get_body,
	.history = read_history,
	.body_mac = body_mac,
	.work = work,
	.logs_folder = world.logs,
};

/* --- the world --------------------------------------------------------------------------------------------------------- */

static void people_add(void)
{
	struct event e;

	for (size_t i = 0; i < ARRAY_SIZE(people); i++) {
		char id[80];

		e = event_make(EVENT_USER_SET, 0, "test");
		e.user_set.name = people[i].name;
		e.user_set.team = people[i].team;
		e.user_set.role = people[i].role;
		e.user_set.uid = i ? 70000 + (int64_t)i : (int64_t)geteuid();
		e.user_set.gid = e.user_set.uid;
		apply_locked(&e);
		e = event_make(EVENT_TOKEN_CREATED, 0, "test");
		snprintf(id, sizeof id, "t-%s", people[i].name);
		e.token_created.id = id;
		e.token_created.user = people[i].name;
		e.token_created.hash = hashes[i];
		apply_locked(&e);
	}
}

static void queue_add(const char *name, const char *parent, const char *team)
{
	struct event e = event_make(EVENT_QUEUE_SET, 0, "test");

	e.queue_set.name = name;
	e.queue_set.parent = parent;
	e.queue_set.team = team;
	e.queue_set.limit_share = -1;
	e.queue_set.weight = 1;
	e.queue_set.guarantee_share = *team && !*parent ? 2 * GPU_SHARE : 0;
	apply_locked(&e);
}

static void world_fill(void)
{
	struct event e;

	facts_init(&world.facts);
	world.view = view_create(&world.facts);
	for (int i = 0; i < 2; i++) {
		char name[8];

		snprintf(name, sizeof name, "n%d", i);
		e = event_make(EVENT_NODE_SET, 0, "test");
		e.node_set.name = name;
		e.node_set.gpus = 4;
		e.node_set.model = "H100-80GB";
		e.node_set.gpu_memory_mib = 81920;
		e.node_set.cpu_milli = 64000;
		e.node_set.ram_mib = 262144;
		e.node_set.simulated = 1;
		apply_locked(&e);
	}
	for (int i = 0; i < 2; i++) {
		e = event_make(EVENT_TEAM_SET, 0, "test");
		e.team_set.name = i ? "blue" : "red";
		e.team_set.title = i ? "Team Blue" : "Team Red";
		apply_locked(&e);
	}
	people_add();
	queue_add("default", "", "");
	queue_add("red", "", "red");
	queue_add("red-low", "red", "red");
	queue_add("blue", "", "blue");
}

static void world_empty(void)
{
	view_destroy(world.view);
	facts_deinit(&world.facts);
	for (size_t i = 0; i < world.history_count; i++)
		free(world.history[i].text);
	for (size_t i = 0; i < world.body_count; i++)
		free(world.bodies[i].text);
	world.history_count = world.body_count = 0;
	world.refuse = false;
}

void testing_reset(void)
{
	pthread_mutex_lock(&world.lock);
	while (world.working)
		pthread_cond_wait(&world.idle, &world.lock);
	world_empty();
	world_fill();
	pthread_mutex_unlock(&world.lock);
}

void testing_start(void)
{
	struct err err = { 0 };
	struct http_options options = { .unix_path = world.socket,
					.listen = "127.0.0.1:0",
					.handle = api_handle,
					.head = api_head };

	if (!tokens[0][0])
		for (size_t i = 0; i < ARRAY_SIZE(people); i++)
			token_make(tokens[i], hashes[i]);
	snprintf(world.folder, sizeof world.folder, "/tmp/fl-api-XXXXXX");
	CHECK(mkdtemp(world.folder));
	snprintf(world.socket, sizeof world.socket, "%s/s", world.folder);
	snprintf(world.logs, sizeof world.logs, "%s/logs", world.folder);
	CHECK(mkdir(world.logs, 0700) == 0);
	arena_init(&world.step, 256 << 20);
	world_fill();
	world.api = api_create(&backend);
	options.context = world.api;
	if (http_start(&options, &world.server, &err) < 0)
		fail_msg("%s", err.text);
}

static int remove_one(const char *path, const struct stat *what, int flag, struct FTW *ftw)
{
	(void)what;
	(void)flag;
	(void)ftw;
	return remove(path);
}

void testing_stop(void)
{
	http_stop(world.server);
	pthread_mutex_lock(&world.lock);
	while (world.working)
		pthread_cond_wait(&world.idle, &world.lock);
	pthread_mutex_unlock(&world.lock);
	api_destroy(world.api);
	world.api = NULL;
	world_empty();
	arena_deinit(&world.step);
	free(world.history);
	world.history = NULL;
	world.history_room = 0;
	nftw(world.folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

const char *testing_token(const char *user)
{
	for (size_t i = 0; i < ARRAY_SIZE(people); i++)
		if (!strcmp(people[i].name, user))
			return tokens[i];
	UNREACHABLE();
}

/* Through the lock: what the daemon's threads did before is seen. */
const struct facts *testing_facts(void)
{
	pthread_mutex_lock(&world.lock);
	pthread_mutex_unlock(&world.lock);
	return &world.facts;
}

const char *testing_logs(void)
{
	return world.logs;
}
const char *testing_socket(void)
{
	return world.socket;
}
int testing_port(void)
{
	return http_port(world.server);
}
uint64_t testing_last_seq(void)
{
	return testing_facts()->seq;
}

void testing_refuse(bool refuse)
{
	pthread_mutex_lock(&world.lock);
	world.refuse = refuse;
	pthread_mutex_unlock(&world.lock);
}

uint32_t testing_job(const char *user, const char *team, const char *queue, int64_t gpus)
{
	struct event e = event_make(EVENT_JOB_SUBMITTED, 0, user);
	struct err err = { 0 };
	uint32_t job = 0;

	e.job_submitted.name = "work";
	e.job_submitted.user = user;
	e.job_submitted.team = team;
	e.job_submitted.queue = queue;
	e.job_submitted.kind = KIND_TRAINING;
	e.job_submitted.tier = TIER_STANDARD;
	e.job_submitted.tasks_min = e.job_submitted.tasks_max = 1;
	e.job_submitted.gpus = gpus;
	e.job_submitted.preempts = 1;
	e.job_submitted.grace_ms = -1;
	e.job_submitted.array_count = 1;
	pthread_mutex_lock(&world.lock);
	e.time_ms = world.facts.now_ms + 1;
	if (core_admit(&world.facts, world.view, &e, &world.step, &job, &err) < 0) {
		pthread_mutex_unlock(&world.lock);
		fail_msg("%s", err.text);
	}
	job = (uint32_t)e.job_submitted.job;
	apply_locked(&e);
	world.bodies[world.body_count].job = job;
	world.bodies[world.body_count].count = 1;
	world.bodies[world.body_count].text = strdup("{\"argv\":[\"true\"]}");
	world.bodies[world.body_count++].size = 17;
	decide_locked();
	pthread_mutex_unlock(&world.lock);
	return job;
}

void testing_engine(uint32_t job)
{
	const uint32_t attempt = job_get(testing_facts(), (struct job_id){ job })->attempt.v;
	uint32_t tasks;
	struct event e;

	assert_int_not_equal(attempt, 0);
	tasks = attempt_get(&world.facts, (struct attempt_id){ attempt })->tasks;
	for (int step = 0; step < 2; step++) {
		for (uint32_t rank = 0; rank < tasks; rank++) {
			e = event_make(step ? EVENT_TASK_STARTED : EVENT_TASK_READY, 0, "engine");
			if (step) {
				e.task_started.attempt = attempt;
				e.task_started.rank = rank;
			} else {
				e.task_ready.attempt = attempt;
				e.task_ready.rank = rank;
			}
			testing_apply(&e);
		}
		testing_decide();
	}
}

/* --- the client's side --------------------------------------------------------------------------------------------------- */

int testing_dial(bool local)
{
	struct sockaddr_un u = { .sun_family = AF_UNIX };
	struct sockaddr_in t = { .sin_family = AF_INET,
				 .sin_port = htons((uint16_t)testing_port()) };
	const int fd = socket(local ? AF_UNIX : AF_INET, SOCK_STREAM, 0);

	t.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	snprintf(u.sun_path, sizeof u.sun_path, "%s", world.socket);
	assert_int_equal(local ? connect(fd, (struct sockaddr *)&u, sizeof u)
			       : connect(fd, (struct sockaddr *)&t, sizeof t),
			 0);
	return fd;
}

/* "5\r\nhello\r\n0\r\n\r\n" -> "hello", in place. */
static size_t unchunk(char *data, size_t size)
{
	size_t in = 0, out = 0;

	while (in < size) {
		char *line;
		const size_t part = strtoul(data + in, &line, 16);

		in = (size_t)(line + 2 - data);
		memmove(data + out, data + in, part);
		out += part;
		in += part + 2;
		if (!part)
			break;
	}
	return out;
}

struct answer testing_call(const char *user, const char *method, const char *path,
			   const char *headers, const char *body)
{
	struct answer answer = { 0 };
	struct buf out = BUF_INIT, in = BUF_INIT;
	const int fd = testing_dial(!user);
	char *end;

	buf_addf(&out, "%s %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n%s", method, path,
		 headers ? headers : "");
	if (user && *user)
		buf_addf(&out, "Authorization: Bearer %s\r\n", testing_token(user));
	if (body || strcmp(method, "GET") != 0)
		buf_addf(&out, "Content-Length: %zu\r\n", body ? strlen(body) : 0);
	buf_adds(&out, "\r\n");
	if (body)
		buf_adds(&out, body);
	for (size_t at = 0; at < out.size;) {
		const ssize_t sent = send(fd, out.data + at, out.size - at, MSG_NOSIGNAL);

		if (sent < 0)
			break;
		at += (size_t)sent;
	}
	for (;;) {
		ssize_t got;

		buf_reserve(&in, 65536);
		got = recv(fd, in.data + in.size, 65535, 0);
		if (got <= 0)
			break;
		in.size += (size_t)got;
		in.data[in.size] = '\0';
	}
	close(fd);
	buf_deinit(&out);
	end = in.size ? strstr(in.data, "\r\n\r\n") : NULL;
	if (!end)
		fail_msg("%s %s: no answer, but \"%s\"", method, path, buf_text(&in));
	answer.status = (int)strtol(in.data + 9, NULL, 10);
	answer.size = in.size - (size_t)(end + 4 - in.data);
	answer.text = calloc(1, answer.size + 1);
	CHECK(answer.text);
	memcpy(answer.text, end + 4, answer.size);
	answer.head = strndup(in.data, (size_t)(end + 2 - in.data));
	CHECK(answer.head);
	if (strstr(answer.head, "Transfer-Encoding: chunked")) {
		answer.size = unchunk(answer.text, answer.size);
		answer.text[answer.size] = '\0';
	}
	answer.json = json_loads(answer.text, JSON_REJECT_DUPLICATES, NULL);
	buf_deinit(&in);
	return answer;
}

void answer_free(struct answer *answer)
{
	free(answer->text);
	free(answer->head);
	json_decref(answer->json);
	*answer = (struct answer){ 0 };
}

struct answer testing_get(const char *user, const char *path, int status)
{
	struct answer answer = testing_call(user, "GET", path, NULL, NULL);

	if (answer.status != status)
		fail_msg("GET %s as %s: %d %s", path, user ? user : "socket", answer.status,
			 answer.text);
	return answer;
}
