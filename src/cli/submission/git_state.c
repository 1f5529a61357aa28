/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How files are compared without the repository's settings: in a git directory of ours, which has the commit as its HEAD and no settings but
 * those of a list (what a file name or a line end is). The objects and the index are the repository's, by variables of git. So a filter, a
 * monitor or a hook that the repository names does not exist there, nor whatever later releases of git learn to run.
 */
#include "cli/submission/git_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/utf8.h"
#include "cli/submission/git_program.h"

enum {
	ANSWER_MAX = 16384, /* of paths and names */
	SETTINGS_PASSED = 16,
	SHARED_INDEXES_MAX = 16
};

struct repository {
	struct arena *arena;
	struct git_program git;
	const char *folder;
	int64_t begin_ms;
	const char *commit, *branch; /* as git says them; NULL = none */
	const char *top, *own,
		*common; /* work tree, its git directory, that of all its work trees */
	const char *remote; /* as it is set */
	const char *settings[2 * SETTINGS_PASSED + 1]; /* "-c", "core.eol=lf", ... */
};

static bool keep(void *context, const char *data, size_t size)
{
	struct buf *out = context;

	buf_add(out, data, size);
	return out->size <= GIT_SETTINGS_MAX;
}

/* --- texts that anybody may have written ---------------------------------------------------------------------------- */

/* Bytes that are no text, and controls, as U+FFFD. */
static const char *as_text(const char *bytes, struct arena *arena)
{
	AUTO_BUF out = BUF_INIT;
	size_t left = strlen(bytes), size;

	for (; left; bytes += size, left -= size) {
		size = utf8_size(bytes, left);
		if (size && !utf8_is_c0_c1(utf8_code(bytes, size)))
			buf_add(&out, bytes, size);
		else
			buf_adds(&out, "\xef\xbf\xbd");
		size = size ? size : 1;
	}
	return arena_strdup(arena, buf_text(&out));
}

/* What is before the next line end, which is taken away; NULL = there is none. */
static const char *line_take(const char **text, struct arena *arena)
{
	const char *begin = *text, *end = strchr(begin, '\n');

	if (!end)
		return NULL;
	*text = end + 1;
	return arena_strndup(arena, begin, (size_t)(end - begin));
}

/* --- where it is ------------------------------------------------------------------------------------------------------ */

/* Most folders are in no work tree, and git need not be asked. */
static bool is_perhaps(const char *folder, struct arena *arena)
{
	size_t size = strlen(folder);
	struct stat st;

	for (;;) {
		if (lstat(arena_printf(arena, "%.*s/.git", (int)size, folder), &st) == 0)
			return true;
		while (size && folder[size - 1] != '/')
			size--;
		while (size && folder[size - 1] == '/')
			size--;
		if (!size)
			return lstat("/.git", &st) == 0;
	}
}

/* The text of a small file without the line end behind it. */
static const char *small_file(const char *path, struct arena *arena)
{
	char text[PATH_MAX + 2];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (fd >= 0)
		close(fd);
	if (size <= 0)
		return NULL;
	text[size] = '\0';
	if (text[size - 1] == '\n')
		text[size - 1] = '\0';
	return arena_strdup(arena, text);
}

static const char *whole_path(const char *path, struct arena *arena)
{
	char whole[PATH_MAX];

	return realpath(path, whole) ? arena_strdup(arena, whole) : NULL;
}

/* The one line of each that can have line ends comes last. */
static bool answer_read(struct repository *r, const char *text, bool has_commit)
{
	const char *inside = line_take(&text, r->arena), *up = line_take(&text, r->arena), *shared;
	size_t size;

	if (!inside || !up || strcmp(inside, "true") != 0)
		return false;
	if (has_commit) {
		r->commit = line_take(&text, r->arena);
		r->branch = line_take(&text, r->arena);
		if (!r->branch)
			return false;
	}
	size = strlen(text);
	if (size < 2 || text[0] != '/')
		return false;
	r->own = arena_strndup(r->arena, text, size - 1);
	r->top = whole_path(arena_printf(r->arena, "%s/%s", r->folder, up), r->arena);
	shared = small_file(arena_printf(r->arena, "%s/commondir", r->own), r->arena);
	r->common = r->own;
	if (shared)
		r->common = whole_path(
			shared[0] == '/' ? shared : arena_printf(r->arena, "%s/%s", r->own, shared),
			r->arena);
	return r->top && r->common;
}

