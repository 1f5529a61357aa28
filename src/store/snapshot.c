/* SPDX-License-Identifier: Apache-2.0 */
/*
 *	fairlead-snapshot 1 seq=42 time=1700000000000 chain=<64 hex> state=<16 hex> build=0.1.0\n
 *	zstd frame | zstd frame | ...          each of about 1 MiB of "KIND TEXT\n"
 *	end 00000000000000000007 <64 hex>\n    count of records; SHA-256 of all bytes before the digest
 *
 * The trailer has a fixed size, so that it is found from the end; the head ends at the first newline.
 */
#include "store/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/buf.h"
#include "base/check.h"
#include "store/io.h"
#include "store/journal.h"

enum {
	FRAME_BYTES = 1 << 20,
	LEVEL = 1, /* the disk is faster than any higher one */
	TRAILER_HEAD = 4 + 20 + 1, /* "end COUNT " */
	TRAILER_BYTES = TRAILER_HEAD + 64 + 1,
	KEPT = 2,
	HEAD_MAX = 512,
	LINE_MAX_BYTES = RECORD_TEXT_MAX + 16,
};

#define SNAPSHOT_FILE_MAX ((size_t)8 << 30)

struct snapshot_writer {
	struct io *io;
	char *folder, *path, *temporary; /* snapshots/, its file, and the name until then */
	struct io_file *file;
	int64_t offset;
	uint64_t count;
	struct buf lines, packed;
	EVP_MD_CTX *sum;
	ZSTD_CCtx *zstd;
	int error; /* first one; the rest is then refused */
};

/* ---- writing ---- */

static int write_bytes(struct snapshot_writer *w, const void *data, size_t size, bool summed)
{
	if (w->error == 0)
		w->error = w->io->write(w->io, w->file, data, size, w->offset);
	w->offset += (int64_t)size;
	if (summed) {
		int done = EVP_DigestUpdate(w->sum, data, size);
		CHECK(done == 1);
	}
	return w->error;
}

static int write_frame(struct snapshot_writer *w)
{
	if (w->lines.size == 0)
		return w->error;
	size_t bound = ZSTD_compressBound(w->lines.size);
	buf_clear(&w->packed);
	buf_reserve(&w->packed, bound);
	size_t size = ZSTD_compressCCtx(w->zstd, w->packed.data, bound, w->lines.data,
					w->lines.size, LEVEL);
	CHECK(!ZSTD_isError(size));
	buf_clear(&w->lines);
	return write_bytes(w, w->packed.data, size, true);
}

static int write_error(const struct snapshot_writer *w, struct err *err)
{
	return err_errno(err, ERR_IO, -w->error, "cannot write snapshot %s", w->path);
}

static void writer_free(struct snapshot_writer *w)
{
	if (w->file)
		w->io->close(w->io, w->file);
	buf_deinit(&w->lines);
	buf_deinit(&w->packed);
	EVP_MD_CTX_free(w->sum);
	ZSTD_freeCCtx(w->zstd);
	free(w->folder);
	free(w->path);
	free(w->temporary);
	free(w);
}

void snapshot_abandon(struct snapshot_writer *w)
{
	if (!w)
		return;
	(void)w->io->unlink(w->io, w->temporary);
	writer_free(w);
}

/* Remains of a writer that did not get to its end. */
static int drop_temporary(void *context, const char *name)
{
	struct snapshot_writer *w = context;
	size_t length = strlen(name);
	char path[PATH_MAX];
	if (length > 4 && strcmp(name + length - 4, ".tmp") == 0 &&
	    snprintf(path, sizeof(path), "%s/%s", w->folder, name) < (int)sizeof(path))
		(void)w->io->unlink(w->io, path);
	return 0;
}

static void write_head(struct snapshot_writer *w, const struct snapshot_head *head)
{
	AUTO_BUF line = BUF_INIT;
	char hex[DIGEST_HEX_MAX];
	CHECK(!strpbrk(head->build, " \n"));
	buf_addf(&line,
		 "fairlead-snapshot 1 seq=%" PRIu64 " time=%" PRId64 " chain=%s state=%016" PRIx64
		 " build=%s\n",
		 head->seq, head->time_ms, digest_format(&head->chain, hex), head->state_hash,
		 head->build);
	CHECK(line.size <= HEAD_MAX);
	(void)write_bytes(w, line.data, line.size, true);
}

