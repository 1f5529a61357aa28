/* SPDX-License-Identifier: Apache-2.0 */
/* The last lines of the rank that failed first, below the page of its job: mostly they say why. */
#include <string.h>

#include "cli/jobs/jobs.h"
#include "cli/submission/follow.h"

enum { LINES_SHOWN = 10, BYTES_SHOWN = 4096 };

/* The last lines of a text. When it was cut in front, its first line may be a part of one, and is left out if others follow. */
static const char *last_lines(const char *text, size_t size, bool cut)
{
	const char *at = text + size;
	uint32_t lines = 0;

	if (size && at[-1] == '\n')
		at--;
	while (at > text && (at[-1] != '\n' || ++lines < LINES_SHOWN))
		at--;
	if (at == text && cut && memchr(text, '\n', size))
		at = (const char *)memchr(text, '\n', size) + 1;
	return at;
}

void show_last_lines(struct client *client, struct arena *arena, const json_t *job)
{
	struct log_writer writer = { .fd = STDOUT_FILENO, .raw = isatty(STDOUT_FILENO) != 1 };
	const json_t *attempt = job_newest_attempt(job);
	const unsigned id = (unsigned)get_int(job, "id");
	const int rank = (int)get_int(attempt, "first_failed_rank");
	AUTO_BUF text = BUF_INIT;
	AUTO_BUF head = BUF_INIT;
	struct err unseen; /* who may not read its logs sees the page without them */
	const char *from;

	if (strcmp(get_text(job, "state"), "failed") != 0 || !attempt || rank < 0)
		return;
	if (client_text(client,
			arena_printf(arena,
				     "/api/v1/jobs/%u/logs/%d?stream=both&attempt=%lld&offset=-%d",
				     id, rank, (long long)attempt_id(attempt), BYTES_SHOWN),
			&text, &unseen) < 0 ||
	    !text.size)
		return;
	from = last_lines(text.data, text.size, text.size >= BYTES_SHOWN);
	buf_addf(&head, "\nlast lines of rank %d (`fairlead logs %u/%d` shows all)\n", rank, id,
		 rank);
	output_buf(&head);
	snprintf(writer.prefix, sizeof(writer.prefix), "  ");
	log_write(&writer, from, (size_t)(text.data + text.size - from));
	log_writer_end(&writer);
}