/* Builds for tests take another time from the variable: on a busy machine git is late where a test asks what it says. */
static int64_t end_of(const struct repository *r, int64_t within_ms, const char *variable)
{
#ifdef FAIRLEAD_FAILPOINTS
	const char *text = getenv(variable);

	if (text && *text)
		within_ms = strtol(text, NULL, 10);
#else
	(void)variable;
#endif
	return r->begin_ms + within_ms;
}

/* A repository without a commit has a branch all the same. */
static bool places_ask(struct repository *r)
{
	const char *const all[] = { "-C",
				    r->folder,
				    "rev-parse",
				    "--is-inside-work-tree",
				    "--show-cdup",
				    "HEAD",
				    "--symbolic-full-name",
				    "HEAD",
				    "--absolute-git-dir",
				    NULL };
	const char *const places[] = { "-C",          r->folder,
				       "rev-parse",   "--is-inside-work-tree",
				       "--show-cdup", "--absolute-git-dir",
				       NULL };
	const char *const branch[] = { "-C", r->folder, "symbolic-ref", "-q", "HEAD", NULL };
	const int64_t end_ms = end_of(r, GIT_ASK_MS, "FAIRLEAD_TEST_GIT_ASK_MS");
	AUTO_BUF text = BUF_INIT;
	const char *at;
	int rc = git_run(&r->git, all, end_ms, keep, &text);

	if (rc == 0)
		return text.size < ANSWER_MAX && answer_read(r, buf_text(&text), true);
	if (rc != 128)
		return false;
	buf_clear(&text);
	if (git_run(&r->git, places, end_ms, keep, &text) != 0 || text.size > ANSWER_MAX ||
	    !answer_read(r, buf_text(&text), false))
		return false;
	buf_clear(&text);
	if (git_run(&r->git, branch, end_ms, keep, &text) == 0) {
		at = buf_text(&text);
		r->branch = line_take(&at, r->arena);
	}
	return true;
}

/* --- settings ----------------------------------------------------------------------------------------------------------- */

/* What of the settings says how files are to be compared; none of these runs anything. */
static bool is_passed(const char *key)
{
	static const char *const keys[] = { "core.filemode",       "core.symlinks",
					    "core.ignorecase",     "core.precomposeunicode",
					    "core.autocrlf",       "core.eol",
					    "core.trustctime",     "core.checkstat",
					    "core.excludesfile",   "core.attributesfile",
					    "core.sparsecheckout", "core.sparsecheckoutcone",
					    "index.sparse" };

	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (strcmp(key, keys[i]) == 0)
			return true;
	return false;
}

/* The last one wins, as in git. */
static void setting_pass(struct repository *r, const char *key, const char *value)
{
	const size_t size = strlen(key);
	size_t i = 1;

	while (r->settings[i] &&
	       (strncmp(r->settings[i], key, size) != 0 || r->settings[i][size] != '='))
		i += 2;
	if (i > 2 * SETTINGS_PASSED - 1)
		return;
	r->settings[i - 1] = "-c";
	r->settings[i] = arena_printf(r->arena, "%s=%s", key, value);
}

/* "remote.NAME.url": NAME, which may have dots. */
static const char *remote_of(const char *key, struct arena *arena)
{
	const size_t size = strlen(key);

	if (strncmp(key, "remote.", 7) != 0 || size < 12 || strcmp(key + size - 4, ".url") != 0)
		return NULL;
	return arena_strndup(arena, key + 7, size - 11);
}

