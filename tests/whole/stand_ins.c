/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands in for parts of Fairlead that are not of one thread or not of this world: clocks, log, event stream, log files, the
 * look at a checkpoint, random numbers. The linker takes these in place of the library's own, which have the same names.
 */
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/hub.h"
#include "api/log_feed.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "engine/checkpoint.h"
#include "whole.h"

/* --- base/clock.h ------------------------------------------------------------------------------------------------------- */

int64_t clock_wall_ms(void)
{
	return whole->now_ms + whole->wall_off_ms;
}

int64_t clock_boot_ms(void)
{
	return whole->now_ms - whole->start_ms + 1000;
}

/* Only measures how long a turn takes: now and then that is too long. */
int64_t clock_mono_ns(void)
{
	whole->mono_ns += one_in(&whole->random, 50) ? 2500000 : 1000;
	return whole->mono_ns;
}

void clock_boot_id(char out[BOOT_ID_MAX])
{
	snprintf(out, BOOT_ID_MAX, "00000000-0000-0000-0000-%012u", whole->boots);
}

const char *clock_format_local(int64_t wall_ms, char out[LOCAL_TIME_MAX])
{
	snprintf(out, LOCAL_TIME_MAX, "%lld", (long long)wall_ms);
	return out;
}

/* --- base/log.h --------------------------------------------------------------------------------------------------------- */

void log_open(const char *program, enum log_level least)
{
	(void)program;
	(void)least;
}

void log_line(enum log_level level, const char *format, ...)
{
	char text[2048];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	whole_trace(whole, "log %d: %s", level, text);
	if (strstr(text, people_secret(whole)))
		whole_problem(whole, "a secret stands in the log");
}

/* --- random numbers: libsodium's, from the seed ------------------------------------------------------------------------ */

static struct sim_random sodium_random;

static const char *random_name(void)
{
	return "seed";
}

static uint32_t random_number(void)
{
	return (uint32_t)(sim_random_next(&sodium_random) >> 32);
}

static void random_fill(void *const out, const size_t size)
{
	for (size_t i = 0; i < size; i++)
		((uint8_t *)out)[i] = (uint8_t)random_number();
}

static struct randombytes_implementation random_source = { .implementation_name = random_name,
							   .random = random_number,
							   .buf = random_fill };

void stand_ins_begin(uint64_t seed)
{
	sodium_random.state = seed ^ 0x50d1;
	CHECK(randombytes_set_implementation(&random_source) == 0);
	CHECK(sodium_init() >= 0);
}

/* --- the event stream: what is handed to it has left the gate ------------------------------------------------------------ */

/* The linker has calls of event_hub_publish come here (--wrap). */
void __wrap_event_hub_publish(struct event_hub *hub, const struct event *event, const char *text,
			      size_t size);
void __real_event_hub_publish(struct event_hub *hub, const struct event *event, const char *text,
			      size_t size);

void __wrap_event_hub_publish(struct event_hub *hub, const struct event *event, const char *text,
			      size_t size)
{
	if (whole->dead)
		return;
	promises_record(whole, event->seq, event->time_ms, event->kind, text, size);
	__real_event_hub_publish(hub, event, text, size);
	listeners_published(whole);
}

/* --- logs of jobs: nobody reads them ------------------------------------------------------------------------------------ */

struct log_feed {
	int unused;
};

struct log_feed *log_feed_create(const struct api_backend *backend)
{
	struct log_feed *feed = calloc(1, sizeof(*feed));

	(void)backend;
	CHECK(feed);
	return feed;
}

void log_feed_destroy(struct log_feed *feed)
{
	free(feed);
}

void log_feed_begin(struct log_feed *feed, struct call *call, const struct log_wish *wish)
{
	(void)feed;
	(void)call;
	(void)wish;
	UNREACHABLE();
}

/* --- checkpoints: files of the cluster ---------------------------------------------------------------------------------- */

int checkpoint_look(const struct checkpoint_ask *ask, int64_t *ret_bytes, struct err *err)
{
	int64_t bytes = cluster_look(whole->cluster, ask->path);

	if (bytes < 0)
		return err_set(err, ERR_NOT_FOUND, "%s is not there", ask->path);
	*ret_bytes = bytes;
	return 0;
}
