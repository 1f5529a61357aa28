/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/submission/git_program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/program.h"

extern char **environ;

enum {
	WORDS_MAX = 48, /* of a call */
	OWN_WORDS = 16, /* variables that are set here */
	LOOK_MS =
		20, /* how often one that prints nothing is looked at; output and its end wake at once */
	REAP_MS = 200 /* that one which was killed has to end; on a disk that hangs it can't */
};

bool git_find(struct arena *arena, struct git_program *ret)
{
	/* Those by which a user says where git looks for folders and for his own settings; all other GIT_... are for one call of git. */
	static const char *const kept[] = {
		"GIT_CEILING_DIRECTORIES=", "GIT_DISCOVERY_ACROSS_FILESYSTEM=",
		"GIT_CONFIG_GLOBAL=", "GIT_CONFIG_SYSTEM=", "GIT_CONFIG_NOSYSTEM="
	};
	/* The last but two are for later releases of git and of what it starts; nothing is fetched into a partial clone. */
	static const char *const set[] = { "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
					   "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1",
					   "GIT_ALLOW_PROTOCOL=none" };
	size_t count = 0, used = 0;

	*ret = (struct git_program){ 0 };
	for (const char *at = getenv("PATH"); at && *at && !ret->path;
	     at += strcspn(at, ":"), at += *at == ':') {
		const char *path = arena_printf(arena, "%.*s/git", (int)strcspn(at, ":"), at);
		struct stat st;

		/* A folder that is not absolute may be the repository. */
		if (*at == '/' && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
		    access(path, X_OK) == 0)
			ret->path = path;
	}
	while (environ[count])
		count++;
	ret->env = arena_new_array(arena, char *, count + OWN_WORDS + 1);
	for (size_t i = 0; i < count; i++) {
		bool passes = strncmp(environ[i], "GIT_", 4) != 0 &&
			      strncmp(environ[i], "FAIRLEAD_", 9) != 0 &&
			      strncmp(environ[i], "LC_ALL=", 7) != 0;

		for (size_t k = 0; k < ARRAY_SIZE(kept); k++)
			passes |= strncmp(environ[i], kept[k], strlen(kept[k])) == 0;
		if (passes)
			ret->env[used++] = environ[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(set); i++)
		git_set(ret, arena, set[i]);
	return ret->path != NULL;
}

void git_set(struct git_program *git, struct arena *arena, const char *word)
{
	const size_t name = strcspn(word, "=") + 1;
	size_t i = 0;

	while (git->env[i] && strncmp(git->env[i], word, name) != 0)
		i++;
	git->env[i] = arena_strdup(arena, word);
}

static int spawn(const struct git_program *git, const char *const *arguments, int out,
		 int complaints, pid_t *ret)
{
	char *words[WORDS_MAX + 2] = { (char *)(uintptr_t)"git" };

	for (size_t i = 0; arguments[i]; i++) {
		CHECK(i < WORDS_MAX);
		words[i + 1] = (char *)(uintptr_t)arguments[i];
	}
	return program_start(git->path, words, git->env, out, complaints, ret);
}

struct following {
	struct git_program *git;
	git_take *take;
	void *context;
	int fds[2]; /* output, complaints */
	bool more[2];
	bool enough;
};

static void complaint_add(struct git_program *git, const char *data, size_t size)
{
	size_t used = strlen(git->said);

	for (size_t i = 0; i < size && used + 1 < sizeof(git->said); i++)
		git->said[used++] = data[i] ? data[i] : '?';
	git->said[used] = '\0';
}

/* One piece of each that has one. */
static void pieces_take(struct following *f)
{
	char piece[16384];

	for (int i = 0; i < 2; i++) {
		ssize_t got = f->more[i] ? read(f->fds[i], piece, sizeof(piece)) : -1;

		if (!f->more[i] || (got < 0 && (errno == EINTR || errno == EAGAIN)))
			continue;
		if (got <= 0)
			f->more[i] = false;
		else if (i == 1)
			complaint_add(f->git, piece, (size_t)got);
		else
			f->enough = f->enough || !f->take(f->context, piece, (size_t)got);
	}
}

/* Until it has ended and all that it printed is read. True: by itself. */
static bool follow(struct following *f, pid_t pid, int64_t end_ms, int *ret_status)
{
	bool ended = false;

	while (!f->enough && clock_boot_ms() < end_ms) {
		struct pollfd fds[2] = { { .fd = f->more[0] ? f->fds[0] : -1, .events = POLLIN },
					 { .fd = f->more[1] ? f->fds[1] : -1, .events = POLLIN } };
		const bool had_ended = ended;
		pid_t waited;

		(void)poll(fds, 2, had_ended ? 0 : f->more[0] || f->more[1] ? LOOK_MS : 1);
		pieces_take(f);
		/* What it started may hold the pipes: it is not waited for. */
		if (had_ended && !((fds[0].revents | fds[1].revents) & POLLIN))
			return true;
		waited = ended ? 0 : waitpid(pid, ret_status, WNOHANG);
		if (waited < 0) /* whoever started this program ignores SIGCHLD */
			*ret_status = 0;
		ended = ended || waited != 0;
	}
	f->git->late = !f->enough;
	if (!ended)
		(void)kill(-pid, SIGKILL);
	end_ms = clock_boot_ms() + REAP_MS;
	while (!ended && waitpid(pid, ret_status, WNOHANG) == 0 && clock_boot_ms() < end_ms)
		(void)poll(NULL, 0, 1);
	return false;
}

static void one_line(char *text)
{
	text[strcspn(text, "\r\n")] = '\0';
	for (char *p = text; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = ' ';
}

int git_run(struct git_program *git, const char *const *arguments, int64_t end_ms, git_take *take,
	    void *context)
{
	struct following f = {
		.git = git, .take = take, .context = context, .more = { true, true }
	};
	int out[2] = { -1, -1 }, complaints[2] = { -1, -1 }, status = 0;
	bool by_itself = false;
	pid_t pid = -1;

	git->said[0] = '\0';
	git->late = false;
	if (pipe2(out, O_CLOEXEC) == 0 && pipe2(complaints, O_CLOEXEC) == 0 &&
	    spawn(git, arguments, out[1], complaints[1], &pid) == 0) {
		close(out[1]);
		close(complaints[1]);
		out[1] = complaints[1] = -1;
		f.fds[0] = out[0];
		f.fds[1] = complaints[0];
		(void)fcntl(out[0], F_SETFL, O_NONBLOCK);
		(void)fcntl(complaints[0], F_SETFL, O_NONBLOCK);
		by_itself = follow(&f, pid, end_ms, &status);
	}
	for (int i = 0; i < 2; i++) {
		if (out[i] >= 0)
			close(out[i]);
		if (complaints[i] >= 0)
			close(complaints[i]);
	}
	one_line(git->said);
	return by_itself && WIFEXITED(status) ? WEXITSTATUS(status) : GIT_DIED;
}
