/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child's side of a launch. The order matters and is this:
 *
 *	1. as root: own session, groups, out-of-memory score, brand and limits
 *	2. the user: groups, gid, uid, then proof that root can't come back, no new privileges
 *	3. as the user: checkpoint folder, working folder, program: so a path that only root may enter is refused, and a
 *	   symbolic link of the user's leads nowhere the user could not go
 *	4. descriptors: nothing but 0, 1, 2 and the two pipes to the shepherd, which close at exec
 *
 * Each failure is a sentence for the user, sent through the status pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/close_range.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/failpoint.h"
#include "engine/local/place.h"
#include "engine/local/task_env.h"
#include "shepherd/shepherd.h"

enum { STATUS_FD = 3, GO_FD = 4, FIRST_FREE_FD = 5, TASK_FILES_MAX = 65536 };

static void say(int fd, enum launch_step step, const char *text)
{
	struct launch_note note = { .step = (int32_t)step };

	snprintf(note.text, sizeof(note.text), "%s", text);
	if (write(fd, &note, sizeof(note)) < 0) {
		/* the shepherd is gone, and so is this process in a moment */
	}
}

static _Noreturn void fail(int fd, int errnum, const char *format, ...) PRINTF_LIKE(3, 4);
static _Noreturn void fail(int fd, int errnum, const char *format, ...)
{
	char text[sizeof(((struct launch_note *)0)->text)];
	va_list args;

	va_start(args, format);
	int n = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (errnum && n > 0 && (size_t)n < sizeof(text))
		snprintf(text + n, sizeof(text) - (size_t)n, ": %s", err_errno_text(errnum));
	say(fd, LAUNCH_FAILED, text);
	_exit(127);
}

/* A shepherd that is killed takes this process along. */
static void die_with(pid_t parent)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != parent)
		_exit(127);
}

static void enter_groups(const struct launch_fds *fds)
{
	for (int i = 0; i < fds->cgroup_count; i++)
		if (write(fds->cgroups[i], "0", 1) < 0)
			fail(fds->status, errno, "could not enter the task's control group");
}

static void set_limits(const struct task_spec *spec)
{
	struct rlimit core, files;

	(void)small_file_write("/proc/self/oom_score_adj", "0");
	(void)proctree_put_brand(spec->brand);
	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &core);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max < TASK_FILES_MAX ? files.rlim_max : TASK_FILES_MAX;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	umask(022);
}

static void become_user(const struct task_spec *spec, const struct account *account, int status)
{
	if (geteuid() == 0) {
		if (setgroups((size_t)account->group_count, account->groups) < 0 ||
		    setresgid(spec->gid, spec->gid, spec->gid) < 0 ||
		    setresuid(spec->uid, spec->uid, spec->uid) < 0)
			fail(status, errno, "could not become user \"%s\" (uid %u)", spec->user,
			     (unsigned)spec->uid);
	}
	if (getuid() != spec->uid || geteuid() != spec->uid || (spec->uid != 0 && setuid(0) == 0))
		fail(status, 0, "could not give up the daemon's rights for user \"%s\"",
		     spec->user);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		fail(status, errno, "could not forbid new privileges to the task");
}

/* Makes a folder and those above it. */
static int make_folders(const char *path)
{
	char copy[PATH_MAX];

	if (snprintf(copy, sizeof(copy), "%s", path) >= PATH_MAX)
		return -ENAMETOOLONG;
	for (char *at = copy + 1; *at; at++) {
		if (*at != '/')
			continue;
		*at = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST && access(copy, F_OK) < 0)
			return -errno;
		*at = '/';
	}
	return mkdir(copy, 0755) < 0 && errno != EEXIST ? -errno : 0;
}

static void enter_folders(const struct task_spec *spec, int status)
{
	if (spec->checkpoint_dir) {
		int result = make_folders(spec->checkpoint_dir);

		if (result == 0 && access(spec->checkpoint_dir, W_OK | X_OK) < 0)
			result = -errno;
		if (result < 0)
			fail(status, -result,
			     "checkpoint folder \"%.120s\" can't be used by user \"%s\"",
			     spec->checkpoint_dir, spec->user);
	}
	if (chdir(spec->workdir) < 0)
		fail(status, errno, "working directory \"%.140s\" can't be entered by user \"%s\"",
		     spec->workdir, spec->user);
}

