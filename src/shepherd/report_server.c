/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report socket (docs/task-environment.md). Everything that arrives here is the job's own and
 * may be hostile: at most CLIENTS_MAX connections, one line buffer each, answers that a client does
 * not read close its connection, and no more than CHECKPOINTS_PER_WINDOW checkpoint reports in
 * CHECKPOINT_WINDOW_MS (each costs an fsync).
 *
 * A checkpoint is looked at (report_look.c), and answered after its line in `reports` is on disk. Progress is answered when it is
 * taken, and written at most once a second: only the newest step matters. When the file passes
 * REPORTS_FILE_MAX it is written anew with the newest checkpoints; numbers go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "engine/failpoint.h"
#include "engine/local/fact_file.h"
#include "engine/local/place.h"
#include "engine/own_folder.h"
#include "shepherd/pod.h"
#include "shepherd/shepherd.h"
#include "store/io.h"

enum { REPORTS_FILE_MAX = 1 << 20, REPORTS_KEPT = 64, LOOK_AGAIN_MS = 1000 };

int report_server_open(struct shepherd *s, struct err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct report_server *server = &s->reports;
	int run, rc = 0;

	if (strlen(s->spec.run) + sizeof("/report") > sizeof(address.sun_path))
		return err_set(err, ERR_TOO_LARGE,
			       "the path of the report socket is too long: %s/report", s->spec.run);
	/* The folder is the daemon's, so nobody can put another file under this name meanwhile. */
	run = own_folder_open(s->spec.run, err);
	if (run < 0)
		return run;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/report", run);
	(void)unlinkat(run, "report", 0);
	server->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->fd < 0 || bind(server->fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fchmodat(run, "report", 0600, 0) < 0 || listen(server->fd, CLIENTS_MAX) < 0)
		rc = err_errno(err, ERR_IO, errno, "could not make the report socket %s/report",
			       s->spec.run);
	else if (geteuid() == 0 &&
		 fchownat(run, "report", s->spec.uid, s->spec.gid, AT_SYMLINK_NOFOLLOW) < 0)
		rc = err_errno(err, ERR_IO, errno,
			       "could not give the report socket to user \"%s\"", s->spec.user);
	close(run);
	return rc;
}

static void client_close(struct report_client *client)
{
	close(client->fd);
	client->fd = -1;
}

void report_server_close(struct shepherd *s)
{
	for (int i = 0; i < CLIENTS_MAX; i++)
		if (s->reports.clients[i].fd >= 0)
			client_close(&s->reports.clients[i]);
	if (s->reports.fd >= 0)
		close(s->reports.fd);
	if (s->reports.file >= 0)
		close(s->reports.file);
	s->reports.fd = s->reports.file = -1;
}

/* --- the file --- */

/* Keeps the newest checkpoints of the old text. */
static void keep_newest(const struct buf *old, struct buf *out)
{
	size_t starts[REPORTS_KEPT] = { 0 }, count = 0;
	const char *text = buf_text(old);

	for (size_t at = 0; at < old->size;) {
		const char *end = memchr(text + at, '\n', old->size - at);
		size_t size = end ? (size_t)(end - text) + 1 - at : old->size - at;

		if (end && memmem(text + at, size, "\"checkpoint\":true", 17))
			starts[count++ % REPORTS_KEPT] = at;
		at += size;
	}
	for (size_t i = count > REPORTS_KEPT ? count - REPORTS_KEPT : 0; i < count; i++) {
		size_t at = starts[i % REPORTS_KEPT];

		buf_add(out, text + at, strcspn(text + at, "\n") + 1);
	}
}

static int compact(struct shepherd *s, struct err *err)
{
	AUTO_BUF old = BUF_INIT, kept = BUF_INIT;

	if (place_read(s->folder, "reports", &old, err) < 0)
		return -1;
	keep_newest(&old, &kept);
	/* They were acknowledged: the new file is on disk before it takes the place of the old one. */
	if (place_put_durable(io_real(), s->path, "reports", buf_text(&kept), kept.size, err) < 0)
		return -1;
	close(s->reports.file);
	s->reports.file = -1;
	return 0;
}