/* "key\nvalue\0" for each; the value of one that is only named is missing, and means true. */
static void settings_ask(struct repository *r)
{
	const char *const words[] = { "-C", r->folder, "config", "--list", "-z", NULL };
	const char *wanted = NULL, *name = NULL, *best = NULL, *key;
	AUTO_BUF text = BUF_INIT;
	int rank = 0;

	if (git_run(&r->git, words, end_of(r, GIT_ASK_MS, "FAIRLEAD_TEST_GIT_ASK_MS"), keep,
		    &text) != 0)
		return;
	if (r->branch && strncmp(r->branch, "refs/heads/", 11) == 0)
		wanted = arena_printf(r->arena, "branch.%s.remote", r->branch + 11);
	for (int pass = 0; pass < 2; pass++)
		for (const char *at = buf_text(&text), *end = at + text.size; at < end;
		     at += strlen(at) + 1) {
			const char *value = strchr(at, '\n');
			int now;

			key = value ? arena_strndup(r->arena, at, (size_t)(value - at)) : at;
			if (pass == 0) {
				if (is_passed(key))
					setting_pass(r, key, value ? value + 1 : "true");
				if (wanted && value && strcmp(key, wanted) == 0)
					name = arena_strdup(r->arena, value + 1);
				continue;
			}
			key = value ? remote_of(key, r->arena) : NULL;
			if (!key)
				continue;
			now = name && strcmp(key, name) == 0 ? 3
			      : strcmp(key, "origin") == 0   ? 2
							     : 1;
			if (now > rank) {
				rank = now;
				best = arena_strdup(r->arena, value + 1);
			}
		}
	r->remote = best;
}

/* --- what differs ----------------------------------------------------------------------------------------------------- */

struct count {
	int64_t changed, untracked;
	bool inside; /* of an entry */
};

/* Entries of `status --porcelain=v2 -z`, each with a NUL behind it: "1 ..." and "u ..." differ, "? ..." is not known to git. */
static bool count_take(void *context, const char *data, size_t size)
{
	struct count *count = context;

	for (size_t at = 0; at < size;) {
		const char *end = memchr(data + at, '\0', size - at);

		if (!count->inside) {
			count->untracked += data[at] == '?';
			count->changed += data[at] == '1' || data[at] == '2' || data[at] == 'u';
		}
		count->inside = !end;
		at = end ? (size_t)(end - data) + 1 : size;
	}
	return true;
}

static bool file_make(int folder, const char *name, const char *text)
{
	int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return good;
}

/* An index may be in two files; the larger one is named by its content and lies beside it. */
static bool shared_link(const struct repository *r, int folder)
{
	DIR *dir = opendir(r->own);
	struct dirent *entry;
	size_t count = 0;
	bool good = true;

	while (dir && good && (entry = readdir(dir)) && count < SHARED_INDEXES_MAX)
		if (strncmp(entry->d_name, "sharedindex.", 12) == 0 && ++count)
			good = symlinkat(arena_printf(r->arena, "%s/%s", r->own, entry->d_name),
					 folder, entry->d_name) == 0;
	if (dir)
		closedir(dir);
	return good;
}

/* A git directory with the commit, and with no settings of the repository. */
static bool home_fill(const struct repository *r, int folder)
{
	const bool is_sha256 = r->commit && strlen(r->commit) == 64;
	const char *head =
		r->commit ? arena_printf(r->arena, "%s\n", r->commit) : "ref: refs/heads/main\n";

	if (mkdirat(folder, "refs", 0700) < 0 || mkdirat(folder, "info", 0700) < 0 ||
	    mkdirat(folder, "objects", 0700) < 0)
		return false;
	if (symlinkat(arena_printf(r->arena, "%s/info/exclude", r->common), folder,
		      "info/exclude") < 0 ||
	    symlinkat(arena_printf(r->arena, "%s/info/attributes", r->common), folder,
		      "info/attributes") < 0 ||
	    symlinkat(arena_printf(r->arena, "%s/info/sparse-checkout", r->own), folder,
		      "info/sparse-checkout") < 0)
		return false;
	return shared_link(r, folder) && file_make(folder, "HEAD", head) &&
	       file_make(folder, "config",
			 is_sha256 ? "[core]\n\trepositoryformatversion = 1\n"
				     "[extensions]\n\tobjectFormat = sha256\n"
				   : "[core]\n\trepositoryformatversion = 0\n");
}

static void home_remove(const char *path)
{
	static const char *const folders[] = { "refs", "objects", "info", "" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		char inner[PATH_MAX];
		struct dirent *entry;
		DIR *dir;

		snprintf(inner, sizeof(inner), "%s/%s", path, folders[i]);
		dir = opendir(inner);
		while (dir && (entry = readdir(dir)))
			(void)unlinkat(dirfd(dir), entry->d_name, 0); /* folders stay */
		if (dir)
			closedir(dir);
		(void)rmdir(inner);
	}
}

