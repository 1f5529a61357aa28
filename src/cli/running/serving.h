/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Flags that `up` and `serve` share. */
#define SERVING_FLAGS                                                                                                          \
	{ "data", 0, "DIR", "data folder, made when missing; FAIRLEAD_DATA says it too", false },                              \
		{ "listen", 0, "HOST:PORT",                                                                                    \
		  "also answer over TCP, on a loopback address only; callers then need a token",                               \
		  false },                                                                                                     \
		{ "store", 0, "ADDRESS",                                                                                       \
		  "keep the journal in PostgreSQL instead of files: postgresql://USER@HOST/DATABASE; the folder remembers it", \
		  false },                                                                                                     \
		{ "accept-loss", 0, NULL,                                                                                      \
		  "start although much of the journal is lost, and go on without these records",                               \
		  false },                                                                                                     \
	{                                                                                                                      \
		"detach", 'd', NULL,                                                                                           \
			"come back as soon as it answers; it goes on without the terminal", false                              \
	}
