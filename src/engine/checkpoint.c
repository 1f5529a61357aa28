/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/check.h"
#include "base/clock.h"
#include "engine/account.h"
#include "engine/failpoint.h"

/* --- the rights of one thread --- */

struct rights {
	uid_t uid;
	gid_t gid;
	int group_count;
	gid_t groups[ACCOUNT_GROUPS_MAX];
	struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3];
};

/* The library's function would change all threads. */
static int thread_set_groups(int count, const gid_t *groups)
{
#ifdef SYS_setgroups32
	return (int)syscall(SYS_setgroups32, count, groups);
#else
	return (int)syscall(SYS_setgroups, count, groups);
#endif
}

/* Both answer what was before and nothing else; an impossible id asks without a change. */
static bool thread_set_ids(uid_t uid, gid_t gid)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
	return (uid_t)setfsuid((uid_t)-1) == uid && (gid_t)setfsgid((gid_t)-1) == gid;
}

/* These of one thread, whatever the library says. */
static bool thread_set_capabilities(const struct __user_cap_data_struct *capabilities)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capset, &head, capabilities) == 0;
}

static bool thread_capabilities(struct __user_cap_data_struct *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };

	return syscall(SYS_capget, &head, ret) == 0;
}

/*
 * The change of file-system ids takes the rights over files, and no others: who may look into the processes of all may also go through /proc/PID/cwd
 * and /proc/PID/root into folders of others. So none is in force meanwhile.
 */
static bool rights_take(const struct rights *rights)
{
	struct rights without = *rights;

	if (thread_set_groups(rights->group_count, rights->groups) != 0 ||
	    !thread_set_ids(rights->uid, rights->gid) || !thread_capabilities(without.capabilities))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(without.capabilities); i++)
		without.capabilities[i].effective = 0;
	return thread_set_capabilities(without.capabilities);
}

/* As root again, which brings the rights over files back. */
static void rights_return(const struct rights *before)
{
	CHECK(thread_set_ids(before->uid, before->gid));
	CHECK(thread_set_capabilities(before->capabilities));
	CHECK(thread_set_groups(before->group_count, before->groups) == 0);
}

/* --- what is there --- */

struct walk {
	const char *path;
	uid_t uid; /* by whose rights it is looked at */
	struct err *err;
	int64_t until_ms, bytes;
	int entries;
	bool cut; /* a limit was reached */
};

/* A file server or this machine lacks something at this moment, and may have it again in the next. */
static bool is_passing(int errnum)
{
	static const int passing[] = { EIO,          ESTALE,       ETIMEDOUT,    ENOTCONN,
				       EHOSTDOWN,    EHOSTUNREACH, ENETUNREACH,  ENETDOWN,
				       ECONNREFUSED, ECONNRESET,   ECONNABORTED, EREMOTEIO,
				       ESHUTDOWN,    EAGAIN,       EINTR,        EMFILE,
				       ENFILE,       ENOMEM };

	for (size_t i = 0; i < ARRAY_SIZE(passing); i++)
		if (passing[i] == errnum)
			return true;
	return false;
}

static int not_readable(const struct walk *walk, int errnum)
{
	if (errnum == ENOENT)
		return err_set(
			walk->err, ERR_NOT_FOUND,
			"there is no checkpoint at \"%.400s\": write it completely, then report it",
			walk->path);
	if (errnum == EACCES || errnum == EPERM)
		return err_errno(
			walk->err, ERR_FORBIDDEN, errnum,
			"the checkpoint \"%.400s\" can't be read by the account with uid %u",
			walk->path, (unsigned int)walk->uid);
	return err_errno(walk->err, is_passing(errnum) ? ERR_UNAVAILABLE : ERR_IO, errnum,
			 "the checkpoint \"%.400s\" can't be read", walk->path);
}

static int walk_folder(struct walk *walk, int fd, int depth);

