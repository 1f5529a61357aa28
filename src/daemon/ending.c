/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/ending.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/wait.h"

/* Signals are the process's, so this is, too. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t asked_cond;
	bool up, asked;
} ending = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void signals_of_the_end(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
}

static void *ending_main(void *context)
{
	const struct timespec limit = { .tv_sec = ENDING_MS / 1000,
					.tv_nsec = ENDING_MS % 1000 * 1000000 };
	sigset_t set;
	int number;

	(void)context;
	signals_of_the_end(&set);
	while (sigwait(&set, &number) != 0)
		continue;
	pthread_mutex_lock(&ending.lock);
	const bool up = ending.up;
	ending.asked = true;
	pthread_cond_broadcast(&ending.asked_cond);
	pthread_mutex_unlock(&ending.lock);
	if (!up) {
		log_line(LOG_INFO, "asked to stop while it started; running jobs go on");
		_exit(EXIT_SUCCESS);
	}
	log_line(LOG_INFO, "asked to stop; running jobs go on");
	(void)nanosleep(&limit, NULL);
	log_line(
		LOG_WARN,
		"something that the daemon waits for does not answer: ended after %d s without it; running jobs go on",
		ENDING_MS / 1000);
	_exit(EXIT_SUCCESS);
}

void ending_watch(void)
{
	pthread_t thread;
	sigset_t set;

	signals_of_the_end(&set);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	cond_init(&ending.asked_cond);
	thread_start(&thread, ending_main, NULL);
	pthread_detach(thread);
}

void ending_is_up(void)
{
	pthread_mutex_lock(&ending.lock);
	ending.up = true;
	pthread_mutex_unlock(&ending.lock);
}

bool ending_wait(int64_t wait_ms)
{
	const struct timespec until = wait_until(wait_ms);
	int result = 0;

	pthread_mutex_lock(&ending.lock);
	while (!ending.asked && result == 0)
		result = wait_ms < 0
				 ? pthread_cond_wait(&ending.asked_cond, &ending.lock)
				 : pthread_cond_timedwait(&ending.asked_cond, &ending.lock, &until);
	const bool asked = ending.asked;
	pthread_mutex_unlock(&ending.lock);
	return asked;
}
