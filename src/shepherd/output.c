/* SPDX-License-Identifier: Apache-2.0 */
/* The task's stdout and stderr: pipes, read here into logs under a cap (engine/task_log.h). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "shepherd/shepherd.h"

enum {
	READ_BYTES = 64 << 10,
	DRAIN_MAX_BYTES = 64 << 20,
	OUTPUT_ROUNDS = 16
}; /* a pipe holds 64 KiB */

/* --- the order of the two -------------------------------------------------------------------------------------------- */

/*
 * Two pipes don't tell which was written first. So the kernel sends a signal for each write (F_SETSIG), which are queued in order, and
 * their sequence is taken along with the bytes. It has no sizes: a write is taken to be a line. Where writes and lines are of
 * different number, what was written to both within the same moment may change places; no byte is lost by it. A write costs the task about
 * 1 us more (2 us in place of 1 for a short line).
 */
enum { WRITES_MAX = 4096, SIGNALS_PENDING_MAX = 8192 };

/* What a signal may be later than the bytes that it is of. */
static const struct timespec signal_pause = { .tv_nsec = 50000 };
static struct rlimit pending; /* of signals, for the task */

static int writes_open(void)
{
	sigset_t set;
	struct rlimit own;

	/* What is queued counts for all processes of this account. */
	if (getrlimit(RLIMIT_SIGPENDING, &pending) < 0)
		return -1;
	own = pending;
	if (own.rlim_cur > SIGNALS_PENDING_MAX)
		own.rlim_cur = SIGNALS_PENDING_MAX;
	(void)setrlimit(RLIMIT_SIGPENDING, &own);
	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGIO); /* comes in its place where too many are queued */
	sigprocmask(SIG_BLOCK, &set, NULL);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

void output_restore_limit(void)
{
	if (pending.rlim_max)
		(void)setrlimit(RLIMIT_SIGPENDING, &pending);
}

static void watch_writes(int fd)
{
	if (fcntl(fd, F_SETSIG, SIGRTMIN) == 0 && fcntl(fd, F_SETOWN, getpid()) == 0)
		(void)fcntl(fd, F_SETFL, O_NONBLOCK | O_ASYNC);
}

/* The streams of the writes since the last call, in order, behind `count` others; WRITES_MAX at most in all. Their new count. */
static size_t writes_take(const struct shepherd *s, unsigned char streams[WRITES_MAX], size_t count)
{
	struct signalfd_siginfo info[64];
	ssize_t n;

	while (s->writes >= 0 && (n = read(s->writes, info, sizeof(info))) > 0)
		for (size_t i = 0; i < (size_t)n / sizeof(info[0]); i++)
			if (info[i].ssi_signo == (uint32_t)SIGRTMIN && count < WRITES_MAX)
				streams[count++] = info[i].ssi_fd == s->outputs[1].number;
	return count;
}

/* --- making the pipes ----------------------------------------------------------------------------------------------- */