static bool status_ask(struct repository *r, const char *home, struct count *count)
{
	const char *words[2 * SETTINGS_PASSED + 8];
	size_t used = 0;

	for (size_t i = 0; r->settings[i]; i++)
		words[used++] = r->settings[i];
	words[used++] = "status";
	words[used++] = "--porcelain=v2";
	words[used++] = "-z";
	words[used++] = "--no-renames";
	words[used++] = "--untracked-files=normal";
	words[used++] =
		"--ignore-submodules=dirty"; /* what is in them would be asked with their settings */
	words[used] = NULL;
	git_set(&r->git, r->arena, arena_printf(r->arena, "GIT_DIR=%s", home));
	git_set(&r->git, r->arena, arena_printf(r->arena, "GIT_WORK_TREE=%s", r->top));
	git_set(&r->git, r->arena, arena_printf(r->arena, "GIT_INDEX_FILE=%s/index", r->own));
	git_set(&r->git, r->arena,
		arena_printf(r->arena, "GIT_OBJECT_DIRECTORY=%s/objects", r->common));
	git_set(&r->git, r->arena, "GIT_CONFIG_GLOBAL=/dev/null");
	git_set(&r->git, r->arena, "GIT_CONFIG_SYSTEM=/dev/null");
	git_set(&r->git, r->arena, "GIT_CONFIG_NOSYSTEM=1");
	return git_run(&r->git, words, end_of(r, GIT_COUNT_MS, "FAIRLEAD_TEST_GIT_COUNT_MS"),
		       count_take, count) == 0;
}

/* Ctrl-C waits for it, so that what is made here does not stay. */
static void differences_count(struct repository *r, struct job_git *ret)
{
	const char *temp = getenv("TMPDIR");
	char *home = arena_printf(r->arena, "%s/fairlead-git-XXXXXX",
				  temp && *temp == '/' ? temp : "/tmp");
	struct count count = { 0 };
	sigset_t all, before;
	int folder;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &before);
	if (mkdtemp(home)) {
		folder = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (folder >= 0 && home_fill(r, folder) && status_ask(r, home, &count)) {
			ret->changed = count.changed > JOBFILE_CHANGED_MAX ? JOBFILE_CHANGED_MAX
									   : count.changed;
			ret->untracked = count.untracked > JOBFILE_CHANGED_MAX ? JOBFILE_CHANGED_MAX
									       : count.untracked;
		}
		if (folder >= 0)
			close(folder);
		home_remove(home);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

/* --- all of it ---------------------------------------------------------------------------------------------------------- */

static const char *branch_name(const struct repository *r)
{
	const char *name = r->branch;

	if (!name || strncmp(name, "refs/", 5) != 0)
		return NULL; /* "HEAD": none is checked out */
	name = as_text(strncmp(name, "refs/heads/", 11) == 0 ? name + 11 : name, r->arena);
	return *name && strlen(name) <= JOBFILE_BRANCH_MAX ? name : NULL;
}

int git_state_read(const char *folder, struct arena *arena, struct job_git *ret,
		   char why[GIT_WHY_MAX])
{
	struct repository *r = arena_new(arena, struct repository);

	*ret = JOB_GIT_NONE;
	why[0] = '\0';
	r->arena = arena;
	r->folder = folder;
	r->begin_ms = clock_boot_ms();
	if (!is_perhaps(folder, arena))
		return 1;
	if (!git_find(arena, &r->git)) {
		snprintf(why, GIT_WHY_MAX, "there is no program git in PATH");
		return 1;
	}
	if (!places_ask(r)) {
		if (r->git.late)
			snprintf(why, GIT_WHY_MAX, "git did not answer within %d ms", GIT_ASK_MS);
		else if (r->git.said[0] && !strstr(r->git.said, "not a git repository"))
			snprintf(why, GIT_WHY_MAX, "%s", as_text(r->git.said, arena));
		return 1;
	}
	settings_ask(r);
	ret->commit = r->commit;
	ret->branch = branch_name(r);
	ret->remote = r->remote ? job_git_remote(as_text(r->remote, arena), arena) : NULL;
	differences_count(r, ret);
	return 0;
}
