/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child ends its words with one of these bytes; after FAILED comes the error's code and text. */
enum { SAID_READY = 1, SAID_FAILED = 2 };
enum { PATIENCE_MS = 2000 };

static void log_path(const char *folder, char ret[static PATH_MAX])
{
	snprintf(ret, PATH_MAX, "%s/daemon.log", folder);
}

static int child_detach(int out, const char *folder, struct err *err)
{
	setsid();
	char log[PATH_MAX];
	log_path(folder, log);
	int log_fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (log_fd < 0 || null_fd < 0)
		return err_errno(err, ERR_IO, errno, "\"%s\" can't be written", log);
	dup2(null_fd, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	close(log_fd);
	close(null_fd);
	return 0;
}

/* From its end on; NULL = it can't be read. */
static FILE *log_follow(const char *folder)
{
	char path[PATH_MAX];
	log_path(folder, path);
	int fd = open(path, O_RDONLY | O_CREAT | O_CLOEXEC, 0640);
	FILE *log = fd < 0 ? NULL : fdopen(fd, "r");
	if (log)
		fseek(log, 0, SEEK_END);
	else if (fd >= 0)
		close(fd);
	return log;
}

/* What keeps it from being up, from its log behind where that ended before. */
static void show_warnings(FILE *log, bool *shown)
{
	static const char mark[] = " fairlead warning: ";
	char line[2048];

	clearerr(log);
	while (fgets(line, sizeof(line), log)) {
		const char *text = strstr(line, mark);

		if (text)
			fprintf(stderr, "fairlead: not up yet: %s", text + sizeof(mark) - 1);
		if (text && !*shown)
			fputs("fairlead: it goes on trying. Ctrl-C ends this waiting alone, `fairlead down` the daemon\n",
			      stderr);
		*shown |= text != NULL;
	}
}

/* The next byte that the child says. */
static bool child_says(int in, FILE *log, bool *shown, char *ret)
{
	struct pollfd said = { .fd = in, .events = POLLIN };

	while (poll(&said, 1, PATIENCE_MS) == 0)
		if (log)
			show_warnings(log, shown);
	return read(in, ret, 1) == 1;
}

/* Passes the child's words on until it says how it went. */
static int parent_wait(int in, FILE *log, struct err *err)
{
	bool shown = false;
	char failure[ERR_TEXT_MAX + ERR_FILE_MAX + 40] = "";
	size_t size = 0;
	bool failed = false;
	char c;
	while (child_says(in, log, &shown, &c)) {
		if (failed) {
			if (size < sizeof(failure) - 1)
				failure[size++] = c;
		} else if (c == SAID_READY) {
			fflush(stdout);
			return BACKGROUND_PARENT;
		} else if (c == SAID_FAILED) {
			failed = true;
		} else {
			putchar(c);
		}
	}
	if (failed && size > 1)
		return err_set(err, (enum err_code)failure[0], "%s", failure + 1);
	return err_set(err, ERR_INTERNAL,
		       "the daemon ended while it started: see daemon.log in the data folder");
}

int background_begin(struct background *background, bool wanted, const char *folder,
		     struct err *err)
{
	background->pipe_fd = -1;
	if (!wanted)
		return 0;
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) != 0)
		return err_errno(err, ERR_UNAVAILABLE, errno, "the daemon can't be started");
	FILE *log = log_follow(folder);
	pid_t child = fork();
	if (child < 0) {
		if (log)
			fclose(log);
		return err_errno(err, ERR_UNAVAILABLE, errno, "the daemon can't be started");
	}
	if (child > 0)
		close(ends[1]);
	int result = child > 0 ? parent_wait(ends[0], log, err) : 0;
	close(ends[0]);
	if (log)
		fclose(log);
	if (child > 0)
		return result;
	background->pipe_fd = ends[1];
	if (child_detach(ends[1], folder, err) < 0) {
		background_failed(background, err);
		_exit(1);
	}
	return 0;
}

void background_ready(struct background *background)
{
	if (background->pipe_fd < 0)
		return;
	fflush(stdout);
	char said = SAID_READY;
	(void)!write(background->pipe_fd, &said, 1);
	close(background->pipe_fd);
	background->pipe_fd = -1;
	dup2(STDERR_FILENO, STDOUT_FILENO);
}

void background_failed(struct background *background, const struct err *err)
{
	if (background->pipe_fd < 0)
		return;
	fflush(stdout);
	char said[ERR_TEXT_MAX + ERR_FILE_MAX + 40], place[ERR_FILE_MAX + 32] = "";
	if (err->file[0] && err->line > 0)
		snprintf(place, sizeof(place), "%s:%d:%d: ", err->file, err->line, err->column);
	else if (err->file[0])
		snprintf(place, sizeof(place), "%s: ", err->file);
	int size = snprintf(said, sizeof(said), "%c%c%s%s", SAID_FAILED, (char)err->code, place,
			    err->text);
	(void)!write(background->pipe_fd, said, (size_t)size);
	close(background->pipe_fd);
	background->pipe_fd = -1;
	_exit(1);
}
