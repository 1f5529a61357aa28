/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "store/code_inner.h"

/* --- names ---------------------------------------------------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

void code_names_add(struct code_names *names, const char *name)
{
	if (names->count == names->room) {
		names->room = names->room ? names->room * 2 : 64;
		names->list = reallocarray(names->list, names->room, sizeof(*names->list));
		CHECK(names->list);
	}
	snprintf(names->list[names->count++], CODE_NAME_MAX, "%.64s", name);
}

void code_names_sort(struct code_names *names)
{
	if (names->count)
		qsort(names->list, names->count, sizeof(*names->list), by_text);
}

bool code_names_have(const struct code_names *names, const char *name)
{
	char key[CODE_NAME_MAX];

	snprintf(key, sizeof(key), "%.64s", name);
	return names->count &&
	       bsearch(key, names->list, names->count, sizeof(*names->list), by_text);
}

void code_names_deinit(struct code_names *names)
{
	free(names->list);
	*names = (struct code_names){ 0 };
}

/* --- the store ------------------------------------------------------------------------------------------------------ */

int code_none(const char *name, struct err *err)
{
	return err_set(err, ERR_NOT_FOUND, "%.64s of the snapshot is not there any more", name);
}

void code_store_destroy(struct code_store *store)
{
	if (store)
		store->ops->destroy(store);
}

int code_put(struct code_store *store, const char *account, enum code_kind kind, const char *name,
	     const void *data, size_t size, struct err *err)
{
	return store->ops->put(store, account, kind, name, data, size, err);
}

int code_get(struct code_store *store, const char *account, enum code_kind kind, const char *name,
	     struct buf *out, struct err *err)
{
	return store->ops->get(store, account, kind, name, out, err);
}

int code_name(struct code_store *store, const char *account, enum code_kind kind,
	      const char *const *names, size_t count, int64_t *ret_sizes, struct err *err)
{
	return store->ops->name(store, account, kind, names, count, ret_sizes, err);
}

int code_bytes(struct code_store *store, const char *account, int64_t *ret, struct err *err)
{
	return store->ops->bytes(store, account, ret, err);
}

int code_accounts(struct code_store *store, struct code_names *ret, struct err *err)
{
	return store->ops->accounts(store, ret, err);
}

int code_list(struct code_store *store, const char *account, enum code_kind kind,
	      struct code_names *ret, struct err *err)
{
	return store->ops->list(store, account, kind, ret, err);
}

int code_remove(struct code_store *store, const char *account, enum code_kind kind,
		int64_t before_s, const struct code_names *keep, struct err *err)
{
	return store->ops->remove(store, account, kind, before_s, keep, err);
}
