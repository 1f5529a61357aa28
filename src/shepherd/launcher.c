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
 * Each failure is a sentence for the user, sent through the status pipe. What is wrong with the user's own program or
 * folder is told apart from what is wrong with the machine: it ends the task with the code by which a shell would have
 * told it, 127 for what is not there and 126 for what is of no use.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <linux/close_range.h>
#include <sched.h>
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
enum { CODE_NO_USE = 126, CODE_NOT_FOUND = 127 };

static bool as_user; /* from here on it does what the user asked for, with the rights of the user */

static void say_note(int fd, const struct launch_note *note)
{
	if (write(fd, note, sizeof(*note)) < 0) {
		/* the shepherd is gone, and so is this process in a moment */
	}
}

static void say(int fd, enum launch_step step)
{
	say_note(fd, &(struct launch_note){ .step = (int32_t)step });
}

/* The machine could not do what it should. */
static _Noreturn void fail(int fd, int errnum, const char *format, ...) PRINTF_LIKE(3, 4);
static _Noreturn void fail(int fd, int errnum, const char *format, ...)
{
	struct launch_note note = { .step = LAUNCH_FAILED, .errnum = errnum, .as_user = as_user };
	va_list args;

	va_start(args, format);
	int n = vsnprintf(note.text, sizeof(note.text), format, args);
	va_end(args);
	if (errnum && n > 0 && (size_t)n < sizeof(note.text))
		snprintf(note.text + n, sizeof(note.text) - (size_t)n, ": %s",
			 err_errno_text(errnum));
	say_note(fd, &note);
	_exit(127);
}

/* What the user named is not there or of no use. The reason comes before the path: long texts lose their end. */
static _Noreturn void refuse(int fd, int code, const char *format, ...) PRINTF_LIKE(3, 4);
static _Noreturn void refuse(int fd, int code, const char *format, ...)
{
	struct launch_note note = { .step = LAUNCH_FAILED, .code = code };
	va_list args;

	va_start(args, format);
	vsnprintf(note.text, sizeof(note.text), format, args);
	va_end(args);
	say_note(fd, &note);
	_exit(code);
}

