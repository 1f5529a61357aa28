/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shepherd as the command of a container (pod.h). Linked statically: it runs in whatever image the job has.
 *
 *	fairlead-pod-shepherd install FILE
 *		copies itself there: what an init container does, with the image of Fairlead, into a volume of the pod
 *	fairlead-pod-shepherd fetch --server ADDRESS --attempt N --rank N [--launch N] --snapshot ID --into DIR
 *		makes DIR/code, a copy of the snapshot: another init container's work
 *	fairlead-pod-shepherd run --home DIR --server ADDRESS [--signal N] [--every-ms N] [--ended FILE] -- COMMAND...
 *		gets a lease, runs the command as its task, and ends as it does. FAIRLEAD_POD_TOKEN is the attempt's token, and not handed on
 *
 * It ends with the task's code, 128 and the signal's number when the task was killed, 126 or 127 as a shell would for a command of no use,
 * 125 when it could not be run. FILE is the container's message: why, where it was not the task's own end (docs/decisions/0022).
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/parse.h"
#include "engine/local/place.h"
#include "shepherd/pod.h"
#include "shepherd/shepherd.h"

enum { FINISH_MS = 20000, CODE_MACHINE = 125, TOKEN_MAX = 128 };
#define TOKEN_NAME "FAIRLEAD_POD_TOKEN"
#define RESUME_NAME                                                                                \
	"FAIRLEAD_POD_RESUME" /* "7:123": the checkpoint of FAIRLEAD_RESUME_FROM, and the bytes that it had */
#define LAUNCH_NAME "FAIRLEAD_POD_LAUNCH" /* how often this rank was started anew */
#define SOCKET_NAME "FAIRLEAD_REPORT_SOCKET"

static struct shepherd the_shepherd; /* one per process; large buffers, so not on the stack */
extern char **environ;

int pod_install(const char *path, struct err *err)
{
	char room[65536], temporary[PATH_MAX];
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), to;
	ssize_t n = 1;

	if (snprintf(temporary, sizeof(temporary), "%s.tmp", path) >= (int)sizeof(temporary))
		return err_set(err, ERR_TOO_LARGE, "the path is too long: %.200s", path);
	to = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	while (from >= 0 && to >= 0 && (n = read(from, room, sizeof(room))) > 0)
		if (write(to, room, (size_t)n) != n)
			n = -1;
	if (from < 0 || to < 0 || n < 0 || fchmod(to, 0755) < 0 || rename(temporary, path) < 0)
		n = err_errno(err, ERR_IO, errno, "could not copy this program to %.200s", path);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	return n < 0 ? -1 : 0;
}

struct words {
	const char *home, *server, *ended;
	int64_t signal, every_ms;
	char **command; /* NULL-terminated */
};

static int words_read(int argc, char **argv, struct words *ret, struct err *err)
{
	int i = 2;

	for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
		const char *value = argv[i + 1];
		int result = 0;

		if (strcmp(argv[i], "--home") == 0)
			ret->home = value;
		else if (strcmp(argv[i], "--server") == 0)
			ret->server = value;
		else if (strcmp(argv[i], "--ended") == 0)
			ret->ended = value;
		else if (strcmp(argv[i], "--signal") == 0)
			result = parse_int(value, 0, 64, &ret->signal, err);
		else if (strcmp(argv[i], "--every-ms") == 0)
			result = parse_int(value, 0, INT64_MAX / 4, &ret->every_ms, err);
		else
			result = err_set(err, ERR_INVALID, "there is no option %.40s", argv[i]);
		if (result < 0)
			return result;
	}
	ret->command = argv + i + 1;
	if (!ret->home || !ret->server || i + 1 >= argc)
		return err_set(err, ERR_INVALID,
			       "it takes --home, --server, and the task's command behind --");
	return 0;
}

static int number_of(const char *name, int64_t max, int64_t *ret, struct err *err)
{
	const char *text = getenv(name);

	if (text && parse_int(text, 0, max, ret, NULL) == 0)
		return 0;
	return err_set(err, ERR_INVALID, "%s is not set to a number", name);
}

/* The container's, but for what is the shepherd's; with the socket. */
static const char **task_environment(struct shepherd *s)
{
	size_t count = 0, kept = 0;

	while (environ[count])
		count++;
	const char **env = arena_new_array(&s->arena, const char *, count + 2);
	for (size_t i = 0; i < count; i++)
		if (strncmp(environ[i], TOKEN_NAME "=", sizeof(TOKEN_NAME)) != 0 &&
		    strncmp(environ[i], RESUME_NAME "=", sizeof(RESUME_NAME)) != 0 &&
		    strncmp(environ[i], LAUNCH_NAME "=", sizeof(LAUNCH_NAME)) != 0 &&
		    strncmp(environ[i], SOCKET_NAME "=", sizeof(SOCKET_NAME)) != 0)
			env[kept++] = environ[i];
	env[kept] = arena_printf(&s->arena, SOCKET_NAME "=%s/report", s->spec.run);
	return env;
}

