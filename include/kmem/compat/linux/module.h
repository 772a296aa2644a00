/* SPDX-License-Identifier: MIT */
/* linux/module.h - a module's start and end become functions of the program */
#ifndef KMEM_COMPAT_LINUX_MODULE_H
#define KMEM_COMPAT_LINUX_MODULE_H

#include <linux/export.h>
#include <linux/init.h>
#include <linux/kernel.h>

#ifdef __cplusplus
extern "C" {
#endif

struct module;

/* The program that is linked with the module calls these. */
int init_module(void);
void cleanup_module(void);

#ifdef __cplusplus
}
#endif

#ifndef THIS_MODULE
#define THIS_MODULE	((struct module *)0)
#endif
#ifndef module_init
#define module_init(function)						\
	int init_module(void) { return function(); }			\
	BUILD_BUG_ON(0)
#endif
#ifndef module_exit
#define module_exit(function)						\
	void cleanup_module(void) { function(); }			\
	BUILD_BUG_ON(0)
#endif
#ifndef MODULE_LICENSE
#define MODULE_LICENSE(text)		BUILD_BUG_ON(0)
#define MODULE_AUTHOR(text)		BUILD_BUG_ON(0)
#define MODULE_DESCRIPTION(text)	BUILD_BUG_ON(0)
#define MODULE_VERSION(text)		BUILD_BUG_ON(0)
#define MODULE_ALIAS(text)		BUILD_BUG_ON(0)
#endif
#ifndef module_param
#define module_param(name, type, mode)	BUILD_BUG_ON(0)
#define MODULE_PARM_DESC(name, text)	BUILD_BUG_ON(0)
#endif

/* What libc and other programs want of this name. */
#pragma GCC system_header
#include_next <linux/module.h>

#endif /* KMEM_COMPAT_LINUX_MODULE_H */
