/* SPDX-License-Identifier: Apache-2.0 */
/* The state of git that a job was submitted from (docs/decisions/0029): readers of its fields, its place in the body, its variables. */
#include <inttypes.h>
#include <string.h>

#include "api/jobfile/jobfile_reading.h"
#include "base/arena.h"
#include "base/check.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/utf8.h"

/* --- an address without who may read it -------------------------------------------------------------------------- */

static bool is_shown(const char *text, size_t most)
{
	const size_t size = strlen(text);
	size_t length;

	if (!size || size > most)
		return false;
	for (size_t at = 0; at < size; at += length) {
		length = utf8_size(text + at, size - at);
		if (!length || utf8_is_c0_c1(utf8_code(text + at, length)))
			return false;
	}
	return true;
}

static size_t word_size(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.-");
}

/* "[::1]:80", "host:", "host". A password with a slash in it ends before its @, and leaves what is no port. */
static bool is_host(const char *text, size_t size)
{
	const char *port = memrchr(text, ':', size);

	if (text[0] == '[' || !port)
		return true;
	return strspn(port + 1, "0123456789") >= size - (size_t)(port + 1 - text);
}

/* Mirrors take an address within an address, https://mirror/https://user:password@host/path; and a space in front leaves no scheme to see. */
static bool has_inner_user(const char *text)
{
	const char *inner = strstr(text, "://");

	return inner && strchr(inner, '@');
}

/* https://user:password@host/path?token=x: without user, password and what is behind the path. */
static const char *bare_url(const char *address, size_t scheme, struct arena *arena)
{
	const char *rest = address + scheme, *at, *bare;
	const size_t authority = strcspn(rest, "/?#");
	size_t skip = 0;

	at = memrchr(rest, '@', authority);
	if (at)
		skip = (size_t)(at + 1 - rest);
	if (!is_host(rest + skip, authority - skip))
		return NULL;
	rest += skip;
	bare = arena_printf(arena, "%.*s%.*s", (int)scheme, address, (int)strcspn(rest, "?#"),
			    rest);
	return has_inner_user(bare + scheme) ? NULL : bare;
}

/* user@host:path, as ssh has it; else a folder of the machine. */
static const char *bare_path(const char *address, struct arena *arena)
{
	const size_t first = strcspn(address, "/"), host = strcspn(address, ":/");
	const char *at = memrchr(address, '@', first);

	if (has_inner_user(address))
		return NULL;
	if (address[host] != ':' || !at)
		return arena_strdup(arena, address);
	if (at > address + host || address[0] == '[')
		return NULL; /* user:password@host, perhaps */
	return arena_strdup(arena, at + 1);
}

const char *job_git_remote(const char *address, struct arena *arena)
{
	const size_t word = word_size(address);
	const char *rest;

	if (!is_shown(address, JOBFILE_REMOTE_MAX))
		return NULL;
	if (word && strncmp(address + word, "://", 3) == 0)
		return bare_url(address, word + 3, arena);
	if (!word || strncmp(address + word, "::", 2) != 0)
		return bare_path(address, arena);
	/* helper::address; what a helper makes of anything else only it knows */
	rest = address + word + 2;
	if (!word_size(rest) || strncmp(rest + word_size(rest), "://", 3) != 0)
		return NULL;
	rest = bare_url(rest, word_size(rest) + 3, arena);
	return rest ? arena_printf(arena, "%.*s::%s", (int)word, address, rest) : NULL;
}

static bool is_commit(const char *text)
{
	const size_t size = strlen(text);

	return (size == 40 || size == 64) && strspn(text, "0123456789abcdef") == size;
}

/* Whether all that is said of it can be. */
static bool is_good(const struct job_git *git)
{
	return (!git->commit || is_commit(git->commit)) &&
	       (!git->branch || is_shown(git->branch, JOBFILE_BRANCH_MAX)) &&
	       (!git->remote || is_shown(git->remote, JOBFILE_REMOTE_MAX)) && git->changed >= -1 &&
	       git->changed <= JOBFILE_CHANGED_MAX && git->untracked >= -1 &&
	       git->untracked <= JOBFILE_CHANGED_MAX;
}

bool job_git_is_known(const struct job_git *git)
{
	return git->commit || git->branch || git->remote || git->changed >= 0 ||
	       git->untracked >= 0;
}

/* --- readers ----------------------------------------------------------------------------------------------------- */

int read_git(struct reading *r, const struct conf *c, const char *what)
{
	if (c->type != CONF_MAP)
		return conf_error(
			r->err, r->file, c,
			"%s must be a map such as {commit: ..., branch: main}; {} notes nothing",
			what);
	return jobfile_read_fields(r, c, "git.");
}

int read_git_commit(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_text(r->err, r->file, c, what, ERR_TEXT_MAX, &r->body.git.commit);

	if (rc >= 0 && !is_commit(r->body.git.commit))
		return conf_error(
			r->err, r->file, c,
			"%s must be a whole commit id: 40 or 64 of the digits 0-9 and a-f", what);
	return rc;
}

