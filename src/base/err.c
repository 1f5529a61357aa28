/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Makes text, which a copy may have cut at its end, end with a whole character. */
static void cut_whole(char *text, size_t length)
{
	size_t first = length;

	if (!length)
		return;
	do
		first--;
	while (first && length - first < 4 && ((unsigned char)text[first] & 0xc0) == 0x80);
	if (((unsigned char)text[first] & 0xc0) == 0xc0 && !utf8_size(text + first, length - first))
		text[first] = '\0';
}

int err_setv(struct err *err, enum err_code code, const char *format, va_list args)
{
	int length;

	if (!err)
		return -(int)code;
	err->code = code;
	err->line = 0;
	err->column = 0;
	err->errnum = 0;
	err->file[0] = '\0';
	length = vsnprintf(err->text, sizeof(err->text), format, args);
	if (length >= (int)sizeof(err->text))
		cut_whole(err->text, sizeof(err->text) - 1);
	return -(int)code;
}

int err_set(struct err *err, enum err_code code, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	err_setv(err, code, format, args);
	va_end(args);
	return -(int)code;
}

int err_at(struct err *err, enum err_code code, const char *file, int line, int column,
	   const char *format, ...)
{
	va_list args;
	int length;

	va_start(args, format);
	err_setv(err, code, format, args);
	va_end(args);
	if (!err)
		return -(int)code;
	err->line = line;
	err->column = column;
	length = snprintf(err->file, sizeof(err->file), "%s", file ? file : "");
	if (length >= (int)sizeof(err->file))
		cut_whole(err->file, sizeof(err->file) - 1);
	return -(int)code;
}

int err_errno(struct err *err, enum err_code code, int errnum, const char *format, ...)
{
	size_t length;
	va_list args;

	va_start(args, format);
	err_setv(err, code, format, args);
	va_end(args);
	if (!err)
		return -(int)code;
	err->errnum = errnum;
	length = strlen(err->text);
	snprintf(err->text + length, sizeof(err->text) - length, ": %s", err_errno_text(errnum));
	return -(int)code;
}

bool err_is_full(const struct err *err)
{
	return err && (err->errnum == ENOSPC || err->errnum == EDQUOT);
}

int err_prefix(struct err *err, const char *format, ...)
{
	char old[ERR_TEXT_MAX];
	va_list args;
	size_t length;

	if (!err)
		return -(int)ERR_INTERNAL;
	memcpy(old, err->text, sizeof(old));
	va_start(args, format);
	vsnprintf(err->text, sizeof(err->text), format, args);
	va_end(args);
	length = strlen(err->text);
	if (snprintf(err->text + length, sizeof(err->text) - length, ": %s", old) >=
	    (int)(sizeof(err->text) - length))
		cut_whole(err->text, sizeof(err->text) - 1);
	return -(int)err->code;
}

static const struct {
	const char *name, *text;
	int http, exit;
} codes[ERR_CODE_COUNT] = {
	[ERR_NONE] = { "none", "nothing is wrong", 200, 0 },
#define E(NAME, json, words, http_status, exit_status)                                             \
	[ERR_##NAME] = { json, words, http_status, exit_status },
#include "base/errors.def"
#undef E
};

/* A code that is none of the list is a defect and is shown as one. */
static enum err_code known(enum err_code code)
{
	return (unsigned int)code < ERR_CODE_COUNT ? code : ERR_INTERNAL;
}

const char *err_code_name(enum err_code code)
{
	return codes[known(code)].name;
}

const char *err_code_text(enum err_code code)
{
	return codes[known(code)].text;
}

int err_code_http(enum err_code code)
{
	return codes[known(code)].http;
}

int err_code_exit(enum err_code code)
{
	return codes[known(code)].exit;
}

enum err_code err_code_find(const char *name)
{
	for (int i = ERR_NONE + 1; i < ERR_CODE_COUNT; i++)
		if (strcmp(codes[i].name, name) == 0)
			return (enum err_code)i;
	return ERR_INTERNAL;
}

static const struct {
	int errnum;
	const char *text;
} reasons[] = {
	{ EPERM, "this operation is not permitted" },
	{ ENOENT, "there is no such file or folder" },
	{ ESRCH, "there is no such process" },
	{ EINTR, "it was interrupted" },
	{ EIO, "the device reported a read or write error" },
	{ E2BIG, "the arguments and environment are too long together" },
	{ ENOEXEC, "this file is not a program" },
	{ EBADF, "the file is not open" },
	{ ECHILD, "there is no such child process" },
	{ EAGAIN, "it is busy now" },
	{ ENOMEM, "no memory left" },
	{ EACCES, "permission denied" },
	{ EFAULT, "a wrong address was given" },
	{ EBUSY, "it is in use" },
	{ EEXIST, "it exists already" },
	{ EXDEV, "it lies on another file system" },
	{ ENODEV, "there is no such device" },
	{ ENOTDIR, "a part of the path is not a folder" },
	{ EISDIR, "it is a folder" },
	{ EINVAL, "the system does not accept this value" },
	{ ENFILE, "too many files are open on this machine" },
	{ EMFILE, "too many files are open in this program" },
	{ ETXTBSY, "the program is being written to" },
	{ EFBIG, "the file would become too large" },
	{ ENOSPC, "no space left on the disk" },
	{ ESPIPE, "it is a pipe or socket" },
	{ EROFS, "the file system is read-only" },
	{ EMLINK, "too many links" },
	{ EPIPE, "the other side has closed the connection" },
	{ ERANGE, "a number is out of range" },
	{ ENAMETOOLONG, "the name is too long" },
	{ ENOSYS, "this system can't do it" },
	{ ENOTEMPTY, "the folder is not empty" },
	{ ELOOP, "too many symbolic links" },
	{ ENOTSUP, "this is not supported here" },
	{ EADDRINUSE, "the address is in use" },
	{ EADDRNOTAVAIL, "this machine does not have the address" },
	{ ENETUNREACH, "the network can't be reached" },
	{ EHOSTUNREACH, "the host can't be reached" },
	{ ECONNABORTED, "the connection was ended" },
	{ ECONNRESET, "the other side has broken the connection" },
	{ ENOTCONN, "there is no connection" },
	{ ETIMEDOUT, "it took too long" },
	{ ECONNREFUSED, "nobody listens there" },
	{ EDQUOT, "the disk quota is used up" },
	{ ECANCELED, "it was cancelled" },
};

const char *err_errno_text(int errnum)
{
	const char *text;

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].errnum == errnum)
			return reasons[i].text;
	text = strerrordesc_np(errnum); /* static, never translated */
	return text && errnum ? text : "the system gave no reason";
}
