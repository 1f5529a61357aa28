/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/parse.h"

static const char *log_program = "fairlead";
static atomic_int log_least = LOG_INFO;

void log_open(const char *program, enum log_level least)
{
	log_program = program;
	atomic_store(&log_least, (int)least);
}

static const char *level_name(enum log_level level)
{
	switch (level) {
	case LOG_DEBUG: return "debug";
	case LOG_INFO: return "info";
	case LOG_WARN: return "warning";
	case LOG_ERROR: return "error";
	}
	return "error";
}

/* A line leaves in one write, so lines of several threads and processes don't mix. */
void log_line(enum log_level level, const char *format, ...)
{
	char text[2048], time[LOCAL_TIME_MAX];
	int saved = errno, length;
	const char *at;
	size_t left;
	va_list args;
	AUTO_BUF line = BUF_INIT;

	if ((int)level < atomic_load(&log_least))
		return;
	va_start(args, format);
	length = vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	buf_addf(&line, "%s %s %s: ", clock_format_local(clock_wall_ms(), time), log_program,
		 level_name(level));
	text_for_terminal(&line, text, strlen(text));
	buf_adds(&line, length >= (int)sizeof(text) ? " [cut]\n" : "\n");
	at = line.data;
	left = line.size;
	while (left) {
		ssize_t put = write(STDERR_FILENO, at, left);

		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0)
			break; /* nowhere left to complain */
		at += put;
		left -= (size_t)put;
	}
	errno = saved;
}
