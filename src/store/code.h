/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Content of snapshots of working folders, by account, kind and SHA-256 (docs/decisions/0026): in the data folder, or beside a journal in
 * PostgreSQL, where all daemons on that journal have it. What is in it is for others to say; here it is bytes under a name, with the time when
 * it was named last. Any thread; all but creating it blocks.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/err.h"

struct buf;
struct code_store;

enum code_kind { CODE_FILES, CODE_TREES };
enum { CODE_NAME_MAX = 65 }; /* 64 hexadecimal digits; an account may be a number, too */

/* Sorted, once code_names_sort was called. */
struct code_names {
	char (*list)[CODE_NAME_MAX];
	size_t count, room;
};
void code_names_add(struct code_names *names, const char *name);
void code_names_sort(struct code_names *names);
bool code_names_have(const struct code_names *names, const char *name);
void code_names_deinit(struct code_names *names);

struct code_store *code_store_files(const char *folder);
struct code_store *code_store_database(const char *address); /* asked with the first question */
void code_store_destroy(struct code_store *store); /* NULL is fine */

/* Durable when it answers 0; one that is there counts as named now. */
int code_put(struct code_store *store, const char *account, enum code_kind kind, const char *name,
	     const void *data, size_t size, struct err *err) MUST_CHECK;
/* Adds it to out. ERR_NOT_FOUND: there is none. */
int code_get(struct code_store *store, const char *account, enum code_kind kind, const char *name,
	     struct buf *out, struct err *err) MUST_CHECK;
/* They are named now. Of each its bytes; -1: it is not there. */
int code_name(struct code_store *store, const char *account, enum code_kind kind,
	      const char *const *names, size_t count, int64_t *ret_sizes, struct err *err)
	MUST_CHECK;
int code_bytes(struct code_store *store, const char *account, int64_t *ret, struct err *err)
	MUST_CHECK; /* of its files */
int code_accounts(struct code_store *store, struct code_names *ret, struct err *err) MUST_CHECK;
int code_list(struct code_store *store, const char *account, enum code_kind kind,
	      struct code_names *ret, struct err *err) MUST_CHECK;
/* All that is not in `keep` and was named before this second last. */
int code_remove(struct code_store *store, const char *account, enum code_kind kind,
		int64_t before_s, const struct code_names *keep, struct err *err) MUST_CHECK;
