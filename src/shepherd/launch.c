/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Making the launcher: the process that prepares itself as the user, says READY, and on a byte in
 * its go pipe becomes the task. So everything that can fail (groups, account, folder, program)
 * fails before any rank of the gang runs, and between go and exec nothing is left to do.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/failpoint.h"
#include "engine/local/task_env.h"
#include "shepherd/shepherd.h"

static void close_all(const int *fds, int count)
{
	for (int i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static int check_user(const struct task_spec *spec, struct err *err)
{
	if (geteuid() == 0 || spec->uid == geteuid())
		return 0;
	return err_set(
		err, ERR_FORBIDDEN,
		"the daemon does not run as root, so it can only run jobs of its own user (uid %u); user \"%s\" has uid %u",
		(unsigned)geteuid(), spec->user, (unsigned)spec->uid);
}

static int open_pipes(int go[2], int status[2], struct err *err)
{
	if (pipe2(go, O_CLOEXEC) < 0)
		return err_errno(err, ERR_IO, errno, "could not make a pipe to the task");
	if (pipe2(status, O_CLOEXEC) < 0) {
		int saved = errno;

		close_all(go, 2);
		return err_errno(err, ERR_IO, saved, "could not make a pipe from the task");
	}
	return 0;
}

static int make_groups(struct shepherd *s, struct launch_fds *fds, struct err *err)
{
	if (FAILPOINT_RANK("shepherd-cgroup", s->spec.rank))
		return err_errno(err, ERR_IO, EIO, "could not make the control group %s",
				 s->spec.cgroups.tree);
	if (cgroup_make(&s->spec.cgroups, s->spec.memory_mib, &s->memory_enforced, err) < 0)
		return -1;
	fds->cgroup_count = cgroup_open(&s->spec.cgroups, fds->cgroups, err);
	return fds->cgroup_count;
}

static int fork_launcher(struct shepherd *s, const struct launch_fds *fds, struct err *err)
{
	struct account account;

	account_find(&s->spec, &s->arena, &account);
	if (!s->spec.workdir)
		s->spec.workdir = account.home;
	const char **env = task_env_add_account(s->spec.env, s->spec.user, account.home,
						account.shell, s->spec.uid == 0, &s->arena);
	pid_t parent = getpid();
	pid_t pid = FAILPOINT_RANK("shepherd-fork", s->spec.rank) ? (errno = EAGAIN, -1) : fork();
	if (pid < 0)
		return err_errno(err, ERR_IO, errno, "could not make a process for the task");
	if (pid == 0)
		launcher_run(&s->spec, &account, env, fds, parent);
	s->task = pid;
	return 0;
}

int launch_task(struct shepherd *s, struct err *err)
{
	struct launch_fds fds = { .cgroup_count = 0 };
	int go[2], status[2], out[2] = { -1, -1 };

	if (check_user(&s->spec, err) < 0 || make_groups(s, &fds, err) < 0)
		return -1;
	int result = open_pipes(go, status, err);
	if (result == 0) {
		result = output_open(s, out, err);
		fds.go = go[0];
		fds.status = status[1];
		fds.out = out[0];
		fds.err = out[1];
		if (result == 0)
			result = fork_launcher(s, &fds, err);
		s->go_fd = go[1];
		s->status_fd = status[0];
		close(go[0]);
		close(status[1]);
		close_all(out, 2);
	}
	close_all(fds.cgroups, fds.cgroup_count);
	return result;
}