static int make_place(struct shepherd *s, const char *home, struct err *err)
{
	if (snprintf(s->path, sizeof(s->path), "%s/place", home) >= (int)sizeof(s->path))
		return err_set(err, ERR_TOO_LARGE, "the path is too long: %.200s", home);
	s->spec.run = arena_printf(&s->arena, "%s/run", home);
	if ((mkdir(s->path, 0700) < 0 && errno != EEXIST) ||
	    (mkdir(s->spec.run, 0700) < 0 && errno != EEXIST))
		return err_errno(err, ERR_IO, errno, "could not make a place in %.200s", home);
	s->folder = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->folder < 0 || (mkfifoat(s->folder, "wake", 0600) < 0 && errno != EEXIST))
		return err_errno(err, ERR_IO, errno, "could not make a place in %.200s", home);
	s->wake = openat(s->folder, "wake", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	return s->wake < 0 ? err_errno(err, ERR_IO, errno, "could not open the wake pipe") : 0;
}

static int fill_spec(struct shepherd *s, const struct words *words, struct err *err)
{
	int64_t job, attempt, rank;
	struct task_spec *spec = &s->spec;
	char folder[PATH_MAX];
	size_t count = 0;

	while (words->command[count])
		count++;
	const char **argv = arena_new_array(&s->arena, const char *, count + 1);
	for (size_t i = 0; i < count; i++)
		argv[i] = words->command[i];
	if (number_of("FAIRLEAD_JOB_ID", UINT32_MAX, &job, err) < 0 ||
	    number_of("FAIRLEAD_ATTEMPT", UINT32_MAX, &attempt, err) < 0 ||
	    number_of("FAIRLEAD_RANK", UINT32_MAX, &rank, err) < 0)
		return -1;
	if (!getcwd(folder, sizeof(folder)))
		return err_errno(err, ERR_IO, errno, "the container has no working folder");
	*spec = (struct task_spec){
		.version = SPEC_VERSION,
		.job = (uint64_t)job,
		.attempt = (uint64_t)attempt,
		.rank = (uint32_t)rank,
		.user = getenv("FAIRLEAD_USER") ? getenv("FAIRLEAD_USER") : "",
		.uid = geteuid(),
		.gid = getegid(),
		.argv = argv,
		.workdir = arena_strdup(&s->arena, folder),
		.checkpoint_dir = getenv("FAIRLEAD_CHECKPOINT_DIR"),
		.checkpoint_signal = (int)words->signal,
		.checkpoint_every_ms = words->every_ms,
		.in_pod = true,
	};
	return 0;
}

static int begin(struct shepherd *s, const struct words *words, struct err *err)
{
	const char *given = getenv(TOKEN_NAME), *resume = getenv(RESUME_NAME);
	int64_t number = 0, bytes = 0, launch = 0;
	bool looks = resume && getenv("FAIRLEAD_RESUME_FROM") &&
		     pod_resume_parse(resume, &number, &bytes);
	static char token[TOKEN_MAX];

	if (!given || strlen(given) >= sizeof(token))
		return err_set(err, ERR_INVALID, TOKEN_NAME " is not set to a token");
	snprintf(token, sizeof(token), "%s", given);
	if (getenv(LAUNCH_NAME) && number_of(LAUNCH_NAME, UINT32_MAX, &launch, err) < 0)
		return -1;
	if (fill_spec(s, words, err) < 0 || make_place(s, words->home, err) < 0)
		return -1;
	s->spec.env = task_environment(s);
	s->pod = pod_create(
		&(struct pod_options){ .home = words->home,
				       .server = words->server,
				       .token = token,
				       .attempt = s->spec.attempt,
				       .rank = s->spec.rank,
				       .launch = (uint32_t)launch,
				       .resume_path = looks ? getenv("FAIRLEAD_RESUME_FROM") : NULL,
				       .resume_number = number,
				       .resume_bytes = bytes });
	return shepherd_signals(s, err);
}

static int exit_code(const struct shepherd *s)
{
	if (!s->ran)
		return s->refused_code ? s->refused_code : CODE_MACHINE;
	if (!s->task_over)
		return CODE_MACHINE;
	return WIFEXITED(s->task_status) ? WEXITSTATUS(s->task_status)
					 : 128 + WTERMSIG(s->task_status);
}

