/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The program's log: one line per event on stderr (or the daemon's log file). Libraries do not log;
 * programs do, once, where an error stops. No secrets, no raw bytes from outside: text is escaped.
 */
enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR };

void log_open(const char *program, enum log_level least); /* to stderr */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
