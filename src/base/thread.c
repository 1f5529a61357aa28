/* SPDX-License-Identifier: Apache-2.0 */
#include "base/thread.h"

#include <unistd.h>

#include "base/err.h"
#include "base/log.h"

void thread_start(pthread_t *ret, void *(*main)(void *context), void *context)
{
	if (pthread_create(ret, NULL, main, context) == 0)
		return;
	log_line(
		LOG_ERROR,
		"no thread can be started: raise the limit of processes (ulimit -u, TasksMax of the service), or end some");
	_exit(err_code_exit(ERR_UNAVAILABLE));
}
