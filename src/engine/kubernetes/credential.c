/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/kubernetes/credential.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/log.h"
#include "base/moment.h"
#include "base/program.h"
#include "base/thread.h"
#include "base/wait.h"

enum {
	LOOK_MS = 50, /* while it runs: whether it has ended, or all is to end */
	COMPLAINT_MAX = 160,
	PIECES_MAX = 64, /* that are read between two looks */
	AHEAD_MS =
		30000, /* so long before it expires it is renewed; a tenth of its life where that is less */
	PAUSE_MS = 1000,
	PAUSE_MAX_MS = 60000,
	TAKEN_MS = 2 * PAUSE_MAX_MS, /* what was not refused for so long had been taken */
	ENVIRONMENT_MAX = 4096,
	STAMP_MAX = 64
};

struct credential {
	const struct access_exec *exec;
	void (*changed)(void *context);
	void *context;
	pthread_t thread;

	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool ending, wanted; /* wanted: what there is was refused, or nothing is there */
	bool failed; /* at the last try */
	uint64_t serial; /* 0 = none was had yet */
	int64_t expires_ms, renew_ms; /* boot clock; 0 = not */
	int64_t again_ms, pause_ms; /* boot clock: it is not run before */
	int64_t given_ms; /* boot clock: when it gave the newest one */
	uint32_t refusals; /* of such, on end, each soon after it was given */
	uint64_t random;
	struct credential_text *text;
	char problem[256];
};

/* --- what it says --------------------------------------------------------------------------------------------- */

static void read_text(struct json_reader *r, char *out, size_t room)
{
	struct json_slice text;

	if (pull_peek(r) == PULL_NULL) {
		pull_null(r);
		return;
	}
	pull_string(r, &text);
	pull_copy(r, &text, out, room);
}

static void read_status(struct json_reader *r, struct credential_text *ret, char stamp[STAMP_MAX])
{
	struct json_slice key;

	pull_object(r);
	while (pull_member(r, &key)) {
		if (pull_key_is(&key, "token"))
			read_text(r, ret->token, sizeof(ret->token));
		else if (pull_key_is(&key, "clientCertificateData"))
			read_text(r, ret->certificate, sizeof(ret->certificate));
		else if (pull_key_is(&key, "clientKeyData"))
			read_text(r, ret->key, sizeof(ret->key));
		else if (pull_key_is(&key, "expirationTimestamp"))
			read_text(r, stamp, STAMP_MAX);
		else
			pull_skip(r);
	}
}

/* 2026-11-23T07:00:00.123Z: parts of a second are left off. */
static int read_stamp(const char *stamp, int64_t *ret_ms)
{
	char whole[STAMP_MAX];
	const char *dot = strchr(stamp, '.');
	size_t before = dot ? (size_t)(dot - stamp) : strlen(stamp);
	const char *behind = dot ? dot + 1 + strspn(dot + 1, "0123456789") : "";

	snprintf(whole, sizeof(whole), "%.*s%s", (int)before, stamp, behind);
	return moment_parse(whole, ret_ms);
}

static bool is_printable(const char *token)
{
	for (; *token; token++)
		if ((unsigned char)*token <= ' ' || *token == 127)
			return false;
	return true;
}

static int check(const struct access_exec *exec, const struct credential_text *text,
		 const char *kind, const char *version, int64_t now_ms, struct err *err)
{
	if (strcmp(kind, "ExecCredential") != 0 || strcmp(version, exec->version) != 0)
		return err_set(
			err, ERR_INVALID,
			"it printed a \"%.40s\" of \"%.60s\" in place of an ExecCredential of \"%s\", as the kubeconfig's apiVersion says",
			kind, version, exec->version);
	if (!text->token[0] && !text->certificate[0])
		return err_set(err, ERR_INVALID,
			       "it gave neither a token nor a client certificate");
	if (!text->certificate[0] != !text->key[0])
		return err_set(
			err, ERR_INVALID,
			"it gave a client certificate without its key, or a key without its certificate");
	if (!is_printable(text->token))
		return err_set(err, ERR_INVALID,
			       "its token has characters that a token can't have");
	if (text->expires_ms && text->expires_ms <= now_ms)
		return err_set(
			err, ERR_INVALID,
			"what it gave has expired already; is the clock of this machine right?");
	return 0;
}