static int walk_entry(struct walk *walk, DIR *folder, const char *name, int depth)
{
	struct stat st;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return 0;
	if (fstatat(dirfd(folder), name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return is_passing(errno) ? not_readable(walk, errno) : 0;
	if (++walk->entries > CHECKPOINT_ENTRIES_MAX || clock_boot_ms() > walk->until_ms)
		walk->cut = true;
	if (S_ISREG(st.st_mode))
		walk->bytes += st.st_size;
	if (!S_ISDIR(st.st_mode) || walk->cut)
		return 0;
	if (depth == CHECKPOINT_DEPTH_MAX) {
		walk->cut = true;
		return 0;
	}
	int inner = openat(dirfd(folder), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return inner < 0 ? not_readable(walk, errno) : walk_folder(walk, inner, depth + 1);
}

/* Closes fd. */
static int walk_folder(struct walk *walk, int fd, int depth)
{
	DIR *folder = fdopendir(fd);
	const struct dirent *entry;
	int result = 0;

	if (!folder) {
		result = not_readable(walk, errno);
		close(fd);
		return result;
	}
	while (result == 0 && !walk->cut && (errno = 0, entry = readdir(folder)))
		result = walk_entry(walk, folder, entry->d_name, depth);
	if (result == 0 && !walk->cut && errno)
		result = not_readable(walk, errno);
	closedir(folder);
	return result;
}

static int look(struct walk *walk)
{
	struct stat st;

	if (FAILPOINT("checkpoint-look"))
		return not_readable(walk, EIO);
	if (FAILPOINT("checkpoint-forbidden"))
		return not_readable(walk, EACCES);
	if (stat(walk->path, &st) != 0)
		return not_readable(walk, errno);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return err_set(walk->err, ERR_INVALID,
			       "the checkpoint \"%.400s\" is neither a file nor a folder",
			       walk->path);
	/* Opened, a file too: its size may be known to who can't read it. */
	int fd = open(walk->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0)
		return not_readable(walk, errno);
	if (S_ISDIR(st.st_mode))
		return walk_folder(walk, fd, 0);
	walk->bytes = st.st_size;
	close(fd);
	return 0;
}

size_t checkpoint_above(const char *path)
{
	size_t size = strlen(path);

	/* "/a/b/" and "/a/b/." are "/a/b". */
	while (size > 1 &&
	       (path[size - 1] == '/' || (path[size - 1] == '.' && path[size - 2] == '/')))
		size--;
	while (size && path[size - 1] != '/')
		size--;
	while (size > 1 && path[size - 1] == '/')
		size--;
	return size;
}

/* Whether the folder in which it lies gives errors as well: then these are the file server's, and say nothing of the checkpoint. */
static bool is_above_away(const char *path)
{
	AUTO_BUF folder = BUF_INIT;
	const size_t size = checkpoint_above(path);
	DIR *opened;
	bool away;

	if (FAILPOINT("checkpoint-above"))
		return true;
	if (!size)
		return false;
	buf_add(&folder, path, size);
	opened = opendir(buf_text(&folder));
	if (!opened)
		return is_passing(errno);
	errno = 0;
	away = !readdir(opened) && is_passing(errno);
	closedir(opened);
	return away;
}

int checkpoint_look(const struct checkpoint_ask *ask, int64_t *ret_bytes, struct err *err)
{
	struct walk walk = { .path = ask->path,
			     .uid = geteuid() == 0 ? ask->uid : geteuid(),
			     .err = err,
			     .until_ms = clock_boot_ms() + ask->patience_ms };
	struct rights *rights = NULL;
	int result;

	if (geteuid() == 0 && ask->uid != 0) {
		rights = calloc(2, sizeof(*rights));
		CHECK(rights);
		rights[0].group_count = getgroups(ACCOUNT_GROUPS_MAX, rights[0].groups);
		CHECK(rights[0].group_count >= 0);
		rights[0].gid = getegid();
		CHECK(thread_capabilities(rights[0].capabilities));
		rights[1].uid = ask->uid;
		rights[1].gid = ask->gid;
		rights[1].group_count = account_groups(ask->uid, ask->gid, rights[1].groups);
	}
	if (rights && !rights_take(&rights[1]))
		result = err_set(err, ERR_INTERNAL,
				 "the checkpoint could not be looked at as the job's user");
	else
		result = look(&walk);
	if (result == -(int)ERR_UNAVAILABLE && ask->above && is_above_away(ask->path))
		result = -(int)ERR_UNREACHABLE;
	if (rights)
		rights_return(&rights[0]);
	free(rights);
	if (result == 0)
		*ret_bytes = walk.cut ? 0 : walk.bytes;
	return result == 0 && walk.cut ? 1 : result;
}
