/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/background.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child ends its words with one of these bytes; after FAILED comes the error's code and text. */
enum { SAID_READY = 1, SAID_FAILED = 2 };

static int child_detach(int out, const char *folder, struct err *err)
{
	setsid();
	char log[4096];
	snprintf(log, sizeof(log), "%s/daemon.log", folder);
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

/* Passes the child's words on until it says how it went. */
static int parent_wait(int in, struct err *err)
{
	char failure[ERR_TEXT_MAX + 8] = "";
	size_t size = 0;
	bool failed = false;
	char c;
	while (read(in, &c, 1) == 1) {
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
	pid_t child = fork();
	if (child < 0)
		return err_errno(err, ERR_UNAVAILABLE, errno, "the daemon can't be started");
	if (child > 0) {
		close(ends[1]);
		int result = parent_wait(ends[0], err);
		close(ends[0]);
		return result;
	}
	close(ends[0]);
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
	char said[ERR_TEXT_MAX + 8];
	int size = snprintf(said, sizeof(said), "%c%c%s", SAID_FAILED, (char)err->code, err->text);
	(void)!write(background->pipe_fd, said, (size_t)size);
	close(background->pipe_fd);
	background->pipe_fd = -1;
	_exit(1);
}
