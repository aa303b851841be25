// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
//
// A library that a program is linked with, and that is destroyed behind the preloaded ones
__attribute__((visibility("default"))) void (*exs_at_exit)(void);

__attribute__((destructor)) static void run(void)
{
	if (exs_at_exit)
		exs_at_exit();
}
