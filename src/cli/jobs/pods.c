/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/jobs/pods.h"

#include <string.h>

#include "base/arena.h"

int pod_find(const struct invocation *in, struct client *client, const char *word, json_t **ret,
	     struct err *err)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789.-/";
	const char *slash = strchr(word, '/');

	if (!slash || slash == word || !slash[1] || strchr(slash + 1, '/') ||
	    strspn(word, allowed) != strlen(word))
		return err_set(err, ERR_INVALID,
			       "\"%.80s\" is no pod: write NAMESPACE/NAME, as Kubernetes has them",
			       word);
	return client_get(client,
			  client_path(in->arena, "/api/v1/pods/%s/%s",
				      arena_strndup(in->arena, word, (size_t)(slash - word)),
				      slash + 1),
			  ret, err);
}