int credential_parse(const struct access_exec *exec, const char *text, size_t size, int64_t now_ms,
		     struct credential_text *ret, struct err *err)
{
	struct json_reader r;
	struct json_slice key;
	struct err why = { 0 };
	char kind[64] = "", version[128] = "", stamp[STAMP_MAX] = "";

	memset(ret, 0, sizeof(*ret));
	pull_init(&r, text, size);
	pull_object(&r);
	while (pull_member(&r, &key)) {
		if (pull_key_is(&key, "kind"))
			read_text(&r, kind, sizeof(kind));
		else if (pull_key_is(&key, "apiVersion"))
			read_text(&r, version, sizeof(version));
		else if (pull_key_is(&key, "status"))
			read_status(&r, ret, stamp);
		else
			pull_skip(&r);
	}
	if (pull_finish(&r, &why) < 0)
		return err_set(err, ERR_INVALID, "it did not print an ExecCredential: %.200s",
			       why.text);
	if (stamp[0] && read_stamp(stamp, &ret->expires_ms) != 0)
		return err_set(err, ERR_INVALID,
			       "its expirationTimestamp \"%.60s\" is no time with a zone", stamp);
	return check(exec, ret, kind, version, now_ms, err);
}

/* --- running it ------------------------------------------------------------------------------------------------- */

extern char **environ;

/* This process's own but for what is Fairlead's, then what the kubeconfig says. The array is the caller's to free. */
static char **environment(const struct access_exec *exec)
{
	char **all = calloc(ENVIRONMENT_MAX + 2, sizeof(*all));
	size_t count = 0;

	CHECK(all);
	for (char *const *own = exec->env; own && *own && count < ENVIRONMENT_MAX; own++)
		all[count++] = *own;
	all[count++] = (char *)(uintptr_t)exec->info;
	for (char **at = environ; *at && count < ENVIRONMENT_MAX; at++) {
		size_t name = strcspn(*at, "=") + 1;
		bool known = strncmp(*at, "FAIRLEAD_", 9) == 0;

		for (size_t i = 0; i < count && !known; i++)
			known = strncmp(all[i], *at, name) == 0;
		if (!known)
			all[count++] = *at;
	}
	return all;
}

static int spawn(const struct access_exec *exec, int out, int complaints, pid_t *ret)
{
	char **env = environment(exec);
	int rc = program_start(NULL, exec->argv, env, out, complaints, ret);

	free(env);
	return rc;
}

/* What is there to be read, and not for ever where it comes faster than it is read; false when no more will come. */
static bool drain(int fd, struct buf *out, size_t most)
{
	char piece[4096];

	for (int i = 0; i < PIECES_MAX; i++) {
		ssize_t got = read(fd, piece, sizeof(piece));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 && errno == EAGAIN;
		if (out->size < most) /* one byte more says that it is too much */
			buf_add(out, piece,
				(size_t)got < most - out->size ? (size_t)got : most - out->size);
	}
	return true;
}

static bool is_ending(struct credential *credential)
{
	pthread_mutex_lock(&credential->lock);
	bool ending = credential->ending;
	pthread_mutex_unlock(&credential->lock);
	return ending;
}

/* Until it has ended, prints too much, is out of time, or all is to end: then it is killed with what it started. True: by itself. */
static bool follow(struct credential *credential, pid_t pid, int out, int complaints,
		   struct buf *text, struct buf *said, int *ret_status)
{
	int64_t end_ms = clock_boot_ms() + EXEC_MOST_MS;
	bool more[2] = { true, true };
	pid_t ended = 0;