int snapshot_create(const char *folder, struct io *io, const struct snapshot_head *head,
		    struct snapshot_writer **ret, struct err *err)
{
	struct snapshot_writer *w = calloc(1, sizeof(*w));
	CHECK(w);
	w->io = io ? io : io_real();
	int sizes[] = {
		asprintf(&w->folder, "%s/snapshots", folder),
		asprintf(&w->path, "%s/snapshots/%020" PRIu64 ".snap", folder, head->seq),
		asprintf(&w->temporary, "%s/snapshots/%020" PRIu64 ".tmp", folder, head->seq),
	};
	CHECK(sizes[0] > 0 && sizes[1] > 0 && sizes[2] > 0);
	w->sum = EVP_MD_CTX_new();
	w->zstd = ZSTD_createCCtx();
	CHECK(w->sum && w->zstd);
	int done = EVP_DigestInit_ex(w->sum, EVP_sha256(), NULL);
	CHECK(done == 1);
	w->error = w->io->mkdir(w->io, w->folder, 0700);
	if (w->error == 0 || w->error == -EEXIST)
		w->error = w->io->sync_folder(w->io, folder);
	if (w->error == 0)
		w->error = w->io->list(w->io, w->folder, w, drop_temporary);
	if (w->error == 0)
		w->error = w->io->open(w->io, w->temporary, O_RDWR | O_CREAT | O_TRUNC, 0600,
				       &w->file);
	if (w->error == 0)
		write_head(w, head);
	if (w->error < 0) {
		int result = write_error(w, err);
		snapshot_abandon(w);
		return result;
	}
	*ret = w;
	return 0;
}

int snapshot_write(struct snapshot_writer *w, uint32_t kind, const char *text, size_t size,
		   struct err *err)
{
	if (size > RECORD_TEXT_MAX)
		return err_set(err, ERR_TOO_LARGE,
			       "a snapshot record of %zu bytes is over the limit of %d", size,
			       RECORD_TEXT_MAX);
	if (size && memchr(text, '\n', size))
		return err_set(err, ERR_INVALID, "a snapshot record of kind %u holds a line break",
			       kind);
	buf_addu(&w->lines, kind);
	buf_addc(&w->lines, ' ');
	buf_add(&w->lines, text, size);
	buf_addc(&w->lines, '\n');
	w->count++;
	if (w->lines.size >= FRAME_BYTES && write_frame(w) < 0)
		return write_error(w, err);
	return 0;
}

static void write_trailer(struct snapshot_writer *w)
{
	char head[TRAILER_HEAD + 1], hex[DIGEST_HEX_MAX + 1];
	struct digest sum;
	unsigned size = DIGEST_BYTES;
	snprintf(head, sizeof(head), "end %020" PRIu64 " ", w->count);
	(void)write_bytes(w, head, TRAILER_HEAD, true);
	int done = EVP_DigestFinal_ex(w->sum, sum.bytes, &size);
	CHECK(done == 1 && size == DIGEST_BYTES);
	digest_format(&sum, hex);
	hex[64] = '\n';
	(void)write_bytes(w, hex, 65, false);
}

struct name_list {
	uint64_t *seqs; /* ascending */
	size_t count;
};

/* The sequence in "SEQ.snap" with 20 digits; false for any other name. */
static bool parse_name_seq(const char *name, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 20; i++) {
		if (name[i] < '0' || name[i] > '9')
			return false;
		if (__builtin_mul_overflow(*ret, 10, ret) ||
		    __builtin_add_overflow(*ret, (uint64_t)(name[i] - '0'), ret))
			return false;
	}
	return strcmp(name + 20, ".snap") == 0;
}

static int take_name(void *context, const char *name)
{
	struct name_list *list = context;
	uint64_t seq;
	if (!parse_name_seq(name, &seq))
		return 0;
	list->seqs = reallocarray(list->seqs, list->count + 1, sizeof(*list->seqs));
	CHECK(list->seqs);
	list->seqs[list->count++] = seq; /* names come in order, and these sort as their numbers */
	return 0;
}

static void drop_older(struct io *io, const char *folder)
{
	struct name_list list = { 0 };
	char path[PATH_MAX];
	if (io->list(io, folder, &list, take_name) == 0)
		for (size_t i = 0; i + KEPT < list.count; i++)
			if (snprintf(path, sizeof(path), "%s/%020" PRIu64 ".snap", folder,
				     list.seqs[i]) < (int)sizeof(path))
				(void)io->unlink(io, path);
	free(list.seqs);
}

int snapshot_commit(struct snapshot_writer *w, struct err *err)
{
	struct io *io = w->io;
	(void)write_frame(w);
	write_trailer(w);
	if (w->error == 0)
		w->error = io->sync(io, w->file);
	if (w->error == 0)
		w->error = io->rename(io, w->temporary, w->path);
	if (w->error < 0) {
		int result = write_error(w, err);
		snapshot_abandon(w);
		return result;
	}
	/* Older ones go only when this one is on disk with its name. */
	w->error = io->sync_folder(io, w->folder);
	int result = w->error < 0 ? write_error(w, err) : 0;
	if (result == 0)
		drop_older(io, w->folder);
	writer_free(w);
	return result;
}