static int open_file(struct shepherd *s, struct err *err)
{
	struct report_server *server = &s->reports;

	if (server->file >= 0 && server->file_bytes > REPORTS_FILE_MAX && compact(s, err) < 0)
		return -1;
	if (server->file >= 0)
		return 0;
	server->file = openat(s->folder, "reports",
			      O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	struct stat st;
	if (server->file < 0 || fstat(server->file, &st) < 0 || fsync(s->folder) < 0)
		return err_errno(err, ERR_IO, errno, "the report could not be kept");
	server->file_bytes = st.st_size;
	return 0;
}

/* One write per line: a reader sees whole lines or an unfinished last one. What a failed write left
 * is cut off. */
static int append(struct shepherd *s, const struct engine_fact *fact, struct err *err)
{
	AUTO_BUF line = BUF_INIT;
	struct report_server *server = &s->reports;

	fact_format(&line, fact);
	if (open_file(s, err) < 0)
		return -1;
	ssize_t n = FAILPOINT_RANK("report-write", s->spec.rank)
			    ? (errno = ENOSPC, -1)
			    : write(server->file, line.data, line.size);
	if (n != (ssize_t)line.size) {
		int saved = n < 0 ? errno : ENOSPC;

		if (ftruncate(server->file, server->file_bytes) < 0) {
			/* the torn line stays and is passed over by the reader */
		}
		return err_errno(err, ERR_IO, saved, "the report could not be kept");
	}
	server->file_bytes += n;
	if (fact->checkpoint &&
	    (FAILPOINT_RANK("report-sync", s->spec.rank) ? (errno = EIO, -1)
							 : fdatasync(server->file)) < 0)
		return err_errno(err, ERR_IO, errno, "the report could not be kept");
	if (fact->checkpoint)
		asking_reported(s);
	if (s->pod)
		pod_reported(s->pod, fact);
	return 0;
}

int64_t report_server_flush(struct shepherd *s, bool now)
{
	struct report_server *server = &s->reports;
	int64_t clock = clock_boot_ms(), due = server->progress_at_ms + PROGRESS_EVERY_MS;
	struct err err;

	if (!server->progress_pending)
		return INT64_MAX;
	if (!now && clock < due)
		return due - clock;
	server->progress_pending = false;
	server->progress_at_ms = clock;
	(void)append(s, &server->progress, &err); /* the next one will say more anyway */
	return INT64_MAX;
}

/* --- one line --- */

static int check_rate(struct report_server *server, struct err *err)
{
	int64_t now = clock_boot_ms();

	if (now - server->window_at_ms >= CHECKPOINT_WINDOW_MS) {
		server->window_at_ms = now;
		server->window_count = 0;
	}
	if (++server->window_count > CHECKPOINTS_PER_WINDOW)
		return err_set(err, ERR_UNAVAILABLE,
			       "more than %d checkpoint reports in %d seconds",
			       CHECKPOINTS_PER_WINDOW, CHECKPOINT_WINDOW_MS / 1000);
	return 0;
}

enum { ANSWER_LATER = 1 };

/* ANSWER_LATER: a checkpoint is looked at first. */
static int take_report(struct shepherd *s, const struct report *report, struct err *err)
{
	struct report_server *server = &s->reports;
	struct engine_fact fact = {
		.kind = ENGINE_REPORT,
		.attempt = s->spec.attempt,
		.rank = s->spec.rank,
		.time_ms = clock_wall_ms(),
		.number = server->number + 1,
		.step = report->step,
		.checkpoint = report->has_checkpoint,
	};

	if (s->phase != RUNNING && s->phase != ENDING && s->phase != STARTING)
		return err_set(err, ERR_CONFLICT, "the task does not run yet");
	if (!report->has_checkpoint) {
		server->number++;
		server->progress = fact;
		server->progress_pending = true;
		(void)report_server_flush(s, false);
		return 0;
	}
	if (report_path(report, s->spec.checkpoint_dir, fact.path, err) < 0 ||
	    check_rate(server, err) < 0)
		return -1;
	server->looked = fact;
	return report_look_begin(s, err) < 0 ? -1 : ANSWER_LATER;
}

/* It was looked at: now it counts, or does not. */
static int take_looked(struct shepherd *s, int result, struct err *err)
{
	struct report_server *server = &s->reports;

	server->looked.bytes = report_look_end(s, result);
	if (result < 0)
		return result;
	(void)report_server_flush(s, true); /* numbers in the file only grow */
	server->looked.number = ++server->number;
	return append(s, &server->looked, err);
}

static void answer(struct report_client *client, const struct err *err)
{
	struct buf line = BUF_INIT;

	if (!err) {
		buf_adds(&line, "{\"ok\": true}\n");
	} else {
		buf_adds(&line, "{\"ok\": false, \"error\": ");
		buf_add_json(&line, err->text, strlen(err->text));
		buf_adds(&line, "}\n");
	}
	if (client->out_size + line.size > sizeof(client->out)) {
		client_close(client); /* it sends and does not read */
	} else {
		memcpy(client->out + client->out_size, line.data, line.size);
		client->out_size += line.size;
	}
	buf_deinit(&line);
}

static void take_line(struct shepherd *s, struct report_client *client, const char *line,
		      size_t size)
{
	struct report report;
	struct err err;
	int result = report_parse(line, size, &report, &err);

	if (result == 0 && report.watch)
		client->watches = true;
	if (result == 0 && (report.has_checkpoint || report.step >= 0))
		result = take_report(s, &report, &err);
	if (result == ANSWER_LATER)
		s->reports.look_client = (int)(client - s->reports.clients);
	else
		answer(client, result < 0 ? &err : NULL);
}

static void take_lines(struct shepherd *s, struct report_client *client)
{
	size_t at = 0;
	char *end;

	while (client->fd >= 0 && !s->reports.look &&
	       (end = memchr(client->in + at, '\n', client->in_size - at))) {
		size_t size = (size_t)(end - client->in) - at;

		if (!client->skipping)
			take_line(s, client, client->in + at, size);
		client->skipping = false;
		at += size + 1;
	}
	client->in_size -= at;
	memmove(client->in, client->in + at, client->in_size);
	if (client->fd >= 0 && !s->reports.look && client->in_size > REPORT_LINE_MAX) {
		struct err err;

		err_set(&err, ERR_TOO_LARGE, "a report is one line of at most %d bytes",
			REPORT_LINE_MAX);
		if (!client->skipping)
			answer(client, &err);
		client->skipping = true;
		client->in_size = 0;
	}
}

/* --- connections --- */

static void client_write(struct report_client *client)
{
	ssize_t n = send(client->fd, client->out, client->out_size, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		client_close(client);
	} else if (n > 0) {
		client->out_size -= (size_t)n;
		memmove(client->out, client->out + n, client->out_size);
	}
}

static void client_read(struct shepherd *s, struct report_client *client)
{
	ssize_t n = recv(client->fd, client->in + client->in_size,
			 sizeof(client->in) - client->in_size, MSG_DONTWAIT);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		client_close(client);
		return;
	}
	if (n > 0) {
		client->in_size += (size_t)n;
		take_lines(s, client);
	}
	if (client->fd >= 0 && client->out_size)
		client_write(client);
}