	while (!ended && text->size <= EXEC_OUTPUT_MAX && clock_boot_ms() < end_ms &&
	       !is_ending(credential)) {
		struct pollfd fds[2] = { { .fd = more[0] ? out : -1, .events = POLLIN },
					 { .fd = more[1] ? complaints : -1, .events = POLLIN } };

		(void)poll(fds, 2, LOOK_MS);
		more[0] = more[0] && drain(out, text, EXEC_OUTPUT_MAX + 1);
		more[1] = more[1] && drain(complaints, said, COMPLAINT_MAX);
		ended = waitpid(pid, ret_status, WNOHANG);
		if (ended <
		    0) { /* whoever started the daemon ignores SIGCHLD: what was printed has to do */
			*ret_status = 0;
			ended = pid;
		}
	}
	if (ended == pid) {
		(void)drain(out, text, EXEC_OUTPUT_MAX + 1);
		(void)drain(complaints, said, COMPLAINT_MAX);
		return true;
	}
	(void)kill(-pid, SIGKILL);
	(void)waitpid(pid, ret_status, 0);
	return false;
}

static void one_line(struct buf *text)
{
	for (size_t i = 0; i < text->size; i++)
		if ((unsigned char)text->data[i] < ' ' || text->data[i] == 127)
			text->data[i] = ' ';
	while (text->size && text->data[text->size - 1] == ' ')
		text->size--;
}

static int ended_well(bool by_itself, int status, struct buf *said, struct err *err)
{
	one_line(said);
	if (!by_itself)
		return err_set(err, ERR_TIMEOUT,
			       "it did not end within %d s; it can't ask anybody anything here",
			       EXEC_MOST_MS / 1000);
	if (WIFSIGNALED(status))
		return err_set(err, ERR_UNAVAILABLE, "signal %d ended it", WTERMSIG(status));
	if (WEXITSTATUS(status))
		return err_set(err, ERR_UNAVAILABLE, "it ended with %d: %.*s", WEXITSTATUS(status),
			       (int)said->size, said->size ? said->data : "");
	return 0;
}