/* What an earlier start of the rank has written stays; offsets go on behind it. */
static uint64_t log_end(const struct shepherd *s, enum task_stream stream)
{
	uint64_t end = 0;

	if (!s->spec.launch || task_log_tail(s->spec.logs, s->spec.job, s->spec.attempt,
					     s->spec.rank, stream, 0, &end, NULL) < 0)
		return 0;
	return end;
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
	s->writes = writes_open();
	task_order_init(&s->order, folder, s->spec.rank, log_end(s, TASK_ORDER));
	for (int i = 0; i < 2; i++) {
		int fds[2];

		if (pipe2(fds, O_CLOEXEC) < 0)
			return err_errno(err, ERR_IO, errno,
					 "could not make a pipe for the task's output");
		(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
		watch_writes(fds[0]);
		s->outputs[i].fd = s->outputs[i].number = fds[0];
		task_log_init(&s->outputs[i].log, folder, s->spec.rank,
			      i ? TASK_STDERR : TASK_STDOUT, s->spec.log_cap_bytes);
		s->outputs[i].log.offset = log_end(s, i ? TASK_STDERR : TASK_STDOUT);
		ret_child_ends[i] = fds[1];
	}
	return 0;
}

/* --- reading --------------------------------------------------------------------------------------------------------- */

struct taken {
	char *data;
	size_t size, at; /* at: of this, written */
	size_t lines; /* that are not written yet; text behind the last line end is one */
};

static char rooms[2][READ_BYTES];

/* True when something came. */
static bool pipe_read(struct output *output, struct taken *taken)
{
	ssize_t n;

	if (output->fd < 0 || taken->size == READ_BYTES)
		return false;
	do
		n = read(output->fd, taken->data + taken->size, READ_BYTES - taken->size);
	while (n < 0 && errno == EINTR);
	if (n > 0) {
		taken->size += (size_t)n;
		return true;
	}
	if (n < 0 && errno == EAGAIN)
		return false;
	close(output->fd);
	output->fd = -1;
	return false;
}

static size_t count_lines(const struct taken *taken)
{
	size_t lines = 0;

	for (size_t i = 0; i < taken->size; i++)
		lines += taken->data[i] == '\n';
	return lines + (taken->size && taken->data[taken->size - 1] != '\n');
}

static void put(struct shepherd *s, enum task_stream stream, struct taken *taken, size_t size)
{
	struct task_log *log = &s->outputs[stream].log;

	if (!size)
		return;
	task_order_note(&s->order, stream, log->offset);
	task_log_write(log, taken->data + taken->at, size);
	taken->at += size;
}

static void put_lines(struct shepherd *s, enum task_stream stream, struct taken *taken,
		      size_t lines)
{
	const char *from = taken->data + taken->at, *end = taken->data + taken->size, *at = from;

	taken->lines -= lines;
	for (; lines && at < end; lines--) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));

		at = line_end ? line_end + 1 : end;
	}
	put(s, stream, taken, (size_t)(at - from));
}

/* Bytes of later writes, that were not read. */
static size_t bytes_behind(const struct output *output)
{
	int bytes = 0;

	if (output->fd < 0 || ioctl(output->fd, FIONREAD, &bytes) < 0 || bytes < 0)
		return 0;
	return (size_t)bytes;
}

/* Nobody has the other end any more. */
static bool is_at_end(const struct output *output)
{
	struct pollfd end = { .fd = output->fd };

	return output->fd < 0 || (poll(&end, 1, 0) == 1 && (end.revents & POLLHUP));
}

/* The end of a pipe has a signal too, the last one: it is no write. Returns the count of those that are. */
static size_t drop_end(unsigned char stream, unsigned char *streams, size_t count)
{
	size_t at = count;

	while (at && streams[at - 1] != stream)
		at--;
	if (!at)
		return count;
	memmove(streams + at - 1, streams + at, count - at);
	return count - 1;
}

/* A pipe has ended whose last signal was not counted yet. */
static bool is_newly_at_end(const struct shepherd *s)
{
	return (!s->outputs[0].ended && is_at_end(&s->outputs[0])) ||
	       (!s->outputs[1].ended && is_at_end(&s->outputs[1]));
}

/* The writes since the last call, behind `count` others, without the signals of ends. */
static size_t writes_add(struct shepherd *s, unsigned char streams[WRITES_MAX], size_t count)
{
	do {
		bool ended[2];

		for (int i = 0; i < 2; i++)
			ended[i] = !s->outputs[i].ended && is_at_end(&s->outputs[i]);
		if (ended[0] || ended[1])
			(void)nanosleep(&signal_pause, NULL);
		count = writes_take(s, streams, count);
		for (unsigned char i = 0; i < 2; i++) {
			if (ended[i])
				count = drop_end(i, streams, count);
			s->outputs[i].ended |= ended[i];
		}
	} while (is_newly_at_end(s));
	return count;
}

