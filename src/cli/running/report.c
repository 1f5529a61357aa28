/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "cli/table/commands.h"
#include "cli/output/output.h"
#include "cli/output/problem.h"

static int connect_to(const char *path, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval patience = { .tv_sec = 30 };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return err_set(err, ERR_INVALID, "the path in FAIRLEAD_REPORT_SOCKET is too long");
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_errno(err, ERR_IO, errno, "a socket can't be made");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		err_errno(err, ERR_UNREACHABLE, errno, "the report socket does not answer");
		close(fd);
		return -(int)err->code;
	}
	return fd;
}

static int ask(int fd, const char *line, size_t size, struct buf *answer, struct err *err)
{
	char part[512];
	ssize_t got;

	for (size_t sent = 0; sent < size;) {
		ssize_t wrote = send(fd, line + sent, size - sent, MSG_NOSIGNAL);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return err_errno(err, ERR_UNREACHABLE, errno, "the report can't be sent");
		sent += (size_t)wrote;
	}
	while (!memchr(buf_text(answer), '\n', answer->size) && answer->size < 4096) {
		got = recv(fd, part, sizeof(part), 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return err_set(err, ERR_TIMEOUT,
				       "the report was sent, but no answer came within 30 s");
		if (got <= 0)
			return err_set(err, ERR_UNREACHABLE,
				       "the report socket was closed before it answered");
		buf_add(answer, part, (size_t)got);
	}
	return 0;
}

static int run_report(struct invocation *in, struct err *err)
{
	const char *socket_path = getenv("FAIRLEAD_REPORT_SOCKET"),
		   *checkpoint = arg_flag(in, "checkpoint");
	AUTO_BUF line = BUF_INIT;
	AUTO_BUF answer = BUF_INIT;
	json_t *reply;
	int64_t step;
	int fd, rc = arg_number(in, "step", 0, (int64_t)1 << 53, -1, &step, err);

	if (rc < 0)
		return rc;
	if (step < 0)
		return err_set(err, ERR_INVALID, "report needs --step N: how far the job is");
	if (!socket_path || !socket_path[0])
		return err_set(err, ERR_UNAVAILABLE,
			       "this is no job of Fairlead: FAIRLEAD_REPORT_SOCKET is not set");
	buf_addf(&line, "{\"step\": %lld", (long long)step);
	if (checkpoint) {
		buf_adds(&line, ", \"checkpoint\": ");
		buf_add_json(&line, checkpoint, strlen(checkpoint));
	}
	buf_adds(&line, "}\n");
	fd = connect_to(socket_path, err);
	if (fd < 0)
		return fd;
	rc = ask(fd, line.data, line.size, &answer, err);
	close(fd);
	if (rc < 0)
		return rc;
	reply = json_loadb(answer.data, answer.size, JSON_DISABLE_EOF_CHECK, NULL);
	if (!get_bool(reply, "ok"))
		rc = err_set(err, ERR_INVALID, "the report was refused: %s",
			     get_text(reply, "error")[0] ? get_text(reply, "error")
							 : "no reason was given");
	json_decref(reply);
	return rc;
}

static const struct flag flags[] = {
	{ "step", 0, "N", "how far the job is; a number that grows", false },
	{ "checkpoint", 0, "PATH",
	  "a checkpoint that is complete: absolute, or below FAIRLEAD_CHECKPOINT_DIR", false },
	{ 0 },
};

const struct command command_report = {
	.name = "report",
	.arguments = "",
	.summary = "tell of progress and checkpoints, from inside a job",
	.about =
		"Write a checkpoint completely, fsync it, rename it, and then report it: Fairlead resumes only from reported ones, and one that "
		"is not there is refused. In a gang one rank reports for all, when all have written their part. When the command comes back "
		"with 0 the report is on disk. docs/task-environment.md describes the socket behind it.",
	.flags = flags,
	.examples =
		"fairlead report --step 1200\n"
		"fairlead report --step 1200 --checkpoint step-1200\tcomplete, may be resumed from",
	.run = run_report,
};
