/* SPDX-License-Identifier: Apache-2.0 */
/* The state of git that a job was submitted from, in one line. */
#include "base/check.h"
#include "cli/jobs/jobs.h"

static void files_say(const json_t *git, const char *key, const char *what, struct buf *out)
{
	const int64_t count = get_int(git, key);

	if (!count)
		return;
	buf_addf(out, ", %lld file%s %s", (long long)count, count == 1 ? "" : "s", what);
}

/* "5f0c0a3f... on main, 2 files changed, from https://git.example.com/resnet.git" */
void job_git_say(const json_t *git, struct buf *out)
{
	const char *commit = get_text(git, "commit"), *branch = get_text(git, "branch"),
		   *remote = get_text(git, "remote");

	if (get_text(git, "problem")[0]) {
		buf_adds(out, "not shown: ");
		say_text(out, get_text(git, "problem"));
		return;
	}
	buf_adds(out, *commit ? commit : "no commit");
	buf_adds(out, *branch ? " on " : ", no branch");
	say_text(out, branch);
	if (json_object_get(git, "changed")) {
		files_say(git, "changed", "changed", out);
		files_say(git, "untracked", "unknown to git", out);
		if (!get_int(git, "changed") && !get_int(git, "untracked"))
			buf_adds(out, ", nothing changed");
	} else {
		buf_adds(out, ", not known whether files are changed");
	}
	if (*remote) {
		buf_adds(out, ", from ");
		say_text(out, remote);
	}
}