/* The code for what the system answered about a path or program of the user's; 0 = it speaks of the machine. */
static int code_for(int errnum)
{
	switch (errnum) {
	case ENOENT: return CODE_NOT_FOUND;
	case EACCES:
	case EPERM:
	case ENOTDIR:
	case EISDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EROFS:
	case ENOEXEC:
	case ELIBBAD:
	case ETXTBSY:
	case E2BIG:
	case EINVAL: return CODE_NO_USE;
	default: return 0;
	}
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

/*
 * The kernel is to kill a task for memory before its shepherd and before the daemon. Root has lowered their values; a value
 * that could not be lowered is exceeded.
 */
static void put_oom_score(void)
{
	enum { ABOVE_SHEPHERD = 100, MOST = 1000 };
	char text[16] = "";
	long own = 0;

	if (small_file_read("/proc/self/oom_score_adj", text, sizeof(text)) > 0)
		own = strtol(text, NULL, 10);
	own = own < -ABOVE_SHEPHERD ? 0 : own > MOST - ABOVE_SHEPHERD ? MOST : own + ABOVE_SHEPHERD;
	snprintf(text, sizeof(text), "%ld", own);
	(void)small_file_write("/proc/self/oom_score_adj", text);
}

static void set_limits(const struct task_spec *spec)
{
	struct rlimit core, files;

	if (!spec->in_pod) {
		/* The files in /proc of a process that can't be read by others are root's; what is in memory here is this user's own. */
		if (geteuid() != 0)
			(void)prctl(PR_SET_DUMPABLE, 1);
		put_oom_score();
		(void)prctl(PR_SET_DUMPABLE, 0);
		(void)proctree_put_brand(spec->brand);
	}
	if (getrlimit(RLIMIT_CORE, &core) == 0) {
		core.rlim_cur = 0;
		(void)setrlimit(RLIMIT_CORE, &core);
	}
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max < TASK_FILES_MAX ? files.rlim_max : TASK_FILES_MAX;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
	output_restore_limit();
	umask(022);
}

/* "0-3,8" as a set; false: it is no such list. */
static bool processors_parse(const char *text, cpu_set_t *ret)
{
	CPU_ZERO(ret);
	while (*text) {
		char *end;
		unsigned long first = strtoul(text, &end, 10), last = first;

		if (end == text)
			return false;
		if (*end == '-') {
			text = end + 1;
			last = strtoul(text, &end, 10);
			if (end == text)
				return false;
		}
		if ((*end && *end != ',') || first > last || last >= CPU_SETSIZE)
			return false;
		for (; first <= last; first++)
			CPU_SET(first, ret);
		text = *end ? end + 1 : end;
	}
	return CPU_COUNT(ret) > 0;
}

/* The task, and all that it starts, run on these processors alone. */
static void bind_processors(const struct task_spec *spec, int status)
{
	cpu_set_t set;

	if (!spec->cpus)
		return;
	if (!processors_parse(spec->cpus, &set))
		fail(status, 0, "the processors \"%.100s\" to bind it to are no list", spec->cpus);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		fail(status, errno, "could not bind it to the processors %.100s of its NUMA node",
		     spec->cpus);
}

static void become_user(const struct task_spec *spec, const struct account *account, int status)
{
	if (geteuid() == 0 && !spec->in_pod) {
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

static bool is_within(const char *path, const char *folder)
{
	size_t size = strlen(folder);

	return strncmp(path, folder, size) == 0 && (path[size] == '/' || path[size] == '\0');
}

/* The folder above; "" = there is none. */
static void path_above(const char *path, char out[PATH_MAX])
{
	const char *end = strrchr(path, '/');

	snprintf(out, PATH_MAX, "%.*s", end ? (int)(end - path) : 0, path);
}

/*
 * The working folder of this process lies in the daemon's data folder, and is not the job's own there: its checkpoints, and the files that were sent
 * along with it. That is refused at submission as well, but a symbolic link may have been exchanged since.
 */
static bool is_in_data(const struct task_spec *spec)
{
	char here[PATH_MAX], data[PATH_MAX], run[PATH_MAX], own[PATH_MAX + 40];

	if (spec->in_pod || !spec->logs || !getcwd(here, sizeof(here)))
		return false;
	path_above(spec->logs, data);
	if (!*data || !is_within(here, data))
		return false;
	snprintf(own, sizeof(own), "%s/checkpoints/%" PRIu64, data, spec->job);
	if (is_within(here, own))
		return false;
	path_above(spec->run, run);
	snprintf(own, sizeof(own), "%s/code", run);
	return !is_within(here, own);
}

static void enter_folders(const struct task_spec *spec, int status)
{
	if (spec->checkpoint_dir) {
		int result = make_folders(spec->checkpoint_dir);

		if (result == 0 && access(spec->checkpoint_dir, W_OK | X_OK) < 0)
			result = -errno;
		if (result == 0 && chdir(spec->checkpoint_dir) < 0)
			result = -errno;
		if (result == 0 && is_in_data(spec))
			refuse(status, CODE_NO_USE,
			       "checkpoint folder leads into the daemon's data folder: \"%.120s\"",
			       spec->checkpoint_dir);
		if (result < 0 && !code_for(-result))
			fail(status, -result, "checkpoint folder \"%.120s\"", spec->checkpoint_dir);
		if (result < 0)
			refuse(status, CODE_NO_USE,
			       "checkpoint folder can't be used (%s): \"%.100s\", user \"%s\"",
			       err_errno_text(-result), spec->checkpoint_dir, spec->user);
	}
	if (chdir(spec->workdir) == 0) {
		if (is_in_data(spec))
			refuse(status, CODE_NO_USE,
			       "working directory leads into the daemon's data folder: \"%.120s\"",
			       spec->workdir);
		return;
	}
	int errnum = errno, code = code_for(errnum);
	if (code == CODE_NOT_FOUND)
		refuse(status, code, "working directory not found: \"%.160s\"", spec->workdir);
	if (code)
		refuse(status, code,
		       "working directory can't be entered (%s): \"%.100s\", user \"%s\"",
		       err_errno_text(errnum), spec->workdir, spec->user);
	fail(status, errnum, "working directory \"%.140s\"", spec->workdir);
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

/* 0, or why the user can't run this file. */
static int program_check(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	if (!S_ISREG(st.st_mode))
		return EACCES;
	return access(path, X_OK) < 0 ? errno : 0;
}

/* Where the program is, as the user sees it: a name without slash is looked up in the task's own
 * PATH. What is found but can't be run is remembered: 0, or the reason. */
static int find_program(const char *name, const char *path, char out[PATH_MAX])
{
	int reason = ENOENT;

	if (strchr(name, '/'))
		return snprintf(out, PATH_MAX, "%s", name) < PATH_MAX ? program_check(out)
								      : ENAMETOOLONG;
	for (const char *at = path; at; at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int length = (int)strcspn(at, ":");

		if (snprintf(out, PATH_MAX, "%.*s/%s", length ? length : 1, length ? at : ".",
			     name) >= PATH_MAX)
			continue;
		int found = program_check(out);
		if (found == 0)
			return 0;
		if (found == EACCES)
			reason = found;
	}
	return reason;
}

/* The interpreter that a script names in its first line, when that is missing: exec would say of the script itself
 * that there is no such file. */
static bool lacks_interpreter(const char *program, char out[PATH_MAX])
{
	char line[PATH_MAX];
	int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (fd >= 0)
		close(fd);
	if (n < 3 || strncmp(line, "#!", 2) != 0)
		return false;
	line[n] = '\0';
	const char *name = line + 2 + strspn(line + 2, " \t");
	snprintf(out, PATH_MAX, "%.*s", (int)strcspn(name, " \t\n"), name);
	bool lacks = out[0] && access(out, F_OK) < 0 && errno == ENOENT;
	for (char *at = out; *at; at++)
		if ((unsigned char)*at < 0x20)
			*at = '?'; /* for the message: mostly a line end of another system */
	return lacks;
}

/* With where it was searched: the folder of a relative name, or PATH, cut where the note ends. */
static _Noreturn void refuse_missing(const struct task_spec *spec, const char *name,
				     const char *path)
{
	enum { PATH_SHOWN = 150 };
	const bool cut = path && strlen(path) > PATH_SHOWN;

	if (name[0] == '/')
		refuse(STATUS_FD, CODE_NOT_FOUND, "command not found: \"%.200s\"", name);
	if (strchr(name, '/'))
		refuse(STATUS_FD, CODE_NOT_FOUND, "command not found: \"%.90s\" in \"%.120s\"",
		       name, spec->workdir);
	refuse(STATUS_FD, CODE_NOT_FOUND, "command not found: \"%.60s\", searched in PATH=%.*s%s",
	       name, PATH_SHOWN, path ? path : "", cut ? "..." : "");
}

static void check_program(const struct task_spec *spec, const char *name, const char *path,
			  char out[PATH_MAX])
{
	char interpreter[PATH_MAX];
	int errnum = find_program(name, path, out), code = code_for(errnum);

	if (errnum == 0 && lacks_interpreter(out, interpreter))
		refuse(STATUS_FD, CODE_NOT_FOUND, "interpreter not found: \"%.100s\" of \"%.100s\"",
		       interpreter, out);
	if (errnum == 0)
		return;
	if (code == CODE_NOT_FOUND)
		refuse_missing(spec, name, path);
	if (errnum == EISDIR)
		refuse(STATUS_FD, code, "command is a folder: \"%.200s\"", name);
	if (code)
		refuse(STATUS_FD, code, "command can't be run (%s): \"%.120s\", user \"%s\"",
		       err_errno_text(errnum), name, spec->user);
	fail(STATUS_FD, errnum, "command \"%.160s\"", name);
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
	say(STATUS_FD, LAUNCH_EXEC);
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
	int errnum = errno;
	if (code_for(errnum))
		refuse(STATUS_FD, code_for(errnum), "command can't be run (%s): \"%.160s\"",
		       err_errno_text(errnum), program);
	fail(STATUS_FD, errnum, "could not run \"%.180s\"", program);
}

_Noreturn void launcher_run(const struct task_spec *spec, const struct account *account,
			    const char *const *env, const struct launch_fds *fds, pid_t parent)
{
	char program[PATH_MAX], script[PATH_MAX];

	close(PLACE_LOCK_FD); /* only the shepherd's life may hold it */
	setsid();
	die_with(parent);
	enter_groups(fds);
	set_limits(spec);
	bind_processors(spec, fds->status);
	become_user(spec, account, fds->status);
	die_with(parent); /* a change of user clears it */
	as_user = true;
	enter_folders(spec, fds->status);
	arrange_fds(fds);
	reset_signals();
	char **words = spec->script ? script_words(spec, script) : as_words(spec->argv);
	char **variables = as_words(env);
	if (!words || !variables || !words[0])
		fail(STATUS_FD, 0, "the task has no command");
	check_program(spec, words[0], task_env_find(env, "PATH"), program);
	say(STATUS_FD, LAUNCH_READY);
	wait_for_go();
	become_task(spec, program, words, variables);
}