/* What is not to be read from the code: a word that the daemon knows, and text. */
static void say_end(const struct shepherd *s, const char *path)
{
	const char *lost = pod_lost(s->pod);
	FILE *file;

	if (!path || (!lost[0] && !s->failed))
		return;
	file = fopen(path, "we");
	if (!file)
		return;
	fprintf(file, "fairlead: %s: %s", lost[0] ? "lost" : "start", lost[0] ? lost : s->end.text);
	fclose(file);
}

static int run(struct shepherd *s, const struct words *words)
{
	struct err err;

	shepherd_init(s);
	if (begin(s, words, &err) < 0) {
		log_line(LOG_ERROR, "%s", err.text);
		return CODE_MACHINE;
	}
	shepherd_become(s);
	if (shepherd_prepare(s, &err) < 0)
		ending_fail(s, &err);
	else
		pod_start(s->pod, s->folder);
	while (s->phase != OVER)
		shepherd_turn(s);
	ending_record(s);
	if (s->ran && !pod_lost(s->pod)[0])
		pod_finish(s->pod, exit_code(s), FINISH_MS);
	if (s->failed)
		log_line(LOG_ERROR, "%s", s->end.text);
	say_end(s, words->ended);
	return exit_code(s);
}

static int fetch_read(int argc, char **argv, struct pod_fetch *ret, struct err *err)
{
	int64_t attempt = 0, rank = -1, launch = 0;
	int result = 0;

	for (int i = 2; i + 1 < argc && result == 0; i += 2) {
		const char *value = argv[i + 1];

		if (strcmp(argv[i], "--server") == 0)
			ret->server = value;
		else if (strcmp(argv[i], "--snapshot") == 0)
			ret->snapshot = value;
		else if (strcmp(argv[i], "--into") == 0)
			ret->into = value;
		else if (strcmp(argv[i], "--attempt") == 0)
			result = parse_int(value, 1, UINT32_MAX, &attempt, err);
		else if (strcmp(argv[i], "--rank") == 0)
			result = parse_int(value, 0, UINT32_MAX, &rank, err);
		else if (strcmp(argv[i], "--launch") == 0)
			result = parse_int(value, 0, UINT32_MAX, &launch, err);
		else
			result = err_set(err, ERR_INVALID, "there is no option %.40s", argv[i]);
	}
	ret->attempt = (uint64_t)attempt;
	ret->rank = (uint32_t)rank;
	ret->launch = (uint32_t)launch;
	ret->token = getenv(TOKEN_NAME);
	if (result == 0 && (!ret->server || !ret->snapshot || !ret->into || !ret->token ||
			    !attempt || rank < 0 || argc % 2))
		return err_set(
			err, ERR_INVALID,
			"it takes --server, --attempt, --rank, --snapshot, --into, and the attempt's token in " TOKEN_NAME);
	return result;
}

/* The first process of a container hears only what it asks to hear. */
static void end_at_once(int number)
{
	_exit(128 + number);
}

/* ended: the container's message. */
static int fetch(int argc, char **argv, const char *ended)
{
	struct pod_fetch fetch = { 0 };
	struct err err;
	FILE *file;

	(void)signal(SIGTERM, end_at_once);
	if (fetch_read(argc, argv, &fetch, &err) == 0 && pod_fetch(&fetch, &err) == 0)
		return 0;
	log_line(LOG_ERROR, "%s", err.text);
	file = access(ended, W_OK) == 0 ? fopen(ended, "we") : NULL;
	if (file) {
		fprintf(file, "%s\n", err.text);
		fclose(file);
	}
	return 1;
}

int main(int argc, char **argv)
{
	struct words words = { 0 };
	struct err err;

	log_open("fairlead", LOG_INFO);
	if (argc >= 2 && strcmp(argv[1], "fetch") == 0)
		return fetch(argc, argv, "/dev/termination-log");
	if (argc == 3 && strcmp(argv[1], "install") == 0) {
		if (pod_install(argv[2], &err) == 0)
			return 0;
		log_line(LOG_ERROR, "%s", err.text);
		return 1;
	}
	if (argc < 3 || strcmp(argv[1], "run") != 0 || words_read(argc, argv, &words, &err) < 0) {
		log_line(LOG_ERROR, "this program is started by pods that Fairlead makes%s%s",
			 argc > 2 && strcmp(argv[1], "run") == 0 ? ": " : "",
			 argc > 2 && strcmp(argv[1], "run") == 0 ? err.text : "");
		return 2;
	}
	/* Descriptor 3 is the lock of a place on a machine; here nobody looks whether it is held. */
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (null != PLACE_LOCK_FD)
		(void)dup3(null, PLACE_LOCK_FD, O_CLOEXEC);
	(void)syscall(SYS_close_range, PLACE_LOCK_FD + 1, ~0U, 0);
	return run(&the_shepherd, &words);
}
