/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stops the daemon of a data folder. Who it is, the kernel says at the socket: what is written in the folder may be
 * older than the process. One that has not come so far yet has the folder's lock open. The process is held by a pidfd
 * before it is asked to end, so no other one with its number is.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/table/commands.h"
#include "cli/running/holder.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"

enum { DOWN_WITHIN_MS = 60000 };

static int not_reached(const char *path, struct err *err)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ECONNREFUSED: return 0;
	case EACCES:
	case EPERM:
		return err_set(
			err, ERR_FORBIDDEN,
			"the daemon at \"%.200s\" is closed to this account; its owner and root can stop it",
			path);
	default:
		return err_errno(err, ERR_UNAVAILABLE, errno,
				 "cannot reach the daemon at \"%.200s\"", path);
	}
}

/* *ret is the process that answers at the socket, 0 = none. The connection stays open in *conn: as long as it does, the number is that process's. */
static int find_daemon(const char *path, int *conn, pid_t *ret, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct ucred peer;
	socklen_t size = sizeof(peer);

	*ret = 0;
	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID,
			       "the path of the socket, \"%.200s\", is too long for the system",
			       path);
	memcpy(address.sun_path, path, strlen(path) + 1);
	*conn = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (*conn < 0)
		return err_errno(err, ERR_UNAVAILABLE, errno, "cannot open a socket");
	if (connect(*conn, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return not_reached(path, err);
	if (getsockopt(*conn, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
		return err_errno(err, ERR_UNAVAILABLE, errno,
				 "cannot tell who answers at \"%.200s\"", path);
	*ret = peer.pid;
	if (peer.pid <= 0)
		return err_set(
			err, ERR_CONFLICT,
			"the daemon at \"%.200s\" runs in another container; stop it from there",
			path);
	return 0;
}

/* starting: the folder whose lock it must hold, for it answers nowhere yet; NULL = it does. 1 = it is no daemon. */
static int end_process(pid_t pid, const char *starting, struct arena *arena, struct err *err)
{
	struct pollfd ended = { .fd = pidfd_open(pid, 0), .events = POLLIN };
	int rc = 0, got = 0;

	if (ended.fd < 0)
		return errno == ESRCH ? 0
				      : err_errno(err, ERR_UNAVAILABLE, errno,
						  "cannot watch process %ld", (long)pid);
	if (starting && !holder_is_daemon(pid, starting, arena))
		rc = 1;
	if (rc == 0 && pidfd_send_signal(ended.fd, SIGTERM, NULL, 0) < 0 && errno != ESRCH)
		rc = errno == EPERM
			     ? err_set(err, ERR_FORBIDDEN,
				       "the daemon is process %ld of another account; that account and root can stop it",
				       (long)pid)
			     : err_errno(err, ERR_UNAVAILABLE, errno, "cannot stop process %ld",
					 (long)pid);
	while (rc == 0 && (got = poll(&ended, 1, DOWN_WITHIN_MS)) < 0 && errno == EINTR)
		;
	if (rc == 0 && got == 0)
		rc = err_set(err, ERR_UNAVAILABLE,
			     "the daemon (process %ld) was asked to end and has not within %d s; "
			     "it may be killed with SIGKILL, which loses nothing either",
			     (long)pid, DOWN_WITHIN_MS / 1000);
	close(ended.fd);
	return rc;
}

static int run_down(struct invocation *in, struct err *err)
{
	const char *folder = client_data_folder(in);
	const char *path = arena_printf(in->arena, "%s/fairlead.sock", folder);
	AUTO_BUF out = BUF_INIT;
	const char *starting = NULL;
	int conn = -1, rc;
	pid_t pid;

	rc = find_daemon(path, &conn, &pid, err);
	if (rc == 0 && pid == 0) {
		starting = folder;
		pid = (pid_t)holder_find(folder, in->arena);
	}
	if (rc == 0 && pid > 0)
		rc = end_process(pid, starting, in->arena, err);
	if (conn >= 0)
		close(conn);
	if (rc < 0)
		return rc;
	if (pid > 0 && rc == 0)
		buf_addf(
			&out,
			"The daemon of %s has ended. Jobs that run go on; the next start takes them up again.\n",
			folder);
	else
		buf_addf(&out, "No daemon runs on %s.\n", folder);
	output_buf(&out);
	return 0;
}

static const struct flag flags[] = {
	{ "data", 0, "DIR", "its data folder; FAIRLEAD_DATA says it too", false },
	{ 0 },
};

const struct command command_down = {
	.name = "down",
	.arguments = "",
	.summary = "stop the daemon; jobs go on",
	.about =
		"Asks the daemon of the data folder to end and waits until it has, a minute at most. Jobs that run are not touched: "
		"their output and their ends are picked up when the daemon is started again. Waiting jobs wait. Stop jobs with "
		"`fairlead cancel` first where they are to end. It is no error when no daemon runs.",
	.flags = flags,
	.examples = "fairlead down\tthe daemon of this account\n"
		    "fairlead down --data /tmp/try\tthe one of that folder",
	.run = run_down,
};
