/* SPDX-License-Identifier: MIT */
/* linux/printk.h - messages go to standard error */
#ifndef KMEM_COMPAT_LINUX_PRINTK_H
#define KMEM_COMPAT_LINUX_PRINTK_H

#include <stdio.h>

/* Levels stand in front of the format; here they are nothing. */
#ifndef KERN_ERR
#define KERN_EMERG	""
#define KERN_ALERT	""
#define KERN_CRIT	""
#define KERN_ERR	""
#define KERN_WARNING	""
#define KERN_NOTICE	""
#define KERN_INFO	""
#define KERN_DEBUG	""
#define KERN_CONT	""
#endif

#ifndef pr_fmt
#define pr_fmt(fmt)	fmt
#endif
#ifndef printk
#define printk(...)	fprintf(stderr, __VA_ARGS__)
#endif
#ifndef no_printk
/* The arguments are checked against the format and not evaluated. */
#define no_printk(...)	((void)(0 && printk(__VA_ARGS__)))
#endif
#ifndef pr_err
#define pr_emerg(fmt, ...)	printk(KERN_EMERG pr_fmt(fmt), ##__VA_ARGS__)
#define pr_alert(fmt, ...)	printk(KERN_ALERT pr_fmt(fmt), ##__VA_ARGS__)
#define pr_crit(fmt, ...)	printk(KERN_CRIT pr_fmt(fmt), ##__VA_ARGS__)
#define pr_err(fmt, ...)	printk(KERN_ERR pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warn(fmt, ...)	printk(KERN_WARNING pr_fmt(fmt), ##__VA_ARGS__)
#define pr_notice(fmt, ...)	printk(KERN_NOTICE pr_fmt(fmt), ##__VA_ARGS__)
#define pr_info(fmt, ...)	printk(KERN_INFO pr_fmt(fmt), ##__VA_ARGS__)
#define pr_cont(fmt, ...)	printk(KERN_CONT fmt, ##__VA_ARGS__)
#endif
#ifndef pr_debug
#ifdef DEBUG
#define pr_debug(fmt, ...)	printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__)
#else
#define pr_debug(fmt, ...)	no_printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__)
#endif
#endif

#endif /* KMEM_COMPAT_LINUX_PRINTK_H */