/* ---- reading ---- */

/* "name=value" at *at, which moves behind the separator. */
static bool head_field(const char **at, const char *name, char separator, char *out, size_t room)
{
	size_t length = strlen(name);
	if (strncmp(*at, name, length) != 0 || (*at)[length] != '=')
		return false;
	const char *value = *at + length + 1, *end = strchr(value, separator);
	if (!end || (size_t)(end - value) >= room)
		return false;
	memcpy(out, value, (size_t)(end - value));
	out[end - value] = '\0';
	*at = end + 1;
	return true;
}

static bool parse_number(const char *text, int base, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(text, &end, base);
	return errno == 0 && end != text && *end == '\0' && *text != '-';
}

static bool parse_head(const char *line, struct snapshot_head *ret)
{
	char value[128];
	uint64_t number;
	const char *at = line + 20; /* behind "fairlead-snapshot 1 " */
	*ret = (struct snapshot_head){ 0 };
	if (!head_field(&at, "seq", ' ', value, sizeof(value)) ||
	    !parse_number(value, 10, &ret->seq))
		return false;
	if (!head_field(&at, "time", ' ', value, sizeof(value)))
		return false;
	bool negative = value[0] == '-';
	if (!parse_number(value + negative, 10, &number) || number > INT64_MAX)
		return false;
	ret->time_ms = negative ? -(int64_t)number : (int64_t)number;
	if (!head_field(&at, "chain", ' ', value, sizeof(value)) ||
	    !digest_parse(value, &ret->chain))
		return false;
	if (!head_field(&at, "state", ' ', value, sizeof(value)) ||
	    !parse_number(value, 16, &ret->state_hash))
		return false;
	return head_field(&at, "build", '\n', ret->build, sizeof(ret->build));
}

struct snapshot_file {
	char *data;
	size_t size;
	size_t body, body_end; /* the frames */
	uint64_t count;
	struct snapshot_head head;
};

/* NULL when the bytes are those that were written. */
static const char *check_bytes(struct snapshot_file *file, uint64_t seq)
{
	if (file->size < TRAILER_BYTES || strncmp(file->data, "fairlead-snapshot ", 18) != 0)
		return "it is not a snapshot or was cut off";
	if (strncmp(file->data + 18, "1 ", 2) != 0)
		return "it is of another format";
	const char *trailer = file->data + file->size - TRAILER_BYTES;
	char hex[DIGEST_HEX_MAX], count[21];
	struct digest is = digest_of(file->data, file->size - 65);
	digest_format(&is, hex);
	memcpy(count, trailer + 4, 20);
	count[20] = '\0';
	if (strncmp(trailer, "end ", 4) != 0 || memcmp(trailer + TRAILER_HEAD, hex, 64) != 0 ||
	    trailer[TRAILER_BYTES - 1] != '\n')
		return "its digest does not match";
	const char *end = memchr(file->data, '\n', file->size < HEAD_MAX ? file->size : HEAD_MAX);
	if (!end || !parse_head(file->data, &file->head) || !parse_number(count, 10, &file->count))
		return "its head cannot be read";
	if (file->head.seq != seq)
		return "its head is not that of its name";
	file->body = (size_t)(end + 1 - file->data);
	file->body_end = file->size - TRAILER_BYTES;
	return NULL;
}

/* One line "KIND TEXT" to take; without take it is only counted. */
static int take_line(const char *line, size_t size, void *context,
		     int (*take)(void *context, uint32_t kind, const char *text, size_t size),
		     const char **problem)
{
	uint64_t kind = 0;
	size_t at = 0;
	while (at < size && at < 10 && line[at] >= '0' && line[at] <= '9')
		kind = kind * 10 + (uint64_t)(line[at++] - '0');
	if (at == 0 || at >= size || line[at] != ' ' || kind > UINT32_MAX) {
		*problem = "a record in it cannot be read";
		return 0;
	}
	return take ? take(context, (uint32_t)kind, line + at + 1, size - at - 1) : 0;
}

