/* SPDX-License-Identifier: Apache-2.0 */
/* The task's stdout and stderr: pipes, read here into logs under a cap (engine/task_log.h). */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "shepherd/shepherd.h"

enum { READ_BYTES = 64 << 10, DRAIN_MAX_BYTES = 64 << 20 }; /* a pipe holds 64 KiB */

static char room[READ_BYTES];

/* What an earlier start of the rank has written stays; offsets go on behind it. */
static void log_go_on(const struct shepherd *s, enum task_stream stream, struct task_log *log)
{
	uint64_t end;

	if (task_log_tail(s->spec.logs, s->spec.job, s->spec.attempt, s->spec.rank, stream, 0, &end,
			  NULL) == 0)
		log->offset = end;
}

/* In a pod the task writes where its container does: the kubelet keeps it. */
static int output_of_pod(int ret_child_ends[2], struct err *err)
{
	for (int i = 0; i < 2; i++) {
		ret_child_ends[i] = fcntl(i ? STDERR_FILENO : STDOUT_FILENO, F_DUPFD_CLOEXEC, 16);
		if (ret_child_ends[i] < 0)
			return err_errno(err, ERR_IO, errno, "the container has no output");
	}
	return 0;
}

int output_open(struct shepherd *s, int ret_child_ends[2], struct err *err)
{
	if (s->pod)
		return output_of_pod(ret_child_ends, err);
	int folder = task_log_folder(s->spec.logs, s->spec.job, s->spec.attempt, err);

	if (folder < 0)
		return -1;
	for (int i = 0; i < 2; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return err_errno(err, ERR_IO, errno,
					 "could not make a pipe for the task's output");
		(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
		s->outputs[i].fd = fds[0];
		task_log_init(&s->outputs[i].log, folder, s->spec.rank,
			      i ? TASK_STDERR : TASK_STDOUT, s->spec.log_cap_bytes);
		if (s->spec.launch)
			log_go_on(s, i ? TASK_STDERR : TASK_STDOUT, &s->outputs[i].log);
		ret_child_ends[i] = fds[1];
	}
	return 0;
}

bool output_read(struct output *output)
{
	ssize_t n;

	if (output->fd < 0)
		return false;
	n = read(output->fd, room, sizeof(room));
	if (n > 0) {
		task_log_write(&output->log, room, (size_t)n);
		return true;
	}
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR;
	close(output->fd);
	output->fd = -1;
	return false;
}

void output_drain(struct shepherd *s)
{
	for (int i = 0; i < 2; i++) {
		struct output *output = &s->outputs[i];
		uint64_t from = output->log.offset;

		/* Bounded: a process outside the tree may hold the other end (handed over a socket)
		 * and go on writing. */
		while (output_read(output) && output->log.offset - from < DRAIN_MAX_BYTES)
			;
		if (output->fd >= 0)
			close(output->fd);
		output->fd = -1;
		task_log_deinit(&output->log);
	}
}