static void arrange_fds(const struct launch_fds *fds)
{
	int status = fcntl(fds->status, F_DUPFD_CLOEXEC, 64),
	    go = fcntl(fds->go, F_DUPFD_CLOEXEC, 64);
	int out = fcntl(fds->out, F_DUPFD_CLOEXEC, 64), err = fcntl(fds->err, F_DUPFD_CLOEXEC, 64);
	int opened = open("/dev/null", O_RDONLY | O_CLOEXEC),
	    null = fcntl(opened, F_DUPFD_CLOEXEC, 64);

	/* All are above the numbers they go to now, so none is overwritten before it is used. */
	if (status < 0 || go < 0 || out < 0 || err < 0 || null < 0)
		fail(fds->status, errno, "could not arrange the task's input and output");
	if (dup3(status, STATUS_FD, O_CLOEXEC) < 0 || dup3(go, GO_FD, O_CLOEXEC) < 0 ||
	    dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
	    dup2(null, STDIN_FILENO) < 0)
		_exit(127); /* nobody left to tell */
	if (syscall(SYS_close_range, FIRST_FREE_FD, ~0U, 0) < 0)
		fail(STATUS_FD, errno, "could not close what the task must not see");
}

/* By the system call: the library hides the two signals it uses itself, and they too may come
 * ignored. */
static void reset_signals(void)
{
	const unsigned long normal[4] = {
		0
	}; /* the kernel's struct sigaction: SIG_DFL, no flags, empty mask */
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, normal, NULL, NSIG / 8);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Where the program is, as the user sees it: a name without slash is looked up in the task's own
 * PATH. Found means it may be executed; what is found but may not be is remembered for the message. */
static bool find_program(const char *name, const char *path, char out[PATH_MAX], int *ret_errno)
{
	*ret_errno = ENOENT;
	if (strchr(name, '/')) {
		snprintf(out, PATH_MAX, "%s", name);
		if (access(out, X_OK) == 0)
			return true;
		*ret_errno = errno;
		return false;
	}
	for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int length = (int)strcspn(at, ":");
		struct stat st;

		if (snprintf(out, PATH_MAX, "%.*s/%s", length ? length : 1, length ? at : ".",
			     name) >= PATH_MAX)
			continue;
		if (stat(out, &st) < 0 || !S_ISREG(st.st_mode))
			continue;
		if (access(out, X_OK) == 0)
			return true;
		*ret_errno = errno;
	}
	return false;
}

/* A script lies as a file in the run folder; one that names its interpreter gets it, the others
 * /bin/sh. */
static char **script_words(const struct task_spec *spec, char path[PATH_MAX])
{
	static char shell[] = "/bin/sh";
	static char *words[3];

	snprintf(path, PATH_MAX, "%s/script", spec->run);
	if (strncmp(spec->script, "#!", 2) == 0 && access(path, X_OK) == 0) {
		words[0] = path;
	} else {
		words[0] = shell;
		words[1] = path;
	}
	return words;
}

static char **as_words(const char *const *list)
{
	size_t count = 0;

	while (list[count])
		count++;
	char **words = calloc(count + 2, sizeof(*words));
	for (size_t i = 0; words && i < count; i++)
		words[i] = strdup(list[i]);
	return words;
}

static void wait_for_go(void)
{
	char byte;
	ssize_t n;

	do
		n = read(GO_FD, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1)
		_exit(0);
}

static _Noreturn void become_task(const struct task_spec *spec, const char *program, char **words,
				  char **env)
{
	say(STATUS_FD, LAUNCH_EXEC, "");
	if (FAILPOINT_RANK("shepherd-exec", spec->rank))
		errno = EIO;
	else
		execve(program, words, env);
	if (errno == ENOEXEC) {
		/* A text without "#!": what every shell does with it. */
		size_t count = 0;

		while (words[count])
			count++;
		char **again = calloc(count + 2, sizeof(*again));
		static char shell[] = "/bin/sh";
		if (again) {
			again[0] = shell;
			again[1] = strdup(program);
			memcpy(again + 2, words + 1, (count ? count - 1 : 0) * sizeof(*again));
			execve(shell, again, env);
		}
	}
	fail(STATUS_FD, errno, "could not run \"%.180s\"", program);
}

_Noreturn void launcher_run(const struct task_spec *spec, const struct account *account,
			    const char *const *env, const struct launch_fds *fds, pid_t parent)
{
	char program[PATH_MAX], script[PATH_MAX];
	int errnum;

	close(PLACE_LOCK_FD); /* only the shepherd's life may hold it */
	setsid();
	die_with(parent);
	enter_groups(fds);
	set_limits(spec);
	become_user(spec, account, fds->status);
	die_with(parent); /* a change of user clears it */
	enter_folders(spec, fds->status);
	arrange_fds(fds);
	reset_signals();
	char **words = spec->script ? script_words(spec, script) : as_words(spec->argv);
	char **variables = as_words(env);
	if (!words || !variables || !words[0])
		fail(STATUS_FD, 0, "the task has no command");
	if (!find_program(words[0], task_env_find(env, "PATH"), program, &errnum))
		fail(STATUS_FD, errnum, "command \"%.160s\" can't be run by user \"%s\"", words[0],
		     spec->user);
	say(STATUS_FD, LAUNCH_READY, "");
	wait_for_go();
	become_task(spec, program, words, variables);
}
