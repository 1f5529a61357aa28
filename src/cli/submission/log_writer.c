/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "base/utf8.h"
#include "cli/submission/follow.h"

static void write_all(int fd, const char *data, size_t size)
{
	while (size) {
		ssize_t written = write(fd, data, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			exit(err_code_exit(ERR_IO)); /* nobody reads any more */
		data += written;
		size -= (size_t)written;
	}
}

/*
 * Length of a colour or erase-line sequence at text (ESC [ digits ; m or K); 0 = none, -1 = may
 * become one.
 */
static int harmless_sequence(const char *text, size_t size)
{
	size_t i = 2;

	if (text[0] != '\033')
		return 0;
	if (size < 2)
		return -1;
	if (text[1] != '[')
		return 0;
	while (i < size && i < 24 && ((text[i] >= '0' && text[i] <= '9') || text[i] == ';'))
		i++;
	if (i == size)
		return -1;
	return text[i] == 'm' || text[i] == 'K' ? (int)i + 1 : 0;
}

/* Bytes at text that go together; 0 when more must come first. */
static size_t unit(const char *text, size_t size, struct buf *out)
{
	int sequence = harmless_sequence(text, size);
	size_t length = utf8_size(text, size);

	if (sequence < 0 || (!length && size < 4 && ((unsigned char)text[0] & 0xc0) == 0xc0))
		return 0;
	if (sequence > 0) {
		buf_add(out, text, (size_t)sequence);
		return (size_t)sequence;
	}
	if (text[0] == '\n' || text[0] == '\t' || text[0] == '\r' || text[0] == '\b')
		buf_addc(out, text[0]);
	else
		text_for_terminal(out, text, length ? length : 1);
	return length ? length : 1;
}

static void add_lines(struct log_writer *writer, const char *data, size_t size, struct buf *out)
{
	while (size) {
		const char *end = memchr(data, '\n', size);
		size_t length = end ? (size_t)(end - data) + 1 : size;

		if (!writer->mid_line)
			buf_adds(out, writer->prefix);
		buf_add(out, data, length);
		writer->mid_line = !end;
		data += length;
		size -= length;
	}
}

void log_write(struct log_writer *writer, const char *data, size_t size)
{
	AUTO_BUF safe = BUF_INIT;
	AUTO_BUF out = BUF_INIT;
	size_t at = 0, used;

	if (writer->raw) {
		add_lines(writer, data, size, &out);
		write_all(writer->fd, buf_text(&out), out.size);
		return;
	}
	buf_add(&writer->waiting, data, size);
	while (at < writer->waiting.size) {
		used = unit(writer->waiting.data + at, writer->waiting.size - at, &safe);
		if (!used)
			break;
		at += used;
	}
	if (at)
		memmove(writer->waiting.data, writer->waiting.data + at, writer->waiting.size - at);
	writer->waiting.size -= at;
	add_lines(writer, buf_text(&safe), safe.size, &out);
	write_all(writer->fd, buf_text(&out), out.size);
}

void log_writer_end(struct log_writer *writer)
{
	AUTO_BUF out = BUF_INIT;

	if (writer->waiting.size)
		text_for_terminal(&out, writer->waiting.data, writer->waiting.size);
	if (writer->mid_line && writer->prefix[0])
		buf_addc(&out, '\n');
	write_all(writer->fd, buf_text(&out), out.size);
	writer->mid_line = false;
	buf_deinit(&writer->waiting);
}

/* --- both streams ---------------------------------------------------------------------------------------------------- */

static void say_gap(struct log_writer *writer, unsigned long long bytes)
{
	char text[96];

	snprintf(text, sizeof(text), "\n[fairlead: %llu bytes of output were not kept]\n", bytes);
	log_write(writer, text, strlen(text));
}

/* "stdout 120 14": 14 bytes follow, from offset 120. "stdout-gap 120 14": the 14 bytes in front of it were not kept. */
static void begin_piece(struct both_writer *both)
{
	unsigned long long offset = 0, size = 0;
	char name[16] = "";

	if (sscanf(both->head, "%15s %llu %llu", name, &offset, &size) != 3)
		return;
	both->stream = strncmp(name, "stderr", 6) == 0;
	both->next[both->stream] = (int64_t)offset;
	if (strchr(name, '-'))
		say_gap(&both->writers[both->stream], size);
	else
		both->left = size;
}

static size_t take_head(struct both_writer *both, const char *data, size_t size)
{
	const char *end = memchr(data, '\n', size);
	size_t length = end ? (size_t)(end - data) : size, room;

	room = sizeof(both->head) - 1 - both->head_size;
	memcpy(both->head + both->head_size, data, length < room ? length : room);
	both->head_size += length < room ? length : room;
	both->head[both->head_size] = '\0';
	if (!end)
		return size;
	begin_piece(both);
	both->head_size = 0;
	return length + 1;
}

void both_write(struct both_writer *both, const char *data, size_t size)
{
	both->any |= size > 0;
	if (both->plain) {
		both->next[0] += (int64_t)size;
		log_write(&both->writers[0], data, size);
		return;
	}
	while (size) {
		size_t used = size < both->left ? size : (size_t)both->left;

		if (used) {
			log_write(&both->writers[both->stream], data, used);
			both->left -= used;
			both->next[both->stream] += (int64_t)used;
		} else {
			used = take_head(both, data, size);
		}
		data += used;
		size -= used;
	}
}

void both_writer_end(struct both_writer *both)
{
	for (int i = 0; i < 2; i++)
		log_writer_end(&both->writers[i]);
}

bool pods_run_jobs(struct client *client)
{
	json_t *status = NULL;
	struct err err = { 0 };
	bool pods = client_get(client, "/api/v1/status", &status, &err) >= 0 &&
		    json_object_get(status, "cluster");

	json_decref(status);
	return pods;
}