static void look_handle(struct shepherd *s)
{
	struct report_client *client = &s->reports.clients[s->reports.look_client];
	struct err err;
	int result;

	if (!report_look_is_over(s, &result, &err))
		return;
	result = take_looked(s, result, &err);
	if (client->fd < 0)
		return; /* it did not wait */
	answer(client, result < 0 ? &err : NULL);
	if (client->fd >= 0)
		take_lines(s, client); /* what it sent meanwhile */
	if (client->fd >= 0 && client->out_size)
		client_write(client);
}

void report_server_settle(struct shepherd *s)
{
	while (s->reports.look) {
		struct pollfd over = { .fd = report_look_fd(s->reports.look), .events = POLLIN };

		(void)poll(&over, 1, LOOK_AGAIN_MS);
		look_handle(s);
	}
}

/* The socket is 0600 and the job user's; the kernel's word on who calls is asked for all the same. */
static bool caller_may(const struct shepherd *s, int fd)
{
	struct ucred who;
	socklen_t size = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
	       (who.uid == s->spec.uid || who.uid == 0);
}

static void accept_client(struct shepherd *s)
{
	int fd = accept4(s->reports.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	for (int i = 0; i < CLIENTS_MAX && caller_may(s, fd); i++) {
		struct report_client *client = &s->reports.clients[i];

		if (client->fd >= 0 || (s->reports.look && i == s->reports.look_client))
			continue; /* the answer that is due is not for somebody else */
		client->fd = fd;
		client->watches = client->skipping = false;
		client->in_size = client->out_size = 0;
		return;
	}
	close(fd);
}

void report_server_look(struct shepherd *s)
{
	if (s->reports.look)
		look_handle(s);
}

size_t report_server_polls(struct shepherd *s, struct pollfd *polls, size_t room)
{
	size_t count = 0;

	if (s->reports.fd < 0 || room < CLIENTS_MAX + 1)
		return 0;
	polls[count++] = (struct pollfd){ .fd = s->reports.fd, .events = POLLIN };
	if (s->reports.look) { /* nothing is read meanwhile */
		polls[count++] =
			(struct pollfd){ .fd = report_look_fd(s->reports.look), .events = POLLIN };
		return count;
	}
	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct report_client *client = &s->reports.clients[i];

		if (client->fd >= 0)
			polls[count++] = (struct pollfd){
				.fd = client->fd,
				.events = (short)(POLLIN | (client->out_size ? POLLOUT : 0)),
			};
	}
	return count;
}