int read_git_branch(struct reading *r, const struct conf *c, const char *what)
{
	int rc = conf_text(r->err, r->file, c, what, JOBFILE_BRANCH_MAX, &r->body.git.branch);

	if (rc >= 0 && !is_shown(r->body.git.branch, JOBFILE_BRANCH_MAX))
		return conf_error(r->err, r->file, c,
				  "%s must be the name of a branch, without control characters",
				  what);
	return rc;
}

int read_git_remote(struct reading *r, const struct conf *c, const char *what)
{
	const char *text, *bare;
	int rc = conf_text(r->err, r->file, c, what, JOBFILE_REMOTE_MAX, &text);

	if (rc < 0)
		return rc;
	bare = job_git_remote(text, r->arena);
	if (!bare || strcmp(bare, text) != 0) /* the value is not said: it may be the password */
		return conf_error(
			r->err, r->file, c,
			"%s must be an address without user, password and ?..., such as https://host/path or host:path; it is shown to others",
			what);
	r->body.git.remote = text;
	return 0;
}

int read_git_changed(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 0, JOBFILE_CHANGED_MAX, &r->body.git.changed);
}

int read_git_untracked(struct reading *r, const struct conf *c, const char *what)
{
	return conf_int(r->err, r->file, c, what, 0, JOBFILE_CHANGED_MAX, &r->body.git.untracked);
}

/* --- in the body ------------------------------------------------------------------------------------------------- */

static void add_key(struct buf *out, const char *key)
{
	if (out->data[out->size - 1] != '{')
		buf_addc(out, ',');
	buf_add_json(out, key, strlen(key));
	buf_addc(out, ':');
}

static void add_text(struct buf *out, const char *key, const char *text)
{
	if (!text)
		return;
	add_key(out, key);
	buf_add_json(out, text, strlen(text));
}

static void add_number(struct buf *out, const char *key, int64_t number)
{
	if (number < 0)
		return;
	add_key(out, key);
	buf_addi(out, number);
}

void job_git_write(const struct job_git *git, struct buf *out)
{
	if (!job_git_is_known(git))
		return;
	buf_adds(out, ",\"git\":{");
	add_text(out, "commit", git->commit);
	add_text(out, "branch", git->branch);
	add_number(out, "changed", git->changed);
	add_number(out, "untracked", git->untracked);
	add_text(out, "remote", git->remote);
	buf_addc(out, '}');
}

static const char *read_text(struct json_reader *json, struct arena *arena)
{
	struct json_slice slice = { 0 };

	pull_string(json, &slice);
	return pull_text(json, &slice, arena);
}

static void read_members(struct json_reader *json, struct arena *arena, struct job_git *git)
{
	struct json_slice key;

	pull_object(json);
	while (pull_member(json, &key)) {
		if (pull_key_is(&key, "commit"))
			git->commit = read_text(json, arena);
		else if (pull_key_is(&key, "branch"))
			git->branch = read_text(json, arena);
		else if (pull_key_is(&key, "changed"))
			pull_int(json, &git->changed);
		else if (pull_key_is(&key, "untracked"))
			pull_int(json, &git->untracked);
		else if (pull_key_is(&key, "remote"))
			git->remote = read_text(json, arena);
		else
			pull_skip(json);
	}
}

/* By a reader of its own: the job does not need it, so what is wrong in it keeps nobody from the rest of the body. */
void job_git_read(struct json_reader *json, struct arena *arena, struct job_git *git)
{
	struct json_reader own;
	const char *from;

	(void)pull_peek(json);
	from = json->at;
	pull_skip(json);
	if (json->problem)
		return;
	pull_init(&own, from, (size_t)(json->at - from));
	read_members(&own, arena, git);
	if (pull_finish(&own, NULL) == 0 && is_good(git))
		return;
	*git = JOB_GIT_NONE;
	git->is_broken = true;
}

/* --- for its tasks ----------------------------------------------------------------------------------------------- */

const char *const *job_git_env(const struct job_git *git, struct arena *arena)
{
	const char **words = arena_new_array(arena, const char *, 6);
	size_t count = 0;

	if (git->commit)
		words[count++] = arena_printf(arena, "FAIRLEAD_GIT_COMMIT=%s", git->commit);
	if (git->branch)
		words[count++] = arena_printf(arena, "FAIRLEAD_GIT_BRANCH=%s", git->branch);
	if (git->changed >= 0)
		words[count++] = arena_printf(arena, "FAIRLEAD_GIT_CHANGED=%" PRId64, git->changed);
	if (git->untracked >= 0)
		words[count++] =
			arena_printf(arena, "FAIRLEAD_GIT_UNTRACKED=%" PRId64, git->untracked);
	if (git->remote)
		words[count++] = arena_printf(arena, "FAIRLEAD_GIT_REMOTE=%s", git->remote);
	return words;
}