static void count_writes(const unsigned char *streams, size_t count, size_t ret[2])
{
	ret[0] = ret[1] = 0;
	for (size_t i = 0; i < count; i++)
		ret[streams[i]]++;
}

/* How many of the newest writes are of bytes that are still in the pipe, taken that writes are of one size. */
static size_t writes_behind(const struct output *output, const struct taken *taken, size_t writes)
{
	const size_t behind = bytes_behind(output);
	const size_t share = behind ? writes * behind / (taken->size + behind) : 0;

	return behind && writes && !share ? 1 : share;
}

/*
 * In the order of the writes. Writes of bytes that were not read yet are kept, in front of `streams`, and their count is returned. Of more writes than
 * lines the first ones belong to what was read before; of more lines than writes the first write has the rest.
 */
static size_t put_in_order(struct shepherd *s, struct taken taken[2], unsigned char *streams,
			   size_t count)
{
	size_t left[2], kept = 0;

	count_writes(streams, count, left);
	for (int i = 0; i < 2; i++)
		left[i] -= writes_behind(&s->outputs[i], &taken[i], left[i]);
	for (size_t i = 0; i < count; i++) {
		const unsigned char stream = streams[i];
		struct taken *of = &taken[stream];

		if (!left[stream]) {
			streams[kept++] = stream;
			continue;
		}
		if (of->lines >= left[stream])
			put_lines(s, stream ? TASK_STDERR : TASK_STDOUT, of,
				  of->lines - left[stream] + 1);
		left[stream]--;
	}
	for (int i = 0; i < 2; i++)
		put(s, (enum task_stream)i, &taken[i], taken[i].size - taken[i].at);
	return kept;
}

/*
 * Bytes can be read a moment before the signal of their write is there. Where both streams have some that is waited for, a fraction of a
 * millisecond; where one has, the signal is expected next time.
 */
static size_t writes_match(struct shepherd *s, const struct taken taken[2],
			   unsigned char streams[WRITES_MAX], size_t kept)
{
	enum { TRIES = 4 };
	size_t writes[2], count = writes_add(s, streams, kept);

	count_writes(streams, count, writes);
	for (int i = 0; i < TRIES && taken[0].size && taken[1].size &&
			(writes[0] < taken[0].lines || writes[1] < taken[1].lines);
	     i++) {
		(void)nanosleep(&signal_pause, NULL);
		count = writes_add(s, streams, count);
		count_writes(streams, count, writes);
	}
	return count;
}

/* What is in the pipes, as much as there is room for. True when something came. */
static bool read_both(struct shepherd *s)
{
	static unsigned char streams[WRITES_MAX];
	static size_t kept;
	struct taken taken[2] = { { .data = rooms[0] }, { .data = rooms[1] } };
	size_t count;
	bool more;

	do {
		more = pipe_read(&s->outputs[0], &taken[0]);
		more = pipe_read(&s->outputs[1], &taken[1]) || more;
	} while (more);
	for (int i = 0; i < 2; i++)
		taken[i].lines = count_lines(&taken[i]);
	count = writes_match(s, taken, streams, kept);
	kept = put_in_order(s, taken, streams, count);
	return taken[0].size || taken[1].size;
}

void output_read(struct shepherd *s)
{
	for (int round = 0; round < OUTPUT_ROUNDS && read_both(s); round++)
		;
}

void output_drain(struct shepherd *s)
{
	const uint64_t from = s->outputs[0].log.offset + s->outputs[1].log.offset;

	/* Bounded: a process outside the tree may hold the other end (handed over a socket) and go on writing. */
	while (s->outputs[0].log.offset + s->outputs[1].log.offset - from < DRAIN_MAX_BYTES &&
	       read_both(s))
		;
	for (int i = 0; i < 2; i++) {
		if (s->outputs[i].fd >= 0)
			close(s->outputs[i].fd);
		s->outputs[i].fd = -1;
		task_log_deinit(&s->outputs[i].log);
	}
	task_order_deinit(&s->order);
}