void report_server_handle(struct shepherd *s, const struct pollfd *poll)
{
	if (!poll->revents)
		return;
	if (poll->fd == s->reports.fd) {
		accept_client(s);
		return;
	}
	if (s->reports.look) {
		if (poll->fd == report_look_fd(s->reports.look))
			look_handle(s);
		return; /* begun in this turn: the others wait */
	}
	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct report_client *client = &s->reports.clients[i];

		if (client->fd != poll->fd)
			continue;
		if (poll->revents & POLLOUT)
			client_write(client);
		if (client->fd >= 0 && poll->revents & (POLLIN | POLLHUP | POLLERR))
			client_read(s, client);
		return;
	}
}

int report_server_tell(struct shepherd *s, const char *line, size_t size)
{
	int told = 0;

	for (int i = 0; i < CLIENTS_MAX; i++) {
		struct report_client *client = &s->reports.clients[i];

		if (client->fd < 0 || !client->watches ||
		    client->out_size + size > sizeof(client->out))
			continue;
		memcpy(client->out + client->out_size, line, size);
		client->out_size += size;
		client_write(client);
		told++;
	}
	return told;
}

void report_server_notice(struct shepherd *s, int64_t grace_ms)
{
	char line[96];
	int n = grace_ms < 0 ? snprintf(line, sizeof(line), "{\"notice\": \"checkpoint\"}\n")
			     : snprintf(line, sizeof(line),
					"{\"notice\": \"checkpoint\", \"grace_ms\": %" PRId64 "}\n",
					grace_ms);

	(void)report_server_tell(s, line, (size_t)n);
}