static int run(struct credential *credential, struct credential_text *ret, struct err *err)
{
	AUTO_BUF text = BUF_INIT, said = BUF_INIT;
	int out[2] = { -1, -1 }, complaints[2] = { -1, -1 }, status = 0, rc = 0;
	pid_t pid = -1;
	bool by_itself;

	if (pipe2(out, O_CLOEXEC) < 0 || pipe2(complaints, O_CLOEXEC) < 0)
		rc = err_errno(err, ERR_IO, errno, "no pipe can be made for it");
	if (rc == 0 && (status = spawn(credential->exec, out[1], complaints[1], &pid)) != 0)
		rc = err_errno(err, ERR_IO, status, "it can't be started");
	for (int i = 0; i < 2; i++)
		if ((i ? complaints : out)[1] >= 0)
			close((i ? complaints : out)[1]);
	if (rc == 0) {
		(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
		(void)fcntl(complaints[0], F_SETFL, O_NONBLOCK);
		by_itself = follow(credential, pid, out[0], complaints[0], &text, &said, &status);
		if (text.size > EXEC_OUTPUT_MAX)
			rc = err_set(err, ERR_TOO_LARGE, "it printed more than %d bytes",
				     EXEC_OUTPUT_MAX);
		else
			rc = ended_well(by_itself, status, &said, err);
	}
	if (rc == 0)
		rc = credential_parse(credential->exec, buf_text(&text), text.size, clock_wall_ms(),
				      ret, err);
	if (text.size)
		explicit_bzero(text.data, text.size);
	if (out[0] >= 0)
		close(out[0]);
	if (complaints[0] >= 0)
		close(complaints[0]);
	return rc;
}

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* Under the lock. */
static void has(struct credential *c, const struct credential_text *text)
{
	int64_t now_ms = clock_boot_ms(), left_ms = 0;

	if (c->failed)
		log_line(LOG_INFO, "Kubernetes: the program \"%.100s\" gives credentials again",
			 c->exec->argv[0]);
	if (text->expires_ms)
		left_ms = text->expires_ms - clock_wall_ms();
	*c->text = *text;
	c->serial++;
	c->wanted = c->failed = false;
	c->expires_ms = text->expires_ms ? now_ms + left_ms : 0;
	c->renew_ms = text->expires_ms
			      ? c->expires_ms - (left_ms / 10 < AHEAD_MS ? left_ms / 10 : AHEAD_MS)
			      : 0;
	c->given_ms = now_ms;
	c->again_ms = now_ms + PAUSE_MS;
	c->pause_ms = PAUSE_MS;
}

/* The engine and the Lease have a program each; of what they say at the same time one line is enough. */
static bool says_it_first(_Atomic int64_t *told_ms)
{
	int64_t now_ms = clock_boot_ms(), before_ms = atomic_load(told_ms);

	return (!before_ms || now_ms - before_ms > PAUSE_MAX_MS) &&
	       atomic_compare_exchange_strong(told_ms, &before_ms, now_ms);
}

static void has_not(struct credential *c, const struct err *err)
{
	static _Atomic int64_t told_ms;

	snprintf(c->problem, sizeof(c->problem), "its credentials' program \"%.60s\": %.150s",
		 c->exec->argv[0], err->text);
	if (!c->failed && says_it_first(&told_ms))
		log_line(
			LOG_WARN,
			"Kubernetes: the program \"%.100s\" of the kubeconfig: %.300s; it is run again, and can be tried by hand",
			c->exec->argv[0], err->text);
	c->failed = true;
	c->again_ms = clock_boot_ms() + c->pause_ms;
	c->pause_ms = c->pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : c->pause_ms * 2;
}

/* Under the lock: when it is to run; 0 = not. */
static int64_t due_ms(const struct credential *c)
{
	if (!c->wanted && !c->renew_ms)
		return 0;
	return !c->wanted && c->renew_ms > c->again_ms ? c->renew_ms : c->again_ms;
}

static void wait_ms(struct credential *c, int64_t ms)
{
	const struct timespec until = wait_until(ms);

	pthread_cond_timedwait(&c->wake, &c->lock, &until);
}

static void *credential_main(void *argument)
{
	struct credential *c = argument;
	struct credential_text *text = malloc(sizeof(*text));

	CHECK(text);
	pthread_mutex_lock(&c->lock);
	while (!c->ending) {
		int64_t due = due_ms(c), left = due - clock_boot_ms();
		struct err err = { 0 };
		int rc;

		if (!due || left > 0) {
			/* The machine may sleep, and this wait with it. */
			wait_ms(c, !due || left > AHEAD_MS ? AHEAD_MS : left);
			continue;
		}
		pthread_mutex_unlock(&c->lock);
		rc = run(c, text, &err);
		pthread_mutex_lock(&c->lock);
		if (c->ending)
			break;
		if (rc == 0)
			has(c, text);
		else
			has_not(c, &err);
		pthread_mutex_unlock(&c->lock);
		c->changed(c->context);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	explicit_bzero(text, sizeof(*text));
	free(text);
	return NULL;
}

/* --- from outside --------------------------------------------------------------------------------------------------- */

enum credential_state credential_now(struct credential *c, uint64_t *serial,
				     struct credential_text *ret, char problem[256])
{
	enum credential_state state;
	bool holds;

	pthread_mutex_lock(&c->lock);
	holds = c->serial && (!c->expires_ms || clock_boot_ms() < c->expires_ms) &&
		(!c->wanted || (c->refusals > 1 && clock_boot_ms() < c->again_ms));
	state = holds ? CREDENTIAL_IS : c->failed ? CREDENTIAL_FAILS : CREDENTIAL_COMES;
	if (state == CREDENTIAL_FAILS)
		memcpy(problem, c->problem, sizeof(c->problem));
	if (holds && *serial != c->serial) {
		*ret = *c->text;
		*serial = c->serial;
	}
	pthread_mutex_unlock(&c->lock);
	return state;
}

int64_t credential_pause_ms(uint32_t refusals, uint64_t random)
{
	int64_t pause_ms = PAUSE_MS;

	while (refusals-- > 1 && pause_ms < PAUSE_MAX_MS)
		pause_ms *= 2;
	if (pause_ms > PAUSE_MAX_MS)
		pause_ms = PAUSE_MAX_MS;
	return pause_ms - (int64_t)(random % (uint64_t)(pause_ms / 4));
}

/* Under the lock. */
static void refused(struct credential *c)
{
	static _Atomic int64_t told_ms;
	int64_t again_ms;

	if (clock_boot_ms() - c->given_ms > TAKEN_MS)
		c->refusals = 0;
	c->refusals++;
	c->random = c->random * UINT64_C(6364136223846793005) + 1442695040888963407;
	again_ms = c->given_ms + credential_pause_ms(c->refusals, c->random >> 33);
	if (again_ms > c->again_ms)
		c->again_ms = again_ms;
	c->wanted = true;
	if (c->refusals == 2 && says_it_first(&told_ms))
		log_line(
			LOG_WARN,
			"Kubernetes: the API server does not know the account that the program \"%.100s\" of the kubeconfig gives, though it was run anew (401); it is run "
			"again, ever more seldom, at last once a minute. Is it for this cluster, and may its user log in?",
			c->exec->argv[0]);
	pthread_cond_signal(&c->wake);
}

void credential_refused(struct credential *c, uint64_t serial)
{
	pthread_mutex_lock(&c->lock);
	if (serial == c->serial && !c->wanted)
		refused(c);
	pthread_mutex_unlock(&c->lock);
}

static bool is_program(const char *path)
{
	return access(path, X_OK) == 0;
}

static bool is_found(const char *name)
{
	const char *path = getenv("PATH");
	char whole[4096];

	if (strchr(name, '/'))
		return is_program(name);
	for (const char *at = path ? path : "/usr/bin:/bin"; *at;) {
		size_t size = strcspn(at, ":");

		snprintf(whole, sizeof(whole), "%.*s/%s", (int)size, at, name);
		if (size && is_program(whole))
			return true;
		at += size + (at[size] == ':');
	}
	return false;
}

int credential_create(const struct access_exec *exec, void (*changed)(void *context), void *context,
		      struct credential **ret, struct err *err)
{
	struct credential *c;

	if (!is_found(exec->argv[0]))
		return err_set(
			err, ERR_NOT_FOUND,
			"the kubeconfig's credentials come from the program \"%.200s\", which can't be run here%s: put it there or into PATH%s%.300s",
			exec->argv[0],
			strchr(exec->argv[0], '/') ? "" : " (PATH was looked through)",
			exec->hint ? ". The kubeconfig says: " : "", exec->hint ? exec->hint : "");
	c = calloc(1, sizeof(*c));
	CHECK(c);
	c->text = calloc(1, sizeof(*c->text));
	CHECK(c->text);
	c->exec = exec;
	c->changed = changed;
	c->context = context;
	c->wanted = true;
	c->again_ms = 1;
	c->pause_ms = PAUSE_MS;
	if (getrandom(&c->random, sizeof(c->random), GRND_NONBLOCK) < 0)
		c->random = (uint64_t)clock_boot_ms();
	pthread_mutex_init(&c->lock, NULL);
	cond_init(&c->wake);
	thread_start(&c->thread, credential_main, c);
	*ret = c;
	return 0;
}

void credential_destroy(struct credential *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->ending = true;
	pthread_cond_signal(&c->wake);
	pthread_mutex_unlock(&c->lock);
	pthread_join(c->thread, NULL);
	pthread_cond_destroy(&c->wake);
	pthread_mutex_destroy(&c->lock);
	explicit_bzero(c->text, sizeof(*c->text));
	free(c->text);
	free(c);
}
