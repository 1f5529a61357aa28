/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"

static struct timespec now(clockid_t clock)
{
	struct timespec t;

	CHECK(clock_gettime(clock, &t) == 0);
	return t;
}

int64_t clock_wall_ms(void)
{
	struct timespec t = now(CLOCK_REALTIME);

	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_boot_ms(void)
{
	struct timespec t = now(CLOCK_BOOTTIME);

	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t clock_mono_ns(void)
{
	struct timespec t = now(CLOCK_MONOTONIC);

	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void clock_boot_id(char out[BOOT_ID_MAX])
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t size = fd < 0 ? -1 : read(fd, out, BOOT_ID_MAX - 1);

	if (fd >= 0)
		close(fd);
	if (size > 0 && out[size - 1] == '\n')
		size--;
	out[size == 36 ? size : 0] = '\0';
}

const char *clock_format_local(int64_t wall_ms, char out[LOCAL_TIME_MAX])
{
	/* Rounds down before 1970 as well. */
	time_t seconds = (time_t)(wall_ms / 1000 - (wall_ms % 1000 < 0));
	struct tm tm;

	if (!localtime_r(&seconds, &tm) ||
	    !strftime(out, LOCAL_TIME_MAX, "%Y-%m-%d %H:%M:%S", &tm)) {
		out[0] = '?';
		out[1] = '\0';
	}
	return out;
}