/* Goes through all records; nonzero of take stops it. */
static int walk(const struct snapshot_file *file, void *context,
		int (*take)(void *context, uint32_t kind, const char *text, size_t size),
		const char **problem)
{
	AUTO_BUF lines = BUF_INIT;
	ZSTD_DCtx *zstd = ZSTD_createDCtx();
	CHECK(zstd);
	size_t part = ZSTD_DStreamOutSize();
	ZSTD_inBuffer in = { file->data + file->body, file->body_end - file->body, 0 };
	uint64_t count = 0;
	size_t state = 0;
	int result = 0;
	while (result == 0 && !*problem && (in.pos < in.size || state != 0)) {
		buf_reserve(&lines, part);
		ZSTD_outBuffer out = { lines.data + lines.size, part, 0 };
		size_t before = in.pos;
		state = ZSTD_decompressStream(zstd, &out, &in);
		if (ZSTD_isError(state) || (out.pos == 0 && in.pos == before)) {
			*problem = "its frames cannot be unpacked";
			break;
		}
		lines.size += out.pos;
		size_t start = 0;
		char *end;
		while (result == 0 && !*problem &&
		       (end = memchr(lines.data + start, '\n', lines.size - start))) {
			size_t size = (size_t)(end - lines.data) - start;
			result = take_line(lines.data + start, size, context, take, problem);
			start += size + 1;
			count++;
		}
		if (lines.size - start > LINE_MAX_BYTES)
			*problem = "a record in it is over its limit";
		memmove(lines.data, lines.data + start, lines.size - start);
		lines.size -= start;
	}
	ZSTD_freeDCtx(zstd);
	if (result == 0 && !*problem && (count != file->count || lines.size))
		*problem = "its count of records does not match";
	return result;
}

/* Reads and verifies all of it; NULL or what is wrong. The data is the caller's to free in any case. */
static const char *load_file(struct io *io, const char *path, uint64_t seq,
			     struct snapshot_file *ret)
{
	const char *problem = NULL;
	*ret = (struct snapshot_file){ 0 };
	int error = io_read_file(io, path, SNAPSHOT_FILE_MAX, &ret->data, &ret->size);
	if (error < 0)
		return err_errno_text(-error);
	problem = check_bytes(ret, seq);
	if (!problem)
		(void)walk(ret, NULL, NULL, &problem);
	return problem;
}

int snapshot_load(const char *folder, struct io *io, uint64_t max_seq,
		  struct snapshot_head *ret_head, void *context,
		  int (*take)(void *context, uint32_t kind, const char *text, size_t size),
		  void (*passed_over)(void *context, const char *name, const char *why),
		  struct err *err)
{
	char snapshots[PATH_MAX], path[PATH_MAX], name[32];
	struct name_list list = { 0 };
	io = io ? io : io_real();
	if (snprintf(snapshots, sizeof(snapshots), "%s/snapshots", folder) >=
	    (int)sizeof(snapshots) - 32)
		return err_set(err, ERR_INVALID, "the name of the data folder is too long");
	int error = io->list(io, snapshots, &list, take_name), result = SNAPSHOT_NONE;
	if (error < 0 && error != -ENOENT)
		result = err_errno(err, ERR_IO, -error, "cannot list %s", snapshots);
	for (size_t i = list.count; i-- > 0 && result == SNAPSHOT_NONE;) {
		struct snapshot_file file;
		snprintf(name, sizeof(name), "%020" PRIu64 ".snap", list.seqs[i]);
		if (snprintf(path, sizeof(path), "%s/%s", snapshots, name) >= (int)sizeof(path))
			continue;
		const char *problem = NULL;
		if (list.seqs[i] > max_seq)
			problem = "it is newer than the journal";
		else
			problem = load_file(io, path, list.seqs[i], &file);
		if (!problem) {
			*ret_head = file.head;
			result = walk(&file, context, take, &problem);
		} else if (passed_over) {
			passed_over(context, name, problem);
		}
		if (list.seqs[i] <= max_seq)
			free(file.data);
	}
	free(list.seqs);
	return result;
}

struct checking {
	struct io *io;
	const char *snapshots;
	void *context;
	void (*damaged)(void *context, const char *name, const char *why);
};

static int check_one(void *context, const char *name)
{
	struct checking *c = context;
	struct snapshot_file file;
	struct io_file *again;
	char path[PATH_MAX];
	uint64_t seq;
	if (!parse_name_seq(name, &seq) ||
	    snprintf(path, sizeof(path), "%s/%s", c->snapshots, name) >= (int)sizeof(path))
		return 0;
	const char *problem = load_file(c->io, path, seq, &file);
	const bool there = c->io->open(c->io, path, O_RDONLY, 0, &again) == 0;
	free(file.data);
	if (there)
		c->io->close(c->io, again);
	if (problem && there) /* else a newer one has taken its place meanwhile */
		c->damaged(c->context, name, problem);
	return 0;
}

void snapshot_check(const char *folder, struct io *io, void *context,
		    void (*damaged)(void *context, const char *name, const char *why))
{
	char snapshots[PATH_MAX];
	struct checking c = { io ? io : io_real(), snapshots, context, damaged };
	if (snprintf(snapshots, sizeof(snapshots), "%s/snapshots", folder) <
	    (int)sizeof(snapshots) - 32)
		(void)c.io->list(c.io, snapshots, &c, check_one);
}
